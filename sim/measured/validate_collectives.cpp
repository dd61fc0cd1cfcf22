#include "sim/measured/validate_collectives.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <vector>

#include "models/base/number_text.hpp"
#include "models/base/text_file.hpp"
#include "sim/measured/nccl_machine.hpp"
#include "sim/measured/nccl_series.hpp"

namespace lockstep {
namespace {

constexpr Bytes kLarge{64.0 * 1048576};
constexpr Bytes kSmall{64.0 * 1024};

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
      }
    }
  }
  for (const auto& [why, n] : skipped) {
    table.skipped.push_back(fmt::format("{}: {}", counted(static_cast<double>(n), "point"), why));
  }
  table.summary = summaries(table.points);
  return table;
}

}  // namespace lockstep
