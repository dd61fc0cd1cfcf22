#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "sim/answer/answer_fields.hpp"
#include "sim/answer/fields.hpp"
#include "sim/answer/scaling.hpp"
#include "tools/views/plan/plan_output.hpp"
#include "tools/views/plan/plan_phases.hpp"
#include "tools/views/plan/plan_region_words.hpp"
#include "tools/views/plan/plan_time_words.hpp"
#include "tools/views/plan/plan_words.hpp"
#include "tools/views/tables/command_fields.hpp"

namespace lockstep {
namespace {

/// A candidate of a plan, and what was found for it.
struct PlannedCandidate {
  const PlanAnswer& answer;
  std::size_t place = 0;
  std::string verdict{};

  [[nodiscard]] const PlanCandidate& candidate() const { return answer.candidate(place); }
  [[nodiscard]] const PlanResult& result() const { return answer.result(place); }
  [[nodiscard]] const Scenario& scenario() const { return result().model.scenario; }
  [[nodiscard]] bool possible() const { return result().model.impossible.empty(); }
  [[nodiscard]] bool priced() const { return is_priced(candidate()); }
};
std::vector<PlannedCandidate> planned_candidates(const PlanAnswer& answer) {
  std::vector<PlannedCandidate> out;
  const std::vector<std::string> verdicts = plan_verdicts(answer);
  for (std::size_t i = 0; i < verdicts.size(); ++i) out.push_back({answer, i, verdicts[i]});
  return out;
}

/// What a candidate that is possible has.
template <class Get>
auto where_possible(Get get) {
  using Got = std::remove_cvref_t<std::invoke_result_t<Get, const PlannedCandidate&>>;
  return [get](const PlannedCandidate& c) -> std::optional<Got> {
    if (!c.possible()) return std::nullopt;
    return get(c);
  };
}

/// A number over the samples. `point`: with every input at its median, as `lockstep run` has it.
struct PlanSpread {
  double point = 0;
  SampleMean samples;
};
const FieldTable<PlanSpread>& plan_spread_fields() {
  using Of = PlanSpread;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("point", Better::less, "With every input at its median, as lockstep run has it.",
               [](const Of& s) { return s.point; })
          .add("mean", Better::less, "Mean of the samples.",
               [](const Of& s) { return s.samples.mean; })
          .add("p05", Better::less, "1 of 20 samples is below.",
               [](const Of& s) { return s.samples.low; })
          .add("p50", Better::less, "Half of the samples are below.",
               [](const Of& s) { return s.samples.median; })
          .add("p95", Better::less, "1 of 20 samples is above.",
               [](const Of& s) { return s.samples.high; });
  return fields;
}

const FieldTable<Scenario>& plan_layout_fields() {
  using Of = Scenario;
  const auto cut = [](int Parallelism::* degree) {
    return [degree](const Of& s) { return s.job.parallelism.*degree; };
  };
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("tensor", "GPUs that a layer is cut over.", cut(&Parallelism::tensor))
          .add("context", "GPUs that a sequence is cut over.", cut(&Parallelism::context))
          .add("expert", "GPUs that experts are spread over.", cut(&Parallelism::expert))
          .add("pipeline", "Stages of the pipeline.", cut(&Parallelism::pipeline))
          .add("virtual_stages", "Parts of each stage.", cut(&Parallelism::virtual_stages))
          .add("data", "Replicas that see different data.", cut(&Parallelism::data))
          .add("micro", "Sequences of a micro batch.",
               [](const Of& s) { return s.job.batch.micro_sequences; });
  return fields;
}

/// Of the region's members, those of a candidate that may train there.
const FieldTable<PlannedCandidate>& plan_region_fields() {
  using Of = PlannedCandidate;
  const auto outcome = [](double PlanOutcome::* number) {
    return where_possible([number](const Of& c) { return c.result().expected.*number; });
  };
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Its name.", [](const Of& c) { return c.candidate().place->name; })
          .add("refused", "Why the candidate may not train there; null where it may.",
               [](const Of& c) -> OrNull<std::string> {
                 if (c.candidate().refused.empty()) return {};
                 return {c.candidate().refused};
               })
          .add("data_from", "Where the dataset comes from; null where it is there.",
               where_possible([](const Of& c) -> OrNull<std::string> {
                 if (c.candidate().place->data_from.empty()) return {};
                 return {c.candidate().place->data_from};
               }))
          .add("data_takes_s", Better::less, "Time in which the dataset moves there.",
               where_possible([](const Of& c) { return c.candidate().place->data_takes; }))
          .add("begins_s", Better::less, "When the training begins, after the plan's start.",
               outcome(&PlanOutcome::before_s))
          .add("last_checkpoint_takes_s", Better::less,
               "Time in which the last checkpoint moves away.", outcome(&PlanOutcome::after_s))
          .add("done", "When all is done: a date where the plan says its start.",
               where_possible(
                   [](const Of& c) { return plan_moment(c.answer, c.result().expected.time_s); }))
          .add("data_egress_usd", Better::less, "Money for moving the dataset out of its region.",
               outcome(&PlanOutcome::data_usd))
          .add("egress_usd", Better::less, "Money for moving all data, checkpoints too.",
               outcome(&PlanOutcome::egress_usd))
          .add("co2_t", Better::less,
               "Carbon dioxide that the grid emits; null where its intensity is not given.",
               where_possible(
                   [](const Of& c) { return OrNull<double>{c.result().expected.tonnes_co2}; }));
  return fields;
}

/// The dataset on its way to the job, and what the job waits for.
struct TierOfPlan {
  const HeldTier& tier;
  std::vector<double> months;
};
std::vector<TierOfPlan> tiers_of_plan(const PlanResult& result) {
  std::vector<TierOfPlan> out;
  for (const HeldTier& tier : result.model.plan.data->tiers) {
    out.push_back({tier, tier_months(tier, data_until(result))});
  }
  return out;
}

const FieldTable<StagingHop>& plan_hop_fields() {
  using Of = StagingHop;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("from", "The tier that it leaves.", [](const Of& h) { return h.from; })
          .add("to", "The tier that it goes to.", [](const Of& h) { return h.to; })
          .add("starts_s", "When it starts.", [](const Of& h) { return h.starts; })
          .add("takes_s", Better::less, "How long it takes.", [](const Of& h) { return h.takes; })
          .add("rate_bytes_per_s", Better::more, "How fast it goes.",
               [](const Of& h) { return h.rate; });
  return fields;
}

const FieldTable<TierOfPlan>& plan_tier_fields() {
  using Of = TierOfPlan;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Its name.", [](const Of& t) { return t.tier.name; })
          .add("holds_from_s", "From when on it has room for the dataset.",
               [](const Of& t) { return t.tier.from; })
          .add("month_usd", "Money for that by month.", [](const Of& t) { return t.months; });
  return fields;
}

const FieldTable<PlanResult>& plan_data_fields() {
  using Of = PlanResult;
  const auto data = [](auto get) { return [get](const Of& r) { return get(*r.model.plan.data); }; };
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("staging_s", Better::less, "Until the job can begin.",
               data([](const DataPlan& d) { return d.begins; }))
          .add("epochs", "How often the run reads the dataset.",
               data([](const DataPlan& d) { return d.epochs; }))
          .add("cached_share", Better::more,
               "Share of it that the nodes' drives hold after the first pass.",
               data([](const DataPlan& d) { return d.cached; }))
          .add("limited_by", "What holds the job back for most of its time.",
               data([](const DataPlan& d) {
                 return kDataLimits[static_cast<std::size_t>(d.limit())];
               }))
          .add("speed", Better::more, "The job's speed over what it has with data at hand.",
               [](const Of& r) { return r.model.plan.data_speed; })
          .add("storage_usd", Better::less, "Money for the tiers that hold it.",
               [](const Of& r) { return r.expected.storage_usd; })
          .list("hops", "From tier to tier, in their order.", plan_hop_fields(),
                [](const Of& r) -> const auto& { return r.model.plan.data->hops; })
          .list("tiers", "Where it is held.", plan_tier_fields(), tiers_of_plan);
  return fields;
}

/// What one input moves, or one end of it.
struct SwingOfPlan {
  const PlanSwing& swing;
  bool priced = false;
};
struct OutcomeOfSwing {
  const PlanOutcome& outcome;
  bool priced = false;
};
std::vector<SwingOfPlan> swings_of_plan(const PlannedCandidate& c) {
  std::vector<SwingOfPlan> out;
  if (!c.possible()) return out;
  for (const PlanSwing& swing : c.result().swings) out.push_back({swing, c.priced()});
  return out;
}

const FieldTable<OutcomeOfSwing>& plan_measure_fields() {
  using Of = OutcomeOfSwing;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    for (const PlanMeasure& measure : plan_measures()) {
      const bool money = measure.name == "usd";
      out.add(measure.name, Better::less,
              fmt::format("{} of the training{}.", measure.title,
                          money ? ", where it has a price" : ""),
              [number = measure.number, money](const Of& o) -> std::optional<double> {
                if (money && !o.priced) return std::nullopt;
                return o.outcome.*number;
              });
    }
    return out;
  }();
  return fields;
}

const FieldTable<SwingOfPlan>& plan_swing_fields() {
  using Of = SwingOfPlan;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("input", "Its name.",
               [](const Of& s) {
                 return plan_inputs()[static_cast<std::size_t>(s.swing.input)].name;
               })
          .add("low", "The input at its 5 % quantile.", [](const Of& s) { return s.swing.low; })
          .add("high", "The input at its 95 % quantile.", [](const Of& s) { return s.swing.high; })
          .object("at_low", "The training with it there, all others at their medians.",
                  plan_measure_fields(),
                  [](const Of& s) { return OutcomeOfSwing{s.swing.at_low, s.priced}; })
          .object("at_high", "The same with it at its high end.", plan_measure_fields(),
                  [](const Of& s) { return OutcomeOfSwing{s.swing.at_high, s.priced}; });
  return fields;
}

/// Capital to be spent first, its write-off, and the cost of operation.
void add_plan_money(FieldTable<PlannedCandidate>& fields) {
  using Of = PlannedCandidate;
  const auto where_priced = [](auto get) {
    return [get](const Of& c) -> std::optional<double> {
      if (!c.priced()) return std::nullopt;
      return get(c.result().expected);
    };
  };
  const auto unless_none = [](double PlanOutcome::* price) {
    return [price](const Of& c) -> std::optional<double> {
      const double usd = c.result().first.*price;
      return c.priced() && usd > 0 ? std::optional(usd) : std::nullopt;
    };
  };
  using Outcome = const PlanOutcome&;
  fields
      .add("usd", Better::less, "Money of the training, where it has a price.",
           where_priced([](Outcome o) { return o.usd; }))
      .add("capital_usd", Better::less, "What has to be spent before the machines can run.",
           where_priced([](Outcome o) { return o.capital.total_usd(); }))
      .add("capital_machines_usd", Better::less, "Of it, for GPUs and the servers around them.",
           where_priced([](Outcome o) { return o.capital.machines_usd; }))
      .add("capital_network_usd", Better::less, "Of it, for the network.",
           where_priced([](Outcome o) { return o.capital.network_usd; }))
      .add("capital_building_usd", Better::less, "Of it, for the building, its power and cooling.",
           where_priced([](Outcome o) { return o.capital.building_usd; }))
      .add("write_off_usd", Better::less, "What all of that loses in value meanwhile.",
           where_priced([](Outcome o) { return o.write_off_usd; }))
      .add("running_usd", Better::less,
           "Money for energy, people and hosting; for machines in lots for capital, too.",
           where_priced([](Outcome o) { return o.running_usd; }))
      .add("energy_usd", Better::less, "Of it, for energy.",
           where_priced([](Outcome o) { return o.energy_usd; }))
      .add("usd_per_node", Better::less,
           "Price of a node with its share of network and building, plan's factors included; where "
           "machines are owned and come in no lots. With \"phases\" of the first.",
           unless_none(&PlanOutcome::usd_per_node))
      .add("usd_per_gpu_hour", Better::less, "Price of a rented GPU-hour, the same.",
           unless_none(&PlanOutcome::usd_per_gpu_hour))
      .add("usd_per_kwh", Better::less, "Mean price of the energy that is paid for, the same.",
           unless_none(&PlanOutcome::usd_per_kwh))
      .add("rent_usd", Better::less, "Rent of machines.",
           where_priced([](Outcome o) { return o.rent_usd; }))
      .add("egress_usd", Better::less, "Money for moving data between regions.",
           where_priced([](Outcome o) { return o.egress_usd; }))
      .add("storage_usd", Better::less, "Money for the tiers that hold the dataset.",
           where_priced([](Outcome o) { return o.storage_usd; }))
      .add("demand_usd", Better::less,
           "Of energy_usd, for the highest hours of months; at a site alone.",
           [](const Of& c) -> std::optional<double> {
             if (!c.priced() || !c.result().model.site) return std::nullopt;
             return c.result().expected.demand_usd;
           });
}

/// A cause, and the time that it takes.
struct TimeLost {
  PlanTimePart of;
  double all_s = 0;
};
std::vector<TimeLost> times_lost(const PlannedCandidate& c) {
  std::vector<TimeLost> out;
  const PlanOutcome& expected = c.result().expected;
  for (const PlanTimePart& part : plan_time_lost(expected)) out.push_back({part, expected.time_s});
  return out;
}
const FieldTable<TimeLost>& time_lost_fields() {
  using Of = TimeLost;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("cause",
               "\"waiting\": before the first step, and for data or weights on their way; "
               "\"missing_machines\": of lots; \"site\": its limits; else as a run's wall_time.",
               [](const Of& t) { return t.of.cause; })
          .add("seconds", Better::less, "Of time_s.", [](const Of& t) { return t.of.seconds; })
          .add("share", Better::less, "The same over time_s.",
               [](const Of& t) { return t.of.seconds / t.all_s; });
  return fields;
}

const FieldTable<PlannedCandidate>& plan_expected_fields() {
  using Of = PlannedCandidate;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    out.add("time_s", Better::less, "Time of the training.",
            [](const Of& c) { return c.result().expected.time_s; })
        .add("energy_j", Better::less, "Energy at the site's meter.",
             [](const Of& c) { return c.result().expected.energy_j; })
        .add("energy_per_trillion_tokens_j", Better::less, "The same for a trillion tokens.",
             [](const Of& c) { return plan_energy_per_trillion_tokens(c.candidate(), c.result()); })
        .add("co2_t", Better::less,
             "Carbon dioxide that the grid emits for it; null where its intensity is not given.",
             [](const Of& c) { return OrNull<double>{c.result().expected.tonnes_co2}; });
    out.add("begins_s", Better::less,
            "Of time_s, until the first step: machines and data are there.",
            [](const Of& c) { return c.result().expected.before_s; })
        .list_if_any("time_lost", "What of time_s does not train at full speed, most first.",
                     time_lost_fields(), times_lost);
    add_plan_money(out);
    return out;
  }();
  return fields;
}

