#include "sim/site/site_books.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "models/power/site_power.hpp"
#include "sim/site/power_path.hpp"

namespace lockstep {
namespace {

constexpr RunTime kBookHour = 3'600'000'000'000;
constexpr double kJoulesPerKwh = 3.6e6;

bool trains(RunBucket bucket) {
  return bucket == RunBucket::productive || bucket == RunBucket::degraded ||
         bucket == RunBucket::lost;
}

/// Walks through a run's phases and the site's states at once.
class BookKeeper {
 public:
  BookKeeper(const SitePlan& plan, const TrajectoryResult& run, std::uint32_t trajectory)
      : plan_(plan), run_(run), gives_back_(gives_back(plan)), clock_(plan, trajectory) {
    const auto hours = static_cast<std::size_t>((run.wall + kBookHour - 1) / kBookHour);
    out_.hours.resize(hours);
    if (plan.spec.battery) {
      stored_ = Joules{plan.spec.battery->energy_mwh * 1e3 * kJoulesPerKwh};
      out_.battery_begin = stored_;
    }
  }

  SiteBooks books() {
    walk();
    for (std::size_t h = 0; h < out_.hours.size(); ++h) close_hour(h);
    add_demand();
    out_.power.nameplate = plan_.gpu_nameplate;
    add_provision();
    out_.standby = clock_.standby();
    if (plan_.spec.battery) out_.battery_end = stored_;
    return std::move(out_);
  }

 private:
  void walk() {
    std::size_t phase = 0;
    for (RunTime now = 0; now < run_.wall;) {
      const SiteState state = clock_.at(now, stops_);
      const RunTime until = std::min(state.until, run_.wall);
      SiteHourBook& hour = out_.hours[static_cast<std::size_t>(state.hour)];
      hour.pue = state.pue;
      hour.coolant = std::max(hour.coolant, state.coolant);
      while (now < until) {
        while (phase + 1 < run_.phases.size() && run_.phases[phase + 1].begin <= now) ++phase;
        const RunTime next =
            phase + 1 < run_.phases.size() ? run_.phases[phase + 1].begin : run_.wall;
        const RunTime end = std::min(until, next);
        const Seconds length = to_seconds(end - now);
        const RunBucket bucket = run_.phases[phase].bucket;
        hour.length += length;
        const Watts machines = drawn_in(bucket, state, plan_.levels);
        hour.of.machines += machines * length;
        const Joules generated = state.generated * state.pue * machines * length;
        const double generated_kwh = generated.base_units() / kJoulesPerKwh;
        hour.of.generated += generated;
        hour.of.fuel_usd += generated_kwh * state.fuel.usd_per_kwh;
        hour.of.fuel_grams += generated_kwh * state.fuel.grams_per_kwh;
        if (state.generated > 0) out_.generators_ran += length;
        // A rise after a limit makes an hour slower on average, but nothing binds in it.
        const bool held = state.speed < kFullSpeed && state.bound != SiteBound::none;
        if (!state.down && !held) out_.unbound += length;
        meet_highest(bucket, state, machines);
        if (trains(bucket) && !state.down) meet_capping(state, length);
        if (trains(bucket) || state.down) add_lost(state, now, length, hour);
        if (stands_still(bucket)) stops_.push_back({now, end, bucket});
        now = end;
        // The job asks for its pace after a stop, and so do its books.
        const bool over = stands_still(bucket) && end == next && end < until &&
                          !stands_still(run_.phases[phase + 1].bucket);
        if (over && gives_back_) break;
      }
    }
  }

  /// Seconds of the job's full speed: machines that are still to come take their part of it first.
  void add_lost(const SiteState& state, RunTime now, Seconds length, SiteHourBook& hour) const {
    const double there = plan_.fleet ? plan_.fleet->pace(now).speed : 1;
    const double seconds = there * length.base_units();
    hour.lost[static_cast<std::size_t>(SiteBound::ramp)] += state.ramp_took * seconds;
    hour.lost[static_cast<std::size_t>(state.bound)] +=
        (1 - state.speed - state.ramp_took) * seconds;
  }

  void meet_capping(const SiteState& state, Seconds length) {
    PathCapping& capping = out_.capping;
    capping.trained += length;
    if (state.bound != SiteBound::path) return;
    capping.capped += length;
    capping.lost += (1 - state.speed - state.ramp_took) * length;
    const Watts full = state.machines.draw(plan_.levels.training);
    capping.lowest_draw = std::min<double>(capping.lowest_draw, state.training / full);
  }

