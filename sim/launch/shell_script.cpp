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
#include "sim/launch/shell_command.hpp"
#include "sim/launch/shell_condition.hpp"
#include "sim/launch/shell_cursor.hpp"
#include "sim/launch/shell_tokens.hpp"

namespace lockstep {
namespace {

using Kind = ShellTokenKind;

constexpr int kDeepestCalls = 24;
constexpr std::size_t kMostSteps = 200'000;

/// Words that end a list of commands.
constexpr std::array<std::string_view, 8> kListEnds{"then", "else", "elif", "fi",
                                                    "do",   "done", "esac", "}"};

/// The words of "#SBATCH" lines and their like.
void collect_scheduler(std::string_view text, std::vector<std::string>& out) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    for (const std::string_view mark : {"#SBATCH ", "#BSUB ", "#PBS "}) {
      if (!line.starts_with(mark)) continue;
      const std::size_t comment = line.find(" #", mark.size());
      std::ranges::move(words_of(line.substr(mark.size(), comment - mark.size())),
                        std::back_inserter(out));
    }
  }
}

/// Slurm tells the script what its "#SBATCH" lines asked for.
void name_nodes(const std::vector<std::string>& words, ShellVariables& variables) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string nodes;
    if (words[i].starts_with("--nodes=")) nodes = words[i].substr(8);
    if ((words[i] == "-N" || words[i] == "--nodes") && i + 1 < words.size()) nodes = words[i + 1];
    std::int64_t whole = 0;
    if (!parse_whole(nodes, whole)) continue;
    for (const char* const name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}) {
      if (!variables.value(name)) variables.assign(name, {nodes}, false);
    }
  }
}

/// Follows the commands of a script, one after another or as `if`, `case` and functions have it.
class Reader {
 public:
  Reader(const std::string& file, std::string_view text, ShellVariables& variables,
         ShellScript& out, const SourcedText& sourced)
      : file_(file),
        cursor_{.tokens = shell_tokens(text)},
        own_(cursor_.tokens.size()),
        variables_(variables),
        out_(out),
        sourced_(sourced) {
    collect_scheduler(text, out_.scheduler);
    name_nodes(out_.scheduler, variables_);
  }

  void run() {
    while (cursor_.at < own_) {
      list(true);
      if (cursor_.at < own_) ++cursor_.at;  // an end without its beginning
    }
  }

 private:
  struct Function {
    std::size_t begin = 0, end = 0;
  };

  void step() {
    if (++steps_ <= kMostSteps) return;
    throw InputError({.file = file_,
                      .pointer = {},
                      .found = "a script of more than 200,000 commands",
                      .allowed = "one that starts a training",
                      .nearest = {}});
  }

