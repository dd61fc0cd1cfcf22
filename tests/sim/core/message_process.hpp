/// A process for tests: flows that move messages, one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/core/engine.hpp"
#include "sim/core/event_queue.hpp"
#include "sim/core/random.hpp"

namespace lockstep::test {

/// Starts `pause` after the message before it has ended; the first, after the begin.
struct Message {
  StepTime pause;
  Bytes amount;
};

/// Up to five of them, often without a pause: the flow then stops and starts in one instant.
inline std::vector<Message> random_messages(RandomStream& random) {
  std::vector<Message> messages;
  for (std::uint32_t count = random.below(6); count > 0; --count) {
    const StepTime pause{random.below(3) == 0 ? 0 : 1'000'000ULL * random.below(3000)};
    const double amount = random.below(2) == 0 ? 4e6 : 1.0 + random.below(20'000'000);
    messages.push_back({pause, Bytes{amount}});
  }
  return messages;
}

class MessageProcess : public Process {
 public:
  explicit MessageProcess(FlowNetwork& network) : network_(network) {}

  void add(FlowIndex flow, std::vector<Message> messages) {
    unfinished_ += messages.size();
    lines_[flow].messages = std::move(messages);
  }
  /// Of the flow's messages, in order.
  [[nodiscard]] const std::vector<StepTime>& ends(FlowIndex flow) const {
    return lines_.at(flow).ends;
  }

  void begin(StepTime now) override {
    for (const auto& [flow, line] : lines_) schedule(flow, now);
  }
  [[nodiscard]] StepTime next_event() const override {
    return starts_.empty() ? kNever : starts_.next_time();
  }
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override {
    for (const FlowIndex flow : flows) {
      lines_.at(flow).ends.push_back(now);
      --unfinished_;
      schedule(flow, now);
    }
  }
  void handle_events(StepTime now) override {
    while (!starts_.empty() && starts_.next_time() == now) start(starts_.pop().subject, now);
  }
  [[nodiscard]] bool done() const override { return unfinished_ == 0; }

 protected:
  [[nodiscard]] FlowNetwork& network() { return network_; }
  [[nodiscard]] const FlowNetwork& network() const { return network_; }

  virtual void start(FlowIndex flow, StepTime now) {
    const Line& line = lines_.at(flow);
    network_.start(flow, line.messages[line.ends.size()].amount, now);
  }

 private:
  struct Line {
    std::vector<Message> messages;
    std::vector<StepTime> ends;
  };

  void schedule(FlowIndex flow, StepTime now) {
    const Line& line = lines_.at(flow);
    if (line.ends.size() == line.messages.size()) return;
    starts_.push(now + line.messages[line.ends.size()].pause, 0, flow);
  }

  FlowNetwork& network_;
  std::map<FlowIndex, Line> lines_;
  EventQueue starts_;
  std::size_t unfinished_ = 0;
};

}  // namespace lockstep::test
