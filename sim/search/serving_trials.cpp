#include "sim/search/serving_trials.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "models/base/number_text.hpp"
#include "sim/scenario/serving_load.hpp"

namespace lockstep {

int ServingTrial::gpus() const {
  int sum = 0;
  for (const ServingPool& pool : pools) sum += pool.replicas * pool.gpus();
  return sum;
}

namespace {

constexpr std::size_t kMostSteady = 200'000;  // requests: about a second of simulation

/// The objectives where steps take what they take at the slow end of the interval: times are
/// longer in proportion, with queues as they are.
std::vector<ObjectiveCheck> slow_end_of(ServingSpec spec, const ServingReport& report) {
  if (!report.interval) return {};
  const ServingFigures& f = report.figures;
  const double first = f.ttft_s.mean > 0 ? report.interval->ttft_high_s / f.ttft_s.mean : 1;
  const double each = f.tpot_s.mean > 0 ? report.interval->tpot_high_s / f.tpot_s.mean : 1;
  spec.objectives = tightened(spec.objectives, first, each);
  for (ServingPopulation& of : spec.populations) {
    of.objectives = tightened(of.objectives, first, each);
  }
  std::vector<ObjectiveCheck> out = check_objectives(spec, f);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double asked = report.objectives[i].limit;
    if (out[i].limit > 0) out[i].value *= asked / out[i].limit;
    out[i].limit = asked;
  }
  return out;
}

}  // namespace

ServingTrial ServingTrials::run_steady(const std::vector<ServingPool>& pools, double speed) const {
  ServingTrial out = run_load(base_, pools, speed, true);
  if (!comes_at_a_rate(base_)) return out;
  const std::size_t most = std::max(base_.requests.size(), kMostSteady);
  while (out.kept && !out.report.course.steady() && out.requests < most) {
    std::size_t count = 2 * out.requests;
    while (count < out.report.course.enough) count *= 2;
    ServingSpec longer = base_;
    redraw_requests(longer, std::min(count, most));
    if (reshape_) reshape_(longer);
    // Conversations are whole: a few requests less than asked for may be all that there are.
    if (longer.requests.size() <= out.requests) break;
    out = run_load(std::move(longer), pools, speed, true);
  }
  if (out.report.course.grows) out.kept = out.surely = false;
  return out;
}

ServingTrial ServingTrials::run_load(ServingSpec spec, const std::vector<ServingPool>& pools,
                                     double speed, bool while_kept) const {
  spec.pools = pools;
  if (pools.size() == 1) spec.pools[0].name = "both";
  if (speed != 1) {
    for (ServedRequest& r : spec.requests) r.arrival = to_run_time(to_seconds(r.arrival) / speed);
  }
  ++count_;
  ServingTrial out{.pools = spec.pools, .speed = speed, .report = {}};
  constexpr std::size_t kLooks = 64;  // in a load
  std::size_t looked = 0;
  out.report = simulate_serving(spec, [&](std::size_t ended) {
    if (stopped()) return false;
    if (!while_kept || (ended - looked) * kLooks < spec.requests.size()) return true;
    looked = ended;
    return may_be_kept(spec);
  });
  out.kept = !out.report.stopped && all_kept(out.report.objectives);
  out.requests = spec.requests.size();
  if (comes_at_a_rate(spec) && out.kept) {
    out.coming_share = std::min(1.0, out.report.course.coming_s / out.report.figures.span_s);
  }
  if (out.kept) out.slow_end = slow_end_of(std::move(spec), out.report);
  out.surely = out.kept && all_kept(out.slow_end);
  return out;
}

std::string load_length_words(const ServingTrial& trial, std::size_t given, std::string_view what) {
  if (!trial.report.course.steady()) {
    return fmt::format(
        "The load is too short to judge the {} by: of {} {}, so that a longer one may not keep the "
        "objectives.",
        what, counted(static_cast<double>(trial.requests), "request"),
        trial.report.course.grows ? "more and more stay in the system"
                                  : "the last comes before 40 times what one stays");
  }
  if (trial.requests <= given) return {};
  return fmt::format("The {} is judged by {} of this load: fewer would be over too soon.", what,
                     counted(static_cast<double>(trial.requests), "request"));
}

int least_that_keeps(int most, bool most_first, const std::function<bool(int)>& keeps) {
  if (most < 1) return 0;
  if (most_first && !keeps(most)) return 0;
  int fails = 0, holds = 1;
  while (holds < most && !keeps(holds)) {
    fails = holds;
    holds = std::min(2 * holds, most);
  }
  if (holds == most && !most_first && !keeps(most)) return 0;
  while (holds - fails > 1) {
    const int middle = fails + (holds - fails) / 2;
    (keeps(middle) ? holds : fails) = middle;
  }
  return holds;
}

double greatest_that_keeps(double floor, double guess, const std::function<bool(double)>& keeps) {
  constexpr double kFirstGrowth = 1.05, kGrowth = 2, kMost = 1000, kClose = 1.01;
  double holds = 0, fails = 0, at = std::max(floor, guess);
  for (double growth = kFirstGrowth; holds == 0 || fails == 0;
       growth = std::min(kGrowth, growth * growth)) {
    (keeps(at) ? holds : fails) = at;
    if (fails == at && at <= floor) return 0;
    if (holds == at && at >= kMost) return at;
    if (holds > 0 && fails > 0) break;
    at = holds > 0 ? holds * growth : std::max(floor, fails / growth);
  }
  while (fails > holds * kClose) {
    const double middle = (holds + fails) / 2;
    (keeps(middle) ? holds : fails) = middle;
  }
  return holds;
}

}  // namespace lockstep