const FieldTable<PlanChances>& plan_chance_fields() {
  using Of = PlanChances;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("time", Better::more, "Share of the samples that keep the limit of time.",
               [](const Of& c) { return c.time; })
          .add("power", Better::more, "Share of them that keep the limit of power.",
               [](const Of& c) { return c.power; })
          .add("usd", Better::more, "Share of them that keep the limit of money.",
               [](const Of& c) { return c.usd; })
          .add("all", Better::more, "Share of them that keep all limits.",
               [](const Of& c) { return c.all; });
  return fields;
}

const FieldTable<PlanMonth>& plan_month_fields() {
  using Of = PlanMonth;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("write_off_usd", Better::less, "What machines lose in value.",
               [](const Of& m) { return m.write_off_usd; })
          .add("running_usd", Better::less,
               "Energy, people and hosting; for machines in lots capital, too.",
               [](const Of& m) { return m.running_usd; })
          .add("rent_usd", Better::less, "Rent of machines.",
               [](const Of& m) { return m.rent_usd; })
          .add("egress_usd", Better::less, "Moving data between regions.",
               [](const Of& m) { return m.egress_usd; })
          .add("storage_usd", Better::less, "Holding the dataset.",
               [](const Of& m) { return m.storage_usd; })
          .add("usd", Better::less, "All of that.", [](const Of& m) { return m.usd(); });
  return fields;
}

