// Laws of a run of weeks: its books, and what makes it better.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/laws/law_subject.hpp"
#include "sim/laws/law_tables.hpp"
#include "sim/laws/run_books.hpp"
#include "sim/run/plan_campaign.hpp"
#include "sim/run/trajectory.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

bool is_run(const LawSubject& subject, LawBook& book) {
  if (subject.kind() == AnswerKind::run) return true;
  book.does_not_apply("no run of weeks");
  return false;
}

void hold_run_books(LawSubject& subject, LawBook& book) {
  if (!is_run(subject, book)) return;
  const Campaign campaign = sited_campaign(subject.work(), *subject.read().run);
  for (std::uint32_t number = 0; number < (subject.deep() ? 50 : 5); ++number) {
    subject.count();
    hold_books(campaign, number, book);
  }
}

void hold_improvements(LawSubject& subject, LawBook& book) {
  if (!is_run(subject, book)) return;
  subject.count();
  constexpr std::uint32_t kTrajectories = 40, kTrajectoriesDeep = 400;
  hold_better_runs(subject.work(), *subject.read().run,
                   subject.deep() ? kTrajectoriesDeep : kTrajectories, book);
}

/// Of modes at constant rates, failures are a Poisson count: five standard deviations in one of two
/// million.
void hold_failure_rates(LawSubject& subject, LawBook& book) {
  if (!is_run(subject, book)) return;
  const CampaignPlan plan = plan_campaign(subject.work(), *subject.read().run);
  const Json& answer = subject.answer();
  if (!plan.campaign.log.empty()) return book.does_not_apply("failures are those of a log");
  const double wall = answer.at("wall_s").get<double>();
  const double runs = answer.at("trajectories").get<double>();
  for (std::size_t m = 0; m < plan.campaign.modes.size(); ++m) {
    const FailureMode& mode = plan.campaign.modes[m];
    if (mode.shape != 1 || mode.components == 0) continue;
    const double expected = wall * mode.components / mode.mean_time.base_units();
    const double deviation = 5 * std::sqrt(expected / runs) + 1 / runs;
    book.same_of(fmt::format("failures by {}, and its rate", mode.name),
                 answer.at("causes")[m].at("failures").get<double>(), expected, 1, deviation);
  }
  if (book.comparisons() == 0) book.does_not_apply("no failure has a constant rate");
}

/// Where nothing fails, the job waits for its checkpoints and for nothing else.
void hold_undisturbed(LawSubject& subject, LawBook& book) {
  if (!is_run(subject, book)) return;
  const CampaignPlan plan = plan_campaign(subject.work(), *subject.read().run);
  Campaign campaign = plan.campaign;
  campaign.modes.clear();
  campaign.log.clear();
  subject.count();
  const TrajectoryResult run = run_trajectory(campaign, 0, RunDetail::sums);
  const auto seconds = [&](RunBucket bucket) {
    return to_seconds(run.buckets[static_cast<std::size_t>(bucket)]).base_units();
  };
  book.same("interruptions where nothing fails", run.interruptions, 0, 0);
  const double wall = to_seconds(run.wall).base_units();
  const double trains = seconds(RunBucket::productive) + seconds(RunBucket::degraded);
  book.same("training and checkpoints, and the wall time", trains + seconds(RunBucket::checkpoint),
            wall, 1e-12);
  if (campaign.tiers.size() != 1) return;
  // The last interval may have no checkpoint, or one that was not waited for to its end.
  const CheckpointTier& tier = campaign.tiers.front();
  const double blocks = tier.blocks.base_units();
  book.same_of("seconds in checkpoints, and their count times the wait",
               seconds(RunBucket::checkpoint), run.checkpoints * blocks, 1, blocks + 1e-6);
  if (tier.rule) return;
  const double interval = tier.interval.base_units();
  book.same_of("checkpoints, and training over the interval", run.checkpoints, trains / interval, 1,
               1 + 1e-6 * trains / interval);
}

}  // namespace

std::vector<Law> run_laws() {
  return {
      {"books", LawFamily::conservation,
       "Every nanosecond of a run is booked once, every failure met, every recovery blamed.",
       hold_run_books},
      {"better_runs", LawFamily::monotony,
       "Fewer failures, faster storage and repair, more spares, more of a site lose no goodput.",
       hold_improvements},
      {"failure_rates", LawFamily::closed_form,
       "As much fails as the rates say, within what chance allows.", hold_failure_rates},
      {"undisturbed", LawFamily::closed_form,
       "Where nothing fails, a run trains and waits for its checkpoints, as often as said.",
       hold_undisturbed},
  };
}

}  // namespace lockstep
