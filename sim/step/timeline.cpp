#include "sim/step/timeline.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace lockstep {

std::vector<TimelineSlice> timeline(const StepPlan& plan, const ReplayResult& result,
                                    const CriticalPath& path) {
  // Indices into slice_kinds(), in its order.
  enum Slice : std::uint8_t {
    forward,
    backward,
    backward_input,
    backward_weight,
    optimiser,
    forward_message,
    backward_message,
    gather,
    reduce,
    copy
  };
  enum Stream : std::uint8_t { compute, send_next, send_previous, data, host };
  std::vector<TimelineSlice> slices;
  const std::size_t stages = plan.stages.size();
  std::size_t record = 0;
  for (std::uint32_t a = 0; a < result.actors.size(); ++a) {
    const StagePlan& stage = result.plan_of(plan, a);
    for (const ProgramItem& item : stage.items) {
      const ItemRecord& r = result.items[record];
      const bool critical = path.passes[record++];
      // Passes come first among the slices, in their order.
      slices.push_back({a, compute, static_cast<std::uint8_t>(item.work.pass), critical,
                        static_cast<std::int32_t>(item.work.micro_batch), item.work.chunk, r.start,
                        r.end});
      if (item.copies == StepTime{}) continue;
      slices.push_back({a, host, copy, false, static_cast<std::int32_t>(item.work.micro_batch),
                        item.work.chunk, r.start, std::min(r.end, r.start + item.copies)});
    }
    const StepTime start =
        result.optimiser_start + plan.stagger + plan.synchronisation + plan.overhead;
    slices.push_back(
        {a, compute, optimiser, a == path.last_actor, -1, -1, start, start + stage.optimiser});
  }
  // A message keeps its channel until it has left; its latency overlaps the next one.
  std::vector<StepTime> free(2 * result.actors.size());
  /// Messages so far for a chunk of a receiver: they come in the order of its micro batches.
  std::map<std::tuple<std::size_t, bool, std::uint16_t>, std::int32_t> came;
  for (const MessageRecord& m : result.messages) {
    const std::size_t number = 2 * m.actor + m.direction;
    const MessageTarget& to = result.plan_of(plan, m.actor).message_targets[m.direction][m.number];
    slices.push_back({m.actor, m.direction == 0 ? send_next : send_previous,
                      m.forward ? forward_message : backward_message, false,
                      came[{number, to.forward, to.chunk}]++, to.chunk,
                      std::max(m.start, free[number]), m.end});
    free[number] = m.end;
  }
  for (const CollectiveRecord& c : result.collectives) {
    const std::vector<std::uint32_t>& actors = result.data_groups[c.group];
    const StagePlan& stage = plan.stages[actors.front() % stages];
    const bool gathers = stage.collectives[c.collective].op == CollectiveOp::all_gather;
    for (const std::uint32_t a : actors) {
      slices.push_back({a, data, gathers ? gather : reduce, false, -1, -1, c.start, c.end});
    }
  }
  std::ranges::sort(slices, [](const TimelineSlice& x, const TimelineSlice& y) {
    // A pass that takes no time, over frozen layers, comes before the one that begins then.
    return std::tuple(x.actor, x.stream, x.start.ps, x.end.ps) <
           std::tuple(y.actor, y.stream, y.start.ps, y.end.ps);
  });
  return slices;
}

}  // namespace lockstep
