/// Measured over modelled, between and around the points where it was measured.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <vector>

namespace lockstep {

/// Where a kernel lies: logarithms to base 2 of its sizes; unused places are 0.
using RatioPlace = std::array<double, 4>;

/// Points (place, ratio). Between them, after Shepard's method with a finite radius (Franke and
/// Nielson 1980, Int. J. Numer. Methods Eng. 15(11), 1691-1704),
///
///     log r(x) = g + sum w_i (log r_i - g) / (sum w_i + w_0),   w_i = ((R - d_i)+ / (R d_i))^2
///
/// with the distance d_i in octaves, R of them far, and g the median of all points: it goes through
/// the points, and far from them a card is as much faster or slower than the law as it mostly is.
/// w_0 keeps a lone point at the edge of the radius from deciding.
class RatioField {
 public:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  /// Requires ratio > 0. What is at a place that is taken already counts with it.
  void add(const RatioPlace& place, double ratio);
  /// Call after the last add(), before at().
  void finish();
  [[nodiscard]] std::size_t size() const { return points_.size(); }

  /// 1 for a field without points. `left_out`: as if the point that was added as number `left_out`,
  /// and all at its place, were not there.
  [[nodiscard]] double at(const RatioPlace& place, std::size_t left_out = kNone) const;

 private:
  struct Point {
    RatioPlace place;
    double log_ratio;
  };
  std::vector<Point> points_;
  double median_ = 0;  ///< of the logarithms
};

}  // namespace lockstep
