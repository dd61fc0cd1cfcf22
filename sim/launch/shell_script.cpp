#include "sim/launch/shell_script.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "models/base/input_error.hpp"
#include "sim/launch/setting.hpp"
#include "sim/launch/shell_condition.hpp"
#include "sim/launch/shell_tokens.hpp"

namespace lockstep {
namespace {

using Kind = ShellTokenKind;

constexpr int kDeepestCalls = 24;
constexpr std::size_t kMostSteps = 200'000;

/// Words that end a list of commands.
constexpr std::array<std::string_view, 8> kListEnds{"then", "else", "elif", "fi",
                                                    "do",   "done", "esac", "}"};
/// Commands that go on with the command behind them.
constexpr std::array<std::string_view, 6> kCarriers{"export",   "local",   "declare",
                                                    "readonly", "typeset", "set"};

bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  std::string_view name = word.substr(0, equals);
  if (name.ends_with('+')) name.remove_suffix(1);
  if (name.ends_with(']')) name = name.substr(0, name.find('['));
  const bool letters = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  return letters && !name.empty() && !(name[0] >= '0' && name[0] <= '9');
}

class Reader {
 public:
  Reader(const std::string& file, std::string_view text, ShellVariables& variables,
         ShellScript& out, const SourcedText& sourced)
      : file_(file),
        tokens_(shell_tokens(text)),
        own_(tokens_.size()),
        variables_(variables),
        out_(out),
        sourced_(sourced) {
    collect_scheduler(text);
    name_nodes();
  }

  void run() {
    while (at_ < own_) {
      list(true);
      if (at_ < own_) ++at_;  // an end without its beginning
    }
  }

 private:
  struct Function {
    std::size_t begin = 0, end = 0;
  };

  [[nodiscard]] const ShellToken* peek() const {
    return at_ < tokens_.size() ? &tokens_[at_] : nullptr;
  }
  [[nodiscard]] bool is_sign(std::string_view text) const {
    return peek() != nullptr && peek()->kind == Kind::sign && peek()->text == text;
  }
  [[nodiscard]] bool is_word(std::string_view text) const {
    return peek() != nullptr && peek()->kind == Kind::word && peek()->text == text;
  }
  [[nodiscard]] bool ends_command() const {
    return peek() == nullptr || (peek()->kind == Kind::sign && peek()->text != "(");
  }
  void step() {
    if (++steps_ <= kMostSteps) return;
    throw InputError({.file = file_,
                      .pointer = {},
                      .found = "a script of more than 200,000 commands",
                      .allowed = "one that starts a training",
                      .nearest = {}});
  }

  void collect_scheduler(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = text.substr(at, end - at);
      at = end + 1;
      for (const std::string_view mark : {"#SBATCH ", "#BSUB ", "#PBS "}) {
        if (!line.starts_with(mark)) continue;
        const std::size_t comment = line.find(" #", mark.size());
        std::ranges::move(words_of(line.substr(mark.size(), comment - mark.size())),
                          std::back_inserter(out_.scheduler));
      }
    }
  }

