#include "sim/cluster/time_bins.hpp"

#include <algorithm>

namespace lockstep {

void TimeBins::halve() {
  for (std::size_t b = 0; 2 * b < sums_.size(); ++b) {
    const double second = 2 * b + 1 < sums_.size() ? sums_[2 * b + 1] : 0;
    sums_[b] = sums_[2 * b] + second;
  }
  sums_.resize((sums_.size() + 1) / 2);
  bin_ *= 2;
}

void TimeBins::until(RunTime time, double value) {
  while (time > bin_ * static_cast<RunTime>(2 * kBins)) halve();
  while (at_ < time) {
    const auto b = static_cast<std::size_t>(at_ / bin_);
    const RunTime end = std::min(time, (at_ / bin_ + 1) * bin_);
    if (b >= sums_.size()) sums_.resize(b + 1);
    sums_[b] += value * to_seconds(end - at_).base_units();
    at_ = end;
  }
}

std::vector<double> TimeBins::means() const {
  std::vector<double> out;
  out.reserve(sums_.size());
  for (std::size_t b = 0; b < sums_.size(); ++b) {
    const RunTime begin = static_cast<RunTime>(b) * bin_;
    const double seconds = to_seconds(std::min(bin_, at_ - begin)).base_units();
    out.push_back(seconds > 0 ? sums_[b] / seconds : 0);
  }
  return out;
}

}  // namespace lockstep
