/// A sample of a job's replicas, for jobs that are too large to simulate every replica on its own.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/replica_classes.hpp"

namespace lockstep {

/// How many events a replay of these replicas takes, before it is run.
double step_events(const StepPlan& plan, const std::vector<ReplicaClass>& classes);

/// Replicas that are simulated, one each, and what the others put on their links.
struct ReplicaSample {
  std::vector<ReplicaClass> classes;  ///< one copy each
  std::vector<int> stands_for;        ///< replicas, by class; they add up to all
  /// By fabric link: what flows of all replicas put on it over what those of the sample do, where
  /// the sample uses it; 1 elsewhere.
  std::vector<double> crowd;

  /// What Wiring takes, with that share of the others' flows always there.
  [[nodiscard]] std::vector<double> crowded(double share) const;
};

/// Replays of a sample: with the others silent, sending half of the time, and always.
inline constexpr double kSampleReplays = 3;
/// Replicas of the smallest sample.
inline constexpr std::size_t kLeastSample = 32;
/// Kept on both sides of the band that these give: the sample may miss the slowest replica.
inline constexpr double kBandMargin = 0.015;

/// The first size of a sample of replicas whose replay takes so many events each.
std::size_t first_sample(double budget, double events_each);

/// The replicas that stand for a job where it is replayed beside something else.
struct ReplayedReplicas {
  ReplicaClasses replicas;
  std::optional<ReplicaSample> sample;  ///< they are one, above the budget
};
/// As the scenario says; above `budget` (StepOptions) a sample.
ReplayedReplicas replicas_for_replay(const Scenario& scenario, DataRoutes& data_routes,
                                     double budget);

/// Half of the sample are the replicas whose pipeline messages share links with most others and
/// with collectives, since a step waits for its slowest replica; the rest lie evenly among all.
/// Slow GPUs and every variant of the plan are in it, and replicas that exchange tokens with others
/// of it, which makes it a little larger than `size`. Requires 1 <= size.
ReplicaSample sample_of_replicas(const Scenario& scenario, DataRoutes& data_routes,
                                 std::size_t size);

}  // namespace lockstep
