/// Laws on what `lockstep queue fill` answers about a cluster that pods fill.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/laws/comm_laws.hpp"

namespace lockstep {

/// What `lockstep queue fill --format json` says. Throws InputError; LawsStopped where `go_on` says
/// false.
nlohmann::ordered_json filling_answer(const std::string& file, const std::string& text,
                                      const std::function<bool()>& go_on = {});

/// All laws on a filling. `presets`: the folders that --presets gave.
std::vector<DocumentLaw> filling_laws(const std::vector<std::string>& presets);

}  // namespace lockstep
