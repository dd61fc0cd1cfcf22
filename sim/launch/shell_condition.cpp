#include "sim/launch/shell_condition.hpp"

#include <vector>

#include "sim/launch/setting.hpp"

namespace lockstep {
namespace {

constexpr int kDeepestCondition = 32;

/// A variable that is not known is taken as one that is not set.
std::string known_part(const std::string& text) {
  if (text.find("${") == std::string::npos) return text;
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t begin = text.find("${", at);
    if (begin == std::string::npos) return out + text.substr(at);
    out += text.substr(at, begin - at);
    const std::size_t end = text.find('}', begin);
    if (end == std::string::npos) return out;
    at = end + 1;
  }
  return out;
}

class Condition {
 public:
  Condition(std::span<const ShellToken> tokens, ShellVariables& variables)
      : tokens_(tokens), variables_(variables) {}

  std::optional<bool> any(int depth) {
    std::optional<bool> out = all(depth);
    while (take("||") || take("-o")) {
      const std::optional<bool> more = all(depth);
      out = out == true || more == true ? std::optional(true)
            : out && more               ? std::optional(false)
                                        : std::nullopt;
    }
    return out;
  }

 private:
  [[nodiscard]] bool is(std::string_view text) const {
    return at_ < tokens_.size() && tokens_[at_].text == text;
  }
  bool take(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }

  std::optional<bool> all(int depth) {
    std::optional<bool> out = one(depth);
    while (take("&&") || take("-a")) {
      const std::optional<bool> more = one(depth);
      out = out == false || more == false ? std::optional(false)
            : out && more                 ? std::optional(true)
                                          : std::nullopt;
    }
    return out;
  }

  std::optional<bool> one(int depth) {
    if (depth > kDeepestCondition || at_ >= tokens_.size()) return std::nullopt;
    if (take("!")) {
      const std::optional<bool> inner = one(depth + 1);
      return inner ? std::optional(!*inner) : inner;
    }
    if (take("(")) {
      const std::optional<bool> inner = any(depth + 1);
      (void)take(")");
      return inner;
    }
    const std::string first = tokens_[at_].text;
    if (first.size() == 2 && first[0] == '-' && at_ + 1 < tokens_.size()) {
      ++at_;
      return unary(first[1], word());
    }
    return comparison(word());
  }

  std::string word() {
    if (at_ >= tokens_.size()) return {};
    return known_part(variables_.text(tokens_[at_++].text));
  }

  static std::optional<bool> unary(char sign, const std::string& operand) {
    if (operand.find("$(") != std::string::npos) return std::nullopt;
    if (sign == 'z') return operand.empty();
    if (sign == 'n' || sign == 'v') return !operand.empty();
    return true;  // -f, -d, -e and their like: files are there
  }

  std::optional<bool> comparison(const std::string& left) {
    if (at_ >= tokens_.size() || is("&&") || is("||") || is(")")) return !left.empty();
    const std::string sign = tokens_[at_++].text;
    const std::string right = word();
    if (left.find("$(") != std::string::npos || right.find("$(") != std::string::npos) {
      return std::nullopt;
    }
    if (sign == "=" || sign == "==") return matches_glob(left, right);
    if (sign == "!=") return !matches_glob(left, right);
    if (sign == "=~") return left.find(right) != std::string::npos;
    std::int64_t a = 0, b = 0;
    if (!parse_whole(left, a) || !parse_whole(right, b)) return std::nullopt;
    if (sign == "-eq") return a == b;
    if (sign == "-ne") return a != b;
    if (sign == "-lt" || sign == "<") return a < b;
    if (sign == "-le") return a <= b;
    if (sign == "-gt" || sign == ">") return a > b;
    if (sign == "-ge") return a >= b;
    return std::nullopt;
  }

  std::span<const ShellToken> tokens_;
  ShellVariables& variables_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<bool> shell_condition(std::span<const ShellToken> words, ShellVariables& variables) {
  return Condition(words, variables).any(0);
}

}  // namespace lockstep
