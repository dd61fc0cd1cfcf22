#include "sim/scenario/scenario_keys.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/read_filling.hpp"
#include "sim/scenario/read_queue.hpp"
#include "sim/scenario/read_serving.hpp"
#include "sim/scenario/spec_schemas.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// What a bare number of a shared type is in.
struct QuantityUnit {
  std::string_view name, value, unit;
};
constexpr std::array kQuantityUnits{
    QuantityUnit{"time", "time", "s"},
    QuantityUnit{"data", "data", "B"},
    QuantityUnit{"data_rate", "data rate", "B/s"},
    QuantityUnit{"compute_rate", "compute rate", "FLOP/s"},
    QuantityUnit{"power", "power", "W"},
    QuantityUnit{"count", "count", ""},
    QuantityUnit{"share", "share", ""},
};

constexpr std::array kWrittenTypes{
    WrittenType{"claim", "text", "",
                "A sentence that people say about GPU clusters, held against the answer"},
    WrittenType{"holds", "true or false", "",
                "Whether it is so; false: \"that\" holds what is right instead. Default: true"},
    WrittenType{"because", "text", "", "Why, with the right figure; printed with the answer"},
    WrittenType{"that", "list of text", "up to 100",
                "Bounds on numbers of the JSON output, as with --assert: \"mfu>=0.40\", "
                "\"waterfall.pipeline_bubble.share<25 %\"; exit status 1 where one is missed"},
    WrittenType{"recompute_modules", "list of choices",
                "up to 8: core_attention, layer_norm, activation, latent_up, mlp, mlp_up, "
                "projection, fused_attention",
                "Modules, named as in Megatron-Core, and what policies of JAX leave out: mlp_up "
                "and projection (the products before the activation, behind attention), "
                "fused_attention (a fused kernel's forward pass); none by default"},
};

/// Keys that choose the values which the keys beside them change; no declaration has them.
struct ChoosingKey {
  std::string_view parent, key, value, sentence;
};
constexpr std::array kChoosingKeys{
    ChoosingKey{"model", "huggingface", "text or object",
                "Path to a config.json, from the scenario's folder, or what it holds: of decoders "
                "of the families that models/spec/hugging_face.cpp lists, and of others whose keys "
                "suffice"},
    ChoosingKey{"stack", "release", "text",
                "Release of the software; an unknown one is taken as the nearest that is known"},
    ChoosingKey{"stack", "allow", "list of text",
                "What the job may ask of the software although its preset does not list it "
                "(lockstep show stacks NAME, capabilities); the prediction is then as far off as "
                "one for unknown software"},
};

template <class Rows>
auto row_named(const Rows& rows, std::string_view name) -> decltype(rows.data()) {
  const auto found = std::ranges::find(rows, name, [](const auto& row) { return row.name; });
  return found == rows.end() ? nullptr : &*found;
}

/// What a value may be one of; empty: it is of one type.
Json alternatives(const Json& node) {
  return node.value("anyOf", node.value("oneOf", Json::array()));
}

std::string description_of(const Json& node) { return node.value("description", std::string()); }

/// "1 to 8", "above 0 to 1", "at least 0"; empty: no bounds.
std::string bounds_text(const Json& node) {
  constexpr double kNoBound = 1e30;
  const auto bound = [&](const char* key) { return number_text(node.at(key).get<double>()); };
  std::string out;
  if (node.contains("minimum")) out = bound("minimum");
  if (node.contains("exclusiveMinimum")) out = "above " + bound("exclusiveMinimum");
  if (!node.contains("maximum") || node.at("maximum").get<double>() >= kNoBound) {
    return out.empty() || out.starts_with("above") ? out : "at least " + out;
  }
  return (out.empty() ? "at most " : out + " to ") + bound("maximum");
}

/// "up to 8", "2 to 8", "at least 1"; empty: any number of items.
std::string length_text(const Json& node) {
  const bool most = node.contains("maxItems"), least = node.contains("minItems");
  if (most && least) {
    return fmt::format("{} to {}", write_json(node.at("minItems")),
                       write_json(node.at("maxItems")));
  }
  if (most) return "up to " + write_json(node.at("maxItems"));
  return least ? "at least " + write_json(node.at("minItems")) : std::string();
}

void append(std::string& list, const std::string& with, const std::string& word) {
  if (word.empty() || list == word || list.ends_with(with + word)) return;
  list += (list.empty() ? "" : with) + word;
}

/// Splits "Sequences of a micro batch; default: 1" into the sentence and its default.
void take_default(ScenarioKey& key) {
  for (const std::string_view before : {"; default: ", ". Default: ", "Default: "}) {
    const std::size_t at = key.sentence.find(before);
    if (at == std::string::npos) continue;
    key.default_rule = key.sentence.substr(at + before.size());
    key.sentence.resize(at);
    return;
  }
}

