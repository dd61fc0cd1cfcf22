#include <algorithm>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "sim/answer/answer_fields.hpp"

namespace lockstep {
namespace {

/// A job or other traffic; `training` is null for the latter.
struct JobOfSeveral {
  const JobCongestion* job = nullptr;
  const SharedJobResult* training = nullptr;
  std::optional<JobBands> bands{};        ///< over several draws of the hashes
  const SharedJobPower* power = nullptr;  ///< of a training, where the scenario says "power"
  const CostSpec* prices = nullptr;       ///< with it
  std::optional<double> rent{};           ///< of a training, an hour
};
std::vector<JobOfSeveral> jobs_of(const SharedAnswer& a) {
  std::vector<JobOfSeveral> out;
  const auto& jobs = a.result.congestion.jobs;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    out.push_back({&jobs[j], j < a.result.jobs.size() ? &a.result.jobs[j] : nullptr});
    if (a.hash && a.hash->draws > 1) out.back().bands = bands_of(*a.hash, jobs.size(), j);
    if (j >= a.scenario.jobs.size()) continue;
    if (a.power) out.back().power = &a.power->jobs[j];
    if (a.power) out.back().prices = &a.scenario.power->cost;
    if (a.scenario.usd_per_gpu_hour) {
      out.back().rent = rent_per_hour(a.scenario, a.scenario.jobs[j]);
    }
  }
  return out;
}
std::optional<double> if_over(double time_s, double done_share) {
  return done_share < 1 ? std::nullopt : std::optional(time_s);
}
std::optional<double> unless_over(double done_share) {
  return done_share < 1 ? std::optional(done_share) : std::nullopt;
}

const FieldTable<JobOfSeveral>& shared_job_power_fields() {
  using Of = JobOfSeveral;
  const auto owned = [](double SharedJobPower::* which) {
    return [which](const Of& j) -> std::optional<double> {
      if (!prices_machines(*j.prices)) return std::nullopt;
      return j.power->*which;
    };
  };
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("gpu_mean_w", Better::less, "A GPU of the job; mean of its steps.",
               [](const Of& j) { return j.power->gpu; })
          .add("facility_mean_w", Better::less, "Its nodes with their share of the site; mean.",
               [](const Of& j) { return j.power->facility; })
          .add("facility_peak_w", Better::less, "The most that a meter of that reads.",
               [](const Of& j) { return j.power->peak; })
          .add("energy_per_step_j", Better::less, "Energy of a step at the site's meter.",
               [](const Of& j) { return j.power->energy(); })
          .add("joules_per_token", Better::less, "Energy per token at the site's meter.",
               [](const Of& j) { return j.power->energy().base_units() / j.power->tokens; })
          .add("owned_usd_per_hour", Better::less, "Cost of owning its part of the machines.",
               owned(&SharedJobPower::owned_usd_per_hour))
          .add("owned_usd_per_trillion_tokens", Better::less, "Cost of owning per 1e12 tokens.",
               owned(&SharedJobPower::usd_per_trillion_tokens));
  return fields;
}

const FieldTable<JobOfSeveral>& job_fields() {
  using Of = JobOfSeveral;
  const auto of_training = [](double SharedJobResult::* which) {
    return [which](const Of& j) {
      return j.training != nullptr ? std::optional(j.training->*which) : std::nullopt;
    };
  };
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Whose it is.", [](const Of& j) { return j.job->name; })
          .add("about", "What it is.", [](const Of& j) { return j.job->about; })
          .add("step_s", Better::less,
               "Mean step of a training, mean round of other traffic; left out where none is over.",
               [](const Of& j) { return if_over(j.job->step_s, j.job->done_share); })
          .add("alone_s", Better::less, "The same with nothing else on the fabric.",
               [](const Of& j) { return j.job->alone_s; })
          .add(
              "slowdown", Better::less,
              "step_s over alone_s; of a round that is not over, the time that it has gone on over "
              "that of the same bytes alone. Left out where none has begun.",
              [](const Of& j) {
                return j.job->step_s > 0 ? std::optional(j.job->slowdown()) : std::nullopt;
              })
          .add("done_share", Better::more, "Of a round that is not over: bytes that are.",
               [](const Of& j) { return unless_over(j.job->done_share); })
          .add("bytes", "Put on the fabric.", [](const Of& j) { return j.job->bytes; })
          .add("mfu", Better::more, "MFU of a training, attention in full.",
               of_training(&SharedJobResult::mfu_full))
          .add("alone_mfu", Better::more, "MFU with nothing else on the fabric.",
               of_training(&SharedJobResult::alone_mfu_full))
          .old_name("mfu_full", "mfu")
          .old_name("alone_mfu_full", "alone_mfu")
          .add("steps_s", Better::less, "Each step of a training.",
               [](const Of& j) -> std::optional<std::vector<double>> {
                 if (j.training == nullptr || j.training->steps_s.empty()) return std::nullopt;
                 return j.training->steps_s;
               })
          .object("power", "Of a training, where the scenario says \"power\".",
                  shared_job_power_fields(),
                  [](const Of& j) { return j.power != nullptr ? &j : nullptr; })
          .add("rent_usd_per_hour", Better::less, "What a cloud asks for its GPUs.",
               [](const Of& j) { return j.rent; })
          .object("hash", "Its step and slowdown over the draws of --hash-seeds.",
                  job_band_fields(), [](const Of& j) { return j.bands; });
  return fields;
}

struct TransferOfSeveral {
  const TransferCongestion* transfer = nullptr;
  const CongestionReport* report = nullptr;
};
std::vector<TransferOfSeveral> transfers_of(const SharedAnswer& a) {
  std::vector<TransferOfSeveral> out;
  for (const TransferCongestion& t : a.result.congestion.transfers) {
    out.push_back({&t, &a.result.congestion});
  }
  return out;
}
const FieldTable<TransferOfSeveral>& transfer_fields() {
  using Of = TransferOfSeveral;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("job", "Whose it is.", [](const Of& t) { return t.transfer->job; })
          .add("name", "What it is.", [](const Of& t) { return t.transfer->name; })
          .add("runs", "How often it ran.", [](const Of& t) { return t.transfer->runs; })
          .add("bytes", "Payload of a run.", [](const Of& t) { return t.transfer->bytes; })
          .add("mean_s", Better::less,
               "Time of a run, its latency left out; left out where none is over.",
               [](const Of& t) { return if_over(t.transfer->mean_s, t.transfer->done_share); })
          .add("alone_s", Better::less, "The same with nothing else on the fabric.",
               [](const Of& t) { return t.transfer->alone_s; })
          .add("slowdown", Better::less,
               "mean_s over alone_s; of a run that is not over, the time that it has gone on over "
               "that of the same bytes alone.",
               [](const Of& t) { return t.transfer->slowdown(); })
          .add("done_share", Better::more, "Of a run that is not over: bytes that are.",
               [](const Of& t) { return unless_over(t.transfer->done_share); })
          .add("stalled_s", Better::less, "Of its time behind a dead link.",
               [](const Of& t) { return t.transfer->stalled_s; })
          .add("worst_link",
               "The link that cost it most time against alone; of one that is never slower, that "
               "which sets its rate; \"-\": none of the fabric.",
               [](const Of& t) -> std::string {
                 if (t.transfer->worst_link < 0) return "-";
                 return t.report->links[static_cast<std::size_t>(t.transfer->worst_link)].name;
               })
          .add("worst_link_share", Better::less,
               "Share of its time that this link held it to less than alone; of one that is never "
               "slower, that it set its rate.",
               [](const Of& t) { return t.transfer->worst_link_share; })
          .add("cause", "Who else put most bytes on that link meanwhile; empty: nobody.",
               [](const Of& t) { return t.transfer->cause; })
          .add("cause_share", "Share of the bytes that crossed the link meanwhile.",
               [](const Of& t) { return t.transfer->cause_share; });
  return fields;
}

const FieldTable<EventOutcome>& event_fields() {
  using Of = EventOutcome;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("what", "What happens.", [](const Of& e) { return e.what; })
          .add("at_s", "When.", [](const Of& e) { return e.at_s; })
          .add("lasts_s", "For how long; 0: for good.", [](const Of& e) { return e.lasts_s; })
          .add("times", "How often it happened while the jobs ran.",
               [](const Of& e) { return e.times; })
          .add("links", "Links that lost capacity, the first time.",
               [](const Of& e) { return e.links; })
          .add("transfers", "Transfers that were under way on such a link.",
               [](const Of& e) { return e.transfers; })
          .add("jobs", "Whose they were.", [](const Of& e) { return e.jobs; });
  return fields;
}

const FieldTable<LinkCongestion>& link_fields() {
  using Of = LinkCongestion;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "From where to where.", [](const Of& l) { return l.name; })
          .add("capacity_bytes_per_s", "What it carries at most.",
               [](const Of& l) { return l.capacity_bytes_per_s; })
          .add("mean_utilisation", "Share of what the link carries at most, over the whole time.",
               [](const Of& l) { return l.mean_utilisation; })
          .add("peak_utilisation", "Share of what it carries at most, in the fullest bin of time.",
               [](const Of& l) { return l.peak_utilisation; });
  return fields;
}

