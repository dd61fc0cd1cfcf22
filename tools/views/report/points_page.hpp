/// Measured points against their predictions as one HTML page (page.hpp).
#pragma once

#include <cstddef>
#include <string>

#include "sim/measured/point_table.hpp"

namespace lockstep {

class Page;

inline constexpr std::size_t kWorstPoints = 40;
inline constexpr std::size_t kChartPoints = 4000;  ///< drawn of a chart: every n-th beyond that
inline constexpr double kLargestError = 0.6;       ///< of a chart's axis: what is beyond lies on it

/// The page: errors by group, a chart of every way that the points were predicted (the identity's
/// "by"; else one), the worst points. Throws UsageError where the program was built without its
/// chart library (assets.hpp).
std::string points_page(const PointTable& table, const std::string& file);

/// What the page says.
void add_points(Page& page, const PointTable& table, const std::string& file);

}  // namespace lockstep
