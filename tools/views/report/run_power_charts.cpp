#include "tools/views/report/run_power_charts.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <fmt/format.h>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/power/run_power.hpp"
#include "tools/console/table.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/report/run_words.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

/// How a series is drawn.
struct PowerChart {
  const PowerSeries& series;
  AxisUnit time;
  bool from_zero = true;
  bool zooms = false;
  Seconds meter{};  ///< whose readings are drawn too; 0: none
};

json power_line(const char* name, json data) {
  return {{"type", "line"},
          {"name", name},
          {"step", "middle"},
          {"showSymbol", false},
          {"encode", {{"x", 1}, {"y", 0}}},
          {"emphasis", {{"disabled", true}}},
          {"data", std::move(data)}};
}

/// Band from the lowest to the highest power of each bin, and the mean as a line. Points are
/// [power, time], so that powers are what is stacked; the mean's carry the extremes for the
/// tooltip.
json power_lines(const PowerBins& bins, double end_s, const AxisUnit& time, const AxisUnit& power) {
  json low = json::array(), width = json::array(), mean = json::array();
  const auto add = [&](std::size_t bin, double at_s) {
    const double at = shown_digits(at_s / time.size, 6);
    const auto shown = [&](Watts w) { return shown_digits(w.base_units() / power.size, 5); };
    low.push_back({shown(bins.low[bin]), at});
    width.push_back({shown(bins.high[bin] - bins.low[bin]), at});
    mean.push_back({shown(bins.mean[bin]), at, shown(bins.low[bin]), shown(bins.high[bin])});
  };
  const std::size_t count = bins.mean.size();
  add(0, 0);
  for (std::size_t bin = 0; bin < count; ++bin) {
    add(bin, end_s * (static_cast<double>(bin) + 0.5) / static_cast<double>(count));
  }
  add(count - 1, end_s);
  json base = power_line("lowest", low), band = power_line("lowest to highest", width);
  const json quiet{{"stack", "band"}, {"silent", true}, {"lineStyle", {{"width", 0}}}};
  base.update(quiet);
  band.update(quiet);
  band.update({{"itemStyle", {{"color", "@colour-0"}, {"opacity", 0.3}}},
               {"areaStyle", {{"color", "@colour-0"}, {"opacity", 0.25}}}});
  json line = power_line("mean", mean);
  line.update({{"lineStyle", {{"width", 1.5}, {"color", "@colour-0"}}},
               {"itemStyle", {{"color", "@colour-0"}}}});
  return json::array({base, band, line});
}

json meter_line(const PowerChart& chart, const AxisUnit& power) {
  const std::vector<Watts> profile =
      metered_profile(chart.series, chart.meter, static_cast<int>(kPowerBins));
  const double end_s = chart.series.end.base_units();
  json data = json::array();
  for (std::size_t bin = 0; bin < profile.size(); ++bin) {
    const double at = end_s * (static_cast<double>(bin) + 0.5) / static_cast<double>(kPowerBins);
    data.push_back({shown_digits(profile[bin].base_units() / power.size, 5),
                    shown_digits(at / chart.time.size, 6)});
  }
  json line = power_line("meter", std::move(data));
  line.erase("step");
  line.update({{"lineStyle", {{"width", 2}, {"color", "@colour-1"}}},
               {"itemStyle", {{"color", "@colour-1"}}}});
  return line;
}

json power_options(const PowerChart& chart) {
  const double end_s = chart.series.end.base_units();
  const AxisUnit power = power_unit(peak_power(chart.series).base_units());
  json series = power_lines(bin_power(chart.series, kPowerBins), end_s, chart.time, power);
  json legend{"mean", "lowest to highest"};
  if (chart.meter > Seconds{}) {
    series.push_back(meter_line(chart, power));
    legend.push_back("meter");
  }
  json options{
      {"lockstep", {{"unit", power.name}, {"unit_s", chart.time.size}, {"time", chart.time.name}}},
      {"grid", plot_grid(40, chart.zooms ? 44 : 4)},
      {"legend", {{"top", 0}, {"left", 0}, {"data", legend}}},
      {"tooltip", {{"trigger", "axis"}, {"formatter", "@power"}, {"confine", true}}},
      {"xAxis", time_axis(end_s / chart.time.size, chart.time.name)},
      {"yAxis",
       {{"type", "value"},
        {"scale", !chart.from_zero},
        {"axisLabel", {{"formatter", "{value} " + power.name}}}}},
      {"series", series}};
  if (chart.zooms) {
    options["dataZoom"] = time_zoom();
    for (json& each : options["dataZoom"]) each["filterMode"] = "none";
  }
  return options;
}

