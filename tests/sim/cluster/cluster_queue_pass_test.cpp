// Schedules under Kueue's quotas that are known by hand, and the laws of cohorts.
#include "sim/cluster/cluster_queue_pass.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/base/text_file.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using test::end_s;
using test::seconds;
using test::start_s;

struct QueuedJob {
  double submit_s, runs_s;
  int gpus;
  std::size_t queue;
  int priority = 0;
};

/// So many nodes of one GPU each; jobs by submission.
QueueSpec under_kueue(int gpus, std::vector<ClusterQueue> queues,
                      std::initializer_list<QueuedJob> jobs) {
  QueueSpec spec = test::empty_queue(gpus, 1);
  spec.order = QueueOrder::priority;
  spec.admission = QueueAdmission::kueue;
  spec.preemption.mode = PreemptionMode::kueue;
  for (ClusterQueue& queue : queues) queue.accounts = {*spec.accounts.number_of(queue.name)};
  spec.cluster_queues = std::move(queues);
  for (const QueuedJob& job : jobs) {
    QueueJob out;
    out.submit = seconds(job.submit_s);
    out.runs = out.limit = seconds(job.runs_s);
    out.gpus = job.gpus;
    out.priority = job.priority;
    out.account = spec.cluster_queues[job.queue].accounts[0];
    spec.jobs.push_back(out);
  }
  return spec;
}

/// How many of jobs [0, count) start at once.
int started_at_zero(const QueueResult& result, std::size_t count) {
  int out = 0;
  for (std::size_t j = 0; j < count; ++j) out += start_s(result, j) == 0 ? 1 : 0;
  return out;
}

/// GPUs held by queue, from change to change: ends come before begins.
template <class Use>
void for_each_usage(const QueueSpec& spec, const QueueResult& result, const Use& use) {
  std::map<std::uint16_t, std::size_t> queue_of;
  for (std::size_t q = 0; q < spec.cluster_queues.size(); ++q) {
    for (const std::uint16_t account : spec.cluster_queues[q].accounts) queue_of[account] = q;
  }
  std::map<RunTime, std::vector<std::pair<std::size_t, std::int64_t>>> changes;
  for (const JobSpan& span : result.spans) {
    const QueueJob& job = spec.jobs[span.job];
    changes[span.begin].emplace_back(queue_of.at(job.account), job.gpus);
    changes[span.end].emplace_back(queue_of.at(job.account), -job.gpus);
  }
  std::vector<std::int64_t> held(spec.cluster_queues.size());
  for (const auto& [at, all] : changes) {
    for (const auto& [queue, gpus] : all) held[queue] += gpus;
    use(held);
  }
}

}  // namespace

TEST_CASE("cluster queues: the nominal quota holds, whatever is free") {
  const QueueSpec spec = under_kueue(16, {{.name = "a", .nominal = 8}, {.name = "b", .nominal = 8}},
                                     {{0, 50, 8, 0}, {1, 50, 8, 0}, {2, 50, 8, 1}});
  const QueueResult result = simulate_queue(spec, {.watch = 1});
  CHECK(start_s(result, 0) == 0);
  CHECK(start_s(result, 1) == 50);
  CHECK(start_s(result, 2) == 2);
  REQUIRE(result.waits.size() == 1);
  CHECK(result.waits[0].reason == WaitReason::quota);
}

TEST_CASE("cluster queues: a cohort lends up to the limits of both sides") {
  const auto started = [](std::int64_t borrowed, std::int64_t lent) {
    const QueueSpec spec =
        under_kueue(8,
                    {{.name = "a", .cohort = "x", .nominal = 4, .borrowing_limit = borrowed},
                     {.name = "b", .cohort = "x", .nominal = 4, .lending_limit = lent}},
                    {{0, 100, 1, 0},
                     {0, 100, 1, 0},
                     {0, 100, 1, 0},
                     {0, 100, 1, 0},
                     {0, 100, 1, 0},
                     {0, 100, 1, 0},
                     {0, 100, 1, 0},
                     {0, 100, 1, 0}});
    return started_at_zero(simulate_queue(spec), 8);
  };
  CHECK(started(-1, -1) == 8);
  CHECK(started(2, -1) == 6);
  CHECK(started(0, -1) == 4);
  CHECK(started(-1, 1) == 5);
  CHECK(started(-1, 0) == 4);
  CHECK(started(2, 1) == 5);
}