void add_what_it_is(FieldTable<PlannedCandidate>& fields) {
  using Of = PlannedCandidate;
  fields.add("name", "Its name.", [](const Of& c) { return c.candidate().name; })
      .add("pay", R"(How its machines are paid for: "rent" or "own".)",
           [](const Of& c) { return c.candidate().rented ? "rent" : "own"; })
      .add("node", "Kind of node.", [](const Of& c) { return c.scenario().node.name; })
      .add("gpu", "Kind of GPU.", [](const Of& c) { return c.scenario().node.gpu.name; })
      .add("gpus", "GPUs that train.", [](const Of& c) { return c.scenario().gpus(); })
      .add("nodes", "Nodes that they are in.", [](const Of& c) { return c.scenario().nodes; })
      .add("h100_equivalents", Better::more,
           "Dense 16-bit peak of these GPUs over that of an H100 SXM.",
           [](const Of& c) { return h100_equivalents(c.scenario(), c.scenario().gpus()); })
      .object("layout", "How the model is cut over them.", plan_layout_fields(),
              [](const Of& c) -> const Scenario& { return c.scenario(); })
      .add("tuned", "Whether the layout was searched for.",
           [](const Of& c) { return c.candidate().tuned; })
      .add("possible", "Whether it can be done at all: else what follows is absent.",
           [](const Of& c) { return c.possible(); })
      .add("verdict", "Why it is taken, or not.", [](const Of& c) { return c.verdict; })
      .object("region", "Where it trains, where the plan has regions.", plan_region_fields(),
              [](const Of& c) -> std::optional<PlannedCandidate> {
                if (!c.candidate().place) return std::nullopt;
                return c;
              });
}

