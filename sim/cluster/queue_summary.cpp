#include "sim/cluster/queue_summary.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <unordered_map>

namespace lockstep {
namespace {

constexpr double kLeastDuration = 10;  // seconds, of bounded slowdown: Feitelson et al. 1997, JSSPP
constexpr std::size_t kMostWidths = 16;
constexpr std::size_t kMostPairs = 4000;  // jobs of which all pairs are compared

double seconds(RunTime time) { return to_seconds(time).base_units(); }

/// Collects the jobs of a group.
struct Gathered {
  explicit Gathered(const QueueSpec& spec) {
    if (spec.burst) group.burst.emplace();
  }

  QueueGroup group;
  std::vector<double> waits, completions, slowdowns;

  void add(const QueueJob& job, const JobOutcome& of, RunTime end) {
    ++group.jobs;
    const double rented = of.rented ? of.rented->gpu_hours() : 0;
    group.gpu_hours += of.elastic_held ? of.elastic_held->gpu_hours()
                                       : held_seconds(job, of, end) * job.gpus / 3600 - rented;
    if (group.burst && of.rented) {
      ++group.burst->jobs;
      group.burst->gpu_hours += rented;
    }
    group.waiting += of.waits ? 1 : 0;
    if (counts_wait(of)) waits.push_back(seconds(of.waited));
    if (of.end < 0) return;
    ++group.ended;
    const double completion = seconds(of.end - job.submit);
    completions.push_back(completion);
    const double least = std::max(seconds(job.runs), kLeastDuration);
    slowdowns.push_back(std::max(1.0, completion / least));
  }
  QueueGroup close() {
    group.wait_s = spread_of(std::move(waits));
    group.completion_s = spread_of(std::move(completions));
    group.slowdown = spread_of(std::move(slowdowns));
    return std::move(group);
  }
};

/// Groups by a number of each job, in rising order of that.
template <class KeyOf, class NameOf>
std::vector<QueueGroup> grouped_by(const QueueSpec& spec, const QueueResult& result,
                                   const KeyOf& key_of, const NameOf& name_of) {
  std::map<int, Gathered> groups;
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    const int key = key_of(spec.jobs[j]);
    groups.try_emplace(key, spec).first->second.add(spec.jobs[j], result.jobs[j], result.end);
  }
  std::vector<QueueGroup> out;
  for (auto& [key, gathered] : groups) {
    gathered.group.name = name_of(key);
    out.push_back(gathered.close());
  }
  return out;
}

std::vector<QueueGroup> by_width(const QueueSpec& spec, const QueueResult& result) {
  const auto width = [](const QueueJob& job) { return static_cast<int>(job.gpus); };
  std::vector<QueueGroup> each =
      grouped_by(spec, result, width, [](int gpus) { return std::to_string(gpus); });
  if (each.size() <= kMostWidths) return each;
  const auto doubling = [](const QueueJob& job) {
    return static_cast<int>(std::bit_floor(static_cast<unsigned>(job.gpus)));
  };
  return grouped_by(spec, result, doubling, [](int low) {
    return low == 1 ? std::string("1") : fmt::format("{}-{}", low, 2 * low - 1);
  });
}

std::vector<QueueGroup> by_label(const QueueSpec& spec, const QueueResult& result,
                                 std::uint16_t QueueJob::* label,
                                 const std::function<std::string(int)>& name_of) {
  std::vector<QueueGroup> out = grouped_by(
      spec, result, [label](const QueueJob& job) { return static_cast<int>(job.*label); }, name_of);
  if (out.size() < 2) out.clear();
  return out;
}

std::string said(const std::string& name) { return name.empty() ? "(none)" : name; }

/// Nodes of each job's first span.
std::unordered_map<std::uint32_t, std::vector<int>> first_nodes(const QueueResult& result) {
  std::unordered_map<std::uint32_t, std::vector<int>> out;
  for (const JobSpan& span : result.spans) {
    const auto [at, is_new] = out.try_emplace(span.job);
    if (!is_new) continue;
    for (const HeldGpus& held : span.held) at->second.push_back(held.node);
    std::ranges::sort(at->second);
  }
  return out;
}

double inverted_share(const std::vector<std::pair<RunTime, RunTime>>& starts) {
  if (starts.size() > kMostPairs) return 0;
  std::size_t inverted = 0, pairs = 0;
  for (std::size_t a = 0; a < starts.size(); ++a) {
    for (std::size_t b = a + 1; b < starts.size(); ++b) {
      ++pairs;
      const auto [recorded_a, simulated_a] = starts[a];
      const auto [recorded_b, simulated_b] = starts[b];
      const bool rises = recorded_a < recorded_b && simulated_a > simulated_b;
      const bool falls = recorded_a > recorded_b && simulated_a < simulated_b;
      inverted += rises || falls ? 1 : 0;
    }
  }
  return pairs == 0 ? 0 : static_cast<double>(inverted) / static_cast<double>(pairs);
}

std::optional<RecordedQueue> recorded_of(const QueueSpec& spec, const QueueResult& result) {
  RecordedQueue out;
  const auto nodes = first_nodes(result);
  std::vector<double> gaps;
  std::vector<std::pair<RunTime, RunTime>> starts;
  double waits = 0, simulated = 0;
  for (std::size_t j = 0; j < spec.recorded.size(); ++j) {
    const RecordedStart& recorded = spec.recorded[j];
    if (recorded.start < 0 || result.jobs[j].start < 0) continue;
    ++out.jobs;
    waits += seconds(recorded.start - spec.jobs[j].submit);
    simulated += seconds(result.jobs[j].start - spec.jobs[j].submit);
    gaps.push_back(std::abs(seconds(result.jobs[j].start - recorded.start)));
    starts.emplace_back(recorded.start, result.jobs[j].start);
    if (recorded.nodes.empty()) continue;
    ++out.with_nodes;
    std::vector<int> from_one = recorded.nodes;
    for (int& node : from_one) --node;
    std::ranges::sort(from_one);
    const auto at = nodes.find(static_cast<std::uint32_t>(j));
    out.same_nodes += at != nodes.end() && at->second == from_one ? 1 : 0;
  }
  if (out.jobs == 0) return std::nullopt;
  const QueueSpread spread = *spread_of(std::move(gaps));  // of a job at least
  out.mean_wait_s = waits / static_cast<double>(out.jobs);
  out.simulated_mean_wait_s = simulated / static_cast<double>(out.jobs);
  out.median_gap_s = spread.p50;
  out.most_gap_s = spread.most;
  out.inverted_pairs = inverted_share(starts);
  return out;
}

std::vector<TrainingSummary> trainings_of(const QueueSpec& spec, const QueueResult& result) {
  std::vector<TrainingSummary> out;
  out.reserve(spec.trainings.size());
  for (const QueueTraining& training : spec.trainings) {
    out.push_back({.name = training.name,
                   .jobs = 0,
                   .ended = 0,
                   .reference_step_s = training.reference_step.base_units()});
  }
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    const QueueJob& job = spec.jobs[j];
    if (job.training < 0) continue;
    TrainingSummary& of = out[static_cast<std::size_t>(job.training)];
    ++of.jobs;
    if (result.jobs[j].end < 0) continue;
    ++of.ended;
    const double slowdown = 1 + seconds(result.jobs[j].slowed) / seconds(job.runs);
    of.mean_slowdown = of.mean_slowdown.value_or(0) + slowdown;
    of.most_slowdown = std::max(of.most_slowdown.value_or(0), slowdown);
  }
  for (TrainingSummary& of : out) {
    if (of.mean_slowdown) *of.mean_slowdown /= static_cast<double>(of.ended);
  }
  // Other widths of a training are no trainings of their own: no job asks for them.
  std::vector<TrainingSummary> asked;
  for (std::size_t t = 0; t < out.size(); ++t) {
    if (spec.trainings[t].variant_of < 0) asked.push_back(std::move(out[t]));
  }
  return asked;
}

