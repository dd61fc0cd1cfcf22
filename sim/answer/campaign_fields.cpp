#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "sim/answer/answer_fields.hpp"
#include "sim/answer/scaling.hpp"

namespace lockstep {
namespace {

using Run = CampaignResult;

template <class Get>
auto of_bill(Get get) {
  return [get](const Run& r) -> std::optional<double> {
    if (!r.bill) return std::nullopt;
    return get(*r.bill);
  };
}
/// Of what is paid beside the machines, where there are prices.
template <class Get>
auto of_cost(Get get) {
  return [get](const Run& r) -> std::optional<double> {
    if (!r.bill) return std::nullopt;
    // A site's charge for its highest hours is no price of "cost".
    if (!has_prices(prices_of(r)) && r.bill->cost.total_usd() == 0) return std::nullopt;
    return get(r.bill->cost);
  };
}
/// Of what it costs to own the machines, where these have a price.
template <class Get>
auto of_owning(Get get) {
  return [get](const Run& r) -> std::optional<double> {
    if (!r.bill || !prices_machines(r.scenario.power->cost)) return std::nullopt;
    return get(r.bill->cost);
  };
}
std::optional<double> run_hashes(const Run& r, HashDraw HashBand::* which) {
  if (!r.hash || r.hash->draws <= 1) return std::nullopt;
  return (r.hash->bands[0].*which).value;
}
std::optional<double> run_interval(const Run& r, double PredictionInterval::* end) {
  if (!r.interval) return std::nullopt;
  return r.plan.step_s * (*r.interval).*end;
}
template <class Get>
auto of_data(Get get) {
  return [get](const Run& r) -> std::optional<double> {
    if (r.plan.data_read_bytes_per_s <= 0) return std::nullopt;
    return get(r.plan);
  };
}

/// Of a run that waits for machines or data.
template <class Get>
auto unless_at_once(Get get) {
  return [get](const Run& r) -> std::optional<Seconds> {
    if (r.before() <= Seconds{}) return std::nullopt;
    return get(r);
  };
}

void add_run_times(FieldTable<Run>& fields) {
  fields
      .add("goodput", Better::more,
           "Share of the wall time of all runs together that advances training.",
           [](const Run& r) { return r.summary.goodput.mean; })
      .add("goodput_half_width_95", "Half of its 95 % confidence interval.",
           [](const Run& r) { return r.summary.goodput.half_width; })
      .add("wall_s", Better::less, "Wall time of the run; mean.",
           [](const Run& r) { return r.summary.wall_s.mean; })
      .add("begins_s", Better::less,
           "From the start of the plan, or of the staging of the dataset, until the first step; "
           "where that is not at once.",
           unless_at_once([](const Run& r) { return r.before(); }))
      .add(
          "done_s", Better::less,
          "The same until the mean run is done: begins_s and wall_s. Where it begins at once it is "
          "wall_s, and left out.",
          unless_at_once([](const Run& r) { return r.done(); }))
      .add("interruptions", Better::less, "How often the job is stopped; mean.",
           [](const Run& r) { return r.summary.interruptions.mean; })
      .add("mttf_s", Better::more,
           "Mean time to failure: all wall time over all interruptions; null where none was seen.",
           [](const Run& r) { return OrNull<double>{r.summary.mttf.mean_s}; })
      .add("mttf_at_least_s", Better::more, "With 95 % confidence it is no shorter.",
           [](const Run& r) { return r.summary.mttf.at_least_s; })
      .add("mfu", Better::more,
           "MFU of a healthy step, attention in full; with \"rl\" of all that trains, over the "
           "iteration.",
           [](const Run& r) { return r.mfu; })
      .add("useful_flops_share", Better::more, "MFU x goodput.",
           [](const Run& r) { return r.mfu * r.summary.goodput.mean; })
      .add("step_s", Better::less, "Time of a healthy step; with \"rl\" of an iteration.",
           [](const Run& r) { return r.plan.step_s; })
      .add("steps_done", Better::more,
           "Healthy steps that its productive time is worth; mean. With \"rl\" iterations.",
           [](const Run& r) { return r.steps(); })
      .add("tokens_done", Better::more, "Tokens of the steps done.",
           [](const Run& r) { return r.steps() * r.tokens_per_step(); })
      .add("gpus", "GPUs that the job uses.", [](const Run& r) { return r.work().gpus(); })
      .add("nodes", "Nodes that the job uses.", [](const Run& r) { return r.work().nodes(); })
      .add("h100_equivalents", Better::more,
           "Dense 16-bit peak of the job's GPUs over that of an H100 SXM.",
           [](const Run& r) { return h100_equivalents(r.scenario, r.work().gpus()); })
      .add("gpu_hours", Better::less,
           "GPU hours of the job; with run.purchase of the nodes that it runs on.",
           [](const Run& r) { return r.gpu_hours(); })
      .add("held_gpu_hours", Better::less,
           "GPU hours with the hot spares, which are owned or rented all the time; with "
           "run.purchase of the nodes that are there.",
           [](const Run& r) { return r.held_gpu_hours(); })
      .add("trajectories", "Runs that were drawn at random.",
           [](const Run& r) { return r.summary.trajectories; })
      .add("finished_share", Better::more, "Share of them that did all of their work.",
           [](const Run& r) { return r.summary.finished; })
      .add("checkpoints", "Checkpoints; mean.", [](const Run& r) { return r.summary.checkpoints; })
      .add("checkpoint_bytes", Better::less, "Size of a checkpoint.",
           [](const Run& r) { return r.plan.checkpoint.all; })
      .add("unreadable_checkpoints", Better::less,
           "Checkpoints that turned out to be unreadable; mean.",
           [](const Run& r) { return r.summary.fallbacks; })
      .add("step_s_low", Better::less, "Lower end of what 90 % of healthy steps would take.",
           [](const Run& r) { return run_interval(r, &PredictionInterval::low); })
      .add("step_s_high", Better::less, "Upper end of the same.",
           [](const Run& r) { return run_interval(r, &PredictionInterval::high); })
      .add("hash_least_s", Better::less, "The shortest step over the draws of --hash-seeds.",
           [](const Run& r) { return run_hashes(r, &HashBand::least); })
      .add("hash_median_s", Better::less, "The median step over the draws of --hash-seeds.",
           [](const Run& r) { return run_hashes(r, &HashBand::median); })
      .add("hash_most_s", Better::less, "The longest step over the draws of --hash-seeds.",
           [](const Run& r) { return run_hashes(r, &HashBand::most); })
      .add("data_read_bytes_per_s", "Training data that the job reads.",
           of_data([](const CampaignPlan& p) { return p.data_read_bytes_per_s; }))
      .add("data_speed", Better::more, "Speed of the job over one that never waits for data.",
           of_data([](const CampaignPlan& p) { return p.data_speed; }));
}

void add_run_bill(FieldTable<Run>& fields) {
  using C = const CostReport&;
  fields
      .add("price_usd", Better::less, "What a cloud asks for held_gpu_hours.",
           [](const Run& r) { return r.rent_usd(); })
      .add("energy_j", Better::less,
           "Energy at the site's meter; mean of runs, or with run.site of the run whose goodput is "
           "the median.",
           of_bill([](const RunBill& b) { return b.usage.energy.base_units(); }))
      .add("facility_mean_w", Better::less, "Power of the site; mean of the run.",
           of_bill([](const RunBill& b) {
             return b.usage.energy.base_units() / b.usage.time.base_units();
           }))
      .add("joules_per_token", Better::less,
           "energy_j over the tokens that the same run trains on.", of_bill([](const RunBill& b) {
             return b.usage.tokens > 0 ? b.usage.energy.base_units() / b.usage.tokens : 0;
           }))
      .add("tonnes_co2", Better::less,
           "Carbon dioxide that the grid emits for it; where its intensity is given.",
           of_bill([](const RunBill& b) { return b.cost.tonnes_co2; }))
      .add("missing_prices",
           "Keys of prices that were not given, where the machines have none: nothing is owned "
           "then.",
           [](const Run& r) -> std::optional<std::vector<std::string>> {
             if (!r.bill) return std::nullopt;
             const CostSpec prices = prices_of(r);
             // Machines that are bought have their prices in "purchase".
             if (r.fleet ? has_prices(prices) : prices_machines(prices)) return std::nullopt;
             return missing_prices(prices);
           })
      .add("capital_usd", Better::less, "What has to be spent before the machines can run.",
           of_owning([](C c) { return c.capital.total_usd(); }))
      .add("capital_usd_per_node", Better::less,
           "The same over the nodes, hot spares included: machines, network and building.",
           [](const Run& r) -> std::optional<double> {
             if (!r.bill || !prices_machines(r.scenario.power->cost)) return std::nullopt;
             return r.bill->cost.capital.total_usd() / r.power->holdings.nodes;
           })
      .add("capital_machines_usd", Better::less, "Of it machines.",
           of_owning([](C c) { return c.capital.machines_usd; }))
      .add("capital_network_usd", Better::less, "Of it network.",
           of_cost([](C c) { return c.capital.network_usd; }))
      .add("capital_building_usd", Better::less, "Of it building.",
           of_cost([](C c) { return c.capital.building_usd; }))
      .add("write_off_usd", Better::less,
           "What all of it loses in value meanwhile; of the building and the site's plants alone, "
           "where machines have no price.",
           [](const Run& r) -> std::optional<double> {
             if (!r.bill) return std::nullopt;
             const bool plants = !r.fleet && r.bill->cost.write_off_usd() > 0;
             if (!plants && !prices_machines(r.scenario.power->cost)) return std::nullopt;
             return r.bill->cost.write_off_usd();
           })
      .add("running_usd", Better::less, "What is paid meanwhile: energy, people, hosting.",
           of_cost([](C c) { return c.running_usd(); }))
      .add("energy_usd", Better::less, "Of it energy, by the tariff of its hours.",
           of_cost([](C c) { return c.energy_usd; }))
      .add("usd_per_kwh", Better::less, "energy_usd over the kWh of energy_j.",
           [](const Run& r) -> std::optional<double> {
             // Rented lots have their energy in their price.
             if (!r.bill || r.fleet || r.bill->cost.energy_usd <= 0) return std::nullopt;
             return r.bill->cost.energy_usd / (r.bill->usage.energy.base_units() / 3.6e6);
           })
      .add("owned_usd", Better::less,
           "Cost of owning: write_off_usd and running_usd, without data.storage_usd.",
           of_owning([](C c) { return c.total_usd(); }))
      .add("owned_usd_per_trillion_tokens", Better::less,
           "owned_usd per 1e12 tokens, without data.storage_usd.",
           of_owning([](C c) { return c.usd_per_trillion_tokens; }))
      .add("owned_usd_per_eflop", Better::less,
           "owned_usd per 1e18 model FLOP, without data.storage_usd.",
           of_owning([](C c) { return c.usd_per_eflop; }));
}

struct WallTime {
  std::string_view bucket;
  double share = 0, seconds = 0;
};
std::vector<WallTime> wall_times(const Run& r) {
  std::vector<WallTime> out;
  for (std::size_t b = 0; b < kRunBuckets; ++b) {
    const double share = r.summary.shares[b];
    out.push_back({run_bucket_names()[b].key, share, share * r.summary.wall_s.mean});
  }
  return out;
}
const FieldTable<WallTime>& wall_time_fields() {
  using Of = WallTime;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("bucket", "Where the wall time goes.", [](const Of& w) { return w.bucket; })
          .add("share", Better::less, "Share of all wall time.",
               [](const Of& w) { return w.share; })
          .add("seconds", Better::less, "Mean of a run.", [](const Of& w) { return w.seconds; });
  return fields;
}

const FieldTable<ModeSummary>& cause_fields() {
  using Of = ModeSummary;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "What fails.", [](const Of& m) { return m.name; })
          .add("failures", Better::less, "How often; mean of a run.",
               [](const Of& m) { return m.failures; })
          .add("cost_s", Better::less, "Recovery and work done again; mean of a run.",
               [](const Of& m) { return m.cost_s; });
  return fields;
}

/// What checkpoints at an interval write.
struct Writes {
  const CheckpointWrites* of = nullptr;  ///< null: not known
  Seconds interval;
};
template <class Of, class Get>
void add_writes(FieldTable<Of>& fields, Get writes) {
  constexpr double kDay = 86'400;
  fields
      .add("written_bytes_per_s", "What checkpoints write while steps run.",
           [writes](const Of& of) -> std::optional<double> {
             const Writes w = writes(of);
             if (w.of == nullptr) return std::nullopt;
             return w.of->rate(w.interval).base_units();
           })
      .add("written_bytes_per_day", "The same per day.",
           [writes](const Of& of) -> std::optional<double> {
             const Writes w = writes(of);
             if (w.of == nullptr) return std::nullopt;
             return w.of->rate(w.interval).base_units() * kDay;
           })
      .add("storage_share", Better::less, "Of what the storage sustains.",
           [writes](const Of& of) -> std::optional<double> {
             const Writes w = writes(of);
             if (w.of == nullptr || w.of->sustained <= BytesPerSecond{}) return std::nullopt;
             return w.of->share(w.interval);
           });
}

struct TierAnswer {
  const CheckpointTier* tier = nullptr;
  const CheckpointWrites* writes = nullptr;
};
std::vector<TierAnswer> tier_answers(const Run& r) {
  std::vector<TierAnswer> out;
  for (std::size_t t = 0; t < r.plan.campaign.tiers.size(); ++t) {
    const bool known = t < r.plan.writes.size();
    out.push_back({&r.plan.campaign.tiers[t], known ? &r.plan.writes[t] : nullptr});
  }
  return out;
}
const FieldTable<TierAnswer>& tier_fields() {
  using Of = TierAnswer;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    out.add("name", "Where the checkpoints go.", [](const Of& t) { return t.tier->name; })
        .add("drag", Better::less, "Share of the job's speed lost while one is on its way.",
             [](const Of& t) { return t.tier->drag; })
        .add("interval_s", "From one to the next.", [](const Of& t) { return t.tier->interval; })
        .add("blocks_s", Better::less, "How long the job waits for one.",
             [](const Of& t) { return t.tier->blocks; })
        .add("finishes_s", Better::less, "After that, until it can be restored.",
             [](const Of& t) { return t.tier->finishes; })
        .add("restores_s", Better::less, "Reading it back.",
             [](const Of& t) { return t.tier->restores; });
    add_writes(out, [](const Of& t) { return Writes{t.writes, t.tier->interval}; });
    return out;
  }();
  return fields;
}

