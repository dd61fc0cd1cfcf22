#include "sim/launch/arithmetic.hpp"

#include <array>
#include <charconv>

namespace lockstep {
namespace {

constexpr int kDeepestBrackets = 64;

using Worth = std::optional<std::int64_t>;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

Worth checked(std::int64_t a, std::int64_t b,
              bool (*overflows)(std::int64_t, std::int64_t, std::int64_t*)) {
  std::int64_t out = 0;
  if (overflows(a, b, &out)) return std::nullopt;
  return out;
}
Worth product(std::int64_t a, std::int64_t b) {
  return checked(a, b, [](std::int64_t x, std::int64_t y, std::int64_t* out) {
    return __builtin_mul_overflow(x, y, out);
  });
}

struct Operator {
  std::string_view sign;
  int rank;  ///< higher binds closer
};
// Longer signs before those that they begin with.
constexpr std::array kOperators{
    Operator{"**", 8}, Operator{"||", 1}, Operator{"&&", 2}, Operator{"==", 3}, Operator{"!=", 3},
    Operator{"<=", 4}, Operator{">=", 4}, Operator{"<", 4},  Operator{">", 4},  Operator{"+", 6},
    Operator{"-", 6},  Operator{"*", 7},  Operator{"/", 7},  Operator{"%", 7}};

Worth power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0 || exponent > 63) return std::nullopt;
  Worth out = 1;
  for (std::int64_t i = 0; i < exponent && out; ++i) out = product(*out, base);
  return out;
}

Worth apply(std::string_view sign, std::int64_t a, std::int64_t b) {
  if (sign == "*") return product(a, b);
  if (sign == "**") return power(a, b);
  if (sign == "+") {
    return checked(a, b, [](std::int64_t x, std::int64_t y, std::int64_t* out) {
      return __builtin_add_overflow(x, y, out);
    });
  }
  if (sign == "-") {
    return checked(a, b, [](std::int64_t x, std::int64_t y, std::int64_t* out) {
      return __builtin_sub_overflow(x, y, out);
    });
  }
  if (sign == "/" || sign == "%") {
    if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
    return sign == "/" ? a / b : a % b;
  }
  if (sign == "==") return a == b;
  if (sign == "!=") return a != b;
  if (sign == "<=") return a <= b;
  if (sign == ">=") return a >= b;
  if (sign == "<") return a < b;
  if (sign == ">") return a > b;
  if (sign == "&&") return a != 0 && b != 0;
  return a != 0 || b != 0;
}

class Expression {
 public:
  Expression(std::string_view text, const ArithmeticName& name) : rest_(text), name_(name) {}

  Worth whole() {
    const Worth out = choice(0);
    skip_blanks();
    return rest_.empty() && !broken_ ? out : std::nullopt;
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && std::string_view(" \t\r\n").find(rest_[0]) != std::string_view::npos)
      rest_.remove_prefix(1);
  }
  bool take(std::string_view sign) {
    skip_blanks();
    if (!rest_.starts_with(sign)) return false;
    rest_.remove_prefix(sign.size());
    return true;
  }
  Worth broken() {
    broken_ = true;
    return std::nullopt;
  }

  Worth choice(int depth) {
    const Worth condition = binary(0, depth);
    if (!take("?")) return condition;
    const Worth yes = choice(depth + 1);
    if (depth > kDeepestBrackets || !take(":")) return broken();
    const Worth no = choice(depth + 1);
    if (!condition) return std::nullopt;
    return *condition != 0 ? yes : no;
  }

  Worth binary(int least, int depth) {
    Worth left = single(depth);
    while (!broken_) {
      skip_blanks();
      const Operator* found = nullptr;
      for (const Operator& one : kOperators) {
        if (rest_.starts_with(one.sign)) {
          found = &one;
          break;
        }
      }
      if (found == nullptr || found->rank < least) return left;
      rest_.remove_prefix(found->sign.size());
      const Worth right = binary(found->rank + (found->sign == "**" ? 0 : 1), depth + 1);
      left = left && right ? apply(found->sign, *left, *right) : std::nullopt;
      if (depth > kDeepestBrackets) return broken();
    }
    return left;
  }

  Worth single(int depth) {
    if (depth > kDeepestBrackets) return broken();
    skip_blanks();
    if (take("(")) {
      const Worth inner = choice(depth + 1);
      return take(")") ? inner : broken();
    }
    if (take("-")) {
      const Worth inner = single(depth + 1);
      return inner ? checked_negative(*inner) : inner;
    }
    if (take("+")) return single(depth + 1);
    if (take("!")) {
      const Worth inner = single(depth + 1);
      return inner ? Worth(*inner == 0) : inner;
    }
    if (take("${")) {
      const Worth out = named();
      return take("}") ? out : broken();
    }
    (void)take("$");
    if (!rest_.empty() && is_digit(rest_[0])) return number();
    return named();
  }

  static Worth checked_negative(std::int64_t value) {
    if (value == INT64_MIN) return std::nullopt;
    return -value;
  }

  Worth number() {
    std::int64_t out = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out);
    if (error != std::errc()) return broken();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return out;
  }

  Worth named() {
    std::size_t length = 0;
    while (length < rest_.size() &&
           (is_letter(rest_[length]) || (length > 0 && is_digit(rest_[length])))) {
      ++length;
    }
    if (length == 0) return broken();
    const std::string_view word = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return name_(word);
  }

  std::string_view rest_;
  const ArithmeticName& name_;
  bool broken_ = false;
};

}  // namespace

std::optional<std::int64_t> arithmetic(std::string_view text, const ArithmeticName& name) {
  return Expression(text, name).whole();
}

}  // namespace lockstep
