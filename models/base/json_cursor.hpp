/// Checked reading of JSON that a person wrote. A cursor is a place in a document; its getters
/// check type, range and unit, and every complaint is an InputError that names the file and the
/// place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/input_error.hpp"
#include "models/base/missing_keys.hpp"
#include "models/base/quantity.hpp"
#include "models/base/units.hpp"

namespace lockstep {

/// Numbers that a field takes, ends included (the lower one excluded when `above_low`).
struct Interval {
  double low = 0;
  double high = 1e30;
  bool above_low = false;
  bool or_zero = false;  ///< 0 is taken too, and means "none"
};

/// What the file is: it decides how values are wrapped.
enum class JsonStyle : std::uint8_t {
  plain,    ///< a value is itself
  sourced,  ///< a preset: a value may be {"value": V, "source": S, "note": N}; every object may
            ///< have "source", "note" and "about", which need no reading
};

/// A change made on the command line, `--set cluster.nodes=384`.
struct JsonOverride {
  std::string pointer;  ///< "/cluster/nodes"
  std::string option;   ///< as written: "--set cluster.nodes=384"
  std::string value;    ///< as written: "384"
  std::string made{};   ///< the first place on the path that was not there before; else `pointer`
};

/// A place in a parsed document. Copies share the document and what was read of it.
class JsonCursor {
 public:
  /// The root of a text. `file` is the name that messages use. Throws InputError for a text that is
  /// not UTF-8 JSON (a byte order mark is skipped), has a key twice in one object, a number beyond
  /// the range of double, or more than 64 levels; `sets` are applied first, in order: "path=value"
  /// with a dotted path or a JSON pointer, value as JSON, else as a string.
  static JsonCursor parse(std::string file, std::string_view text,
                          JsonStyle style = JsonStyle::plain,
                          std::span<const std::string> sets = {});
  /// The root of a text that was made of parts of this document, by the name of its file. `place`
  /// tells of a pointer in it where that stood in this one, whose tell_unitless_sets() has what
  /// `--set` gave to both.
  [[nodiscard]] JsonCursor made_of(std::string_view text,
                                   std::function<std::string(const std::string&)> place) const;

  [[nodiscard]] const std::string& file() const;
  [[nodiscard]] const std::string& pointer() const { return pointer_; }
  /// The `--set` option that gave this value; empty if the file did.
  [[nodiscard]] std::string set_option() const;
  /// The `--set` option that gave this value or made an object around it: "a.b=1" makes "a".
  [[nodiscard]] std::string making_option() const;
  [[nodiscard]] std::span<const JsonOverride> overrides() const;
  /// Moves to `notes` the numbers that `--set` gave without a unit where one counts, as they were
  /// read: "power.site_limit: 5 W (no unit given)".
  void tell_unitless_sets(std::vector<std::string>& notes) const;

  [[nodiscard]] bool is_object() const;
  [[nodiscard]] bool is_array() const;
  [[nodiscard]] bool is_string() const;
  [[nodiscard]] bool is_number() const;
  [[nodiscard]] bool is_null() const;
  /// Stands for a missing key of which only its reader can tell an example (see read_whole()).
  [[nodiscard]] bool is_missing() const;

  // Members of an object. Each call counts the key as known; so ask for all that the format has.
  /// The member, or nothing. Throws if this is no object.
  [[nodiscard]] std::optional<JsonCursor> find(std::string_view key) const;
  /// The member; throws if it is missing. Within read_whole() a missing member stands for an
  /// example instead: the key's own (key_example()), else the first value that its reader takes.
  [[nodiscard]] JsonCursor at(std::string_view key) const;
  /// Calls `read`, which reads the document through this cursor or others of it, and throws for all
  /// keys at once that it missed. Unknown keys come before them, all of them at once; any other
  /// mistake after them, as it may be one beside an example only. With that mistake go all others
  /// that do not depend on it: to find them `read` is called again, more than once, with valid
  /// values in the place of wrong ones. Within another call for this document, which throws when
  /// its turn comes, `read` is only called.
  template <class Read>
  auto read_whole(Read read) const {
    std::optional<decltype(read())> out;
    name_all_missing([&] { out.emplace(read()); });
    return *std::move(out);
  }
  /// Counts keys among those that read_whole() names: `missing` are of a document that was put
  /// together from this one. Requires to be within a call of it.
  void also_missing(std::span<const MissingKey> missing) const;
  /// Keys in the order of the file.
  [[nodiscard]] std::vector<std::string> keys() const;
  /// Those of them that nobody asked for.
  [[nodiscard]] std::vector<std::string> unread_keys() const;
  /// Throws for all keys that nobody asked for, the first with the nearest one that somebody did;
  /// within read_whole() only at its end, with those of other objects.
  void finish() const;

