/// Laws on what `lockstep plan` answers about a training.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/scenario/preset_store.hpp"
#include "tools/laws/comm_laws.hpp"

namespace lockstep {

/// What `lockstep plan --format json` says, without its version. Throws InputError, also for the
/// plan of a service; LawsStopped where `go_on` says false.
nlohmann::ordered_json plan_answer(const std::string& file, const std::string& text,
                                   const PresetStore& presets,
                                   const std::function<bool()>& go_on = {});

// Laws on any plan, of a training or of a service.
void hold_plan_asked_twice(DocumentSubject& subject, LawBook& book);
void hold_plan_threads(DocumentSubject& subject, LawBook& book,
                       const std::vector<std::string>& presets);

/// All laws on a plan. `presets`: the folders that --presets gave.
std::vector<DocumentLaw> plan_laws(const std::vector<std::string>& presets);

}  // namespace lockstep
