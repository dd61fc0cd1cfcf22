/// The values that an answer is made of: numbers, texts, and lists and objects of them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/units.hpp"

namespace lockstep {

/// A member that is there and has no value: JSON's null.
struct NoValue {};

/// A value that may be missing, and is NoValue then. An empty std::optional leaves its member out.
template <class Of>
struct OrNull {
  std::optional<Of> value;
};

/// A number that JSON has with all of its digits, such as a size in bytes.
struct AllDigits {
  double number = 0;
};

/// An object whose keys are not known beforehand, such as the seconds of each bucket.
using NamedNumbers = std::vector<std::pair<std::string, double>>;

class Value {
 public:
  using List = std::vector<Value>;
  using Object = std::vector<std::pair<std::string, Value>>;

  /// Absent: its member is left out.
  Value() = default;
  Value(NoValue none) : of_(none) {}                  // NOLINT(google-explicit-constructor)
  Value(List list) : of_(std::move(list)) {}          // NOLINT(google-explicit-constructor)
  Value(Object object) : of_(std::move(object)) {}    // NOLINT(google-explicit-constructor)
  Value(std::same_as<bool> auto flag) : of_(flag) {}  // NOLINT(google-explicit-constructor)
  Value(std::floating_point auto number) : of_(static_cast<double>(number)) {}  // NOLINT
  template <std::integral Whole>
    requires(!std::same_as<Whole, bool>)
  Value(Whole whole) : of_(static_cast<std::int64_t>(whole)) {}  // NOLINT
  template <std::convertible_to<std::string_view> Text>
  Value(const Text& text) : of_(std::string(std::string_view(text))) {}  // NOLINT
  template <int S, int B, int F, int J>
  Value(Quantity<S, B, F, J> quantity) : of_(quantity.base_units()) {}  // NOLINT
  template <class Of>
  Value(const std::optional<Of>& of) {  // NOLINT(google-explicit-constructor)
    if (of) *this = Value(*of);
  }
  template <class Of>
  Value(const OrNull<Of>& of) : of_(NoValue{}) {  // NOLINT(google-explicit-constructor)
    if (of.value) *this = Value(*of.value);
  }
  Value(AllDigits exact);  // NOLINT(google-explicit-constructor)
  /// JSON that has its form from elsewhere: a scenario as it was written.
  static Value document(nlohmann::ordered_json json);
  Value(const std::vector<std::string>& texts);  // NOLINT(google-explicit-constructor)
  Value(const std::vector<double>& numbers);     // NOLINT(google-explicit-constructor)
  Value(const NamedNumbers& numbers);            // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool absent() const { return std::holds_alternative<std::monostate>(of_); }
  /// A number, a truth value as 0 or 1; nothing if it is neither.
  [[nodiscard]] std::optional<double> number() const;
  /// Numbers with at most 12 significant digits. Requires a value that is not absent.
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  using Document = std::shared_ptr<const nlohmann::ordered_json>;
  std::variant<std::monostate, NoValue, bool, std::int64_t, double, std::string, List, Object,
               Document>
      of_;
};

}  // namespace lockstep
