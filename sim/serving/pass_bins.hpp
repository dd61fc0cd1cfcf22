/// What passes of a pool take over its time, in bins that widen as the run gets longer: busy time
/// and energy, without keeping millions of passes.
#pragma once

#include <cstddef>
#include <vector>

#include "models/base/units.hpp"
#include "sim/scenario/failure_mode.hpp"

namespace lockstep {

class PassBins {
 public:
  struct Bin {
    double busy_s = 0;  ///< of all replicas
    Joules drawn;       ///< of a GPU of each
  };

  /// Spread evenly from `from` to `to`. Requires 0 <= from <= to.
  void add(RunTime from, RunTime to, Joules drawn);

  [[nodiscard]] RunTime width() const { return width_; }
  /// From time 0; behind the last one nothing was worked on.
  [[nodiscard]] const std::vector<Bin>& bins() const { return bins_; }

 private:
  static constexpr std::size_t kMostBins = 512;

  void widen();

  RunTime width_ = to_run_time(Seconds{0.01});
  std::vector<Bin> bins_;
};

}  // namespace lockstep
