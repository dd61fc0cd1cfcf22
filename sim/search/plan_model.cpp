#include "sim/search/plan_model.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "models/accuracy/prediction_interval.hpp"
#include "models/base/number_text.hpp"
#include "models/layer/flops.hpp"
#include "models/site/finance.hpp"
#include "sim/fabric/hash_band.hpp"
#include "sim/power/run_power.hpp"
#include "sim/run/campaign_work.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/search/dividing_counts.hpp"
#include "sim/search/tune.hpp"
#include "sim/site/held_power.hpp"
#include "sim/site/site_plan.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

constexpr double kYear = 365.25 * 86'400;
constexpr double kJoulesOfKwh = 3.6e6;
/// Ten times as long still fits the clock of a run, which ends after 292 years.
constexpr double kLongestWork = 20 * kYear;
constexpr double kMostStretch = 10;
constexpr double kPlannedRuns = 1000;  // about: samples, and both ends of each input

double factor(const PlanFactors& factors, PlanInput input) {
  return factors[static_cast<std::size_t>(input)];
}

std::string memory_words(const MemoryVerdict& memory) {
  constexpr double kGib = 1024.0 * 1024 * 1024;
  std::string out = fmt::format(
      "does not fit in memory: {:.1f} GiB on a GPU of stage {}, usable "
      "are {:.1f}",
      memory.peak.needed().base_units() / kGib, memory.fullest_stage,
      memory.usable.base_units() / kGib);
  if (!memory.nearest_fit.empty()) out += "; the nearest change that fits: " + memory.nearest_fit;
  if (memory.band.close()) out += "; it is close, and " + memory.band.decides + " decides";
  return out;
}

/// Whether an assumption is about what a search decides.
bool is_of_layout(const std::string& assumption) {
  constexpr std::array<std::string_view, 5> kDecided{
      "data: ", "virtual_stages: ", "sharding: ", "schedule: ", "recompute: "};
  return std::ranges::any_of(kDecided,
                             [&](std::string_view name) { return assumption.starts_with(name); });
}

/// Which of a site's two powers is which; empty where the grid gives all that is asked for.
std::string hourly_limit_words(const SiteSpec& site) {
  Watts least{std::numeric_limits<double>::infinity()};
  for (const SiteHour& hour : site.hours) least = std::min(least, hour.limit);
  if (!std::isfinite(least.base_units())) return {};
  return fmt::format(
      "run.site.limit: {:.3g} MW or more, which the mean of each hour keeps; the power of the "
      "answer, which limits.power and power.site_limit hold, is what a meter reads at most, a "
      "step's own swing included, and may be above it",
      least.base_units() / 1e6);
}

/// Prices with the factors in force.
struct Pricing {
  CostSpec prices;
  Holdings holdings;
  Watts metered_peak;  ///< of the site
};
Pricing pricing_of(const PlanModel& model, const PlannedRun& run, const PlanFactors& factors) {
  Pricing out{
      .prices = model.scenario.power->cost, .holdings = model.power.holdings, .metered_peak = {}};
  const double draw = factor(factors, PlanInput::power);
  const double price = model.price_factor * factor(factors, PlanInput::price);
  out.prices.usd_per_gpu *= price;
  out.prices.usd_per_node *= price;
  out.prices.usd_per_100g_port *= price;
  out.prices.usd_per_facility_w *= price;
  if (out.prices.usd_per_gpu_hour) *out.prices.usd_per_gpu_hour *= price;
  out.prices.years /= factor(factors, PlanInput::value_loss);
  PeakDraw peak{.metered = draw * model.power.site_peak,
                .instant = draw * model.power.holdings.facility_peak};
  if (run.bill) {
    peak = peak_draw(run.bill->highest, model.power, draw);
  } else if (run.fleet) {
    // Lots that come before the run is done, however long it takes.
    HighestDraw highest =
        highest_draw(*run.fleet, to_seconds(run.sums.wall), model.power, model.scenario.nodes);
    highest.level = draw * highest.level;
    peak = peak_draw(highest, model.power, draw);
  }
  out.holdings.facility_peak = peak.instant;
  out.metered_peak = peak.metered;
  return out;
}