/// One step of it, and a run with every input at its median.
void add_how_it_goes(FieldTable<PlannedCandidate>& fields) {
  using Of = PlannedCandidate;
  const auto bound = [](double StepBand::* end) {
    return [end](const Of& c) -> std::optional<double> {
      if (!c.possible() || !c.result().model.band) return std::nullopt;
      return (*c.result().model.band).*end;
    };
  };
  fields
      .add("step_s", Better::less, "Time of one training step.",
           where_possible([](const Of& c) { return c.result().model.step_s; }))
      .add("method", "How the step was simulated.",
           where_possible([](const Of& c) { return name_of(c.result().model.method); }))
      .add("exact_low_s",
           "The least that a simulation of every rank can give, where the step is not exact.",
           bound(&StepBand::low_s))
      .add("exact_high_s", "The most that it can give.", bound(&StepBand::high_s))
      .add("mfu", Better::more, "Model FLOP/s over the datasheet peak (MFU).",
           where_possible([](const Of& c) { return c.result().model.mfu; }))
      .add("goodput", Better::more, "Share of the time that advances training.",
           where_possible([](const Of& c) { return c.result().expected.goodput; }))
      .add("interruptions", Better::less, "Failures that stop the job.",
           where_possible([](const Of& c) { return c.result().expected.interruptions; }))
      .add("power_limit_w", "Limit of its site's power, the plan's or its own; null: none.",
           where_possible([](const Of& c) {
             return OrNull<Watts>{power_limit(c.answer.spec, c.candidate())};
           }));
}

