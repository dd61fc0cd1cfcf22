#include "sim/site/site_plan.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <span>
#include <string_view>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/power/site_power.hpp"
#include "sim/power/run_power.hpp"
#include "sim/run/campaign_work.hpp"
#include "sim/site/averaging_store.hpp"
#include "sim/site/power_path.hpp"
#include "sim/site/site_clock.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

[[noreturn]] void fail(const Scenario& scenario, const char* pointer, const std::string& found,
                       const std::string& allowed) {
  throw InputError({.file = scenario.file,
                    .pointer = pointer,
                    .found = found,
                    .allowed = allowed,
                    .nearest = {}});
}

/// `bought`: nodes come in lots, of which so many are there at the most.
void check_path(const Scenario& scenario, const SiteSpec& spec, int needed, bool bought) {
  if (spec.path.empty()) return;
  const int fed = fed_nodes(spec.path);
  if (fed >= needed) return;
  fail(scenario, "/run/site/path", fmt::format("parts that feed {}", counted(fed, "node")),
       bought ? fmt::format("at least the {} of run.purchase.lots that are there at once", needed)
              : fmt::format("at least the {} of the job and its hot spares", needed));
}

/// The store that keeps a step within the ramp, where supplies average over as long as just does.
Joules store_for(const StepPower& power, Seconds window, double ramp) {
  if (power.ramp_w_per_s <= ramp) return {};
  return store_to_average(power.facility, shortest_average(power.facility, window, ramp));
}

/// `power` has the reserve in it, a share of the job's nodes.
RampVerdict ramp_of(const Scenario& scenario, const SiteSpec& spec, const StepReport& step,
                    const StepPower& power, double reserve, const MachineLevels& levels) {
  RampVerdict out{.step_w_per_s = power.ramp_w_per_s, .store = {}, .start = {}};
  if (!spec.ramp_w_per_s) return out;
  out.store = store_for(power, scenario.power->ramp_window, *spec.ramp_w_per_s);
  const Watts rise = std::max(Watts{}, power.pue * (levels.training - levels.starting));
  out.start = Seconds{rise.base_units() / *spec.ramp_w_per_s};
  out.ways = smoothing_ways(scenario, step, power, reserve, *spec.ramp_w_per_s);
  return out;
}

void tell_assumptions(const SitePlan& plan, std::vector<std::string>& out) {
  if (plan.spec.cooling) {
    const CoolingLaw& law = plan.spec.cooling->law;
    out.push_back(fmt::format(
        "run.site.cooling: a card keeps its limit with coolant of up to {:g} C, and slows down so "
        "that its chip stays below {:g} C, hotter than its coolant in proportion to its power",
        law.rated_celsius, law.slowdown_celsius));
  }
  const bool chills_air = !plan.facility.pue && plan.facility.liquid_share < 0.5;
  if (plan.spec.cooling && plan.spec.cooling->sink != HeatSink::chiller && chills_air) {
    out.push_back(fmt::format(
        "power.facility: {} takes the energy of chillers, where run.site.cooling has none ({}): "
        "energy and temperatures are not of one plant",
        in_quotes(plan.facility.name),
        kHeatSinks[static_cast<std::size_t>(plan.spec.cooling->sink)]));
  }
  if (plan.spec.cooling && plan.spec.cooling->sink == HeatSink::wet) {
    out.emplace_back(
        "run.site.cooling: towers evaporate water in proportion to the heat that they carry, "
        "whatever the weather outside");
  }
  if (!plan.spec.path.empty()) {
    out.emplace_back(
        "run.site.path: units of a bank share what goes through it; the job starts again from its "
        "checkpoint when nodes lose power, and waits while fewer are fed than it needs");
    const int fed = fed_nodes(plan.spec.path), there = plan.nodes + plan.reserved;
    if (plan.fleet) {
      out.emplace_back(
          "run.site.path: nodes of lots that are there are spread evenly over what the path feeds");
    } else if (fed > there) {
      out.push_back(fmt::format(
          "run.site.path: the {} nodes of the job and its hot spares are spread evenly over the {} "
          "that it feeds",
          grouped(there), grouped(fed)));
    }
  }
}

/// The mean tariff of a run, whose hours are not known before it begins.
double mean_tariff(const SiteSpec& site) {
  double sum = 0;
  for (const SiteHour& hour : site.hours) sum += hour.usd_per_kwh;
  return sum / static_cast<double>(site.hours.size());
}

