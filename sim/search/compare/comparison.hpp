/// How far each difference between two scenarios moves the answer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/answer/step_answer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/search/compare/differences.hpp"

namespace lockstep {

/// A change, and the answer after it.
struct ComparedChange {
  Change differences;
  double value = 0;               ///< of the metric after this and all changes before
  double change = 0;              ///< from the one before; all of them add up to the whole
  std::optional<double> alone{};  ///< made in the first scenario alone; nothing: that is not valid
  std::string bucket{};           ///< of the waterfall that moved most: "pipeline_bubble"; or empty
  double bucket_change = 0;       ///< in shares of the first scenario's step or wall time
  bool moves_excess = false;      ///< of the site's draw over its limit (site_excess_w)
};

/// A step time and its 90 % interval.
struct ComparedStep {
  double step_s = 0, low_s = 0, high_s = 0;
  std::string why;  ///< what the interval is made from
};

struct Comparison {
  std::string a, b;    ///< files
  std::string metric;  ///< of the first level of `lockstep run --format json`
  double from = 0, to = 0;
  std::optional<ComparedStep> from_step{}, to_step{};  ///< where there are intervals
  std::vector<ComparedChange> changes;                 ///< those that move nothing last
  std::vector<std::string> notes;
  /// What the reader filled in of either: "first: fabric: rail_optimised (not given)" where the
  /// other has another line.
  std::vector<std::string> assumptions{};
  WrittenScenario a_written{}, b_written{};  ///< as they are compared; paths as of the first
};

struct ComparisonInput {
  std::string a, b;  ///< files
  std::vector<std::string> sets;
  Folding folding = Folding::automatic;
  std::string metric;                                      ///< empty: goodput of runs, else step_s
  std::function<bool()> go_on;                             ///< false: stop
  std::function<void(std::size_t, std::size_t)> progress;  ///< simulations: done, in all
};

/// Nothing when `go_on` said no on the way. Throws InputError about a scenario, UsageError about a
/// metric that is none.
std::optional<Comparison> compare(const ComparisonInput& input, const PresetStore& presets);

}  // namespace lockstep