/// What a run takes with the factors in force.
struct DrawnUsage {
  Usage usage;
  Joules working_node;  ///< of lots without a site: of a node that works all the run
};
DrawnUsage drawn_usage(const PlanModel& model, const PlannedRun& ran, const CostSpec& prices,
                       const PlanFactors& factors) {
  const TrajectoryResult& run = ran.sums;
  const double steps = to_seconds(run.work).base_units() / model.step_s;
  const double tokens = steps * model.tokens_per_step;
  const Flops flops = steps * step_flops(model.scenario.job).full;
  DrawnUsage out;
  if (ran.bill) {
    out.usage = usage_of(*ran.bill, to_seconds(run.wall), tokens, flops);
  } else {
    Usage usage = run_usage(run, model.power.levels, prices, tokens, flops);
    if (ran.fleet && usage.time > Seconds{}) {
      const NodeDraw node = node_draw(usage.energy / usage.time, model.power, model.scenario.nodes);
      const FleetEnergy lots = fleet_energy(*ran.fleet, node, usage.time, prices);
      out.working_node = node.working * usage.time;
      usage.energy = lots.energy;
      usage.energy_usd = lots.usd();
      usage.grams = lots.grams;
    }
    out.usage = with_draw(usage, factor(factors, PlanInput::power));
  }
  out.usage.energy_usd *= factor(factors, PlanInput::tariff);
  return out;
}

/// What the nodes of the lots pay for energy, at the mean power of the run: a node that works all
/// of it takes `working_node`.
std::vector<EnergyPayment> lot_payments(const PlanModel& model, const Fleet& fleet,
                                        Joules working_node, Seconds run) {
  if (run <= Seconds{}) return {};
  NodeDraw node = node_draw(Watts{}, model.power, model.scenario.nodes);
  node.working = working_node / run;
  return fleet_energy(fleet, node, run, model.scenario.power->cost).paid;
}

/// What the candidate's purchase makes of its time and money; interest is part of running it.
/// The books of a site have the factor of power in them.
void pay_by_month(const PlanModel& model, const PlannedRun& ran, Joules working_node,
                  const PlanFactors& factors, const std::optional<PhaseBegins>& begins,
                  PlanOutcome& out) {
  const Fleet& fleet = *ran.fleet;
  const Seconds run{out.run_s + out.after_s};  // until its last checkpoint is where it belongs
  const double tariff = factor(factors, PlanInput::tariff);
  const double price = model.price_factor * factor(factors, PlanInput::price);
  const MoneyFactors money{.price = price,
                           .energy = (ran.bill ? 1 : factor(factors, PlanInput::power)) * tariff,
                           .draw = ran.bill ? 1 : factor(factors, PlanInput::power),
                           .value_loss = factor(factors, PlanInput::value_loss)};
  const std::vector<EnergyPayment> paid =
      ran.bill ? ran.bill->paid : lot_payments(model, fleet, working_node, run);
  const bool kept = begins && begins->kept;
  out.lots = kept ? further_money(fleet, run, money, paid,
                                  {.from = begins->ready, .spent = begins->lots_spent})
                  : money_by_month(fleet, run, money, paid);
  const MonthMoney sum = sum_of(out.lots);
  out.lots_spent = (kept ? begins->lots_spent : 0) + sum.spent() + sum.interest;
  out.capital = {.machines_usd = sum.bought, .network_usd = 0, .building_usd = sum.plants};
  out.write_off_usd = sum.bought + sum.plants + sum.residual;
  out.energy_usd = sum.energy;
  out.running_usd = sum.energy + sum.staff + sum.interest;
  out.rent_usd = sum.leased + sum.rented;
}

/// The time and the money that moving its data and its checkpoints takes. The run of a purchase
/// begins when both its machines and its data are there: pay_by_month() adds that wait.
void move_data(const PlanPlace* place, const PlanModel& model, PlanOutcome& out) {
  const std::optional<DataPlan>& data = model.plan.data;
  PlanMoves moves;
  if (place != nullptr) {
    moves = moves_of(*place, model.plan.checkpoint.all, Seconds{out.time_s});
  }
  const Seconds ready = moves.before + (data ? data->begins : Seconds{});
  if (data) out.storage_usd = storage_usd(*data, data->begins + Seconds{out.time_s});
  out.before_s = ready.base_units();
  out.after_s = moves.after.base_units();
  out.data_usd = moves.data_usd;
  out.egress_usd = moves.data_usd + moves.copies_usd;
}

