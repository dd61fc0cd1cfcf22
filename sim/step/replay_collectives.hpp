/// Collectives between replicas in a replay: each rank runs those of its stage one after another.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/core/clock.hpp"
#include "sim/step/data_groups.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/replay_flows.hpp"
#include "sim/step/replay_run.hpp"
#include "sim/step/replica_classes.hpp"
#include "sim/step/wiring.hpp"

namespace lockstep {

class ReplayCollectives {
 public:
  /// A collective that has ended.
  struct Ended {
    const std::vector<std::uint32_t>& actors;  ///< of its group
    StepTime posted_at;                        ///< when the last of them posted it
  };

  /// Both outlive this.
  ReplayCollectives(ReplayRun& run, ReplayFlows& flows) : run_(run), flows_(flows) {
    first_group_.resize(run_.stages);
    for (std::size_t kind = 0; kind < kDataGroups; ++kind) {
      const auto groups = data_groups_of(run_.classes, static_cast<DataGroupKind>(kind));
      group_of_class_[kind].resize(run_.classes.size());
      for (std::size_t g = 0; g < groups.size(); ++g) {
        for (const std::size_t c : groups[g]) {
          group_of_class_[kind][c] = static_cast<std::uint32_t>(g);
        }
      }
      for (std::size_t s = 0; s < run_.stages; ++s) {
        first_group_[s][kind] = static_cast<std::uint32_t>(groups_.size());
        const bool used = std::ranges::any_of(
            run_.plan.stages[s].channels,
            [kind](const DataChannel& c) { return static_cast<std::size_t>(c.group) == kind; });
        for (std::size_t g = 0; used && g < groups.size(); ++g) {
          DataGroupState& state = groups_.emplace_back();
          state.stage = static_cast<std::uint32_t>(s);
          state.number = static_cast<std::uint32_t>(g);
          for (const std::size_t c : groups[g]) {
            state.actors.push_back(static_cast<std::uint32_t>(c * run_.stages + s));
          }
          state.posted_at.resize(run_.plan.stages[s].collectives.size());
        }
      }
    }
    if (!run_.records()) return;
    for (const DataGroupState& group : groups_) run_.result.data_groups.push_back(group.actors);
  }

  /// The actor posts collectives now. `count`: of the stage's, those of before too.
  void post_up_to(ReplayRun::Actor& a, std::uint32_t count) {
    while (a.posted < count) {
      groups_[group_of(a, a.posted)].posted_at[a.posted] = run_.now;
      ++a.posted;
      join_next_collective(a);
    }
  }

  /// Its latency is over: its bytes go.
  void on_starts(std::uint32_t index) {
    const DataGroupState& group = groups_[index];
    const StagePlan& plan = run_.plan.stages[group.stage];
    const DataCollective& c = plan.collectives[group.collective];
    const double unit = Wiring::data_unit(plan.channels[c.channel].cost);
    flows_.start(run_.wiring->data(group.stage, c.channel, group.number),
                 c.payload.base_units() * unit);
  }
  /// Its flow has ended: each of its group begins its next one.
  Ended ended(const WiredFlow& flow) {
    const StagePlan& plan = run_.plan.stages[flow.subject];
    const auto kind = static_cast<std::size_t>(plan.channels[flow.channel].group);
    const std::uint32_t number = first_group_[flow.subject][kind] + flow.group;
    const DataGroupState& group = groups_[number];
    if (run_.records())
      run_.result.collectives.push_back(
          {number, group.collective, group.started_at - run_.begin, run_.since_begin()});
    const StepTime posted_at = group.posted_at[group.collective];
    for (const std::uint32_t index : group.actors) {
      ++run_.actors[index].reduced;
      run_.actors[index].in_collective = false;
    }
    for (const std::uint32_t index : group.actors) join_next_collective(run_.actors[index]);
    return {group.actors, posted_at};
  }

 private:
  /// Actors of one stage that sum gradients and gather weights together.
  struct DataGroupState {
    std::uint32_t stage = 0;
    std::uint32_t number = 0;  ///< among the groups of its kind
    std::vector<std::uint32_t> actors;
    std::vector<StepTime> posted_at;  ///< by collective: when the last of them posted it
    std::uint32_t arrived = 0;        ///< actors that have nothing left to do before the next one
    std::uint32_t collective = 0;     ///< under way, or the last
    StepTime started_at;              ///< of it
  };

  /// The group with which an actor runs a collective of its stage, as an index.
  [[nodiscard]] std::uint32_t group_of(const ReplayRun::Actor& a, std::uint32_t collective) const {
    const StagePlan& stage = run_.plan.stages[a.stage];
    const auto kind =
        static_cast<std::size_t>(stage.channels[stage.collectives[collective].channel].group);
    return first_group_[a.stage][kind] + group_of_class_[kind][a.replica_class];
  }

  /// A rank runs one collective after the other; each begins when all ranks of its group are there.
  void join_next_collective(ReplayRun::Actor& a) {
    if (a.in_collective || a.posted == a.reduced) return;
    a.in_collective = true;
    const std::uint32_t index = group_of(a, a.reduced);
    DataGroupState& group = groups_[index];
    if (++group.arrived < group.actors.size()) return;
    group.arrived = 0;
    group.collective = a.reduced;
    group.started_at = run_.now;
    run_.queue.push(run_.now + run_.plan.stages[group.stage].collectives[group.collective].latency,
                    ReplayRun::collective_starts, index);
  }

  ReplayRun& run_;
  ReplayFlows& flows_;
  std::vector<DataGroupState> groups_;                                  ///< of all stages and kinds
  std::vector<std::array<std::uint32_t, kDataGroups>> first_group_;     ///< by stage and kind
  std::array<std::vector<std::uint32_t>, kDataGroups> group_of_class_;  ///< among those of a kind
};

}  // namespace lockstep