void add_samples(FieldTable<PlannedCandidate>& fields) {
  using Of = PlannedCandidate;
  const auto spread = [](double PlanOutcome::* point, SampleMean PlanResult::* samples) {
    return where_possible([point, samples](const Of& c) {
      return PlanSpread{c.result().expected.*point, c.result().*samples};
    });
  };
  fields
      .object("time_s", "Time of the training over the samples.", plan_spread_fields(),
              spread(&PlanOutcome::time_s, &PlanResult::time_s))
      .object("usd", "Money of the training over the samples, where it has a price.",
              plan_spread_fields(),
              [](const Of& c) -> std::optional<PlanSpread> {
                if (!c.possible() || !c.priced()) return std::nullopt;
                return PlanSpread{c.result().expected.usd, c.result().usd};
              })
      .object("energy_j", "Energy of the training over the samples.", plan_spread_fields(),
              spread(&PlanOutcome::energy_j, &PlanResult::energy_j))
      .object("peak_w", "Highest reading of the site's meter, over the samples.",
              plan_spread_fields(), spread(&PlanOutcome::peak_w, &PlanResult::peak_w))
      .add("gpu_nameplate_w", "Rated power of all its GPUs.",
           where_possible([](const Of& c) { return c.result().model.power.gpu_nameplate; }))
      .object("expected", "With every input at its median.", plan_expected_fields(),
              where_possible([](const Of& c) { return c; }))
      .object("chances", "How surely it keeps the limits.", plan_chance_fields(),
              where_possible([](const Of& c) { return c.result().chances; }))
      .add("unfinished_share", Better::less, "Share of the samples in which it does not end.",
           where_possible([](const Of& c) { return c.result().unfinished; }))
      .add("best_share", Better::more, "Share of the samples in which it is the best.",
           where_possible([](const Of& c) { return c.result().best_share; }))
      .add("on_front", "Whether no other is better in all of time, money and energy.",
           where_possible([](const Of& c) { return c.result().on_front; }))
      .list_if_any("sensitivity", "What each uncertain input moves.", plan_swing_fields(),
                   swings_of_plan);
}