template <class Get>
auto of_shared_power(Get get) {
  return [get](const SharedAnswer& a) -> std::optional<double> {
    if (!a.power) return std::nullopt;
    return get(a);
  };
}
template <class Get>
auto of_shared_limit(Get get) {
  return [get](const SharedAnswer& a) -> std::optional<double> {
    if (!a.power || !a.scenario.power->site_limit) return std::nullopt;
    return get(*a.power, *a.scenario.power->site_limit).base_units();
  };
}
/// Of the jobs in their order.
std::vector<double> begins_of(const StaggeredSteps& steps) {
  std::vector<double> out;
  for (const Seconds begins : steps.begins) out.push_back(begins.base_units());
  return out;
}
const FieldTable<StaggeredSteps>& staggered_fields() {
  using Of = StaggeredSteps;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("period_s", "Of all jobs: the longest step.", [](const Of& s) { return s.period; })
          .add("begins_s", "Of each job's steps, within the period.", begins_of)
          .add("longer_shares", "By which the step of each job is longer then.",
               [](const Of& s) { return s.longer; })
          .add("low_w", Better::more, "Lowest power of the site then.",
               [](const Of& s) { return s.low; })
          .add("high_w", Better::less, "Highest power of the site then.",
               [](const Of& s) { return s.high; })
          .add("together_low_w", Better::more, "Lowest, where all steps begin at once.",
               [](const Of& s) { return s.low_together; })
          .add("together_high_w", Better::less, "Highest, where all steps begin at once.",
               [](const Of& s) { return s.high_together; });
  return fields;
}

