// Small queues whose schedule is known by hand.
#include <doctest/doctest.h>
#include <utility>
#include <vector>

#include "tests/sim/cluster/sample_queues.hpp"

namespace lockstep {
namespace {

using test::end_s;
using test::queue_of;
using test::seconds;
using test::start_s;

QueueSpec under(QueueSpec spec, QueueOrder order, QueueAdmission admission) {
  spec.order = order;
  spec.admission = admission;
  return spec;
}

}  // namespace

TEST_CASE("queue: strict order waits behind a wide job, best effort does not") {
  const QueueSpec spec = queue_of(2, 8, {{0, 100, 8}, {1, 50, 16}, {2, 10, 8}});
  const QueueResult strict = simulate_queue(under(spec, QueueOrder::fifo, QueueAdmission::strict));
  CHECK(start_s(strict, 1) == 100);
  CHECK(start_s(strict, 2) == 150);
  const QueueResult eager =
      simulate_queue(under(spec, QueueOrder::fifo, QueueAdmission::best_effort));
  CHECK(start_s(eager, 1) == 100);
  CHECK(start_s(eager, 2) == 2);
}

TEST_CASE("queue: shortest job first, and priorities") {
  const QueueSpec spec =
      queue_of(1, 1, {{0, 10, 1}, {1, 30, 1, 0, 1}, {2, 5, 1, 0, 0}, {3, 20, 1, 0, 2}});
  const QueueResult sjf = simulate_queue(under(spec, QueueOrder::sjf, QueueAdmission::strict));
  CHECK(start_s(sjf, 2) == 10);
  CHECK(start_s(sjf, 3) == 15);
  CHECK(start_s(sjf, 1) == 35);
  const QueueResult ranked =
      simulate_queue(under(spec, QueueOrder::priority, QueueAdmission::strict));
  CHECK(start_s(ranked, 3) == 10);
  CHECK(start_s(ranked, 1) == 30);
  CHECK(start_s(ranked, 2) == 60);
}

TEST_CASE("EASY: a job may overtake that ends in time, or leaves the first what it gets") {
  // Node 0 is busy until 100 by its limit. The second job needs both nodes.
  const QueueSpec spec =
      queue_of(2, 8, {{0, 100, 8}, {1, 50, 16}, {2, 90, 8, 99}, {3, 90, 4}, {4, 99, 4, 200}});
  const QueueResult easy = simulate_queue(under(spec, QueueOrder::fifo, QueueAdmission::easy));
  CHECK(start_s(easy, 1) == 100);  // not delayed
  CHECK(start_s(easy, 2) == 150);  // would end at 101
  CHECK(start_s(easy, 3) == 3);    // ends at 93
  CHECK(start_s(easy, 4) == 150);  // might end at 204
  QueueSpec roomy = spec;
  roomy.cluster.nodes = 3;  // the first job in the queue gets nodes 0 and 1, or 1 and 2
  const QueueResult room = simulate_queue(under(roomy, QueueOrder::fifo, QueueAdmission::easy));
  CHECK(start_s(room, 1) == 1);
}

TEST_CASE("conservative: a job overtakes only where it delays nobody") {
  // Job 2 has a reservation at 150; job 3 would fit before job 1 but delay job 2.
  const QueueSpec spec =
      queue_of(2, 8, {{0, 100, 8}, {1, 50, 16}, {2, 100, 16}, {3, 99, 8}, {4, 96, 8}});
  const QueueResult all =
      simulate_queue(under(spec, QueueOrder::fifo, QueueAdmission::conservative));
  CHECK(start_s(all, 1) == 100);
  CHECK(start_s(all, 2) == 150);
  CHECK(start_s(all, 3) == 250);
  CHECK(start_s(all, 4) == 4);
}

TEST_CASE("eviction: shortest remaining time takes the GPUs of the longest") {
  QueueSpec spec = queue_of(1, 8, {{0, 100, 8}, {10, 20, 8}});
  spec.order = QueueOrder::srtf;
  spec.admission = QueueAdmission::best_effort;
  spec.preemption.mode = PreemptionMode::evict;
  const QueueResult saved = simulate_queue(spec);
  CHECK(start_s(saved, 1) == 10);
  CHECK(end_s(saved, 0) == 120);
  CHECK(saved.jobs[0].evictions == 1);
  CHECK(saved.jobs[0].waited == seconds(20));

  spec.preemption.restart = seconds(5);
  spec.preemption.checkpoint = seconds(4);  // of 10 s of work, 8 s are kept
  const QueueResult lossy = simulate_queue(spec);
  CHECK(end_s(lossy, 0) == 10 + 20 + 5 + 92);
  CHECK(lossy.books[static_cast<std::size_t>(QueueBucket::lost)] == GpuTime(8, seconds(2)));
  CHECK(lossy.books[static_cast<std::size_t>(QueueBucket::starting)] == GpuTime(8, seconds(5)));

  spec.preemption.exempt = seconds(30);  // the running one has run for 10 s
  const QueueResult exempt = simulate_queue(spec);
  CHECK(start_s(exempt, 1) == 100);
}

TEST_CASE("eviction: as few as are needed, the last in the order first") {
  QueueSpec spec =
      queue_of(2, 8, {{0, 100, 4, 0, 1}, {1, 100, 8, 0, 3}, {2, 100, 4, 0, 2}, {10, 10, 8, 0, 4}});
  spec.order = QueueOrder::priority;
  spec.admission = QueueAdmission::best_effort;
  spec.preemption.mode = PreemptionMode::evict;
  const QueueResult result = simulate_queue(spec);
  CHECK(start_s(result, 3) == 10);
  CHECK(result.jobs[0].evictions == 1);
  CHECK(result.jobs[1].evictions == 0);
  CHECK(result.jobs[2].evictions == 1);  // both halves of the node
}

TEST_CASE("least attained service: a job falls a level when it has had its time") {
  QueueSpec spec = queue_of(1, 1, {{0, 100, 1}, {5, 8, 1}});
  spec.order = QueueOrder::las;
  spec.admission = QueueAdmission::best_effort;
  spec.preemption.mode = PreemptionMode::evict;
  spec.levels = {seconds(10)};
  const QueueResult result = simulate_queue(spec);
  CHECK(start_s(result, 1) == 10);  // when the first job leaves the top level
  CHECK(end_s(result, 1) == 18);
  CHECK(end_s(result, 0) == 108);
}

TEST_CASE("replan: who ran since the last event loses its overhead, moved or not") {
  QueueSpec spec = queue_of(1, 8, {{0, 100, 4}, {10, 20, 4}});
  spec.order = QueueOrder::srtf;
  spec.admission = QueueAdmission::best_effort;
  spec.preemption.mode = PreemptionMode::replan;
  spec.preemption.overhead = seconds(3);
  const QueueResult result = simulate_queue(spec);
  CHECK(end_s(result, 1) == 30);
  CHECK(end_s(result, 0) == 106);  // 3 s at the submission, 3 s at the end of the other
  CHECK(result.books[static_cast<std::size_t>(QueueBucket::starting)] == GpuTime(4, seconds(6)));
}

TEST_CASE("replan, las: in a level those that run come first, and who falls to it comes last") {
  // One GPU, a level at 10 s: 0 falls at 10 s, 1 at 20 s. 0 goes on until 2 comes, is sent back,
  // and comes before 1 again.
  QueueSpec spec = queue_of(1, 1, {{0, 40, 1}, {0, 40, 1}, {25, 5, 1}});
  spec.order = QueueOrder::las;
  spec.levels = {seconds(10)};
  spec.admission = QueueAdmission::best_effort;
  spec.preemption.mode = PreemptionMode::replan;
  const QueueResult result = simulate_queue(spec);
  CHECK(start_s(result, 1) == 10);
  CHECK(start_s(result, 2) == 25);
  CHECK(end_s(result, 2) == 30);
  CHECK(end_s(result, 0) == 55);
  CHECK(end_s(result, 1) == 85);

  // 1, of 2 GPUs, falls at 20 s, 0, of one, at 40 s: 0 goes when 2 comes at 50 s.
  QueueSpec later = queue_of(1, 4, {{0, 100, 1}, {0, 100, 2}, {50, 5, 2}});
  later.order = QueueOrder::las;
  later.levels = {seconds(40)};
  later.admission = QueueAdmission::best_effort;
  later.preemption.mode = PreemptionMode::replan;
  const QueueResult fell = simulate_queue(later);
  CHECK(start_s(fell, 2) == 50);
  CHECK(end_s(fell, 1) == 100);
  CHECK(end_s(fell, 0) == 105);
}

TEST_CASE("quotas and partitions: who is held holds nobody else") {
  QueueSpec spec = queue_of(2, 8, {{0, 50, 8}, {1, 50, 8}, {2, 50, 8}});
  spec.admission = QueueAdmission::strict;
  const std::uint16_t a = *spec.users.number_of("a");
  spec.jobs[0].user = spec.jobs[1].user = a;
  spec.user_quotas = {{a, 8}};
  const QueueResult limited = simulate_queue(spec);
  CHECK(start_s(limited, 1) == 50);
  CHECK(start_s(limited, 2) == 2);

  QueueSpec apart = queue_of(2, 8, {{0, 50, 8}, {1, 50, 8}, {2, 50, 8}});
  apart.admission = QueueAdmission::best_effort;
  apart.partitions.push_back({"left", {0}});
  apart.partitions.push_back({"right", {1}});
  apart.jobs[0].partition = apart.jobs[1].partition = 1;
  apart.jobs[2].partition = 2;
  const QueueResult bound = simulate_queue(apart, {.keep_spans = true});
  CHECK(start_s(bound, 1) == 50);
  CHECK(start_s(bound, 2) == 2);
  for (const JobSpan& span : bound.spans) CHECK(span.held[0].node == (span.job == 2 ? 1 : 0));
}

TEST_CASE("failures: jobs of a broken node start again from their checkpoints") {
  QueueSpec spec = queue_of(4, 8, {{0, 1e6, 32}});
  spec.failures = {.name = "often",
                   .mean_time = Seconds{40'000},
                   .replaced = 0.5,
                   .repair = seconds(900),
                   .assumptions = {}};
  spec.preemption.checkpoint = seconds(600);
  spec.preemption.restart = seconds(60);
  const QueueResult result = simulate_queue(spec);
  CHECK(result.jobs[0].failures > 50);
  CHECK(result.jobs[0].failures <= result.node_failures);  // others hit it while it waits

  CHECK(end_s(result, 0) > 1.05e6);
  GpuTime all;
  for (const GpuTime& bucket : result.books) all += bucket;
  CHECK(all == GpuTime(32, result.end));
  CHECK(result.books[0] == GpuTime(32, spec.jobs[0].runs));
  CHECK(result.books[static_cast<std::size_t>(QueueBucket::broken)] > GpuTime());

  QueueSpec sound = spec;
  sound.failures = {};
  CHECK(end_s(simulate_queue(sound), 0) == 1e6);
}

TEST_CASE("failures: without checkpoints a job starts again from its beginning") {
  QueueSpec spec = queue_of(2, 8, {{0, 100, 8}});
  spec.breaks = {{.node = 0, .at = seconds(60), .repair = seconds(1000)}};
  const auto lost_of = [](const QueueResult& result) {
    return result.books[static_cast<std::size_t>(QueueBucket::lost)];
  };
  const QueueResult again = simulate_queue(spec);
  CHECK(end_s(again, 0) == 160);  // 60 s on the one node, all 100 s on the other
  CHECK(lost_of(again) == GpuTime(8, seconds(60)));
  CHECK(again.books[0] == GpuTime(8, seconds(100)));
  for (const auto& [checkpoint, end] :
       {std::pair{0, 100}, std::pair{25, 110}, std::pair{1000, 160}}) {
    CAPTURE(checkpoint);
    spec.preemption.checkpoint = seconds(checkpoint);
    const QueueResult kept = simulate_queue(spec);
    CHECK(end_s(kept, 0) == end);
    CHECK(lost_of(kept) == GpuTime(8, seconds(end - 100)));
  }
}

TEST_CASE("queue: it ends when the scenario says, or when somebody stops it") {
  QueueSpec spec = queue_of(1, 8, {{0, 100, 8}, {10, 100, 8}, {500, 1, 8}});
  spec.until = seconds(150);
  const QueueResult result = simulate_queue(spec);
  const QueueSummary summary = summary_of(spec, result);
  CHECK(result.end == seconds(150));
  CHECK(summary.all.ended == 1);
  CHECK(summary.never_started == 1);
  CHECK(summary.utilisation == 1);
  CHECK(result.books[0] == GpuTime(8, seconds(150)));

  const QueueResult stopped =
      simulate_queue(spec, {.go_on = [](std::size_t, std::size_t) { return false; }});
  CHECK(stopped.stopped);
  CHECK(stopped.jobs[2].start < 0);
}

TEST_CASE("queue: who waits at the end has waited, and of no ended job there is no mean") {
  QueueSpec spec = queue_of(1, 8, {{0, 100, 8}, {10, 100, 8}, {500, 1, 8}});
  spec.until = seconds(50);
  const QueueSummary summary = summary_of(spec, simulate_queue(spec));
  REQUIRE(summary.all.wait_s);
  CHECK(summary.all.wait_s->mean == 20);  // 0 of the first, 40 s so far of the second
  CHECK(summary.all.wait_s->most == 40);
  CHECK(summary.all.waiting == 1);
  CHECK(!summary.all.completion_s);
  CHECK(!summary.all.slowdown);
  CHECK(!summary.makespan_s);
  spec.until = seconds(150);
  const QueueSummary later = summary_of(spec, simulate_queue(spec));
  CHECK(later.all.waiting == 0);
  CHECK(later.all.wait_s->mean == 45);
  CHECK(later.makespan_s == 100);
}

}  // namespace lockstep
