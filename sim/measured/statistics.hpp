/// The few statistics that validation reports.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace lockstep {

/// The value below which a share `q` (0 to 1) of the values lies, interpolated linearly between
/// ranks (Hyndman and Fan 1996, type 7). Requires at least one value.
double quantile(std::vector<double> values, double q);
inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

/// Errors of a set of predictions, each predicted / measured - 1.
struct ErrorSummary {
  std::size_t n = 0;
  double median_abs = 0;
  double p90_abs = 0;
  double bias = 0;           ///< median of the signed errors
  double worst = 0;          ///< signed, largest in size
  std::size_t worst_at = 0;  ///< its index
};
/// All zero when there are no errors.
ErrorSummary summarise_errors(const std::vector<double>& errors);

/// Spearman's rank correlation: Pearson's of the ranks, ties at their mean rank. 0 when one side is
/// constant. Requires equally many values on both sides, at least two.
double spearman(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace lockstep
