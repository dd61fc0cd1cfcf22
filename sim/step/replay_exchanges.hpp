/// Exchanges of gradients between two stages of a replica, at the end of a step: a tied embedding,
/// or both copies of a model that runs two ways.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/core/clock.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/replay_flows.hpp"
#include "sim/step/replay_run.hpp"
#include "sim/step/wiring.hpp"

namespace lockstep {

/// Subjects are: replica class x exchanges of the plan + exchange.
class ReplayExchanges {
 public:
  /// Both outlive this.
  ReplayExchanges(ReplayRun& run, ReplayFlows& flows)
      : run_(run),
        flows_(flows),
        exchange_of_(run.stages, kNoExchange),
        exchange_ready_(run.classes.size() * run.plan.exchanges.size()),
        exchange_posted_(exchange_ready_.size()) {
    for (std::uint32_t e = 0; e < run_.plan.exchanges.size(); ++e) {
      for (const std::uint32_t s : run_.plan.exchanges[e].stages) exchange_of_[s] = e;
    }
  }

  /// Whether a stage takes part in one.
  [[nodiscard]] bool has(std::uint32_t stage) const { return exchange_of_[stage] != kNoExchange; }

  /// The actor comes to its exchange.
  void come(std::uint32_t index) {
    ReplayRun::Actor& a = run_.actors[index];
    run_.wait_for(a, ReplayRun::Wait::exchange);
    const auto subject = static_cast<std::uint32_t>(a.replica_class * run_.plan.exchanges.size() +
                                                    exchange_of_[a.stage]);
    if (run_.delays) {
      run_.delays->comes(subject, a.replica_class * run_.stages + a.stage, run_.now);
    }
    if (++exchange_ready_[subject] < 2) return;
    exchange_posted_[subject] = run_.now;
    run_.queue.push(run_.now + to_step_time(at(subject).cost.latency), ReplayRun::exchange_starts,
                    subject);
  }
  void on_starts(std::uint32_t subject) {
    const StageExchange& exchange = at(subject);
    flows_.start(run_.wiring->exchange(subject),
                 exchange.payload.base_units() * Wiring::data_unit(exchange.cost));
  }
  /// The actors of an exchange.
  [[nodiscard]] std::array<std::uint32_t, 2> actors_of(std::uint32_t subject) const {
    const auto first =
        static_cast<std::uint32_t>(subject / run_.plan.exchanges.size() * run_.stages);
    const std::array<std::uint32_t, 2>& stages = at(subject).stages;
    return {first + stages[0], first + stages[1]};
  }
  /// It has ended: books the time since the actor came to it.
  void book_end(std::uint32_t subject, std::uint32_t index) {
    const StepTime both = exchange_posted_[subject];
    const StepTime since = run_.actors[index].since;
    StepTime bubble = both - since;
    if (run_.delays) bubble = std::min(bubble, run_.delays->meets(subject, index, since, both));
    run_.result.actors[index].bubble += bubble;
    run_.result.actors[index].message += both - since - bubble;
    run_.result.actors[index].data += run_.now - both;
  }

 private:
  static constexpr std::uint32_t kNoExchange = UINT32_MAX;

  [[nodiscard]] const StageExchange& at(std::uint32_t subject) const {
    return run_.plan.exchanges[subject % run_.plan.exchanges.size()];
  }

  ReplayRun& run_;
  ReplayFlows& flows_;
  std::vector<std::uint32_t> exchange_of_;    ///< by stage
  std::vector<std::uint8_t> exchange_ready_;  ///< by subject: stages that wait for it
  std::vector<StepTime> exchange_posted_;     ///< by subject
};

}  // namespace lockstep
