// Preemption that suspends: jobs stay on their nodes and go on there, and all GPU time is in one
// bucket.
#include "sim/cluster/suspended_jobs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/random.hpp"
#include "tests/sim/cluster/sample_queues.hpp"

namespace lockstep {
namespace {

using test::end_s;
using test::seconds;
using test::start_s;

/// A job of a partition's tier, from 1 on.
struct TieredJob {
  double submit_s, runs_s;
  int gpus, tier;
};

/// Partitions of three tiers share all nodes.
QueueSpec tiered_queue(int nodes, const std::vector<TieredJob>& jobs) {
  QueueSpec spec = test::empty_queue(nodes, 8);
  spec.admission = QueueAdmission::best_effort;
  spec.preemption.mode = PreemptionMode::partition;
  spec.preemption.suspends = true;
  for (int tier = 1; tier <= 3; ++tier) {
    spec.partitions.push_back({.name = "tier" + std::to_string(tier), .tier = tier});
  }
  for (const TieredJob& of : jobs) {
    QueueJob job;
    job.submit = seconds(of.submit_s);
    job.runs = job.limit = seconds(of.runs_s);
    job.gpus = of.gpus;
    job.partition = static_cast<std::uint16_t>(of.tier);
    spec.jobs.push_back(job);
  }
  return spec;
}

GpuTime in(const QueueResult& result, QueueBucket bucket) {
  return result.books[static_cast<std::size_t>(bucket)];
}

}  // namespace

TEST_CASE("suspended jobs: what is free is kept for whoever was suspended last") {
  FreeGpus free(2, 8);
  SuspendedJobs jobs;
  jobs.add(3, {{0, 8}, {1, 4}});
  jobs.add(5, {{0, 6}});
  free.take(std::array{HeldGpus{0, 1}});
  jobs.claim(free);
  CHECK(jobs.kept() == 11);  // 6 and 1 on the first node, 4 on the second
  CHECK(free.on(0) == 0);
  CHECK(free.on(1) == 4);
  const std::vector<SuspendedJobs::Job> whole = jobs.take_whole();
  REQUIRE(whole.size() == 1);
  CHECK(whole[0].job == 5);
  CHECK(jobs.kept() == 5);
  CHECK(jobs.find(5) == nullptr);
  jobs.lend(free, [](std::uint32_t job) { return job != 3; });
  CHECK(jobs.kept() == 5);
  jobs.remove(3, free);
  CHECK_FALSE(jobs.any());
  CHECK(free.on(0) == 1);
  CHECK(free.on(1) == 8);
}

TEST_CASE("suspension: the job goes on behind the one that preempted it, and its GPUs are kept") {
  // The second takes one of the first one's nodes; the third could have the other, and waits.
  const QueueSpec spec = tiered_queue(2, {{0, 100, 16, 1}, {20, 30, 8, 2}, {25, 10, 8, 1}});
  const QueueResult result = simulate_queue(spec, {.watch = 0, .keep_spans = true});
  CHECK(start_s(result, 1) == 20);
  CHECK(end_s(result, 0) == 130);
  CHECK(start_s(result, 2) == 130);
  const JobOutcome& first = result.jobs[0];
  CHECK(first.suspended == seconds(30));
  CHECK(first.suspensions == 1);
  CHECK(first.evictions == 0);
  CHECK(first.waited == 0);
  CHECK(held_seconds(spec.jobs[0], first, result.end) == 100);
  CHECK(in(result, QueueBucket::suspended) == GpuTime(8, seconds(30)));
  CHECK(in(result, QueueBucket::useful) == GpuTime(1, seconds(1600 + 240 + 80)));
  CHECK(in(result, QueueBucket::lost) == GpuTime());
  CHECK(in(result, QueueBucket::idle) == GpuTime(8, seconds(10)));
  REQUIRE(result.waits.size() == 1);
  CHECK(result.waits[0].reason == WaitReason::suspended);
  CHECK(result.waits[0].begin == seconds(20));
  CHECK(result.waits[0].end == seconds(50));
  std::vector<std::pair<SpanEnd, RunTime>> ends;
  for (const JobSpan& span : result.spans) {
    if (span.job == 0) ends.emplace_back(span.how, span.end);
  }
  CHECK(ends == std::vector<std::pair<SpanEnd, RunTime>>{{SpanEnd::suspended, seconds(20)},
                                                         {SpanEnd::ended, seconds(130)}});
}

TEST_CASE("suspension: by several in turn, and of one that suspended another") {
  const QueueResult nested =
      simulate_queue(tiered_queue(1, {{0, 100, 8, 1}, {10, 50, 8, 2}, {20, 5, 8, 3}}));
  CHECK(end_s(nested, 2) == 25);
  CHECK(end_s(nested, 1) == 65);
  CHECK(end_s(nested, 0) == 155);
  // The third takes what the first one keeps; nobody else is suspended for it.
  const QueueResult both =
      simulate_queue(tiered_queue(2, {{0, 100, 16, 1}, {20, 30, 8, 2}, {30, 40, 8, 2}}));
  CHECK(start_s(both, 2) == 30);
  CHECK(both.suspensions == 1);
  CHECK(end_s(both, 0) == 150);
}

TEST_CASE("suspension: a job whose node breaks waits again, and one that is cut off stays") {
  QueueSpec spec = tiered_queue(2, {{0, 100, 16, 1}, {20, 30, 8, 2}});
  spec.breaks.push_back({.node = 1, .at = seconds(30), .repair = seconds(5)});
  spec.preemption.checkpoint = 0;
  const QueueResult broken = simulate_queue(spec);
  CHECK(broken.jobs[0].failures == 1);
  CHECK(broken.jobs[0].suspended == seconds(10));
  CHECK(broken.jobs[0].waited == seconds(20));
  CHECK(end_s(broken, 0) == 130);  // it has kept the 20 s that it had done

  spec.breaks.clear();
  spec.until = seconds(40);
  const QueueResult cut = simulate_queue(spec);
  CHECK(cut.jobs[0].is_suspended);
  CHECK(cut.jobs[0].suspended == seconds(20));
  CHECK(cut.jobs[0].end < 0);
}

TEST_CASE("suspension: a quality that cancels its preempted jobs still does") {
  QueueSpec spec = tiered_queue(1, {{0, 100, 8, 1}, {20, 30, 8, 2}});
  spec.qos[0].cancels = true;
  CHECK(simulate_queue(spec).jobs[0].cancelled == seconds(20));
}

TEST_CASE("suspension: in Slurm's cycles backfill counts on a suspended job's GPUs for itself") {
  QueueSpec spec = tiered_queue(1, {{0, 600, 8, 1}, {100, 300, 8, 2}, {110, 60, 8, 1}});
  spec.admission = QueueAdmission::slurm;
  const QueueResult result = simulate_queue(spec);
  const double held = end_s(result, 1) - start_s(result, 1);
  CHECK(held == 300);
  CHECK(end_s(result, 0) - start_s(result, 0) == 600 + held);
  CHECK(start_s(result, 2) >= end_s(result, 0));
}

TEST_CASE("suspension: of drawn jobs every GPU second is in one bucket, and no GPU is held twice") {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = 97});
    std::vector<TieredJob> jobs;
    double at = 0;
    for (int j = 0; j < 150; ++j) {
      at += std::floor(20 * random.uniform());
      const int gpus = 1 + static_cast<int>(23 * random.uniform());
      const double runs = 1 + std::floor(200 * random.uniform());
      jobs.push_back({at, runs, gpus, 1 + static_cast<int>(3 * random.uniform())});
    }
    QueueSpec spec = tiered_queue(4, jobs);
    if (seed % 2 == 0) spec.admission = QueueAdmission::slurm;
    const QueueResult result = simulate_queue(spec, {.keep_spans = true});
    CHECK(result.suspensions > 10);
    GpuTime all;
    for (const GpuTime& bucket : result.books) all += bucket;
    CHECK(all == GpuTime(32, result.end));
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const JobOutcome& of = result.jobs[j];
      CHECK(of.end - spec.jobs[j].submit == of.waited + of.suspended + spec.jobs[j].runs);
    }
    std::vector<std::vector<std::pair<RunTime, int>>> changes(4);  // of GPUs held, by node
    for (const JobSpan& span : result.spans) {
      for (const HeldGpus& held : span.held) {
        changes[static_cast<std::size_t>(held.node)].emplace_back(span.begin, held.gpus);
        changes[static_cast<std::size_t>(held.node)].emplace_back(span.end, -held.gpus);
      }
    }
    for (auto& of_node : changes) {
      std::ranges::sort(of_node);
      int held = 0;
      for (const auto& [time, gpus] : of_node) {
        held += gpus;
        CHECK(held <= 8);
      }
    }
  }
}

}  // namespace lockstep
