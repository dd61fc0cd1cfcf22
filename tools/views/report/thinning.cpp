#include "tools/views/report/thinning.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace lockstep {

std::vector<std::size_t> thin_to_extremes(std::span<const float> values, std::size_t most) {
  assert(most >= 4);
  std::vector<std::size_t> kept;
  if (values.size() <= most) {
    kept.resize(values.size());
    std::iota(kept.begin(), kept.end(), std::size_t{0});
    return kept;
  }
  const std::size_t inner = values.size() - 2;
  const std::size_t stretches = (most - 2) / 2;
  kept.push_back(0);
  for (std::size_t s = 0; s < stretches; ++s) {
    const auto begin = values.begin() + 1 + static_cast<std::ptrdiff_t>(inner * s / stretches);
    const auto end = values.begin() + 1 + static_cast<std::ptrdiff_t>(inner * (s + 1) / stretches);
    const auto [low, high] = std::minmax_element(begin, end);
    const auto [first, second] = std::minmax(low, high);
    kept.push_back(static_cast<std::size_t>(first - values.begin()));
    if (first != second) kept.push_back(static_cast<std::size_t>(second - values.begin()));
  }
  kept.push_back(values.size() - 1);
  return kept;
}

std::size_t merge_count(std::size_t values, std::size_t most) {
  assert(most >= 1);
  return std::max<std::size_t>(1, (values + most - 1) / most);
}

std::vector<double> merged_means(std::span<const float> values, std::size_t count) {
  assert(count >= 1);
  std::vector<double> means;
  for (std::size_t begin = 0; begin < values.size(); begin += count) {
    const auto cell = values.subspan(begin, std::min(count, values.size() - begin));
    means.push_back(std::accumulate(cell.begin(), cell.end(), 0.0) /
                    static_cast<double>(cell.size()));
  }
  return means;
}

}  // namespace lockstep