std::vector<LicenseUse> licenses_of(const QueueSpec& spec, const QueueResult& result) {
  std::vector<LicenseUse> out;
  for (std::size_t l = 0; l < spec.licenses.size(); ++l) {
    out.push_back({.name = spec.licenses[l].name,
                   .count = spec.licenses[l].count,
                   .held_mean = result.end > 0
                                    ? result.license_held[l].gpu_seconds() / seconds(result.end)
                                    : 0});
  }
  return out;
}

std::optional<BurstSummary> burst_of(const QueueResult& result, const QueueGroup& all) {
  if (!result.burst) return std::nullopt;
  BurstSummary out{.counts = *result.burst, .jobs = all.burst->jobs};
  out.held_gpu_hours = all.burst->gpu_hours;
  out.without = result.unburst;
  if (!out.without || !all.wait_s) return out;
  const auto waited = static_cast<double>(
      std::ranges::count_if(result.jobs, [](const JobOutcome& of) { return counts_wait(of); }));
  out.wait_saved_s = out.without->wait_mean_s - all.wait_s->mean;
  out.saved_hours = *out.wait_saved_s * waited / 3600;
  return out;
}

/// Who held GPUs pays for all that the machines cost, by the hour: of the cluster, and of those
/// that are rented.
void charge(QueueSummary& out) {
  const std::optional<double> rate = out.bill.usd_per_held_gpu_hour();
  const std::optional<double> rented =
      out.burst ? out.burst->usd_per_held_gpu_hour() : std::nullopt;
  if (!rate && !rented) return;
  const auto pay = [&](QueueGroup& group) {
    group.usd = group.gpu_hours * rate.value_or(0);
    if (group.burst) *group.usd += group.burst->gpu_hours * rented.value_or(0);
  };
  pay(out.all);
  for (std::vector<QueueGroup>* groups :
       {&out.by_gpus, &out.by_account, &out.by_user, &out.by_partition, &out.by_qos}) {
    std::ranges::for_each(*groups, pay);
  }
}

}  // namespace

