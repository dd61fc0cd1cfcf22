/// How long a sweep takes, from points of it that were tried.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

/// Which of `points` to try, by their place in the list, at most so many, each once: multiples of
/// the golden ratio, of which any first few are spread evenly. (A whole stride would meet the same
/// value of a fast axis again and again, and miss the others.)
std::vector<std::size_t> points_to_try(std::size_t points, std::size_t most);

struct SweepEstimate {
  std::size_t tried = 0;
  double seconds_per_point = 0;  ///< of one core, mean of those tried
  double seconds = 0;            ///< until the last core is done
  /// In which that is nineteen times of twenty, by the spread of the points tried.
  double low_s = 0;
  std::optional<double> high_s{};  ///< nothing: one of several points was tried, and has no spread
};

/// `tried_s`: of each point that was tried, on as many cores at once as the sweep uses.
///
/// The others are taken to be drawn from the same points: their sum is so many means, give or take
/// Student's t of the spread, sqrt(others^2 / tried + others) times (prediction of a sum of new
/// draws). Cores that take points in turn are done, with W the work of all and L the longest point,
/// between max(W / jobs, L) and W / jobs + L (1 - 1 / jobs) (Graham 1969, SIAM J. Appl. Math.
/// 17(2), 416-429). Requires a point tried, no more than `points`, and jobs >= 1.
SweepEstimate estimate_sweep(std::span<const double> tried_s, std::size_t points, int jobs);

}  // namespace lockstep
