#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "sim/answer/answer_fields.hpp"
#include "sim/site/site_availability.hpp"
#include "sim/site/standby_figures.hpp"

namespace lockstep {
namespace {

using Sited = CampaignResult;

const SiteBooks& books_of(const Sited& r) { return r.site->books; }

/// Nothing for what a site does not have.
std::optional<Joules> unless_none(Joules amount) {
  if (amount <= Joules{}) return std::nullopt;
  return amount;
}

std::optional<double> unless_zero(double amount) {
  if (amount <= 0) return std::nullopt;
  return amount;
}

template <class Of, class Get>
void add_amounts(FieldTable<Of>& fields, Get amounts) {
  fields
      .add("machines_j", Better::less, "Energy of the machines.",
           [amounts](const Of& of) { return amounts(of).machines; })
      .add("facility_j", Better::less, "With what cools and feeds them.",
           [amounts](const Of& of) { return amounts(of).facility; })
      .add("imported_j", Better::less, "Energy from the grid.",
           [amounts](const Of& of) { return amounts(of).imported; })
      .add("renewable_j", "Energy that sun and wind gave.",
           [amounts](const Of& of) { return unless_none(amounts(of).renewable); })
      .add("battery_in_j", "Energy into the battery.",
           [amounts](const Of& of) { return unless_none(amounts(of).battery_in); })
      .add("battery_out_j", "Energy out of it.",
           [amounts](const Of& of) { return unless_none(amounts(of).battery_out); })
      .add("generated_j", "Energy from generators of the path.",
           [amounts](const Of& of) { return unless_none(amounts(of).generated); })
      .add("given_away_j", "What renewables gave too much.",
           [amounts](const Of& of) { return unless_none(amounts(of).given_away); })
      .add("above_limit_j", Better::less, "Energy drawn above what the grid gives.",
           [amounts](const Of& of) { return unless_none(amounts(of).short_of); })
      .add("water_l", Better::less, "Litres of water that cooling takes.",
           [amounts](const Of& of) -> std::optional<double> {
             if (amounts(of).litres <= 0) return std::nullopt;
             return amounts(of).litres;
           })
      .add("energy_usd", Better::less,
           "Energy by the tariff of its hours, less exports, with generators' fuel.",
           [amounts](const Of& of) { return amounts(of).energy_usd; })
      .add("fuel_usd", Better::less, "Of it, generators' fuel.",
           [amounts](const Of& of) { return unless_zero(amounts(of).fuel_usd); })
      .add("fuel_tonnes_co2", Better::less, "Carbon dioxide of generators' fuel.",
           [amounts](const Of& of) { return unless_zero(amounts(of).fuel_grams * 1e-6); })
      .add("tonnes_co2", Better::less,
           "Carbon dioxide that the grid emits for it, and generators; where the grid's intensity "
           "is given.",
           [amounts](const Of& of) -> std::optional<double> {
             const std::optional<double>& grams = amounts(of).grams;
             if (!grams) return std::nullopt;
             return *grams * 1e-6;
           });
}

const FieldTable<SiteMonthBook>& month_fields() {
  using Of = SiteMonthBook;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    out.add("year", "Of the local calendar.", [](const Of& m) { return m.year; })
        .add("month", "1 to 12.", [](const Of& m) { return m.month; })
        .add("run_s", "How much of the run is in it.", [](const Of& m) { return m.length; })
        .add("outside_celsius", "Mean temperature outside.", [](const Of& m) { return m.outside; })
        .add("peak_w", Better::less, "Highest hour from the grid.",
             [](const Of& m) { return m.peak; })
        .add("shave_above_w", Better::less,
             "What the battery keeps the grid's power below, where it shaves peaks: as the "
             "scenario says, or the lowest that its energy can hold over the month.",
             [](const Of& m) { return m.shave_above; })
        .add("demand_usd", Better::less, "Charge for it.",
             [](const Of& m) { return m.demand_usd; });
    add_amounts(out, [](const Of& m) -> const SiteAmounts& { return m.of; });
    return out;
  }();
  return fields;
}

struct BoundAnswer {
  std::string_view by;
  double seconds = 0;
};
std::vector<BoundAnswer> bound_answers(const Sited& r) {
  std::vector<BoundAnswer> out;
  for (std::size_t b = 1; b < std::size(kSiteBounds); ++b) {
    out.push_back({kSiteBounds[b], books_of(r).lost[b]});
  }
  return out;
}
const FieldTable<BoundAnswer>& bound_fields() {
  using Of = BoundAnswer;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("by",
               "What held the job back: grid, cooling, the path of power, or the grid's ramp, on "
               "the way up from a slower pace.",
               [](const Of& b) { return b.by; })
          .add("lost_s", Better::less,
               "Seconds of training at full speed that it took, in that run; time without power "
               "included.",
               [](const Of& b) { return b.seconds; });
  return fields;
}

/// A bank of the site, and how often its units are down by its closed form.
struct BankAnswer {
  const UnitBank* bank = nullptr;
  double all_up = 1, mean_down = 0;
};
BankAnswer bank_answer(const UnitBank& bank) {
  const std::vector<double> down = units_down(bank);
  BankAnswer out{.bank = &bank, .all_up = down[0], .mean_down = 0};
  for (std::size_t i = 1; i < down.size(); ++i) out.mean_down += static_cast<double>(i) * down[i];
  return out;
}
std::vector<BankAnswer> bank_answers(const Sited& r) {
  std::vector<BankAnswer> out;
  const SiteSpec& spec = r.site->plan->spec;
  for (const PowerPart& part : spec.path) out.push_back(bank_answer(part.bank));
  if (!spec.cooling) return out;
  out.push_back(bank_answer(spec.cooling->bank));
  for (const CoolingStage& stage : spec.cooling->loop) out.push_back(bank_answer(stage.bank));
  return out;
}
const FieldTable<BankAnswer>& bank_fields() {
  using Of = BankAnswer;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name",
               "Part of the path of power, or of the cooling's loop; the plant's units are "
               "\"cooling\".",
               [](const Of& b) {
                 return b.bank->name.empty() ? std::string("cooling") : b.bank->name;
               })
          .add("units", "How many there are.", [](const Of& b) { return b.bank->units; })
          .add("all_up_share", Better::more, "Of the time, in which none is down; closed form.",
               [](const Of& b) { return b.all_up; })
          .add("mean_down", Better::less, "Units that are down on average; closed form.",
               [](const Of& b) { return b.mean_down; });
  return fields;
}

