// What schedules that split backward passes cost on paper against what their replay takes, to the
// tick.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <doctest/doctest.h>
#include <memory>
#include <vector>

#include "sim/core/random.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/sim/step/hand_plan.hpp"

namespace lockstep {
namespace {

using test::PassTimes;
using test::pipeline_plan;

/// Forward, gradients of inputs, gradients of weights.
constexpr PassTimes times_of(std::uint64_t f, std::uint64_t b, std::uint64_t w) {
  return {{f}, {b + w}, {w}};
}
std::vector<PassTimes> all_ranks(int ranks, const PassTimes& times) {
  return std::vector<PassTimes>(static_cast<std::size_t>(ranks), times);
}

/// Most that a rank is idle between its first and its last pass. Requires a recorded result.
std::uint64_t longest_idle(const test::HandPlan& hand, const ReplayResult& result) {
  std::uint64_t most = 0;
  std::size_t first = 0;
  for (std::size_t r = 0; r < result.actors.size(); ++r) {
    const std::size_t last = first + hand.plan.stages[r].items.size() - 1;
    const StepTime span = result.items[last].end - result.items[first].start;
    most = std::max(most, (span - result.actors[r].compute).ps);
    first = last + 1;
  }
  return most;
}

struct Bubbles {
  std::uint64_t step;  ///< the step beyond a rank's work
  std::uint64_t rank;  ///< longest_idle()
};

Bubbles replayed_bubbles(Schedule schedule, int virtual_stages, int micro_batches, int ranks,
                         const PassTimes& times) {
  const test::HandPlan hand =
      pipeline_plan(schedule, virtual_stages, micro_batches, all_ranks(ranks, times));
  const ReplayResult result = hand.run(Recording::all);
  return {(result.end - result.actors[0].compute).ps, longest_idle(hand, result)};
}

const std::vector<PassTimes>& published_domain() {
  static const std::vector<PassTimes> times{
      times_of(1000, 1000, 1000),
      times_of(1000, 1100, 900),
      times_of(1000, 1300, 700),
  };
  return times;
}

}  // namespace

// Qi et al. 2023, arXiv:2401.10241, table 1: (p - 1) (T_F + T_B - T_W) for ZB-H1 and
// (p - 1) (T_F + T_B - 2 T_W) for ZB-H2, beside 1F1B's (p - 1) (T_F + T_B + T_W).
TEST_CASE("zb_h1: the bubble is the published one") {
  for (const PassTimes& t : published_domain()) {
    for (const int p : {2, 4, 8, 13}) {
      for (const int m : {p, p + 1, 2 * p, 5 * p}) {
        CAPTURE(p);
        CAPTURE(m);
        const StepTime input = t.backward - t.weight;
        const auto ranks = static_cast<std::uint64_t>(p - 1);
        CHECK(replayed_bubbles(Schedule::zb_h1, 1, m, p, t).step ==
              ranks * (t.forward + input - t.weight).ps);
        CHECK(replayed_bubbles(Schedule::one_f_one_b, 1, m, p, t).step ==
              ranks * (t.forward + t.backward).ps);
      }
    }
  }
}

// Qi et al. 2023, arXiv:2401.10241, tables 9 and 5: bubble rates of the longest rank, calculated
// from measured passes and messages of ms. A rate is rounded by up to 5e-5, the times, by 5e-4 ms
// of 8 to 30 ms, move it by less.
TEST_CASE("1F1B, ZB-H1, ZB-H2: published bubble rates of four models") {
  struct PublishedRow {
    int ranks, micro_batches;
    double forward, input, weight, message;
    double one_f_one_b, zb_h1, zb_h2;
  };
  constexpr std::array kRows{
      PublishedRow{8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585, 0.1083},
      PublishedRow{8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985, 0.1242, 0.0837},
      PublishedRow{8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240, 0.0674, 0.0444},
      PublishedRow{8, 24, 29.718, 29.444, 19.927, 0.527, 0.2347, 0.1323, 0.0698},
      PublishedRow{8, 32, 29.802, 29.428, 19.530, 0.577, 0.1898, 0.1045, 0.0559},
      PublishedRow{8, 64, 29.935, 29.621, 19.388, 0.535, 0.1091, 0.0554, 0.0294},
      PublishedRow{16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552, 0.1397, 0.0672},
      PublishedRow{16, 64, 11.307, 11.254, 8.101, 0.379, 0.2082, 0.1088, 0.0516},
      PublishedRow{16, 128, 11.325, 11.308, 8.109, 0.378, 0.1251, 0.0576, 0.0266},
      PublishedRow{32, 96, 10.419, 10.207, 7.715, 0.408, 0.2646, 0.1421, 0.0641},
      PublishedRow{32, 128, 10.408, 10.204, 7.703, 0.408, 0.2168, 0.1106, 0.0490},
      PublishedRow{32, 256, 10.402, 10.248, 7.698, 0.460, 0.1352, 0.0594, 0.0257},
  };
  constexpr double kTableRounding = 1e-4;
  const auto ms = [](double n) { return to_step_time(Seconds{n * 1e-3}); };
  for (const PublishedRow& row : kRows) {
    const PassTimes times{ms(row.forward), ms(row.input) + ms(row.weight), ms(row.weight)};
    const auto rate = [&](Schedule schedule) {
      test::HandPlan hand =
          pipeline_plan(schedule, 1, row.micro_batches, all_ranks(row.ranks, times));
      hand.plan.blocking_sends = false;
      hand.plan.local_message_cost.latency = Seconds{row.message * 1e-3};
      const ReplayResult result = hand.run(Recording::all);
      const StepTime work = result.actors[0].compute;
      const std::uint64_t idle = longest_idle(hand, result);
      return static_cast<double>(idle) / static_cast<double>(work.ps + idle);
    };
    CAPTURE(row.ranks);
    CAPTURE(row.micro_batches);
    CHECK(std::abs(rate(Schedule::one_f_one_b) - row.one_f_one_b) < kTableRounding);
    CHECK(std::abs(rate(Schedule::zb_h1) - row.zb_h1) < kTableRounding);
    CHECK(std::abs(rate(Schedule::zb_h2) - row.zb_h2) < kTableRounding);
  }
}

// The figure is that of a rank: the last one starts p - 1 forward passes after the first.
TEST_CASE("zb_h2: a rank is idle for the published time, and not at all when passes are equal") {
  for (const PassTimes& t : published_domain()) {
    for (const int p : {2, 4, 8, 13}) {
      for (const int m : {2 * p, 5 * p}) {
        CAPTURE(p);
        CAPTURE(m);
        const StepTime input = t.backward - t.weight;
        const Bubbles bubbles = replayed_bubbles(Schedule::zb_h2, 1, m, p, t);
        CHECK(bubbles.rank ==
              static_cast<std::uint64_t>(p - 1) * (t.forward + input - t.weight - t.weight).ps);
        CHECK(bubbles.step >= static_cast<std::uint64_t>(p - 1) * t.forward.ps);
      }
    }
  }
}

// Qi et al. 2023, arXiv:2401.10241, section 6: zero bubble when T_F = T_B = T_W.
TEST_CASE("zb_v: no rank is idle between its passes when passes are equal") {
  const PassTimes equal = times_of(1000, 1000, 1000);
  for (const int p : {2, 4, 8, 13}) {
    for (const int m : {2 * p, 2 * p + 1, 5 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      const Bubbles bubbles = replayed_bubbles(Schedule::zb_v, 2, m, p, equal);
      CHECK(bubbles.rank == 0);
      CHECK(bubbles.step == static_cast<std::uint64_t>(p - 1) * equal.forward.ps);
    }
  }
}

// DeepSeek-AI 2024, arXiv:2412.19437, table 2: (PP / 2 - 1) (F&B + B - 3 W) with B a whole backward
// pass and F&B a pair, here as long as its parts; and DualPipeV, on half of the ranks.
TEST_CASE("dualpipe: the bubble is the published one when passes are equal") {
  const PassTimes equal = times_of(1000, 1000, 1000);
  const std::uint64_t bubble = (equal.forward + equal.backward + equal.backward).ps - 3 * 1000;
  for (const int p : {2, 4, 8, 16}) {
    for (const int m : {2 * p, 2 * p + 2, 5 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      const auto half = static_cast<std::uint64_t>(p / 2 - 1);
      CHECK(replayed_bubbles(Schedule::dualpipe, 1, m, p, equal).step == half * bubble);
      if (p == 2) continue;
      CHECK(replayed_bubbles(Schedule::dualpipev, 2, m, p / 2, equal).step == half * bubble);
    }
  }
}

// Section 4 of arXiv:2211.05953: as 1F1B's, over the chunks of a rank.
TEST_CASE("breadth_first: bubble over ideal is (p - 1) / (v m) when ranks are equal") {
  const PassTimes times{{1'000'003}, {2'345'679}};
  for (const int p : {1, 2, 5}) {
    for (const int v : {1, 2, 3}) {
      for (const int m : {p, p + 1, 3 * p}) {
        CAPTURE(p);
        CAPTURE(v);
        CAPTURE(m);
        CHECK(replayed_bubbles(Schedule::breadth_first, v, m, p, times).step ==
              static_cast<std::uint64_t>(p - 1) * (times.forward + times.backward).ps);
      }
    }
  }
}

TEST_CASE("pipelines: a pair waits for both inputs and sends both outputs at its end") {
  // Rank 0: F0, F1 with B0, then B1; rank 1 turns each micro batch around.
  const WorkItem f0{Pass::forward, false, 0, 0}, f1{Pass::forward, false, 0, 1};
  const WorkItem b0{Pass::backward, false, 0, 0}, b1{Pass::backward, false, 0, 1};
  auto order = std::make_shared<FixedOrder>();
  order->shape = {ChunkLayout::loop, 2, 1};
  order->micro_batches = 2;
  order->ranks = {{f0, {Pass::forward, true, 0, 1}, b0, b1}, {f0, b0, f1, b1}};
  Parallelism cut;
  cut.pipeline = 2;
  cut.schedule = Schedule::fixed;
  cut.order = order;
  const test::HandPlan hand = pipeline_plan(cut, 2, {{{10}, {20}}, {{10}, {20}}});
  const ReplayResult result = hand.run(Recording::all);
  CHECK(result.items[1].start.ps == 10 + 10 + 20);  // F1 needs what B0 needs
  CHECK(result.items[6].start.ps == 40 + 10 + 20);  // and leaves when B0 is done
  CHECK(result.end.ps == 70 + 10 + 20 + 20);
}

TEST_CASE(
    "every schedule: no step is shorter than a rank's work and the way through the pipeline") {
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  RandomStream random({.seed = seed, .purpose = 11});
  for (const ScheduleKind& kind : schedules()) {
    CAPTURE(kind.name);
    for (int i = 0; i < 200; ++i) {
      const int p = 1 + static_cast<int>(random.below(8));
      const int v = kind.virtual_min + static_cast<int>(random.below(static_cast<std::uint32_t>(
                                           std::min(kind.virtual_max, 4) - kind.virtual_min + 1)));
      const int m = 1 + static_cast<int>(random.below(30));
      Parallelism cut;
      cut.pipeline = p;
      cut.virtual_stages = v;
      cut.schedule = kind.schedule;
      if (!schedule_takes(cut, m)) continue;
      std::vector<PassTimes> times;
      for (int r = 0; r < p; ++r) {
        times.push_back(
            times_of(1 + random.below(100), 1 + random.below(100), 1 + random.below(100)));
      }
      CAPTURE(p);
      CAPTURE(v);
      CAPTURE(m);
      const test::HandPlan hand = pipeline_plan(cut, m, times);
      const ReplayResult result = hand.run(Recording::all);
      std::uint64_t way = 0;
      const auto chunks = static_cast<std::uint64_t>(v);
      for (const PassTimes& t : times) way += chunks * (t.forward + t.backward - t.weight).ps;
      CHECK(result.end.ps >= way);
      for (std::size_t r = 0; r < times.size(); ++r) {
        const std::uint64_t work =
            static_cast<std::uint64_t>(m) * chunks * (times[r].forward + times[r].backward).ps;
        CHECK(result.actors[r].compute.ps == work);
        CHECK(result.end.ps >= work);
      }
    }
  }
}

}  // namespace lockstep