/// "cluster.node" of "#/properties/cluster/anyOf/1/properties/node".
std::string path_of(std::string_view pointer) {
  std::string out;
  constexpr std::string_view kKey = "/properties/";
  for (std::size_t at = pointer.find(kKey); at != std::string_view::npos;) {
    const std::size_t start = at + kKey.size();
    const std::size_t end = std::min(pointer.find('/', start), pointer.size());
    append(out, ".", std::string(pointer.substr(start, end - start)));
    at = pointer.find(kKey, end);
  }
  return out;
}

/// Walks the schema of one kind of file.
class KeyLines {
 public:
  KeyLines(const Json& specs, std::string of, std::vector<ScenarioKey>& out)
      : specs_(&specs), of_(std::move(of)), out_(&out) {}

  /// The keys of an object, behind `before` ("cluster."); whether it has any.
  bool add_members(const Json& node, const std::string& before) {
    if (const Json* elsewhere = referred(node, before)) {
      add_preset(node, before);
      return add_members(*elsewhere, before);
    }
    bool any = false;
    for (const Json& one : alternatives(node)) {
      // A list of what stands alone too has no rows of its own.
      if (any && one.value("type", Json()) == "array") continue;
      any = add_members(one, before) || any;
    }
    if (const auto items = node.find("items"); items != node.end() && items->is_object()) {
      any = add_members(*items, before + "*.") || any;
    }
    const auto members = node.find("properties");
    if (members == node.end()) return any;
    const Json required = node.value("required", Json::array());
    for (const auto& [key, member] : members->items()) {
      const bool must = std::ranges::find(required, Json(key)) != required.end();
      add(before + key, member, must);
    }
    add_choosing(before);
    return true;
  }

 private:
  void add(const std::string& path, const Json& member, bool required) {
    ScenarioKey row{.path = path, .of = of_, .sentence = description_of(member)};
    tell_type(member, path, row);
    take_default(row);
    if (required) row.default_rule = "required";
    out_->push_back(std::move(row));
    (void)add_members(member, path + ".");
  }

  /// The key that names what a transport or a storage changes.
  void add_preset(const Json& node, const std::string& before) {
    const std::string pointer = pointer_of(node.at("$ref"));
    if (!specs_->contains(pointer + "/anyOf/1")) return;
    const std::string kind = pointer.substr(pointer.rfind('/') + 1);
    out_->push_back({.path = before + "preset",
                     .of = of_,
                     .value = "preset",
                     .sentence = fmt::format("Preset to start from: lockstep list {}s", kind)});
  }
  void add_choosing(const std::string& before) {
    for (const ChoosingKey& row : kChoosingKeys) {
      if (before != std::string(row.parent) + ".") continue;
      out_->push_back({.path = before + std::string(row.key),
                       .of = of_,
                       .value = std::string(row.value),
                       .sentence = std::string(row.sentence)});
    }
  }

  /// The object that a node refers to: one of the specs, or what a job has under the same path.
  [[nodiscard]] const Json* referred(const Json& node, std::string_view before) const {
    const auto ref = node.find("$ref");
    if (ref == node.end()) return nullptr;
    const std::string pointer = pointer_of(*ref);
    for (const char* const place : {"", "/anyOf/1"}) {
      const auto spec = specs_->find(pointer + place);
      if (!pointer.empty() && spec != specs_->end()) return &*spec;
    }
    if (path_of(pointer) + "." != before) return nullptr;
    return &specs_->at("").at(Json::json_pointer(pointer));
  }
  static std::string pointer_of(const Json& ref) {
    const auto text = ref.get<std::string>();
    return text.starts_with("congestion.") ? std::string() : text.substr(text.find('#') + 1);
  }

  void tell_type(const Json& node, const std::string& path, ScenarioKey& row) const {
    if (const auto ref = node.find("$ref"); ref != node.end()) {
      tell_reference(node, pointer_of(*ref), path, row);
    } else if (node.contains("enum")) {
      std::string names;
      for (const Json& name : node.at("enum")) append(names, ", ", name.get<std::string>());
      append(row.value, " or ", "choice");
      append(row.allowed, "; ", names);
    } else if (node.contains("const")) {
      const Json& one = node.at("const");
      append(row.value, " or ", one.is_string() ? "choice" : "");
      append(row.allowed, one.is_string() ? "; " : ", or ",
             one.is_string() ? one.get<std::string>() : write_json(one));
    } else if (!alternatives(node).empty() && !node.contains("properties")) {
      for (const Json& one : alternatives(node)) tell_type(one, path, row);
      // Alternatives of one number: "0, or 1 to 8".
      if (row.allowed.starts_with("0; ")) row.allowed.replace(1, 1, ", or");
    } else if (const auto type = node.find("type"); type != node.end()) {
      if (type->is_string()) return tell_plain(type->get<std::string>(), node, path, row);
      for (const Json& one : *type) tell_plain(one.get<std::string>(), node, path, row);
    } else if (node.contains("properties")) {
      append(row.value, " or ", "object");
    }
  }

