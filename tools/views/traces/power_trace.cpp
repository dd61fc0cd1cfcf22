#include "tools/views/traces/power_trace.hpp"

#include <array>
#include <fmt/format.h>
#include <span>
#include <string_view>
#include <vector>

#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "sim/power/run_power.hpp"
#include "tools/console/table.hpp"

namespace lockstep {
namespace {

/// Columns behind time and phase; OpenMetrics has them as the label "of".
constexpr std::array<std::string_view, 7> kTraced{"gpu",      "node",         "rack",         "row",
                                                  "facility", "facility_low", "facility_high"};

/// Power from a time on.
struct PowerRow {
  double time_s = 0;
  std::string_view phase{};  ///< of a run
  std::vector<double> watts;
};

/// Of the mean GPU, node, rack and row, and of the facility. A rack or row that is not full counts
/// as full: it is one of many.
std::vector<double> traced_watts(const Scenario& s, const PowerLevel& level) {
  const Watts rack = s.node.chassis->nodes_per_rack * level.node;
  const Watts row = s.power->facility.racks_per_row * rack;
  return {level.gpu.base_units(), level.node.base_units(), rack.base_units(), row.base_units(),
          level.facility.base_units()};
}

void write_power_csv(OutputFile& file, std::span<const PowerRow> rows, bool phases) {
  std::string head = phases ? "time_s,phase" : "time_s";
  for (std::size_t i = 0; !rows.empty() && i < rows.front().watts.size(); ++i) {
    head += fmt::format(",{}_w", kTraced[i]);
  }
  file.write(head + "\n");
  for (const PowerRow& row : rows) {
    std::vector<std::string> cells{number_text(row.time_s)};
    if (phases) cells.emplace_back(row.phase);
    for (const double watts : row.watts) cells.push_back(number_text(watts));
    file.write(csv_line(cells).str());
  }
}

/// Each series by itself with rising times, as OpenMetrics wants them. Of equal times the last.
void write_open_metrics(OutputFile& file, std::span<const PowerRow> rows, bool phases) {
  const auto replaced = [&](std::size_t i) {
    return i + 1 < rows.size() && number_text(rows[i + 1].time_s) == number_text(rows[i].time_s);
  };
  file.write(
      "# TYPE lockstep_power_watts gauge\n# UNIT lockstep_power_watts watts\n"
      "# HELP lockstep_power_watts Simulated power; times count from the start.\n");
  for (std::size_t of = 0; !rows.empty() && of < rows.front().watts.size(); ++of) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (replaced(i)) continue;
      file.write(fmt::format("lockstep_power_watts{{of=\"{}\"}} {} {}\n", kTraced[of],
                             number_text(rows[i].watts[of]), number_text(rows[i].time_s)));
    }
  }
  if (phases) {
    file.write(
        "# TYPE lockstep_phase gauge\n"
        "# HELP lockstep_phase What the run does: 1 for the phase that it is in.\n");
    for (const auto& name : run_bucket_names()) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (replaced(i)) continue;
        file.write(fmt::format("lockstep_phase{{phase=\"{}\"}} {} {}\n", name.key,
                               rows[i].phase == name.key ? 1 : 0, number_text(rows[i].time_s)));
      }
    }
  }
  file.write("# EOF\n");
}

bool is_open_metrics(const std::string& path) {
  return path.ends_with(".om") || path.ends_with(".om.gz");
}

void write_power_rows(const std::string& path, std::span<const PowerRow> rows, bool phases) {
  OutputFile file(path);
  is_open_metrics(path) ? write_open_metrics(file, rows, phases)
                        : write_power_csv(file, rows, phases);
  file.commit();
}

/// Of an hour at a site: columns of the CSV, and the series of OpenMetrics behind "lockstep_site_".
constexpr std::array<std::string_view, 17> kSiteColumns{
    "outside_celsius", "coolant_celsius", "pue",    "machines_w",   "facility_w",    "renewable_w",
    "battery_in_w",    "battery_out_w",   "grid_w", "given_away_w", "above_limit_w", "water_l",
    "usd_per_kwh",     "energy_usd",      "co2_g",  "generated_w",  "fuel_usd"};

