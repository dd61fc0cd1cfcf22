/// Jobs that run on more GPUs or fewer: how fast, and who decides.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/scenario/failure_mode.hpp"

namespace lockstep {

/// Who changes the width of a job that has several.
enum class ElasticPolicy : std::uint8_t {
  fixed,    ///< nobody
  shrink,   ///< a failure takes its node away; it grows back when GPUs are free
  goodput,  ///< all widths are chosen anew, for the largest sum of speedups
};
constexpr std::array<std::string_view, 3> kElasticPolicyNames{"fixed", "shrink", "goodput"};

struct QueueElastic {
  ElasticPolicy policy = ElasticPolicy::fixed;
  RunTime resize = 0;  ///< from a change of width until work goes on
  RunTime every = 0;   ///< goodput: from choice to choice; 0: at every submission, end and failure
};

/// A width of drawn jobs, by the one that they ask for.
struct DrawnWidth {
  double times = 1;  ///< as many GPUs; jobs that these are no whole number for lack it
  double speed = 1;  ///< in any unit that all have
};

/// How fast a job runs on so many GPUs, as a share of its speed on QueueJob::gpus, which are among
/// them.
struct WidthTable {
  std::vector<int> gpus;  ///< rising
  std::vector<double> speeds;
  /// QueueSpec::trainings, of which the speeds are then simulated; empty: of given duration.
  std::vector<std::int32_t> trainings{};

  friend bool operator==(const WidthTable&, const WidthTable&) = default;
};

}  // namespace lockstep
