/// Many trials of one thing over a queue: variants, seeds, ablations, a search for hyperparameters
/// that stops the worse ones early. queue_campaigns.hpp makes them from JSON,
/// sim/cluster/campaign_rungs.hpp lets trials go on or stop.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/failure_mode.hpp"

namespace lockstep {

/// Which trials go on.
enum class StoppingKind : std::uint8_t {
  none,                ///< all, to their ends
  successive_halving,  ///< 1 / eta of a rung, when all of it has ended (Jamieson and Talwalkar
                       ///< 2016)
  asha,                ///< whoever is among the best 1 / eta that have ended in its rung, at once
                       ///< (Li et al. 2020, MLSys, algorithm 2)
  hyperband,  ///< successive halving from several first rungs (Li et al. 2018, JMLR 18(185))
};
constexpr std::array<std::string_view, 4> kStoppingNames{"none", "successive_halving", "asha",
                                                         "hyperband"};

struct TrialCampaign {
  std::string name;
  StoppingKind stopping = StoppingKind::none;
  int trials = 1;
  int eta = 3;
  int most_at_once = 0;  ///< jobs of it; 0: any number
  bool resume = true;    ///< who goes on has what it did; else it begins anew, for longer
  RunTime whole = 0;     ///< a trial, to its end; of a training: when it is timed
};

/// Trials that are compared with each other.
struct TrialBracket {
  std::uint32_t campaign = 0;  ///< QueueSpec::campaigns
  std::uint32_t first = 0;     ///< its trials are first, first + 1, ... of the campaign
  std::uint32_t trials = 0;
  std::vector<double> ends;  ///< of its rungs, as shares of a whole trial; rising to 1
};

/// Which part of which trial a job is. Each trial has a job for each rung of its bracket: that of
/// the first is submitted as any job, and a later one, if at all, when its trial goes on.
struct TrialPlace {
  std::int32_t bracket = -1;  ///< QueueSpec::brackets; below 0: it is no trial
  std::uint32_t trial = 0;    ///< of the campaign
  std::uint32_t rung = 0;
};

/// When a job is submitted of which nobody knows yet whether it ever is.
constexpr RunTime kNotSubmitted = std::numeric_limits<RunTime>::max();

/// Where the first rung may end, as a share of a trial.
inline constexpr Interval kFirstRung{1e-6, 0.9};
/// The most rungs of a bracket: eta is at least 2.
constexpr std::size_t kMostRungs = 21;

/// Ends of rungs, each `eta` times as far as the one before; the last one is at 1, and none but
/// that in the last tenth. Requires that `first` is in kFirstRung.
std::vector<double> rung_ends(double first, int eta);

/// Trials of Hyperband's brackets, that of the most rungs first: as many together as `trials`, in
/// proportion to ceil((most + 1) / (s + 1) eta^s) for s from `most` down to 0, where `most` is the
/// whole part of log_eta(1 / least). Source: Li et al. 2018, algorithm 1. Requires at least one for
/// each bracket.
std::vector<std::uint32_t> hyperband_trials(std::uint32_t trials, int eta, int most);
/// `most` of a least first rung.
int hyperband_most(double least, int eta);

/// How long the job of a rung runs, of a trial that takes `whole`: the rungs of a trial that
/// resumes add up to it.
RunTime rung_length(const TrialBracket& bracket, std::uint32_t rung, bool resume, RunTime whole);

}  // namespace lockstep
