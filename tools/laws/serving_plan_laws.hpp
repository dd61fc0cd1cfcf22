/// Laws on what `lockstep plan` answers about a service.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/scenario/preset_store.hpp"
#include "tools/laws/comm_laws.hpp"

namespace lockstep {

/// What `lockstep plan --format json` says, without its version. Throws InputError, also for the
/// plan of a training; LawsStopped where `go_on` says false.
nlohmann::ordered_json serving_plan_answer(const std::string& file, const std::string& text,
                                           const PresetStore& presets,
                                           const std::function<bool()>& go_on = {});

/// All laws on such a plan. `presets`: the folders that --presets gave.
std::vector<DocumentLaw> serving_plan_laws(const std::vector<std::string>& presets);

}  // namespace lockstep
