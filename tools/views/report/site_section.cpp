#include "tools/views/report/site_section.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/site/site_availability.hpp"
#include "sim/site/standby_figures.hpp"
#include "tools/console/table.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/empty_columns.hpp"
#include "tools/views/report/money_section.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/run/battery_words.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr std::size_t kMostPoints = 1100;
constexpr double kHourSeconds = 3600;
constexpr double kSiteMwh = 3.6e9;

/// A line of a chart over the run's hours.
struct HourLine {
  std::string name;
  double (*value)(const SiteHourBook& hour);  ///< in the chart's unit; not finite: none
  std::size_t colour = 0;
  double width_px = 1.5;
  bool lowest = false;  ///< of hours that are one point: the lowest
};

/// Hours in so many groups that a line has few enough points: each group's highest hour, which is
/// what limits meet, or its lowest.
json line_points(const std::vector<SiteHourBook>& hours, const HourLine& line, double scale,
                 double per_unit) {
  const std::size_t group = (hours.size() + kMostPoints - 1) / kMostPoints;
  json out = json::array();
  for (std::size_t h = 0; h < hours.size(); h += group) {
    double point = line.value(hours[h]);
    for (std::size_t i = h + 1; i < std::min(h + group, hours.size()); ++i) {
      const double value = line.value(hours[i]);
      point = line.lowest ? std::min(point, value) : std::max(point, value);
    }
    if (!std::isfinite(point)) continue;
    out.push_back({four_digits(static_cast<double>(h) * kHourSeconds / per_unit),
                   shown_digits(point / scale, 5)});
  }
  return out;
}

/// How a chart of hours is drawn.
struct HourChart {
  std::vector<HourLine> lines;
  double scale = 1;
  std::string unit;
  bool from_zero = true;
};

json hour_options(const SiteBooks& books, const HourChart& chart) {
  const double end_s = static_cast<double>(books.hours.size()) * kHourSeconds;
  const AxisUnit time = long_time_unit(end_s);
  json series = json::array(), names = json::array();
  for (const HourLine& line : chart.lines) {
    json points = line_points(books.hours, line, chart.scale, time.size);
    if (points.empty()) continue;
    names.push_back(line.name);
    series.push_back(
        {{"type", "line"},
         {"name", line.name},
         {"step", "end"},
         {"showSymbol", false},
         {"emphasis", {{"disabled", true}}},
         {"lineStyle", {{"width", line.width_px}, {"color", chart_colour(line.colour)}}},
         {"itemStyle", {{"color", chart_colour(line.colour)}}},
         {"data", std::move(points)}});
  }
  json options{{"grid", plot_grid(40, 44)},
               {"legend", {{"top", 0}, {"left", 0}, {"data", names}}},
               {"tooltip", {{"trigger", "axis"}, {"confine", true}}},
               {"xAxis", time_axis(end_s / time.size, time.name)},
               {"yAxis",
                {{"type", "value"},
                 {"scale", !chart.from_zero},
                 {"axisLabel", {{"formatter", "{value} " + chart.unit}}}}},
               {"series", series},
               {"dataZoom", time_zoom()}};
  for (json& each : options["dataZoom"]) each["filterMode"] = "none";
  return options;
}

/// Whether nothing else stands in for the grid, nor takes from it beside the site.
bool all_from_grid(const SiteBooks& books) { return books.sum.imported == books.sum.facility; }

double watts_over(const SiteHourBook& hour, Joules energy) {
  return energy.base_units() / hour.length.base_units();
}