/// A moment since the plan's start as one since the run's; infinity: never.
RunTime run_moment(double plan_s, Seconds begins) {
  constexpr double kLongest = 9e9;  // of to_run_time()
  const double s = std::max(0.0, plan_s - begins.base_units());
  return s < kLongest ? to_run_time(Seconds{s}) : std::numeric_limits<RunTime>::max();
}

constexpr std::string_view kTakenAway = "taken away: ";
std::string mode_name(const Lot& lot) { return std::string(kTakenAway) + lot.name; }

/// While which of a lot's nodes are there, since the run's start.
std::vector<Presence> times_there(const PurchaseSpec& spec, const Lot& lot, Seconds begins) {
  std::vector<Presence> out;
  for (const Shipment& each : shipments_of(spec)) {
    const RunTime from = run_moment(each.from_s, begins), until = run_moment(each.until_s, begins);
    if (each.lot != &lot || until <= from) continue;
    out.push_back({static_cast<std::uint32_t>(each.nodes), from, until});
  }
  return out;
}

/// Of the nodes that the job is laid out for, those that it runs on. Empty: always all.
std::vector<NodesThere> nodes_in_use(const Fleet& fleet, int nodes) {
  std::vector<NodesThere> out;
  for (const FleetStep& step : fleet.steps) {
    const double share = std::min(1.0, static_cast<double>(step.used) / nodes);
    out.push_back({run_moment(step.at.base_units(), fleet.begins), share});
  }
  if (std::ranges::all_of(out, [](const NodesThere& part) { return part.share >= 1; })) out.clear();
  return out;
}

/// Adds a mode of failure for nodes that their provider takes away, each only while its lot is
/// there. A replacement arrives after the time of a repair.
void add_spot_modes(const PurchaseSpec& spec, Seconds begins, CampaignPlan& plan) {
  const Seconds returns = plan.campaign.spares.repair;
  for (const Lot& lot : spec.lots) {
    if (lot.terms != LotTerms::spot) continue;
    if (lot.taken_away <= Seconds{}) {
      plan.assumptions.push_back(fmt::format(
          "run.purchase.lots: no node of {} is ever taken away (taken_away not given)", lot.name));
      continue;
    }
    FailureMode mode;
    mode.name = mode_name(lot);
    mode.components = static_cast<std::uint32_t>(lot.nodes);
    mode.mean_time = lot.taken_away;
    mode.away = returns;
    mode.replaced = 0;  // the node is gone and is not repaired
    mode.there = times_there(spec, lot, begins);
    if (mode.there.empty()) continue;  // the lot has left before the run begins
    plan.campaign.modes.push_back(mode);
    const double there = lot.taken_away / (lot.taken_away + returns);
    plan.assumptions.push_back(fmt::format(
        "run.purchase.lots: another node comes for one of {} that was taken away after {:.4g} h on "
        "average (run.spares.repair): {:.1f} % of them are there, and paid for",
        lot.name, returns.base_units() / 3600, 100 * there));
  }
}

/// How long a run takes at the most, as far as its spares are concerned: lots that come or go later
/// are none of its own. Assumed: less than twice what its failures let expect.
Seconds longest_run(const Campaign& campaign, const Fleet& fleet) {
  if (campaign.horizon > 0) return to_seconds(campaign.horizon);
  return fleet.soonest(2 * Seconds{expected_work(campaign).wall_s});
}

[[noreturn]] void refuse_spares(const Scenario& scenario, const Fleet& fleet, Seconds run,
                                int hot) {
  const FleetStep tightest = fleet.fullest(run);
  fail(
      scenario, "/run/spares/hot", std::to_string(hot),
      fmt::format("at most {}, the nodes of run.purchase.lots that the job has no place for: of {} "
                  "that are there on day {:g} it runs on {}",
                  fleet.standing_by(run), tightest.nodes, tightest.at.base_units() / 86'400,
                  tightest.used));
}

/// Takes nodes of the lots that the job cannot use as hot spares. A run without spares of its own
/// has these, too.
void take_spares_from_lots(const Scenario& scenario, const Fleet& fleet, LotSpares mode,
                           CampaignPlan& plan) {
  SpareSpec& spares = plan.campaign.spares;
  const Seconds run = longest_run(plan.campaign, fleet);
  const int wanted = reserved_nodes(spares), idle = fleet.standing_by(run);
  if (wanted > idle && mode == LotSpares::exactly) refuse_spares(scenario, fleet, run, wanted);
  if (wanted <= idle && (spares.hot > 0 || idle == 0)) return;
  spares.hot = idle;
  std::erase_if(plan.assumptions,
                [](const std::string& text) { return text.starts_with("run.spares.hot: "); });
  plan.assumptions.push_back(fmt::format(
      "run.spares.hot: {}{}, the fewest nodes of the lots that the job ever has no place for", idle,
      wanted > idle ? fmt::format(" in place of {}", wanted) : ""));
}

}  // namespace