std::size_t months_until(double seconds) {
  return static_cast<std::size_t>(std::max(1.0, std::ceil(seconds / kMonthSeconds)));
}

/// Spreads an amount evenly over [from, until) of the months; at once where that is no time.
void spread_over_months(double usd, double from, double until, double PlanMonth::* part,
                        std::vector<PlanMonth>& months) {
  const auto last = static_cast<double>(months.size() - 1);
  const auto month_of = [&](double at) {
    return static_cast<std::size_t>(std::clamp(std::floor(at / kMonthSeconds), 0.0, last));
  };
  if (until <= from) {
    months[month_of(from)].*part += usd;
    return;
  }
  for (std::size_t m = month_of(from); m <= month_of(until); ++m) {
    const double begin = std::max(from, static_cast<double>(m) * kMonthSeconds);
    const double end = m == month_of(until) ? until : static_cast<double>(m + 1) * kMonthSeconds;
    months[m].*part += usd * std::max(0.0, end - begin) / (until - from);
  }
}

/// Storage by month. It is held from the dataset's arrival in its first tier until the run is done;
/// what machines that come later leave of time is before that.
void add_storage_months(const PlanModel& model, const PlanOutcome& outcome, double start,
                        std::vector<PlanMonth>& months) {
  if (!model.plan.data) return;
  const DataPlan& data = *model.plan.data;
  const double done = start + outcome.time_s - outcome.after_s;
  const double arrives = start + outcome.before_s - data.begins.base_units();
  for (const HeldTier& tier : data.tiers) {
    const double from = arrives + tier.from.base_units();
    spread_over_months(tier.usd_per_month * (done - from) / kMonthSeconds, from, done,
                       &PlanMonth::storage_usd, months);
    const double read_at = arrives + tier.read_at.base_units();
    spread_over_months(tier.read_usd, read_at, read_at, &PlanMonth::storage_usd, months);
  }
}

/// How far published runs like it lie from their prediction: the models' validation error, for the
/// layout that it has in the end.
void add_accuracy(const StepIntervals& intervals, PlanModel& out) {
  const std::optional<PredictionInterval> interval = intervals.of(out.scenario);
  if (!interval) return;
  Distribution& efficiency = out.inputs[static_cast<std::size_t>(PlanInput::efficiency)];
  efficiency = {.law = DistributionLaw::lognormal,
                .low = 1 / interval->high,
                .likely = 1,
                .high = 1 / interval->low};
  out.accuracy = fmt::format(
      "Training speed (steps a second over the prediction, which is the median): a factor of "
      "{:.3g} to {:.3g} in nine of ten cases, as far as published runs like it lie from their "
      "prediction ({})",
      efficiency.low, efficiency.high, words_of(*interval));
}

/// Without a failure: on lots it takes as long as these let it.
Seconds longest_run(const PlanModel& model, Seconds work) {
  if (!model.fleet) return work;
  const Seconds run = model.fleet->soonest(work);
  return std::isfinite(run.base_units()) ? run : kMostStretch * work;
}

/// plan_sited() of a candidate, from when its data has come; `impossible` where its lots go before.
void site_candidate(const PlanCandidate& candidate, Seconds ready, PlanModel& out) {
  const Seconds data_comes = candidate.place ? candidate.place->data_takes : ready;
  const LotSpares spares = candidate.spares_by_share ? LotSpares::up_to : LotSpares::exactly;
  try {
    SitedCampaign sited = plan_sited(out.scenario, candidate.run, spares, data_comes);
    out.plan = std::move(sited.plan);
    out.fleet = std::move(sited.fleet);
    out.site = std::move(sited.site);
  } catch (const LotsGone& gone) {
    std::string lots = gone.problem().pointer.substr(1);
    std::ranges::replace(lots, '/', '.');
    out.impossible = fmt::format("has {}; {} has to leave {}", gone.problem().found, lots,
                                 gone.problem().allowed);
  }
}

}  // namespace

PlanModel refused_candidate(const PlanCandidate& candidate) {
  PlanModel out;
  out.scenario = candidate.scenario;
  out.impossible = candidate.refused;
  return out;
}

