/// Puts the transfers of a replay on the network, each up to `jitter` late.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <vector>

#include "models/base/units.hpp"
#include "sim/core/flow_network.hpp"
#include "sim/core/random.hpp"
#include "sim/step/replay_run.hpp"

namespace lockstep {

class ReplayFlows {
 public:
  /// `run` outlives this.
  ReplayFlows(ReplayRun& run, Seconds jitter)
      : run_(run),
        network_(run.wiring->network()),
        jitter_(jitter),
        late_(jitter > Seconds{} ? run.wiring->flows().size() : 0) {}

  void start(FlowIndex flow, double amount) {
    ++run_.result.flows;
    const Bytes bytes{std::max(amount, 1.0)};
    if (late_.empty()) return put_on_wire(flow, bytes);
    LateFlow& late = late_[number_of(flow)];
    constexpr std::uint32_t kPurpose = 0x6A697474;  // this draw's own
    RandomStream random({.seed = 1,
                         .trajectory = late.starts++,
                         .component = number_of(flow),
                         .purpose = kPurpose});
    late.waits = true;
    late.bytes = bytes;
    run_.queue.push(run_.now + to_step_time(random.uniform() * jitter_), ReplayRun::flow_starts,
                    number_of(flow));
  }
  /// Its delay is over.
  void on_starts(std::uint32_t number) {
    late_[number].waits = false;
    put_on_wire(run_.wiring->flows()[number].flow, late_[number].bytes);
  }
  /// Whether it has started and not ended, late or not.
  [[nodiscard]] bool is_under_way(FlowIndex flow) const {
    return network_.active(flow) || (!late_.empty() && late_[number_of(flow)].waits);
  }
  /// From now on flows are those of another wiring, and what is under way goes on over them.
  void rewire(const Wiring& wiring, StepTime now) {
    assert(wiring.flows().size() == run_.wiring->flows().size());
    for (std::size_t i = 0; i < wiring.flows().size(); ++i) {
      const FlowIndex from = run_.wiring->flows()[i].flow, to = wiring.flows()[i].flow;
      if (!network_.active(from)) continue;
      network_.hand_over(from, to, now);
      if (!wiring.stalled(to)) network_.resume(to, now);
    }
    run_.wiring = &wiring;
  }

 private:
  /// A flow that jitter holds back.
  struct LateFlow {
    std::uint32_t starts = 0;  ///< so far
    bool waits = false;
    Bytes bytes;
  };

  /// Counts the wiring's flows.
  [[nodiscard]] std::uint32_t number_of(FlowIndex flow) const {
    return static_cast<std::uint32_t>(flow - run_.wiring->flows().front().flow);
  }
  void put_on_wire(FlowIndex flow, Bytes bytes) {
    run_.wiring->stalled(flow) ? network_.start_held(flow, bytes, run_.now)
                               : network_.start(flow, bytes, run_.now);
  }

  ReplayRun& run_;
  FlowNetwork& network_;
  Seconds jitter_;
  std::vector<LateFlow> late_;  ///< by number of the flow; empty without jitter
};

}  // namespace lockstep