  /// Slurm tells the script what its "#SBATCH" lines asked for.
  void name_nodes() {
    const std::vector<std::string>& words = out_.scheduler;
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::string nodes;
      if (words[i].starts_with("--nodes=")) nodes = words[i].substr(8);
      if ((words[i] == "-N" || words[i] == "--nodes") && i + 1 < words.size()) nodes = words[i + 1];
      std::int64_t whole = 0;
      if (!parse_whole(nodes, whole)) continue;
      for (const char* const name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}) {
        if (!variables_.value(name)) variables_.assign(name, {nodes}, false);
      }
    }
  }

  /// Commands up to a word that ends a list, or ")" or ";;".
  void list(bool live) {
    if (++depth_ > kDeepestCalls * 8) at_ = tokens_.size();
    std::optional<bool> status = true;
    bool go = live;
    while (peek() != nullptr) {
      if (is_sign("\n") || is_sign(";") || is_sign("&")) {
        ++at_;
        go = live;
        continue;
      }
      if (is_sign("&&") || is_sign("||")) {
        go = live && (is_sign("&&") ? status == true : status == false);
        ++at_;
        continue;
      }
      if (is_sign("|") || is_sign("|&")) {
        ++at_;
        continue;
      }
      if (is_sign(")") || is_sign(";;") || is_sign(";;&")) break;
      if (peek()->kind == Kind::word && is_list_end(peek()->text)) break;
      const std::optional<bool> done = command(go);
      if (go) status = done;
    }
    last_ = status;
    --depth_;
  }

  static bool is_list_end(std::string_view word) {
    return std::ranges::find(kListEnds, word) != kListEnds.end();
  }

  std::optional<bool> command(bool live) {
    step();
    bool negated = false;
    for (; is_word("!"); ++at_) negated = !negated;
    if (ends_command()) return std::nullopt;
    const std::optional<bool> status = plain_command(live);
    return status ? std::optional(*status != negated) : status;
  }

  std::optional<bool> plain_command(bool live) {
    if (peek()->kind == Kind::formula) {
      const std::string text = tokens_[at_++].text;
      return live ? variables_.run_formula(text) : std::nullopt;
    }
    if (is_word("if")) return if_command(live);
    if (is_word("case")) return case_command(live);
    if (is_word("for") || is_word("while") || is_word("until") || is_word("select")) {
      return loop(live);
    }
    if (is_word("{") || is_sign("(")) {
      ++at_;
      list(live);
      const std::optional<bool> status = last_;
      if (is_word("}") || is_sign(")")) ++at_;
      return status;
    }
    if (is_word("[") || is_word("[[")) return condition(live);
    if (const std::optional<std::string> name = function_name()) {
      define(*name);
      return true;
    }
    return simple(live);
  }

  std::optional<bool> condition(bool live) {
    const std::string close = tokens_[at_].text == "[" ? "]" : "]]";
    const std::size_t begin = ++at_;
    while (peek() != nullptr && !is_word(close) && !is_sign("\n")) ++at_;
    const std::span<const ShellToken> inside(tokens_.data() + begin, at_ - begin);
    const std::optional<bool> out = live ? shell_condition(inside, variables_) : std::nullopt;
    if (is_word(close)) ++at_;
    return out;
  }

  std::optional<bool> if_command(bool live) {
    bool taken = false;
    while (is_word("if") || is_word("elif")) {
      ++at_;
      list(live && !taken);
      const bool yes = live && !taken && last_ == true;
      if (is_word("then")) ++at_;
      list(yes);
      taken = taken || yes;
    }
    if (is_word("else")) {
      ++at_;
      list(live && !taken);
    }
    if (is_word("fi")) ++at_;
    return true;
  }

  std::optional<bool> case_command(bool live) {
    ++at_;
    std::string subject;
    if (peek() != nullptr && peek()->kind == Kind::word) {
      if (live) subject = variables_.text(peek()->text);
      ++at_;
    }
    if (subject.starts_with("${")) subject.clear();
    bool taken = false;
    while (peek() != nullptr && !is_word("esac")) {
      bool matches = false;
      while (peek() != nullptr && !is_sign(")") && !is_word("esac")) {
        if (peek()->kind == Kind::word && live && !taken) {
          matches = matches || matches_glob(subject, variables_.text(peek()->text));
        }
        ++at_;
      }
      if (!is_sign(")")) break;
      ++at_;
      const bool yes = live && !taken && matches;
      list(yes);
      taken = taken || yes;
      if (is_sign(";;") || is_sign(";;&") || !is_word("esac")) ++at_;
      while (is_sign("\n")) ++at_;
    }
    if (is_word("esac")) ++at_;
    return true;
  }

  /// Of `for` the first turn, of others none: they read words that only a run has.
  std::optional<bool> loop(bool live) {
    bool turn = live && is_word("for");
    ++at_;
    if (turn && peek() != nullptr && peek()->kind == Kind::word) {
      const std::string name = tokens_[at_++].text;
      if (is_word("in")) ++at_;
      std::vector<std::string> items;
      while (!ends_command()) {
        if (peek()->kind == Kind::word) {
          std::ranges::move(variables_.words(peek()->text), std::back_inserter(items));
        }
        ++at_;
      }
      turn = !items.empty();
      if (turn) variables_.assign(name, {items.front()}, false);
    }
    while (peek() != nullptr && !is_word("do")) ++at_;
    if (is_word("do")) ++at_;
    list(turn);
    if (is_word("done")) ++at_;
    return true;
  }

  [[nodiscard]] std::optional<std::string> function_name() {
    if (peek()->kind != Kind::word) return std::nullopt;
    const auto sign_at = [&](std::size_t at, std::string_view text) {
      return at < tokens_.size() && tokens_[at].kind == Kind::sign && tokens_[at].text == text;
    };
    std::size_t at = at_;
    const bool keyword = tokens_[at].text == "function" && at + 1 < tokens_.size();
    if (keyword) ++at;
    std::string name = tokens_[at].text;
    const bool brackets = sign_at(at + 1, "(") && sign_at(at + 2, ")");
    if (!keyword && !brackets) return std::nullopt;
    at_ = at + (brackets ? 3 : 1);
    return name;
  }

  void define(const std::string& name) {
    while (is_sign("\n")) ++at_;
    if (is_word("{")) ++at_;
    const std::size_t begin = at_;
    list(false);
    functions_[name] = {begin, at_};
    if (is_word("}")) ++at_;
  }

  void call(const Function& function, std::vector<std::string> words) {
    if (calls_ >= kDeepestCalls) return;
    ++calls_;
    const std::size_t back = std::exchange(at_, function.begin);
    const std::vector<std::string> outside = variables_.positionals();
    variables_.set_positionals({words.begin() + 1, words.end()});
    list(true);
    variables_.set_positionals(outside);
    at_ = back;
    --calls_;
  }

  /// `source FILE`: its commands run here. Its tokens stand behind the script's own, shut off by a
  /// bracket that no list goes past, so that functions keep their places.
  void run_sourced(const std::vector<std::string>& words) {
    if (!sourced_ || calls_ >= kDeepestCalls) return;
    const bool in_pieces = words[1].starts_with("$(");  // a command's words, without quotes
    const std::optional<std::string> text = sourced_(
        in_pieces ? fmt::format("{}", fmt::join(words.begin() + 1, words.end(), " ")) : words[1]);
    if (!text) return;
    const ShellToken wall = shell_tokens(")").front();
    tokens_.push_back(wall);
    const std::size_t begin = tokens_.size();
    std::ranges::move(shell_tokens(*text), std::back_inserter(tokens_));
    tokens_.push_back(wall);
    ++calls_;
    const std::size_t back = std::exchange(at_, begin);
    list(true);
    at_ = back;
    --calls_;
  }

  void assign(const ShellToken& token) {
    const std::size_t equals = token.text.find('=');
    std::string name = token.text.substr(0, equals);
    const bool append = name.ends_with('+');
    if (append) name.pop_back();
    if (name.ends_with(']')) name = variables_.text(name);  // CFG[tp]=4
    if (token.kind == Kind::array) {
      std::vector<std::string> values;
      for (const std::string& raw : token.words) {
        const std::size_t key_end = raw.starts_with('[') ? raw.find("]=") : std::string::npos;
        if (key_end != std::string::npos) {  // declare -A CFG=([tp]=4 [pp]=2)
          const std::string key = variables_.text(raw.substr(1, key_end - 1));
          variables_.assign(fmt::format("{}[{}]", name, key),
                            {variables_.text(std::string_view(raw).substr(key_end + 2))}, false);
          continue;
        }
        std::ranges::move(variables_.words(raw), std::back_inserter(values));
      }
      variables_.assign(name, std::move(values), append);
      return;
    }
    std::string value = variables_.text(std::string_view(token.text).substr(equals + 1));
    if (append) value = variables_.value(name).value_or("") + value;
    variables_.assign(name, {std::move(value)}, false);
  }

  struct Words {
    std::vector<std::string> words;
    std::string here, target;
  };

  /// Takes the tokens of one command; assignments before its first word are made.
  Words take_words(bool live) {
    Words out;
    bool carries = true;
    for (; !ends_command(); ++at_) {
      const ShellToken& token = tokens_[at_];
      if (token.kind == Kind::redirect) {
        const bool has_file = at_ + 1 < tokens_.size() && tokens_[at_ + 1].kind == Kind::word;
        if (has_file && live && token.text == ">")
          out.target = variables_.text(tokens_[at_ + 1].text);
        if (has_file) ++at_;
        continue;
      }
      if (!live) continue;
      if (token.kind == Kind::here) {
        out.here = token.literal ? token.text : variables_.lines(token.text);
      } else if (carries && (token.kind == Kind::array || is_assignment(token.text))) {
        assign(token);
      } else if (token.kind == Kind::word) {
        const bool carrier = carries && std::ranges::find(kCarriers, token.text) != kCarriers.end();
        carries = carrier || (carries && token.text.starts_with('-') && out.words.empty() &&
                              at_ > 0 && tokens_[at_ - 1].kind == Kind::word);
        if (!carries)
          std::ranges::move(variables_.words(token.text), std::back_inserter(out.words));
      }
    }
    return out;
  }

  std::optional<bool> simple(bool live) {
    const std::size_t begin = at_;
    Words found = take_words(live);
    if (at_ == begin) ++at_;  // a bracket that opens nothing
    if (!live) return true;
    if (!found.here.empty()) read_here(found);
    if (found.words.empty()) return true;
    const std::string& name = found.words.front();
    if (const auto function = functions_.find(name); function != functions_.end()) {
      call(function->second, found.words);
      return true;
    }
    if (name == "unset") {
      for (const std::string& one : found.words) variables_.unset(one);
    } else if ((name == "source" || name == ".") && found.words.size() > 1) {
      run_sourced(found.words);
    } else if (name == "let" && found.words.size() > 1) {
      return variables_.run_formula(found.words[1]);
    } else if (name == "false") {
      return false;
    } else {
      run_inner(found.words);
      if (name != "eval") out_.commands.push_back(std::move(found.words));
    }
    return true;
  }

  /// A here-document fills a file, or is a script that a scheduler would run; a file that it fills
  /// and that is a script is run later on.
  void read_here(const Words& found) {
    const bool fills = found.words.size() > 1 && found.words.front() == "read";
    if (fills && is_assignment(found.words.back() + "=")) {  // read -r -d '' NAME <<EOF
      variables_.assign(found.words.back(), {found.here}, false);
      return;
    }
    if (!found.target.empty()) out_.written[found.target] = found.here;
    if (found.target.empty() || is_script(found.here)) inner(found.here);
  }
  static bool is_script(std::string_view text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    return line.starts_with("#!") && line.ends_with("sh");
  }

  /// `bash -c "..."`, `eval ...`: words that are a script themselves.
  void run_inner(const std::vector<std::string>& words) {
    if (words.front() == "eval") {
      inner(fmt::format("{}", fmt::join(words.begin() + 1, words.end(), " ")));
      return;
    }
    for (std::size_t i = 1; i < words.size(); ++i) {
      const bool script = words[i].find(' ') != std::string::npos;
      if (script && (words[i - 1] == "-c" || words[i - 1] == "-lc" || words[i - 1] == "--wrap" ||
                     words[i].find(" --") != std::string::npos)) {
        inner(words[i]);
      }
      if (words[i].starts_with("--wrap=")) inner(words[i].substr(7));
    }
  }

  void inner(const std::string& text) {
    if (calls_ >= kDeepestCalls) return;
    // Lines for the scheduler in a here-document were found before, without their variables.
    if (text.find("#SBATCH ") != std::string::npos) out_.scheduler.clear();
    Reader reader(file_, text, variables_, out_, sourced_);
    reader.calls_ = calls_ + 1;
    reader.steps_ = steps_;
    reader.run();
    steps_ = reader.steps_;
  }

  const std::string& file_;
  std::vector<ShellToken> tokens_;
  std::size_t own_;  ///< tokens of the script itself
  ShellVariables& variables_;
  ShellScript& out_;
  const SourcedText& sourced_;
  std::size_t at_ = 0, steps_ = 0;
  int depth_ = 0, calls_ = 0;
  std::optional<bool> last_;
  std::map<std::string, Function> functions_;
};

}  // namespace

ShellScript read_shell_script(const std::string& file, std::string_view text,
                              ShellVariables& variables, const SourcedText& sourced) {
  ShellScript out;
  Reader(file, text, variables, out, sourced).run();
  return out;
}

}  // namespace lockstep
