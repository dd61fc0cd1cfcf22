// Drains, lemons and burn-in: schedules by hand, rates, and laws that every schedule keeps.
#include "sim/cluster/node_upkeep.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <vector>

#include "sim/core/random.hpp"
#include "tests/sim/cluster/sample_queues.hpp"

namespace lockstep {
namespace {

using test::empty_queue;
using test::end_s;
using test::queue_of;
using test::seconds;
using test::start_s;

GpuTime drained_time(const QueueResult& result) {
  return result.books[static_cast<std::size_t>(QueueBucket::drained)];
}

GpuTime all_time(const QueueResult& result) {
  GpuTime out;
  for (const GpuTime& bucket : result.books) out += bucket;
  return out;
}

NodeDrain drain_of(double at_s, double lasts_s, std::vector<int> nodes) {
  return {
      .at = seconds(at_s), .lasts = seconds(lasts_s), .deadline = {}, .nodes = std::move(nodes)};
}

/// Nodes that break often and are back at once, and a job that has all of them for long.
QueueSpec failing_nodes(int nodes, double mean_s, double until_s) {
  QueueSpec spec = queue_of(nodes, 1, {{0, 1e9, 1}});
  spec.failures = {
      .name = "x", .mean_time = Seconds{mean_s}, .replaced = 0, .repair = 0, .assumptions = {}};
  spec.preemption.checkpoint = 0;
  spec.until = seconds(until_s);
  return spec;
}

}  // namespace

TEST_CASE("drains: a node is gone when its job has ended, and tested before it takes another") {
  QueueSpec spec = queue_of(2, 8, {{0, 100, 8}, {0, 50, 8}, {60, 20, 8}});
  spec.health.drains = {drain_of(40, 30, {1})};
  spec.health.burn_in = seconds(5);
  const QueueResult result = simulate_queue(spec, {.watch = 2, .keep_spans = true});
  CHECK(end_s(result, 1) == 50);  // it takes no new job, and stops none
  CHECK(start_s(result, 2) == 50 + 30 + 5);
  CHECK(drained_time(result) == GpuTime(8, seconds(35)));
  CHECK(all_time(result) == GpuTime(16, result.end));
  REQUIRE(result.health);
  CHECK(result.health->drained == 1);
  CHECK(result.health->emptying == seconds(10));
  CHECK(result.health->stopped_jobs == 0);
  REQUIRE(result.waits.size() == 1);
  CHECK(result.waits[0].reason == WaitReason::drained);
  CHECK(result.waits[0].end - result.waits[0].begin == seconds(25));
}

TEST_CASE("drains: a deadline stops jobs, which go on elsewhere with what they have saved") {
  QueueSpec spec = queue_of(2, 8, {{0, 100, 8}});
  spec.health.drains = {drain_of(10, 50, {0})};
  spec.health.drains[0].deadline = seconds(20);
  spec.preemption.checkpoint = 0;
  const QueueResult result = simulate_queue(spec, {.keep_spans = true});
  CHECK(end_s(result, 0) == 100);
  CHECK(result.jobs[0].evictions == 1);
  CHECK(result.health->stopped_jobs == 1);
  REQUIRE(result.spans.size() == 2);
  CHECK(result.spans[0].end == seconds(30));
  CHECK(result.spans[1].held[0].node == 1);
  CHECK(drained_time(result) == GpuTime(8, seconds(50)));
  spec.preemption.checkpoint = seconds(25);  // 5 s of 30 s are lost
  CHECK(end_s(simulate_queue(spec), 0) == 105);
}

TEST_CASE("drains: of a node with a job only what is free is drained") {
  QueueSpec spec = queue_of(1, 8, {{0, 100, 3}, {20, 10, 1}});
  spec.health.drains = {drain_of(10, 40, {0})};
  const QueueResult result = simulate_queue(spec);
  CHECK(start_s(result, 1) == 140);
  CHECK(drained_time(result) == GpuTime(5, seconds(90)) + GpuTime(8, seconds(40)));
  CHECK(all_time(result) == GpuTime(8, result.end));
}

TEST_CASE("drains: one of a broken node begins when it is repaired, and drains run together") {
  QueueSpec spec = queue_of(1, 8, {{0, 1, 8}, {12, 10, 8}});
  spec.breaks = {{.node = 0, .at = seconds(10), .repair = seconds(20)}};
  spec.health.drains = {drain_of(15, 40, {0})};
  CHECK(start_s(simulate_queue(spec), 1) == 70);
  spec.health.drains.push_back(drain_of(60, 40, {0}));  // it is out already
  CHECK(start_s(simulate_queue(spec), 1) == 100);
  spec.health.burn_in = seconds(7);
  CHECK(start_s(simulate_queue(spec), 1) == 107);
  spec.health.drains.clear();  // the test follows a repair, too
  CHECK(start_s(simulate_queue(spec), 1) == 37);
}

TEST_CASE("drains: backfilling does not count on nodes that are leaving") {
  // Node 1 is drained when its job ends at 50; the wide job has to wait for it until 150.
  for (const QueueAdmission admission :
       {QueueAdmission::easy, QueueAdmission::conservative, QueueAdmission::best_effort}) {
    QueueSpec spec = queue_of(2, 8, {{0, 30, 8}, {0, 50, 8}, {20, 10, 16}});
    spec.admission = admission;
    spec.health.drains = {drain_of(10, 100, {1})};
    CHECK(start_s(simulate_queue(spec), 2) == 150);
  }
}

TEST_CASE("detection: a node that breaks too often in too short a time is gone for its repair") {
  QueueSpec spec = queue_of(1, 8, {{0, 1, 8}, {35, 10, 8}});
  for (const double at : {10.0, 20.0, 30.0}) {
    spec.breaks.push_back({.node = 0, .at = seconds(at), .repair = 0});
  }
  spec.health.detection = {.failures = 3, .within = seconds(20), .repair = seconds(40)};
  const QueueResult found = simulate_queue(spec);
  CHECK(start_s(found, 1) == 70);
  CHECK(found.health->taken_out == 1);
  CHECK(found.health->lemons_found == 0);
  spec.health.detection.within = seconds(19);
  const QueueResult not_found = simulate_queue(spec);
  CHECK(start_s(not_found, 1) == 35);
  CHECK(not_found.health->taken_out == 0);
}

TEST_CASE("lemons: they break as often as the scenario says, and all nodes together as before") {
  // 10 of 500 nodes fail 50 times as often: of all failures 500 in 990.
  QueueSpec spec = failing_nodes(500, 1e6, 2e7);
  const double expected = 500 * 2e7 / 1e6;  // of all nodes: 10,000
  const QueueResult alike = simulate_queue(spec);
  spec.health.lemons = {.share = 0.02, .times = 50};
  const QueueResult unlike = simulate_queue(spec);
  const double sigma = std::sqrt(expected);
  CHECK(std::abs(static_cast<double>(alike.node_failures) - expected) < 4 * sigma);
  CHECK(std::abs(static_cast<double>(unlike.node_failures) - expected) < 4 * sigma);
  CHECK(unlike.health->lemons == 10);
  const double of_lemons = expected * 500 / 990;
  CHECK(std::abs(static_cast<double>(unlike.health->lemon_failures) - of_lemons) <
        4 * std::sqrt(of_lemons));
}

TEST_CASE("lemons: each is found by its third failure, and is none afterwards") {
  QueueSpec spec = failing_nodes(500, 1e6, 2e7);
  spec.health.lemons = {.share = 0.02, .times = 50};
  spec.health.detection = {.failures = 3, .within = seconds(9e7), .repair = seconds(100)};
  const QueueResult result = simulate_queue(spec);
  CHECK(result.health->lemons_found == 10);
  CHECK(result.health->lemon_failures == 30);
  // Good nodes, which break every 1.98e6 s, alone are left.
  const double left = 500 * 2e7 / 1.98e6;
  CHECK(std::abs(static_cast<double>(result.node_failures) - left - 30) < 4 * std::sqrt(left));
}

TEST_CASE("health: books add up, and no job starts on a node that takes none") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    RandomStream random({.seed = seed, .purpose = 77});
    QueueSpec spec = empty_queue(6, 4);
    spec.seed = seed;
    DrawnJobs drawn;
    drawn.count = 150;
    drawn.gpus = {{1, 3.0}, {4, 2.0}, {8, 1.0}};
    drawn.mean = Seconds{200};
    drawn.every = Seconds{40};
    drawn.limit_factor = 2;
    draw_jobs(drawn, 0, spec);
    spec.admission = static_cast<QueueAdmission>(random.below(5));
    if (random.below(3) == 0 && spec.admission == QueueAdmission::best_effort) {
      spec.preemption.mode = PreemptionMode::replan;
    }
    for (int d = 0; d < 6; ++d) {
      NodeDrain drain = drain_of(1000.0 * d, 300, {d});
      if (random.below(2) == 0) drain.deadline = seconds(100);
      spec.health.drains.push_back(drain);
    }
    const bool fails = random.below(2) == 0;
    if (fails) {
      spec.failures = {.name = "x",
                       .mean_time = Seconds{5000},
                       .replaced = 0.5,
                       .repair = seconds(200),
                       .assumptions = {}};
      spec.health.lemons = {.share = 0.2, .times = 5};
      spec.health.detection = {.failures = 2, .within = seconds(2000), .repair = seconds(400)};
      spec.health.burn_in = seconds(30);
    }
    const QueueResult result = simulate_queue(spec, {.keep_spans = true});
    CHECK(all_time(result) == GpuTime(24, result.end));
    GpuTime held;
    for (const QueueBucket bucket :
         {QueueBucket::useful, QueueBucket::starting, QueueBucket::lost, QueueBucket::slowed}) {
      held += result.books[static_cast<std::size_t>(bucket)];
    }
    CHECK(held == result.held);
    CHECK(drained_time(result) >= GpuTime());
    CHECK(std::ranges::all_of(result.jobs, [](const JobOutcome& of) { return of.end >= 0; }));
    if (fails) continue;
    // From its drain until `lasts` after its last job's end a node starts nothing.
    for (const NodeDrain& drain : spec.health.drains) {
      const auto is_on = [&](const JobSpan& span) {
        return std::ranges::any_of(span.held,
                                   [&](const HeldGpus& of) { return of.node == drain.nodes[0]; });
      };
      RunTime empty = drain.at;
      for (const JobSpan& span : result.spans) {
        if (is_on(span) && span.begin < drain.at) empty = std::max(empty, span.end);
      }
      if (drain.deadline) CHECK(empty <= drain.at + *drain.deadline);
      for (const JobSpan& span : result.spans) {
        if (is_on(span) && span.begin >= drain.at) CHECK(span.begin >= empty + drain.lasts);
      }
    }
  }
}

}  // namespace lockstep