const FieldTable<SampleMean>& mean_fields() {
  using Of = SampleMean;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("mean", "Mean over the runs.", [](const Of& m) { return m.mean; })
          .add("half_width_95", "Half of its 95 % confidence interval.",
               [](const Of& m) { return m.half_width; })
          .add("p5", "5th percentile of the runs.", [](const Of& m) { return m.low; })
          .add("p50", "Median of the runs.", [](const Of& m) { return m.median; })
          .add("p95", "95th percentile of the runs.", [](const Of& m) { return m.high; });
  return fields;
}
const FieldTable<RunSummary>& distribution_fields() {
  using Of = RunSummary;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .object("goodput", "Goodput.", mean_fields(),
                  [](const Of& s) -> const SampleMean& { return s.goodput; })
          .object("wall_s", "Wall time, in seconds.", mean_fields(),
                  [](const Of& s) -> const SampleMean& { return s.wall_s; })
          .object("interruptions", "Interruptions.", mean_fields(),
                  [](const Of& s) -> const SampleMean& { return s.interruptions; });
  return fields;
}

const FieldTable<ProjectedMttf>& projection_fields() {
  using Of = ProjectedMttf;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("gpus", "GPUs of the job.", [](const Of& p) { return p.gpus; })
          .add("mttf_s", Better::more, "Its mean time to failure.",
               [](const Of& p) { return p.mttf; });
  return fields;
}

