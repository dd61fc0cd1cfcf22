#include "tools/lockstep/power_trace.hpp"

#include <array>

#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "sim/power/run_power.hpp"
#include "tools/console/table.hpp"

namespace lockstep {
namespace {

std::string watts_text(Watts w) { return number_text(w.base_units()); }

/// Of the mean GPU, node, rack and row, and of the facility. A rack or row that is not full counts
/// as full: it is one of many.
std::array<std::string, 5> power_cells(const Scenario& s, const PowerLevel& level) {
  const Watts rack = s.node.chassis->nodes_per_rack * level.node;
  return {watts_text(level.gpu), watts_text(level.node), watts_text(rack),
          watts_text(s.power->facility.racks_per_row * rack), watts_text(level.facility)};
}

/// A line an hour; means over the hour.
void write_site_hours(const std::string& path, const SiteBooks& books) {
  OutputFile file(path);
  file.write(
      "time_s,outside_celsius,coolant_celsius,pue,machines_w,facility_w,renewable_w,battery_in_w,"
      "battery_out_w,grid_w,given_away_w,above_limit_w,water_l,usd_per_kwh,energy_usd,co2_g\n");
  double time_s = 0;
  for (const SiteHourBook& hour : books.hours) {
    const SiteAmounts& of = hour.of;
    std::vector<std::string> cells;
    for (const double value : {time_s, hour.outside, hour.coolant, hour.pue}) {
      cells.push_back(number_text(value));
    }
    for (const Joules energy : {of.machines, of.facility, of.renewable, of.battery_in,
                                of.battery_out, of.imported, of.given_away, of.short_of}) {
      cells.push_back(watts_text(energy / hour.length));
    }
    for (const double value : {of.litres, hour.usd_per_kwh, of.energy_usd, of.grams}) {
      cells.push_back(number_text(value));
    }
    file.write(csv_line(cells).str());
    time_s += hour.length.base_units();
  }
  file.commit();
}

}  // namespace

void write_power_trace(const std::string& path, const RunResult& result) {
  const StepPower& power = *result.power;
  const Scenario& s = result.scenario;
  const double gpus = static_cast<double>(s.nodes) * s.node.gpus;
  OutputFile file(path);
  file.write("time_s,gpu_w,node_w,rack_w,row_w,facility_w\n");
  const auto write = [&](Seconds time, std::size_t i) {
    std::vector<std::string> cells{number_text(time.base_units())};
    const PowerLevel level{power.gpus.power[i] / gpus, power.node.power[i],
                           power.facility.power[i]};
    for (std::string& cell : power_cells(s, level)) cells.push_back(std::move(cell));
    file.write(csv_line(cells).str());
  };
  for (std::size_t i = 0; i < power.gpus.size(); ++i) write(power.gpus.start[i], i);
  write(power.gpus.end, power.gpus.size() - 1);
  file.commit();
}

void write_power_trace(const std::string& path, const CampaignResult& result) {
  if (result.site) return write_site_hours(path, result.site->books);
  const StepPower& power = *result.power;
  const TrajectoryResult& run = *result.typical;
  OutputFile file(path);
  file.write("time_s,phase,gpu_w,node_w,rack_w,row_w,facility_w,facility_low_w,facility_high_w\n");
  const auto write = [&](RunTime time, RunBucket phase) {
    const PowerLevel& level = level_of(phase, power.levels);
    const bool steps = &level == &power.levels.training;
    std::vector<std::string> cells{
        number_text(to_seconds(time).base_units()),
        std::string(run_bucket_names()[static_cast<std::size_t>(phase)].key)};
    for (std::string& cell : power_cells(result.scenario, level)) cells.push_back(std::move(cell));
    cells.push_back(watts_text(steps ? trough_power(power.facility) : level.facility));
    cells.push_back(watts_text(steps ? peak_power(power.facility) : level.facility));
    file.write(csv_line(cells).str());
  };
  for (const RunPhase& phase : run.phases) write(phase.begin, phase.bucket);
  if (!run.phases.empty()) write(run.wall, run.phases.back().bucket);
  file.commit();
}

}  // namespace lockstep