std::optional<double> BurstSummary::usd_per_held_gpu_hour() const {
  if (held_gpu_hours <= 0) return std::nullopt;
  return counts.usd() / held_gpu_hours;
}

std::optional<double> BurstSummary::usd_per_saved_hour() const {
  if (!saved_hours || *saved_hours <= 0) return std::nullopt;
  return counts.usd() / *saved_hours;
}

std::optional<double> QueueSummary::usd_with_burst() const {
  const std::optional<double> own = bill.usd();
  if (!own || !burst) return std::nullopt;
  return *own + burst->counts.usd();
}

double held_seconds(const QueueJob& job, const JobOutcome& outcome, RunTime end) {
  if (job.submit >= end) return 0;
  const RunTime left = outcome.cancelled >= 0 ? outcome.cancelled : end;
  const RunTime until = outcome.end < 0 ? left : outcome.end;
  return seconds(until - job.submit - outcome.waited - outcome.suspended);
}

QueueSummary summary_of(const QueueSpec& spec, const QueueResult& result) {
  QueueSummary out;
  Gathered all(spec);
  RunTime last_end = 0;
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    const JobOutcome& of = result.jobs[j];
    all.add(spec.jobs[j], of, result.end);
    last_end = std::max(last_end, of.end);
    out.never_started += of.start < 0 ? 1 : 0;
    out.cut += of.end >= 0 && (spec.jobs[j].cut || of.stopped) ? 1 : 0;
    out.cancelled += of.cancelled >= 0 ? 1 : 0;
  }
  all.group.name = "all";
  out.all = all.close();
  if (out.all.ended > 0) out.makespan_s = seconds(last_end - spec.jobs.front().submit);
  const double capacity = static_cast<double>(spec.cluster.gpus()) * seconds(result.end);
  out.utilisation = capacity > 0 ? result.held.gpu_seconds() / capacity : 0;
  out.by_gpus = by_width(spec, result);
  const auto at = [](int number) { return static_cast<std::size_t>(number); };
  out.by_account =
      by_label(spec, result, &QueueJob::account, [&](int a) { return said(spec.accounts[at(a)]); });
  out.by_user =
      by_label(spec, result, &QueueJob::user, [&](int u) { return said(spec.users[at(u)]); });
  out.by_partition = by_label(spec, result, &QueueJob::partition,
                              [&](int p) { return said(spec.partitions[at(p)].name); });
  out.by_qos =
      by_label(spec, result, &QueueJob::qos, [&](int q) { return said(spec.qos[at(q)].name); });
  out.trainings = trainings_of(spec, result);
  out.licenses = licenses_of(spec, result);
  out.recorded = recorded_of(spec, result);
  out.power = queue_power(spec, result);
  out.bill = queue_bill(spec, result, out.power);
  out.burst = burst_of(result, out.all);
  out.campaigns = campaigns_of(spec, result, out.bill.usd_per_held_gpu_hour(),
                               out.burst ? out.burst->usd_per_held_gpu_hour() : std::nullopt);
  out.campaign_order = order_of_campaigns(out.campaigns, out.bill.usd_per_held_gpu_hour());
  charge(out);
  return out;
}

}  // namespace lockstep
