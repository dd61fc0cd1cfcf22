#include "models/base/json_cursor.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "models/base/json_override.hpp"
#include "models/base/json_text.hpp"
#include "models/base/key_examples.hpp"
#include "models/base/write_json.hpp"
#include "models/base/wrong_values.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> kAnnotations{"source", "note", "about"};
constexpr std::string_view kValue = "value";
constexpr std::string_view kUnknownKey = "the unknown key ";

bool is_annotation(std::string_view key) {
  return std::ranges::find(kAnnotations, key) != kAnnotations.end();
}

const Json* member(const Json& object, std::string_view key) {
  for (const auto& [name, value] : object.get_ref<const Json::object_t&>()) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::string number_text(double value) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.9g", value);
  return buffer.data();
}

/// "from 0 to 1", "above 0, at most 1", "of at least 0".
std::string interval_text(const Interval& allowed, auto&& value_text) {
  constexpr double kUnbounded = 1e30;
  const std::string low = value_text(allowed.low);
  if (allowed.high >= kUnbounded) return (allowed.above_low ? "above " : "of at least ") + low;
  const std::string high = value_text(allowed.high);
  const std::string or_zero = allowed.or_zero ? ", or 0" : "";
  return (allowed.above_low ? "above " + low + ", at most " : "from " + low + " to ") + high +
         or_zero;
}

bool contains(const Interval& allowed, double value) {
  if (allowed.or_zero && value == 0) return true;
  return value <= allowed.high && (allowed.above_low ? value > allowed.low : value >= allowed.low);
}

/// Of the numbers that a field takes, one to show: 1 where it can be.
double number_inside(const Interval& allowed) {
  constexpr double kUnbounded = 1e30;
  if (contains(allowed, 1)) return 1;
  if (!allowed.above_low) return allowed.low;
  return allowed.high < kUnbounded ? (allowed.low + allowed.high) / 2 : allowed.low + 1;
}

/// Another one of them, where there is another.
double other_number_inside(const Interval& allowed) {
  const double first = number_inside(allowed);
  for (const double other :
       {WrongValues::kApart * first, 2 * first, first / 2, allowed.low, allowed.high}) {
    if (other != first && contains(allowed, other)) return other;
  }
  return first;
}

/// Of the quantities that a field takes, one to show: as people write it where it can be.
Json quantity_inside(Dimension dimension, const Interval& allowed) {
  constexpr std::array<std::string_view, 10> kPlain{"1 s",   "30 min",    "1 us",        "1 GB",
                                                    "1 KiB", "100 GB/s",  "100 TFLOP/s", "700 W",
                                                    "1 MW",  "1 T tokens"};
  for (const std::string_view text : kPlain) {
    const auto value = parse_quantity(text, dimension);
    const double* number = std::get_if<double>(&value);
    if (number != nullptr && contains(allowed, *number)) return std::string(text);
  }
  return number_inside(allowed);
}

std::string_view quantity_words(Dimension dimension) {
  switch (dimension) {
    case Dimension::time:
      return "a number of seconds or a time such as \"2.5 us\"";
    case Dimension::data:
      return "a number of bytes or an amount of data such as \"80 GiB\"";
    case Dimension::data_rate:
      return "a number of bytes per second or a rate such as \"400 Gb/s\"";
    case Dimension::flops_rate:
      return "a number of FLOP per second or a rate such as \"989 TFLOP/s\"";
    case Dimension::power:
      return "a number of watts or a power such as \"700 W\"";
    case Dimension::count:
      return "a number or a count such as \"15.6 T tokens\"";
    case Dimension::share:
      return "a number or a percentage such as \"6 %\"";
  }
  return "a number";
}

/// "a time from 0 s to 10 s", "a number above 0, at most 1".
std::string quantity_rule(Dimension dimension, const Interval& allowed) {
  if (dimension == Dimension::count || dimension == Dimension::share) {
    return "a number " + interval_text(allowed, number_text);
  }
  const std::string name = dimension == Dimension::data
                               ? "an amount of data "
                               : "a " + std::string(dimension_name(dimension)) + " ";
  return name + interval_text(allowed, [&](double base_units) {
           return format_quantity(base_units, dimension);
         });
}

/// How many values there are, with those that are in others.
std::size_t values_in(const Json& value) {
  std::size_t count = 1;
  if (!value.is_structured()) return count;
  for (const Json& each : value) count += values_in(each);
  return count;
}