PlanModel tune_candidate(const PlanCandidate& candidate, int threads,
                         const std::function<bool()>& interrupted) {
  if (!candidate.refused.empty()) return refused_candidate(candidate);
  PlanModel out;
  out.scenario = candidate.scenario;
  TuneOptions options;
  options.keep = 1;
  if (candidate.intervals) {
    options.slow_end = [&](const Scenario& tied) { return candidate.intervals->slow_end(tied); };
  }
  options.threads = threads;
  options.interrupted = interrupted;
  const TuneResult found = tune(candidate.scenario, options);
  if (found.best.empty()) {
    out.impossible =
        fmt::format("has no layout that fits: of {} that were looked at {} need too much memory",
                    found.considered, found.over_memory);
    if (found.over_memory > 0) return out;
    const Scenario& base = candidate.scenario;
    const std::string sizes =
        words_of(dividing_counts(base, options.space), base.gpus() / base.nodes);
    out.impossible =
        fmt::format("has no layout that {} can run on {} with {} a step", base.stack.name,
                    counted(base.gpus(), "GPU"), counted(base.job.batch.sequences, "sequence"));
    if (!sizes.empty()) out.impossible += "; these can be laid out: " + sizes;
    return out;
  }
  out.scenario = found.best.front().scenario;
  std::erase_if(out.scenario.assumptions, is_of_layout);
  out.layout =
      fmt::format("layout: the fastest of {} that were looked at{}",
                  grouped(static_cast<double>(found.considered)),
                  found.ties > 1 ? fmt::format(", or the {} within 1 % of it", found.chosen_as())
                                 : std::string());
  if (found.best.front().step_s > (1 + kTie) * found.fastest_s) {
    out.layout += ", or within 5 % of it one that surely fits in memory";
  }
  return out;
}

PlanModel model_candidate(const PlanCandidate& candidate, PlanModel found, Seconds ready) {
  if (!candidate.refused.empty()) return refused_candidate(candidate);
  PlanModel out = std::move(found);
  if (!out.impossible.empty()) return out;
  if (!candidate.tuned) out.scenario = candidate.scenario;
  out.price_factor = candidate.price_factor;
  const Scenario& scenario = out.scenario;
  assert(scenario.power && scenario.training_tokens);
  out.memory = check_memory(scenario.job, scenario.stack, scenario.node.gpu);
  if (!out.memory.fits) {
    out.impossible = memory_words(out.memory);
    return out;
  }
  const StepReport step = simulate_step(scenario, {.record_timeline = true, .keep_actors = true});
  std::vector<std::string>& assumptions = out.scenario.assumptions;
  assumptions.insert(assumptions.end(), step.notes.begin(), step.notes.end());
  const NicPorts ports = nic_ports(scenario.node);
  if (std::string draw = draw_words(scenario.fabric, scenario.nodes, ports); !draw.empty()) {
    assumptions.push_back(std::move(draw));
  }
  out.step_s = step.step_s;
  out.mfu = step.mfu_full;
  out.method = step.method;
  out.band = step.band;
  out.inputs = candidate.inputs;
  if (candidate.intervals) add_accuracy(*candidate.intervals, out);
  Distribution& efficiency = out.inputs[static_cast<std::size_t>(PlanInput::efficiency)];
  if (step.method == StepMethod::sampled && efficiency.law == DistributionLaw::lognormal) {
    efficiency.low *= step.step_s / step.band->high_s;
    efficiency.high *= step.step_s / step.band->low_s;
  }
  out.tokens_per_step = step.tokens_per_step;
  out.tokens_per_s = step.tokens_per_s;
  const double work = *scenario.training_tokens / step.tokens_per_s;
  if (work > kLongestWork) {
    out.impossible = fmt::format("would take {:.0f} years without a failure", work / kYear);
    return out;
  }
  if (candidate.run.site) {
    assumptions.emplace_back(
        "run.site: power, energy, carbon and money of each run are taken hour by hour");
    if (std::string limit = hourly_limit_words(*candidate.run.site); !limit.empty()) {
      assumptions.push_back(std::move(limit));
    }
  }
  site_candidate(candidate, ready, out);
  if (!out.impossible.empty()) return out;
  if (const auto problem = excessive_work(
          out.plan.campaign, candidate.run,
          {.trajectories = kPlannedRuns, .timeline = out.site != nullptr}, scenario.file)) {
    out.impossible = fmt::format("cannot be simulated: {} in {}; it takes {}", problem->found,
                                 problem->pointer, problem->allowed);
    return out;
  }
  out.power = held_power(scenario, step, reserved_nodes(out.plan.campaign.spares),
                         {.fleet = out.fleet.get(), .run = longest_run(out, Seconds{work})});
  return out;
}