SiteMachines SitePlan::machines(RunTime now) const {
  return fleet ? machines(fleet->at(now)) : SiteMachines{};
}

SiteMachines SitePlan::machines(const FleetStep& there) const {
  const double all = nodes + reserved;
  const double working = static_cast<double>(there.used) / nodes;
  // Every step has at least the reserve that belongs to its working nodes.
  const double standing = std::max(0.0, there.nodes - working * all) + there.more_idle - there.away;
  const Watts idle = 1 / all * levels.idle;
  return {
      .working = there.working() / nodes, .standing = standing * idle, .away = there.away * idle};
}

PathDemand SitePlan::path_demand(RunTime now) const {
  if (fleet) return path_demand(fleet->at(now));
  const int there = nodes + reserved;
  if (fed_nodes(spec.path) > there) {
    return path_demand(FleetStep{.at = {}, .nodes = there, .used = nodes, .speed = 1});
  }
  return {.per_place = levels.training / there, .needed = nodes};
}

PathDemand SitePlan::path_demand(const FleetStep& there) const {
  const double places = std::max(1, fed_nodes(spec.path));
  PathDemand out{.per_place = (1 / places) * machines(there).draw(levels.training), .needed = 0};
  const int of_kind = there.nodes - there.apart;
  if (of_kind > 0) {
    constexpr double kRounding = 1e-9;
    out.needed = static_cast<int>(std::ceil(there.used * places / of_kind - kRounding));
  }
  return out;
}

PathDemand SitePlan::highest_path_demand() const {
  if (!fleet) return path_demand(RunTime{0});
  PathDemand out;
  for (std::size_t i = 0; i < fleet->steps.size(); ++i) {
    if (i + 1 < fleet->steps.size() && fleet->steps[i + 1].at <= fleet->begins) continue;
    const PathDemand demand = path_demand(fleet->steps[i]);
    if (demand.per_place > out.per_place) out = demand;
  }
  return out;
}

int SitePlan::most_nodes() const { return fleet ? fleet->most_nodes() : nodes + reserved; }

std::chrono::year_month SitePlan::month(std::int64_t number) const {
  const auto of = [](int year, int month) {
    return std::chrono::year{year} / std::chrono::month{static_cast<unsigned>(month)};
  };
  const auto known = static_cast<std::int64_t>(spec.hours.size());
  const SiteHour& at = hour(std::min(number, known - 1));
  if (number < known) return of(at.year, at.month);
  const std::chrono::sys_days new_year{of(at.year, 1) / 1};
  const auto local = new_year + std::chrono::days{at.day_of_year - 1} +
                     std::chrono::hours{at.hour + number - known + 1};
  const std::chrono::year_month_day date{std::chrono::floor<std::chrono::days>(local)};
  return date.year() / date.month();
}

Watts SitePlan::trained_draw(std::int64_t number) const {
  constexpr RunTime kPlannedHour = 3'600'000'000'000;
  return power_usage_effectiveness(facility, outside(hour(number))) *
         machines(number * kPlannedHour).draw(levels.training);
}

double SitePlan::usd(std::int64_t number) const {
  if (spec.priced) return hour(number).usd_per_kwh;
  return usd_per_kwh.at(Seconds{3600.0 * static_cast<double>(number)});
}

std::optional<double> SitePlan::grams(std::int64_t number) const {
  if (spec.counted_carbon) return hour(number).grams_per_kwh;
  if (!grams_per_kwh) return std::nullopt;
  return grams_per_kwh->at(Seconds{3600.0 * static_cast<double>(number)});
}

namespace {

/// Of its hours, which a path is built for.
double highest_pue(const SitePlan& plan) {
  double out = 1;
  for (const SiteHour& hour : plan.spec.hours) {
    out = std::max(out, power_usage_effectiveness(plan.facility, plan.outside(hour)));
  }
  return out;
}

}  // namespace

double plants_usd(const SiteSpec& spec) {
  constexpr double kKilo = 1e3;
  double out = 0;
  if (spec.battery) {
    out += spec.battery->usd_per_kwh * spec.battery->energy_mwh * kKilo +
           spec.battery->usd_per_kw * spec.battery->power.base_units() / kKilo;
  }
  for (const PowerPart& part : spec.path) {
    // A planned part has as capacity what it leaves to machines.
    const Watts of_unit = part.over_machines * part.capacity;
    out += part.usd_per_kw * part.bank.units * of_unit.base_units() / kKilo;
  }
  if (spec.cooling) {
    out += spec.cooling->usd_per_kw * spec.cooling->bank.units *
           spec.cooling->law.unit_heat.base_units() / kKilo;
  }
  return out;
}

