#include "models/base/wrong_values.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/json_override.hpp"

namespace lockstep {
namespace {

/// The part of a pointer before its last key; empty for members of the root.
std::string object_of(std::string_view pointer) {
  return std::string(pointer.substr(0, std::min(pointer.rfind('/'), pointer.size())));
}

/// Whether it is about a member of one of the objects, or of what is in one; of the root's, those
/// of its own alone.
bool is_about(const InputProblem& problem, const std::vector<std::string>& objects) {
  return std::ranges::any_of(objects, [&](const std::string& object) {
    return object.empty() ? object_of(problem.pointer).empty() : is_inside(problem.pointer, object);
  });
}

/// Null where the document has none.
nlohmann::ordered_json* value_at(nlohmann::ordered_json& root, const std::string& pointer) {
  const nlohmann::ordered_json::json_pointer place(pointer);
  return root.contains(place) ? &root.at(place) : nullptr;
}

}  // namespace

void WrongValues::is_choice(std::string_view pointer) { chosen_.push_back(object_of(pointer)); }

WrongValues::Json WrongValues::varied(const Json& example) const {
  if (variant_ == 0 || !example.is_number_integer()) return example;
  return example.get<std::int64_t>() + kApart;
}

void WrongValues::note(const InputProblem& problem) {
  if (full()) return;
  const bool known =
      std::ranges::find(problems_, problem.pointer, &InputProblem::pointer) != problems_.end();
  if (!known && !is_about(problem, reduced_)) problems_.push_back(problem);
}

void WrongValues::note_keys(std::span<const InputProblem> problems) {
  if (!reduced_.empty()) return;
  for (const InputProblem& problem : problems) {
    if (!is_about(problem, chosen_)) note(problem);
  }
}

bool WrongValues::replace(Json& root, const Json* node, const InputProblem& problem,
                          const Json& first, const Json& second) {
  if (full()) return false;
  Json* const value = value_at(root, problem.pointer);
  if (value == nullptr || value != node) return false;
  if (std::ranges::find(places_, problem.pointer) != places_.end()) return false;
  note(problem);
  places_.push_back(problem.pointer);
  emptied_ = emptied_ || first.is_structured();
  kept_.push_back(
      std::make_shared<const Json>(std::exchange(*value, variant_ == 0 ? first : second)));
  return true;
}

bool WrongValues::take_out(Json& root, const InputProblem& problem) {
  if (!problem.pointer.starts_with('/') || value_at(root, problem.pointer) == nullptr) return false;
  const std::string place = object_of(problem.pointer);
  Json* const object = value_at(root, place);
  if (object == nullptr || !object->is_object()) return false;
  object->erase(Json::json_pointer(problem.pointer).back());
  reduced_.push_back(place);
  return true;
}

}  // namespace lockstep
