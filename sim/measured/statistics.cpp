#include "sim/measured/statistics.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace lockstep {
namespace {

std::vector<double> mean_ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
    for (std::size_t i = first; i <= last; ++i)
      ranks[order[i]] = static_cast<double>(first + last) / 2;
    first = last + 1;
  }
  return ranks;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double quantile(std::vector<double> values, double q) {
  assert(!values.empty() && q >= 0 && q <= 1);
  std::ranges::sort(values);
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  if (below + 1 >= values.size()) return values.back();
  return values[below] + (at - static_cast<double>(below)) * (values[below + 1] - values[below]);
}

ErrorSummary summarise_errors(const std::vector<double>& errors) {
  if (errors.empty()) return {};
  ErrorSummary summary{.n = errors.size()};
  std::vector<double> sizes;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    sizes.push_back(std::abs(errors[i]));
    if (sizes[i] > sizes[summary.worst_at]) summary.worst_at = i;
  }
  summary.worst = errors[summary.worst_at];
  summary.p90_abs = quantile(sizes, 0.9);
  summary.median_abs = median(std::move(sizes));
  summary.bias = median(errors);
  return summary;
}

double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  assert(a.size() == b.size() && a.size() >= 2);
  const std::vector<double> x = mean_ranks(a), y = mean_ranks(b);
  const double mx = mean(x), my = mean(y);
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mx) * (y[i] - my);
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

}  // namespace lockstep