/// By closed forms, and what the run whose goodput is the median met.
struct AvailabilityAnswer {
  SiteAvailability of;
  double met = 1;
};
std::optional<AvailabilityAnswer> availability_answer(const Sited& r) {
  const SiteBooks& books = books_of(r);
  return AvailabilityAnswer{.of = site_availability(*r.site->plan, books.hours.size()),
                            .met = books.unbound_share()};
}
const FieldTable<AvailabilityAnswer>& availability_fields() {
  using Of = AvailabilityAnswer;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("share", Better::more,
               "Of the run's hours, in which grid, cooling and path hold nothing back that trains, "
               "without the path's batteries and generators; closed form.",
               [](const Of& a) { return a.of.all; })
          .add("with_standby_share", Better::more,
               "Of the run's hours, the same with the path's batteries and generators, which cover "
               "losses of all power from outside as far as they last; closed form. Other losses in "
               "the path count as ones that nothing covers.",
               [](const Of& a) { return a.of.all_with_standby; })
          .add("path_share", Better::more,
               "Of the time, in which the path brings all that trains what it draws, without its "
               "batteries and generators; closed form, left out of paths with too many states.",
               [](const Of& a) { return a.of.path; })
          .add("path_with_standby_share", Better::more,
               "Of the time, the same with its batteries and generators, as in "
               "with_standby_share; closed form.",
               [](const Of& a) { return a.of.path_with_standby; })
          .add("cooling_share", Better::more,
               "Of the run's hours, in which coolant lets cards draw what the job wants; "
               "closed form.",
               [](const Of& a) { return a.of.cooling; })
          .add("grid_share", Better::more,
               "Of the run's hours, in which grid, sun, wind and battery give what all draw.",
               [](const Of& a) { return a.of.grid; })
          .add(
              "met_share", Better::more,
              "Of the time of the run whose goodput is the median, in which nothing was held back, "
              "with what stands by.",
              [](const Of& a) { return a.met; });
  return fields;
}