const FieldTable<PlannedCandidate>& plan_candidate_fields() {
  using Of = PlannedCandidate;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    add_what_it_is(out);
    add_how_it_goes(out);
    add_samples(out);
    out.list_if_any("phases", "Its phases, where it has several.", plan_phase_fields(),
                    [](const Of& c) { return phases_of(c.answer, c.place); })
        .object("data", "The dataset on its way to the job, where the run says one.",
                plan_data_fields(),
                [](const Of& c) -> const PlanResult* {
                  return c.possible() && c.result().model.plan.data ? &c.result() : nullptr;
                })
        .list_if_any("money_by_month", "Money of each month, where there is a region or a dataset.",
                     plan_month_fields(),
                     [](const Of& c) -> std::vector<PlanMonth> {
                       if (!c.possible()) return {};
                       return c.result().months;
                     })
        .list_if_any("months", "Machines that come in lots, and their money, month by month.",
                     lot_month_fields(),
                     [](const Of& c) -> std::vector<MonthMoney> {
                       if (!c.possible() || !c.result().model.fleet) return {};
                       return c.result().expected.lots;
                     })
        .list_if_any("lots", "What each of those lots costs until the first phase is done.",
                     lot_price_fields(), [](const Of& c) -> std::vector<LotPrice> {
                       const PlanResult& r = c.result();
                       if (!c.possible() || !r.model.fleet) return {};
                       return plan_lot_prices(r.model, *r.model.fleet, r.first);
                     });
    return out;
  }();
  return fields;
}

const FieldTable<PlanLimits>& plan_limit_fields() {
  using Of = PlanLimits;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("time_s", "Of time; null: none.",
               [](const Of& l) { return OrNull<Seconds>{l.time}; })
          .add("power_w", "Of the site's power, at its highest reading; null: none.",
               [](const Of& l) { return OrNull<Watts>{l.power}; })
          .add("usd", "Of money; null: none.", [](const Of& l) { return OrNull<double>{l.usd}; })
          .add("confidence", "In which share of the samples a candidate has to keep all of them.",
               [](const Of& l) { return l.confidence; });
  return fields;
}

OrNull<std::string> name_of_candidate(const PlanAnswer& answer,
                                      const std::optional<std::size_t>& i) {
  if (!i) return {};
  return {answer.candidate(*i).name};
}

/// A number of the choice; null where nothing keeps the limits.
template <class Get>
auto of_the_choice(Get get) {
  return [get](const PlanAnswer& a) -> OrNull<double> {
    if (!a.report.choice) return {};
    return {get(a.result(*a.report.choice))};
  };
}
/// The same of money, null where the choice has no price.
template <class Get>
auto of_the_price(Get get) {
  return [get](const PlanAnswer& a) -> OrNull<double> {
    if (!a.report.choice || !is_priced(a.candidate(*a.report.choice))) return {};
    return {get(a.result(*a.report.choice))};
  };
}

