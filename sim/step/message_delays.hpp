/// What links slower than NICs make late in a pipeline, beyond the message that crosses them: who
/// waits for a stage that waited for such a message waits for the network, not for a stage.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sim/core/clock.hpp"

namespace lockstep {

/// How far each actor is behind a step with the same passes, collectives and exchanges, in which no
/// link on a message's way is slower than its NICs. Times are those of that step, unless they are
/// called `at`. A slot is what messages of one kind and chunk come to an actor by, in the order of
/// micro batches.
class MessageDelays {
 public:
  MessageDelays(std::size_t actors, std::size_t chunks, std::size_t exchanges)
      : late_(actors), handed_over_(2 * actors), on_time_(2 * actors * chunks), met_(exchanges) {}

  void sent(std::size_t channel, std::size_t actor) {
    handed_over_[channel].late.push_back(late_[actor]);
  }
  /// A message is there that was handed over `posted_at`, and of whose time `extra` is the slow
  /// links'. Returns when it was handed over.
  StepTime arrived(std::size_t channel, std::size_t slot, StepTime at, StepTime posted_at,
                   StepTime extra) {
    HandedOver& of = handed_over_[channel];
    const StepTime late = of.late[of.oldest++];
    on_time_[slot].push_back(at - late - extra);
    return posted_at - late;
  }
  /// When a message has come.
  [[nodiscard]] StepTime arrival(std::size_t slot, std::size_t number) const {
    return on_time_[slot][number];
  }

  /// The part of a wait since `since_at` for input that was handed over at `posted` in which a
  /// stage is waited for. The actor goes on `at`, with all its input there at `input`.
  StepTime bubble(std::size_t actor, StepTime since_at, StepTime posted, StepTime input,
                  StepTime at) {
    const StepTime since = since_at - late_[actor];
    const StepTime starts = std::max(since, input);
    late_[actor] = at - starts;
    return std::clamp(posted, since, starts) - since;
  }
  /// It goes on without a wait.
  void starts(std::size_t actor, StepTime input, StepTime at) {
    late_[actor] = at - std::max(at - late_[actor], input);
  }
  /// It waited until its own messages had landed, of which so much is the slow links'.
  void waited_to_send(std::size_t actor, StepTime extra) { late_[actor] += extra; }

  /// It comes to an exchange that both of its stages come to.
  void comes(std::size_t exchange, std::size_t actor, StepTime at) {
    met_[exchange] = std::max(met_[exchange], at - late_[actor]);
  }
  /// The part of a wait since `since_at` in which the other stage is waited for. Both meet `at`.
  StepTime meets(std::size_t exchange, std::size_t actor, StepTime since_at, StepTime at) {
    const StepTime out = met_[exchange] - (since_at - late_[actor]);
    late_[actor] = at - met_[exchange];
    return out;
  }

  /// When an actor that waits since `since_at` came.
  [[nodiscard]] StepTime came(std::size_t actor, StepTime since_at) const {
    return since_at - late_[actor];
  }

 private:
  struct HandedOver {
    std::vector<StepTime> late;  ///< of their senders
    std::size_t oldest = 0;
  };
  std::vector<StepTime> late_;
  std::vector<HandedOver> handed_over_;         ///< by channel
  std::vector<std::vector<StepTime>> on_time_;  ///< by slot
  std::vector<StepTime> met_;
};

}  // namespace lockstep