void add_shared_power(FieldTable<SharedAnswer>& fields) {
  using Of = SharedAnswer;
  fields
      .add("facility_mean_w", Better::less, "Power of the site: of all jobs, and idle_w.",
           of_shared_power([](const Of& a) { return a.power->facility.base_units(); }))
      .add("idle_w", Better::less, "Of it nodes that no job has.",
           of_shared_power([](const Of& a) { return a.power->idle.base_units(); }))
      .add("owned_usd_per_hour", Better::less, "Cost of owning all of the machines.",
           [](const Of& a) -> std::optional<double> {
             if (!a.power || !prices_machines(a.scenario.power->cost)) return std::nullopt;
             return a.power->owned_usd_per_hour;
           })
      .add("rent_usd_per_hour", Better::less, "What a cloud asks for all of the GPUs.",
           [](const Of& a) -> std::optional<double> {
             if (!a.scenario.usd_per_gpu_hour) return std::nullopt;
             return rent_per_hour(a.scenario);
           })
      .add("site_limit_w", "Power limit of the site.",
           of_shared_limit([](const SharedPower&, Watts limit) { return limit; }))
      .add("site_peak_w", Better::less, "The most that a meter at the site reads.",
           of_shared_limit([](const SharedPower& p, Watts) { return p.peak; }))
      .add("site_excess_w", Better::less,
           "By how much that is above the limit; above 0 the limit is exceeded.",
           of_shared_limit([](const SharedPower& p, Watts limit) { return p.above(limit); }))
      .object("staggered", "Steps of the jobs in one rhythm, each begun where others draw least.",
              staggered_fields(), [](const Of& a) -> std::optional<StaggeredSteps> {
                return a.power ? a.power->staggered : std::nullopt;
              });
}

double most_slowed(const SharedAnswer& a) {
  double most = 1;
  for (const JobCongestion& job : a.result.congestion.jobs) most = std::max(most, job.slowdown());
  return most;
}

}  // namespace

const FieldTable<SharedAnswer>& shared_fields() {
  using Of = SharedAnswer;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    add_head(out, "jobs");
    out.add("file", "The scenario's file.", [](const Of& a) { return a.scenario.file; })
        .add("fabric", "The fabric in words.",
             [](const Of& a) { return a.result.congestion.fabric; })
        .add("simulated_s", "Time that was simulated.",
             [](const Of& a) { return a.result.congestion.end_s; })
        .add("slowdown_max", Better::less, "Slowdown of the job that is slowed most.", most_slowed);
    add_shared_power(out);
    out.list("jobs", "Each job and other traffic.", job_fields(), jobs_of)
        .list("transfers", "Transfers, the most slowed first.", transfer_fields(), transfers_of)
        .add("links_used", "Links that carried anything.",
             [](const Of& a) { return a.result.congestion.links_used; })
        .list("links", "The most telling of them, fullest first.", link_fields(),
              [](const Of& a) -> const auto& { return a.result.congestion.links; })
        .list("events", "What happened to the fabric.", event_fields(),
              [](const Of& a) -> const auto& { return a.result.congestion.events; })
        .add("notes", "Approximations that were made.",
             [](const Of& a) { return a.result.congestion.notes; })
        .add("assumptions", "What was assumed where the scenario says nothing.",
             [](const Of& a) { return a.scenario.assumptions; })
        .object("hashing", "Draws of the paths' hashes, where there are any.", draw_fields(),
                [](const Of& a) -> const auto& { return a.hash; });
    add_written(out, [](const Of& a) -> const WrittenScenario& { return a.written; });
    return out;
  }();
  return fields;
}

nlohmann::ordered_json shared_json(const SharedScenario& scenario, const SharedResult& result,
                                   const std::optional<SharedPower>& power,
                                   const std::optional<HashAnswer>& hash,
                                   const WrittenScenario& written) {
  return Value(shared_fields().values({scenario, result, power, hash, written})).json();
}

}  // namespace lockstep
