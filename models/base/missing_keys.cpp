#include "models/base/missing_keys.hpp"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/json_text.hpp"
#include "models/base/key_examples.hpp"
#include "models/base/write_json.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

std::string pointer_of(const MissingKey& key) { return key.object + "/" + pointer_part(key.key); }

bool lies_within(const MissingKey& key, const std::string& pointer) {
  return key.object == pointer || key.object.starts_with(pointer + "/");
}

/// Keys that stand in the file; those below them become part of their examples. A reader meets an
/// object before its members.
std::vector<std::pair<MissingKey, Json>> with_examples(const std::vector<MissingKey>& keys) {
  std::vector<std::pair<MissingKey, Json>> out;
  for (const MissingKey& key : keys) {
    const Json example = key.example.empty() ? Json() : Json::parse(key.example);
    const auto above = std::ranges::find_if(
        out, [&](const auto& of) { return lies_within(key, pointer_of(of.first)); });
    if (above == out.end()) {
      out.emplace_back(key, example);
      continue;
    }
    const std::string rest = pointer_of(key).substr(pointer_of(above->first).size());
    if (!example.is_null()) above->second[Json::json_pointer(rest)] = example;
  }
  return out;
}

InputProblem problem_of(std::string file, const std::vector<MissingKey>& keys) {
  assert(!keys.empty());
  const std::vector<std::pair<MissingKey, Json>> missing = with_examples(keys);
  const std::string& object = missing.front().first.object;
  const bool one =
      std::ranges::all_of(missing, [&](const auto& m) { return m.first.object == object; });
  std::string names;
  Json examples = Json::object();
  for (const auto& [key, example] : missing) {
    const std::string name = one ? key.key : pointer_of(key);
    const bool last = &key == &missing.back().first;
    names += (names.empty() ? "" : last ? " and " : ", ") + in_quotes(name);
    if (!example.is_null()) examples[name] = example;
  }
  // Where all that is needed is missing, the example has what is sensible beside it.
  const std::string_view whole = one ? object_example(object) : std::string_view{};
  if (missing.size() > 1 && !whole.empty()) {
    const Json example = Json::parse(whole);
    const bool has_all =
        std::ranges::all_of(missing, [&](const auto& m) { return example.contains(m.first.key); });
    if (has_all) examples = example;
  }
  std::string allowed = std::string("an object with ") + (missing.size() == 1 ? "it" : "them");
  if (!examples.empty()) allowed += ", such as " + write_json(examples);
  return {.file = std::move(file),
          .pointer = one ? object : std::string(),
          .found = "an object without " + names,
          .allowed = std::move(allowed),
          .nearest = {}};
}

}  // namespace

MissingKeys::MissingKeys(std::string file, std::vector<MissingKey> keys)
    : InputError(problem_of(std::move(file), keys)), keys_(std::move(keys)) {}

}  // namespace lockstep
