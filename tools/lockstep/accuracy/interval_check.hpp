/// Whether intervals keep their word: every published run against the interval that it would have
/// been given by the rows of other sources.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/accuracy/prediction_interval.hpp"
#include "tools/lockstep/table.hpp"

namespace lockstep {

/// How intervals of a group of runs did.
struct IntervalGroup {
  std::string name;
  std::size_t rows = 0;
  double covered = 0;     ///< share of the runs that took a time in their interval
  double half_width = 0;  ///< median, relative to the prediction
};

/// Sources are left out one by one, of the fit and of the evidence; only for "known release" the
/// row's source stays in the fit, for else no release would be known.
struct IntervalCheck {
  std::vector<IntervalGroup> by_software;  ///< "known release", "other release", "unknown"
  /// Of all rows with the source left out of the fit, the first "all".
  std::vector<IntervalGroup> left_out, by_kind, by_architecture, by_source;
};

/// Requires rows of several sources.
IntervalCheck check_intervals(const ResidualTable& table);

/// For people, at most 100 columns wide.
std::string intervals_table(const IntervalCheck& check, const TextStyle& style);
/// {"coverage": 0.9, "by_software": {"known release": {"rows": ...}, ...}, ...}.
std::string intervals_json(const IntervalCheck& check);

}  // namespace lockstep
