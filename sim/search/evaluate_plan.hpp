/// From a plan to an answer: which candidate, how long, how much, how sure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/run/summary.hpp"
#include "sim/search/plan_model.hpp"
#include "sim/search/plan_spec.hpp"

namespace lockstep {

/// What a plan trades against each other: rows of plan_measures().
struct PlanMeasure {
  std::string_view name;   ///< "time_s"
  std::string_view title;  ///< "Time"
  double PlanOutcome::* number;
};
std::span<const PlanMeasure, 3> plan_measures();  ///< time, money, energy; in this order

/// What the measures become when one input lies at its 5th or 95th percentile, all others at their
/// medians.
struct PlanSwing {
  PlanInput input = PlanInput::efficiency;
  double low = 1, high = 1;  ///< of the input
  PlanOutcome at_low, at_high;
};

struct PlanChances {
  double time = 1, power = 1, usd = 1;  ///< share of samples that keep each limit
  double all = 1;                       ///< and all of them at once
};

/// A further phase of a candidate, with every input at its median.
struct PhaseResult {
  PlanModel model;
  Seconds moves;  ///< until weights and states of the phase before are there
  double egress_usd = 0;
  PlanOutcome expected;
  std::shared_ptr<const Fleet> fleet{};  ///< as it is then; none: no lots
};

struct PlanResult {
  PlanModel model;  ///< of its first phase
  /// All inputs at their medians, mean over the trajectories of the candidate's run: what `lockstep
  /// run` says about it.
  PlanOutcome expected;
  PlanOutcome first;                         ///< of what is expected, the first phase
  std::vector<PhaseResult> later;            ///< phases after it, in their order
  SampleMean time_s, usd, energy_j, peak_w;  ///< of the samples: 5th, 50th, 95th percentile
  PlanChances chances;
  std::vector<PlanSwing> swings;  ///< in the order of plan_inputs()
  std::vector<PlanOutcome> samples;
  std::vector<PlanMonth> months;  ///< of what is expected, where there is a region or a dataset
  bool on_front = false;          ///< no other candidate is better in all of time, money and energy
  double unfinished = 0;          ///< share of samples that are given up before their work is done
  std::optional<PlanOutcome> given_up{};  ///< mean of these; none: there is none
  double best_share = 0;  ///< share of samples in which it is best of those that keep the limits
};

struct PlanReport {
  std::vector<PlanResult> results;    ///< one for each candidate
  std::optional<std::size_t> choice;  ///< keeps the limits surely enough, and is best; or none does
  /// That keeps them likeliest, of equals with the least beyond what it breaks; none if nothing is
  /// possible.
  std::optional<std::size_t> nearest;
  bool interrupted = false;
};

struct PlanOptions {
  int jobs = 1;  ///< threads
  /// Called after each piece of work, from any thread, one at a time; false stops early.
  std::function<bool()> progress{};
  /// Asked during the search for layouts, and during long trajectories: from any thread.
  std::function<bool()> interrupted{};
  /// Told once, before anything is drawn, how many trajectories there are and how long they take on
  /// one thread.
  std::function<void(double trajectories, Seconds all)> estimated{};
};
/// `so_far`, then the move that takes so long and costs so much, then `next`: times and amounts add
/// up, goodput is that of both by their length, the highest reading is the higher.
PlanOutcome chained(const PlanOutcome& so_far, Seconds moves, double egress_usd,
                    const PlanOutcome& next);

/// How often `progress` will be called for candidates that are possible.
std::size_t plan_pieces(const PlanSpec& spec);

/// Samples draw all inputs at once from counter-based streams: sample i is the same world for all
/// candidates, so that their differences are surer than each alone. The same for any number of
/// threads. Throws InputError.
PlanReport evaluate_plan(const PlanSpec& spec, const PlanOptions& options);

/// The limit that holds for a candidate's power: the plan's or its own site's, whichever is lower;
/// of a rented one its own site's, if that is known.
std::optional<Watts> power_limit(const PlanSpec& spec, const PlanCandidate& candidate);

}  // namespace lockstep