struct IntervalAnswer {
  const IntervalPoint* point = nullptr;
  const CheckpointWrites* writes = nullptr;
};
const FieldTable<IntervalAnswer>& interval_point_fields() {
  using Of = IntervalAnswer;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    out.add("interval_s", "The checkpoint interval.", [](const Of& p) { return p.point->interval; })
        .add("goodput", Better::more, "Goodput with it.",
             [](const Of& p) { return p.point->goodput; })
        .add("half_width_95", "Half of its 95 % confidence interval.",
             [](const Of& p) { return p.point->half_width; });
    add_writes(out, [](const Of& p) { return Writes{p.writes, p.point->interval}; });
    return out;
  }();
  return fields;
}
/// Requires CampaignResult::optimum.
const FieldTable<Run>& optimum_fields() {
  const auto point = [](IntervalPoint IntervalOptimum::* which) {
    return [which](const Run& r) {
      return IntervalAnswer{&((*r.optimum).*which), &r.plan.writes.front()};
    };
  };
  static const FieldTable<Run> fields =
      FieldTable<Run>()
          .add("path", "The value of the scenario that was varied.",
               [](const Run&) -> std::string_view { return "run.checkpoint.interval"; })
          .object("best", "Where goodput is largest, within what the storage sustains.",
                  interval_point_fields(), point(&IntervalOptimum::best))
          .object("given", "The scenario's own.", interval_point_fields(),
                  point(&IntervalOptimum::given))
          .object("young", "Young's closed form, simulated.", interval_point_fields(),
                  point(&IntervalOptimum::young))
          .object("daly", "Daly's closed form, simulated.", interval_point_fields(),
                  point(&IntervalOptimum::daly))
          .add("least_interval_s", "No shorter one is the best: the storage would not sustain it.",
               [](const Run& r) { return r.optimum->least; })
          .add("most_storage_share", "Share of the storage that writes may take.",
               [](const Run& r) { return r.plan.writes.front().most_share; })
          .add("limited_by_storage", "Whether a shorter one would be better by goodput alone.",
               [](const Run& r) { return r.optimum->limited; })
          .list("curve", "Intervals that were simulated.", interval_point_fields(),
                [](const Run& r) {
                  std::vector<IntervalAnswer> out;
                  for (const IntervalPoint& each : r.optimum->curve) {
                    out.push_back({&each, &r.plan.writes.front()});
                  }
                  return out;
                });
  return fields;
}

