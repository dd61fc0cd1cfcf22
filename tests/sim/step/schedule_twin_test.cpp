// The replay of a pipeline against a twin that asks every rank again and again whether its next
// pass can start: the same begin and end of every pass; and what ranks hold, counted on the clock.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <doctest/doctest.h>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "sim/core/random.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/sim/step/hand_plan.hpp"

namespace lockstep {
namespace {

using test::PassTimes;

struct Span {
  std::uint64_t begin, end;
};

/// Messages take `latency` between ranks, and hold the sender up where `blocking`.
class AskedAgain {
 public:
  AskedAgain(const Parallelism& cut, int micro_batches, const std::vector<PassTimes>& times,
             std::uint64_t latency, bool blocking)
      : shape_(pipeline_shape(cut)), times_(times), latency_(latency), blocking_(blocking) {
    for (int r = 0; r < cut.pipeline; ++r) orders_.push_back(rank_order(cut, micro_batches, r));
    spans.resize(orders_.size());
    free_.resize(orders_.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < orders_.size(); ++r) moved = run_next(r) || moved;
    }
  }

  std::vector<std::vector<Span>> spans;  ///< by rank, in the order of its passes

 private:
  /// A direction, a place and a micro batch.
  using Key = std::tuple<bool, int, int, std::uint32_t>;

  bool run_next(std::size_t rank) {
    const std::vector<WorkItem>& order = orders_[rank];
    const std::size_t first = spans[rank].size();
    if (first == order.size()) return false;
    const std::size_t last = order[first].pairs ? first + 1 : first;
    std::uint64_t begin = free_[rank], takes = 0;
    for (std::size_t i = first; i <= last; ++i) {
      const std::optional<std::uint64_t> ready = input(rank, order[i]);
      if (!ready) return false;
      begin = std::max(begin, *ready);
      takes += test::pass_time(times_[rank], order[i].pass).ps;
    }
    free_[rank] = begin + takes;
    for (std::size_t i = first; i <= last; ++i) {
      spans[rank].push_back({begin, begin + takes});
      if (order[i].pass == Pass::backward_weight) continue;
      ended_[key({static_cast<int>(rank), order[i].chunk}, order[i])] = begin + takes;
      const std::optional<ChunkPlace> to = target(rank, order[i]);
      if (blocking_ && to && to->rank != static_cast<int>(rank)) {
        free_[rank] = begin + takes + latency_;
      }
    }
    return true;
  }
  static Key key(ChunkPlace at, const WorkItem& item) {
    return {is_forward(item.pass), at.rank, at.chunk, item.micro_batch};
  }
  [[nodiscard]] std::optional<ChunkPlace> target(std::size_t rank, const WorkItem& item) const {
    const ChunkPlace at{static_cast<int>(rank), item.chunk};
    return is_forward(item.pass) ? shape_.after(at) : shape_.before(at);
  }
  /// When what a pass needs of another place is there; nothing: not yet known.
  [[nodiscard]] std::optional<std::uint64_t> input(std::size_t rank, const WorkItem& item) const {
    if (item.pass == Pass::backward_weight) return 0;
    const ChunkPlace at{static_cast<int>(rank), item.chunk};
    const std::optional<ChunkPlace> from =
        is_forward(item.pass) ? shape_.before(at) : shape_.after(at);
    if (!from) return 0;
    const auto found = ended_.find(key(*from, item));
    if (found == ended_.end()) return std::nullopt;
    return found->second + (from->rank == at.rank ? 0 : latency_);
  }

