#include "sim/step/schedule.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <tuple>
#include <vector>

namespace lockstep {
namespace {

/// Calls that a scenario can lead to: chunks only where the schedule interleaves, and then whole
/// groups of p micro batches.
std::vector<ScheduleCall> allowed_calls(Schedule schedule) {
  std::vector<ScheduleCall> calls;
  for (int p = 1; p <= 8; ++p) {
    for (int v = 1; v <= (schedule == Schedule::interleaved ? 4 : 1); ++v) {
      for (int m = 1; m <= 24; ++m) {
        if (schedule == Schedule::interleaved && m % p != 0) continue;
        for (int rank = 0; rank < p; ++rank) calls.push_back({p, v, m, rank});
      }
    }
  }
  return calls;
}

int most_in_flight(const std::vector<WorkItem>& order) {
  int now = 0, most = 0;
  for (const WorkItem& item : order) {
    now += item.pass == Pass::forward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

TEST_CASE("every schedule: runs each pass of each chunk and micro batch once, forward first") {
  for (const ScheduleKind& kind : schedules()) {
    CAPTURE(kind.name);
    for (const ScheduleCall& call : allowed_calls(kind.schedule)) {
      const std::vector<WorkItem> order = stage_order(kind.schedule, call);
      const auto chunks = static_cast<std::size_t>(call.chunks);
      const auto batches = static_cast<std::size_t>(call.micro_batches);
      REQUIRE(order.size() == 2 * chunks * batches);
      std::vector<int> state(chunks * batches);  // 0: nothing ran, 1: forward, 2: both
      bool sound = true;
      for (const WorkItem& item : order) {
        int& s = state.at(item.chunk * batches + item.micro_batch);
        sound = sound && s == (item.pass == Pass::forward ? 0 : 1);
        ++s;
      }
      CAPTURE(call.ranks);
      CAPTURE(call.chunks);
      CAPTURE(call.micro_batches);
      CAPTURE(call.rank);
      CHECK(sound);
    }
  }
}

TEST_CASE("every schedule: stands at its place in the table, and names its source") {
  std::size_t place = 0;
  for (const ScheduleKind& kind : schedules()) {
    CHECK(static_cast<std::size_t>(kind.schedule) == place++);
    CHECK_FALSE(kind.source.empty());
    CHECK_FALSE(kind.summary.empty());
  }
}

TEST_CASE("1f1b: rank r holds at most p - r micro batches, GPipe all of them") {
  for (const ScheduleCall& call : allowed_calls(Schedule::one_f_one_b)) {
    const int held = most_in_flight(stage_order(Schedule::one_f_one_b, call));
    CHECK(held == std::min(call.micro_batches, call.ranks - call.rank));
    CHECK(most_in_flight(stage_order(Schedule::gpipe, call)) == call.micro_batches);
  }
}

// Korthikanti et al. 2022, arXiv:2205.05198, section 4.2.3: interleaving holds 1 + (p - 1) / (p v)
// times what 1F1B holds on the first stage, p micro batches of all layers: p v + p - 1 of a chunk.
TEST_CASE("interleaved: the first rank holds p v + p - 1 chunks") {
  for (const ScheduleCall& call : allowed_calls(Schedule::interleaved)) {
    if (call.rank != 0) continue;
    const int held = most_in_flight(stage_order(Schedule::interleaved, call));
    const int all = call.micro_batches * call.chunks;
    CHECK(held == std::min(all, call.ranks * call.chunks + call.ranks - 1));
  }
}

TEST_CASE("interleaved: the last of two ranks runs two chunks in the order of the paper") {
  const std::vector<WorkItem> order =
      stage_order(Schedule::interleaved, {.ranks = 2, .chunks = 2, .micro_batches = 2, .rank = 1});
  const std::vector<WorkItem> expected{{Pass::forward, 0, 0},  {Pass::forward, 0, 1},
                                       {Pass::forward, 1, 0},  {Pass::backward, 1, 0},
                                       {Pass::forward, 1, 1},  {Pass::backward, 1, 1},
                                       {Pass::backward, 0, 0}, {Pass::backward, 0, 1}};
  CHECK(order == expected);
}

}  // namespace lockstep
