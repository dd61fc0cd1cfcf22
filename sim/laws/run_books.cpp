#include "sim/laws/run_books.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <numeric>
#include <string_view>
#include <vector>

#include "sim/run/failure_source.hpp"
#include "sim/run/summary.hpp"
#include "sim/run/trajectory.hpp"
#include "sim/site/site_plan.hpp"

namespace lockstep {
namespace {

// --- books -------------------------------------------------------------------------------------

double as_number(RunTime time) { return static_cast<double>(time); }

RunTime booked(const TrajectoryResult& result, RunBucket bucket) {
  return result.buckets[static_cast<std::size_t>(bucket)];
}

void hold_run_time(const Campaign& campaign, const TrajectoryResult& result, LawBook& book) {
  const RunTime all = std::accumulate(result.buckets.begin(), result.buckets.end(), RunTime{0});
  book.same("ns in all buckets, and the wall time", as_number(all), as_number(result.wall), 0);
  book.holds("no bucket is below 0",
             std::ranges::all_of(result.buckets, [](RunTime t) { return t >= 0; }));
  book.same("ns that advance training, and the work done",
            as_number(booked(result, RunBucket::productive)), as_number(result.work), 0);
  book.at_most("work done", as_number(result.work), as_number(to_run_time(campaign.work)), 0);
  if (campaign.horizon > 0) {
    book.at_most("wall time", as_number(result.wall), as_number(campaign.horizon), 0);
  }
  std::array<RunTime, kRunBuckets> sums{};
  for (std::size_t i = 0; i < result.phases.size(); ++i) {
    const RunTime end = i + 1 < result.phases.size() ? result.phases[i + 1].begin : result.wall;
    sums[static_cast<std::size_t>(result.phases[i].bucket)] += end - result.phases[i].begin;
  }
  book.holds("phases add up to the buckets", sums == result.buckets);
}

/// Drawn until then, by mode.
std::vector<std::uint32_t> drawn(const Campaign& campaign, std::uint32_t number, RunTime until) {
  std::vector<std::uint32_t> counts(campaign.modes.size());
  FailureSource source(campaign, number, until);
  while (source.next_at() < until) ++counts[source.take().mode];
  return counts;
}

/// All that fails is met, but for what happens in the last phase: nobody looks at it any more.
void hold_failures(const Campaign& campaign, std::uint32_t number, const TrajectoryResult& result,
                   LawBook& book) {
  const std::vector<std::uint32_t> all = drawn(campaign, number, result.wall);
  const std::vector<std::uint32_t> early =
      drawn(campaign, number, result.phases.empty() ? 0 : result.phases.back().begin);
  for (std::size_t m = 0; m < campaign.modes.size(); ++m) {
    const std::string& name = campaign.modes[m].name;
    book.at_most(name + ": failures met, of those drawn", result.failures[m], all[m], 0);
    book.at_most(name + ": failures drawn before the last phase", early[m], result.failures[m], 0);
  }
}

/// A job that goes on without replicas also restarts when their nodes come back, and one whose site
/// gave no power when it does again, which nothing that failed is blamed for.
void hold_costs(const Campaign& campaign, const TrajectoryResult& result, LawBook& book) {
  book.same("events, stops of the site and interruptions",
            static_cast<double>(result.events.size()) + result.site_stops, result.interruptions, 0);
  std::vector<RunTime> cost(campaign.modes.size());
  for (const RunEvent& event : result.events) cost[event.mode] += event.cost;
  book.holds("costs of events add up to those of causes", cost == result.cost);
  RunTime recovering = 0;
  for (const RunBucket bucket : {RunBucket::lost, RunBucket::detection, RunBucket::diagnosis,
                                 RunBucket::restart, RunBucket::repair_wait}) {
    recovering += booked(result, bucket);
  }
  const RunTime blamed = std::accumulate(cost.begin(), cost.end(), RunTime{0});
  book.at_most("ns that failures are blamed for", as_number(blamed), as_number(recovering), 0);
  if (campaign.width_speed.size() == 1 && !campaign.pace) {
    book.same("ns of recovery, all of them blamed on something", as_number(blamed),
              as_number(recovering), 0);
  }
}

// --- better runs -------------------------------------------------------------------------------

/// Of the site's plant, what is behind it, and its path of power.
std::vector<UnitBank*> banks_of(RunSpec& run) {
  std::vector<UnitBank*> out;
  if (!run.site) return out;
  if (run.site->cooling) {
    out.push_back(&run.site->cooling->bank);
    for (CoolingStage& stage : run.site->cooling->loop) out.push_back(&stage.bank);
  }
  for (PowerPart& part : run.site->path) out.push_back(&part.bank);
  return out;
}

/// What somebody may improve about a run; `apply` says false where it has nothing of the kind.
struct BetterRun {
  std::string_view name;
  bool (*apply)(RunSpec& run);
};
constexpr std::array kBetterRuns{
    BetterRun{"half of the failures",
              [](RunSpec& run) {
                for (ReliabilityMode& of : run.reliability.modes) {
                  of.mode.mean_time = 2 * of.mode.mean_time;
                }
                return true;
              }},
    BetterRun{"storage of twice the speed",
              [](RunSpec& run) {
                for (CheckpointSpec& spec : run.checkpoints) {
                  if (!spec.storage) continue;
                  spec.storage->write = 2 * spec.storage->write;
                  spec.storage->read = 2 * spec.storage->read;
                }
                return true;
              }},
    BetterRun{"restarts in half of the time",
              [](RunSpec& run) {
                run.recovery.restarts = 0.5 * run.recovery.restarts;
                return true;
              }},
    BetterRun{"half of the time to find out",
              [](RunSpec& run) {
                RecoverySpec& recovery = run.recovery;
                recovery.detects_crash = 0.5 * recovery.detects_crash;
                recovery.detects_hang = 0.5 * recovery.detects_hang;
                recovery.diagnoses = 0.5 * recovery.diagnoses;
                return true;
              }},
    BetterRun{"never the wrong node",
              [](RunSpec& run) {
                run.recovery.misdiagnosed = 0;
                return true;
              }},
    BetterRun{"repairs in half of the time",
              [](RunSpec& run) {
                run.spares.repair = 0.5 * run.spares.repair;
                return true;
              }},
    BetterRun{"four spares more",
              [](RunSpec& run) {
                // They draw power while they wait, of which a site may have no more.
                if (run.site) return false;
                run.spares.hot += 4;
                return true;
              }},
    BetterRun{"half more from the grid",
              [](RunSpec& run) {
                if (!run.site) return false;
                for (SiteHour& hour : run.site->hours) hour.limit = 1.5 * hour.limit;
                return true;
              }},
    BetterRun{"a battery of twice the size",
              [](RunSpec& run) {
                if (!run.site || !run.site->battery) return false;
                run.site->battery->energy_mwh *= 2;
                run.site->battery->power = 2 * run.site->battery->power;
                return true;
              }},
    BetterRun{"eight kelvin less outside",
              [](RunSpec& run) {
                if (!run.site || !run.site->cooling) return false;
                for (SiteHour& hour : run.site->hours) {
                  if (hour.outside_celsius) *hour.outside_celsius -= 8;
                }
                return true;
              }},
    BetterRun{"units of plant and path that fail half as often",
              [](RunSpec& run) {
                const std::vector<UnitBank*> banks = banks_of(run);
                for (UnitBank* const bank : banks) bank->mean_time = 2 * bank->mean_time;
                return !banks.empty();
              }},
    BetterRun{"one more unit of what feeds and cools nodes together",
              [](RunSpec& run) {
                if (!run.site) return false;
                // Not of rows, over which nodes are spread: more of them fail more often.
                for (PowerPart& part : run.site->path) part.bank.units += part.nodes == 0 ? 1 : 0;
                if (run.site->cooling) {
                  ++run.site->cooling->bank.units;
                  for (CoolingStage& stage : run.site->cooling->loop) ++stage.bank.units;
                }
                return run.site->cooling || !run.site->path.empty();
              }},
};

/// Beside training, an upload at twice the rate drags twice as much for half as long; both come out
/// of a simulated step, and differ by its rounding: of 2,000 random runs by 4e-9 of the goodput at
/// most. Where links are full it can be more, as fair shares have anomalies: that is named.
constexpr double kUploadAnomaly = 1e-8, kLargestUploadAnomaly = 1e-4;

std::vector<double> goodputs(const Campaign& campaign, std::uint32_t trajectories) {
  std::vector<double> out;
  for (std::uint32_t number = 0; number < trajectories; ++number) {
    const TrajectoryResult result = run_trajectory(campaign, number);
    out.push_back(static_cast<double>(result.buckets[0]) / static_cast<double>(result.wall));
  }
  return out;
}

}  // namespace

Campaign sited_campaign(const RunWork& work, const RunSpec& run) {
  return plan_sited(work, run, LotSpares::up_to).plan.campaign;
}

void hold_books(const Campaign& campaign, std::uint32_t number, LawBook& book) {
  const TrajectoryResult result = run_trajectory(campaign, number, RunDetail::timeline);
  hold_run_time(campaign, result, book);
  hold_failures(campaign, number, result, book);
  hold_costs(campaign, result, book);
}

/// One pair of trajectories may still lose by it, where a failure comes just before a checkpoint
/// instead of after. The mean may be below 0 by chance: twice the half width of its 95 % interval
/// in one of 30,000.
void hold_better_runs(const RunWork& work, const RunSpec& run, std::uint32_t trajectories,
                      LawBook& book) {
  const std::vector<double> before = goodputs(sited_campaign(work, run), trajectories);
  for (const BetterRun& better : kBetterRuns) {
    RunSpec changed = run;
    if (!better.apply(changed)) continue;
    std::vector<double> gains = goodputs(sited_campaign(work, changed), trajectories);
    for (std::size_t i = 0; i < gains.size(); ++i) gains[i] -= before[i];
    const SampleMean gain = sample_mean(gains);
    // Of 1 - goodput, which is compared where it is 1: as shares of the whole.
    const double chance = 2 * gain.half_width + kUploadAnomaly;
    book.no_worse(fmt::format("goodput lost by {}", better.name), 1 - gain.mean, 1, chance,
                  std::max(chance, kLargestUploadAnomaly));
  }
}

}  // namespace lockstep
