/// Members of JSON objects that people write, declared once: key, field, bounds and a sentence. The
/// same declaration reads an object, writes one, and describes it in a JSON Schema.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_cursor.hpp"
#include "models/base/units.hpp"
#include "sim/scenario/value_type.hpp"

namespace lockstep {

enum class Extent : std::uint8_t {
  whole,    ///< everything that has no sensible default must be there
  changes,  ///< only what differs from the values that the spec has
};

// Bounds that no real value leaves.
inline constexpr Interval kRateOrNone{1e7, 1e16, false, true};  // bytes per second; 0: none given
inline constexpr Interval kShare{0, 1};

/// Where a declaration of members is sent to: an object that is read, one that the fields' values
/// are written to, or a schema. `required` and `optional` take the key, the field, its bounds and a
/// sentence about it.
class DeclaredMembers {
 public:
  /// Reads `from`. A required member must be there unless only changes are read.
  DeclaredMembers(const JsonCursor& from, Extent extent) : from_(&from), extent_(extent) {}
  /// Describes the members in `schema`, which becomes that of an object without other keys. The
  /// required ones are listed, unless only changes are described.
  DeclaredMembers(nlohmann::ordered_json& schema, Extent extent,
                  QuantityBounds bounds = QuantityBounds::left_out);
  /// Writes the fields' values to `object`, quantities in base units: what reads back as the same.
  /// Fields without a value are left out.
  static DeclaredMembers writing(nlohmann::ordered_json& object);

  /// The object that is read; null where one or a schema is written. Rules that span members ask
  /// for it.
  [[nodiscard]] const JsonCursor* object() const { return from_; }
  [[nodiscard]] Extent extent() const { return extent_; }

  template <class... Of>
  void required(std::string_view key, Of&&... of) const {
    member({key, true}, of...);
  }
  template <class... Of>
  void optional(std::string_view key, Of&&... of) const {
    member({key, false}, of...);
  }

 private:
  struct Key {
    std::string_view name;
    bool required = false;
  };