  void tell_plain(const std::string& type, const Json& node, const std::string& path,
                  ScenarioKey& row) const {
    const std::string sentence = description_of(node);
    if (type == "array") return tell_list(node, path, row);
    const bool preset =
        sentence.starts_with("Name of a preset") || sentence.starts_with("Preset to start from");
    if (preset && row.sentence.find("lockstep list") == std::string::npos) {
      append(row.allowed, "; ", sentence.substr(sentence.find("lockstep list")));
    }
    append(row.value, " or ",
           type == "string"    ? (preset ? "preset" : "text")
           : type == "integer" ? "whole number"
           : type == "boolean" ? "true or false"
                               : type);
    if (type == "integer" || type == "number") append(row.allowed, "; ", bounds_text(node));
  }
  void tell_list(const Json& node, const std::string& path, ScenarioKey& row) const {
    ScenarioKey item;
    const auto items = node.find("items");
    if (items != node.end() && items->is_object()) tell_type(*items, path, item);
    const std::string length = length_text(node);
    append(row.value, " or ", item.value.empty() ? "list" : "list of " + plural(item.value));
    append(row.allowed, "; ",
           length + (length.empty() || item.allowed.empty() ? "" : ": ") + item.allowed);
    if (row.unit.empty()) row.unit = item.unit;
  }
  static std::string plural(const std::string& value) {
    const bool counted = value == "object" || value == "number" || value == "whole number" ||
                         value == "choice" || value == "list";
    return value + (counted ? "s" : "");
  }

  void tell_reference(const Json& node, const std::string& pointer, const std::string& path,
                      ScenarioKey& row) const {
    const std::string name = pointer.substr(pointer.rfind('/') + 1);
    if (const QuantityUnit* quantity = row_named(kQuantityUnits, name);
        quantity != nullptr && pointer.starts_with("/$defs/")) {
      append(row.value, " or ", std::string(quantity->value));
      row.unit = quantity->unit;
      if (node.contains("anyOf")) {
        append(row.allowed, "; ", "0, or " + bounds_text(node.at("anyOf").at(1)));
      } else {
        append(row.allowed, "; ", bounds_text(node));
      }
    } else if (const WrittenType* type = written_type_of(name); type != nullptr) {
      append(row.value, " or ", std::string(type->value));
      append(row.allowed, "; ", std::string(type->allowed));
      if (row.sentence.empty()) row.sentence = type->sentence;
    } else if (specs_->contains(pointer + "/anyOf/1")) {
      append(row.value, " or ", "preset or object");
    } else if (specs_->contains(pointer) && !pointer.empty()) {
      append(row.value, " or ", "object");
    } else if (const std::string of_job = path_of(pointer); of_job == path) {
      tell_type(specs_->at("").at(Json::json_pointer(pointer)), path, row);
    } else {
      append(row.value, " or ",
             pointer.empty() ? "list of jobs, as \"jobs\" of scenarios/congestion.schema.json"
                             : "as " + of_job);
      if (row.sentence.empty()) row.sentence = fmt::format("As \"{}\" of a job", of_job);
    }
  }

  const Json* specs_;
  std::string of_;
  std::vector<ScenarioKey>* out_;
};

/// Rows that several kinds of files have alike become one, at the place of the first.
std::vector<ScenarioKey> merged(const std::vector<ScenarioKey>& rows) {
  std::vector<ScenarioKey> out;
  std::map<std::string, std::vector<std::size_t>> places;
  for (const ScenarioKey& row : rows) {
    std::vector<std::size_t>& same_path = places[row.path];
    const auto twin = std::ranges::find_if(same_path, [&](std::size_t at) {
      const ScenarioKey& other = out[at];
      return other.value == row.value && other.allowed == row.allowed &&
             other.default_rule == row.default_rule && other.sentence == row.sentence;
    });
    if (twin != same_path.end()) {
      append(out[*twin].of, ", ", row.of);
      continue;
    }
    same_path.push_back(out.size());
    out.push_back(row);
  }
  return out;
}

}  // namespace

const WrittenType* written_type_of(std::string_view name) { return row_named(kWrittenTypes, name); }

std::vector<ScenarioKey> scenario_keys(const PresetStore& presets) {
  constexpr QuantityBounds kSaid = QuantityBounds::said;
  const Json specs = spec_schemas(presets, kSaid);
  std::vector<ScenarioKey> rows;
  (void)KeyLines(specs, "job", rows).add_members(specs.at(""), "");
  (void)KeyLines(specs, "queue", rows).add_members(queue_schema(presets, kSaid), "");
  (void)KeyLines(specs, "serving", rows).add_members(serving_schema(presets, kSaid), "");
  (void)KeyLines(specs, "filling", rows).add_members(filling_schema(kSaid), "");
  return merged(rows);
}

}  // namespace lockstep
