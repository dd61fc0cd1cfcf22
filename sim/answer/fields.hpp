/// Tables of the members of answers. A row says a member once: its name (which carries the unit),
/// which way is better, a sentence, and how it is got from an answer. From the rows come the JSON
/// that answers are written as, its JSON Schema, the names that `--assert`, CSV, sweeps and
/// comparisons know, and the reference of `lockstep list fields`.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/member_names.hpp"
#include "sim/answer/value.hpp"

namespace lockstep {

enum class Better : std::uint8_t { neither, more, less };

enum class FieldKind : std::uint8_t {
  number,
  integer,
  flag,
  text,
  texts,          ///< a list of them
  numbers,        ///< a list of them
  named_numbers,  ///< an object of numbers
  object,         ///< with members
  objects,        ///< a list of them
  named_objects,  ///< an object of them, by names that are not known beforehand
  any,
};

/// What a row says, whatever the answer.
struct FieldInfo {
  std::string name{};
  Better better = Better::neither;
  std::string sentence{};
  FieldKind kind = FieldKind::any;
  bool always = true;                ///< else left out where it does not apply
  bool nullable = false;             ///< null where there is no value
  std::string constant{};            ///< of a text that is the same in every answer
  std::string successor{};           ///< of an old name, which stays for a release: the new one
  std::vector<FieldInfo> members{};  ///< of an object, of each of several

  /// "s", "J", "USD", ...: what the end of the name says; empty for counts, ratios and texts.
  [[nodiscard]] std::string_view unit() const;
  /// "step time", "peak memory": the name without its unit.
  [[nodiscard]] std::string title() const;
  [[nodiscard]] bool is_number() const {
    return kind == FieldKind::number || kind == FieldKind::integer;
  }
};

/// What a getter's type says of the member.
template <class Got>
struct GotType {
  static constexpr bool kOptional = std::same_as<Got, Value>, kNullable = false;
  static constexpr FieldKind kKind =
      std::same_as<Got, bool>                       ? FieldKind::flag
      : std::integral<Got>                          ? FieldKind::integer
      : std::floating_point<Got>                    ? FieldKind::number
      : std::same_as<Got, Value>                    ? FieldKind::any
      : std::same_as<Got, NamedNumbers>             ? FieldKind::named_numbers
      : std::same_as<Got, std::vector<double>>      ? FieldKind::numbers
      : std::same_as<Got, std::vector<std::string>> ? FieldKind::texts
      : std::convertible_to<Got, std::string_view>  ? FieldKind::text
                                                    : FieldKind::number;  // a quantity
};
template <class Of>
struct GotType<std::optional<Of>> : GotType<Of> {
  static constexpr bool kOptional = true;
};
template <class Of>
struct GotType<OrNull<Of>> : GotType<Of> {
  static constexpr bool kNullable = true;
};

/// The rows for answers, or parts of them, of type `Of`.
template <class Of>
class FieldTable {
 public:
  /// A member with a value: `get` takes an answer. An empty optional leaves the member out.
  template <std::invocable<const Of&> Get>
  FieldTable& add(std::string_view name, Better better, std::string_view sentence, const Get& get) {
    using Got = GotType<std::remove_cvref_t<std::invoke_result_t<Get, const Of&>>>;
    return row({.name = std::string(name),
                .better = better,
                .sentence = std::string(sentence),
                .kind = Got::kKind,
                .always = !Got::kOptional,
                .nullable = Got::kNullable},
               [get](const Of& of) { return Value(get(of)); });
  }
  template <std::invocable<const Of&> Get>
  FieldTable& add(std::string_view name, std::string_view sentence, const Get& get) {
    return add(name, Better::neither, sentence, get);
  }

  /// A text that is the same in every answer.
  FieldTable& constant(std::string_view name, std::string_view sentence, std::string_view text) {
    add(name, sentence, [text = std::string(text)](const Of&) { return text; });
    rows_.back().info.constant = text;
    return *this;
  }

