/// Many trajectories of one campaign: means, and how sure they are.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/run/trajectory.hpp"

namespace lockstep {

/// Mean of a sample with its 95 % confidence interval (Student's t), and how it spreads.
struct SampleMean {
  double mean = 0;
  double half_width = 0;                 ///< of the interval; 0 for fewer than two
  double low = 0, median = 0, high = 0;  ///< 5th, 50th and 95th percentile of the sample
};
SampleMean sample_mean(std::span<const double> values);

/// All of `parts` over all of `wholes`, with the interval of that ratio; the percentiles are those
/// of the ratios one by one. Where all wholes are alike it is sample_mean() of the ratios.
///
///     R = sum y / sum x,   v(R) = sum (y - R x)^2 / ((n - 1) n mean(x)^2)
///
/// Source: Cochran 1977, Sampling Techniques, 3rd edition, chapter 6, of a large population. Its
/// bias is of the order of 1 / n. Requires as many of each, and wholes above 0.
SampleMean sample_ratio(std::span<const double> parts, std::span<const double> wholes);

/// The value that a Student variable with `freedom` >= 1 degrees of freedom stays below with 97.5
/// %. Source: exact for 1 and 2; else Abramowitz and Stegun 1964, 26.7.5, within 0.8 %.
double student_quantile(std::size_t freedom);

struct ModeSummary {
  std::string name;
  double failures = 0;  ///< mean of a trajectory
  double cost_s = 0;    ///< mean of a trajectory: recovery and work done again
};

/// Time between two interruptions: all wall time over all interruptions, of all trajectories.
struct MeanTimeToFailure {
  double interruptions = 0;      ///< of all trajectories together
  std::optional<double> mean_s;  ///< none where nothing was seen
  /// With 95 % confidence it is no shorter, taken as exponential: wall time over the upper bound of
  /// a Poisson count. Of none seen that is 3.0: the "rule of three" (Hanley and Lippman-Hand 1983,
  /// JAMA 249(13), 1743-1745). 0 without any wall time.
  double at_least_s = 0;
};
MeanTimeToFailure mean_time_to_failure(double wall_s, double interruptions);

struct RunSummary {
  std::size_t trajectories = 0;
  /// Effective training time ratio: productive over wall time of all trajectories together, as
  /// sample_ratio(). A long one counts by its length, as in `shares`, whose first it is.
  SampleMean goodput;
  SampleMean wall_s;
  SampleMean interruptions;
  MeanTimeToFailure mttf;
  std::array<double, kRunBuckets> shares{};  ///< of all wall time; together 1
  std::vector<ModeSummary> modes;
  double checkpoints = 0, fallbacks = 0;  ///< means
  /// Means: times that the site gave no power, what they cost, what its pace slowed the job by.
  double site_stops = 0, site_stopped_s = 0, site_slowed_s = 0;
  double machines_missing_s = 0;  ///< mean: what machines that are not there slowed the job by
  double finished = 0;            ///< share of trajectories that did all of their work
};
RunSummary summarise(const Campaign& campaign, std::span<const TrajectoryResult> results);

struct SampleOptions {
  std::uint32_t trajectories = 100;
  /// Adds trajectories until the goodput's interval is no wider than +- this; 0: as many as said.
  double within = 0;
  std::uint32_t most = 100'000;
  int jobs = 1;  ///< threads
  /// Called after each trajectory, from any thread, one at a time; false stops early.
  std::function<bool()> progress;
  /// Called now and then during a long trajectory, as `progress`, with the trajectories that are
  /// done, counting those under way by the shares of their work.
  std::function<bool(double done)> under_way{};
};
/// Results in order of number: the same for any number of threads. Stopped early: those up to the
/// first that is missing.
std::vector<TrajectoryResult> sample(const Campaign& campaign, const SampleOptions& options);

/// Number of the trajectory whose goodput is the median (of an even count the upper one).
std::uint32_t median_trajectory(std::span<const TrajectoryResult> results);

}  // namespace lockstep
