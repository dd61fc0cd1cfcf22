#include "models/accuracy/paired_interval.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "models/accuracy/prediction_interval.hpp"

namespace lockstep {
namespace {

/// Differences of two residuals, by source.
using PairErrors = std::map<std::string_view, std::vector<double>>;

PairErrors pairs_of(const ResidualTable& table, bool same_gpu) {
  PairErrors errors;
  for (std::size_t a = 0; a < table.size(); ++a) {
    for (std::size_t b = a + 1; b < table.size(); ++b) {
      const Residual &x = table[a], &y = table[b];
      if (x.source != y.source || x.traits.stack != y.traits.stack) continue;
      if ((x.traits.gpu == y.traits.gpu) != same_gpu) continue;
      errors[x.source].push_back(std::abs(x.left_out - y.left_out));
    }
  }
  return errors;
}

}  // namespace

std::optional<double> paired_error(const ResidualTable& table, bool same_gpu) {
  const PairErrors by_source = pairs_of(table, same_gpu);
  if (by_source.size() < 2) return std::nullopt;
  std::vector<std::pair<double, double>> weighted;  // error, weight
  for (const auto& [source, errors] : by_source) {
    for (const double error : errors)
      weighted.emplace_back(error, 1.0 / static_cast<double>(errors.size()));
  }
  std::ranges::sort(weighted);
  const double wanted = kCoverage * static_cast<double>(by_source.size());
  double sum = 0;
  for (const auto& [error, weight] : weighted) {
    sum += weight;
    if (sum >= wanted) return error;
  }
  return weighted.back().first;
}

}  // namespace lockstep
