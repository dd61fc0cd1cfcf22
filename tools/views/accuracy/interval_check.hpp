/// Whether intervals keep their word: every published run against the interval that it would have
/// been given by the rows of other sources.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/accuracy/prediction_interval.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// How intervals of a group of runs did.
struct IntervalGroup {
  std::string name;
  std::size_t rows = 0;
  double error = 0;       ///< median of |predicted / measured - 1|
  double covered = 0;     ///< share of the runs that took a time in their interval
  double by_source = 0;   ///< the same, each source weighing one
  double half_width = 0;  ///< median, relative to the prediction
};

/// Each run is held against the interval that rows of other sources give it, with constants that
/// were fitted without its source (`left_out` and what is by it); the same without all sources of
/// its vendor; and predicted by the default stack, as if nobody had named the software, against the
/// interval of such runs. What is left out is the fit: presets and priors were made in sight of
/// all.
///
/// `composed`: predicted with the software composed from what it does, and nothing that rows of the
/// vendor had a part in. `learnt`: the same after one and after three steps of the source, which
/// lockstep learn takes; every choice of rows that stand equally far apart in the table is tried,
/// those beside each other among them. The level is taken to govern the whole step.
struct IntervalCheck {
  /// The first "all", then by what the others know of the software.
  std::vector<IntervalGroup> left_out, vendor_left_out, default_stack;
  /// The first "all", then by kind.
  std::vector<IntervalGroup> composed, learnt;
  std::vector<IntervalGroup> by_kind, by_architecture, by_source, by_vendor;
};

/// Requires rows of several sources.
IntervalCheck check_intervals(const ResidualTable& table);

/// For people, at most 100 columns wide.
std::string intervals_table(const IntervalCheck& check, const TextStyle& style);
/// {"coverage": 0.9, "left_out": {"all": {"rows": ...}, "known stack": ...}, ...}.
JsonText intervals_json(const IntervalCheck& check);

}  // namespace lockstep
