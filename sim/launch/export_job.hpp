/// A scenario as a launch file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// What the scenario says and the format has no word for.
struct NotExported {
  std::string path;   ///< "parallelism.schedule"
  std::string value;  ///< "zb_v"
  std::string why;
};

struct ExportedJob {
  std::string text;
  std::vector<NotExported> left_out;
};

/// To add a format: its function in a file of its own, and its row in export_job.cpp.
struct ExportFormat {
  std::string_view name;
  std::string_view summary;
  ExportedJob (*write)(const Scenario& scenario);
};
/// megatron, nemo, bridge, torchtitan, deepspeed, accelerate.
std::span<const ExportFormat> export_formats();

// Requires a scenario that is complete and checked, on one kind of node.
ExportedJob export_megatron(const Scenario& scenario);
ExportedJob export_nemo(const Scenario& scenario);
ExportedJob export_bridge(const Scenario& scenario);
ExportedJob export_torchtitan(const Scenario& scenario);
ExportedJob export_deepspeed(const Scenario& scenario);
ExportedJob export_accelerate(const Scenario& scenario);

}  // namespace lockstep