/// How often a document is read in search of wrong values: once at least, which finds all that a
/// getter refuses, and a fabric of a million cables not a hundred times.
std::size_t readings_of(const Json& root) {
  constexpr std::size_t kMostValues = 1'000'000, kMostReadings = 100;
  return std::clamp<std::size_t>(kMostValues / values_in(root), 1, kMostReadings);
}

/// The change that made an object with the key "preset" of a word at `pointer`, where no preset can
/// stand; null: none did.
const JsonOverride* refining_change(std::span<const JsonOverride> changes,
                                    const std::string& pointer, std::string_view key,
                                    const Json& value) {
  if (key != "preset" || !value.is_string()) return nullptr;
  const auto refines = [&](const JsonOverride& change) {
    return change.pointer.starts_with(pointer + "/") && change.pointer != pointer + "/preset";
  };
  const auto found = std::ranges::find_if(changes, refines);
  return found == changes.end() ? nullptr : &*found;
}

/// Throws for the first of these unknown keys, with the others beside it.
[[noreturn]] void fail_unknown(const std::vector<InputProblem>& unknown) {
  InputProblem all = unknown.front();
  for (std::size_t i = 1; i < unknown.size(); ++i) {
    all.unknown_too.push_back({unknown[i].pointer, unknown[i].nearest});
  }
  throw InputError(std::move(all));
}

}  // namespace

/// Two values that a getter takes, to stand for one that it does not: what else is wrong with
/// either does not depend on that one.
struct JsonCursor::StandIns {
  Json first, second;
};

struct JsonCursor::Document {
  std::string file;
  JsonStyle style = JsonStyle::plain;
  Json root;
  std::vector<JsonOverride> overrides;
  std::vector<std::string> unitless_sets;
  /// A key that at() did not find, and what it gave for it.
  struct Missing {
    std::string object;  ///< pointer
    std::string key;
    Json example;       ///< null until a reader says what it takes
    bool open = false;  ///< the key has no example of its own
  };
  int collecting = 0;           ///< calls of read_whole() that go on
  std::deque<Missing> missing;  ///< a deque, as cursors point into it
  std::vector<MissingKey> also_missing;
  std::vector<InputProblem> unknown;  ///< keys that nobody asked for, in the order of reading
  std::unordered_set<const Json*> unknown_in;  ///< objects that have them
  [[nodiscard]] std::vector<MissingKey> all_missing() const;
  /// An example of a text, which may be a name that nothing else has.
  [[nodiscard]] std::string new_text() const;
  /// Keys that were asked for, by object, in the order of asking.
  std::unordered_map<const Json*, std::vector<std::string>> asked;
  std::optional<WrongValues> wrong{};  ///< while they are looked for
  std::shared_ptr<Document> parts{};   ///< the one that this was made of
  std::function<std::string(const std::string&)> place_in_parts{};
};

std::vector<MissingKey> JsonCursor::Document::all_missing() const {
  std::vector<MissingKey> out;
  out.reserve(missing.size());
  for (const Missing& m : missing) {
    out.push_back({m.object, m.key, m.example.is_null() ? std::string() : write_json(m.example)});
  }
  for (const MissingKey& m : also_missing) {
    const bool known = std::ranges::any_of(out, [&](const MissingKey& other) {
      return other.object == m.object && other.key == m.key;
    });
    if (!known) out.push_back(m);
  }
  return out;
}

std::string JsonCursor::Document::new_text() const {
  constexpr const char* kText = "...";
  const auto texts = std::ranges::count_if(missing, [&](const Missing& m) {
    return m.example.is_string() && m.example.get_ref<const std::string&>().starts_with(kText);
  });
  return texts == 0 ? kText : kText + (" " + std::to_string(texts + 1));
}

JsonCursor::JsonCursor(std::shared_ptr<Document> document, const Json* node, std::string pointer)
    : document_(std::move(document)), node_(node), pointer_(std::move(pointer)) {}

JsonCursor JsonCursor::parse(std::string file, std::string_view text, JsonStyle style,
                             std::span<const std::string> sets) {
  auto document = std::make_shared<Document>();
  document->root = parse_json_text(file, text);
  for (const std::string& set : sets) {
    document->overrides.push_back(apply_override(document->root, set));
  }
  document->file = std::move(file);
  document->style = style;
  const Json* root = &document->root;
  return {std::move(document), root, ""};
}

JsonCursor JsonCursor::made_of(std::string_view text,
                               std::function<std::string(const std::string&)> place) const {
  JsonCursor out = parse(file(), text);
  out.document_->parts = document_;
  out.document_->place_in_parts = std::move(place);
  return out;
}