  /// Any value: `use` is called with it. What has no field of its own is not written.
  template <class Use>
    requires std::is_invocable_v<Use, const JsonCursor&>
  void member(Key key, const ValueType& type, std::string_view sentence, const Use& use) const {
    member(key, type, sentence, use, [] { return NotWritten{}; });
  }
  /// Declares a member for which a writer writes what `get` returns.
  template <class Use, class Get>
    requires std::is_invocable_v<Use, const JsonCursor&> && std::is_invocable_v<Get>
  void member(Key key, const ValueType& type, std::string_view sentence, const Use& use,
              const Get& get) const {
    if (written_ != nullptr) return write(key, get());
    if (from_ == nullptr) return describe(key, type, sentence);
    if (const std::optional<JsonCursor> at = find(key)) use(*at);
  }
  void member(Key key, double& out, const Interval& allowed, std::string_view sentence) const {
    member(
        key, number_type(allowed), sentence,
        [&](const JsonCursor& at) { out = at.number(allowed); },
        [&] { return within(allowed, out); });
  }
  void member(Key key, std::optional<double>& out, const Interval& allowed,
              std::string_view sentence) const {
    member(
        key, number_type(allowed), sentence,
        [&](const JsonCursor& at) { out = at.number(allowed); },
        [&] { return within(allowed, out); });
  }
  /// A count or a share.
  void member(Key key, double& out, Dimension dimension, const Interval& allowed,
              std::string_view sentence) const {
    member(
        key, quantity_type(dimension, allowed), sentence,
        [&](const JsonCursor& at) { out = at.quantity(dimension, allowed); },
        [&] { return within(allowed, out); });
  }
  void member(Key key, std::optional<double>& out, Dimension dimension, const Interval& allowed,
              std::string_view sentence) const {
    member(
        key, quantity_type(dimension, allowed), sentence,
        [&](const JsonCursor& at) { out = at.quantity(dimension, allowed); },
        [&] { return within(allowed, out); });
  }
  void member(Key key, int& out, int low, int high, std::string_view sentence) const {
    member(
        key, integer_type(low, high), sentence,
        [&](const JsonCursor& at) { out = at.integer(low, high); },
        [&] { return within({1.0 * low, 1.0 * high}, out); });
  }
  void member(Key key, std::optional<int>& out, int low, int high,
              std::string_view sentence) const {
    member(
        key, integer_type(low, high), sentence,
        [&](const JsonCursor& at) { out = at.integer(low, high); },
        [&] { return within({1.0 * low, 1.0 * high}, out); });
  }
  void member(Key key, bool& out, std::string_view sentence) const {
    member(
        key, boolean_type(), sentence, [&](const JsonCursor& at) { out = at.boolean(); },
        [&] { return out; });
  }
  void member(Key key, std::optional<bool>& out, std::string_view sentence) const {
    member(
        key, boolean_type(), sentence, [&](const JsonCursor& at) { out = at.boolean(); },
        [&] { return out; });
  }
  /// Joules are a bare number: no unit of energy is one that people write.
  void member(Key key, Joules& out, const Interval& allowed, std::string_view sentence) const {
    member(
        key, number_type(allowed), sentence,
        [&](const JsonCursor& at) { out = Joules{at.number(allowed)}; },
        [&] { return within(allowed, out.base_units()); });
  }
  void member(Key key, std::string& out, std::string_view sentence) const {
    member(
        key, text_type(), sentence, [&](const JsonCursor& at) { out = at.string(); },
        [&] { return std::string_view(out); });
  }
  /// A string that must be one of `names`; its index is the enumeration's value.
  template <class Enum, class Names>
    requires std::is_enum_v<Enum>
  void member(Key key, Enum& out, const Names& names, std::string_view sentence) const {
    member(
        key, choice_type(names), sentence,
        [&](const JsonCursor& at) { out = static_cast<Enum>(at.choice(names)); },
        [&] { return name_in(names, out); });
  }
  template <class Enum, class Names>
    requires std::is_enum_v<Enum>
  void member(Key key, std::optional<Enum>& out, const Names& names,
              std::string_view sentence) const {
    member(
        key, choice_type(names), sentence,
        [&](const JsonCursor& at) { out = static_cast<Enum>(at.choice(names)); },
        [&] { return out ? std::optional(name_in(names, *out)) : std::nullopt; });
  }
  template <int S, int B, int F, int J>
  void member(Key key, Quantity<S, B, F, J>& out, const Interval& allowed,
              std::string_view sentence) const {
    quantity(key, out, allowed, sentence);
  }
  template <int S, int B, int F, int J>
  void member(Key key, std::optional<Quantity<S, B, F, J>>& out, const Interval& allowed,
              std::string_view sentence) const {
    quantity(key, out, allowed, sentence);
  }
  /// An object with members of its own: `declare` is called with them.
  template <class T, class Declare>
    requires std::is_invocable_v<Declare, const DeclaredMembers&, T&>
  void member(Key key, T& out, std::string_view sentence, const Declare& declare) const {
    nested(key, extent_, sentence, [&](const DeclaredMembers& inner) { declare(inner, out); });
  }
  /// Declares an optional object. It must be complete if there is no value to change.
  template <class T, class Declare>
    requires std::is_invocable_v<Declare, const DeclaredMembers&, T&>
  void member(Key key, std::optional<T>& out, std::string_view sentence,
              const Declare& declare) const {
    if (written_ != nullptr && !out) return;
    nested(key, out ? extent_ : Extent::whole, sentence, [&](const DeclaredMembers& inner) {
      T value = out.value_or(T{});
      declare(inner, value);
      out = std::move(value);
    });
  }
  /// Declares an optional object; `known` says whether there is a value to change.
  template <class T, class Declare>
    requires std::is_invocable_v<Declare, const DeclaredMembers&, T&>
  void member(Key key, T& out, bool known, std::string_view sentence,
              const Declare& declare) const {
    if (written_ != nullptr && !known) return;
    nested(key, known ? extent_ : Extent::whole, sentence,
           [&](const DeclaredMembers& inner) { declare(inner, out); });
  }
  template <class Declare>
  void nested(Key key, Extent extent, std::string_view sentence, const Declare& declare) const {
    if (written_ != nullptr) return declare(writing(object_in(key)));
    if (from_ == nullptr) {
      return declare(DeclaredMembers(describe_object(key, sentence), extent_, bounds_));
    }
    const std::optional<JsonCursor> at = find(key);
    if (!at) return;
    declare(DeclaredMembers(*at, extent));
    at->finish();
  }
  /// The name of a preset of `kind`, or an object with `declare`d members that changes one or
  /// stands for itself: `use` is called with either.
  template <class Declare, class Use>
    requires std::is_invocable_v<Declare, const DeclaredMembers&>
  void member(Key key, std::string_view kind, std::string_view sentence,
              std::string_view object_sentence, const Declare& declare, const Use& use) const {
    if (written_ != nullptr) return;  // by who knows which preset it started from
    if (from_ != nullptr) {
      if (const std::optional<JsonCursor> at = find(key)) use(*at);
      return;
    }
    declare(DeclaredMembers(describe_preset(key, kind, sentence, object_sentence), Extent::changes,
                            bounds_));
  }

