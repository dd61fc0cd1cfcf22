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
///     log r(x) = t (g + sum w_i (log r_i - g) / (sum w_i + w_0)),   w_i = ((R - d_i)+ / (R d_i))^2
///
/// with the distance d_i in octaves and R of them far. w_0 keeps a lone point at the edge of the
/// radius from deciding. g = u m, with the median m of all points, is what is known far from them.
///
/// How much points say of each other decides how much is believed: t and u, each 0, 1/4, 1/2, 3/4
/// or 1, are those that predict every point best from all others: u from those beyond the radius, t
/// from all. So points that contradict each other leave the law as it is. A lone point counts half
/// around it and not far away. The field still goes through the points: within a tenth of an octave
/// of one, t rises to 1.
class RatioField {
 public:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  /// How far a point speaks: around it, or for its very place alone, since what slows it is no
  /// matter of size.
  enum class Reach : unsigned char { around, place };

  /// Requires ratio > 0. What is at a place that is taken already counts with it.
  void add(const RatioPlace& place, double ratio, Reach reach = Reach::around);
  /// Call after the last add(), before at().
  void finish();
  [[nodiscard]] std::size_t size() const { return points_.size(); }

  /// 1 for a field without points. `left_out`: as if the point that was added as number `left_out`,
  /// and all at its place, were not there; in a field of more than 64 points it still had its say
  /// in how well others were predicted.
  [[nodiscard]] double at(const RatioPlace& place, std::size_t left_out = kNone) const;

 private:
  struct Point {
    RatioPlace place;
    double log_ratio;
    Reach reach;
  };
  /// What the others say of a place.
  struct Neighbours {
    double weights = 0, sum = 0;  ///< of the logarithms, weighted
    double nearest = std::numeric_limits<double>::infinity();
    double here = 0, count = 0;  ///< of points at the very place
  };
  /// A point as the others predict it.
  struct Probe {
    std::size_t number;
    double log_ratio;
    Neighbours others;
    double median, far_median;  ///< of all others, and of those beyond the radius; NaN: none
  };
  struct Trust {
    double near = 0, far = 0;  ///< t and u
  };

  /// Whether the point is one of those that `left_out` leaves out.
  [[nodiscard]] bool is_out(const Point& point, std::size_t left_out) const;
  [[nodiscard]] Neighbours neighbours(const RatioPlace& place, std::size_t left_out,
                                      bool without_here) const;
  /// Of the points at least as far as that from the place. NaN: there are none.
  [[nodiscard]] double median_beyond(const RatioPlace& place, double octaves,
                                     std::size_t left_out) const;
  [[nodiscard]] std::vector<Probe> probes(std::size_t left_out) const;
  [[nodiscard]] static Trust trust_of(const std::vector<Probe>& probes);
  [[nodiscard]] Trust trust_without(std::size_t left_out) const;

  std::vector<Point> points_;
  std::vector<Probe> probes_;
  double median_ = 0;  ///< of the logarithms; NaN: no point speaks for others
  Trust trust_;
};

}  // namespace lockstep