Campaign with_factors(const Campaign& campaign, const PlanFactors& factors) {
  Campaign out = campaign;
  out.work = campaign.work / factor(factors, PlanInput::efficiency);
  out.horizon = to_run_time(kMostStretch * std::min(out.work, Seconds{kLongestWork}));
  for (FailureMode& mode : out.modes) {
    mode.mean_time = mode.mean_time / factor(factors, PlanInput::failure_rate);
    mode.away = factor(factors, PlanInput::recovery) * mode.away;
  }
  const double slower = factor(factors, PlanInput::recovery);
  RecoverySpec& recovery = out.recovery;
  for (Seconds* time : {&recovery.detects_crash, &recovery.detects_hang, &recovery.diagnoses,
                        &recovery.restarts, &out.spares.repair, &out.spares.warm_takes}) {
    *time = slower * *time;
  }
  return out;
}

namespace {

/// When a run on lots is given up: after so many times what these let it take without a failure.
RunTime latest_end(const Fleet& fleet, Seconds work) {
  const Seconds soonest = fleet.soonest(work);
  const Seconds run = std::isfinite(soonest.base_units()) ? soonest : work;
  return to_run_time(kMostStretch * std::min(run, Seconds{kLongestWork}));
}

}  // namespace

FactoredCampaign with_factors(const PlanModel& model, const PlanFactors& factors,
                              const std::optional<PhaseBegins>& begins) {
  FactoredCampaign out{.campaign = with_factors(model.plan.campaign, factors),
                       .site = model.site,
                       .fleet = model.fleet};
  const double draw = factor(factors, PlanInput::power);
  const bool draws = model.site && draw != 1, moves = model.fleet && begins;
  if (model.fleet && !moves) out.campaign.horizon = latest_end(*model.fleet, out.campaign.work);
  if (!draws && !moves) return out;
  if (moves) {
    const Seconds staged = model.plan.data ? model.plan.data->begins : Seconds{};
    out.fleet = std::make_shared<const Fleet>(begun_at(*model.fleet, begins->ready + staged));
    begin_with(*out.fleet, out.campaign);
    out.campaign.horizon = latest_end(*out.fleet, out.campaign.work);
  }
  if (model.site) {
    SitePlan site = draws ? with_draw(*model.site, draw) : *model.site;
    site.fleet = out.fleet;
    out.site = std::make_shared<const SitePlan>(std::move(site));
  }
  out.campaign.pace = site_pace(out.site, out.fleet);
  return out;
}

PlannedRun planned_trajectory(const FactoredCampaign& of, std::uint32_t number,
                              const TrajectoryWatch& watch) {
  const RunDetail detail = of.site ? RunDetail::timeline : RunDetail::sums;
  PlannedRun out{
      .sums = run_trajectory(of.campaign, number, detail, watch), .bill = {}, .fleet = of.fleet};
  if (!of.site || out.sums.wall <= 0) return out;
  out.bill = site_bill(*of.site, site_books(*of.site, out.sums, number));
  out.sums.events = {};
  out.sums.phases = {};
  return out;
}