/// How a path with capacities is provided for, and how it held the run.
struct CappingAnswer {
  PathProvision path;
  PathCapping of;
  double gpus = 0;
};
std::optional<CappingAnswer> capping_answer(const Sited& r) {
  const SiteBooks& books = books_of(r);
  const std::optional<PathProvision> path = path_provision(*r.site->plan, books.power);
  if (!path) return std::nullopt;
  return CappingAnswer{
      .path = *path, .of = books.capping, .gpus = static_cast<double>(r.work().gpus())};
}
const FieldTable<CappingAnswer>& capping_fields() {
  using Of = CappingAnswer;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("oversubscription",
               "Power of all nodes, their cards at their datasheet's power, over path_w.",
               [](const Of& c) { return c.path.oversubscription(); })
          .add("avoided_w", "Of that power, what the path need not bring.",
               [](const Of& c) { return c.path.avoided(); })
          .add("capped_share", Better::less,
               "Of the time of training, in which the path held cards below what they would draw.",
               [](const Of& c) -> double {
                 return c.of.trained > Seconds{} ? c.of.capped / c.of.trained : 0.0;
               })
          .add("step_stretch", Better::less,
               "Time of a step then, over that of one that is not held.",
               [](const Of& c) -> std::optional<double> {
                 if (!std::isfinite(c.of.stretch())) return std::nullopt;  // none ran
                 return c.of.stretch();
               })
          .add("lowest_draw_share", Better::more,
               "Least that machines drew then, of what they would have drawn.",
               [](const Of& c) { return c.of.lowest_draw; })
          .add("lost_s", Better::less, "Seconds of full speed that this took.",
               [](const Of& c) { return c.of.lost; })
          .add("lost_gpu_hours", Better::less, "The same, of all GPUs of the job.",
               [](const Of& c) { return c.of.lost.base_units() / 3600 * c.gpus; });
  return fields;
}

/// Closed forms, and what the run whose goodput is the median met.
struct StandbyAnswer {
  StandbyFigures of;
  const SiteBooks* books = nullptr;
};
std::optional<StandbyAnswer> standby_answer(const Sited& r) {
  const std::optional<StandbyFigures> figures = standby_figures(*r.site->plan);
  if (!figures) return std::nullopt;
  return StandbyAnswer{.of = *figures, .books = &books_of(r)};
}
template <class Get>
auto of_blackouts(Get get) {
  return [get](const StandbyAnswer& s) {
    using Got = decltype(get(*s.of.blackouts));
    return s.of.blackouts ? std::optional<Got>(get(*s.of.blackouts)) : std::nullopt;
  };
}
void add_blackouts(FieldTable<StandbyAnswer>& fields) {
  fields
      .add("blackouts_per_year", Better::less,
           "Times a year at which all units are lost that bring power from outside; closed form.",
           of_blackouts([](const Blackouts& b) { return b.per_year; }))
      .add("blackout_s", Better::less, "How long such a loss lasts; mean.",
           of_blackouts([](const Blackouts& b) { return b.lasts; }))
      .add("uncovered_share", Better::less,
           "Of such losses, how many outlast batteries and generators; closed form.",
           of_blackouts([](const Blackouts& b) { return b.uncovered; }));
}
const FieldTable<StandbyAnswer>& standby_fields() {
  using Of = StandbyAnswer;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    out.add("stored_j", Better::more, "Energy of the path's batteries, full.",
            [](const Of& s) { return s.of.stored; })
        .add("bridge_s", Better::more,
             "How long they carry all machines alone; 0 where some machines have none.",
             [](const Of& s) -> std::optional<Seconds> {
               if (!std::isfinite(s.of.bridge.base_units())) return std::nullopt;
               return s.of.bridge;
             })
        .add("generators_w", Better::more, "Of all generators; where each says its capacity.",
             [](const Of& s) -> std::optional<Watts> {
               if (s.of.generators <= Watts{}) return std::nullopt;
               return s.of.generators;
             })
        .add("enough_start_share", Better::more,
             "How likely enough generators start for all machines; closed form.",
             [](const Of& s) { return s.of.starts; });
    add_blackouts(out);
    out.add("outages", Better::less, "Losses of power that batteries or generators stood in for.",
            [](const Of& s) { return s.books->standby.outages; })
        .add("uncovered", Better::less, "Of them, in which machines went without, or with less.",
             [](const Of& s) { return s.books->standby.uncovered; })
        .add("starts", "Of generators.", [](const Of& s) { return s.books->standby.starts; })
        .add("failed_starts", Better::less, "Of these, how many failed.",
             [](const Of& s) { return s.books->standby.failed_starts; })
        .add("ran_s", "That generators ran.", [](const Of& s) { return s.books->generators_ran; });
    return out;
  }();
  return fields;
}

