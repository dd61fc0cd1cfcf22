/// Pipeline messages of a replay: an actor's in one direction go one after another, and each is
/// input of a pass of the neighbouring stage.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/core/clock.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/replay_flows.hpp"
#include "sim/step/replay_run.hpp"

namespace lockstep {

/// Numbers are of channels: 2 x actor + direction.
class ReplayMessages {
 public:
  /// A message that is there.
  struct Landed {
    StepTime posted;  ///< when its sender handed it over
    StepTime added;   ///< of its time what slow links added
  };
  /// Whose input it is.
  struct Delivered {
    std::uint32_t receiver;
    StepTime handed_over;  ///< in a step in which no slow link delays messages
  };

  /// Both outlive this.
  ReplayMessages(ReplayRun& run, ReplayFlows& flows)
      : run_(run),
        flows_(flows),
        channels_(2 * run.classes.size() * run.stages),
        arrived_(channels_.size() * run.chunks),
        arrived_count_(channels_.size()) {}

  /// When all input of the actor's next item has come, messages that slow links delay on time.
  [[nodiscard]] StepTime input_on_time(std::uint32_t index) const {
    const ReplayRun::Actor& a = run_.actors[index];
    const ProgramItem* item = &run_.plan_of(a).items[a.item];
    StepTime last;
    for (const ProgramItem* of = item; of <= item + (item->work.pairs ? 1 : 0); ++of) {
      if (!of->needs_message) continue;
      const std::size_t from = slot(index, is_forward(of->work.pass), of->work.chunk);
      last = std::max(last, run_.delays->arrival(from, of->work.micro_batch));
    }
    return last;
  }
  /// Whether all input of the actor's next item is there.
  [[nodiscard]] bool can_start(std::uint32_t index) const {
    const ReplayRun::Actor& a = run_.actors[index];
    const ProgramItem* item = &run_.plan_of(a).items[a.item];
    return has_input(index, *item) && (!item->work.pairs || has_input(index, item[1]));
  }
  /// Sends what an item that has just ended leaves, of a pair that of both; false if nothing.
  bool send_outputs(std::uint32_t index, const ProgramItem& item) {
    if (item.work.pairs) return false;
    const ProgramItem* before = run_.actors[index].item > 1 ? &item - 1 : nullptr;
    const bool both = before != nullptr && before->work.pairs && before->sends_message;
    if (both) send(index, before->direction);
    if (item.sends_message) send(index, item.direction);
    return both || item.sends_message;
  }

  /// Its bytes are on their way: the next of the channel may go.
  void left(std::uint32_t number) {
    const std::uint32_t index = number / 2;
    const std::size_t direction = number % 2;
    const ActorWires& wires = run_.wiring->actor(index);
    run_.queue.push(run_.now + wires.message_latency[direction], ReplayRun::message_arrived,
                    number);
    Channel& channel = channels_[number];
    if (run_.recording == Recording::all) {
      const bool forward =
          run_.plan_of(run_.actors[index]).message_targets[direction][channel.delivered].forward;
      run_.result.messages.push_back({index, static_cast<std::uint8_t>(direction), forward,
                                      channel.delivered, channel.on_wire - run_.begin,
                                      run_.now + wires.message_latency[direction] - run_.begin});
    }
    ++channel.delivered;
    if (channel.delivered < channel.sent) start_message(number);
  }

  /// One has arrived: takes it off its channel.
  Landed land(std::uint32_t number) {
    Channel& channel = channels_[number];
    const StepTime posted = channel.posted[channel.oldest++];
    if (channel.oldest == channel.posted.size()) {
      channel.posted.clear();
      channel.oldest = 0;
    }
    return {posted, run_.delays ? added_by_links(number, posted) : StepTime{}};
  }
  /// Gives it to its receiver.
  Delivered deliver(std::uint32_t number, const Landed& message) {
    const std::size_t direction = number % 2;
    const ReplayRun::Actor& from = run_.actors[number / 2];
    const auto stages = static_cast<std::uint32_t>(run_.stages);
    const std::uint32_t next =
        direction == 0 ? (from.stage + 1) % stages : (from.stage + stages - 1) % stages;
    const std::uint32_t receiver = from.replica_class * stages + next;
    auto& received = arrived_count_[number];
    const MessageTarget target = run_.plan_of(from).message_targets[direction][received++];
    ++arrived_[slot(receiver, target.forward, target.chunk)];
    if (!run_.delays) return {receiver, message.posted};
    return {receiver, run_.delays->arrived(number, slot(receiver, target.forward, target.chunk),
                                           run_.now, message.posted, message.added)};
  }

 private:
  /// Messages of one actor in one direction: one on the wire, the others queue behind it.
  struct Channel {
    std::uint32_t sent = 0;  ///< handed over by the sender
    std::uint32_t delivered = 0;
    StepTime on_wire;              ///< start of the transfer under way
    std::vector<StepTime> posted;  ///< of messages not yet delivered, oldest at `oldest`
    std::size_t oldest = 0;
  };

  [[nodiscard]] std::size_t slot(std::size_t actor, bool forward, std::size_t chunk) const {
    return (2 * actor + (forward ? 0 : 1)) * run_.chunks + chunk;
  }
  /// Whether the message that an item needs is there, if it needs one.
  [[nodiscard]] bool has_input(std::uint32_t index, const ProgramItem& item) const {
    return !item.needs_message ||
           arrived_[slot(index, is_forward(item.work.pass), item.work.chunk)] >
               item.work.micro_batch;
  }
  /// What slow links added to a message that is there now.
  [[nodiscard]] StepTime added_by_links(std::uint32_t number, StepTime posted) const {
    const ActorWires& wires = run_.wiring->actor(number / 2);
    const StepTime latency = wires.message_latency[number % 2], all = run_.now - posted;
    if (all <= latency) return {};
    const double part = wires.slowed[number % 2] * static_cast<double>((all - latency).ps);
    return {static_cast<std::uint64_t>(part)};
  }

  void send(std::uint32_t index, std::uint32_t direction) {
    const std::uint32_t number = 2 * index + direction;
    Channel& channel = channels_[number];
    ++channel.sent;
    ++run_.actors[index].landing;
    channel.posted.push_back(run_.now);
    if (run_.delays) run_.delays->sent(number, index);
    const FlowIndex flow = run_.wiring->actor(index).message[direction];
    if (!flows_.is_under_way(flow)) start_message(number);
  }

  void start_message(std::uint32_t number) {
    channels_[number].on_wire = run_.now;
    flows_.start(run_.wiring->actor(number / 2).message[number % 2],
                 run_.plan.message.base_units());
  }

  ReplayRun& run_;
  ReplayFlows& flows_;
  std::vector<Channel> channels_;
  std::vector<std::uint32_t> arrived_;        ///< by actor, pass, chunk
  std::vector<std::uint32_t> arrived_count_;  ///< by channel
};

}  // namespace lockstep