const std::string& JsonCursor::file() const { return document_->file; }
std::span<const JsonOverride> JsonCursor::overrides() const { return document_->overrides; }

std::string JsonCursor::set_option() const {
  const JsonOverride* change = last_override(document_->overrides, pointer_);
  return change == nullptr ? std::string{} : change->option;
}

std::string JsonCursor::making_option() const {
  std::string option = set_option();
  for (const JsonOverride& change : document_->overrides) {
    if (option.empty() && is_inside(pointer_, change.made)) option = change.option;
  }
  return option;
}

void JsonCursor::tell_unitless_sets(std::vector<std::string>& notes) const {
  for (std::string& told : document_->unitless_sets) notes.push_back(std::move(told));
  document_->unitless_sets.clear();
}

void JsonCursor::note_unitless(Dimension dimension, double value) const {
  if (dimension == Dimension::count || dimension == Dimension::share || value == 0) return;
  const bool made = document_->parts != nullptr;
  Document& told = made ? *document_->parts : *document_;
  const std::string pointer = made ? document_->place_in_parts(pointer_) : pointer_;
  const JsonOverride* change = last_override(told.overrides, pointer);
  if (change == nullptr || change->pointer != pointer) return;
  std::string path = pointer.substr(1);
  std::ranges::replace(path, '/', '.');
  std::string note = path + ": " + format_quantity(value, dimension) + " (no unit given)";
  std::vector<std::string>& notes = told.unitless_sets;
  if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
}

bool JsonCursor::is_object() const { return node_->is_object(); }
bool JsonCursor::is_array() const { return node_->is_array(); }
bool JsonCursor::is_string() const { return node_->is_string(); }
bool JsonCursor::is_number() const { return node_->is_number(); }
bool JsonCursor::is_null() const { return node_->is_null(); }
bool JsonCursor::is_missing() const {
  return std::ranges::any_of(document_->missing, [&](const Document::Missing& m) {
    return m.open && &m.example == node_;
  });
}

JsonCursor JsonCursor::child(const Json& node, std::string_view key) const {
  JsonCursor inner(document_, &node, pointer_ + "/" + pointer_part(key));
  if (document_->style == JsonStyle::plain || !node.is_object()) return inner;
  const Json* value = member(node, kValue);
  if (value == nullptr) return inner;
  // {"value": V, "source": S}: the reader sees V.
  inner.document_->asked[&node] = {std::string(kValue)};
  inner.finish();
  return {document_, value, inner.pointer_ + "/" + std::string(kValue)};
}

std::optional<JsonCursor> JsonCursor::find(std::string_view key) const {
  require_object();
  std::vector<std::string>& asked = document_->asked[node_];
  if (std::ranges::find(asked, key) == asked.end()) asked.emplace_back(key);
  const Json* value = member(*node_, key);
  if (value == nullptr) return std::nullopt;
  return child(*value, key);
}

JsonCursor JsonCursor::at(std::string_view key) const {
  if (std::optional<JsonCursor> found_member = find(key)) return *std::move(found_member);
  if (document_->collecting > 0) return example_of(key);
  // A key that is spelt nearly like it is worth pointing at.
  const std::vector<std::string> wanted{std::string(key)};
  const std::vector<std::string>& asked = document_->asked[node_];
  std::string found_object = "an object without " + in_quotes(key);
  for (const std::string& name : keys()) {
    if (std::ranges::find(asked, name) != asked.end()) continue;
    if (nearest_name(name, wanted).empty()) continue;
    found_object += " but with " + in_quotes(name);
    break;
  }
  throw InputError({file(), pointer_, std::move(found_object), "an object with it", ""});
}

