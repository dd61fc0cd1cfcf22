#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "sim/answer/answer_fields.hpp"
#include "sim/scenario/queue_order_extension.hpp"
#include "sim/scenario/queue_policy_extension.hpp"

namespace lockstep {
namespace {

using Queue = QueueAnswer;

double in_seconds(RunTime time) { return to_seconds(time).base_units(); }

/// {"useful": {"gpu_hours", "share"}, ...}.
Value queue_bucket_values(const Queue& a) {
  const std::array<double, kQueueBuckets> shares = queue_shares(a);
  Value::Object out;
  for (std::size_t b = 0; b < kQueueBuckets; ++b) {
    const bool of_suspension = b == static_cast<std::size_t>(QueueBucket::suspended);
    if (of_suspension && !a.spec.preemption.suspends) continue;
    const bool of_upkeep = b == static_cast<std::size_t>(QueueBucket::drained);
    if (of_upkeep && !a.spec.health.any()) continue;
    const bool of_cap = b == static_cast<std::size_t>(QueueBucket::capped);
    if (of_cap && !a.spec.power_cap) continue;
    out.emplace_back(
        std::string(kQueueBucketNames[b]),
        Value::Object{{"gpu_hours", a.result.books[b].gpu_hours()}, {"share", shares[b]}});
  }
  return out;
}

/// Null of no jobs.
OrNull<double> spread_number(const std::optional<QueueSpread>& spread,
                             double QueueSpread::* which) {
  return {spread ? std::optional((*spread).*which) : std::nullopt};
}

const FieldTable<std::optional<QueueSpread>>& spread_fields() {
  using Of = std::optional<QueueSpread>;
  const auto of = [](double QueueSpread::* which) {
    return [which](const Of& s) { return spread_number(s, which); };
  };
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("mean", Better::less, "Mean.", of(&QueueSpread::mean))
          .add("p50", Better::less, "Median.", of(&QueueSpread::p50))
          .add("p90", Better::less, "Nine of ten are not above.", of(&QueueSpread::p90))
          .add("p99", Better::less, "99 of 100 are not above.", of(&QueueSpread::p99))
          .add("most", Better::less, "The largest.", of(&QueueSpread::most));
  return fields;
}

const FieldTable<QueueGroup>& queue_group_fields() {
  using Of = QueueGroup;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Which they are.", [](const Of& g) { return g.name; })
          .add("jobs", "How many.", [](const Of& g) { return g.jobs; })
          .add("ended", "How many of them have ended.", [](const Of& g) { return g.ended; })
          .add("waiting", Better::less,
               "How many wait at the end; their waits count as far as they have come.",
               [](const Of& g) { return g.waiting; })
          .add("gpu_hours", "GPU hours that they held on the cluster.",
               [](const Of& g) { return g.gpu_hours; })
          .add("burst_jobs", "How many ran on rented nodes; with burst only.",
               [](const Of& g) -> std::optional<std::size_t> {
                 if (!g.burst) return std::nullopt;
                 return g.burst->jobs;
               })
          .add("burst_gpu_hours", "GPU hours that they held there; with burst only.",
               [](const Of& g) -> std::optional<double> {
                 if (!g.burst) return std::nullopt;
                 return g.burst->gpu_hours;
               })
          .add(
              "usd",
              "What they pay if those who hold GPUs pay for all machines, by the hour; where there "
              "are prices.",
              [](const Of& g) { return g.usd; })
          .object("wait_s", "Time in which a job that has started or waits held nothing.",
                  spread_fields(), [](const Of& g) { return g.wait_s; })
          .object("completion_s", "From the submission of a job that has ended to its end.",
                  spread_fields(), [](const Of& g) { return g.completion_s; })
          .object("slowdown",
                  "Completion over duration, of which 10 s count at least (bounded slowdown).",
                  spread_fields(), [](const Of& g) { return g.slowdown; });
  return fields;
}

const FieldTable<LicenseUse>& license_fields() {
  using Of = LicenseUse;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Which.", [](const Of& l) { return l.name; })
          .add("count", "How many there are.", [](const Of& l) { return l.count; })
          .add("held_mean", "How many jobs held, on average over what was simulated.",
               [](const Of& l) { return l.held_mean; });
  return fields;
}

const FieldTable<RecordedQueue>& recorded_fields() {
  using Of = RecordedQueue;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("jobs", "Jobs with a recorded start.", [](const Of& r) { return r.jobs; })
          .add("mean_wait_s", "Mean wait as recorded.", [](const Of& r) { return r.mean_wait_s; })
          .add("simulated_mean_wait_s", "Mean wait of the same jobs here.",
               [](const Of& r) { return r.simulated_mean_wait_s; })
          .add("wait_error", "Relative error of that.",
               [](const Of& r) -> std::optional<double> {
                 if (r.mean_wait_s <= 0) return std::nullopt;
                 return r.simulated_mean_wait_s / r.mean_wait_s - 1;
               })
          .add("median_gap_s", Better::less, "Between the two starts of a job, the median.",
               [](const Of& r) { return r.median_gap_s; })
          .add("largest_gap_s", Better::less, "The largest of them.",
               [](const Of& r) { return r.most_gap_s; })
          .add("with_nodes", "Jobs whose nodes were recorded.",
               [](const Of& r) { return r.with_nodes; })
          .add("same_nodes", Better::more, "Those of them that got the same nodes here.",
               [](const Of& r) { return r.same_nodes; })
          .add("inverted_pairs", Better::less, "Share of pairs that started in the other order.",
               [](const Of& r) { return r.inverted_pairs; });
  return fields;
}

const FieldTable<NodeHealthCounts>& health_fields() {
  using Of = NodeHealthCounts;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("drained", "How often a drain took a node out, when its last job had ended.",
               [](const Of& h) { return h.drained; })
          .add("emptying_mean_s", Better::less, "From a drain to that end, on average.",
               [](const Of& h) -> std::optional<double> {
                 if (h.drained == 0) return std::nullopt;
                 return in_seconds(h.emptying) / static_cast<double>(h.drained);
               })
          .add("stopped_jobs", Better::less, "How often a drain's deadline stopped a job.",
               [](const Of& h) { return h.stopped_jobs; })
          .add("lemons", "Nodes that fail more often than others, when the queue begins.",
               [](const Of& h) { return h.lemons; })
          .add("lemon_failures", Better::less, "How often one of them broke, of node_failures.",
               [](const Of& h) { return h.lemon_failures; })
          .add("taken_out", "How often a node broke as often as detection says.",
               [](const Of& h) { return h.taken_out; })
          .add("lemons_found", Better::more, "Of these, lemons.",
               [](const Of& h) { return h.lemons_found; });
  return fields;
}

/// {"useful": {"gpu_hours", "share"}, ...} of what was rented.
Value rented_bucket_values(const BurstSummary& b) {
  const double all = b.counts.rented.gpu_seconds();
  Value::Object out;
  for (std::size_t k = 0; k < kRentedBuckets; ++k) {
    const GpuTime& time = b.counts.books[k];
    out.emplace_back(std::string(kRentedBucketNames[k]),
                     Value::Object{{"gpu_hours", time.gpu_hours()},
                                   {"share", all > 0 ? time.gpu_seconds() / all : 0.0}});
  }
  return out;
}

const FieldTable<BurstSummary>& burst_fields() {
  using Of = BurstSummary;
  const auto without = [](const Of& b, const auto& get) -> std::optional<double> {
    if (!b.without) return std::nullopt;
    return get(*b.without);
  };
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("jobs", "Jobs that ran on rented nodes.", [](const Of& b) { return b.jobs; })
          .add("nodes_rented", "How often a node was rented.",
               [](const Of& b) { return b.counts.nodes; })
          .add("nodes_most", "How many were rented at a time, at most.",
               [](const Of& b) { return b.counts.most_nodes; })
          .add("rented_gpu_hours", Better::less,
               "GPU hours of rented nodes, from when each was rented until it was given back.",
               [](const Of& b) { return b.counts.rented.gpu_hours(); })
          .add("gpu_usd", Better::less, "What they cost.",
               [](const Of& b) { return b.counts.gpu_usd; })
          .add("egress_usd", Better::less, "What left the cloud cost, of jobs that have ended.",
               [](const Of& b) { return b.counts.egress_usd; })
          .add("usd", Better::less, "Both.", [](const Of& b) { return b.counts.usd(); })
          .add("usd_per_held_gpu_hour", Better::less, "That over GPU hours that jobs held there.",
               [](const Of& b) { return b.usd_per_held_gpu_hour(); })
          .add("wait_mean_without_s", Better::less,
               "Mean wait of all jobs if nobody burst: the queue simulated once more.",
               [without](const Of& b) {
                 return without(b, [](const WithoutBursts& w) { return w.wait_mean_s; });
               })
          .add("completion_mean_without_s", Better::less, "Mean completion time there.",
               [](const Of& b) -> std::optional<double> {
                 return b.without ? b.without->completion_mean_s : std::nullopt;
               })
          .add("wait_saved_s", Better::more, "By how much bursting shortens the mean wait.",
               [](const Of& b) { return b.wait_saved_s; })
          .add("saved_hours", Better::more, "The same of all jobs together.",
               [](const Of& b) { return b.saved_hours; })
          .add("usd_per_saved_hour", Better::less, "What an hour less of waiting costs.",
               [](const Of& b) { return b.usd_per_saved_hour(); })
          .add("waterfall", "Where the rented GPU time goes; the shares add up to 1.",
               rented_bucket_values);
  return fields;
}

const FieldTable<TrainingSummary>& training_fields() {
  using Of = TrainingSummary;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Which.", [](const Of& t) { return t.name; })
          .add("jobs", "Jobs of it.", [](const Of& t) { return t.jobs; })
          .add("ended", "Those that have ended.", [](const Of& t) { return t.ended; })
          .add("reference_step_s", Better::less, "A step alone on the cluster's first nodes.",
               [](const Of& t) { return t.reference_step_s; })
          .add("slowdown_mean", Better::less,
               "Time that a job which has ended worked, over what it takes at that pace; below 1 "
               "on nodes that are faster than the first.",
               [](const Of& t) { return OrNull<double>{t.mean_slowdown}; })
          .add("slowdown_most", Better::less, "The largest of them.",
               [](const Of& t) { return OrNull<double>{t.most_slowdown}; });
  return fields;
}

const FieldTable<Queue>& queue_power_fields() {
  static const FieldTable<Queue> fields = [] {
    const auto power = [](const Queue& a) -> const QueuePower& { return *a.summary.power; };
    FieldTable<Queue> out;
    out.add("given_gpu_w",
            "A GPU that a job of given duration holds, on average; gpu_draw, or halfway between a "
            "waiting process and the card's limit.",
            [power](const Queue& a) { return power(a).given_gpu; })
        .add("facility_mean_w", Better::less,
             "All nodes, the fabric, and what cools and feeds them; broken nodes are off.",
             [power](const Queue& a) { return mean_power(power(a).facility); })
        .add("facility_peak_w", Better::less, "The same, the most at any time.",
             [power](const Queue& a) { return power(a).peak; })
        .add("pue", Better::less, "Facility over IT power.",
             [power](const Queue& a) { return power(a).pue; })
        .add("energy_j", Better::less, "At the site's meter.",
             [power](const Queue& a) { return power(a).energy; })
        .add("energy_low_j", Better::less,
             "The same, if jobs of given duration drew what a waiting process does; energy_j where "
             "gpu_draw says what they draw.",
             [power](const Queue& a) { return power(a).least; })
        .add("energy_high_j", Better::less, "The same, if they drew the card's limit.",
             [power](const Queue& a) { return power(a).most; })
        .add("tonnes_co2", Better::less,
             "Carbon dioxide that the grid emits for it; where its intensity is given.",
             [power](const Queue& a) { return power(a).owned.tonnes_co2; })
        .add("cap_w", "What the queue's jobs may make it draw; where it has a power_cap.",
             [](const Queue& a) -> std::optional<double> {
               if (!a.spec.power_cap) return std::nullopt;
               return a.spec.power_cap->base_units();
             })
        .add("site_limit_w", "Power limit of the site; where it has one.",
             [](const Queue& a) { return a.spec.power->site_limit; })
        .add("site_excess_w", Better::less,
             "By how much the peak is above it; above 0 the limit is exceeded.",
             [power](const Queue& a) -> std::optional<double> {
               const auto& limit = a.spec.power->site_limit;
               if (!limit) return std::nullopt;
               return (power(a).peak - *limit).base_units();
             });
    return out;
  }();
  return fields;
}

void add_queue_money(FieldTable<Queue>& fields) {
  fields
      .object("power", "What the cluster draws, where the scenario says \"power\".",
              queue_power_fields(), [](const Queue& a) { return a.summary.power ? &a : nullptr; })
      .add("owned_usd", Better::less,
           "What owning all machines costs meanwhile, where \"cost\" has their price.",
           [](const Queue& a) { return a.summary.bill.owned_usd; })
      .add("rent_usd", Better::less,
           "What all GPUs cost by the hour meanwhile, where they have a price.",
           [](const Queue& a) { return a.summary.bill.rent_usd; })
      .add("partial_usd", Better::less,
           "What energy, people and the like cost meanwhile, where \"cost\" has prices and the "
           "machines have none.",
           [](const Queue& a) { return a.summary.bill.partial_usd; })
      .add("usd_per_held_gpu_hour", Better::less,
           "The first of the three that there is, over GPU hours that jobs held.",
           [](const Queue& a) { return a.summary.bill.usd_per_held_gpu_hour(); })
      .add("usd_with_burst", Better::less,
           "That first one and burst.usd: what the cluster and the rented nodes cost.",
           [](const Queue& a) { return a.summary.usd_with_burst(); })
      .add("billed", "Which of them that is: owned, rent or partial.",
           [](const Queue& a) -> std::optional<std::string_view> {
             if (!a.summary.bill.of) return std::nullopt;
             return kMoneyOf[static_cast<std::size_t>(*a.summary.bill.of)];
           });
}

void add_waits(FieldTable<Queue>& fields) {
  const auto of = [](double QueueSpread::* which, std::optional<QueueSpread> QueueGroup::* spread) {
    return [which, spread](const Queue& a) { return spread_number(a.summary.all.*spread, which); };
  };
  fields
      .add("wait_mean_s", Better::less,
           "Mean time in which a job that has started or waits held nothing; at least, where some "
           "wait at the end (all.waiting).",
           of(&QueueSpread::mean, &QueueGroup::wait_s))
      .add("wait_p50_s", Better::less, "Its median.", of(&QueueSpread::p50, &QueueGroup::wait_s))
      .add("wait_p90_s", Better::less, "Nine of ten jobs wait no longer.",
           of(&QueueSpread::p90, &QueueGroup::wait_s))
      .add("wait_p99_s", Better::less, "99 of 100 jobs wait no longer.",
           of(&QueueSpread::p99, &QueueGroup::wait_s))
      .add("completion_mean_s", Better::less,
           "Mean time from the submission of a job that has ended to its end.",
           of(&QueueSpread::mean, &QueueGroup::completion_s))
      .add("completion_p99_s", Better::less, "99 of 100 jobs take no longer.",
           of(&QueueSpread::p99, &QueueGroup::completion_s))
      .add("slowdown_mean", Better::less,
           "Mean of completion over duration, of which 10 s count at least.",
           of(&QueueSpread::mean, &QueueGroup::slowdown))
      .add("slowdown_p99", Better::less, "99 of 100 jobs are slowed no more.",
           of(&QueueSpread::p99, &QueueGroup::slowdown));
}

void add_counts(FieldTable<Queue>& fields) {
  fields
      .add("jobs", "Jobs that the scenario submits.",
           [](const Queue& a) { return a.spec.jobs.size(); })
      .add("ended", Better::more, "Jobs that have ended.",
           [](const Queue& a) { return a.summary.all.ended; })
      .add("never_started", Better::less, "Jobs that have not started.",
           [](const Queue& a) { return a.summary.never_started; })
      .add("cut", Better::less, "Jobs that their time limit or their reservation's end stopped.",
           [](const Queue& a) { return a.summary.cut; })
      .add("cancelled", Better::less,
           "Jobs that were refused, preempted for good, or whose dependency cannot be met.",
           [](const Queue& a) { return a.summary.cancelled; })
      .add("simulated_s", "Time that was simulated.",
           [](const Queue& a) { return in_seconds(a.result.end); })
      .add("makespan_s", Better::less, "From the first submission to the last end.",
           [](const Queue& a) { return OrNull<double>{a.summary.makespan_s}; })
      .add("utilisation", Better::more, "Share of the cluster's GPU time that jobs held.",
           [](const Queue& a) { return a.summary.utilisation; })
      .add("useful_share", Better::more, "Share of it that went into work that lasts.",
           [](const Queue& a) { return queue_shares(a)[0]; })
      .add("evictions", Better::less, "How often a job had to go for another, or for a drain.",
           [](const Queue& a) { return a.result.evictions; })
      .add("resizes", "How often a job's width changed; where elastic.policy changes widths only.",
           [](const Queue& a) -> std::optional<std::int64_t> {
             if (a.spec.elastic.policy == ElasticPolicy::fixed) return std::nullopt;
             return a.result.resizes;
           })
      .add("suspensions", Better::less,
           "How often a job was suspended for another; with preemption.suspends only.",
           [](const Queue& a) -> std::optional<std::int64_t> {
             if (!a.spec.preemption.suspends) return std::nullopt;
             return a.result.suspensions;
           })
      .add("suspended_jobs", Better::less, "Jobs that are suspended at the end; with it only.",
           [](const Queue& a) -> std::optional<std::size_t> {
             if (!a.spec.preemption.suspends) return std::nullopt;
             return static_cast<std::size_t>(std::ranges::count_if(
                 a.result.jobs, [](const JobOutcome& of) { return of.is_suspended; }));
           })
      .add("suspended_s", Better::less, "How long jobs were suspended, all together; with it only.",
           [](const Queue& a) -> std::optional<double> {
             if (!a.spec.preemption.suspends) return std::nullopt;
             double sum = 0;
             for (const JobOutcome& of : a.result.jobs) sum += in_seconds(of.suspended);
             return sum;
           })
      .add("node_failures", Better::less, "How often a node broke.",
           [](const Queue& a) { return a.result.node_failures; })
      .add("backfilled", "Jobs that Slurm's backfill scheduler started; with it only.",
           [](const Queue& a) -> std::optional<int> {
             if (a.spec.admission != QueueAdmission::slurm) return std::nullopt;
             return a.result.backfilled;
           });
}

}  // namespace

std::array<double, kQueueBuckets> queue_shares(const QueueAnswer& answer) {
  std::array<double, kQueueBuckets> out{};
  GpuTime all;
  for (const GpuTime& bucket : answer.result.books) all += bucket;
  if (all <= GpuTime()) return out;
  for (std::size_t b = 0; b < kQueueBuckets; ++b) {
    out[b] = answer.result.books[b].gpu_seconds() / all.gpu_seconds();
  }
  return out;
}

const FieldTable<QueueAnswer>& queue_fields() {
  static const FieldTable<Queue> fields = [] {
    FieldTable<Queue> out;
    add_head(out, "queue");
    out.add("file", "The scenario's file.", [](const Queue& a) { return a.spec.file; })
        .add("order", "Who comes first.", [](const Queue& a) { return name_of(a.spec.order); })
        .add("admission", "What happens behind a job that cannot start.",
             [](const Queue& a) { return name_of(a.spec.admission); })
        .add("preemption", "Who has to go for whom.",
             [](const Queue& a) {
               return kPreemptionNames[static_cast<std::size_t>(a.spec.preemption.mode)];
             })
        .add("gpus", "GPUs of the cluster.", [](const Queue& a) { return a.spec.cluster.gpus(); });
    add_counts(out);
    add_waits(out);
    add_queue_money(out);
    out.add("waterfall", "Where the cluster's GPU time goes; the shares add up to 1.",
            queue_bucket_values)
        .object("all", "All jobs.", queue_group_fields(),
                [](const Queue& a) { return a.summary.all; })
        .list("by_gpus", "Jobs by their width in GPUs.", queue_group_fields(),
              [](const Queue& a) -> const auto& { return a.summary.by_gpus; })
        .list_if_any("by_account", "Jobs by account, where there are several.",
                     queue_group_fields(),
                     [](const Queue& a) -> const auto& { return a.summary.by_account; })
        .list_if_any("by_user", "Jobs by user, where there are several.", queue_group_fields(),
                     [](const Queue& a) -> const auto& { return a.summary.by_user; })
        .list_if_any("by_partition", "Jobs by partition, where there are several.",
                     queue_group_fields(),
                     [](const Queue& a) -> const auto& { return a.summary.by_partition; })
        .list_if_any("by_qos", "Jobs by quality of service, where there are several.",
                     queue_group_fields(),
                     [](const Queue& a) -> const auto& { return a.summary.by_qos; })
        .list_if_any("licenses", "Licences that jobs held while they ran, where there are some.",
                     license_fields(),
                     [](const Queue& a) -> const auto& { return a.summary.licenses; })
        .list_if_any("campaigns", "Trials of one job, the worse of which may be stopped early.",
                     trial_campaign_fields(),
                     [](const Queue& a) -> const auto& { return a.summary.campaigns; })
        .object("campaign_order",
                "In which order campaigns have their results earliest, one after another with the "
                "cluster their own, where there are several and all are done.",
                trial_order_fields(),
                [](const Queue& a) -> const auto& { return a.summary.campaign_order; })
        .list_if_any("trainings", "Jobs whose step was simulated where they were placed.",
                     training_fields(),
                     [](const Queue& a) -> const auto& { return a.summary.trainings; })
        .object("recorded", "What a real scheduler made of the same jobs, beside this.",
                recorded_fields(), [](const Queue& a) -> const auto& { return a.summary.recorded; })
        .object("health", "Nodes that were looked after, where the scenario says \"health\".",
                health_fields(), [](const Queue& a) -> const auto& { return a.result.health; })
        .object("burst", "Jobs on rented nodes, where the scenario says \"burst\".", burst_fields(),
                [](const Queue& a) -> const auto& { return a.summary.burst; })
        .add("assumptions", "What was assumed where the scenario says nothing.",
             [](const Queue& a) { return a.spec.assumptions; });
    add_written(out, [](const Queue& a) -> const WrittenScenario& { return a.written; });
    return out;
  }();
  return fields;
}

nlohmann::ordered_json queue_json(const QueueAnswer& answer) {
  return Value(queue_fields().values(answer)).json();
}

}  // namespace lockstep
