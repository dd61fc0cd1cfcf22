/// Reads a plan from JSON. scenarios/plans/README.md describes the format;
/// scenarios/plan.schema.json is for editors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/scenario/preset_store.hpp"
#include "sim/search/plan_spec.hpp"

namespace lockstep {

/// `set` is applied to the JSON first, as in ScenarioOptions. A candidate's scenario is the plan's
/// "scenario", changed by what is known about the candidate's site, changed by its own "scenario".
/// Throws InputError; mistakes in a scenario are told at their place in the plan.
PlanSpec read_plan(const std::string& file, std::string_view text, const PresetStore& presets,
                   const std::vector<std::string>& set = {});
/// What the JSON Schema of a plan says of its members beside its training, its candidates and what
/// is uncertain, as their readers declare them.
nlohmann::ordered_json plan_members_schema();

}  // namespace lockstep