void JsonCursor::name_all_missing(const std::function<void()>& read) const {
  struct Depth {
    explicit Depth(int& of) : depth(of) { ++depth; }
    ~Depth() { --depth; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    int& depth;
  };
  const Depth depth(document_->collecting);
  if (depth.depth > 1) return read();
  document_->unknown.clear();
  document_->unknown_in.clear();
  try {
    read();
  } catch (const MissingKeys& error) {
    if (error.problem().file != file()) throw;
    also_missing(error.keys());
  } catch (const InputError& error) {
    const bool unknown = error.problem().found.starts_with(kUnknownKey);
    if (document_->unknown.empty() && unknown) throw;
    if (document_->unknown.empty() && document_->all_missing().empty()) {
      InputError all = with_others(error, read);
      if (all.also().empty()) throw;
      throw InputError(std::move(all));
    }
  }
  if (!document_->unknown.empty()) fail_unknown(document_->unknown);
  std::vector<MissingKey> missing = document_->all_missing();
  if (!missing.empty()) throw MissingKeys(file(), std::move(missing));
}

std::vector<InputProblem> JsonCursor::wrong_values(std::size_t variant,
                                                   const std::function<void()>& read) const {
  Document& document = *document_;
  const std::size_t most_readings = readings_of(document.root);
  Document scratch;
  scratch.file = document.file;
  scratch.style = document.style;
  scratch.root = document.root;
  scratch.overrides = document.overrides;
  scratch.collecting = document.collecting;
  scratch.wrong.emplace(variant);
  // Cursors that others hold point into the document's values, which move along with it.
  Document own = std::exchange(document, std::move(scratch));
  const auto restore = [&own](Document* to) { *to = std::move(own); };
  const std::unique_ptr<Document, decltype(restore)> restored(&document, restore);
  WrongValues& wrong = *document.wrong;
  for (std::size_t readings = 0; readings < most_readings; ++readings) {
    document.asked.clear();
    document.missing.clear();
    document.also_missing.clear();
    document.unknown.clear();
    document.unknown_in.clear();
    const std::size_t before = wrong.replaced();
    try {
      read();
      wrong.note_keys(document.unknown);
      note_missing();
      break;
    } catch (const MissingKeys&) {
      break;  // of a document that was put together from this one
    } catch (const InputError& error) {
      wrong.note_keys(document.unknown);
      if (wrong.full()) break;
      if (wrong.replaced() > before) continue;
      if (error.problem().file != document.file) break;
      if (!wrong.take_out(document.root, error.problem())) break;
    }
  }
  return wrong.problems();
}

void JsonCursor::note_missing() const {
  WrongValues& wrong = *document_->wrong;
  // An empty object in a wrong one's place lacks keys, as do documents that are made of it.
  std::vector<MissingKey> missing = document_->all_missing();
  if (missing.empty() || wrong.emptied()) return;
  const MissingKeys error(file(), std::move(missing));
  wrong.note_keys({&error.problem(), 1});
}

/// The mistake together with those of the same document that do not depend on it: others of its
/// file that are found whichever of two values stands for each wrong one.
InputError JsonCursor::with_others(const InputError& error,
                                   const std::function<void()>& read) const {
  if (error.problem().file != file()) return error;
  std::vector<InputProblem> also(error.also().begin(), error.also().end());
  const auto told = [&](const InputProblem& problem) {
    return problem == error.problem() || std::ranges::find(also, problem) != also.end();
  };
  std::vector<InputProblem> wrong = wrong_values(0, read);
  std::erase_if(wrong, told);
  if (wrong.empty()) return error;
  for (InputProblem& problem : wrong_values(1, read)) {
    const bool found = std::ranges::find(wrong, problem) != wrong.end();
    if (found && !told(problem)) also.push_back(std::move(problem));
  }
  return InputError(error.problem(), std::move(also));
}

void JsonCursor::also_missing(std::span<const MissingKey> missing) const {
  assert(document_->collecting > 0);
  std::vector<MissingKey>& all = document_->also_missing;
  all.insert(all.end(), missing.begin(), missing.end());
}

JsonCursor JsonCursor::example_of(std::string_view key) const {
  auto& missing = document_->missing;
  const auto known = std::ranges::find_if(
      missing, [&](const Document::Missing& m) { return m.object == pointer_ && m.key == key; });
  if (known != missing.end()) return child(known->example, key);
  const std::string_view listed_example = key_example(pointer_, key);
  Json example = listed_example.empty() ? Json() : Json::parse(listed_example);
  if (document_->wrong) example = document_->wrong->varied(example);
  missing.push_back({.object = pointer_,
                     .key = std::string(key),
                     .example = std::move(example),
                     .open = listed_example.empty()});
  return child(missing.back().example, key);
}

/// Whether this is a missing key without an example; `value`, which its reader takes, is one then.
bool JsonCursor::stands_for(const Json& value) const {
  const auto at = std::ranges::find_if(
      document_->missing, [&](const Document::Missing& m) { return &m.example == node_; });
  if (at == document_->missing.end() || !at->open) return false;
  at->example = value;
  return true;
}

void JsonCursor::require_object() const {
  if (is_object() || stands_for(Json::object())) return;
  const std::string_view example = object_example(pointer_);
  refuse(example.empty() ? "an object" : "an object, such as " + write_json(Json::parse(example)),
         {Json::object(), Json::object()});
}

std::vector<std::string> JsonCursor::keys() const {
  require_object();
  std::vector<std::string> out;
  for (const auto& [name, value] : node_->get_ref<const Json::object_t&>()) out.push_back(name);
  return out;
}

std::vector<std::string> JsonCursor::unread_keys() const {
  std::vector<std::string> out = keys();
  const std::vector<std::string>& asked = document_->asked[node_];
  std::erase_if(
      out, [&](const std::string& key) { return std::ranges::find(asked, key) != asked.end(); });
  return out;
}

void JsonCursor::finish() const {
  require_object();
  const std::vector<std::string>& asked = document_->asked[node_];
  std::vector<InputProblem> unknown;
  for (const auto& [name, value] : node_->get_ref<const Json::object_t&>()) {
    if (std::ranges::find(asked, name) != asked.end()) continue;
    if (document_->style == JsonStyle::sourced && is_annotation(name)) continue;
    const JsonCursor at(document_, &value, pointer_ + "/" + pointer_part(name));
    const std::string option = at.making_option();
    if (const JsonOverride* change = refining_change(document_->overrides, pointer_, name, value)) {
      unknown.push_back(
          {file(), pointer_,
           "the word " + write_json(value) + ", to which " + change->option + " adds a key",
           "an object of " + listed(asked) + ", set as a whole", ""});
      continue;
    }
    unknown.push_back(
        {file(), at.pointer_,
         std::string(kUnknownKey) + in_quotes(name) + (option.empty() ? "" : " (" + option + ")"),
         asked.empty() ? "no keys" : listed(asked), nearest_name(name, asked)});
  }
  if (document_->collecting == 0 && !unknown.empty()) fail_unknown(unknown);
  if (unknown.empty() || !document_->unknown_in.insert(node_).second) return;
  std::ranges::move(unknown, std::back_inserter(document_->unknown));
}

std::vector<JsonCursor> JsonCursor::elements(std::size_t limit) const {
  const bool empty = is_null() || (is_array() && node_->empty());
  if (empty && stands_for(Json::array())) return {example_of("0")};
  if (!is_array()) refuse("an array", {Json::array(), Json::array()});
  if (node_->size() > limit) fail("an array of at most " + std::to_string(limit) + " elements");
  std::vector<JsonCursor> out;
  out.reserve(node_->size());
  for (std::size_t i = 0; i < node_->size(); ++i)
    out.push_back(child((*node_)[i], std::to_string(i)));
  return out;
}

int JsonCursor::integer(int low, int high) const {
  const int inside = low <= 1 && 1 <= high ? 1 : low;
  const int other = inside < high ? inside + std::min(WrongValues::kApart, high - inside) : low;
  const bool varied = document_->wrong && document_->wrong->variant() != 0;
  if (is_null()) (void)stands_for(varied ? other : inside);
  // Whole numbers written as 1e6 or 4.0 are whole; all that can be in range are exact in double.
  const double value = is_number() ? node_->get<double>() : std::nan("");
  if (!(value >= low && value <= high) || value != std::floor(value)) {
    std::string rule = "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
    if (low > high) fail(std::move(rule));
    refuse(std::move(rule), {inside, other});
  }
  return static_cast<int>(node_->get<double>());
}

double JsonCursor::number(const Interval& allowed) const {
  if (is_null()) (void)stands_for(number_inside(allowed));
  const bool taken = is_number() && contains(allowed, node_->get<double>());
  if (taken) return node_->get<double>();
  return refuse_number("a number " + interval_text(allowed, number_text), allowed);
}

bool JsonCursor::boolean() const {
  if (is_null()) (void)stands_for(true);
  if (!node_->is_boolean()) refuse("true or false", {true, false});
  return node_->get<bool>();
}

std::string JsonCursor::string() const {
  const JsonOverride* change = last_override(document_->overrides, pointer_);
  if (is_number() && change != nullptr && change->pointer == pointer_) return change->value;
  if (is_null()) (void)stands_for(document_->new_text());
  if (!is_string()) refuse("a string", {"...", "... 2"});
  return node_->get_ref<const std::string&>();
}

std::size_t JsonCursor::choice(std::span<const std::string_view> names) const {
  if (is_null() && !names.empty()) (void)stands_for(std::string(names.front()));
  if (is_string()) {
    const auto& name = node_->get_ref<const std::string&>();
    const auto place = std::ranges::find(names, name);
    if (place != names.end()) return static_cast<std::size_t>(place - names.begin());
  }
  fail_name(std::vector<std::string>(names.begin(), names.end()));
}

double JsonCursor::quantity(Dimension dimension, const Interval& allowed) const {
  if (is_null()) (void)stands_for(quantity_inside(dimension, allowed));
  double value = 0;
  if (is_number()) {
    value = node_->get<double>();
    note_unitless(dimension, value);
  } else if (is_string()) {
    auto parsed = parse_quantity(node_->get_ref<const std::string&>(), dimension);
    if (auto* mistake = std::get_if<QuantityMistake>(&parsed)) {
      return refuse_number(std::move(mistake->allowed), allowed, std::move(mistake->nearest));
    }
    value = std::get<double>(parsed);
  } else {
    return refuse_number(std::string(quantity_words(dimension)), allowed);
  }
  if (contains(allowed, value)) return value;
  return refuse_number(quantity_rule(dimension, allowed), allowed);
}

Seconds JsonCursor::seconds(const Interval& allowed) const {
  return Seconds{quantity(Dimension::time, allowed)};
}
Bytes JsonCursor::bytes(const Interval& allowed) const {
  return Bytes{quantity(Dimension::data, allowed)};
}
BytesPerSecond JsonCursor::data_rate(const Interval& allowed) const {
  return BytesPerSecond{quantity(Dimension::data_rate, allowed)};
}
FlopsPerSecond JsonCursor::flops_rate(const Interval& allowed) const {
  return FlopsPerSecond{quantity(Dimension::flops_rate, allowed)};
}
Watts JsonCursor::watts(const Interval& allowed) const {
  return Watts{quantity(Dimension::power, allowed)};
}

std::string JsonCursor::found() const {
  if (is_object()) return "an object";
  if (is_array()) return "an array";
  if (is_string()) return in_quotes(node_->get_ref<const std::string&>());
  return write_json(*node_);
}

InputProblem JsonCursor::problem_here(std::string allowed, std::string nearest) const {
  const std::string option = set_option();
  return {file(), pointer_, found() + (option.empty() ? "" : " (" + option + ")"),
          std::move(allowed), std::move(nearest)};
}

void JsonCursor::fail(std::string allowed, std::string nearest) const {
  throw InputError(problem_here(std::move(allowed), std::move(nearest)));
}

void JsonCursor::fail_type(std::string allowed) const {
  const InputProblem problem = problem_here(std::move(allowed), {});
  if (document_->wrong) document_->wrong->note(problem);
  throw InputError(problem);
}

void JsonCursor::refuse(std::string allowed, const StandIns& instead, std::string nearest) const {
  InputProblem problem = problem_here(std::move(allowed), std::move(nearest));
  std::optional<WrongValues>& wrong = document_->wrong;
  if (!wrong) throw InputError(std::move(problem));
  const auto example = std::ranges::find_if(
      document_->missing, [&](const Document::Missing& m) { return &m.example == node_; });
  if (example != document_->missing.end()) {
    example->example = wrong->variant() == 0 ? instead.first : instead.second;
  } else if (!wrong->replace(document_->root, node_, problem, instead.first, instead.second)) {
    throw InputError(std::move(problem));
  }
}

double JsonCursor::refuse_number(std::string allowed, const Interval& range,
                                 std::string nearest) const {
  const double first = number_inside(range);
  if (!contains(range, first)) fail(std::move(allowed), std::move(nearest));
  refuse(std::move(allowed), {first, other_number_inside(range)}, std::move(nearest));
  return node_->get<double>();
}

void JsonCursor::fail_name(std::span<const std::string> names) const {
  if (!names.empty()) (void)stands_for(names.front());
  const std::string name = is_string() ? node_->get_ref<const std::string&>() : std::string{};
  std::error_code error;
  if (name.ends_with(".json") || std::filesystem::is_regular_file(name, error)) {
    fail("a name; of a file, its content as an object");
  }
  if (names.empty()) fail("nothing: there are none");
  std::string nearest = nearest_name(name, names);
  const InputError mistake(problem_here(listed(names), nearest));
  const auto likely = nearest.empty() ? names.begin() : std::ranges::find(names, nearest);
  const std::string& other = likely == names.begin() ? names.back() : names.front();
  // A name in its place is of use to the next reading alone: who asked has none of it now.
  refuse(mistake.problem().allowed, {*likely, other}, std::move(nearest));
  document_->wrong->is_choice(pointer_);
  throw InputError(mistake);
}

}  // namespace lockstep