std::string range_text(const PowerSeries& series) {
  return fmt::format("Mean {}, from {} to {}.", page_watts(mean_power(series).base_units()),
                     page_watts(trough_power(series).base_units()),
                     page_watts(peak_power(series).base_units()));
}

void add_power_figures(Page& page, const CampaignResult& result) {
  const StepPower& power = *result.power;
  const PowerSpec& spec = *result.scenario.power;
  const MeterReading& meter = power.facility_meter;
  const Watts limit = spec.cap.value_or(result.scenario.node.gpu.power_limit);
  // Beside a site's own figures, which are of the weather of its hours.
  const std::string of_step =
      result.site
          ? fmt::format(", at {:g} °C outside; under \"Site\" by its hours", spec.outside_celsius)
          : "";
  const bool held = result.site && result.site->books.capping.capped > Seconds{};
  std::vector<PageFigure> figures{
      {.value = page_watts(mean_power(power.facility).base_units()),
       .label = fmt::format("mean of a step, the whole site{}{}", of_step,
                            held ? ", before the path holds it back" : "")},
      {.value = page_watts((meter.high - meter.low).base_units()),
       .label = fmt::format(
           "swing that a meter of {} reads: {} to {}", page_setting(spec.meter.base_units()),
           page_watts(meter.low.base_units()), page_watts(meter.high.base_units()))},
      {.value = page_with(power.ramp_w_per_s * 1e-6, "MW/s"),
       .label = fmt::format("steepest ramp, over {}", page_setting(spec.ramp_window.base_units()))},
      {.value = fmt::format("{:.3f}", power.pue), .label = "PUE: site over IT power" + of_step},
      {.value = page_watts(power.gpu_mean.base_units()),
       .label = fmt::format(
           "mean GPU, from {} to {}; its limit is {}", page_watts(power.gpu_trough.base_units()),
           page_watts(power.gpu_peak.base_units()), page_watts(limit.base_units()))}};
  figures.push_back({.value = page_watts(power.gpu_nameplate.base_units()),
                     .label = "nameplate of all GPUs, by their datasheet"});
  if (power.site_nodes) {
    figures.push_back(
        {.value = grouped(*power.site_nodes),
         .label = fmt::format("nodes fit under {}{}", page_watts(spec.site_limit->base_units()),
                              result.site ? " in the run's hour of the highest PUE" : "")});
  }
  page.figures(figures);
}

constexpr std::string_view kReserve = "reserve";

/// A consumer as people call it; one that is not listed by its key.
std::string share_words(std::string_view key) {
  struct Name {
    std::string_view key, words;
  };
  constexpr std::array kNames{Name{"gpu_fixed", "GPUs: leakage, clocks, idle engines"},
                              Name{"gpu_tensor", "GPUs: matrix products and attention"},
                              Name{"gpu_hbm", "GPUs: memory traffic"},
                              Name{"gpu_link", "GPUs: NVLink and network traffic"},
                              Name{"gpu_ballast", "GPUs: burnt to keep the power up"},
                              Name{"gpu_unused", "GPUs that the job does not use"},
                              Name{"cpus", "CPUs"},
                              Name{"memory", "Host memory"},
                              Name{"drives", "Drives"},
                              Name{"boards", "Boards"},
                              Name{"nics", "NICs"},
                              Name{"nvlink_switches", "NVLink switches"},
                              Name{"fans", "Fans of the servers"},
                              Name{"power_supplies", "Losses of power supplies"},
                              Name{"switches", "Network switches"},
                              Name{"optics", "Optical plugs"},
                              Name{"cooling_and_distribution", "Cooling and distribution"},
                              Name{kReserve, "Nodes in reserve, which idle, with what cools them"}};
  const auto* const name = std::ranges::find(kNames, key, &Name::key);
  return std::string(name == kNames.end() ? key : name->words);
}

