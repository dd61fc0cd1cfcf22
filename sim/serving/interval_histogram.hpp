/// Durations by how often they occurred, in classes that are 2 % wide: what quantiles of the times
/// between tokens are read from, without keeping billions of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/scenario/failure_mode.hpp"

namespace lockstep {

class IntervalHistogram {
 public:
  /// `times` intervals of `length`. Requires both not below 0.
  void add(RunTime length, std::int64_t times);
  void add(const IntervalHistogram& other);

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] double mean_s() const;
  /// Of a share between 0 and 1; the middle of its class, thus within 1 %. 0: there are none.
  [[nodiscard]] double quantile_s(double share) const;

 private:
  static constexpr int kClasses = 1400;  ///< 1 us to a million seconds

  /// What a class holds for certain.
  struct Inside {
    RunTime low, high;
  };
  static std::array<Inside, kClasses> all_insides();

  std::array<std::int64_t, kClasses> classes_{};
  std::size_t last_ = 0;                  ///< class of the last interval, and what it holds:
  RunTime last_low_ = 0, last_high_ = 0;  ///< most are followed by another of the same class
  std::int64_t count_ = 0;
  double sum_s_ = 0;
};

}  // namespace lockstep
