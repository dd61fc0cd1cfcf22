#include "sim/launch/shell_variables.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/input_error.hpp"
#include "sim/launch/arithmetic.hpp"
#include "sim/launch/setting.hpp"
#include "sim/launch/shell_tokens.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostText = std::size_t{64} << 20;  // that a script may write out in all
constexpr int kDeepestWords = 32;

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string joined(const std::vector<std::string>& values) {
  return fmt::format("{}", fmt::join(values, " "));
}

std::size_t length_of_name(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && is_name_letter(text[length])) ++length;
  return length;
}

std::string open_name(std::string_view name) { return fmt::format("${{{}}}", name); }

/// ${X%pattern}, ${X##pattern}: the shortest or longest match cut off.
std::string cut(const std::string& value, std::string_view pattern, bool front, bool longest) {
  const std::size_t size = value.size();
  for (std::size_t i = 0; i <= size; ++i) {
    const std::size_t length = longest ? size - i : i;
    const std::string_view part = front ? std::string_view(value).substr(0, length)
                                        : std::string_view(value).substr(size - length);
    if (!matches_glob(part, pattern)) continue;
    return front ? value.substr(length) : value.substr(0, size - length);
  }
  return value;
}

std::string replaced(std::string value, std::string_view from, std::string_view to, bool all) {
  if (from.empty()) return value;
  std::string out;
  std::size_t at = 0;
  while (true) {
    const std::size_t found = value.find(from, at);
    if (found == std::string::npos) break;
    out += value.substr(at, found - at);
    out += to;
    at = found + from.size();
    if (!all) break;
  }
  return out + value.substr(at);
}

}  // namespace

bool matches_glob(std::string_view text, std::string_view pattern) {
  std::size_t t = 0, p = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

void ShellVariables::fix(const std::string& name, const std::string& value) {
  values_[name] = {value};
  fixed_.insert(name);
}

void ShellVariables::assign(const std::string& name, std::vector<std::string> values, bool append) {
  if (fixed_.contains(name)) return;
  for (const std::string& value : values) spend(value.size() + 1);
  std::vector<std::string>& old = values_[name];
  if (!append) {
    old = std::move(values);
    return;
  }
  old.insert(old.end(), values.begin(), values.end());
}

void ShellVariables::unset(const std::string& name) {
  if (!fixed_.contains(name)) values_.erase(name);
}

std::optional<std::string> ShellVariables::value(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return joined(found->second);
}

std::optional<std::int64_t> ShellVariables::number(std::string_view name) const {
  std::int64_t out = 0;
  const auto found = value(std::string(name));
  if (!found || !parse_whole(*found, out)) return std::nullopt;
  return out;
}

void ShellVariables::spend(std::size_t bytes) {
  spent_ += bytes;
  if (spent_ <= kMostText) return;
  throw InputError({.file = file_,
                    .pointer = {},
                    .found = "variables whose values grow beyond 64 MiB",
                    .allowed = "a script that starts a training",
                    .nearest = {}});
}

std::string ShellVariables::formula(std::string_view expression) {
  const std::string filled = text(fmt::format("\"{}\"", expression));
  const std::optional<std::int64_t> worth =
      arithmetic(filled, [&](std::string_view name) { return number(name); });
  if (worth) return std::to_string(*worth);
  return fmt::format("$(({}))", fmt::join(words_of(expression), ""));
}

std::optional<bool> ShellVariables::run_formula(std::string_view expression) {
  const std::size_t begin = expression.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return std::nullopt;
  expression.remove_prefix(begin);
  const std::size_t length = length_of_name(expression);
  const std::string name(expression.substr(0, length));
  std::string_view rest = expression.substr(length);
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  if (length > 0 && rest.starts_with('=') && !rest.starts_with("==")) {
    assign(name, {formula(rest.substr(1))}, false);
    return true;
  }
  const bool changes = rest.size() >= 2 && rest[1] == '=' &&
                       std::string_view("+-*/").find(rest[0]) != std::string_view::npos;
  if (length > 0 && changes) {
    assign(name, {formula(fmt::format("{} {} ({})", name, rest[0], rest.substr(2)))}, false);
    return true;
  }
  if (length > 0 && (rest.starts_with("++") || rest.starts_with("--"))) {
    assign(name, {formula(fmt::format("{} {} 1", name, rest[0]))}, false);
    return true;
  }
  std::int64_t out = 0;
  if (!parse_whole(formula(expression), out)) return std::nullopt;
  return out != 0;
}

/// Words that are being put together.
struct ShellVariables::Piece {
  std::vector<std::string> words;
  std::string word;
  bool begun = false;  ///< a word of no letters is one too where it is quoted
  bool split = true;

  void letters(std::string_view text) {
    word += text;
    begun = begun || !text.empty();
  }
  void finish() {
    if (begun) words.push_back(std::move(word));
    word.clear();
    begun = false;
  }
  /// Between two elements of an array: "${A[@]}" keeps them apart, "${A[*]}" is one word.
  void divide(bool quoted, bool words_apart) {
    if (split && quoted && words_apart) {
      finish();
    } else if (split && !quoted) {
      loose(" ");
    } else {
      letters(" ");
    }
  }
  /// Text that is split where it has blanks.
  void loose(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = std::min(text.find_first_of(" \t\r\n", at), text.size());
      letters(text.substr(at, end - at));
      if (end < text.size()) finish();
      at = end + 1;
    }
  }
};