  /// A member with members of its own. `get` gives what they are of, or a pointer to it or an
  /// optional: without any the member is left out.
  template <class Part, std::invocable<const Of&> Get>
  FieldTable& object(std::string_view name, std::string_view sentence,
                     const FieldTable<Part>& members, Get get) {
    using Got = std::remove_cvref_t<std::invoke_result_t<Get, const Of&>>;
    constexpr bool kAlways = std::same_as<Got, Part>;
    return row({.name = std::string(name),
                .sentence = std::string(sentence),
                .kind = FieldKind::object,
                .always = kAlways,
                .members = members.infos()},
               [get, members](const Of& of) {
                 if constexpr (kAlways) {
                   return Value(members.values(get(of)));
                 } else {
                   const auto& part = get(of);
                   return part ? Value(members.values(*part)) : Value();
                 }
               });
  }
  /// As object(), where `get` gives a pointer or an optional: without any the member is null.
  template <class Part, std::invocable<const Of&> Get>
  FieldTable& object_or_null(std::string_view name, std::string_view sentence,
                             const FieldTable<Part>& members, Get get) {
    object(name, sentence, members, get);
    rows_.back().info.always = rows_.back().info.nullable = true;
    rows_.back().get = [get = rows_.back().get](const Of& of) {
      Value value = get(of);
      return value.absent() ? Value(NoValue{}) : value;
    };
    return *this;
  }
  /// Objects by name: `get` gives pairs of a name and what its object is of.
  template <class Part, std::invocable<const Of&> Get>
  FieldTable& named(std::string_view name, std::string_view sentence,
                    const FieldTable<Part>& members, Get get) {
    return row({.name = std::string(name),
                .sentence = std::string(sentence),
                .kind = FieldKind::named_objects,
                .members = members.infos()},
               [get, members](const Of& of) {
                 Value::Object out;
                 for (const auto& [key, part] : get(of))
                   out.emplace_back(key, members.values(part));
                 return Value(std::move(out));
               });
  }
  /// A list of objects: `get` gives what each of them is of.
  template <class Part, std::invocable<const Of&> Get>
  FieldTable& list(std::string_view name, std::string_view sentence,
                   const FieldTable<Part>& members, Get get) {
    return row({.name = std::string(name),
                .sentence = std::string(sentence),
                .kind = FieldKind::objects,
                .members = members.infos()},
               [get, members](const Of& of) {
                 Value::List list;
                 for (const Part& part : get(of)) list.emplace_back(members.values(part));
                 return Value(std::move(list));
               });
  }
  /// As list(), left out where the list is empty.
  template <class Part, std::invocable<const Of&> Get>
  FieldTable& list_if_any(std::string_view name, std::string_view sentence,
                          const FieldTable<Part>& members, Get get) {
    list(name, sentence, members, get);
    rows_.back().info.always = false;
    rows_.back().get = [get, all = rows_.back().get](const Of& of) {
      return std::ranges::empty(get(of)) ? Value() : all(of);
    };
    return *this;
  }
  /// All rows of another table.
  template <class Base>
    requires std::derived_from<Of, Base>
  FieldTable& all_of(const FieldTable<Base>& table) {
    for (const auto& [info, get] : table.rows()) row(info, get);
    return *this;
  }
  /// All rows of a table of a part of the answer, which `part` gives.
  template <class Part, std::invocable<const Of&> Get>
  FieldTable& all_of(const FieldTable<Part>& table, Get part) {
    for (const auto& [info, get] : table.rows()) {
      row(info, [get, part](const Of& of) { return get(part(of)); });
    }
    return *this;
  }
  /// An old name whose value is in another unit than the one that replaced it.
  template <std::invocable<const Of&> Get>
  FieldTable& old_value(std::string_view name, std::string_view successor, Get get) {
    add(name, "", get);
    rows_.back().info.successor = successor;
    return *this;
  }
  /// An old name of a member that has a row already. It stays for a release beside the new one.
  FieldTable& old_name(std::string_view name, std::string_view successor) {
    for (const Row& of : rows_) {
      if (of.info.name != successor) continue;
      FieldInfo info = of.info;
      info.name = name;
      info.successor = successor;
      return row(std::move(info), of.get);
    }
    return *this;
  }

  [[nodiscard]] std::vector<FieldInfo> infos() const {
    std::vector<FieldInfo> out;
    for (const Row& of : rows_) out.push_back(of.info);
    return out;
  }
  /// In the order of the rows, without those that do not apply; of these `only`, where it is given.
  [[nodiscard]] Value::Object values(const Of& of, const MemberNames* only = nullptr) const {
    Value::Object out;
    for (const Row& each : rows_) {
      if (only != nullptr && !only->contains(each.info.name)) continue;
      if (Value value = each.get(of); !value.absent()) {
        out.emplace_back(each.info.name, std::move(value));
      }
    }
    return out;
  }
  /// The numbers among them.
  [[nodiscard]] NamedNumbers numbers(const Of& of) const {
    NamedNumbers out;
    for (const Row& each : rows_) {
      if (!each.info.is_number()) continue;
      if (const auto number = each.get(of).number()) out.emplace_back(each.info.name, *number);
    }
    return out;
  }
  /// The value of one member; absent where it does not apply or there is none of that name.
  [[nodiscard]] Value value(const Of& of, std::string_view name) const {
    for (const Row& each : rows_) {
      if (each.info.name == name) return each.get(of);
    }
    return {};
  }

  struct Row {
    FieldInfo info;
    std::function<Value(const Of&)> get;
  };
  [[nodiscard]] std::span<const Row> rows() const { return rows_; }

 private:
  FieldTable& row(FieldInfo info, std::function<Value(const Of&)> get) {
    rows_.push_back({std::move(info), std::move(get)});
    return *this;
  }

  std::vector<Row> rows_;
};

/// The member that a dotted path ends at; elements of lists are skipped. Null: none has that name.
const FieldInfo* field_at(std::span<const FieldInfo> fields, std::string_view path);
/// The unit of the number that a dotted path ends at: what the end of its name says, as
/// FieldInfo::unit() does, else that of the member around it ("p99" of "ttft_s" is in "s").
std::string_view unit_at(std::string_view path);

/// The schema of an object with these members and no others.
nlohmann::ordered_json object_schema(std::span<const FieldInfo> fields);

}  // namespace lockstep