void add_power_chart(Page& page, const CampaignResult& result) {
  const SiteBooks& books = result.site->books;
  const AxisUnit unit = power_unit(books.power.drawn.base_units());
  HourChart chart{
      .lines = {{"site", [](const SiteHourBook& h) { return watts_over(h, h.of.facility); }, 0},
                {"limit of the grid", [](const SiteHourBook& h) { return h.limit.base_units(); },
                 2}},
      .scale = unit.size,
      .unit = unit.name};
  const bool same = all_from_grid(books);
  if (!same) {
    // Most hours they are one line: the one below stays in sight on both sides of the other.
    chart.lines.front().width_px = 4;
    chart.lines.push_back(
        {"from the grid", [](const SiteHourBook& h) { return watts_over(h, h.of.imported); }, 1});
    // Others stand in for it: their highest hour beside its highest would be more than there is.
    chart.lines.back().lowest = true;
  }
  if (books.sum.renewable > Joules{}) {
    chart.lines.push_back(
        {"sun and wind", [](const SiteHourBook& h) { return watts_over(h, h.of.renewable); }, 3});
  }
  if (books.sum.battery_out > Joules{}) {
    chart.lines.push_back(
        {"battery", [](const SiteHourBook& h) { return watts_over(h, h.of.battery_out); }, 4});
  }
  if (books.sum.generated > Joules{}) {
    chart.lines.push_back(
        {"generators", [](const SiteHourBook& h) { return watts_over(h, h.of.generated); }, 5});
  }
  const std::size_t group = (books.hours.size() + kMostPoints - 1) / kMostPoints;
  const std::string grouping =
      group == 1 ? "Hour by hour."
                 : fmt::format(
                       "The highest of each {} hours{}: what takes less time, such as a stop "
                       "without power, is not seen in it.",
                       group, same ? "" : ", and of what comes from the grid the lowest");
  page.chart({.title = "Power of the site",
              .about = grouping,
              .summary = fmt::format("Power of the site by the hour, at most {}.",
                                     page_watts(books.power.drawn.base_units())),
              .height_px = 300,
              .hint = kZoomHint},
             hour_options(books, chart));
}

void add_weather_charts(Page& page, const CampaignResult& result) {
  const SiteBooks& books = result.site->books;
  HourChart weather{.lines = {{"outside", [](const SiteHourBook& h) { return h.outside; }, 0}},
                    .scale = 1,
                    .unit = "°C",
                    .from_zero = false};
  std::string about = fmt::format("At most {:.1f} °C outside.", books.warmest_outside);
  if (result.site->plan->spec.cooling) {
    weather.lines.push_back(
        {"coolant at the machines", [](const SiteHourBook& h) { return h.coolant; }, 1});
    about += fmt::format(" The coolant reaches {:.1f} °C; cards keep their limit up to {:g} °C.",
                         books.warmest_coolant, result.site->plan->spec.cooling->law.rated_celsius);
  }
  // Nobody said the weather: one temperature all the time is no chart.
  const bool warms = std::ranges::any_of(
      books.hours, [&](const SiteHourBook& h) { return h.outside != books.hours.front().outside; });
  page.begin_row();
  if (warms || result.site->plan->spec.cooling) {
    page.chart({.title = "Temperature", .about = about, .summary = about, .height_px = 260},
               hour_options(books, weather));
  }
  const HourChart tariff{
      .lines = {{"tariff", [](const SiteHourBook& h) { return 1e3 * h.usd_per_kwh; }, 3}},
      .scale = 1,
      .unit = "USD/MWh",
      .from_zero = true};
  const bool changes = std::ranges::any_of(books.hours, [&](const SiteHourBook& h) {
    return h.usd_per_kwh != books.hours.front().usd_per_kwh;
  });
  if (changes) {
    page.chart({.title = "Price of energy",
                .about = "By the hour.",
                .summary = "Price of energy by the hour.",
                .height_px = 260},
               hour_options(books, tariff));
  }
  page.end_row();
}

