#include "sim/run/campaign_work.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "sim/run/optimum.hpp"

namespace lockstep {
namespace {

constexpr double kMostEvents = 1e10;   // some hours of two cores, with a progress line
constexpr double kMostPhases = 2e7;    // of one trajectory with its timeline: 0.6 GB
constexpr double kMostAttempts = 1e6;  // a job that recovers once in so many trials never trains
// Assumed of a core of 3 GHz: they decide what is announced, and nothing else.
constexpr Seconds kTakesTrajectory{1e-4}, kTakesFailure{4e-7}, kTakesCheckpoint{1e-7};

std::string time_words(double seconds) { return format_quantity(seconds, Dimension::time); }

/// Renewals of one component in `t` of its mean times under a Weibull law, from above: the lesser
/// of Lorden's bound, t + E[X^2] / E[X]^2 (1970, Ann. Math. Stat. 41(2), 520-527, theorem 1), and
/// of F / (1 - F), as all of n renewals in t need each to come within t; F = 1 - e^-H with
/// H = (t gamma(1 + 1/k))^k.
double renewals(double t, double shape) {
  if (shape == 1) return t;
  const double mean = std::tgamma(1 + 1 / shape);
  const double lorden = t + std::tgamma(1 + 2 / shape) / (mean * mean);
  const double hazard = std::pow(t * mean, shape);
  return std::min(lorden, std::expm1(hazard));
}

bool interrupts(const FailureMode& mode) {
  return mode.effect == FailureEffect::crash || mode.effect == FailureEffect::hang;
}

/// Failures a second that stop a job at once.
double stopping_rate(const Campaign& campaign) {
  double rate = 0;
  for (const FailureMode& mode : campaign.modes) {
    if (interrupts(mode)) rate += mode.components / mode.mean_time.base_units();
  }
  return rate;
}

/// From a crash until the job trains again, where a spare is at hand.
double recovery_s(const Campaign& campaign) {
  const RecoverySpec& recovery = campaign.recovery;
  double restores = campaign.tiers.empty() ? 0 : campaign.tiers.front().restores.base_units();
  for (const CheckpointTier& tier : campaign.tiers) {
    restores = std::min(restores, tier.restores.base_units());
  }
  return (recovery.detects_crash + recovery.diagnoses + recovery.restarts).base_units() + restores;
}

/// Wall time over work, from 1 to where a run is given up.
double wall_over_work(const Campaign& campaign, double rate, double recovers) {
  if (rate <= 0) return 1;
  const Seconds mean{1 / rate};
  const Seconds interval = campaign.tiers.empty() ? campaign.work : campaign.tiers.front().interval;
  const Seconds blocks = campaign.tiers.empty() ? Seconds{} : campaign.tiers.front().blocks;
  const double ratio = daly_time_ratio(interval, blocks, Seconds{recovers}, mean);
  return std::isfinite(ratio) ? std::clamp<double>(ratio, 1, kGivenUpAfter) : kGivenUpAfter;
}

/// Whether quiet periods between two checkpoints are booked many at once.
bool skips_periods(const Campaign& campaign) {
  const CheckpointTier& first = campaign.tiers.front();
  return campaign.tiers.size() == 1 && first.drag == 0 && !first.rule &&
         first.finishes <= first.interval && campaign.width_speed.front() == 1;
}

double periods(const CheckpointTier& tier, double wall_s) {
  return wall_s / (tier.interval + tier.blocks).base_units();
}

std::size_t busiest_tier(const Campaign& campaign) {
  const auto least = std::ranges::min_element(campaign.tiers, {}, &CheckpointTier::interval);
  return static_cast<std::size_t>(least - campaign.tiers.begin());
}

/// Where the scenario says how often it fails: the mode, or the preset that has it.
std::string mode_pointer(const RunSpec& run, std::size_t mode) {
  return run.reliability.own ? fmt::format("/run/reliability/modes/{}", mode) : "/run/reliability";
}

InputProblem too_frequent(const Campaign& campaign, const RunSpec& run, std::size_t mode,
                          std::string allowed, const std::string& file) {
  const FailureMode& of = campaign.modes[mode];
  return {.file = file,
          .pointer = mode_pointer(run, mode),
          .found = fmt::format("\"{}\" every {} ({} of them, each every {})", of.name,
                               time_words(of.mean_time.base_units() / of.components), of.components,
                               time_words(of.mean_time.base_units())),
          .allowed = std::move(allowed),
          .nearest = {}};
}

/// Of the modes that stop a job at once the one that does so most often.
std::size_t fastest_stopper(const Campaign& campaign) {
  const auto rate = [](const FailureMode& mode) {
    return interrupts(mode) ? mode.components / mode.mean_time.base_units() : 0.0;
  };
  const auto most = std::ranges::max_element(campaign.modes, {}, rate);
  return static_cast<std::size_t>(most - campaign.modes.begin());
}

/// Where the scenario says how often the busiest tier saves.
std::string interval_pointer(const Campaign& campaign) {
  const std::string place =
      campaign.tiers.size() > 1 ? fmt::format("/{}", busiest_tier(campaign)) : "";
  return "/run/checkpoint" + place + "/interval";
}

InputProblem too_many_checkpoints(const Campaign& campaign, double count, double most,
                                  const std::string& file) {
  const std::size_t tier = busiest_tier(campaign);
  return {.file = file,
          .pointer = interval_pointer(campaign),
          .found = fmt::format("{} checkpoints to simulate, one every {}", plain_number(count, 2),
                               time_words(campaign.tiers[tier].interval.base_units())),
          .allowed = fmt::format("at most {} in all trajectories", plain_number(most, 2)),
          .nearest = {}};
}

}  // namespace

ExpectedWork expected_work(const Campaign& campaign) {
  ExpectedWork out;
  const bool logged = !campaign.log.empty();
  const double rate = logged ? 0 : stopping_rate(campaign), recovers = recovery_s(campaign);
  out.attempts = std::exp(recovers * rate);
  out.wall_s = campaign.horizon > 0
                   ? to_seconds(campaign.horizon).base_units()
                   : campaign.work.base_units() * wall_over_work(campaign, rate, recovers);
  double most = 0;
  for (std::size_t m = 0; m < campaign.modes.size() && !logged; ++m) {
    const FailureMode& mode = campaign.modes[m];
    const double t = out.wall_s / mode.mean_time.base_units();
    const double failures = mode.components * renewals(t, mode.shape);
    out.failures += failures;
    if (failures > most) out.most_frequent = m;
    most = std::max(most, failures);
  }
  if (logged) out.failures = static_cast<double>(campaign.log.size());
  if (campaign.tiers.empty() || skips_periods(campaign)) return out;
  for (const CheckpointTier& tier : campaign.tiers) out.checkpoints += periods(tier, out.wall_s);
  return out;
}

std::optional<InputProblem> excessive_work(const Campaign& campaign, const RunSpec& run,
                                           const PlannedWork& planned, const std::string& file) {
  const ExpectedWork work = expected_work(campaign);
  if (work.attempts > kMostAttempts) {
    const double recovers = recovery_s(campaign);
    return too_frequent(
        campaign, run, fastest_stopper(campaign),
        fmt::format("failures that leave time for a recovery of {}: all modes together at least "
                    "{} apart, else the job never trains",
                    time_words(recovers), time_words(recovers / std::log(kMostAttempts))),
        file);
  }
  if (work.failures * planned.trajectories > kMostEvents && work.most_frequent) {
    return too_frequent(
        campaign, run, *work.most_frequent,
        fmt::format("at most {} failures in all trajectories (expected here: {} in each "
                    "of {:.0f})",
                    plain_number(kMostEvents, 2), plain_number(work.failures, 2),
                    planned.trajectories),
        file);
  }
  if (campaign.tiers.empty()) return std::nullopt;
  const double simulated = work.checkpoints * planned.trajectories;
  if (simulated > kMostEvents) {
    return too_many_checkpoints(campaign, simulated, kMostEvents, file);
  }
  const double kept = periods(campaign.tiers[busiest_tier(campaign)], work.wall_s);
  if (planned.timeline && kept > kMostPhases) {
    return too_many_checkpoints(campaign, kept, kMostPhases, file);
  }
  return std::nullopt;
}

void check_work(const Campaign& campaign, const RunSpec& run, const PlannedWork& planned,
                const std::string& file) {
  if (auto problem = excessive_work(campaign, run, planned, file)) {
    throw InputError(*std::move(problem));
  }
}

Seconds trajectory_estimate(const Campaign& campaign) {
  const ExpectedWork work = expected_work(campaign);
  return kTakesTrajectory + work.failures * kTakesFailure + work.checkpoints * kTakesCheckpoint;
}

MostWork most_work(const Campaign& campaign, const RunSpec& run, double trajectories) {
  const ExpectedWork work = expected_work(campaign);
  const Seconds failing = work.failures * kTakesFailure;
  const Seconds saving = work.checkpoints * kTakesCheckpoint;
  MostWork out{.pointer = "/run/trajectories",
               .what = fmt::format("{:.0f} trajectories", trajectories)};
  const auto each = [&](double count, const char* what) {
    return fmt::format("{} {} in {:.0f} trajectories", plain_number(count * trajectories, 2), what,
                       trajectories);
  };
  if (failing >= saving && failing > kTakesTrajectory) {
    out.what = each(work.failures, "failures");
    out.pointer = work.most_frequent ? mode_pointer(run, *work.most_frequent) : "/run/reliability";
  } else if (saving > kTakesTrajectory) {
    out.what = each(work.checkpoints, "checkpoints");
    out.pointer = interval_pointer(campaign);
  }
  return out;
}

}  // namespace lockstep
