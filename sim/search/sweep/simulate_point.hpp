/// One point of a sweep: what `lockstep run` would say of its scenario.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "sim/answer/member_names.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/search/sweep/sweep.hpp"

namespace lockstep {

struct PointAnswer {
  std::string error;            ///< why there is no answer: one line; empty where there is one
  nlohmann::ordered_json json;  ///< as `lockstep run --format json` prints it
};

/// Simulates on the calling thread. Of the answer's first level `only` these members, where they
/// are given. Nothing when `go_on` said no on the way.
std::optional<PointAnswer> simulate_point(const Sweep& sweep,
                                          const nlohmann::ordered_json& scenario,
                                          const PresetStore& presets,
                                          const StepIntervals& intervals,
                                          const std::function<bool()>& go_on,
                                          const MemberNames* only = nullptr);

/// Throws InputError for a key that no point of the sweep would read, in the scenario's file or in
/// what the sweep puts there: `scenario` is any point's. Other mistakes are the points' own.
void require_known_keys(const Sweep& sweep, nlohmann::ordered_json scenario,
                        const PresetStore& presets);

}  // namespace lockstep