CostReport with_plants(CostReport cost, double usd, const CostSpec& prices, const Usage& usage) {
  constexpr double kYear = 365.25 * 86'400;
  cost.capital.building_usd += usd;
  cost.building_usd += usd * usage.time.base_units() / (prices.years * kYear * prices.utilisation);
  if (usage.tokens > 0) cost.usd_per_trillion_tokens = cost.total_usd() / usage.tokens * 1e12;
  const double eflop = usage.model_flops.base_units() * 1e-18;
  if (eflop > 0) cost.usd_per_eflop = cost.total_usd() / eflop;
  return cost;
}

std::string unpriced_words(const SitePlan& plan, const CostSpec& cost) {
  std::vector<std::string_view> parts;
  const auto priced = [](const BatterySpec& of) { return of.usd_per_kwh > 0 || of.usd_per_kw > 0; };
  if (plan.spec.battery && !priced(*plan.spec.battery)) parts.emplace_back("battery");
  if (cost.usd_per_facility_w <= 0 && !plan.fleet) {
    if (std::ranges::any_of(plan.spec.path, [](const PowerPart& part) {
          return part.generator.has_value() && part.usd_per_kw <= 0;
        })) {
      parts.emplace_back("generators");
    }
    if (plan.spec.cooling && plan.spec.cooling->usd_per_kw <= 0) {
      parts.emplace_back("cooling plant");
    }
  }
  if (parts.empty()) return {};
  std::string out = "run.site: the ";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    out += (i == 0 ? "" : i + 1 < parts.size() ? ", " : " and ") + std::string(parts[i]);
  }
  return out +
         fmt::format(": what {} not in the money, only what {}",
                     parts.size() > 1 || parts[0] == "generators" ? "they cost is" : "it costs is",
                     parts.size() > 1 || parts[0] == "generators" ? "they take and give"
                                                                  : "it takes and gives");
}

SitePlan plan_site(const Scenario& scenario, const RunSpec& run, int reserved,
                   std::shared_ptr<const Fleet> fleet) {
  const SiteSpec& spec = *run.site;
  if (!scenario.power) fail(scenario, "/run/site", "a site", "one beside \"power\"");
  const PowerSpec& of = *scenario.power;
  const StepReport step = simulate_step(scenario, {.record_timeline = true, .keep_actors = true});
  const StepPower bare = step_power(scenario, step);
  const double pue = bare.pue;
  const double reserve = reserved / static_cast<double>(scenario.nodes);
  const Watts spares = reserve * bare.levels.idle.facility / pue;
  const auto machines = [&](const PowerLevel& level) { return level.facility / pue + spares; };
  std::vector<PacePoint> points = pace_table(scenario).points();
  for (PacePoint& point : points) point.it += spares;
  SitePlan out{.spec = spec,
               .facility = of.facility,
               .outside_celsius = of.outside_celsius,
               .usd_per_kwh = of.cost.usd_per_kwh,
               .grams_per_kwh = of.cost.grams_per_kwh,
               .table = PaceTable(std::move(points)),
               .levels = {},
               .nodes = scenario.nodes,
               .reserved = reserved,
               .gpu_nameplate = (1 + reserve) * bare.gpu_nameplate,
               .ramp = {},
               .assumptions = {}};
  out.levels = {.training = out.table.full().it,
                .waiting = machines(bare.levels.waiting),
                .starting = machines(bare.levels.starting),
                .idle = machines(bare.levels.idle)};
  out.node_peak = (bare.levels.training.facility / pue + bare.gpu_nameplate -
                   static_cast<double>(scenario.gpus()) * bare.levels.training.gpu) /
                  scenario.nodes;
  out.spec.path = with_capacities(std::move(out.spec.path), out.node_peak, highest_pue(out));
  out.spec.seed = run.seed;
  out.fleet = std::move(fleet);
  check_path(scenario, spec, out.most_nodes(), out.fleet != nullptr);
  out.ramp = ramp_of(scenario, spec, step, with_reserve(bare, reserve), reserve, out.levels);
  tell_assumptions(out, out.assumptions);
  if (of.cost.usd_per_facility_w > 0 && plants_usd(spec) > 0) {
    out.assumptions.emplace_back(
        "run.site: prices of its plants come on top of cost.usd_per_facility_w, which is taken to "
        "leave them out");
  }
  if (std::string words = unpriced_words(out, of.cost); !words.empty()) {
    out.assumptions.push_back(std::move(words));
  }
  return out;
}

