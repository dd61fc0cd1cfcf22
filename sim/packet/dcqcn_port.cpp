#include "sim/packet/dcqcn_port.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <deque>
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
        start_(start.base_units()),
        left_(message.bytes.base_units()),
        marks_(draws),
        until_mark_(marks_.exponential()) {}

  [[nodiscard]] bool ended() const { return left_ <= 0; }

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
  double most_, share_, start_, left_;
  RandomStream marks_;
  double until_mark_;
  double next_notification_ = 0;
  double alpha_timer_ = 0, rate_timer_ = 0;
};

/// When the port has sent everything.
double drained_at(const DcqcnPort& port, std::vector<FluidSource> sources,
                  const DcqcnTuning& tuning, bool marks) {
  const double step = tuning.constants.alpha_timer.base_units() / 2;
  const double capacity = port.capacity.base_units();
  std::deque<std::pair<double, std::size_t>> on_the_way;  ///< notifications, as they arrive
  double now = 0, queue = 0;
  while (true) {
    const double arrival = now + queue / capacity;
    const double probability =
        marks ? mark_probability(tuning.marking, static_cast<std::uint64_t>(queue)) : 0;
    bool sending = false;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      FluidSource& source = sources[i];
      const double sent = source.send(now, step);
      queue += sent;
      sending = sending || !source.ended();
      if (source.notifies(sent, port.packet, probability, arrival)) {
        on_the_way.emplace_back(arrival + port.feedback.base_units(), i);
      }
    }
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

double dcqcn_use(const DcqcnPort& port, std::span<const PortMessage> messages,
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
  const double free = drained_at(port, sources, tuning, false);
  return free / drained_at(port, std::move(sources), tuning, true);
}

}  // namespace lockstep