  PipelineShape shape_;
  const std::vector<PassTimes>& times_;
  std::uint64_t latency_;
  bool blocking_;
  std::vector<std::vector<WorkItem>> orders_;
  std::vector<std::uint64_t> free_;
  std::map<Key, std::uint64_t> ended_;
};

/// Chunks whose activations a rank holds at most, by the clock: from the begin of a forward pass to
/// the end of what ends its micro batch.
int most_held(const std::vector<WorkItem>& order, const std::vector<Span>& spans) {
  int most = 0;
  for (std::size_t at = 0; at < order.size(); ++at) {
    int held = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      held += is_forward(order[i].pass) && spans[i].begin <= spans[at].begin ? 1 : 0;
      held -= ends_micro_batch(order[i].pass) && spans[i].end <= spans[at].begin ? 1 : 0;
    }
    most = std::max(most, held);
  }
  return most;
}

struct DrawnPipeline {
  Parallelism cut;
  int micro_batches = 1;
  std::vector<PassTimes> times;
};

DrawnPipeline drawn_pipeline(RandomStream& random, const ScheduleKind& kind) {
  DrawnPipeline out;
  const auto chunks = static_cast<std::uint32_t>(std::min(kind.virtual_max, 4) - kind.virtual_min);
  do {
    out.cut.pipeline = 1 + static_cast<int>(random.below(8));
    out.cut.virtual_stages = kind.virtual_min + static_cast<int>(random.below(chunks + 1));
    out.cut.schedule = kind.schedule;
    out.micro_batches = 1 + static_cast<int>(random.below(24));
  } while (!schedule_takes(out.cut, out.micro_batches));
  for (int r = 0; r < out.cut.pipeline; ++r) {
    const std::uint64_t weight = 1 + random.below(100);
    out.times.push_back({{1 + random.below(100)}, {weight + 1 + random.below(100)}, {weight}});
  }
  return out;
}

}  // namespace

TEST_CASE("every schedule: each pass begins and ends as its twin says, and ranks hold as much") {
  const std::uint64_t seed = test::test_seed();
  CAPTURE(seed);
  RandomStream random({.seed = seed, .purpose = 13});
  for (const ScheduleKind& kind : schedules()) {
    CAPTURE(kind.name);
    for (int i = 0; i < 60; ++i) {
      const DrawnPipeline drawn = drawn_pipeline(random, kind);
      const std::uint64_t latency = random.below(3) == 0 ? 0 : random.below(200);
      test::HandPlan hand = test::pipeline_plan(drawn.cut, drawn.micro_batches, drawn.times);
      hand.plan.blocking_sends = random.below(2) == 0;
      hand.plan.local_message_cost.latency = Seconds{static_cast<double>(latency) * 1e-12};
      CAPTURE(drawn.cut.pipeline);
      CAPTURE(drawn.cut.virtual_stages);
      CAPTURE(drawn.micro_batches);
      CAPTURE(latency);
      CAPTURE(hand.plan.blocking_sends);
      const AskedAgain twin(drawn.cut, drawn.micro_batches, drawn.times, latency,
                            hand.plan.blocking_sends);
      const ReplayResult result = hand.run(Recording::all);
      std::size_t item = 0;
      std::uint64_t end = 0, others = 0;
      for (std::size_t r = 0; r < twin.spans.size(); ++r) {
        const std::vector<WorkItem> order =
            rank_order(drawn.cut, drawn.micro_batches, static_cast<int>(r));
        REQUIRE(twin.spans[r].size() == order.size());
        for (std::size_t at = 0; at < order.size(); ++at, ++item) {
          end = std::max(end, twin.spans[r][at].end);
          const bool second = at > 0 && order[at - 1].pairs;
          if (!second) others += result.items[item].start.ps == twin.spans[r][at].begin ? 0 : 1;
          if (!order[at].pairs)
            others += result.items[item].end.ps == twin.spans[r][at].end ? 0 : 1;
        }
        CHECK(most_held(order, twin.spans[r]) ==
              chunks_in_flight(drawn.cut, drawn.micro_batches, static_cast<int>(r)));
      }
      CHECK(others == 0);
      CHECK(result.end.ps >= end);
      if (!hand.plan.blocking_sends) CHECK(result.end.ps == end);
    }
  }
}

}  // namespace lockstep