TEST_CASE("cluster queues: what a queue does not lend it has at once, what it lent not") {
  const auto start_of_b = [](int gpus) {
    const QueueSpec spec =
        under_kueue(8,
                    {{.name = "a", .cohort = "x", .nominal = 4},
                     {.name = "b", .cohort = "x", .nominal = 4, .lending_limit = 1}},
                    {{0, 100, 5, 0}, {1, 10, gpus, 1}});
    return start_s(simulate_queue(spec), 1);
  };
  CHECK(start_of_b(3) == 1);
  CHECK(start_of_b(4) == 100);  // the borrower is not preempted: nobody reclaims
}

TEST_CASE("cluster queues: reclaim takes what was lent, from whoever borrowed last") {
  const auto lent_to_b = [](QueuedJob of_a) {
    return under_kueue(
        8,
        {{.name = "a", .cohort = "x", .nominal = 4, .reclaim = ReclaimWithinCohort::any},
         {.name = "b", .cohort = "x", .nominal = 4}},
        {{0, 100, 4, 1}, {1, 100, 2, 1}, {2, 100, 2, 1}, of_a});
  };
  const QueueResult result = simulate_queue(lent_to_b({10, 50, 2, 0}));
  CHECK(start_s(result, 3) == 10);
  CHECK(result.jobs[0].evictions == 0);
  CHECK(result.jobs[1].evictions == 0);
  CHECK(result.jobs[2].evictions == 1);
  CHECK(end_s(result, 2) == 60 + 92);  // it had run 8 s, and waits for a's job

  const QueueResult wide = simulate_queue(lent_to_b({10, 50, 6, 0}));
  CHECK(start_s(wide, 3) == 101);  // more than its nominal quota: it preempts nobody
  CHECK(wide.evictions == 0);
}

TEST_CASE("cluster queues: reclaim spares who need not go, and heeds priorities where it says so") {
  const auto reclaimed = [](ReclaimWithinCohort reclaim, int priority) {
    return under_kueue(
        8,
        {{.name = "a", .cohort = "x", .nominal = 4, .reclaim = reclaim},
         {.name = "b", .cohort = "x", .nominal = 4}},
        {{0, 100, 4, 1, 1}, {1, 100, 3, 1, 1}, {2, 100, 1, 1, 1}, {10, 10, 3, 0, priority}});
  };
  // The last one to start gives 1 GPU, the one before 3, which are enough.
  const QueueResult any = simulate_queue(reclaimed(ReclaimWithinCohort::any, 0));
  CHECK(start_s(any, 3) == 10);
  CHECK(any.jobs[1].evictions == 1);
  CHECK(any.jobs[2].evictions == 0);
  CHECK(start_s(simulate_queue(reclaimed(ReclaimWithinCohort::lower_priority, 2)), 3) == 10);
  // Until the first of b's jobs ends.
  CHECK(start_s(simulate_queue(reclaimed(ReclaimWithinCohort::lower_priority, 1)), 3) == 100);
  CHECK(start_s(simulate_queue(reclaimed(ReclaimWithinCohort::never, 2)), 3) == 100);
}

TEST_CASE("cluster queues: a strict queue waits behind its first job, others do not") {
  const auto run = [](QueueingStrategy strategy) {
    return simulate_queue(under_kueue(
        8, {{.name = "a", .nominal = 4, .strategy = strategy}, {.name = "b", .nominal = 4}},
        {{0, 100, 2, 0}, {1, 50, 4, 0}, {2, 10, 2, 0}, {3, 10, 4, 1}}));
  };
  const QueueResult strict = run(QueueingStrategy::strict);
  CHECK(start_s(strict, 1) == 100);
  CHECK(start_s(strict, 2) == 150);
  CHECK(start_s(strict, 3) == 3);
  const QueueResult eager = run(QueueingStrategy::best_effort);
  CHECK(start_s(eager, 1) == 100);
  CHECK(start_s(eager, 2) == 2);
  CHECK(start_s(eager, 3) == 3);
}

