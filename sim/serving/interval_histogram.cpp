#include "sim/serving/interval_histogram.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/core/random.hpp"

namespace lockstep {
namespace {

constexpr double kLeast = 1e-6;                // seconds; shorter intervals are in the first class
constexpr double kWidth = 0.0198026272961797;  // ln 1.02

}  // namespace

/// Within each class by some nanoseconds: lengths near an edge go by their logarithm.
std::array<IntervalHistogram::Inside, IntervalHistogram::kClasses>
IntervalHistogram::all_insides() {
  constexpr RunTime kNear = 4;
  std::array<Inside, kClasses> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto edge = static_cast<double>(i);
    out[i] = {to_run_time(Seconds{kLeast * portable_exp(edge * kWidth)}) + kNear,
              to_run_time(Seconds{kLeast * portable_exp((edge + 1) * kWidth)}) - kNear};
  }
  return out;
}

void IntervalHistogram::add(RunTime length, std::int64_t times) {
  assert(length >= 0 && times >= 0);
  if (times == 0) return;
  const double seconds = to_seconds(length).base_units();
  if (length < last_low_ || length >= last_high_) {
    static const std::array<Inside, kClasses> kInsides = all_insides();
    // A quick guess, which the class confirms; near its edges, or where the machine's logarithm is
    // another one, the portable one says.
    const double guess = std::log(std::max(seconds, kLeast) / kLeast) / kWidth;
    last_ = static_cast<std::size_t>(std::clamp(guess, 0.0, kClasses - 1.0));
    if (length < kInsides[last_].low || length >= kInsides[last_].high) {
      const double at = std::max(0.0, portable_log(std::max(seconds, kLeast) / kLeast) / kWidth);
      last_ = static_cast<std::size_t>(std::min(at, kClasses - 1.0));
    }
    last_low_ = kInsides[last_].low;
    last_high_ = kInsides[last_].high;
  }
  classes_[last_] += times;
  count_ += times;
  sum_s_ += seconds * static_cast<double>(times);
}

void IntervalHistogram::add(const IntervalHistogram& other) {
  for (std::size_t i = 0; i < classes_.size(); ++i) classes_[i] += other.classes_[i];
  count_ += other.count_;
  sum_s_ += other.sum_s_;
}

double IntervalHistogram::mean_s() const {
  return count_ == 0 ? 0 : sum_s_ / static_cast<double>(count_);
}

double IntervalHistogram::quantile_s(double share) const {
  if (count_ == 0) return 0;
  const double wanted = share * static_cast<double>(count_);
  double seen = 0;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    seen += static_cast<double>(classes_[i]);
    if (seen >= wanted && classes_[i] > 0) {
      return kLeast * portable_exp((static_cast<double>(i) + 0.5) * kWidth);
    }
  }
  return kLeast * portable_exp(kClasses * kWidth);
}

}  // namespace lockstep
