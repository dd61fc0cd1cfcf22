/// Checkpoint intervals: closed forms, and the best one found by simulation.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/base/units.hpp"
#include "sim/run/summary.hpp"

namespace lockstep {

/// sqrt(2 d M): work between checkpoints that cost `d` each, with mean time `m` between failures.
/// Source: Young 1974, Comm. ACM 17(9), 530-531.
Seconds young_interval(Seconds d, Seconds m);

/// sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + (d / 2M) / 9) - d for d < 2M, else M.
/// Source: Daly 2006, Future Gener. Comput. Syst. 22(3), 303-312, equation 37.
Seconds daly_interval(Seconds d, Seconds m);

/// Wall time over work with exponential failures: M e^(R/M) (e^((t + d)/M) - 1) / t, for work `t`
/// between checkpoints, `r` to restart, `m` between failures, also in restarts.
/// Source: Daly 2006, equation 20.
double daly_time_ratio(Seconds t, Seconds d, Seconds r, Seconds m);

/// Effective training time ratio: (1 - N r_f (u + t/2)) / (1 + w / t), N r_f = 1 / m.
/// Source: Kokolis et al. 2025, arXiv:2410.21680, equation 1 and appendix.
double expected_ettr(Seconds t, Seconds write, Seconds restart, Seconds m);

/// Mean time between failures that stop the job, from the rates of its modes.
/// Requires at least one.
Seconds mean_time_between_stops(std::span<const FailureMode> modes);

struct IntervalPoint {
  Seconds interval;
  double goodput = 0, half_width = 0;  ///< of sample_ratio()
};
/// That optimise_interval() simulates, at most.
constexpr std::size_t kMostIntervals = 25;
struct IntervalOptimum {
  IntervalPoint best, given;         ///< given: the campaign's own interval
  IntervalPoint young, daly;         ///< the closed forms, simulated
  std::vector<IntervalPoint> curve;  ///< by interval: daly / 4 to 16 daly, and the campaign's own
  Seconds least{};                   ///< no shorter one is the best
  bool limited = false;              ///< a shorter one would be better by goodput alone
};
/// The interval of the campaign's first tier at which goodput is largest. Every interval meets the
/// same failures (common random numbers), so that differences are real where means are noisy. It is
/// a whole number of steps and no shorter than `sustained`, which is what the storage sustains: the
/// closed forms and the campaign's own, which may be the best too, need not be whole. None is
/// shorter than the campaign's step. Requires a first tier with `blocks` above
/// 0, and a mode that stops the job.
IntervalOptimum optimise_interval(const Campaign& campaign, const SampleOptions& options,
                                  Seconds sustained = {});

}  // namespace lockstep
