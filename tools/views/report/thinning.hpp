/// Fewer points for a chart, in a way that keeps what the eye looks for.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace lockstep {

/// Indices of the points to draw as a line, rising, at most `most` of them: all where they are few
/// enough, else the first, the last, and the smallest and the largest of equal stretches between.
/// So every peak stays, in its place. Requires most >= 4.
std::vector<std::size_t> thin_to_extremes(std::span<const float> values, std::size_t most);

/// How many neighbours to merge so that at most `most` cells are left. Requires most >= 1.
std::size_t merge_count(std::size_t values, std::size_t most);

/// The mean of each `count` neighbours (the last cell: of those that are left). Requires count
/// >= 1.
std::vector<double> merged_means(std::span<const float> values, std::size_t count);

}  // namespace lockstep