  void meet_highest(RunBucket bucket, const SiteState& state, Watts machines) {
    HighestDraw& highest = out_.power.highest;
    // Nodes that are away on average are all there at times.
    const Watts all = machines + state.machines.away;
    if (state.pue * all <= highest.level) return;
    const Watts working = machines - state.machines.standing;
    highest.level = state.pue * all;
    highest.busy = 0;
    if (trains(bucket)) highest.busy = working / plan_.levels.training;
  }

  /// Closes an hour: from the energy of the machines to that of the grid.
  void close_hour(std::size_t h) {
    SiteHourBook& book = out_.hours[h];
    const auto number = static_cast<std::int64_t>(h);
    const SiteHour& hour = plan_.hour(number);
    SiteAmounts& of = book.of;
    book.outside = plan_.outside(hour);
    book.usd_per_kwh = plan_.usd(number);
    book.limit = hour.limit;
    of.facility = book.pue * of.machines;
    of.renewable = renewable_power(plan_.spec, hour) * book.length;
    book.shave_above = clock_.shave_above(number);
    const BatteryFlow flow = dispatched(plan_, number, (of.facility - of.generated) / book.length,
                                        stored_, book.length, book.shave_above);
    of.battery_in = flow.in;
    of.battery_out = flow.out;
    stored_ = stored_after(plan_, stored_, flow);
    const Joules wanted =
        of.facility + of.battery_in - of.battery_out - of.renewable - of.generated;
    of.imported = std::max(Joules{}, wanted);
    of.given_away = std::max(Joules{}, Joules{} - wanted);
    if (std::isfinite(hour.limit.base_units())) {
      of.short_of = std::max(Joules{}, of.imported - hour.limit * book.length);
    }
    of.energy_usd = of.imported.base_units() / kJoulesPerKwh * book.usd_per_kwh -
                    of.given_away.base_units() / kJoulesPerKwh * plan_.spec.export_usd_per_kwh +
                    of.fuel_usd;
    if (const auto intensity = plan_.grams(number)) {
      of.grams = of.imported.base_units() / kJoulesPerKwh * *intensity + of.fuel_grams;
    }
    if (plan_.spec.cooling && plan_.spec.cooling->sink == HeatSink::wet) {
      of.litres = make_up_litres(of.machines, plan_.spec.cooling->cycles);
    }
    add_to_sums(plan_.month(static_cast<std::int64_t>(h)), book);
  }

  void add_to_sums(std::chrono::year_month in, const SiteHourBook& book) {
    const int year = static_cast<int>(in.year());
    const int number = static_cast<int>(static_cast<unsigned>(in.month()));
    if (out_.months.empty() || out_.months.back().month != number ||
        out_.months.back().year != year) {
      out_.months.emplace_back();
      out_.months.back().year = year;
      out_.months.back().month = number;
    }
    SiteMonthBook& month = out_.months.back();
    month.length += book.length;
    month.of += book.of;
    month.outside += book.outside * book.length.base_units();  // until add_demand()
    month.peak = std::max(month.peak, book.of.imported / book.length);
    if (std::isfinite(book.shave_above.base_units())) month.shave_above = book.shave_above;
    out_.sum += book.of;
    for (std::size_t b = 0; b < book.lost.size(); ++b) out_.lost[b] += book.lost[b];
    out_.power.drawn = std::max(out_.power.drawn, book.of.facility / book.length);
    out_.power.imported = std::max(out_.power.imported, book.of.imported / book.length);
    out_.power.machines = std::max(out_.power.machines, book.of.machines / book.length);
    out_.warmest_coolant = std::max(out_.warmest_coolant, book.coolant);
    out_.warmest_outside = std::max(out_.warmest_outside, book.outside);
  }

  void add_demand() {
    for (SiteMonthBook& month : out_.months) {
      month.outside /= month.length.base_units();
      month.demand_usd = month.peak.base_units() / 1e3 * plan_.spec.demand_usd_per_kw_month;
      out_.demand_usd += month.demand_usd;
    }
  }

