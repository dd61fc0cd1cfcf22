/// Transfers inside layers of a replay: a segment's run as flows one axis after another, and where
/// experts exchange tokens nobody goes on before all have theirs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/core/clock.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/replay_flows.hpp"
#include "sim/step/replay_run.hpp"
#include "sim/step/wiring.hpp"

namespace lockstep {

class ReplayLayers {
 public:
  enum class Next : std::uint8_t {
    waits,          ///< for a flow, or for others
    block_goes_on,  ///< all of its block are there, and no flow moves what they exchange
    segment_ends,
  };

  /// Both outlive this.
  ReplayLayers(ReplayRun& run, ReplayFlows& flows) : run_(run), flows_(flows) {
    block_of_.resize(run_.classes.size() * run_.stages);
    for (const std::vector<std::size_t>& block : blocks_of(run_.classes)) {
      for (std::size_t s = 0; s < run_.stages; ++s) {
        Block& of_stage = blocks_.emplace_back();
        for (const std::size_t c : block) {
          const std::size_t actor = c * run_.stages + s;
          block_of_[actor] = static_cast<std::uint32_t>(blocks_.size() - 1);
          of_stage.actors.push_back(static_cast<std::uint32_t>(actor));
        }
      }
    }
  }

  /// Actors with which this one exchanges tokens, itself among them.
  [[nodiscard]] const std::vector<std::uint32_t>& block_of(std::uint32_t index) const {
    return blocks_[block_of_[index]].actors;
  }

  /// Starts the next transfer of the actor's segment.
  Next start_next(std::uint32_t index) {
    ReplayRun::Actor& a = run_.actors[index];
    const Segment& segment = run_.current_segment(a);
    while (a.axis < kAxes && segment.amounts[a.axis] <= 0 && !meets_others(index, segment)) {
      ++a.axis;
    }
    if (a.axis == kAxes) return Next::segment_ends;
    run_.wait_for(a, ReplayRun::Wait::layer);
    if (is_of_experts(static_cast<Axis>(a.axis))) {
      Block& block = blocks_[block_of_[index]];
      if (++block.arrived < block.actors.size()) return Next::waits;
      block.arrived = 0;
      block.all_there = run_.now;
      if (segment.amounts[a.axis] <= 0) return Next::block_goes_on;
    }
    flows_.start(run_.wiring->actor(index).layer[a.axis], segment.amounts[a.axis]);
    return Next::waits;
  }
  /// All of its block are there, and that was all.
  void book_meeting(std::uint32_t index) {
    ReplayRun::Actor& a = run_.actors[index];
    run_.result.actors[index].straggler += run_.now - a.since;
    ++a.axis;
  }
  /// A flow of this axis has ended. False: the actor still computes beside it, and an event is due
  /// when it is done.
  bool is_over(std::uint32_t index, std::uint32_t axis) {
    ReplayRun::Actor& a = run_.actors[index];
    const Segment& segment = run_.current_segment(a);
    const StepTime covered = a.at_pace(segment.covered[axis]);
    const StepTime least = a.since + segment.least[axis] + (covered - segment.covered[axis]);
    const StepTime started =
        is_of_experts(static_cast<Axis>(axis)) ? blocks_[block_of_[index]].all_there : a.since;
    // What the actor computed since it was there itself is no wait.
    a.all_there = std::max(started, a.since + covered);
    if (run_.now >= least) return true;
    run_.queue.push(least, ReplayRun::cover_ends, index);
    return false;
  }
  /// Books the time since the actor came to a transfer that is over.
  void book_end(std::uint32_t index) {
    ReplayRun::Actor& a = run_.actors[index];
    const StepTime covered = a.at_pace(run_.current_segment(a).covered[a.axis]);
    const StepTime computed = a.since + covered, met = std::min(a.all_there, run_.now);
    run_.result.actors[index].straggler += met - computed;
    run_.result.actors[index].layer[a.axis] += run_.now - met;
    ++a.axis;
  }

 private:
  /// Actors of one stage whose experts exchange tokens, on the network or inside an NVLink domain:
  /// none goes on before all have theirs.
  struct Block {
    std::vector<std::uint32_t> actors;
    std::uint32_t arrived = 0;
    StepTime all_there;  ///< when the last of them arrived
  };

  /// Whether the actor exchanges tokens with others that may be late, and no flow moves them: their
  /// time has passed with that of compute, and what is left is to wait for the last.
  [[nodiscard]] bool meets_others(std::uint32_t index, const Segment& segment) const {
    constexpr auto kExperts = static_cast<std::uint32_t>(Axis::expert);
    return run_.actors[index].axis == kExperts && segment.closed[kExperts] > StepTime{} &&
           block_of(index).size() > 1;
  }

  ReplayRun& run_;
  ReplayFlows& flows_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> block_of_;  ///< by actor
};

}  // namespace lockstep
