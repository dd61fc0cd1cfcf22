#include "sim/measured/validate_collectives.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <vector>

#include "models/base/number_text.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/call_repeats.hpp"
#include "sim/measured/nccl_machine.hpp"
#include "sim/measured/nccl_series.hpp"

namespace lockstep {
namespace {

constexpr Bytes kLarge{64.0 * 1048576};
constexpr Bytes kSmall{64.0 * 1024};
constexpr std::size_t kWorst = 10;

ValidationPoint predict(const NcclSeries& series, const NcclMachine& machine,
                        const NcclSample& sample, const PresetStore& presets) {
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
                    {"nodes", series.nodes},
                    {"ranks", series.ranks},
                    {"transport", machine.transport_preset},
                    {"bytes", IdentityValue::number(sample.size.base_units())}};
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
bool is_large_in_node(const ValidationPoint& point) {
  return in_one_node(point) && is_large(point);
}
bool is_large_across(const ValidationPoint& point) {
  return !in_one_node(point) && is_large(point);
}

std::vector<PointSummary> summaries(const std::vector<ValidationPoint>& points,
                                    const RepeatedCalls& calls) {
  std::vector<PointSummary> out{summarise("all", points)};
  std::vector<ValidationPoint> one, several;
  std::map<std::string, std::vector<ValidationPoint>> by_system;
  for (const ValidationPoint& point : points) {
    (in_one_node(point) ? one : several).push_back(point);
    by_system[identity_of(point, "system") + ", " + identity_of(point, "op")].push_back(point);
  }
  const auto add = [&](const std::string& where, const std::vector<ValidationPoint>& group,
                       bool (*large_here)(const ValidationPoint&)) {
    if (group.empty()) return;
    const std::string large = where + ", 64 MB and more";
    out.push_back(summarise(where, group));
    out.push_back(summarise(large, group, is_large));
    out.push_back(summarise(large + ", by configuration", calls.medians(large_here)));
    out.push_back(summarise(large + ", every repeat", calls.repeats(large_here)));
    out.push_back(summarise(where + ", between", group, is_medium));
    out.push_back(summarise(where + ", up to 64 KB", group, is_small));
  };
  add("one node", one, is_large_in_node);
  add("several nodes", several, is_large_across);
  for (const auto& [name, group] : by_system) out.push_back(summarise(name, group));
  return out;
}

/// What the summary does not say: how far repeats differ, and the points that are furthest off.
std::vector<std::string> notes(const std::vector<WorstPoint>& worst, const RepeatedCalls& calls) {
  if (worst.empty()) return {};
  std::vector<std::string> out{calls.spread_text("several nodes, 64 MB and more", is_large_across),
                               fmt::format("the {} points there that are furthest off:", kWorst)};
  for (const WorstPoint& each : worst) out.push_back("  " + worst_call_line(each));
  return out;
}

}  // namespace

PointTable validate_collectives(const std::string& file, const PresetStore& presets) {
  const std::vector<NcclSeries> all = parse_nccl_series(file, read_text_file(file));
  const std::vector<std::string> gpus = presets.names("gpus");
  PointTable table;
  table.what = "collectives";
  std::map<std::string, std::size_t> skipped;
  RepeatedCalls calls;
  for (const NcclSeries& series : all) {
    std::string why;
    std::optional<NcclMachine> machine;
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
        calls.add(table.points.back(), machine->nic_bandwidth.base_units() / 1e9,
                  sample.repeats_us);
      }
    }
  }
  for (const auto& [why, n] : skipped) {
    table.skipped.push_back(fmt::format("{}: {}", counted(static_cast<double>(n), "point"), why));
  }
  table.summary = summaries(table.points, calls);
  table.worst = worst_calls(table.points, calls, kWorst, is_large_across);
  table.notes = notes(table.worst, calls);
  return table;
}

}  // namespace lockstep