  // Elements of an array; throws if this is none, or has more than `limit`.
  [[nodiscard]] std::vector<JsonCursor> elements(std::size_t limit) const;

  // The value itself. Each throws if type, range or unit is wrong.
  [[nodiscard]] int integer(int low, int high) const;
  [[nodiscard]] double number(const Interval& allowed) const;
  [[nodiscard]] bool boolean() const;
  /// A number that `--set` gave is a string too: "--set stack.release=24.10" keeps its zero.
  [[nodiscard]] std::string string() const;
  /// Index of the string in `names`.
  [[nodiscard]] std::size_t choice(std::span<const std::string_view> names) const;
  /// A number in base units, or a string with a unit; `allowed` is in base units.
  [[nodiscard]] double quantity(Dimension dimension, const Interval& allowed) const;
  [[nodiscard]] Seconds seconds(const Interval& allowed) const;
  [[nodiscard]] Bytes bytes(const Interval& allowed) const;
  [[nodiscard]] BytesPerSecond data_rate(const Interval& allowed) const;
  [[nodiscard]] FlopsPerSecond flops_rate(const Interval& allowed) const;
  [[nodiscard]] Watts watts(const Interval& allowed) const;

  /// The value as messages show it: cut to a readable length, "an object", "an array".
  [[nodiscard]] std::string found() const;
  /// Throws InputError about this value.
  [[noreturn]] void fail(std::string allowed, std::string nearest = {}) const;
  /// Throws InputError about a value whose type is none of those `allowed`, whatever else the
  /// document has.
  [[noreturn]] void fail_type(std::string allowed) const;
  /// Throws InputError about this value, which is none of `names`.
  [[noreturn]] void fail_name(std::span<const std::string> names) const;

  /// For walking a document as it is (preset listings); include <nlohmann/json.hpp> to use it.
  [[nodiscard]] const nlohmann::ordered_json& json() const { return *node_; }

 private:
  struct Document;
  JsonCursor(std::shared_ptr<Document> document, const nlohmann::ordered_json* node,
             std::string pointer);
  [[nodiscard]] JsonCursor child(const nlohmann::ordered_json& node, std::string_view key) const;
  void name_all_missing(const std::function<void()>& read) const;
  struct StandIns;
  /// Throws InputError about this value. While the wrong values of the document are looked for it
  /// notes the mistake, but of an example of a missing key, and returns, with a value in place of
  /// this one that its reader takes.
  void refuse(std::string allowed, const StandIns& instead, std::string nearest = {}) const;
  /// refuse() for a number: returns a number in `range` that stands for it, and throws where
  /// `range` has none.
  double refuse_number(std::string allowed, const Interval& range, std::string nearest = {}) const;
  void require_object() const;
  [[nodiscard]] InputProblem problem_here(std::string allowed, std::string nearest) const;
  void note_missing() const;
  [[nodiscard]] InputError with_others(const InputError& error,
                                       const std::function<void()>& read) const;
  [[nodiscard]] std::vector<InputProblem> wrong_values(std::size_t variant,
                                                       const std::function<void()>& read) const;
  [[nodiscard]] JsonCursor example_of(std::string_view key) const;
  void note_unitless(Dimension dimension, double value) const;
  [[nodiscard]] bool stands_for(const nlohmann::ordered_json& value) const;

  std::shared_ptr<Document> document_;
  const nlohmann::ordered_json* node_;
  std::string pointer_;
};

}  // namespace lockstep