/// Means over the hour, and sums of what is used up; nothing for what nobody said.
std::array<std::optional<double>, kSiteColumns.size()> site_row(const SiteHourBook& hour) {
  const SiteAmounts& of = hour.of;
  const auto watts = [&](Joules energy) { return (energy / hour.length).base_units(); };
  return {hour.outside,
          hour.coolant,
          hour.pue,
          watts(of.machines),
          watts(of.facility),
          watts(of.renewable),
          watts(of.battery_in),
          watts(of.battery_out),
          watts(of.imported),
          watts(of.given_away),
          watts(of.short_of),
          of.litres,
          hour.usd_per_kwh,
          of.energy_usd,
          of.grams,
          watts(of.generated),
          of.fuel_usd};
}

void write_site_metrics(OutputFile& file, const SiteBooks& books) {
  for (std::size_t i = 0; i < kSiteColumns.size(); ++i) {
    file.write(fmt::format("# TYPE lockstep_site_{} gauge\n", kSiteColumns[i]));
    double time_s = 0;
    for (const SiteHourBook& hour : books.hours) {
      if (const std::optional<double> value = site_row(hour)[i]) {
        file.write(fmt::format("lockstep_site_{} {} {}\n", kSiteColumns[i], number_text(*value),
                               number_text(time_s)));
      }
      time_s += hour.length.base_units();
    }
  }
  file.write("# EOF\n");
}

/// A line an hour.
void write_site_csv(OutputFile& file, const SiteBooks& books) {
  file.write(fmt::format("time_s,{}\n", fmt::join(kSiteColumns, ",")));
  double time_s = 0;
  for (const SiteHourBook& hour : books.hours) {
    std::vector<std::string> cells{number_text(time_s)};
    for (const std::optional<double>& value : site_row(hour)) {
      cells.push_back(value ? number_text(*value) : std::string());
    }
    file.write(csv_line(cells).str());
    time_s += hour.length.base_units();
  }
}

void write_site_hours(const std::string& path, const SiteBooks& books) {
  OutputFile file(path);
  is_open_metrics(path) ? write_site_metrics(file, books) : write_site_csv(file, books);
  file.commit();
}

}  // namespace

void write_power_trace(const std::string& path, const RunResult& result) {
  const StepPower& power = *result.power;
  const Scenario& s = result.scenario;
  const double gpus = static_cast<double>(s.nodes) * s.node.gpus;
  std::vector<PowerRow> rows;
  const auto add = [&](Seconds time, std::size_t i) {
    const PowerLevel level{power.gpus.power[i] / gpus, power.node.power[i],
                           power.facility.power[i]};
    rows.push_back({.time_s = time.base_units(), .watts = traced_watts(s, level)});
  };
  for (std::size_t i = 0; i < power.gpus.size(); ++i) add(power.gpus.start[i], i);
  add(power.gpus.end, power.gpus.size() - 1);
  write_power_rows(path, rows, false);
}

void write_power_trace(const std::string& path, const CampaignResult& result) {
  if (result.site) return write_site_hours(path, result.site->books);
  const StepPower& power = *result.power;
  const TrajectoryResult& run = *result.typical;
  std::vector<PowerRow> rows;
  const auto add = [&](RunTime time, RunBucket phase) {
    const PowerLevel& level = level_of(phase, power.levels);
    const bool steps = &level == &power.levels.training;
    std::vector<double> watts = traced_watts(result.scenario, level);
    watts.push_back((steps ? trough_power(power.facility) : level.facility).base_units());
    watts.push_back((steps ? peak_power(power.facility) : level.facility).base_units());
    rows.push_back({.time_s = to_seconds(time).base_units(),
                    .phase = run_bucket_names()[static_cast<std::size_t>(phase)].key,
                    .watts = std::move(watts)});
  };
  for (const RunPhase& phase : run.phases) add(phase.begin, phase.bucket);
  if (!run.phases.empty()) add(run.wall, run.phases.back().bucket);
  write_power_rows(path, rows, true);
}

}  // namespace lockstep
