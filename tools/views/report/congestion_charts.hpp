/// The charts of a congestion report: how full its links were, when, and with whose bytes.
#pragma once

#include <cstddef>

#include "sim/congestion/congestion_report.hpp"

namespace lockstep {

class Page;

inline constexpr std::size_t kHeatMapLinks = 40;     ///< rows; a row is as high as its name
inline constexpr std::size_t kHeatMapColumns = 240;  ///< cells of about 4 px
inline constexpr std::size_t kLineLinks = 6;
inline constexpr std::size_t kLinePoints = 1200;  ///< about two for each pixel of a chart
inline constexpr std::size_t kBarLinks = 12;

/// Each adds one section. Requires links, each with the same number of bins, at least 1.
void add_heat_map(Page& page, const CongestionReport& report);
void add_utilisation_lines(Page& page, const CongestionReport& report);
void add_bytes_by_job(Page& page, const CongestionReport& report);

}  // namespace lockstep