/// How often the path loses all power from outside, and how much of that nothing covers.
void add_blackout_figures(std::vector<PageFigure>& figures, const SitePlan& plan) {
  const std::optional<StandbyFigures> standby = standby_figures(plan);
  if (!standby || !standby->blackouts) return;
  const Blackouts& of = *standby->blackouts;
  figures.push_back({.value = significant(of.per_year),
                     .label = fmt::format("losses of all power from outside a year, of {} on "
                                          "average, by closed form",
                                          page_duration(of.lasts.base_units()))});
  figures.push_back({.value = page_percent(of.uncovered, 3),
                     .label = "of them outlast batteries and generators, by closed form"});
}

void add_site_figures(Page& page, const CampaignResult& result) {
  const SiteBooks& books = result.site->books;
  const RunSummary& s = result.summary;
  const bool same = all_from_grid(books);
  std::vector<PageFigure> figures{
      {.value = page_watts(books.power.drawn.base_units()),
       .label = same && books.power.grid
                    ? fmt::format("highest hour of the site, all of it from the grid, which gives "
                                  "{}",
                                  page_watts(books.power.grid->base_units()))
                    : "highest hour of the site"},
      {.value = page_watts(books.power.nameplate.base_units()),
       .label = "nameplate of all GPUs, by their datasheet"}};
  if (books.power.grid && !same) {
    figures.push_back({.value = page_watts(books.power.imported.base_units()),
                       .label = fmt::format("highest hour from the grid, which gives {}",
                                            page_watts(books.power.grid->base_units()))});
  }
  if (books.power.path) {
    figures.push_back({.value = page_watts(books.power.machines.base_units()),
                       .label = fmt::format("highest hour of the machines, to which the path "
                                            "brings {}",
                                            page_watts(books.power.path->base_units()))});
  }
  if (const std::optional<Provision> tightest = books.power.tightest()) {
    // Where cards are held to what is brought, the last millionth is rounding.
    const double left_w = tightest->left().base_units();
    const bool all = std::abs(left_w) < 1e-6 * tightest->brings.base_units();
    figures.push_back({.value = page_watts(all ? 0.0 : left_w),
                       .label = "stranded: provided for, and never used"});
  }
  if (books.power.firm) {
    figures.push_back({.value = page_watts(books.power.firm->base_units()),
                       .label = "firm: with the worst unit of the path broken"});
  }
  const SiteAvailability available = site_availability(*result.site->plan, books.hours.size());
  if (available.all && (available.path || available.cooling || available.grid)) {
    const bool standby = available.all_with_standby.has_value();
    const bool too_narrow = available.path && *available.path <= 0;
    if (too_narrow || (*available.all == 0 && books.unbound_share() == 0)) {
      figures.push_back(
          {.value = "never",
           .label = too_narrow
                        ? "does the site hold nothing back: its path of power brings less "
                          "than all machines draw, even where nothing is broken"
                        : "does the site hold nothing back: limits hold machines back all of "
                          "the time, by closed forms and in this run"});
    } else {
      figures.push_back(
          {.value = standby ? page_percent(*available.all_with_standby, 5)
                            : page_percent(*available.all, 3),
           .label = fmt::format(
               "of the time the site holds nothing back, by closed forms{}; {} of this run",
               standby ? fmt::format(" with batteries and generators ({} without them)",
                                     page_percent(*available.all, 3))
                       : "",
               page_percent(books.unbound_share(), 3))});
    }
  }
  add_blackout_figures(figures, *result.site->plan);
  figures.push_back({.value = page_duration(s.site_slowed_s),
                     .label = "of full speed lost to limits of the site, mean of runs"});
  figures.push_back({.value = significant(s.site_stops),
                     .label = s.site_stops > 0
                                  ? fmt::format("stops without power, which cost {}, mean of runs",
                                                page_duration(s.site_stopped_s))
                                  : "stops without power, mean of runs"});
  if (books.sum.machines > Joules{}) {
    figures.push_back({.value = fmt::format("{:.3f}", books.sum.facility / books.sum.machines),
                       .label = "PUE over the run, by its hours"});
  }
  if (books.battery_end) {
    figures.push_back(
        {.value = page_with(books.battery_end->base_units() / kSiteMwh, "MWh"),
         .label = fmt::format("in the battery at the end; it begins full, with {} that nobody paid "
                              "for",
                              page_with(books.battery_begin->base_units() / kSiteMwh, "MWh"))});
  }
  if (books.standby.outages > 0) {
    figures.push_back(
        {.value = fmt::format("{} of {}", books.standby.outages - books.standby.uncovered,
                              books.standby.outages),
         .label = fmt::format("outages covered by batteries and generators, which ran {}",
                              page_duration(books.generators_ran.base_units()))});
  }
  if (books.sum.generated > Joules{}) {
    std::string label = "given by generators";
    if (books.sum.fuel_usd > 0) label += fmt::format(", for {}", page_usd(books.sum.fuel_usd));
    if (books.sum.fuel_grams > 0) {
      label += fmt::format(", with {} of CO₂", page_with(books.sum.fuel_grams * 1e-6, "t"));
    }
    figures.push_back({.value = page_energy(books.sum.generated.base_units()), .label = label});
  }
  if (books.sum.litres > 0) {
    figures.push_back({.value = page_with(books.sum.litres * 1e-6, "Ml"),
                       .label = "of water for cooling (million litres)"});
  }
  if (books.usd() != 0) {
    figures.push_back({.value = page_usd(books.usd()),
                       .label = books.demand_usd > 0
                                    ? fmt::format("for energy, {} of it for the highest hours",
                                                  page_usd(books.demand_usd))
                                    : "for energy"});
  }
  page.figures(figures);
}