/// What the site draws in each state of the run, and within a step. Requires CampaignResult::power.
const FieldTable<StepPower>& run_level_fields() {
  using Of = StepPower;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("training_w", Better::less, "While steps go on.",
               [](const Of& p) { return p.levels.training.facility; })
          .add("waiting_w", Better::less, "While the job stands still and its kernels spin.",
               [](const Of& p) { return p.levels.waiting.facility; })
          .add("starting_w", Better::less, "While processes hold the cards and nothing runs.",
               [](const Of& p) { return p.levels.starting.facility; })
          .add("idle_w", Better::less, "While nothing holds the cards.",
               [](const Of& p) { return p.levels.idle.facility; })
          .add("step_low_w", "The least within a step.",
               [](const Of& p) { return trough_power(p.facility); })
          .add("step_high_w", Better::less, "The most within a step.",
               [](const Of& p) { return peak_power(p.facility); })
          .add("ramp_w_per_s", Better::less, "Steepest change of power within a step.",
               [](const Of& p) { return p.ramp_w_per_s; })
          .old_name("step_ramp_w_per_s", "ramp_w_per_s")
          .add("pue", Better::less, "Power usage effectiveness: all power over that of machines.",
               [](const Of& p) { return p.pue; });
  return fields;
}

std::vector<std::string> all_assumptions(const Run& r) {
  std::vector<std::string> out = r.scenario.assumptions;
  out.insert(out.end(), r.plan.assumptions.begin(), r.plan.assumptions.end());
  return out;
}