void ShellVariables::add_piece(std::string_view piece, bool quoted, Piece& out) {
  const char c = piece[0];
  if (c == '\\' && piece.size() == 2) {
    const bool kept =
        quoted && std::string_view("$`\"\\\n").find(piece[1]) == std::string_view::npos;
    if (kept) out.letters("\\");
    if (piece[1] != '\n') out.letters(piece.substr(1));
  } else if (c == '\'' && !quoted) {
    out.begun = true;
    if (piece.size() >= 2) out.letters(piece.substr(1, piece.size() - 2));
  } else if (c == '"' && !quoted) {
    out.begun = true;
    if (piece.size() >= 2) add_letters(piece.substr(1, piece.size() - 2), true, out);
  } else if ((c == '$' && piece.size() > 1) || c == '`') {
    bool is_list = false;
    const std::vector<std::string> values = dollar(piece, is_list);
    for (std::size_t i = 0; i < values.size(); ++i) {
      spend(values[i].size() + 1);
      if (i > 0) out.divide(quoted, is_list);
      quoted || !out.split ? out.letters(values[i]) : out.loose(values[i]);
    }
  } else {
    out.letters(piece);
  }
}

void ShellVariables::add_letters(std::string_view raw, bool quoted, Piece& out) {
  std::size_t at = 0;
  while (at < raw.size()) {
    std::size_t end = end_of_piece(raw, at);
    if (raw[at] == '$' && end == at + 1) {  // $NAME, $1, $@
      const std::size_t length = length_of_name(raw.substr(at + 1));
      if (length > 0) {
        const bool one = raw[at + 1] >= '0' && raw[at + 1] <= '9';
        end = at + 1 + (one ? 1 : length);
      } else if (at + 1 < raw.size() &&
                 std::string_view("@*#?$!").find(raw[at + 1]) != std::string_view::npos) {
        end = at + 2;
      }
    } else if (quoted && (raw[at] == '"' || raw[at] == '\'')) {
      end = at + 1;
    }
    add_piece(raw.substr(at, end - at), quoted, out);
    at = end;
  }
}

std::vector<std::string> ShellVariables::words(std::string_view raw) {
  Piece out;
  add_letters(raw, false, out);
  out.finish();
  return std::move(out.words);
}

std::string ShellVariables::text(std::string_view raw) {
  Piece out;
  out.split = false;
  add_letters(raw, false, out);
  return std::move(out.word);
}

std::string ShellVariables::lines(std::string_view raw) {
  Piece out;
  out.split = false;
  add_letters(raw, true, out);
  return std::move(out.word);
}

std::vector<std::string> ShellVariables::dollar(std::string_view piece, bool& is_list) {
  if (piece[0] == '`') {
    return {command_output(piece.substr(1, piece.size() < 2 ? 0 : piece.size() - 2))};
  }
  if (piece.starts_with("$((") && piece.ends_with("))")) {
    return {formula(piece.substr(3, piece.size() - 5))};
  }
  if (piece.starts_with("$(")) {
    return {command_output(piece.substr(2, piece.size() - 2 - (piece.ends_with(')') ? 1 : 0)))};
  }
  if (piece.starts_with("${") && piece.ends_with('}')) {
    if (++depth_ > kDeepestWords) {
      --depth_;
      return {std::string(piece)};
    }
    std::vector<std::string> out = braces(piece.substr(2, piece.size() - 3), is_list);
    --depth_;
    return out;
  }
  return braces(piece.substr(1), is_list);
}