void add_month_table(Page& page, const CampaignResult& result) {
  const SiteBooks& books = result.site->books;
  const bool same = all_from_grid(books);
  PageTable table{
      .columns = {{.title = "Month"},
                  {.title = "Outside", .numeric = true, .about = "mean"},
                  {.title = "Energy", .numeric = true},
                  {.title = "PUE", .numeric = true},
                  {.title = "From the grid", .numeric = true},
                  {.title = same ? "Highest hour" : "Highest hour from the grid", .numeric = true},
                  {.title = "Battery above",
                   .numeric = true,
                   .about = "it aims at standing in for what the grid would give above "
                            "that"},
                  {.title = "Water", .numeric = true},
                  {.title = "Carbon", .numeric = true},
                  {.title = "Energy paid", .numeric = true, .about = "by its tariff"},
                  {.title = "Highest hour paid",
                   .numeric = true,
                   .about = "by the price of a kW and month"},
                  {.title = "Money", .numeric = true}},
      .rows = {}};
  const auto usd_cell = [](double usd) {
    return usd != 0 ? PageCell::number(signed_usd(usd), usd) : PageCell::unknown();
  };
  for (const SiteMonthBook& month : books.months) {
    const double usd = month.of.energy_usd + month.demand_usd;
    const double pue = month.of.machines > Joules{} ? month.of.facility / month.of.machines : 1.0;
    table.rows.push_back(
        {PageCell::text(fmt::format("{}-{:02}", month.year, month.month)),
         PageCell::number(fmt::format("{:.1f} °C", month.outside), month.outside),
         PageCell::number(page_energy(month.of.facility.base_units()),
                          month.of.facility.base_units()),
         PageCell::number(fmt::format("{:.3f}", pue), pue),
         same ? PageCell::unknown()
              : PageCell::number(page_energy(month.of.imported.base_units()),
                                 month.of.imported.base_units()),
         PageCell::number(page_watts(month.peak.base_units()), month.peak.base_units()),
         month.shave_above ? PageCell::number(page_watts(month.shave_above->base_units()),
                                              month.shave_above->base_units())
                           : PageCell::unknown(),
         month.of.litres > 0
             ? PageCell::number(page_with(month.of.litres * 1e-6, "Ml"), month.of.litres)
             : PageCell::unknown(),
         month.of.grams ? PageCell::number(page_with(*month.of.grams * 1e-6, "t"), *month.of.grams)
                        : PageCell::unknown(),
         month.demand_usd != 0 ? usd_cell(month.of.energy_usd) : PageCell::unknown(),
         usd_cell(month.demand_usd), usd_cell(usd)});
  }
  drop_empty_columns(table);
  page.table(table);
  // How full it is stands among the figures.
  std::vector<std::string> battery = battery_words(*result.site);
  if (battery.size() < 2) return;
  battery.erase(battery.begin());
  battery.front() = "the battery" + battery.front().substr(std::string_view("it").size());
  for (std::string& words : battery) words[0] = static_cast<char>(std::toupper(words[0]));
  page.list(battery);
}

