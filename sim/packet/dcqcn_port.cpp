#include "sim/packet/dcqcn_port.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <deque>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/core/random.hpp"

namespace lockstep {
namespace {

/// A message's source, and how many of its packets pass unmarked until the next one that is. Times
/// are seconds since the first start.
class FluidSource {
 public:
  FluidSource(const PortMessage& message, const DcqcnTuning& tuning, Seconds start,
              StreamName draws)
      : rate_(tuning.constants, message.line_rate),
        constants_(&tuning.constants),
        most_(message.most.base_units()),
        share_(message.share),
        sender_(message.sender),
        start_(start.base_units()),
        left_(message.bytes.base_units()),
        marks_(draws),
        until_mark_(marks_.exponential()) {}

  [[nodiscard]] bool ended() const { return left_ <= 0; }
  [[nodiscard]] std::uint32_t sender() const { return sender_; }
  [[nodiscard]] double start() const { return start_; }

  /// Bytes that reach the port from `now` on for `span`.
  double send(double now, double span) {
    if (now < start_ || ended()) return 0;
    const double wanted = std::min(most_, share_ * rate_.current().base_units()) * span;
    const double sent = std::min(left_, wanted);
    left_ -= sent;
    rate_.on_sent(sent / share_);
    return sent;
  }
  /// Whether the receiver, whom they reach at `arrival`, sends a notification for them.
  bool notifies(double sent, std::uint32_t packet, double probability, double arrival) {
    if (sent <= 0 || probability <= 0 || arrival < next_notification_) return false;
    if (probability < 1) {
      until_mark_ += portable_log(1 - probability) * sent / share_ / packet;
      if (until_mark_ > 0) return false;
    }
    until_mark_ = marks_.exponential();
    next_notification_ = arrival + constants_->notification_interval.base_units();
    return true;
  }
  void on_notification(double now) {
    if (ended()) return;
    rate_.on_notification();
    alpha_timer_ = now + constants_->alpha_timer.base_units();
    rate_timer_ = now + constants_->rate_timer.base_units();
  }
  void run_timers(double now) {
    if (!rate_.limited() || ended()) return;
    for (; alpha_timer_ <= now; alpha_timer_ += constants_->alpha_timer.base_units()) {
      rate_.on_alpha_timer();
    }
    for (; rate_timer_ <= now; rate_timer_ += constants_->rate_timer.base_units()) {
      rate_.on_rate_timer();
    }
  }

 private:
  DcqcnRate rate_;
  const DcqcnConstants* constants_;
  double most_, share_;
  std::uint32_t sender_;
  double start_, left_;
  RandomStream marks_;
  double until_mark_;
  double next_notification_ = 0;
  double alpha_timer_ = 0, rate_timer_ = 0;
};

/// What has come to a port by sender, step by step, until one sender's messages all have.
class PortArrivals {
 public:
  explicit PortArrivals(std::span<const FluidSource> sources) {
    for (const FluidSource& source : sources) {
      if (source.sender() >= sending_.size()) sending_.resize(source.sender() + 1UL);
      ++sending_[source.sender()];
      last_start_ = std::max(last_start_, source.start());
    }
    came_.resize(sending_.size());
  }

  void begin_step(double now, double queue) {
    if (began_ || sending_.size() < 2) return;
    began_ = now >= last_start_;
    if (began_) {
      passed_at_start_ = passed_by(queue);
    } else {
      steps_.push_back(came_);
    }
  }
  void add(const FluidSource& source, double sent) {
    if (complete_ || sent <= 0) return;
    came_[source.sender()] += sent;
    if (source.ended()) any_ended_ = --sending_[source.sender()] == 0 || any_ended_;
  }
  void end_step() { complete_ = complete_ || any_ended_; }

  /// As DcqcnUse has it.
  [[nodiscard]] std::vector<double> passed() const {
    if (!began_ || !complete_) return {};
    std::vector<double> out = came_;
    for (std::size_t s = 0; s < out.size(); ++s) out[s] -= passed_at_start_[s];
    if (std::ranges::any_of(out, [](double bytes) { return bytes <= 0; })) return {};
    return out;
  }

 private:
  static double sum(const std::vector<double>& of) {
    return std::accumulate(of.begin(), of.end(), 0.0);
  }
  /// By sender, what has left the port of what has come, first in, first out.
  [[nodiscard]] std::vector<double> passed_by(double queue) const {
    const double left = sum(came_) - queue;
    std::vector<double> after = came_;
    for (std::size_t step = steps_.size(); step-- > 0;) {
      const double before = sum(steps_[step]);
      if (before <= left) {
        const double all = sum(after) - before;
        const double part = all > 0 ? (left - before) / all : 0;
        for (std::size_t s = 0; s < after.size(); ++s) {
          after[s] = steps_[step][s] + part * (after[s] - steps_[step][s]);
        }
        return after;
      }
      after = steps_[step];
    }
    return std::vector<double>(came_.size());
  }

