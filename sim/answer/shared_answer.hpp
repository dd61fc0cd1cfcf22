/// The answer to a scenario with "jobs", several of them on one fabric, as JSON.
#pragma once

#include <cstddef>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/hash_answer.hpp"
#include "sim/answer/step_answer.hpp"
#include "sim/congestion/shared_run.hpp"
#include "sim/power/shared_power.hpp"
#include "sim/scenario/shared_scenario.hpp"

namespace lockstep {

/// Throws InputError that names the first job which does not fit in memory.
void require_memory(const SharedScenario& scenario);

/// What draws of the hashes do to one job.
struct JobBands {
  HashBand step{}, slowdown{};
};
/// Those of job `index`. Requires several draws.
JobBands bands_of(const HashAnswer& hash, std::size_t jobs, std::size_t index);

/// Where the scenario says "power".
std::optional<SharedPower> power_of(const SharedScenario& scenario, const SharedResult& result);

/// With units in the names, at most 12 significant digits, in a fixed order.
nlohmann::ordered_json shared_json(const SharedScenario& scenario, const SharedResult& result,
                                   const std::optional<SharedPower>& power,
                                   const std::optional<HashAnswer>& hash,
                                   const WrittenScenario& written = {});

}  // namespace lockstep