  /// A list of at most `most` objects with `declare`d members: `use` is called with the list.
  template <class Declare, class Use>
    requires std::is_invocable_v<Declare, const DeclaredMembers&>
  void member(Key key, std::size_t most, std::string_view item_sentence, std::string_view sentence,
              const Declare& declare, const Use& use) const {
    if (written_ != nullptr) return;
    if (from_ == nullptr) {
      return declare(
          DeclaredMembers(describe_list(key, most, sentence, item_sentence), extent_, bounds_));
    }
    if (const std::optional<JsonCursor> at = find(key)) use(*at);
  }
  /// Declares a list whose `items` are each written by their declaration.
  template <class Item, class Declare, class Use>
    requires std::is_invocable_v<Declare, const DeclaredMembers&, Item&>
  void member(Key key, std::size_t most, std::string_view item_sentence, std::string_view sentence,
              std::vector<Item>& items, const Declare& declare, const Use& use) const {
    if (written_ != nullptr) {
      for (Item& item : items) declare(writing(item_in(key)), item);
      return;
    }
    member(
        key, most, item_sentence, sentence,
        [&](const DeclaredMembers& one) {
          Item described;
          declare(one, described);
        },
        use);
  }

  /// `Out` is a quantity with units that people write, or may be one.
  template <class Out>
  void quantity(Key key, Out& out, const Interval& allowed, std::string_view sentence) const {
    constexpr Dimension kDimension = dimension_of(Out{});
    member(
        key, quantity_type(kDimension, allowed), sentence,
        [&](const JsonCursor& at) { assign(out, at.quantity(kDimension, allowed)); },
        [&] { return within(allowed, base_units_of(out)); });
  }
  template <int S, int B, int F, int J>
  static double base_units_of(const Quantity<S, B, F, J>& of) {
    return of.base_units();
  }
  template <int S, int B, int F, int J>
  static std::optional<double> base_units_of(const std::optional<Quantity<S, B, F, J>>& of) {
    return of ? std::optional(of->base_units()) : std::nullopt;
  }
  /// Nothing of what no file can say: a field that is outside its bounds means that there is none.
  template <class Number>
  static std::optional<Number> within(const Interval& allowed, const std::optional<Number>& of) {
    if (!of) return std::nullopt;
    const double value = *of;
    const bool low = allowed.above_low ? value > allowed.low : value >= allowed.low;
    const bool taken = (low && value <= allowed.high) || (allowed.or_zero && value == 0);
    return taken ? of : std::nullopt;
  }
  static std::optional<double> within(const Interval& allowed, double of) {
    return within(allowed, std::optional(of));
  }
  static std::optional<int> within(const Interval& allowed, int of) {
    return within(allowed, std::optional(of));
  }
  /// Empty for what has no name, such as an order of passes that a file says.
  template <class Names, class Enum>
  static std::string_view name_in(const Names& names, Enum of) {
    const auto index = static_cast<std::size_t>(of);
    return index < std::size(names) ? std::string_view(*(std::begin(names) + of_index(index)))
                                    : std::string_view();
  }
  static std::ptrdiff_t of_index(std::size_t index) { return static_cast<std::ptrdiff_t>(index); }
  template <int S, int B, int F, int J>
  static void assign(Quantity<S, B, F, J>& out, double base_units) {
    out = Quantity<S, B, F, J>{base_units};
  }
  template <int S, int B, int F, int J>
  static void assign(std::optional<Quantity<S, B, F, J>>& out, double base_units) {
    out = Quantity<S, B, F, J>{base_units};
  }
  template <class Of>
  static constexpr Dimension dimension_of(std::optional<Of>) {
    return dimension_of(Of{});
  }
  static constexpr Dimension dimension_of(Seconds) { return Dimension::time; }
  static constexpr Dimension dimension_of(Bytes) { return Dimension::data; }
  static constexpr Dimension dimension_of(BytesPerSecond) { return Dimension::data_rate; }
  static constexpr Dimension dimension_of(FlopsPerSecond) { return Dimension::flops_rate; }
  static constexpr Dimension dimension_of(Watts) { return Dimension::power; }