  std::vector<std::size_t> sending_;  ///< messages by sender
  std::vector<double> came_;          ///< bytes by sender
  std::vector<std::vector<double>> steps_;
  std::vector<double> passed_at_start_;
  double last_start_ = 0;
  bool began_ = false, any_ended_ = false, complete_ = false;
};

/// How long a message is counts only once it ends: senders whose messages begin alike share alike.
void even_out(std::span<const PortMessage> messages, std::vector<double>& passed) {
  std::vector<std::vector<double>> beginnings(passed.size());
  for (const PortMessage& message : messages) {
    if (passed.empty()) return;
    for (const double value : {message.most.base_units(), message.line_rate.base_units(),
                               message.share, message.start.base_units()}) {
      beginnings[message.sender].push_back(value);
    }
  }
  std::map<std::vector<double>, std::pair<double, double>> alike;  ///< bytes, senders
  for (std::size_t s = 0; s < passed.size(); ++s) {
    auto& [bytes, senders] = alike[beginnings[s]];
    bytes += passed[s];
    senders += 1;
  }
  for (std::size_t s = 0; s < passed.size(); ++s) {
    const auto& [bytes, senders] = alike.at(beginnings[s]);
    passed[s] = bytes / senders;
  }
}

/// When the port has sent everything.
double drained_at(const DcqcnPort& port, std::vector<FluidSource> sources,
                  const DcqcnTuning& tuning, bool marks, PortArrivals* arrivals) {
  const double step = tuning.constants.alpha_timer.base_units() / 2;
  const double capacity = port.capacity.base_units();
  std::deque<std::pair<double, std::size_t>> on_the_way;  ///< notifications, as they arrive
  double now = 0, queue = 0;
  while (true) {
    const double arrival = now + queue / capacity;
    const double probability =
        marks ? mark_probability(tuning.marking, static_cast<std::uint64_t>(queue)) : 0;
    bool sending = false;
    if (arrivals != nullptr) arrivals->begin_step(now, queue);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      FluidSource& source = sources[i];
      const double sent = source.send(now, step);
      queue += sent;
      if (arrivals != nullptr) arrivals->add(source, sent);
      sending = sending || !source.ended();
      if (source.notifies(sent, port.packet, probability, arrival)) {
        on_the_way.emplace_back(arrival + port.feedback.base_units(), i);
      }
    }
    if (arrivals != nullptr) arrivals->end_step();
    if (!sending && queue <= capacity * step) return now + queue / capacity;
    queue = std::max(0.0, queue - capacity * step);
    now += step;
    // A notification that comes as a timer runs out finds it has run out.
    for (FluidSource& source : sources) source.run_timers(now);
    for (; !on_the_way.empty() && on_the_way.front().first <= now; on_the_way.pop_front()) {
      sources[on_the_way.front().second].on_notification(now);
    }
  }
}

}  // namespace

DcqcnUse dcqcn_use(const DcqcnPort& port, std::span<const PortMessage> messages,
                   const DcqcnTuning& tuning) {
  assert(!messages.empty());
  const Seconds first = std::ranges::min_element(messages, {}, &PortMessage::start)->start;
  std::vector<FluidSource> sources;
  for (const PortMessage& message : messages) {
    sources.emplace_back(message, tuning, message.start - first,
                         StreamName{.trajectory = port.number,
                                    .component = static_cast<std::uint32_t>(sources.size()),
                                    .purpose = 1});
  }
  PortArrivals arrivals(sources);
  const double free = drained_at(port, sources, tuning, false, nullptr);
  const double drained = drained_at(port, std::move(sources), tuning, true, &arrivals);
  DcqcnUse out{.use = free / drained, .passed = arrivals.passed()};
  even_out(messages, out.passed);
  return out;
}

std::vector<double> dcqcn_weights(std::span<const double> passed, std::span<const double> loads) {
  assert(passed.size() == loads.size());
  const double all_passed = std::accumulate(passed.begin(), passed.end(), 0.0);
  const double all_loads = std::accumulate(loads.begin(), loads.end(), 0.0);
  std::vector<double> out;
  for (std::size_t s = 0; s < passed.size(); ++s) {
    out.push_back(passed[s] / loads[s] * (all_loads / all_passed));
  }
  return out;
}

}  // namespace lockstep