TEST_CASE("cluster queues: the first job of a strict queue keeps quota from borrowers") {
  const auto borrower = [](QueueingStrategy strategy, ReclaimWithinCohort reclaim) {
    const QueueSpec spec = under_kueue(
        8,
        {{.name = "a", .cohort = "x", .nominal = 4, .strategy = strategy, .reclaim = reclaim},
         {.name = "b", .cohort = "x", .nominal = 4}},
        {{0, 100, 2, 0}, {0, 100, 4, 1}, {1, 50, 4, 0}, {2, 10, 2, 1}});
    return start_s(simulate_queue(spec), 3);
  };
  CHECK(borrower(QueueingStrategy::strict, ReclaimWithinCohort::never) == 100);
  CHECK(borrower(QueueingStrategy::strict, ReclaimWithinCohort::any) == 2);
  CHECK(borrower(QueueingStrategy::best_effort, ReclaimWithinCohort::never) == 2);
}

TEST_CASE("cluster queues: within a queue the lowest priority goes, or the newer of equals") {
  const auto run = [](WithinClusterQueue within, std::initializer_list<QueuedJob> jobs) {
    return simulate_queue(under_kueue(4, {{.name = "a", .nominal = 4, .within = within}}, jobs));
  };
  const std::initializer_list<QueuedJob> ranked = {
      {0, 100, 2, 0, 0}, {1, 100, 2, 0, 1}, {10, 10, 2, 0, 2}};
  const QueueResult lower = run(WithinClusterQueue::lower_priority, ranked);
  CHECK(start_s(lower, 2) == 10);
  CHECK(lower.jobs[0].evictions == 1);
  CHECK(lower.jobs[1].evictions == 0);
  CHECK(end_s(lower, 0) == 20 + 90);
  CHECK(start_s(run(WithinClusterQueue::never, ranked), 2) == 100);

  // The third job overtakes the second, which fits only when both others are gone.
  const std::initializer_list<QueuedJob> equal = {{0, 100, 2, 0}, {1, 50, 4, 0}, {2, 100, 2, 0}};
  CHECK(start_s(run(WithinClusterQueue::lower_priority, equal), 1) == 102);
  const QueueResult newer = run(WithinClusterQueue::lower_or_newer_equal_priority, equal);
  CHECK(start_s(newer, 1) == 100);
  CHECK(newer.jobs[2].evictions == 1);
  CHECK(end_s(newer, 2) == 150 + 2);
}

TEST_CASE("cluster queues: a job that has to borrow preempts lower priorities where it may") {
  const auto run = [](bool borrows, std::optional<int> threshold) {
    return simulate_queue(under_kueue(8,
                                      {{.name = "a",
                                        .cohort = "x",
                                        .nominal = 4,
                                        .reclaim = ReclaimWithinCohort::lower_priority,
                                        .borrow_within_cohort = borrows,
                                        .max_priority_threshold = threshold},
                                       {.name = "b", .cohort = "x", .nominal = 2},
                                       {.name = "c", .cohort = "x", .nominal = 2}},
                                      {{0, 100, 6, 1, 1}, {1, 50, 6, 0, 5}}));
  };
  CHECK(start_s(run(false, {}), 1) == 100);
  const QueueResult borrowed = run(true, {});
  CHECK(start_s(borrowed, 1) == 1);
  CHECK(end_s(borrowed, 0) == 51 + 99);
  CHECK(start_s(run(true, 1), 1) == 1);
  CHECK(start_s(run(true, 0), 1) == 100);
}

