/// `lockstep run` of a scenario with "run": days to months, with failures and checkpoints.
#pragma once

#include <string>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/scenario.hpp"
#include "tools/console/console.hpp"
#include "tools/console/options.hpp"
#include "tools/lockstep/run/campaign_result.hpp"

namespace lockstep {

/// The file, parsed, and what --set changed in it.
struct CampaignInput {
  const std::string& path;
  const std::string& text;
  const std::vector<std::string>& sets;
  std::vector<std::string> profiles;
  const JsonCursor& root;
  const PresetStore& presets;
  Folding folding = Folding::automatic;
};

/// `scenario` is what the file says of the job and its cluster.
Exit run_campaign(const CampaignInput& input, const Scenario& scenario,
                  const ParsedOptions& options, Console& console);

}  // namespace lockstep