void add_run_lists(FieldTable<Run>& fields) {
  fields.list("wall_time", "All wall time, in exactly one bucket.", wall_time_fields(), wall_times)
      .list_if_any("causes", "What stops the job.", cause_fields(),
                   [](const Run& r) -> const auto& { return r.summary.modes; })
      .list_if_any("checkpoint_tiers", "Where checkpoints go.", tier_fields(), tier_answers)
      .object("distributions", "How the runs spread.", distribution_fields(),
              [](const Run& r) -> const RunSummary& { return r.summary; })
      .list_if_any("mttf_by_rates", "Jobs of other sizes, by their components alone.",
                   projection_fields(), [](const Run& r) -> const auto& { return r.projections; })
      .object("optimum", "The best checkpoint interval, with --optimise or --report.",
              optimum_fields(), [](const Run& r) { return r.optimum ? &r : nullptr; })
      .object("interval", "What step_s_low and step_s_high are made from.", interval_fields(),
              [](const Run& r) { return r.interval; })
      .object("facility_power", "Power of the site, where the scenario says \"power\".",
              run_level_fields(), [](const Run& r) { return r.power ? &*r.power : nullptr; })
      .object("purchase", "How its machines come, and the money, where the run says \"purchase\".",
              purchase_fields(), [](const Run& r) { return r.fleet ? &r : nullptr; })
      .object("iteration", "Of \"rl\": a healthy step, phase by phase.", iteration_fields(),
              [](const Run& r) -> const auto& { return r.plan.iteration; })
      .list_if_any("iteration_phases",
                   "Of \"rl\" with \"power\": what each phase of an iteration draws, without nodes "
                   "in reserve.",
                   phase_power_fields(), [](const Run& r) { return phases_of_energy(r.phases); })
      .object("data", "Its dataset on its way, where the run's \"data\" has one or a loader.",
              data_fields(), [](const Run& r) { return r.plan.data ? &r : nullptr; })
      .object("site", "What surrounds the racks, where the run says \"site\".", site_fields(),
              [](const Run& r) { return r.site ? &r : nullptr; })
      .add("interrupted", "True after Ctrl-C: fewer runs, or parts of the answer are missing.",
           [](const Run& r) { return r.interrupted ? std::optional(true) : std::nullopt; })
      .add("assumptions", "What was assumed where the scenario says nothing.", all_assumptions);
}

}  // namespace