void add_lost_table(Page& page, const CampaignResult& result) {
  constexpr double kRoundingOfRun = 1e-6;  // s: clocks of a run count nanoseconds
  constexpr std::array<std::string_view, std::size(kSiteBounds)> kWords{
      "", "the grid gives too little", "the coolant is too warm",
      "the path of power is broken or too narrow",
      "the grid's ramp, on the way up from a slower pace"};
  PageTable table{.columns = {{.title = "What held the job back"},
                              {.title = "Training lost",
                               .numeric = true,
                               .about = "in the run whose goodput is the median"}},
                  .rows = {},
                  .sorted_by = 1};
  for (std::size_t b = 1; b < kWords.size(); ++b) {
    const double lost = result.site->books.lost[b];
    if (lost < kRoundingOfRun) continue;
    table.rows.push_back({PageCell::text(kWords[b]), PageCell::number(page_duration(lost), lost)});
  }
  if (!table.rows.empty()) page.table(table);
}

void add_bank_table(Page& page, const CampaignResult& result) {
  const SiteSpec& spec = result.site->plan->spec;
  PageTable table{
      .columns = {{.title = "Units that fail"},
                  {.title = "Units", .numeric = true},
                  {.title = "All up", .numeric = true, .about = "closed form"},
                  {.title = "At most one down", .numeric = true, .about = "closed form"},
                  {.title = "Down on average", .numeric = true}},
      .rows = {}};
  const auto add = [&](const UnitBank& bank, const std::string& name) {
    if (bank.mean_time <= Seconds{}) return;  // never fails
    const std::vector<double> down = units_down(bank);
    double mean = 0;
    for (std::size_t i = 1; i < down.size(); ++i) mean += static_cast<double>(i) * down[i];
    const double one = down[0] + (down.size() > 1 ? down[1] : 0);
    table.rows.push_back({PageCell::text(name), PageCell::number(grouped(bank.units), bank.units),
                          PageCell::number(page_percent(down[0], 3), down[0]),
                          PageCell::number(page_percent(one, 3), one),
                          PageCell::number(significant(mean), mean)});
  };
  for (const PowerPart& part : spec.path) add(part.bank, part.bank.name);
  if (spec.cooling) {
    add(spec.cooling->bank, "Cooling");
    for (const CoolingStage& stage : spec.cooling->loop) add(stage.bank, stage.bank.name);
  }
  if (!table.rows.empty()) page.table(table);
}

