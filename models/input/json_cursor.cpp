#include "models/input/json_cursor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <unordered_map>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "models/input/json_override.hpp"
#include "models/input/json_text.hpp"
#include "models/input/key_examples.hpp"
#include "models/input/write_json.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> kAnnotations{"source", "note", "about"};
constexpr std::string_view kValue = "value";

bool is_annotation(std::string_view key) {
  return std::find(kAnnotations.begin(), kAnnotations.end(), key) != kAnnotations.end();
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

std::string_view example(Dimension dimension) {
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

}  // namespace

struct JsonCursor::Document {
  std::string file;
  JsonStyle style = JsonStyle::plain;
  Json root;
  std::vector<JsonOverride> overrides;
  /// Keys that at() did not find, with what it gave for them.
  struct Missing {
    std::string object;  ///< pointer
    std::string key;
    Json example;
  };
  bool names_all_missing = false;
  std::deque<Missing> missing;  ///< a deque, as cursors point into it
  /// Keys that were asked for, by object, in the order of asking.
  std::unordered_map<const Json*, std::vector<std::string>> asked;
};

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

const std::string& JsonCursor::file() const { return document_->file; }
std::span<const JsonOverride> JsonCursor::overrides() const { return document_->overrides; }

std::string JsonCursor::set_option() const {
  const JsonOverride* change = last_override(document_->overrides, pointer_);
  return change == nullptr ? std::string{} : change->option;
}

bool JsonCursor::is_object() const { return node_->is_object(); }
bool JsonCursor::is_array() const { return node_->is_array(); }
bool JsonCursor::is_string() const { return node_->is_string(); }
bool JsonCursor::is_number() const { return node_->is_number(); }
bool JsonCursor::is_null() const { return node_->is_null(); }

JsonCursor JsonCursor::child(const Json& node, std::string_view key) const {
  const JsonCursor inner(document_, &node, pointer_ + "/" + pointer_part(key));
  if (document_->style == JsonStyle::plain || !node.is_object()) return inner;
  const Json* value = member(node, kValue);
  if (value == nullptr) return inner;
  // {"value": V, "source": S}: the reader sees V.
  inner.document_->asked[&node] = {std::string(kValue)};
  inner.finish();
  return {document_, value, inner.pointer_ + "/" + std::string(kValue)};
}

std::optional<JsonCursor> JsonCursor::find(std::string_view key) const {
  if (!is_object()) fail("an object");
  std::vector<std::string>& asked = document_->asked[node_];
  if (std::find(asked.begin(), asked.end(), key) == asked.end()) asked.emplace_back(key);
  const Json* value = member(*node_, key);
  if (value == nullptr) return std::nullopt;
  return child(*value, key);
}

JsonCursor JsonCursor::at(std::string_view key) const {
  if (std::optional<JsonCursor> found_member = find(key)) return *std::move(found_member);
  const std::string_view example = key_example(key);
  if (document_->names_all_missing && !example.empty()) return example_of(key, example);
  // A key that is spelt nearly like it is worth pointing at.
  const std::vector<std::string> wanted{std::string(key)};
  const std::vector<std::string>& asked = document_->asked[node_];
  std::string found_object = "an object without " + in_quotes(key);
  for (const std::string& name : keys()) {
    if (std::find(asked.begin(), asked.end(), name) != asked.end()) continue;
    if (nearest_name(name, wanted).empty()) continue;
    found_object += " but with " + in_quotes(name);
    break;
  }
  throw InputError({file(), pointer_, std::move(found_object), "an object with it", ""});
}

void JsonCursor::name_all_missing() const { document_->names_all_missing = true; }

JsonCursor JsonCursor::example_of(std::string_view key, std::string_view example) const {
  const auto known = std::ranges::find_if(document_->missing, [&](const Document::Missing& m) {
    return m.object == pointer_ && m.key == key;
  });
  if (known != document_->missing.end()) return child(known->example, key);
  document_->missing.push_back({pointer_, std::string(key), Json::parse(example)});
  return child(document_->missing.back().example, key);
}

void JsonCursor::fail_missing() const {
  const auto& missing = document_->missing;
  const std::string& object = missing.front().object;
  const bool one = std::ranges::all_of(missing, [&](const auto& m) { return m.object == object; });
  std::string names;
  Json examples;
  for (const Document::Missing& m : missing) {
    const std::string name = one ? m.key : m.object + "/" + pointer_part(m.key);
    const bool last = &m == &missing.back();
    names += (names.empty() ? "" : last ? " and " : ", ") + in_quotes(name);
    examples[name] = m.example;
  }
  throw InputError({file(), one ? object : std::string(), "an object without " + names,
                    std::string("an object with ") + (missing.size() == 1 ? "it" : "them") +
                        ", such as " + write_json(examples),
                    ""});
}

std::vector<std::string> JsonCursor::keys() const {
  if (!is_object()) fail("an object");
  std::vector<std::string> out;
  for (const auto& [name, value] : node_->get_ref<const Json::object_t&>()) out.push_back(name);
  return out;
}

void JsonCursor::finish() const {
  if (!is_object()) fail("an object");
  const std::vector<std::string>& asked = document_->asked[node_];
  for (const auto& [name, value] : node_->get_ref<const Json::object_t&>()) {
    if (std::find(asked.begin(), asked.end(), name) != asked.end()) continue;
    if (document_->style == JsonStyle::sourced && is_annotation(name)) continue;
    const JsonCursor unknown(document_, &value, pointer_ + "/" + pointer_part(name));
    const std::string option = unknown.set_option();
    throw InputError(
        {file(), unknown.pointer_,
         "the unknown key " + in_quotes(name) + (option.empty() ? "" : " (" + option + ")"),
         asked.empty() ? "no keys" : listed(asked), nearest_name(name, asked)});
  }
  const bool here_or_below = std::ranges::any_of(
      document_->missing,
      [&](const Document::Missing& m) { return m.object.starts_with(pointer_); });
  if (here_or_below) fail_missing();
}

std::vector<JsonCursor> JsonCursor::elements(std::size_t limit) const {
  if (!is_array()) fail("an array");
  if (node_->size() > limit) fail("an array of at most " + std::to_string(limit) + " elements");
  std::vector<JsonCursor> out;
  out.reserve(node_->size());
  for (std::size_t i = 0; i < node_->size(); ++i)
    out.push_back(child((*node_)[i], std::to_string(i)));
  return out;
}

int JsonCursor::integer(int low, int high) const {
  const auto wrong = [&] {
    fail("a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  };
  if (!is_number()) wrong();
  // Whole numbers written as 1e6 or 4.0 are whole; all that can be in range are exact in double.
  const double value = node_->get<double>();
  if (!(value >= low && value <= high) || value != std::floor(value)) wrong();
  return static_cast<int>(value);
}

double JsonCursor::number(const Interval& allowed) const {
  const auto wrong = [&] { fail("a number " + interval_text(allowed, number_text)); };
  if (!is_number()) wrong();
  const double value = node_->get<double>();
  if (!contains(allowed, value)) wrong();
  return value;
}

bool JsonCursor::boolean() const {
  if (!node_->is_boolean()) fail("true or false");
  return node_->get<bool>();
}

std::string JsonCursor::string() const {
  const JsonOverride* change = last_override(document_->overrides, pointer_);
  if (is_number() && change != nullptr && change->pointer == pointer_) return change->value;
  if (!is_string()) fail("a string");
  return node_->get_ref<const std::string&>();
}

std::size_t JsonCursor::choice(std::span<const std::string_view> names) const {
  if (is_string()) {
    const auto& name = node_->get_ref<const std::string&>();
    const auto place = std::find(names.begin(), names.end(), name);
    if (place != names.end()) return static_cast<std::size_t>(place - names.begin());
  }
  fail_name(std::vector<std::string>(names.begin(), names.end()));
}

double JsonCursor::quantity(Dimension dimension, const Interval& allowed) const {
  double value = 0;
  if (is_number()) {
    value = node_->get<double>();
  } else if (is_string()) {
    auto parsed = parse_quantity(node_->get_ref<const std::string&>(), dimension);
    if (auto* mistake = std::get_if<QuantityMistake>(&parsed)) {
      fail(std::move(mistake->allowed), std::move(mistake->nearest));
    }
    value = std::get<double>(parsed);
  } else {
    fail(std::string(example(dimension)));
  }
  if (!contains(allowed, value)) {
    fail(quantity_rule(dimension, allowed));
  }
  return value;
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

void JsonCursor::fail(std::string allowed, std::string nearest) const {
  // It may be wrong beside an example only.
  if (!document_->missing.empty()) fail_missing();
  const std::string option = set_option();
  throw InputError({file(), pointer_, found() + (option.empty() ? "" : " (" + option + ")"),
                    std::move(allowed), std::move(nearest)});
}

void JsonCursor::fail_name(std::span<const std::string> names) const {
  const std::string name = is_string() ? node_->get_ref<const std::string&>() : std::string{};
  std::error_code error;
  if (name.ends_with(".json") || std::filesystem::is_regular_file(name, error)) {
    fail("a name; of a file, its content as an object");
  }
  fail(names.empty() ? "nothing: there are none" : listed(names), nearest_name(name, names));
}

}  // namespace lockstep