const FieldTable<CampaignResult>& campaign_fields() {
  static const FieldTable<Run> fields = [] {
    FieldTable<Run> out;
    add_head(out, "run");
    add_run_times(out);
    add_run_bill(out);
    out.add("gpu_nameplate_w", "All GPUs by their datasheet.",
            [](const Run& r) -> std::optional<Watts> {
              if (!r.power) return std::nullopt;
              return r.power->gpu_nameplate;
            });
    add_site_limit_fields(
        out, [](const Run& r) { return r.power ? &*r.power : nullptr; },
        [](const Run& r) -> const PowerSpec& { return *r.scenario.power; });
    add_run_lists(out);
    out.object("hashing", "Draws of the paths' hashes, where there are any.", run_hash_fields(),
               [](const Run& r) -> const auto& { return r.hash; });
    add_written(out, [](const Run& r) -> const WrittenScenario& { return r.written; });
    return out;
  }();
  return fields;
}

NamedNumbers campaign_numbers(const CampaignResult& result) {
  NamedNumbers out = campaign_fields().numbers(result);
  for (const WallTime& of : wall_times(result)) {
    out.emplace_back(std::string(of.bucket) + "_share", of.share);
  }
  if (result.fleet) out.emplace_back("purchase.usd", sum_of(months_of(result)).usd());
  return out;
}

nlohmann::ordered_json campaign_json(const CampaignResult& result, const MemberNames* only) {
  return Value(campaign_fields().values(result, only)).json();
}

}  // namespace lockstep
