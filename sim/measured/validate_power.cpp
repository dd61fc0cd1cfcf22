#include "sim/measured/validate_power.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "models/power/site_power.hpp"
#include "sim/measured/power_rows.hpp"
#include "sim/measured/reference_files.hpp"
#include "sim/power/step_power.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Averaging time of the meters: MLPerf's power rules ask for a sample a second or two.
constexpr Seconds kMeter{2};

/// "H100-SXM5-80GB" -> "h100_sxm5_80gb".
std::string preset_of(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    if (c == '-' || c == ' ') c = '_';
  }
  return text;
}

/// The preset that the row means: "H100 (RunPod, form factor not stated)" is the first one of its
/// kind.
std::optional<std::string> gpu_of(const PowerRow& row, const PresetStore& presets) {
  if (presets.has("gpus", preset_of(row.gpu))) return preset_of(row.gpu);
  std::string text = preset_of(row.gpu);
  if (text.starts_with("8x_")) text = text.substr(3);
  const std::string chip = text.substr(0, text.find('_'));
  if (chip.empty()) return std::nullopt;
  std::optional<std::string> found;
  for (const std::string& name : presets.names("gpus")) {
    if (!name.starts_with(chip + "_")) continue;
    if (!found ||
        (name.find("sxm") != std::string::npos && found->find("sxm") == std::string::npos)) {
      found = name;
    }
  }
  return found;
}

std::string chassis_of(const PowerRow& row, const GpuSpec& gpu, const PresetStore& presets) {
  // "8x H100 SXM node, immersion": some say it beside the GPU.
  const std::string text = row.cooling + " " + row.gpu;
  const auto says = [&](const char* word) { return text.find(word) != std::string::npos; };
  const std::string cooling = says("immersion")                 ? "immersion"
                              : says("water") || says("liquid") ? "liquid"
                                                                : "air";
  const std::string name = "hgx_" + gpu.architecture + "_" + cooling;
  return presets.has("chassis", name) ? name : "hgx_" + gpu.architecture + "_air";
}

/// The machine of a row as a scenario's node.
std::optional<Json> node_of(const PowerRow& row, const PresetStore& presets, std::string& why) {
  const std::optional<std::string> gpu = gpu_of(row, presets);
  if (!gpu) {
    why = row.gpu.empty() ? "no GPU named" : fmt::format("no GPU preset is about {}", row.gpu);
    return std::nullopt;
  }
  const GpuSpec& spec = presets.gpu(*gpu);
  const std::string chassis = chassis_of(row, spec, presets);
  if (!presets.has("chassis", chassis)) {
    why = fmt::format("no chassis preset is about {}", row.gpu);
    return std::nullopt;
  }
  return Json{{"gpu", *gpu},
              {"gpus", row.gpus_per_node},
              {"nvlink_domain", row.gpus_per_node},
              {"nics", row.gpus_per_node},
              {"nic_bandwidth", "400 Gb/s"},
              {"transport", "infiniband"},
              {"chassis", chassis}};
}

/// Simulated steps, by what they depend on.
class Simulations {
 public:
  Simulations(const PowerFile& file, const PresetStore& presets)
      : presets_(presets), workloads_(file.workloads) {}

  /// The power of a row's step; nothing where it cannot be simulated, with the reason in `why`.
  const StepPower* of(const PowerRow& row, std::string& why) {
    const std::optional<Json> node = node_of(row, presets_, why);
    if (!node) return nullptr;
    const std::string* workload = find_workload(row.workload);
    if (workload == nullptr) {
      why = fmt::format("no scenario of the workload {}", row.workload);
      return nullptr;
    }
    Json scenario = Json::parse(*workload);
    scenario["cluster"]["node"] = *node;
    scenario["cluster"]["nodes"] = row.nodes;
    scenario["power"] = {{"facility", "node_meter"},
                         {"meter", fmt::format("{} s", kMeter.base_units())}};
    const std::string text = write_json(scenario);
    const auto known = done_.find(text);
    if (known != done_.end()) return &known->second.first;
    const Scenario job = read_scenario(row.id, text, presets_);
    const StepReport report = simulate_step(job, {.record_timeline = true, .keep_actors = true});
    const auto added =
        done_.emplace(text, std::pair{step_power(job, report), report.tokens_per_step}).first;
    return &added->second.first;
  }
  [[nodiscard]] double tokens_per_step(const StepPower* power) const {
    for (const auto& [text, result] : done_) {
      if (&result.first == power) return result.second;
    }
    return 0;
  }

 private:
  const std::string* find_workload(const std::string& name) {
    if (!own_read_ && !workloads_.contains(name)) {
      own_read_ = true;
      const std::string own = reference_file(presets_, "power.json");
      for (auto& [key, json] : parse_power_rows(own, read_text_file(own)).workloads) {
        workloads_.emplace(key, json);
      }
    }
    const auto found = workloads_.find(name);
    return found == workloads_.end() ? nullptr : &found->second;
  }

  const PresetStore& presets_;
  std::map<std::string, std::string> workloads_;
  bool own_read_ = false;
  std::map<std::string, std::pair<StepPower, double>> done_;
};