SitePlan with_draw(SitePlan plan, double factor) {
  std::vector<PacePoint> points = plan.table.points();
  for (PacePoint& point : points) point.it = factor * point.it;
  plan.table = PaceTable(std::move(points));
  MachineLevels& levels = plan.levels;
  for (Watts* level : {&levels.training, &levels.waiting, &levels.starting, &levels.idle}) {
    *level = factor * *level;
  }
  return plan;
}

std::function<PaceLaw(std::uint32_t)> site_pace(std::shared_ptr<const SitePlan> site,
                                                std::shared_ptr<const Fleet> fleet) {
  return [site = std::move(site), fleet = std::move(fleet)](std::uint32_t trajectory) -> PaceLaw {
    std::optional<SiteClock> clock;
    if (site) clock.emplace(*site, trajectory);
    const bool back = site && gives_back(*site);
    return [site, fleet, clock, back](RunTime now, std::span<const RunStop> stops) mutable {
      SitePace out = fleet ? fleet->pace(now) : SitePace{};
      if (!clock) return out;
      const SiteState state = clock->at(now, stops);
      out.gives_back = back;
      out.until = std::min(out.until, state.until);
      out.speed *= state.speed;
      out.down = state.down;
      out.abrupt = state.abrupt;
      return out;
    };
  };
}

double taken_away(const Campaign& campaign, const TrajectoryResult& run) {
  double out = 0;
  for (std::size_t m = 0; m < run.failures.size(); ++m) {
    if (campaign.modes[m].name.starts_with(kTakenAway)) out += run.failures[m];
  }
  return out;
}

void begin_with(const Fleet& fleet, Campaign& campaign) {
  campaign.nodes_there = nodes_in_use(fleet, campaign.nodes);
  for (const Lot& lot : fleet.spec.lots) {
    const auto mode = std::ranges::find(campaign.modes, mode_name(lot), &FailureMode::name);
    if (lot.terms != LotTerms::spot || mode == campaign.modes.end()) continue;
    mode->there = times_there(fleet.spec, lot, fleet.begins);
    if (mode->there.empty()) campaign.modes.erase(mode);
  }
}

SitedCampaign plan_sited(const RunWork& work, const RunSpec& run, LotSpares spares,
                         Seconds data_comes) {
  const Scenario& scenario = work.scenario;
  SitedCampaign out{.plan = plan_campaign(work, run), .site = {}, .fleet = {}};
  Campaign& campaign = out.plan.campaign;
  std::vector<std::string>& assumptions = out.plan.assumptions;
  if (run.purchase) {
    const Seconds ready = data_comes + (out.plan.data ? out.plan.data->begins : Seconds{});
    const auto fleet = std::make_shared<Fleet>(plan_fleet(scenario, *run.purchase, ready));
    require_lots_for(
        scenario, *fleet, campaign.work,
        campaign.horizon > 0 ? std::optional(to_seconds(campaign.horizon)) : std::nullopt);
    set_returns(*fleet, campaign.spares.repair);
    if (run.site) fleet->plants_usd = plants_usd(*run.site);
    if (run.site && run.site->priced) fleet->usd_per_kwh = mean_tariff(*run.site);
    assumptions.insert(assumptions.end(), fleet->assumptions.begin(), fleet->assumptions.end());
    add_spot_modes(*run.purchase, fleet->begins, out.plan);
    campaign.nodes_there = nodes_in_use(*fleet, campaign.nodes);
    take_spares_from_lots(scenario, *fleet, spares, out.plan);
    out.fleet = fleet;
  }
  if (!out.fleet && out.plan.data && out.plan.data->begins > Seconds{}) {
    assumptions.emplace_back(
        "run.data: machines come when the dataset is staged, so that no money is paid for them and "
        "no energy taken before; run.purchase says when they come, and has those paid for that "
        "wait");
  }
  if (run.site) {
    SitePlan site = plan_site(scenario, run, reserved_nodes(campaign.spares), out.fleet);
    // Machines that start together take as long as the ramp, of which half is lost.
    campaign.recovery.restarts += site.ramp.start / 2;
    assumptions.insert(assumptions.end(), site.assumptions.begin(), site.assumptions.end());
    out.site = std::make_shared<const SitePlan>(std::move(site));
  }
  if (out.site || out.fleet) campaign.pace = site_pace(out.site, out.fleet);
  return out;
}

}  // namespace lockstep
