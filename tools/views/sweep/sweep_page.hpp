/// The results of a sweep as a page.
#pragma once

#include <optional>
#include <string>

#include "sim/search/sweep/results_db.hpp"
#include "sim/search/sweep/sweep.hpp"
#include "tools/views/report/behind.hpp"
#include "tools/views/report/input_tables.hpp"
#include "tools/views/sweep/summary.hpp"

namespace lockstep {

/// The page of `lockstep sweep --report`: parallel axes of all points (at most kSweepLines, evenly
/// chosen), the front of the objective and what it costs, the objective over each axis, the best
/// points. Throws UsageError without a chart library (assets.hpp), InputError for the database.
/// The sections of what it rests on are there where the basis is given, and what stands `behind`
/// the best point's objective, where that is.
std::string sweep_page(const Sweep& sweep, const SweepSummary& summary,
                       const AnswerBasis& basis = {}, const Behind* behind = nullptr);

/// What the page says that the answers rest on: the axes, the scenario, and what was assumed for
/// the best point. Requires that the best point has an answer, or that there is none.
AnswerBasis sweep_basis(const Sweep& sweep, const SweepSummary& summary,
                        const PresetStore& presets);

/// What stands behind the numbers of the best point, which is simulated once more; nothing where no
/// point has an answer.
std::optional<Behind> behind_best(const Sweep& sweep, const SweepSummary& summary,
                                  const PresetStore& presets);

inline constexpr std::size_t kSweepLines = 1500;

}  // namespace lockstep
