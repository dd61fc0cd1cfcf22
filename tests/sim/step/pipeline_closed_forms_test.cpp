// What a pipeline costs on paper against what its replay takes, to the tick.
#include <cstdint>
#include <doctest/doctest.h>
#include <utility>
#include <vector>

#include "tests/sim/step/hand_plan.hpp"

namespace lockstep {
namespace {

using test::HandPlan;
using test::PassTimes;
using test::pipeline_plan;

// Backward need not be twice forward, nor a multiple of anything.
constexpr PassTimes kUneven{{1'000'003}, {2'345'679}};

std::uint64_t replayed(Schedule schedule, int chunks, int micro_batches,
                       const std::vector<PassTimes>& times) {
  return pipeline_plan(schedule, chunks, micro_batches, times).run().end.ps;
}
std::vector<PassTimes> equal_ranks(int ranks) {
  return std::vector<PassTimes>(static_cast<std::size_t>(ranks), kUneven);
}
constexpr std::uint64_t round_trip(const PassTimes& t) { return t.forward.ps + t.backward.ps; }

}  // namespace

// Narayanan et al. 2021, arXiv:2104.04473, section 2.2: the bubble over the ideal m (f + b) is
// (p - 1) / m, and (p - 1) / (v m) with v chunks a rank, of which each takes 1 / v of the time.
TEST_CASE("1F1B and GPipe: bubble over ideal is (p - 1) / m when ranks are equal") {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 20; ++m) {
      CAPTURE(p);
      CAPTURE(m);
      const auto expected = static_cast<std::uint64_t>(m + p - 1) * round_trip(kUneven);
      CHECK(replayed(Schedule::one_f_one_b, 1, m, equal_ranks(p)) == expected);
      CHECK(replayed(Schedule::gpipe, 1, m, equal_ranks(p)) == expected);
    }
  }
}

TEST_CASE("interleaved: bubble over ideal is (p - 1) / (v m) when ranks are equal") {
  for (int p = 1; p <= 6; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int m = p; m <= 4 * p; m += p) {
        CAPTURE(p);
        CAPTURE(v);
        CAPTURE(m);
        const auto expected = static_cast<std::uint64_t>(v * m + p - 1) * round_trip(kUneven);
        CHECK(replayed(Schedule::interleaved, v, m, equal_ranks(p)) == expected);
      }
    }
  }
}

// The slow rank alone then works longer than equal ranks take with their bubble.
TEST_CASE("pipelines: the same work takes longer where one rank has half of another's too") {
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved}) {
    const int chunks = schedule == Schedule::interleaved ? 2 : 1;
    for (const int p : {2, 4, 5}) {
      for (std::size_t slow = 0; slow < static_cast<std::size_t>(p); ++slow) {
        CAPTURE(p);
        CAPTURE(slow);
        std::vector<PassTimes> times = equal_ranks(p);
        const std::size_t quick = slow == 0 ? 1 : 0;
        const PassTimes half{{kUneven.forward.ps / 2}, {kUneven.backward.ps / 2}};
        times[slow].forward += half.forward;
        times[slow].backward += half.backward;
        times[quick] = {kUneven.forward - half.forward, kUneven.backward - half.backward};
        const int m = 2 * p;
        CHECK(replayed(schedule, chunks, m, times) > replayed(schedule, chunks, m, equal_ranks(p)));
      }
    }
  }
}

TEST_CASE("pipelines: the slowest rank sets the pace, the others add one pass each way") {
  const PassTimes quick{{100}, {200}}, slow{{150}, {300}};
  const int m = 12;
  // The first rank, then 12 round trips of the slow last one, then back over the first.
  CHECK(replayed(Schedule::one_f_one_b, 1, m, {quick, slow}) == 100 + 12 * 450 + 200);
  CHECK(replayed(Schedule::one_f_one_b, 1, m, {quick, quick, slow}) == 200 + 12 * 450 + 400);
}

TEST_CASE("pipelines: every rank's time is compute and bubble, and adds up to the step") {
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved}) {
    const int chunks = schedule == Schedule::interleaved ? 3 : 1;
    const int p = 4, m = 8;
    const ReplayResult result = pipeline_plan(schedule, chunks, m, equal_ranks(p)).run();
    const auto work = static_cast<std::uint64_t>(m * chunks) * round_trip(kUneven);
    for (const ActorTimes& times : result.actors) {
      CHECK(times.compute.ps == work);
      CHECK(times.bubble == result.end - times.compute);
      CHECK(times.total() == result.end);
    }
    CHECK(result.items_run == static_cast<std::uint64_t>(2 * p * m * chunks));
  }
}

TEST_CASE("pipelines: a message adds its latency and its bytes over the pace, once each way") {
  HandPlan hand = pipeline_plan(Schedule::one_f_one_b, 1, 1, {{{100}, {200}}, {{100}, {200}}});
  hand.plan.local_message_cost.latency = Seconds{7e-12};
  hand.plan.local_message_cost.payload_rate = BytesPerSecond{1e12};
  hand.plan.message = Bytes{50};
  const ReplayResult result = hand.run(Recording::all);
  CHECK(result.end.ps == 2 * (100 + 200) + 2 * (50 + 7));
  // The last rank waits for a message, and as its sends block also until its own has landed.
  CHECK(result.actors[1].message.ps == 57 + 57);
  CHECK(result.actors[1].bubble.ps == 100 + 200);
  REQUIRE(result.messages.size() == 2);
  CHECK(result.messages[0].start.ps == 100);
  CHECK(result.messages[0].end.ps == 157);
}

TEST_CASE("pipelines: messages of one rank queue behind each other on the wire") {
  // Two forward passes of 10 ticks; each message takes 100. The sender does not wait.
  HandPlan hand = pipeline_plan(Schedule::gpipe, 1, 2, {{{10}, {10}}, {{10}, {10}}});
  hand.plan.blocking_sends = false;
  hand.plan.local_message_cost.payload_rate = BytesPerSecond{1e12};
  hand.plan.message = Bytes{100};
  // Forward: 10 + 100 + 100 + 10; backward of micro batch 0 starts at 220, and its message goes at
  // 230; the second one follows at 330 and lands at 430; 10 more for the last backward.
  CHECK(hand.run().end.ps == 440);
}

TEST_CASE("pipelines: two messages that cross share one pace between half-duplex neighbours") {
  HandPlan hand = pipeline_plan(Schedule::one_f_one_b, 1, 1, {{{10}, {10}}, {{10}, {10}}});
  // The last rank goes backward first, so that both ranks send at 10 and need the other's message.
  for (StagePlan& stage : hand.plan.stages) {
    for (ProgramItem& item : stage.items) item.needs_message = !item.sends_message;
  }
  std::swap(hand.plan.stages[1].items[0], hand.plan.stages[1].items[1]);
  hand.plan.local_message_cost.payload_rate = BytesPerSecond{1e12};
  hand.plan.message = Bytes{100};
  CHECK(hand.run().end.ps == 10 + 100 + 10);
  hand.scenario.stack.communication.half_duplex_pipeline = true;
  CHECK(hand.run().end.ps == 10 + 200 + 10);
}

}  // namespace lockstep
