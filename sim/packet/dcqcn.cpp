#include "sim/packet/dcqcn.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep {

DcqcnTuning vendor_tuning(BytesPerSecond line_rate) {
  const double scale = line_rate / gigabits_per_second(25);
  DcqcnTuning tuning;
  tuning.marking.k_min = static_cast<std::uint32_t>(100e3 * scale);
  tuning.marking.k_max = static_cast<std::uint32_t>(400e3 * scale);
  tuning.marking.p_max = 0.2;
  tuning.constants.notification_interval = microseconds(4);
  tuning.constants.alpha_timer = microseconds(1);
  tuning.constants.rate_timer = microseconds(300);
  tuning.constants.byte_counter = std::numeric_limits<double>::infinity();
  tuning.constants.fast_recovery = 1;
  tuning.constants.additive = scale * gigabits_per_second(0.005);
  tuning.constants.hyper = scale * gigabits_per_second(0.05);
  tuning.constants.least = line_rate / 50;
  tuning.constants.keep_target = true;
  return tuning;
}

double mark_probability(const EcnMarking& marking, std::uint64_t queued) {
  if (queued <= marking.k_min) return 0;
  if (queued > marking.k_max) return 1;
  const auto above = static_cast<double>(queued - marking.k_min);
  return above / static_cast<double>(marking.k_max - marking.k_min) * marking.p_max;
}

// Equation 1. The cut uses alpha as it was before this notification.
void DcqcnRate::on_notification() {
  const bool increased = timer_steps_ > 0 || byte_steps_ > 0;
  if (!limited_ || increased || !constants_->keep_target) target_ = current_;
  current_ = std::max((1 - alpha_ / 2) * current_, constants_->least);
  alpha_ = (1 - constants_->g) * alpha_ + constants_->g;
  bytes_ = 0;
  timer_steps_ = byte_steps_ = 0;
  limited_ = true;
}

void DcqcnRate::on_alpha_timer() { alpha_ *= 1 - constants_->g; }

void DcqcnRate::on_rate_timer() {
  increase();
  ++timer_steps_;
}

void DcqcnRate::on_sent(double bytes) {
  if (!limited_) return;
  bytes_ += bytes;
  if (bytes_ < constants_->byte_counter) return;
  bytes_ -= constants_->byte_counter;
  increase();
  ++byte_steps_;
}

// Equation 3 (fast recovery: F steps), equation 4 (additive increase), hyper increase: figure 7.
void DcqcnRate::increase() {
  const int f = constants_->fast_recovery;
  const int by_bytes = std::isinf(constants_->byte_counter) ? timer_steps_ : byte_steps_;
  if (std::min(timer_steps_, by_bytes) > f) {
    target_ += constants_->hyper;
  } else if (std::max(timer_steps_, by_bytes) >= f) {
    target_ += constants_->additive;
  }
  target_ = std::min(target_, line_);
  current_ = (target_ + current_) / 2;
}

}  // namespace lockstep
