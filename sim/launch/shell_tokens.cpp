#include "sim/launch/shell_tokens.hpp"

#include <algorithm>
#include <array>

namespace lockstep {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr int kDeepestPieces = 64;

bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }
bool ends_word(char c) {
  return is_blank(c) || c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')' ||
         c == '<' || c == '>';
}

std::size_t piece_end(std::string_view text, std::size_t at, int depth);

/// The end behind the bracket that closes what has begun before `at`.
std::size_t behind_bracket(std::string_view text, std::size_t at, char open, char close,
                           int depth) {
  int level = 1;
  while (at < text.size()) {
    const char c = text[at];
    if (c == open) ++level;
    if (c == close && --level == 0) return at + 1;
    at = c == open || c == close ? at + 1 : piece_end(text, at, depth + 1);
  }
  return text.size();
}

std::size_t piece_end(std::string_view text, std::size_t at, int depth) {
  const char c = text[at];
  if (depth > kDeepestPieces) return text.size();
  if (c == '\\') return std::min(at + 2, text.size());
  if (c == '\'') {
    const std::size_t end = text.find('\'', at + 1);
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  if (c == '"' || c == '`') {
    std::size_t end = at + 1;
    while (end < text.size() && text[end] != c) {
      const bool inner = text[end] == '\\' || (c == '"' && text[end] == '$');
      end = inner ? piece_end(text, end, depth + 1) : end + 1;
    }
    return std::min(end + 1, text.size());
  }
  if (c == '$' && at + 1 < text.size()) {
    if (text[at + 1] == '(') return behind_bracket(text, at + 2, '(', ')', depth);
    if (text[at + 1] == '{') return behind_bracket(text, at + 2, '{', '}', depth);
  }
  return at + 1;
}

class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}

  std::vector<ShellToken> take() {
    while (at_ < text_.size()) step();
    end_line();
    return std::move(out_);
  }

 private:
  struct Pending {
    std::string end;
    bool strip = false;
    std::size_t token = 0;
  };

  [[nodiscard]] bool has(std::string_view sign) const {
    return text_.substr(at_).starts_with(sign);
  }
  [[nodiscard]] bool begins_command() const {
    return out_.empty() || out_.back().kind == ShellTokenKind::sign ||
           (out_.back().kind == ShellTokenKind::word &&
            (out_.back().text == "if" || out_.back().text == "while" ||
             out_.back().text == "elif" || out_.back().text == "!"));
  }
  void sign(std::string_view text) {
    at_ += text.size();
    out_.push_back({ShellTokenKind::sign, std::string(text), {}, false});
  }

  void step() {
    const char c = text_[at_];
    if (is_blank(c)) {
      ++at_;
    } else if (has("\\\n")) {
      at_ += 2;
    } else if (has("\\\r\n")) {
      at_ += 3;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '\n') {
      ++at_;
      end_line();
    } else if (c == '<' || c == '>') {
      redirect();
    } else if (has("((") && begins_command()) {
      const std::size_t end = behind_bracket(text_, at_ + 1, '(', ')', 0);
      const std::size_t inner = end > at_ + 4 ? end - at_ - 4 : 0;
      out_.push_back(
          {ShellTokenKind::formula, std::string(text_.substr(at_ + 2, inner)), {}, false});
      at_ = end;
    } else {
      signs_or_word();
    }
  }

  void signs_or_word() {
    constexpr std::array<std::string_view, 9> kSigns{";;&", ";;", "&&", "||", "|&",
                                                     ";",   "|",  "(",  ")"};
    if (has("&>")) {
      at_ += has("&>>") ? 3 : 2;
      out_.push_back({ShellTokenKind::redirect, ">", {}, false});
      return;
    }
    for (const std::string_view one : kSigns) {
      if (has(one)) return sign(one);
    }
    if (text_[at_] == '&') return sign("&");
    word();
  }

  void redirect() {
    if (has("<<<")) {
      at_ += 3;
      out_.push_back({ShellTokenKind::redirect, "<<<", {}, false});
      return;
    }
    if (has("<<")) return here();
    if (has("<(") || has(">(")) {
      at_ = behind_bracket(text_, at_ + 2, '(', ')', 0);
      out_.push_back({ShellTokenKind::word, "$()", {}, false});
      return;
    }
    const bool writes = text_[at_] == '>';
    while (at_ < text_.size() && (text_[at_] == '<' || text_[at_] == '>' || text_[at_] == '|')) {
      ++at_;
    }
    if (at_ < text_.size() && text_[at_] == '&') {  // 2>&1 has no word of its own
      ++at_;
      while (at_ < text_.size() && !ends_word(text_[at_])) ++at_;
      drop_descriptor();
      return;
    }
    drop_descriptor();
    out_.push_back({ShellTokenKind::redirect, writes ? ">" : "<", {}, false});
  }

  /// The number before a redirection is no word.
  void drop_descriptor() {
    if (!out_.empty() && out_.back().kind == ShellTokenKind::word && out_.back().text.size() == 1 &&
        out_.back().text[0] >= '0' && out_.back().text[0] <= '9') {
      out_.pop_back();
    }
  }

  void here() {
    at_ += 2;
    Pending pending;
    if (at_ < text_.size() && text_[at_] == '-') {
      pending.strip = true;
      ++at_;
    }
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    const std::size_t begin = at_;
    while (at_ < text_.size() && !ends_word(text_[at_])) at_ = end_of_piece(text_, at_);
    ShellToken token{ShellTokenKind::here, {}, {}, false};
    for (const char c : text_.substr(begin, at_ - begin)) {
      if (c == '\'' || c == '"' || c == '\\') {
        token.literal = true;
      } else {
        pending.end += c;
      }
    }
    pending.token = out_.size();
    out_.push_back(std::move(token));
    if (!pending.end.empty()) pending_.push_back(std::move(pending));
  }

  /// Here-documents begin behind the line that asks for them.
  void end_line() {
    for (const Pending& one : pending_) {
      std::string& body = out_[one.token].text;
      while (at_ < text_.size()) {
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string_view line = text_.substr(at_, end - at_);
        at_ = std::min(end + 1, text_.size());
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (one.strip) line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
        if (line == one.end) break;
        body += std::string(line) + "\n";
      }
    }
    pending_.clear();
    out_.push_back({ShellTokenKind::sign, "\n", {}, false});
  }

  void word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !ends_word(text_[at_])) {
      if (has("\\\n")) break;
      at_ = end_of_piece(text_, at_);
    }
    const std::string_view found = text_.substr(begin, at_ - begin);
    if (found.ends_with('=') && has("(")) return array(found);
    out_.push_back({ShellTokenKind::word, std::string(found), {}, false});
  }

  void array(std::string_view name) {
    ++at_;
    ShellToken token{ShellTokenKind::array, std::string(name), {}, false};
    while (at_ < text_.size() && text_[at_] != ')') {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (ends_word(c)) {
        ++at_;
      } else if (has("\\\n") || has("\\\r")) {
        at_ += 2;
      } else {
        const std::size_t begin = at_;
        while (at_ < text_.size() && !ends_word(text_[at_]) && !has("\\\n")) {
          at_ = end_of_piece(text_, at_);
        }
        token.words.emplace_back(text_.substr(begin, at_ - begin));
      }
    }
    at_ = std::min(at_ + 1, text_.size());
    out_.push_back(std::move(token));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<ShellToken> out_;
  std::vector<Pending> pending_;
};

}  // namespace

std::size_t end_of_piece(std::string_view text, std::size_t at) { return piece_end(text, at, 0); }

std::vector<ShellToken> shell_tokens(std::string_view text) { return Tokens(text).take(); }

}  // namespace lockstep