void add_plan_choice(FieldTable<PlanAnswer>& fields) {
  using Of = PlanAnswer;
  using Result = const PlanResult&;
  fields
      .add("choice", "The best of the candidates that keep the limits; null where none does.",
           [](const Of& a) { return name_of_candidate(a, a.report.choice); })
      .add("nearest", "The one that keeps them likeliest; null where nothing is possible.",
           [](const Of& a) { return name_of_candidate(a, a.report.nearest); })
      .add("choice_time_s", Better::less, "Time of the choice, every input at its median.",
           of_the_choice([](Result r) { return r.expected.time_s; }))
      .add("choice_time_s_p05", Better::less, "Time of the choice: 1 of 20 samples is below.",
           of_the_choice([](Result r) { return r.time_s.low; }))
      .add("choice_time_s_p95", Better::less, "Time of the choice: 1 of 20 samples is above.",
           of_the_choice([](Result r) { return r.time_s.high; }))
      .add("choice_usd", Better::less, "Money of the choice, every input at its median.",
           of_the_price([](Result r) { return r.expected.usd; }))
      .add("choice_usd_p05", Better::less, "Money of the choice: 1 of 20 samples is below.",
           of_the_price([](Result r) { return r.usd.low; }))
      .add("choice_usd_p95", Better::less, "Money of the choice: 1 of 20 samples is above.",
           of_the_price([](Result r) { return r.usd.high; }))
      .add("choice_chance", Better::more,
           "In which share of the samples the choice keeps all limits.",
           of_the_choice([](Result r) { return r.chances.all; }))
      .add("recommendation", "What to take and why, in words.", plan_recommendation)
      .add("notes", "What is to be known of the answer.", plan_notes);
}

const FieldTable<PlanAnswer>& plan_answer_fields() {
  using Of = PlanAnswer;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    out.add("plan", "Its file.", [](const Of& a) { return a.spec.file; })
        .add("model", "The model that is trained.",
             [](const Of& a) { return a.candidate(0).scenario.job.model.name; })
        .add("tokens", "Tokens of the training.",
             [](const Of& a) { return a.spec.training.tokens; })
        .add("prefer", "What is least in the best.",
             [](const Of& a) { return kPlanGoals[static_cast<std::size_t>(a.spec.goal)]; })
        .add("samples", "Samples of the uncertain inputs.",
             [](const Of& a) { return a.spec.samples; })
        .add("seed", "Seed of the samples.", [](const Of& a) { return a.spec.seed; });
    add_plan_choice(out);
    out.object("limits", "What the plan has to keep.", plan_limit_fields(),
               [](const Of& a) -> const PlanLimits& { return a.spec.limits; })
        .add("regions_compared", "What sets regions apart, a sentence each; where it has several.",
             [](const Of& a) -> std::optional<std::vector<std::string>> {
               if (a.spec.regions.empty()) return std::nullopt;
               return region_words(a);
             })
        .list("candidates", "Each candidate, in the plan's order.", plan_candidate_fields(),
              planned_candidates)
        .add("assumptions", "What was filled in.", plan_assumptions);
    return out;
  }();
  return fields;
}

}  // namespace

nlohmann::ordered_json plan_json(const PlanAnswer& answer) {
  return Value(plan_answer_fields().values(answer)).json();
}

std::vector<FieldInfo> plan_fields() { return plan_answer_fields().infos(); }

CsvText plan_csv(const PlanAnswer& answer) {
  const auto line = [](std::vector<std::string> cells) { return csv_line(cells); };
  CsvText out = line({"candidate", "pay", "gpus", "possible", "mfu", "goodput", "time_s",
                      "time_s_p05", "time_s_p95", "usd", "usd_p05", "usd_p95", "energy_j", "peak_w",
                      "chance", "on_front", "capital_usd"});
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanCandidate& candidate = answer.candidate(i);
    const PlanResult& r = answer.result(i);
    const bool possible = r.model.impossible.empty();
    std::vector<std::string> cells{candidate.name, candidate.rented ? "rent" : "own",
                                   std::to_string(r.model.scenario.gpus()), possible ? "1" : "0"};
    if (possible) {
      for (const double value :
           {r.model.mfu, r.expected.goodput, r.expected.time_s, r.time_s.low, r.time_s.high,
            r.expected.usd, r.usd.low, r.usd.high, r.expected.energy_j, r.expected.peak_w,
            r.chances.all, r.on_front ? 1.0 : 0.0, r.expected.capital.total_usd()}) {
        cells.push_back(number_text(value));
      }
      constexpr std::array<std::size_t, 4> kMoneyCells{9, 10, 11, 16};
      for (const std::size_t cell : kMoneyCells) {
        if (!is_priced(candidate)) cells[cell].clear();
      }
    } else {
      cells.resize(17);
    }
    out += line(std::move(cells));
  }
  return out;
}

}  // namespace lockstep