/// What keeps a step's swing within the grid's ramp, and what each way costs.
void add_smoothing(Page& page, const CampaignResult& result) {
  const SitePlan& plan = *result.site->plan;
  const std::vector<SmoothingWay>& ways = plan.ramp.ways;
  if (ways.empty()) return;
  const auto megawatts = [](double w_per_s) { return page_with(w_per_s * 1e-6, "MW/s"); };
  page.section("Smoothing",
               fmt::format("A step changes the site's power by up to {} over {}; the grid allows "
                           "{}. As much of each way as just keeps to it, and what it costs.",
                           megawatts(ways.front().ramp_w_per_s),
                           page_setting(result.work().scenario.power->ramp_window.base_units()),
                           megawatts(*plan.spec.ramp_w_per_s)));
  PageTable table{.columns = {{.title = "Way"},
                              {.title = "Steepest change", .numeric = true},
                              {.title = "Step", .numeric = true},
                              {.title = "Longer by", .numeric = true},
                              {.title = "Energy of a step", .numeric = true},
                              {.title = "More by", .numeric = true},
                              {.title = "Keeps to the ramp"}},
                  .rows = {}};
  for (const SmoothingWay& way : ways) {
    const double longer = way.step / ways.front().step - 1;
    const double more = way.energy / ways.front().energy - 1;
    table.rows.push_back(
        {PageCell::text(smoothing_words(way)),
         PageCell::number(megawatts(way.ramp_w_per_s), way.ramp_w_per_s),
         PageCell::number(page_duration(way.step.base_units()), way.step.base_units()),
         PageCell::number(page_percent(longer, 2), longer),
         PageCell::number(page_energy(way.energy.base_units()), way.energy.base_units()),
         PageCell::number(page_percent(more, 2), more),
         PageCell::text(way.keeps               ? "yes"
                        : &way == &ways.front() ? "no"
                                                : "no, this is the best")});
  }
  page.table(table);
  if (plan.ramp.start > Seconds{}) {
    std::string words = restart_ramp_words(plan);
    words[0] = static_cast<char>(std::toupper(words[0]));
    page.paragraph(escaped(words + "."));
  }
  if (!ways.back().keeps && ways.back().over) {
    page.paragraph(escaped(
        "Begun one after the other, replicas still sum gradients, update and exchange weights at "
        "one time: there the power changes as steeply."));
  }
}

/// What a path that brings less than all peaks saves, and what holding cards then costs.
void add_capping(Page& page, const CampaignResult& result) {
  const SiteBooks& books = result.site->books;
  const std::optional<PathProvision> path = path_provision(*result.site->plan, books.power);
  const PathCapping& held = books.capping;
  if (!path || (path->oversubscription() <= 1 && held.capped <= Seconds{})) return;
  page.section(
      "Capping",
      fmt::format("The path of power brings {} to nodes that take {} with their cards at "
                  "their datasheet's power: when the mean of a step is more, cards are held "
                  "to what it brings, and steps take longer. Peaks within a step are not held.",
                  page_watts(path->brings.base_units()), page_watts(path->peaks.base_units())));
  const double gpu_hours = held.lost.base_units() / kHourSeconds * result.work().gpus();
  std::vector<PageFigure> figures{
      {.value = fmt::format("{:.2f}", path->oversubscription()),
       .label = "sum of peaks over what the path brings"},
      {.value = page_watts(path->avoided().base_units()),
       .label = "of peaks that the path need not bring"},
      {.value = page_percent(held.trained > Seconds{} ? held.capped / held.trained : 0.0, 1),
       .label = "of the training was held"}};
  if (held.capped > Seconds{}) {
    figures.push_back({.value = page_percent(held.lowest_draw, 1),
                       .label = "of what machines draw, where they were held most"});
    if (std::isfinite(held.stretch())) {
      figures.push_back({.value = page_percent(held.stretch() - 1, 2),
                         .label = "longer steps while cards are held"});
    }
    figures.push_back(
        {.value = page_duration(held.lost.base_units()),
         .label = fmt::format("of full speed lost to it: {} GPU-hours", compact(gpu_hours))});
  }
  page.figures(figures);
}

}  // namespace

void add_site(Page& page, const CampaignResult& result) {
  page.section("Site",
               "The grid, the weather and the plants around the racks, hour by hour, in the run "
               "whose goodput is the median.");
  add_site_figures(page, result);
  add_power_chart(page, result);
  add_weather_charts(page, result);
  add_lost_table(page, result);
  add_month_table(page, result);
  add_bank_table(page, result);
  add_smoothing(page, result);
  add_capping(page, result);
}

}  // namespace lockstep