void add_site_power(FieldTable<Sited>& fields) {
  const auto tightest = [](auto get) {
    return [get](const Sited& r) -> std::optional<Watts> {
      const std::optional<Provision> of = books_of(r).power.tightest();
      if (!of) return std::nullopt;
      return get(*of);
    };
  };
  fields
      .add("nameplate_w", "All GPUs by their datasheet, spares included.",
           [](const Sited& r) { return books_of(r).power.nameplate; })
      .add("grid_w", "Limit of the grid in the hour in which it gives most.",
           [](const Sited& r) { return books_of(r).power.grid; })
      .add("imported_peak_w", Better::less, "Highest hour from the grid.",
           [](const Sited& r) { return books_of(r).power.imported; })
      .add("path_w", "What the path brings to the machines while nothing is broken.",
           [](const Sited& r) { return books_of(r).power.path; })
      .add("machines_peak_w", Better::less, "Highest hour of the machines.",
           [](const Sited& r) { return books_of(r).power.machines; })
      .add("provisioned_w", "grid_w or path_w, whichever leaves less.",
           tightest([](const Provision& of) { return of.brings; }))
      .add("firm_w", Better::more, "What the path brings with its worst unit broken.",
           [](const Sited& r) { return books_of(r).power.firm; })
      .add("drawn_w", Better::less, "Highest hour of the site.",
           [](const Sited& r) { return books_of(r).power.drawn; })
      .add("stranded_w", Better::less,
           "Of provisioned_w, never used: less the highest hour from the grid, or of the machines.",
           tightest([](const Provision& of) { return of.left(); }))
      .add("warmest_outside_celsius", "Warmest hour of the run.",
           [](const Sited& r) { return books_of(r).warmest_outside; })
      .add("warmest_coolant_celsius", Better::less, "Warmest coolant at the machines.",
           [](const Sited& r) -> std::optional<double> {
             if (!r.site->plan->spec.cooling) return std::nullopt;
             return books_of(r).warmest_coolant;
           });
}

/// A way to keep a step within the grid's ramp, beside the step as it is.
struct SmoothingAnswer {
  const SmoothingWay* of = nullptr;
  const SmoothingWay* now = nullptr;
};
std::vector<SmoothingAnswer> smoothing_answers(const Sited& r) {
  std::vector<SmoothingAnswer> out;
  const std::vector<SmoothingWay>& ways = r.site->plan->ramp.ways;
  for (const SmoothingWay& way : ways) out.push_back({&way, &ways.front()});
  return out;
}
const FieldTable<SmoothingAnswer>& smoothing_fields() {
  using Of = SmoothingAnswer;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("way",
               "none: as it is; store: in power supplies; floor: cards burn up to one; "
               "slower_ramps: cards gain power slowly and burn as they lose it; stagger: replicas "
               "begin one group after the other.",
               [](const Of& a) { return a.of->name; })
          .add("keeps", "To the ramp; else it is the least that was found.",
               [](const Of& a) { return a.of->keeps; })
          .add("store_per_gpu_j", Better::less,
               "That just suffices where supplies average what is drawn; power.smoothing.capacitor "
               "holds the mean, which takes more.",
               [](const Of& a) { return a.of->store; })
          .add("floor_per_gpu_w", Better::less, "That just suffices.",
               [](const Of& a) { return a.of->floor; })
          .add("over_s", Better::less, "From the first group's begin to the last one's.",
               [](const Of& a) { return a.of->over; })
          .add("groups", "Of replicas.",
               [](const Of& a) -> std::optional<int> {
                 if (a.of->groups == 0) return std::nullopt;
                 return a.of->groups;
               })
          .add("ramp_w_per_s", Better::less, "Steepest change of power within a step.",
               [](const Of& a) { return a.of->ramp_w_per_s; })
          .add("step_s", Better::less, "Time of a step.", [](const Of& a) { return a.of->step; })
          .add("step_j", Better::less, "Energy of a step, at the site's meter.",
               [](const Of& a) { return a.of->energy; })
          .add("longer_share", Better::less, "By which a step takes longer than as it is.",
               [](const Of& a) -> double { return a.of->step / a.now->step - 1; })
          .add("more_energy_share", Better::less, "By which it takes more energy.",
               [](const Of& a) -> double { return a.of->energy / a.now->energy - 1; });
  return fields;
}

