#include "topologies/formats/dot.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/letter_case.hpp"
#include "topologies/formats/fabric_json.hpp"

namespace lockstep {
namespace {

constexpr int kMostNested = 64;  // subgraphs in subgraphs

struct Token {
  enum class Kind : std::uint8_t { end, id, symbol };
  Kind kind = Kind::end;
  std::string text;     ///< of a symbol: "{", "--", "->", ...
  bool quoted = false;  ///< an id that can be no keyword
  int line = 1;
};

bool is_id_letter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Scanner {
 public:
  Scanner(const std::string& file, std::string_view text) : file_(file), rest_(text) {}

  Token next() {
    skip_blanks();
    Token token{.kind = Token::Kind::symbol, .text = {}, .quoted = false, .line = line_};
    if (rest_.empty()) {
      token.kind = Token::Kind::end;
    } else if (rest_.starts_with("--") || rest_.starts_with("->")) {
      token.text = take(2);
    } else if (std::string_view("{}[];,=:+").find(rest_.front()) != std::string_view::npos) {
      token.text = take(1);
    } else {
      token.kind = Token::Kind::id;
      read_id(token);
    }
    return token;
  }

  [[noreturn]] void fail(int line, std::string found, std::string allowed) const {
    throw InputError(
        {fmt::format("{}:{}", file_, line), "", std::move(found), std::move(allowed), ""});
  }

 private:
  std::string take(std::size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    line_ += static_cast<int>(std::count(taken.begin(), taken.end(), '\n'));
    rest_.remove_prefix(taken.size());
    return std::string(taken);
  }

  void skip_blanks() {
    while (!rest_.empty()) {
      const bool at_start = start_of_line_;
      start_of_line_ = rest_.front() == '\n';
      if (std::isspace(static_cast<unsigned char>(rest_.front())) != 0) {
        take(1);
      } else if (rest_.starts_with("//") || (at_start && rest_.front() == '#')) {
        take(std::min(rest_.find('\n'), rest_.size()));
      } else if (rest_.starts_with("/*")) {
        const std::size_t end = rest_.find("*/", 2);
        if (end == std::string_view::npos) fail(line_, "a comment without an end", "*/");
        take(end + 2);
      } else {
        return;
      }
    }
  }

  void read_id(Token& token) {
    const char first = rest_.front();
    if (first == '"') {
      token.quoted = true;
      token.text = quoted();
    } else if (first == '<') {
      token.quoted = true;
      token.text = html();
    } else if (first == '-' || first == '.' || std::isdigit(static_cast<unsigned char>(first))) {
      std::size_t size = first == '-' ? 1 : 0;
      while (size < rest_.size() && (rest_[size] == '.' || is_id_letter(rest_[size]))) ++size;
      if (size == (first == '-' ? 1U : 0U)) fail(line_, in_quotes(rest_.substr(0, 1)), "a name");
      token.text = take(size);
    } else if (is_id_letter(first)) {
      std::size_t size = 1;
      while (size < rest_.size() && is_id_letter(rest_[size])) ++size;
      token.text = take(size);
    } else {
      fail(line_, in_quotes(rest_.substr(0, 1)), "a name, or one of { } [ ] ; , = : -- ->");
    }
  }

  std::string quoted() {
    const int line = line_;
    take(1);
    std::string out;
    while (true) {
      if (rest_.empty()) fail(line, "a quoted name without an end", "\"");
      const std::string c = take(1);
      if (c == "\"") return out;
      if (c == "\\" && (rest_.starts_with('"') || rest_.starts_with('\n'))) {
        const std::string next = take(1);
        if (next == "\"") out += next;  // a backslash joins two lines
      } else {
        out += c;
      }
    }
  }

  std::string html() {
    const int line = line_;
    int depth = 0;
    std::size_t size = 0;
    do {
      if (size == rest_.size()) fail(line, "an HTML text without an end", ">");
      depth += rest_[size] == '<' ? 1 : rest_[size] == '>' ? -1 : 0;
      ++size;
    } while (depth > 0);
    return take(size);
  }

  const std::string& file_;
  std::string_view rest_;
  int line_ = 1;
  bool start_of_line_ = true;
};

/// Attributes that a subgraph's vertices and edges start with.
struct Defaults {
  Attributes node, edge;
};

class Parser {
 public:
  Parser(const std::string& file, std::string_view text) : scanner_(file, text) { advance(); }

  NamedGraph parse() {
    if (is_word("strict")) advance();
    if (!is_word("graph") && !is_word("digraph")) fail("graph or digraph");
    graph_.directed = is_word("digraph");
    advance();
    if (token_.kind == Token::Kind::id) advance();
    Defaults defaults;
    std::vector<std::size_t> members;
    body(defaults, members, 0);
    if (token_.kind != Token::Kind::end) fail("the end of the file: one graph");
    return std::move(graph_);
  }

 private:
  void advance() { token_ = scanner_.next(); }
  [[nodiscard]] bool is(std::string_view symbol) const {
    return token_.kind == Token::Kind::symbol && token_.text == symbol;
  }
  /// A keyword, in capital or small letters.
  [[nodiscard]] bool is_word(std::string_view word) const {
    if (token_.kind != Token::Kind::id || token_.quoted) return false;
    return lowered(token_.text) == word;
  }
  [[noreturn]] void fail(std::string allowed) const {
    scanner_.fail(token_.line,
                  token_.kind == Token::Kind::end ? "the end of the file" : in_quotes(token_.text),
                  std::move(allowed));
  }
  void expect(std::string_view symbol) {
    if (!is(symbol)) fail(std::string(symbol));
    advance();
  }
  std::string id() {
    if (token_.kind != Token::Kind::id) fail("a name");
    std::string text = std::move(token_.text);
    advance();
    while (is("+")) {  // "a" + "b"
      advance();
      if (token_.kind != Token::Kind::id || !token_.quoted) fail("a quoted text behind +");
      text += token_.text;
      advance();
    }
    return text;
  }