/// Collects the points of a table.
class Points {
 public:
  explicit Points(PointTable& table) : table_(table) {}

  void add(const PowerRow& row, const std::string& figure, double measured, double predicted) {
    table_.points.push_back(
        {{{"row", row.id}, {"figure", figure}}, measured, predicted, predicted / measured - 1});
  }
  void skip(const std::string& why) { ++skipped_[why]; }
  void finish() {
    for (const auto& [why, n] : skipped_) {
      table_.skipped.push_back(fmt::format("{} rows: {}", n, why));
    }
    table_.summary = summarise_by(table_.points, "figure");
  }

 private:
  PointTable& table_;
  std::map<std::string, std::size_t> skipped_;
};

/// The shift of `predicted` against `measured` with the least squares between them.
std::size_t best_shift(const std::vector<double>& measured, const std::vector<double>& predicted) {
  std::size_t best = 0;
  double least = 1e300;
  for (std::size_t shift = 0; shift < measured.size(); ++shift) {
    double sum = 0;
    for (std::size_t i = 0; i < measured.size(); ++i) {
      const double d = predicted[(i + shift) % predicted.size()] - measured[i];
      sum += d * d;
    }
    if (sum >= least) continue;
    least = sum;
    best = shift;
  }
  return best;
}

void add_profile(const PowerRow& row, const StepPower& power, Points& points) {
  const auto bins = static_cast<int>(row.step_profile_w.size());
  std::vector<double> predicted;
  for (const Watts w : metered_profile(power.node, kMeter, bins)) {
    predicted.push_back(w.base_units());
  }
  const auto range = [](const std::vector<double>& v) { return std::ranges::minmax_element(v); };
  const auto [low, high] = range(row.step_profile_w);
  const auto [own_low, own_high] = range(predicted);
  points.add(row, "step high", *high, *own_high);
  points.add(row, "step low", *low, *own_low);
  points.add(row, "step swing", *high - *low, *own_high - *own_low);
  const std::size_t shift = best_shift(row.step_profile_w, predicted);
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    points.add(row, "step profile", row.step_profile_w[i],
               predicted[(i + shift) % predicted.size()]);
  }
}

/// What needs no workload: idle power, and GPUs at their limit.
void add_static(const PowerRow& row, const PresetStore& presets, Points& points) {
  std::string why;
  const std::optional<Json> json = node_of(row, presets, why);
  if (!json) return points.skip(why);
  const GpuSpec& gpu = presets.gpu((*json)["gpu"].get<std::string>());
  if (row.gpu_idle_w) points.add(row, "idle GPU", *row.gpu_idle_w, gpu.power_idle.base_units());
  NodeSpec node;
  node.gpu = gpu;
  node.gpus = node.nics = row.gpus_per_node;
  node.chassis = presets.chassis((*json)["chassis"].get<std::string>());
  const auto metered_at = [&](const NodePower& p) {
    return (row.dc ? p.dc() : p.ac()).base_units();
  };
  if (row.node_idle_w) {
    points.add(row, "idle node", *row.node_idle_w, metered_at(idle_node_power(node)));
  }
  if (row.max_node_w) {
    const Watts gpus = static_cast<double>(node.gpus) * gpu.power_limit;
    points.add(row, "node, GPUs at limit", *row.max_node_w,
               metered_at(node_power(node, gpus, true)));
  }
}

void add_simulated(const PowerRow& row, Simulations& simulations, Points& points) {
  std::string why;
  const StepPower* const power = simulations.of(row, why);
  if (power == nullptr) return points.skip(why);
  const double ac = mean_power(power->node).base_units();
  const double node = row.dc ? power->node_parts.dc().base_units() : ac;
  if (row.node_mean_w) points.add(row, "node mean", *row.node_mean_w, node);
  // A lone node's total has the time before and after the run in it.
  if (row.total_mean_w && row.nodes > 1) {
    points.add(row, "all nodes mean", *row.total_mean_w, row.nodes * node);
  }
  if (row.joules_per_token) {
    const double joules = row.nodes * ac * power->step_s;
    points.add(row, "J per token", *row.joules_per_token,
               joules / simulations.tokens_per_step(power));
  }
  if (!row.step_profile_w.empty()) add_profile(row, *power, points);
}

}  // namespace

PointTable validate_power(const std::string& file, const PresetStore& presets) {
  const PowerFile rows = parse_power_rows(file, read_text_file(file));
  PointTable table;
  table.what = "power";
  table.unit = "w";
  Points points(table);
  Simulations simulations(rows, presets);
  for (const PowerRow& row : rows.rows) {
    const bool simulated =
        row.node_mean_w || row.total_mean_w || row.joules_per_token || !row.step_profile_w.empty();
    if (row.gpu_idle_w || row.node_idle_w || row.max_node_w) {
      add_static(row, presets, points);
    } else if (simulated) {
      add_simulated(row, simulations, points);
    } else {
      points.skip(row.topic.empty() ? "no topic" : row.topic);
    }
  }
  points.finish();
  return table;
}

}  // namespace lockstep