std::vector<std::string> ShellVariables::braces(std::string_view inside, bool& is_list) {
  if (inside == "@" || inside == "*") {
    is_list = inside == "@";
    return positionals_;
  }
  if (inside == "#") return {std::to_string(positionals_.size())};
  if (inside == "?" || inside == "$" || inside == "!") return {"0"};
  const bool counts = inside.starts_with('#') || inside.starts_with('!');
  const char prefix = counts ? inside[0] : ' ';
  if (counts) inside.remove_prefix(1);
  const std::size_t length = length_of_name(inside);
  const std::string name(inside.substr(0, length));
  std::string_view rest = inside.substr(length);
  const auto found = values_.find(name);
  const bool known = found != values_.end();
  if (rest.starts_with("[@]") || rest.starts_with("[*]")) {
    is_list = rest[1] == '@';
    if (prefix == '#') return {std::to_string(known ? found->second.size() : 0)};
    return known ? found->second : std::vector<std::string>{};
  }
  std::optional<std::string> worth = value(name);
  std::int64_t index = 0;
  if (parse_whole(name, index)) {
    const bool given = index >= 1 && index <= std::ssize(positionals_);
    if (given) worth = positionals_[static_cast<std::size_t>(index - 1)];
  }
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos) return {open_name(inside)};
    const std::string_view index_text = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    worth = value(fmt::format("{}[{}]", name, text(index_text)));  // declare -A
    const std::string which = worth ? std::string() : formula(index_text);
    if (known && parse_whole(which, index) && index >= 0 && index < std::ssize(found->second)) {
      worth = found->second[static_cast<std::size_t>(index)];
    }
  } else if (known && found->second.size() > 1) {
    worth = found->second.front();  // an array's name alone is its first element
  }
  if (prefix == '#') return {std::to_string(worth ? worth->size() : 0)};
  if (prefix == '!' && worth) return {value(*worth).value_or(open_name(*worth))};
  return {changed(name, worth, rest)};
}

/// What stands behind a name in ${...}.
std::string ShellVariables::changed(const std::string& name,
                                    const std::optional<std::string>& value,
                                    std::string_view rest) {
  const bool colon = rest.starts_with(':');
  const std::string_view after = colon ? rest.substr(1) : rest;
  const bool there = value && !(colon && value->empty()) && *value != open_name(name);
  if (!after.empty() && std::string_view("-=+?").find(after[0]) != std::string_view::npos) {
    const std::string_view word = after.substr(1);
    if (after[0] == '+') return there ? text(word) : "";
    if (there) return *value;
    if (after[0] == '?') return open_name(name);
    const std::string other = text(word);
    if (after[0] == '=') assign(name, {other}, false);
    return other;
  }
  if (!value) return open_name(name);
  if (rest.empty()) return *value;
  if (colon) {
    std::string_view range = after;
    const std::size_t middle = range.find(':');
    std::int64_t from = 0, count = std::ssize(*value);
    if (!parse_whole(formula(range.substr(0, middle)), from) || from < 0) return *value;
    if (middle != std::string_view::npos)
      (void)parse_whole(formula(range.substr(middle + 1)), count);
    if (from > std::ssize(*value) || count < 0) return "";
    return value->substr(static_cast<std::size_t>(from), static_cast<std::size_t>(count));
  }
  const bool twice = rest.size() > 1 && rest[1] == rest[0];
  const std::string_view pattern = rest.substr(twice ? 2 : 1);
  constexpr std::size_t kLongestCut = 4096;
  if ((rest[0] == '%' || rest[0] == '#') && value->size() <= kLongestCut) {
    return cut(*value, text(pattern), rest[0] == '#', twice);
  }
  if (rest[0] == ',') return lower(*value);
  if (rest[0] == '/') {
    const std::size_t slash = pattern.find('/');
    const std::string to = slash == std::string_view::npos ? "" : text(pattern.substr(slash + 1));
    return replaced(*value, text(pattern.substr(0, slash)), to, twice);
  }
  return *value;
}

/// What is known without running it: arithmetic by expr or bc, and echo.
std::string ShellVariables::command_output(std::string_view inside) {
  const std::vector<std::string> parts = words_of(inside);
  if (parts.size() >= 2 && (parts[0] == "expr" || parts[0] == "echo") &&
      ++depth_ <= kDeepestWords) {
    std::string_view expression = inside.substr(inside.find(parts[0]) + 4);
    const std::size_t pipe = expression.find('|');
    const bool bc = pipe != std::string_view::npos &&
                    words_of(expression.substr(pipe + 1)) == std::vector<std::string>{"bc"};
    const std::string filled = text(expression.substr(0, pipe));
    --depth_;
    if (parts[0] == "echo" && pipe == std::string_view::npos) return joined(words_of(filled));
    const std::optional<std::int64_t> worth =
        arithmetic(filled, [&](std::string_view name) { return number(name); });
    if (worth && (bc || parts[0] == "expr")) return std::to_string(*worth);
  }
  return fmt::format("$({})", parts.empty() ? std::string() : parts.front());
}

}  // namespace lockstep