PlanOutcome outcome_of(const PlanCandidate& candidate, const PlanModel& model,
                       const PlannedRun& ran, const PlanFactors& factors,
                       const std::optional<PhaseBegins>& begins) {
  const TrajectoryResult& run = ran.sums;
  const Pricing pricing = pricing_of(model, ran, factors);
  const DrawnUsage drawn = drawn_usage(model, ran, pricing.prices, factors);
  const Usage& usage = drawn.usage;
  const double plants = model.site ? model.price_factor * factor(factors, PlanInput::price) *
                                         plants_usd(model.site->spec)
                                   : 0;
  const CostReport cost =
      with_plants(cost_of(pricing.prices, pricing.holdings, usage), plants, pricing.prices, usage);
  PlanOutcome out;
  out.time_s = out.run_s = usage.time.base_units();
  out.gpus = model.scenario.gpus();
  out.energy_j = usage.energy.base_units();
  out.peak_w = pricing.metered_peak.base_units();
  out.goodput = static_cast<double>(run.buckets[0]) / static_cast<double>(run.wall);
  out.waiting = static_cast<double>(run.buckets[static_cast<std::size_t>(RunBucket::repair_wait)]) /
                static_cast<double>(run.wall);
  out.interruptions = run.interruptions;
  out.tonnes_co2 = cost.tonnes_co2;
  if (candidate.rented) {
    out.rent_usd = cost.cloud_usd.value_or(0);
    out.usd_per_gpu_hour = pricing.prices.usd_per_gpu_hour.value_or(0);
    out.running_usd = cost.people_usd;
  } else {
    out.capital = cost.capital;
    out.write_off_usd = cost.write_off_usd();
    out.energy_usd = cost.energy_usd;
    out.usd_per_node = cost.capital.total_usd() / pricing.holdings.nodes;
    if (out.energy_j > 0) out.usd_per_kwh = cost.energy_usd / (out.energy_j / kJoulesOfKwh);
    if (ran.bill) out.demand_usd = factor(factors, PlanInput::tariff) * ran.bill->demand_usd;
    out.running_usd = cost.running_usd();
  }
  if (candidate.place || model.plan.data) move_data(candidate.place.get(), model, out);
  if (ran.fleet) {
    const Seconds ready = begins ? begins->ready : Seconds{};
    out.before_s = (ran.fleet->begins - ready).base_units();
    pay_by_month(model, ran, drawn.working_node, factors, begins, out);
    const double kwh = sum_of(out.lots).kwh;
    out.usd_per_gpu_hour = out.usd_per_node = 0;  // each lot has its own
    out.usd_per_kwh = kwh > 0 ? out.energy_usd / kwh : 0;
  }
  out.time_s = out.before_s + out.run_s + out.after_s;
  out.usd = out.write_off_usd + out.running_usd + out.rent_usd + out.egress_usd + out.storage_usd;
  return out;
}

std::vector<PlanMonth> plan_months(const PlanModel& model, const PlanOutcome& outcome,
                                   Seconds start) {
  const double from = start.base_units();
  const double begins = from + outcome.before_s;
  const double done = from + outcome.time_s - outcome.after_s;
  std::vector<PlanMonth> out;
  if (model.fleet) {
    for (const MonthMoney& of : outcome.lots) {
      out.push_back({.write_off_usd = of.bought + of.plants + of.residual,
                     .running_usd = of.energy + of.staff + of.interest,
                     .rent_usd = of.leased + of.rented,
                     .egress_usd = 0,
                     .storage_usd = 0});
    }
    out.resize(std::max(out.size(), months_until(from + outcome.time_s)));
  } else {
    out.resize(months_until(from + outcome.time_s));
    for (const auto& [usd, part] : {std::pair{outcome.write_off_usd, &PlanMonth::write_off_usd},
                                    std::pair{outcome.running_usd, &PlanMonth::running_usd},
                                    std::pair{outcome.rent_usd, &PlanMonth::rent_usd}}) {
      spread_over_months(usd, begins, done, part, out);
    }
  }
  add_storage_months(model, outcome, from, out);
  spread_over_months(outcome.data_usd, from, begins, &PlanMonth::egress_usd, out);
  spread_over_months(outcome.egress_usd - outcome.data_usd, begins, from + outcome.time_s,
                     &PlanMonth::egress_usd, out);
  return out;
}

void add_to_months(double usd, Seconds start, Seconds takes, double PlanMonth::* part,
                   std::vector<PlanMonth>& months) {
  const double until = (start + takes).base_units();
  months.resize(std::max(months.size(), months_until(until)));
  spread_over_months(usd, start.base_units(), until, part, months);
}

