#include "sim/serving/pass_bins.hpp"

#include <algorithm>

namespace lockstep {

/// Merges each pair of neighbouring bins.
void PassBins::widen() {
  width_ *= 2;
  for (std::size_t b = 0; b < bins_.size(); ++b) {
    const Bin bin = bins_[b];
    bins_[b] = {};
    bins_[b / 2].busy_s += bin.busy_s;
    bins_[b / 2].drawn += bin.drawn;
  }
  bins_.resize((bins_.size() + 1) / 2);
}

void PassBins::add(RunTime from, RunTime to, Joules drawn) {
  const auto bin_of = [&](RunTime at) { return static_cast<std::size_t>(at / width_); };
  while (bin_of(to) >= kMostBins) widen();
  if (bins_.size() <= bin_of(to)) bins_.resize(bin_of(to) + 1);
  const double whole = std::max(1.0, static_cast<double>(to - from));
  for (std::size_t b = bin_of(from); b <= bin_of(to); ++b) {
    const RunTime begin = std::max(from, static_cast<RunTime>(b) * width_);
    const RunTime end = std::min(to, static_cast<RunTime>(b + 1) * width_);
    if (end <= begin) continue;
    bins_[b].busy_s += to_seconds(end - begin).base_units();
    bins_[b].drawn += static_cast<double>(end - begin) / whole * drawn;
  }
}

}  // namespace lockstep