TEST_CASE("cluster queues: who need not borrow comes before whoever has to") {
  const QueueSpec spec = under_kueue(
      4, {{.name = "a", .cohort = "x", .nominal = 2}, {.name = "b", .cohort = "x", .nominal = 2}},
      {{0, 10, 3, 1, 5}, {0, 10, 2, 0, 0}});
  const QueueResult result = simulate_queue(spec);
  CHECK(start_s(result, 1) == 0);
  CHECK(start_s(result, 0) == 10);
}

TEST_CASE("cluster queues: the two teams that ship borrow and reclaim as their sentence says") {
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/queue/kueue-two-teams.json";
  const QueueSpec spec = read_queue(JsonCursor::parse(file, read_text_file(file)), test::presets());
  REQUIRE(spec.jobs.size() == 20);
  const QueueResult result = simulate_queue(spec);
  constexpr double kMinute = 60, kHour = 3600;
  for (std::size_t j = 0; j < 16; ++j) {
    CAPTURE(j);
    CHECK(start_s(result, j) == 0);
    // Those that started last go: 130 min of work are 120 in the checkpoint.
    CHECK(result.jobs[j].evictions == (j < 8 ? 0 : 1));
    CHECK(end_s(result, j) == (j < 8 ? 6 * kHour : 6 * kHour + 5 * kMinute + 4 * kHour));
  }
  for (std::size_t j = 16; j < 20; ++j) CHECK(start_s(result, j) == 130 * kMinute);
  const GpuTime lost(64, seconds(10 * kMinute));
  CHECK(result.books[static_cast<std::size_t>(QueueBucket::lost)] == lost);
}

TEST_CASE("cluster queues: cohorts hold no more than their nominal quotas, nor GPUs twice") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = 98});
    const auto drawn_of = [&](const char* name) {
      return ClusterQueue{.name = name,
                          .cohort = "x",
                          .nominal = 2 + static_cast<std::int64_t>(random.below(8)),
                          .borrowing_limit = static_cast<std::int64_t>(random.below(6)) - 1,
                          .lending_limit = static_cast<std::int64_t>(random.below(4)) - 1,
                          .strategy = static_cast<QueueingStrategy>(random.below(2)),
                          .within = static_cast<WithinClusterQueue>(random.below(3)),
                          .reclaim = static_cast<ReclaimWithinCohort>(random.below(3)),
                          .borrow_within_cohort = random.below(2) == 0};
    };
    QueueSpec spec = under_kueue(24, {drawn_of("a"), drawn_of("b"), drawn_of("c")}, {});
    DrawnJobs drawn;
    drawn.count = 200;
    drawn.gpus = {{1, 3.0}, {2, 2.0}};
    drawn.mean = Seconds{200};
    drawn.every = Seconds{20};
    drawn.accounts = {{"a", 1.0}, {"b", 2.0}, {"c", 1.0}};
    drawn.priorities = {{0, 2.0}, {5, 1.0}};
    draw_jobs(drawn, 0, spec);
    const QueueResult result = simulate_queue(spec, {.keep_spans = true});

    std::int64_t nominal = 0;
    for (const ClusterQueue& queue : spec.cluster_queues) nominal += queue.nominal;
    for_each_usage(spec, result, [&](const std::vector<std::int64_t>& held) {
      std::int64_t all = 0;
      for (std::size_t q = 0; q < held.size(); ++q) {
        const ClusterQueue& queue = spec.cluster_queues[q];
        all += held[q];
        REQUIRE(held[q] >= 0);
        if (queue.borrowing_limit < 0) continue;
        REQUIRE(held[q] <= queue.nominal + queue.borrowing_limit);
      }
      REQUIRE(all <= std::min<std::int64_t>(nominal, spec.cluster.gpus()));
    });
    GpuTime books, work;
    for (const GpuTime& bucket : result.books) books += bucket;
    CHECK(books == GpuTime(spec.cluster.gpus(), result.end));
    for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
      const QueueJob& job = spec.jobs[j];
      work += GpuTime(job.gpus, job.runs);
      REQUIRE(result.jobs[j].end >= result.jobs[j].start + job.runs);
    }
    CHECK(result.books[0] == work);
  }
}

}  // namespace lockstep