namespace {

/// Of lots. What there is of nodes goes by how long it is there.
std::vector<MonthMoney> mean_lots(const std::vector<PlanOutcome>& outcomes) {
  constexpr std::array kParts{&MonthMoney::bought,   &MonthMoney::leased,     &MonthMoney::rented,
                              &MonthMoney::energy,   &MonthMoney::staff,      &MonthMoney::interest,
                              &MonthMoney::residual, &MonthMoney::terms_left, &MonthMoney::kwh,
                              &MonthMoney::plants};
  std::vector<MonthMoney> mean;
  const auto n = static_cast<double>(outcomes.size());
  for (const PlanOutcome& outcome : outcomes) {
    mean.resize(std::max(mean.size(), outcome.lots.size()));
    for (std::size_t m = 0; m < outcome.lots.size(); ++m) {
      const MonthMoney& of = outcome.lots[m];
      for (const auto part : kParts) mean[m].*part += of.*part / n;
      mean[m].lasts += of.lasts / n;
      mean[m].nodes += of.nodes * of.lasts.base_units() / n;  // until below
    }
  }
  for (MonthMoney& month : mean) {
    if (month.lasts > Seconds{}) month.nodes /= month.lasts.base_units();
  }
  return mean;
}

PlanTimes mean_times(const std::vector<PlanOutcome>& outcomes) {
  PlanTimes mean;
  mean.done = 0;
  const auto n = static_cast<double>(outcomes.size());
  for (const PlanOutcome& outcome : outcomes) {
    const PlanTimes& of = outcome.times;
    for (std::size_t b = 0; b < mean.s.size(); ++b) mean.s[b] += of.s[b] / n;
    for (const auto number :
         {&PlanTimes::missing_s, &PlanTimes::site_s, &PlanTimes::taken_away, &PlanTimes::done}) {
      mean.*number += of.*number / n;
    }
  }
  return mean;
}

}  // namespace

PlanTimes times_of(const Campaign& campaign, const TrajectoryResult& run) {
  PlanTimes out;
  for (std::size_t b = 0; b < out.s.size(); ++b) {
    out.s[b] = to_seconds(run.buckets[b]).base_units();
  }
  out.missing_s = to_seconds(run.machines_missing).base_units();
  out.site_s = to_seconds(run.site_slowed).base_units();
  out.taken_away = taken_away(campaign, run);
  out.done = to_seconds(run.work) / campaign.work;
  return out;
}

PlanTimes chained(const PlanTimes& so_far, const PlanTimes& next) {
  PlanTimes out = so_far;
  for (std::size_t b = 0; b < out.s.size(); ++b) out.s[b] += next.s[b];
  for (const auto number : {&PlanTimes::missing_s, &PlanTimes::site_s, &PlanTimes::taken_away}) {
    out.*number += next.*number;
  }
  out.done = std::min(so_far.done, next.done);
  return out;
}

PlanOutcome mean_outcome(const std::vector<PlanOutcome>& outcomes) {
  assert(!outcomes.empty());
  PlanOutcome mean;
  constexpr std::array kNumbers{
      &PlanOutcome::time_s,      &PlanOutcome::usd,           &PlanOutcome::energy_j,
      &PlanOutcome::peak_w,      &PlanOutcome::interruptions, &PlanOutcome::write_off_usd,
      &PlanOutcome::energy_usd,  &PlanOutcome::running_usd,   &PlanOutcome::rent_usd,
      &PlanOutcome::egress_usd,  &PlanOutcome::data_usd,      &PlanOutcome::before_s,
      &PlanOutcome::after_s,     &PlanOutcome::storage_usd,   &PlanOutcome::demand_usd,
      &PlanOutcome::run_s,       &PlanOutcome::lots_spent,    &PlanOutcome::usd_per_gpu_hour,
      &PlanOutcome::usd_per_kwh, &PlanOutcome::usd_per_node};
  constexpr std::array kCapital{&CapitalReport::machines_usd, &CapitalReport::network_usd,
                                &CapitalReport::building_usd};
  mean.gpus = outcomes.front().gpus;
  const auto n = static_cast<double>(outcomes.size());
  for (const PlanOutcome& each : outcomes) {
    for (const auto number : kNumbers) mean.*number += each.*number / n;
    if (each.tonnes_co2) mean.tonnes_co2 = mean.tonnes_co2.value_or(0) + *each.tonnes_co2 / n;
    for (const auto part : kCapital) mean.capital.*part += each.capital.*part / n;
    mean.finished = mean.finished && each.finished;
  }
  for (const PlanOutcome& each : outcomes) {
    const double share = each.run_s / (n * mean.run_s);
    mean.goodput += share * each.goodput;
    mean.waiting += share * each.waiting;
  }
  mean.lots = mean_lots(outcomes);
  mean.times = mean_times(outcomes);
  return mean;
}

}  // namespace lockstep
