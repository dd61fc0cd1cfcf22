#include "sim/packet/dcqcn.hpp"

#include <algorithm>

namespace lockstep {

double mark_probability(const EcnMarking& marking, std::uint64_t queued) {
  if (queued <= marking.k_min) return 0;
  if (queued > marking.k_max) return 1;
  const double above = static_cast<double>(queued - marking.k_min);
  return above / static_cast<double>(marking.k_max - marking.k_min) * marking.p_max;
}

// Equation 1. The cut uses alpha as it was before this notification.
void DcqcnRate::on_notification() {
  target_ = current_;
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
  if (std::min(timer_steps_, byte_steps_) > f) {
    target_ += constants_->hyper;
  } else if (std::max(timer_steps_, byte_steps_) >= f) {
    target_ += constants_->additive;
  }
  target_ = std::min(target_, line_);
  current_ = (target_ + current_) / 2;
}

}  // namespace lockstep
