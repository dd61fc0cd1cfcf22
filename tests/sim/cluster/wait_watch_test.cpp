// Why a job waits: reasons by hand, and stretches that add up.
#include <doctest/doctest.h>
#include <vector>

#include "sim/core/random.hpp"
#include "tests/sim/cluster/sample_queues.hpp"

namespace lockstep {
namespace {

using test::queue_of;
using test::seconds;

std::vector<WaitSpan> waits_of(const QueueSpec& spec, std::uint32_t job) {
  return simulate_queue(spec, {.watch = job}).waits;
}

void check_waits(const std::vector<WaitSpan>& spans,
                 const std::vector<std::pair<WaitReason, double>>& expected) {
  REQUIRE(spans.size() == expected.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    CAPTURE(i);
    CHECK(kWaitReasonNames[static_cast<std::size_t>(spans[i].reason)] ==
          kWaitReasonNames[static_cast<std::size_t>(expected[i].first)]);
    CHECK(spans[i].end - spans[i].begin == seconds(expected[i].second));
  }
}

}  // namespace

TEST_CASE("waiting: others hold the GPUs, then a wide job before it holds it back") {
  QueueSpec spec = queue_of(2, 8, {{0, 50, 8}, {0, 100, 8}, {1, 10, 16}, {2, 10, 8}});
  spec.admission = QueueAdmission::strict;
  const std::vector<WaitSpan> spans = waits_of(spec, 3);
  check_waits(spans, {{WaitReason::busy, 48}, {WaitReason::order, 50}, {WaitReason::busy, 10}});
  CHECK(spans[0].before == 1);
  CHECK(spans[0].first == 2);
  CHECK(spans[1].free_gpus == 8);
}

TEST_CASE("waiting: a reservation, fragments, a quota, nodes in repair") {
  QueueSpec easy = queue_of(2, 8, {{0, 100, 8}, {1, 10, 16}, {2, 150, 8}});
  easy.admission = QueueAdmission::easy;
  check_waits(waits_of(easy, 2), {{WaitReason::reservation, 98}, {WaitReason::busy, 10}});

  QueueSpec fragments = queue_of(2, 8, {{0, 60, 5}, {0, 100, 5}, {1, 10, 6}});
  fragments.admission = QueueAdmission::best_effort;
  fragments.placement.within_node = WithinNode::worst_fit;
  check_waits(waits_of(fragments, 2), {{WaitReason::fragmentation, 59}});

  QueueSpec limited = queue_of(2, 8, {{0, 60, 8}, {1, 10, 8}});
  limited.admission = QueueAdmission::best_effort;
  const std::uint16_t user = *limited.users.number_of("ann");
  limited.jobs[0].user = limited.jobs[1].user = user;
  limited.user_quotas = {{user, 8}};
  check_waits(waits_of(limited, 1), {{WaitReason::quota, 59}});

  QueueSpec breaking = queue_of(1, 8, {{0, 2e6, 8}});
  breaking.failures = {.name = "often",
                       .mean_time = Seconds{50'000},
                       .replaced = 1,
                       .repair = seconds(900),
                       .assumptions = {}};
  breaking.preemption.checkpoint = 0;  // 40 failures in a row: without, it would never end
  const std::vector<WaitSpan> repairs = waits_of(breaking, 0);
  CHECK(repairs.size() > 10);
  for (const WaitSpan& span : repairs) CHECK(span.reason == WaitReason::broken);
}

TEST_CASE("waiting: the stretches of any job add up to its wait, and do not overlap") {
  RandomStream random({.seed = 11});
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    QueueSpec spec = test::empty_queue(4, 8);
    DrawnJobs drawn;
    drawn.count = 80;
    drawn.every = Seconds{40};
    drawn.gpus = {{1, 3.0}, {4, 2.0}, {8, 1.0}, {24, 0.3}};
    drawn.mean = Seconds{300};
    drawn.sigma = 1.2;
    drawn.limit_factor = 2;
    spec.seed = static_cast<std::uint64_t>(round);
    draw_jobs(drawn, 0, spec);
    spec.order = random.below(2) == 0 ? QueueOrder::fifo : QueueOrder::srtf;
    spec.admission = static_cast<QueueAdmission>(random.below(5));
    if (spec.order == QueueOrder::srtf && spec.admission == QueueAdmission::best_effort) {
      spec.preemption.mode = PreemptionMode::evict;
    }
    const std::uint32_t job = random.below(80);
    const QueueResult result = simulate_queue(spec, {.watch = job});
    RunTime sum = 0, last = spec.jobs[job].submit;
    for (const WaitSpan& span : result.waits) {
      CHECK(span.begin >= last);
      CHECK(span.end > span.begin);
      sum += span.end - span.begin;
      last = span.end;
    }
    CHECK(sum == result.jobs[job].waited);
  }
}

}  // namespace lockstep