  void add_provision() {
    const std::vector<PowerPart>& path = plan_.spec.path;
    std::vector<int> down(path.size(), 0);
    if (!path.empty()) {
      const Watts whole = deliverable(path, without_generators(path, down));
      Watts firm = whole;
      for (std::size_t i = 0; i < path.size(); ++i) {
        down[i] = 1;
        firm = std::min(firm, deliverable(path, down));  // with generators in its place
        down[i] = 0;
      }
      constexpr Watts kNoLimit{1e13};
      if (whole < kNoLimit) out_.power.path = whole;
      if (firm < kNoLimit) out_.power.firm = firm;
    }
    const auto& hours = plan_.spec.hours;
    const Watts most = std::ranges::max_element(hours, {}, &SiteHour::limit)->limit;
    if (std::isfinite(most.base_units())) out_.power.grid = most;
  }

  const SitePlan& plan_;
  const TrajectoryResult& run_;
  bool gives_back_;
  std::vector<RunStop> stops_;  ///< until now
  SiteClock clock_;
  Joules stored_;
  SiteBooks out_;
};

}  // namespace

std::optional<PathProvision> path_provision(const SitePlan& plan, const Megawatts& power) {
  if (!power.path || plan.node_peak <= Watts{}) return std::nullopt;
  return PathProvision{.peaks = plan.most_nodes() * plan.node_peak, .brings = *power.path};
}

std::optional<Provision> Megawatts::tightest() const {
  const Provision of_grid{.brings = grid.value_or(Watts{}), .most = imported};
  const Provision of_path{.brings = path.value_or(Watts{}), .most = machines};
  if (grid && path) return of_grid.left() < of_path.left() ? of_grid : of_path;
  if (grid) return of_grid;
  if (path) return of_path;
  return std::nullopt;
}

SiteAmounts& SiteAmounts::operator+=(const SiteAmounts& more) {
  machines += more.machines;
  facility += more.facility;
  renewable += more.renewable;
  battery_in += more.battery_in;
  battery_out += more.battery_out;
  generated += more.generated;
  imported += more.imported;
  given_away += more.given_away;
  short_of += more.short_of;
  litres += more.litres;
  energy_usd += more.energy_usd;
  fuel_usd += more.fuel_usd;
  fuel_grams += more.fuel_grams;
  if (more.grams) grams = grams.value_or(0) + *more.grams;
  return *this;
}

std::vector<EnergyPayment> energy_payments(const SitePlan& plan, const SiteBooks& books) {
  const Fleet& fleet = *plan.fleet;
  std::vector<EnergyPayment> out;
  Seconds at = fleet.begins;
  std::size_t h = 0;
  for (const SiteMonthBook& month : books.months) {
    const Seconds end = at + month.length;
    double share_of_peak = 0;
    Watts peak{-1};
    // Hours are whole but for the run's last: half of one is beyond rounding.
    for (; h < books.hours.size() && at + books.hours[h].length / 2 < end; ++h) {
      const SiteHourBook& hour = books.hours[h];
      const FleetStep there = fleet.at(to_run_time(at - fleet.begins));
      const double share = there.own_share();
      out.push_back({.at = at,
                     .usd = share * hour.of.energy_usd,
                     .kwh = share * hour.of.imported.base_units() / kJoulesPerKwh});
      if (hour.of.imported / hour.length > peak) {
        peak = hour.of.imported / hour.length;
        share_of_peak = share;
      }
      at += hour.length;
    }
    const double demand_usd = share_of_peak * month.demand_usd;
    out.push_back({.at = end, .usd = demand_usd, .demand_usd = demand_usd});
  }
  return out;
}

SiteBooks site_books(const SitePlan& plan, const TrajectoryResult& run, std::uint32_t trajectory) {
  return BookKeeper(plan, run, trajectory).books();
}

SiteBill site_bill(const SitePlan& plan, const SiteBooks& books) {
  SiteBill out{.energy = books.sum.facility,
               .usd = books.usd(),
               .demand_usd = books.demand_usd,
               .grams = books.sum.grams,
               .highest = books.power.highest};
  if (!plan.fleet) return out;
  out.paid = energy_payments(plan, books);
  out.usd = out.demand_usd = 0;  // the price of rented lots includes energy
  for (const EnergyPayment& each : out.paid) {
    out.usd += each.usd;
    out.demand_usd += each.demand_usd;
  }
  return out;
}

Usage usage_of(const SiteBill& bill, Seconds time, double tokens, Flops model_flops) {
  return {.time = time,
          .energy = bill.energy,
          .energy_usd = bill.usd,
          .grams = bill.grams,
          .tokens = tokens,
          .model_flops = model_flops};
}

}  // namespace lockstep