  /// Commands up to a word that ends a list, or ")" or ";;".
  void list(bool live) {
    if (++depth_ > kDeepestCalls * 8) cursor_.at = cursor_.tokens.size();
    std::optional<bool> status = true;
    bool go = live;
    while (cursor_.peek() != nullptr) {
      if (cursor_.is_sign("\n") || cursor_.is_sign(";") || cursor_.is_sign("&")) {
        ++cursor_.at;
        go = live;
        continue;
      }
      if (cursor_.is_sign("&&") || cursor_.is_sign("||")) {
        go = live && (cursor_.is_sign("&&") ? status == true : status == false);
        ++cursor_.at;
        continue;
      }
      if (cursor_.is_sign("|") || cursor_.is_sign("|&")) {
        ++cursor_.at;
        continue;
      }
      if (cursor_.is_sign(")") || cursor_.is_sign(";;") || cursor_.is_sign(";;&")) break;
      if (cursor_.peek()->kind == Kind::word && is_list_end(cursor_.peek()->text)) break;
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
    for (; cursor_.is_word("!"); ++cursor_.at) negated = !negated;
    if (cursor_.ends_command()) return std::nullopt;
    const std::optional<bool> status = plain_command(live);
    return status ? std::optional(*status != negated) : status;
  }

  std::optional<bool> plain_command(bool live) {
    if (cursor_.peek()->kind == Kind::formula) {
      const std::string text = cursor_.tokens[cursor_.at++].text;
      return live ? variables_.run_formula(text) : std::nullopt;
    }
    if (cursor_.is_word("if")) return if_command(live);
    if (cursor_.is_word("case")) return case_command(live);
    if (cursor_.is_word("for") || cursor_.is_word("while") || cursor_.is_word("until") ||
        cursor_.is_word("select")) {
      return loop(live);
    }
    if (cursor_.is_word("{") || cursor_.is_sign("(")) {
      ++cursor_.at;
      list(live);
      const std::optional<bool> status = last_;
      if (cursor_.is_word("}") || cursor_.is_sign(")")) ++cursor_.at;
      return status;
    }
    if (cursor_.is_word("[") || cursor_.is_word("[[")) return condition(live);
    if (const std::optional<std::string> name = function_name()) {
      define(*name);
      return true;
    }
    return simple(live);
  }

  std::optional<bool> condition(bool live) {
    const std::string close = cursor_.tokens[cursor_.at].text == "[" ? "]" : "]]";
    const std::size_t begin = ++cursor_.at;
    while (cursor_.peek() != nullptr && !cursor_.is_word(close) && !cursor_.is_sign("\n")) {
      ++cursor_.at;
    }
    const std::span<const ShellToken> inside(cursor_.tokens.data() + begin, cursor_.at - begin);
    const std::optional<bool> out = live ? shell_condition(inside, variables_) : std::nullopt;
    if (cursor_.is_word(close)) ++cursor_.at;
    return out;
  }

  std::optional<bool> if_command(bool live) {
    bool taken = false;
    while (cursor_.is_word("if") || cursor_.is_word("elif")) {
      ++cursor_.at;
      list(live && !taken);
      const bool yes = live && !taken && last_ == true;
      if (cursor_.is_word("then")) ++cursor_.at;
      list(yes);
      taken = taken || yes;
    }
    if (cursor_.is_word("else")) {
      ++cursor_.at;
      list(live && !taken);
    }
    if (cursor_.is_word("fi")) ++cursor_.at;
    return true;
  }

  std::optional<bool> case_command(bool live) {
    ++cursor_.at;
    std::string subject;
    if (cursor_.peek() != nullptr && cursor_.peek()->kind == Kind::word) {
      if (live) subject = variables_.text(cursor_.peek()->text);
      ++cursor_.at;
    }
    if (subject.starts_with("${")) subject.clear();
    bool taken = false;
    while (cursor_.peek() != nullptr && !cursor_.is_word("esac")) {
      bool matches = false;
      while (cursor_.peek() != nullptr && !cursor_.is_sign(")") && !cursor_.is_word("esac")) {
        if (cursor_.peek()->kind == Kind::word && live && !taken) {
          matches = matches || matches_glob(subject, variables_.text(cursor_.peek()->text));
        }
        ++cursor_.at;
      }
      if (!cursor_.is_sign(")")) break;
      ++cursor_.at;
      const bool yes = live && !taken && matches;
      list(yes);
      taken = taken || yes;
      if (cursor_.is_sign(";;") || cursor_.is_sign(";;&") || !cursor_.is_word("esac")) ++cursor_.at;
      while (cursor_.is_sign("\n")) ++cursor_.at;
    }
    if (cursor_.is_word("esac")) ++cursor_.at;
    return true;
  }

  /// Of `for` the first turn, of others none: they read words that only a run has.
  std::optional<bool> loop(bool live) {
    bool turn = live && cursor_.is_word("for");
    ++cursor_.at;
    if (turn && cursor_.peek() != nullptr && cursor_.peek()->kind == Kind::word) {
      const std::string name = cursor_.tokens[cursor_.at++].text;
      if (cursor_.is_word("in")) ++cursor_.at;
      std::vector<std::string> items;
      while (!cursor_.ends_command()) {
        if (cursor_.peek()->kind == Kind::word) {
          std::ranges::move(variables_.words(cursor_.peek()->text), std::back_inserter(items));
        }
        ++cursor_.at;
      }
      turn = !items.empty();
      if (turn) variables_.assign(name, {items.front()}, false);
    }
    while (cursor_.peek() != nullptr && !cursor_.is_word("do")) ++cursor_.at;
    if (cursor_.is_word("do")) ++cursor_.at;
    list(turn);
    if (cursor_.is_word("done")) ++cursor_.at;
    return true;
  }

  [[nodiscard]] std::optional<std::string> function_name() {
    if (cursor_.peek()->kind != Kind::word) return std::nullopt;
    const auto sign_at = [&](std::size_t at, std::string_view text) {
      return at < cursor_.tokens.size() && cursor_.tokens[at].kind == Kind::sign &&
             cursor_.tokens[at].text == text;
    };
    std::size_t at = cursor_.at;
    const bool keyword = cursor_.tokens[at].text == "function" && at + 1 < cursor_.tokens.size();
    if (keyword) ++at;
    std::string name = cursor_.tokens[at].text;
    const bool brackets = sign_at(at + 1, "(") && sign_at(at + 2, ")");
    if (!keyword && !brackets) return std::nullopt;
    cursor_.at = at + (brackets ? 3 : 1);
    return name;
  }

  void define(const std::string& name) {
    while (cursor_.is_sign("\n")) ++cursor_.at;
    if (cursor_.is_word("{")) ++cursor_.at;
    const std::size_t begin = cursor_.at;
    list(false);
    functions_[name] = {begin, cursor_.at};
    if (cursor_.is_word("}")) ++cursor_.at;
  }

  void call(const Function& function, std::vector<std::string> words) {
    if (calls_ >= kDeepestCalls) return;
    ++calls_;
    const std::size_t back = std::exchange(cursor_.at, function.begin);
    const std::vector<std::string> outside = variables_.positionals();
    variables_.set_positionals({words.begin() + 1, words.end()});
    list(true);
    variables_.set_positionals(outside);
    cursor_.at = back;
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
    cursor_.tokens.push_back(wall);
    const std::size_t begin = cursor_.tokens.size();
    std::ranges::move(shell_tokens(*text), std::back_inserter(cursor_.tokens));
    cursor_.tokens.push_back(wall);
    ++calls_;
    const std::size_t back = std::exchange(cursor_.at, begin);
    list(true);
    cursor_.at = back;
    --calls_;
  }

  std::optional<bool> simple(bool live) {
    const std::size_t begin = cursor_.at;
    ShellCommand found = take_command(cursor_, variables_, live);
    if (cursor_.at == begin) ++cursor_.at;  // a bracket that opens nothing
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
  void read_here(const ShellCommand& found) {
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
  ShellCursor cursor_;
  std::size_t own_;  ///< tokens of the script itself
  ShellVariables& variables_;
  ShellScript& out_;
  const SourcedText& sourced_;
  std::size_t steps_ = 0;
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
