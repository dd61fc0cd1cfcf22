/// How something that changes in steps has gone, in bins of equal length, however long it goes on.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/scenario/failure_mode.hpp"

namespace lockstep {

/// Means over bins: where there would be more than twice `kBins`, two become one.
class TimeBins {
 public:
  static constexpr std::size_t kBins = 512;

  /// The value was `value` until then, from the end of the last call on. Requires rising times.
  void until(RunTime time, double value);
  [[nodiscard]] RunTime bin() const { return bin_; }
  /// One for each bin; the last one is of the part that was seen.
  [[nodiscard]] std::vector<double> means() const;

 private:
  void halve();

  RunTime bin_ = 1'000'000'000;
  RunTime at_ = 0;
  std::vector<double> sums_;  ///< value times seconds
};

}  // namespace lockstep
