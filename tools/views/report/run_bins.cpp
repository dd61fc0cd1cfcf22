#include "tools/views/report/run_bins.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace lockstep {
namespace {

/// Seconds that make good bins, up to a month.
constexpr std::array kRoundBins{1.0,    2.0,    5.0,     10.0,    15.0,    30.0,     60.0,
                                120.0,  300.0,  600.0,   900.0,   1800.0,  3600.0,   7200.0,
                                10800., 21600., 43200.0, 86400.0, 172800., 604800.0, 2592000.0};

std::size_t bin_count(RunTime wall, std::size_t most) {
  const double seconds = to_seconds(wall).base_units();
  for (const double width : kRoundBins) {
    const double count = std::ceil(seconds / width);
    if (count <= static_cast<double>(most)) return static_cast<std::size_t>(std::max(1.0, count));
  }
  return most;
}

}  // namespace

RunTime RunBins::begin(std::size_t bin) const {
  // In two parts: the product would overflow.
  const auto count = static_cast<RunTime>(spent.size()), i = static_cast<RunTime>(bin);
  return wall / count * i + wall % count * i / count;
}

RunBins bin_phases(const TrajectoryResult& run, std::size_t most) {
  assert(!run.phases.empty() && most >= 1);
  RunBins bins;
  bins.wall = run.wall;
  bins.spent.resize(bin_count(run.wall, most));
  std::size_t bin = 0;
  for (std::size_t p = 0; p < run.phases.size(); ++p) {
    const RunTime end = p + 1 < run.phases.size() ? run.phases[p + 1].begin : run.wall;
    for (RunTime at = run.phases[p].begin; at < end;) {
      while (bins.begin(bin + 1) <= at) ++bin;
      const RunTime until = std::min(end, bins.begin(bin + 1));
      bins.spent[bin][static_cast<std::size_t>(run.phases[p].bucket)] += until - at;
      at = until;
    }
  }
  return bins;
}

CauseRows cause_rows(const RunSummary& summary) {
  std::vector<std::size_t> order(summary.modes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t mode) { return summary.modes[mode].cost_s; });
  CauseRows rows;
  rows.row_of_mode.resize(order.size());
  const bool all = order.size() <= kCauseRows + 1;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const bool own = all || rank < kCauseRows;
    rows.row_of_mode[order[rank]] = own ? rank : kCauseRows;
    if (own) rows.names.push_back(summary.modes[order[rank]].name);
  }
  if (!all) rows.names.emplace_back("all other causes");
  return rows;
}

}  // namespace lockstep