void add_ramp(FieldTable<Sited>& fields) {
  const auto ramped = [](auto get) {
    return [get](const Sited& r) -> std::optional<double> {
      if (!r.site->plan->spec.ramp_w_per_s) return std::nullopt;
      return get(*r.site->plan);
    };
  };
  fields
      .add("ramp_limit_w_per_s", "Steepest rise that the grid allows.",
           ramped([](const SitePlan& p) { return *p.spec.ramp_w_per_s; }))
      .add("step_ramp_w_per_s", Better::less, "Steepest rise within a step.",
           ramped([](const SitePlan& p) { return p.ramp.step_w_per_s; }))
      .add("step_store_j", Better::less,
           "Energy that supplies have to store for a step to keep to the limit: they average over "
           "as long as just does.",
           ramped([](const SitePlan& p) { return p.ramp.store.base_units(); }))
      .add("start_ramp_s", Better::less, "How long machines take from starting to training.",
           ramped([](const SitePlan& p) { return p.ramp.start.base_units(); }))
      .add("restart_ramp_s", Better::less,
           "Half of start_ramp_s, by which each restart takes longer: time that is in the run's "
           "restarts, and in none of the bounds.",
           ramped([](const SitePlan& p) { return p.ramp.start.base_units() / 2; }))
      .list_if_any("smoothing", "Ways to keep a step within the grid's ramp, and their price.",
                   smoothing_fields(), smoothing_answers);
}

}  // namespace

const FieldTable<CampaignResult>& site_fields() {
  static const FieldTable<Sited> fields = [] {
    FieldTable<Sited> out;
    out.add("slowed_s", Better::less,
            "By how much limits of the site slowed or paused the job; mean of runs.",
            [](const Sited& r) { return r.summary.site_slowed_s; })
        .add("stops", Better::less, "Times that the site gave no power; mean of runs.",
             [](const Sited& r) { return r.summary.site_stops; })
        .add("stopped_s", Better::less, "What these cost; mean of runs.",
             [](const Sited& r) { return r.summary.site_stopped_s; });
    add_site_power(out);
    add_amounts(out, [](const Sited& r) -> const SiteAmounts& { return books_of(r).sum; });
    out.add("battery_begin_j",
            "What the battery can give as the run begins: it is full, and nobody paid for that.",
            [](const Sited& r) { return books_of(r).battery_begin; })
        .add("battery_end_j",
             "What it can give as the run ends: battery_begin_j, with what battery_in_j stored at "
             "its efficiency, less battery_out_j.",
             [](const Sited& r) { return books_of(r).battery_end; })
        .add("demand_usd", Better::less, "Charges for the highest hour of each month.",
             [](const Sited& r) { return books_of(r).demand_usd; })
        .add("grid_usd", Better::less,
             "What energy costs in all: energy_usd, in which generators' fuel is, and demand_usd.",
             [](const Sited& r) { return books_of(r).usd(); });
    add_ramp(out);
    out.object("availability", "How often the site holds nothing back.", availability_fields(),
               availability_answer);
    out.object("capping", "What the path has for the sum of peaks, and how its limit bound.",
               capping_fields(), capping_answer);
    out.object("standby", "Batteries and generators of the path of power.", standby_fields(),
               standby_answer);
    out.list("bounds", "What held the run back whose goodput is the median.", bound_fields(),
             bound_answers)
        .list_if_any("banks", "Units that fail.", bank_fields(), bank_answers)
        .list("months", "The same run by months.", month_fields(),
              [](const Sited& r) -> const auto& { return books_of(r).months; });
    return out;
  }();
  return fields;
}

}  // namespace lockstep