  /// "{ ... }"; adds the vertices in it to `members`.
  void body(Defaults defaults, std::vector<std::size_t>& members, int depth) {
    if (depth > kMostNested) fail(fmt::format("at most {} subgraphs in each other", kMostNested));
    expect("{");
    while (!is("}")) {
      statement(defaults, members, depth);
      if (is(";")) advance();
    }
    advance();
    std::ranges::sort(members);
    members.erase(std::ranges::unique(members).begin(), members.end());
  }

  void statement(Defaults& defaults, std::vector<std::size_t>& members, int depth) {
    if (is_word("graph") || is_word("node") || is_word("edge")) {
      Attributes ignored;
      Attributes& into = is_word("node")   ? defaults.node
                         : is_word("edge") ? defaults.edge
                                           : ignored;
      advance();
      if (!is("[")) fail("[");
      attributes(into);
      return;
    }
    const int line = token_.line;
    bool is_node = false;
    std::vector<std::vector<std::size_t>> ends{end(defaults, depth, is_node)};
    if (is_node && is("=")) {  // NAME=VALUE, of the graph
      advance();
      (void)id();
      forget_new_node();
      return;
    }
    while (is("--") || is("->")) {
      if (is("->") != graph_.directed) fail(graph_.directed ? "-> in a digraph" : "-- in a graph");
      advance();
      bool ignored = false;
      ends.push_back(end(defaults, depth, ignored));
    }
    Attributes given;
    attributes(given);
    for (const auto& set : ends) members.insert(members.end(), set.begin(), set.end());
    if (ends.size() > 1) {
      edges(ends, defaults.edge, given, line);
    } else if (is_node) {
      for (auto& [key, value] : given) graph_.nodes[ends[0][0]].attributes[key] = value;
    }
    new_node_ = false;
  }

  void edges(const std::vector<std::vector<std::size_t>>& ends, const Attributes& defaults,
             const Attributes& given, int line) {
    Attributes all = given;
    all.insert(defaults.begin(), defaults.end());
    for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
      for (const std::size_t a : ends[i]) {
        for (const std::size_t b : ends[i + 1]) {
          if (graph_.edges.size() >= 2 * std::size_t{kMaxCables}) {
            scanner_.fail(line, "too many edges", fmt::format("at most {}", 2 * kMaxCables));
          }
          graph_.edges.push_back({.a = a, .b = b, .attributes = all, .line = line});
        }
      }
    }
  }

  /// A vertex with or without a port, or a subgraph.
  std::vector<std::size_t> end(const Defaults& defaults, int depth, bool& is_node) {
    std::vector<std::size_t> members;
    if (is_word("subgraph")) {
      advance();
      if (token_.kind == Token::Kind::id) advance();
      if (!is("{")) fail("{");
    }
    if (is("{")) {
      body(defaults, members, depth + 1);
      return members;
    }
    is_node = true;
    const int line = token_.line;
    const std::string name = id();
    for (int i = 0; i < 2 && is(":"); ++i) {  // port, compass point
      advance();
      (void)id();
    }
    const auto [at, is_new] = index_.emplace(name, graph_.nodes.size());
    if (is_new) graph_.nodes.push_back({.name = name, .attributes = defaults.node, .line = line});
    new_node_ = is_new;
    members.push_back(at->second);
    return members;
  }

  /// What looked like a vertex was the name of a graph's attribute.
  void forget_new_node() {
    if (!new_node_) return;
    index_.erase(graph_.nodes.back().name);
    graph_.nodes.pop_back();
    new_node_ = false;
  }

  void attributes(Attributes& into) {
    while (is("[")) {
      advance();
      while (!is("]")) {
        std::string key = id();
        std::string value = "true";
        if (is("=")) {
          advance();
          value = id();
        }
        into[std::move(key)] = std::move(value);
        if (is(";") || is(",")) advance();
      }
      advance();
    }
  }

  Scanner scanner_;
  Token token_;
  NamedGraph graph_;
  std::map<std::string, std::size_t, std::less<>> index_;
  bool new_node_ = false;  ///< the last vertex read was not known before
};

std::string dot_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  if (out.ends_with('\\')) out += ' ';  // it would take the quote with it
  return out + "\"";
}

std::string attribute_list(const Attributes& attributes) {
  std::string out;
  for (const auto& [key, value] : attributes) {
    out += fmt::format("{}{}={}", out.empty() ? " [" : ", ", key, dot_string(value));
  }
  return out.empty() ? out : out + "]";
}

}  // namespace

NamedGraph read_dot(const std::string& file, std::string_view text) {
  return Parser(file, text).parse();
}

std::string write_dot(const NamedGraph& graph) {
  std::string out = graph.directed ? "digraph fabric {\n" : "graph fabric {\n";
  out += "  node [shape=box];\n";
  for (const NamedGraph::Node& node : graph.nodes) {
    out += fmt::format("  {}{};\n", dot_string(node.name), attribute_list(node.attributes));
  }
  for (const NamedGraph::Edge& edge : graph.edges) {
    out += fmt::format("  {} {} {}{};\n", dot_string(graph.nodes[edge.a].name),
                       graph.directed ? "->" : "--", dot_string(graph.nodes[edge.b].name),
                       attribute_list(edge.attributes));
  }
  return out + "}\n";
}

}  // namespace lockstep