  [[nodiscard]] std::optional<JsonCursor> find(Key key) const {
    if (key.required && extent_ == Extent::whole) return from_->at(key.name);
    return from_->find(key.name);
  }
  struct NotWritten {};
  void write(Key /*key*/, NotWritten /*none*/) const {}
  void write(Key key, const nlohmann::ordered_json& value) const;
  void write(Key key, double value) const;
  void write(Key key, int value) const;
  void write(Key key, bool value) const;
  void write(Key key, std::string_view value) const;
  template <class Of>
  void write(Key key, const std::optional<Of>& value) const {
    if (value) write(key, *value);
  }
  [[nodiscard]] nlohmann::ordered_json& object_in(Key key) const;
  [[nodiscard]] nlohmann::ordered_json& item_in(Key key) const;

  DeclaredMembers() = default;

  void describe(Key key, const ValueType& type, std::string_view sentence) const;
  nlohmann::ordered_json& describe_object(Key key, std::string_view sentence) const;
  nlohmann::ordered_json& describe_preset(Key key, std::string_view kind, std::string_view sentence,
                                          std::string_view object_sentence) const;
  nlohmann::ordered_json& describe_list(Key key, std::size_t most, std::string_view sentence,
                                        std::string_view item_sentence) const;
  nlohmann::ordered_json& property(Key key, std::string_view sentence) const;

  const JsonCursor* from_ = nullptr;
  nlohmann::ordered_json* schema_ = nullptr;
  nlohmann::ordered_json* written_ = nullptr;
  Extent extent_ = Extent::whole;
  QuantityBounds bounds_ = QuantityBounds::left_out;
};

/// The value of a string that must be one of `names`; its index is the enumeration's value.
template <class Enum, class Names>
Enum read_choice(const JsonCursor& from, const Names& names) {
  return static_cast<Enum>(from.choice(names));
}

/// Calls `use` with the index of each of the strings of a list, all of which must be in `names`.
template <class Names, class Use>
void read_choices(const JsonCursor& from, const Names& names, Use use) {
  for (const JsonCursor& name : from.elements(std::size(names))) use(name.choice(names));
}

}  // namespace lockstep
