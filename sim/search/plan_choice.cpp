#include "sim/search/plan_choice.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace lockstep {
namespace {

struct KeptLimits {
  bool time, power, usd;
  [[nodiscard]] bool all() const { return time && power && usd; }
};
KeptLimits kept(const PlanSpec& spec, const PlanCandidate& candidate, const PlanOutcome& outcome) {
  const std::optional<Watts> watts = power_limit(spec, candidate);
  const PlanLimits& limits = spec.limits;
  return {.time = outcome.finished && (!limits.time || Seconds{outcome.time_s} <= *limits.time),
          .power = !watts || Watts{outcome.peak_w} <= *watts,
          .usd = !limits.usd || outcome.usd <= *limits.usd};
}

PlanChances chances_of(const PlanSpec& spec, const PlanCandidate& candidate,
                       const std::vector<PlanOutcome>& samples) {
  PlanChances sum{.time = 0, .power = 0, .usd = 0, .all = 0};
  for (const PlanOutcome& sample : samples) {
    const KeptLimits keeps = kept(spec, candidate, sample);
    sum.time += keeps.time ? 1 : 0;
    sum.power += keeps.power ? 1 : 0;
    sum.usd += keeps.usd ? 1 : 0;
    sum.all += keeps.all() ? 1 : 0;
  }
  const auto n = static_cast<double>(samples.size());
  return {.time = sum.time / n, .power = sum.power / n, .usd = sum.usd / n, .all = sum.all / n};
}

constexpr std::size_t kMoney = 1;  // of plan_measures()
std::array<double, 3> medians_of(const PlanResult& result) {
  return {result.expected.time_s, result.expected.usd, result.expected.energy_j};
}

/// No worse in anything, and better in something; money counts where all have prices.
bool dominates(const PlanResult& a, const PlanResult& b, bool priced) {
  const std::array<double, 3> of_a = medians_of(a), of_b = medians_of(b);
  bool better = false;
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    if (i == kMoney && !priced) continue;
    if (of_a[i] > of_b[i]) return false;
    better = better || of_a[i] < of_b[i];
  }
  return better;
}

double PlanOutcome::* goal_number(PlanGoal goal) {
  switch (goal) {
    case PlanGoal::time:
      return &PlanOutcome::time_s;
    case PlanGoal::energy:
      return &PlanOutcome::energy_j;
    case PlanGoal::gpus:
      return &PlanOutcome::gpus;
    case PlanGoal::money:
      break;
  }
  return &PlanOutcome::usd;
}

/// What is least in the best: by the goal; of as many GPUs the faster ones.
std::pair<double, double> worth(const PlanOutcome& outcome, PlanGoal goal) {
  return {outcome.*goal_number(goal), goal == PlanGoal::gpus ? outcome.time_s : 0};
}

/// The most that it exceeds a limit by, in steps of 1 %, as less is nothing to decide by; 0: none
/// of them. What does not finish exceeds any.
double excess(const PlanSpec& spec, const PlanCandidate& candidate, const PlanOutcome& expected) {
  if (!expected.finished) return INFINITY;
  const PlanLimits& limits = spec.limits;
  const std::optional<Watts> watts = power_limit(spec, candidate);
  double most = 1;
  if (limits.time) most = std::max<double>(most, Seconds{expected.time_s} / *limits.time);
  if (watts) most = std::max<double>(most, Watts{expected.peak_w} / *watts);
  if (limits.usd) most = std::max(most, expected.usd / *limits.usd);
  return std::round(std::log(most) / std::log(1.01));
}

/// How often each candidate is the best of those that keep the limits in one and the same world.
void count_best(const PlanSpec& spec, PlanReport& report,
                const std::vector<std::size_t>& possible) {
  for (std::size_t s = 0; s < spec.samples; ++s) {
    PlanResult* best = nullptr;
    std::pair<double, double> least;
    for (const std::size_t c : possible) {
      const PlanOutcome& sample = report.results[c].samples[s];
      if (!kept(spec, spec.candidates[c], sample).all()) continue;
      if (best != nullptr && worth(sample, spec.goal) >= least) continue;
      best = &report.results[c];
      least = worth(sample, spec.goal);
    }
    if (best != nullptr) best->best_share += 1.0 / spec.samples;
  }
}

}  // namespace

std::optional<Watts> power_limit(const PlanSpec& spec, const PlanCandidate& candidate) {
  if (candidate.rented || !spec.limits.power) return candidate.power_limit;
  if (!candidate.power_limit) return spec.limits.power;
  return std::min(*spec.limits.power, *candidate.power_limit);
}

void choose(const PlanSpec& spec, PlanReport& report) {
  std::vector<std::size_t> possible;
  for (std::size_t c = 0; c < report.results.size(); ++c) {
    if (report.results[c].model.impossible.empty()) possible.push_back(c);
  }
  for (const std::size_t c : possible) {
    PlanResult& result = report.results[c];
    result.chances = chances_of(spec, spec.candidates[c], result.samples);
    std::vector<PlanOutcome> given_up;
    std::ranges::copy_if(result.samples, std::back_inserter(given_up),
                         [](const PlanOutcome& sample) { return !sample.finished; });
    result.unfinished =
        static_cast<double>(given_up.size()) / static_cast<double>(result.samples.size());
    if (!given_up.empty()) result.given_up = mean_outcome(given_up);
    result.on_front = std::ranges::none_of(possible, [&](std::size_t other) {
      return dominates(report.results[other], result, spec.all_priced());
    });
  }
  count_best(spec, report, possible);
  // Likelier to keep the limits; where none is, by less beyond them; then better by the goal.
  const auto nearer = [&](std::size_t a, std::size_t b) {
    const PlanResult &of_a = report.results[a], &of_b = report.results[b];
    if (of_a.chances.all != of_b.chances.all) return of_a.chances.all > of_b.chances.all;
    const double by_a = excess(spec, spec.candidates[a], of_a.expected);
    const double by_b = excess(spec, spec.candidates[b], of_b.expected);
    if (by_a != by_b) return by_a < by_b;
    return worth(of_a.expected, spec.goal) < worth(of_b.expected, spec.goal);
  };
  for (const std::size_t c : possible) {
    const PlanResult& result = report.results[c];
    const bool least =
        !report.choice || worth(result.expected, spec.goal) <
                              worth(report.results[*report.choice].expected, spec.goal);
    if (result.chances.all >= spec.limits.confidence && least) report.choice = c;
    if (!report.nearest || nearer(c, *report.nearest)) report.nearest = c;
  }
}

}  // namespace lockstep