void add_shares_table(Page& page, const StepPower& power) {
  const double all = power.energy().base_units();
  std::vector<PowerShare> shares = power.shares;
  Joules told;
  for (const PowerShare& share : shares) told += share.energy;
  // Nodes in reserve are in the site's power, and in no consumer's share of the step.
  const Joules untold = power.energy() - told;
  if (untold > 1e-6 * power.energy()) shares.push_back({kReserve, untold});
  std::ranges::stable_sort(shares, std::ranges::greater{}, &PowerShare::energy);
  std::erase_if(shares, [](const PowerShare& share) { return share.energy <= Joules{}; });
  if (shares.empty() || all <= 0) return;
  PageTable table{.columns = {{.title = "Where a step's energy goes"},
                              {.title = "Share", .numeric = true},
                              {.title = "Mean power", .numeric = true},
                              {.title = "Energy", .numeric = true}},
                  .sorted_by = 1};
  const double largest = shares.front().energy.base_units();
  // All in the unit of the largest, or they are not to be compared.
  constexpr double kKilojoule = 1e3, kKilowattHour = 3.6e6, kMegawattHour = 3.6e9;
  const AxisUnit unit = largest >= kMegawattHour   ? AxisUnit{kMegawattHour, "MWh"}
                        : largest >= kKilowattHour ? AxisUnit{kKilowattHour, "kWh"}
                                                   : AxisUnit{kKilojoule, "kJ"};
  for (const PowerShare& share : shares) {
    const double joules = share.energy.base_units();
    table.rows.push_back(
        {PageCell::text(share_words(share.name)),
         {.content = with_bar(page_percent(joules / all, 1), joules / largest),
          .sort = joules / all},
         PageCell::number(page_watts(joules / power.step_s), joules / power.step_s),
         PageCell::number(page_with(joules / unit.size, unit.name), joules)});
  }
  page.table(table);
}

}  // namespace

PowerBins bin_power(const PowerSeries& series, std::size_t bins) {
  assert(series.size() > 0 && series.end > Seconds{} && bins >= 1);
  PowerBins out;
  out.width = series.end / static_cast<double>(bins);
  std::size_t i = 0;
  for (std::size_t bin = 0; bin < bins; ++bin) {
    const Seconds begin = static_cast<double>(bin) * out.width;
    const Seconds end = bin + 1 == bins ? series.end : static_cast<double>(bin + 1) * out.width;
    while (i + 1 < series.size() && series.until(i) <= begin) ++i;
    Joules sum;
    Watts low = series.power[i], high = low;
    for (std::size_t k = i; k < series.size() && series.start[k] < end; ++k) {
      const Seconds from = std::max(begin, series.start[k]), to = std::min(end, series.until(k));
      if (to <= from) continue;
      sum += series.power[k] * (to - from);
      low = std::min(low, series.power[k]);
      high = std::max(high, series.power[k]);
    }
    out.low.push_back(low);
    out.high.push_back(high);
    out.mean.push_back(sum / (end - begin));
  }
  return out;
}

void add_step_charts(Page& page, const StepPower& power, Seconds meter, std::string_view over) {
  if (power.facility.size() == 0 || !(power.step_s > 0)) return;
  const AxisUnit time = time_unit(power.step_s);
  const auto add = [&](const std::string& title, const PowerSeries& series,
                       const MeterReading& reading) {
    if (series.size() == 0) return;
    const std::string metered =
        fmt::format(" A meter of {} reads {} to {}. The axis is cut off below.",
                    page_setting(meter.base_units()), page_watts(reading.low.base_units()),
                    page_watts(reading.high.base_units()));
    page.chart({.title = title,
                .about = range_text(series) + metered,
                .summary = fmt::format("{}: {}", title, range_text(series)),
                .height_px = 260},
               power_options({.series = series, .time = time, .from_zero = false, .meter = meter}));
  };
  page.begin_row();
  add(fmt::format("The site over {}", over), power.facility, power.facility_meter);
  add(fmt::format("The mean node over {}", over), power.node, power.node_meter);
  page.end_row();
}

void add_run_power(Page& page, const CampaignResult& result) {
  const StepPower& power = *result.power;
  page.section("Power",
               "A run of phases, each at its own level: training, kernels that spin while a "
               "checkpoint or a hang holds the job, processes that start, machines that idle.");
  add_power_figures(page, result);
  // The levels are those of all machines: where these come in lots, no chart is better than one of
  // machines that are not there yet.
  if (!result.site && !result.fleet && result.typical && !result.typical->phases.empty()) {
    const PowerSeries series =
        run_series(result.typical->phases, result.typical->wall, power.levels);
    page.chart(
        {.title = "The site over the run shown above",
         .about =
             range_text(series) +
             fmt::format(" In stretches of {}: their mean and their extremes.",
                         page_setting(series.end.base_units() / static_cast<double>(kPowerBins))),
         .summary = "The site's power over the run: " + range_text(series),
         .hint = kZoomHint},
        power_options(
            {.series = series, .time = long_time_unit(series.end.base_units()), .zooms = true}));
  }
  add_step_charts(page, power, result.scenario.power->meter, "a step");
  add_shares_table(page, power);
}

}  // namespace lockstep
