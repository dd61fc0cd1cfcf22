#include "tools/lockstep/validate_collectives.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <vector>

#include "models/input/text_file.hpp"
#include "tools/lockstep/nccl_series.hpp"

namespace lockstep {
namespace {

constexpr Bytes kLarge{64.0 * 1048576};
constexpr Bytes kSmall{64.0 * 1024};

/// What a series ran on, as the model takes it.
struct Machine {
  CollectiveOp op = CollectiveOp::all_reduce;
  std::string gpu_preset, transport_preset;
  BytesPerSecond nic_bandwidth;
};

/// Why a series cannot be predicted, or nothing.
std::optional<std::string> oddity(const NcclSeries& series) {
  for (const std::string& flag : series.flags) {
    for (const std::string_view word : {"misconfigured", "sockets", "no OFI"}) {
      if (flag.find(word) != std::string::npos) return "flagged by their source: " + flag;
    }
    if (flag.find("NVLS_ENABLE=0") != std::string::npos) return "algorithm forced: " + flag;
  }
  return std::nullopt;
}

/// The machine, or the reason why there is none in `why`.
std::optional<Machine> machine_of(const NcclSeries& series, const PresetStore& presets,
                                  const std::vector<std::string>& gpus, std::string& why) {
  Machine machine;
  const std::optional<CollectiveOp> op = op_of(series.op);
  if (!op) return why = "no model of " + series.op, std::nullopt;
  if (series.ranks < 2) return why = "a single rank", std::nullopt;
  machine.op = *op;
  machine.gpu_preset = gpu_preset_of(series.gpu, gpus);
  if (machine.gpu_preset.empty()) return why = "no preset of the GPU " + series.gpu, std::nullopt;
  if (series.nodes == 1) {
    machine.transport_preset = "none";
    machine.nic_bandwidth = gigabits_per_second(1);  // no candidate inside one node uses it
    return machine;
  }
  machine.transport_preset = transport_of(series.network);
  const std::optional<BytesPerSecond> nic =
      nic_bandwidth_per_gpu(series.network, series.gpus_per_node);
  if (machine.transport_preset.empty() || !nic) {
    return why = "network not stated: " + series.network, std::nullopt;
  }
  machine.nic_bandwidth = *nic;
  // A network that one generation of servers drives differently has a preset of its own.
  const std::string special =
      machine.transport_preset + "_" + presets.gpu(machine.gpu_preset).architecture;
  if (presets.has("transports", special)) machine.transport_preset = special;
  return machine;
}

ValidationPoint predict(const NcclSeries& series, const Machine& machine, const NcclSample& sample,
                        const PresetStore& presets) {
  const CollectiveCall call{.op = machine.op,
                            .payload = sample.size,
                            .ranks = series.ranks,
                            .ranks_per_node = (series.ranks + series.nodes - 1) / series.nodes};
  const Seconds predicted =
      collective_time(call, presets.gpu(machine.gpu_preset),
                      presets.transport(machine.transport_preset), machine.nic_bandwidth);
  ValidationPoint point;
  point.identity = {{"system", series.system},
                    {"gpu", machine.gpu_preset},
                    {"op", series.op},
                    {"nodes", std::to_string(series.nodes)},
                    {"ranks", std::to_string(series.ranks)},
                    {"transport", machine.transport_preset},
                    {"bytes", fmt::format("{:.0f}", sample.size.base_units())}};
  point.measured = *sample.time_us;
  point.predicted = predicted.base_units() * 1e6;
  point.error = point.predicted / point.measured - 1;
  return point;
}

Bytes size_of(const ValidationPoint& point) {
  return Bytes{std::stod(identity_of(point, "bytes"))};
}
bool in_one_node(const ValidationPoint& point) { return identity_of(point, "nodes") == "1"; }
bool is_large(const ValidationPoint& point) { return size_of(point) >= kLarge; }
bool is_small(const ValidationPoint& point) { return size_of(point) <= kSmall; }
bool is_medium(const ValidationPoint& point) { return !is_large(point) && !is_small(point); }

std::vector<PointSummary> summaries(const std::vector<ValidationPoint>& points) {
  std::vector<PointSummary> out{summarise("all", points)};
  std::vector<ValidationPoint> one, several;
  std::map<std::string, std::vector<ValidationPoint>> by_system;
  for (const ValidationPoint& point : points) {
    (in_one_node(point) ? one : several).push_back(point);
    by_system[identity_of(point, "system") + ", " + identity_of(point, "op")].push_back(point);
  }
  const auto add = [&out](const std::string& where, const std::vector<ValidationPoint>& group) {
    if (group.empty()) return;
    out.push_back(summarise(where, group));
    out.push_back(summarise(where + ", 64 MB and more", group, is_large));
    out.push_back(summarise(where + ", between", group, is_medium));
    out.push_back(summarise(where + ", up to 64 KB", group, is_small));
  };
  add("one node", one);
  add("several nodes", several);
  for (const auto& [name, group] : by_system) out.push_back(summarise(name, group));
  return out;
}

}  // namespace

PointTable validate_collectives(const std::string& file, const PresetStore& presets) {
  const std::vector<NcclSeries> all = parse_nccl_series(file, read_text_file(file));
  const std::vector<std::string> gpus = presets.names("gpus");
  PointTable table;
  table.what = "collectives";
  std::map<std::string, std::size_t> skipped;
  for (const NcclSeries& series : all) {
    std::string why;
    std::optional<Machine> machine;
    if (const std::optional<std::string> odd = oddity(series)) {
      why = *odd;
    } else {
      machine = machine_of(series, presets, gpus, why);
    }
    for (const NcclSample& sample : series.samples) {
      if (!machine) {
        ++skipped[why];
      } else if (!sample.time_us) {
        ++skipped["no time published"];
      } else {
        table.points.push_back(predict(series, *machine, sample, presets));
      }
    }
  }
  for (const auto& [why, n] : skipped) {
    table.skipped.push_back(fmt::format("{} points: {}", n, why));
  }
  table.summary = summaries(table.points);
  return table;
}

}  // namespace lockstep
