/// Reads files of measured power: tests/reference/power.json and others of its format, which
/// tests/reference/README.md describes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A measurement; what is not known is empty or 0.
struct PowerRow {
  std::string id, topic;
  std::string gpu;       ///< as printed: "H100-SXM5-80GB"
  std::string workload;  ///< "gpt3"; a key of PowerFile::workloads
  std::string cooling;   ///< "immersion (node without fans)", "water-cooled", ...
  bool dc = false;       ///< measured behind the power supply
  int nodes = 1;
  int gpus_per_node = 8;
  std::optional<double> node_mean_w, total_mean_w;
  std::optional<double> node_idle_w;  ///< middle of the range that was seen
  std::optional<double> gpu_idle_w;
  std::optional<double> max_node_w;  ///< of any workload
  std::optional<double> joules_per_token;
  std::vector<double> step_profile_w;  ///< node power in equal parts of a step
};

struct PowerFile {
  std::vector<PowerRow> rows;
  /// Scenarios as JSON, by workload; without nodes, which are the row's.
  std::map<std::string, std::string> workloads;
};

/// Throws InputError if the text is no such file.
PowerFile parse_power_rows(const std::string& file, std::string_view text);

}  // namespace lockstep
