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

constexpr double kStaysThatLast = 40;
constexpr double kGrowthThatIsNone = 0.1;
constexpr double kMostEnough = 1e9;
constexpr std::size_t kMostSteady = 200'000;  // requests: about a second of simulation

double seconds_of_load(RunTime time) { return to_seconds(time).base_units(); }
double square_of(double x) { return x * x; }
double time_within(double a, double b, double from, double to) {
  return std::max(0.0, std::min(b, to) - std::max(a, from));
}

/// When the last turn that follows request `i` ended; below its arrival: one was refused.
RunTime end_of_conversation(const std::vector<ServedRequest>& requests, std::size_t i) {
  while (requests[i].next >= 0) i = static_cast<std::size_t>(requests[i].next);
  return requests[i].last;
}

bool kept_at_slow_end(const ServingSpec& spec, const ServingReport& report) {
  if (!report.interval) return true;
  const ServingFigures& f = report.figures;
  const double first = f.ttft_s.mean > 0 ? report.interval->ttft_high_s / f.ttft_s.mean : 1;
  const double each = f.tpot_s.mean > 0 ? report.interval->tpot_high_s / f.tpot_s.mean : 1;
  return all_kept(check_objectives(spec.requests, f, tightened(spec.objectives, first, each)));
}

}  // namespace

LoadCourse load_course(const std::vector<ServedRequest>& requests, std::size_t coming) {
  const std::size_t first = coming > 0 ? coming : requests.size();
  LoadCourse out{.enough = requests.size()};
  if (first < 2) return out;
  const double begin = seconds_of_load(requests.front().arrival);
  const double span = seconds_of_load(requests[first - 1].arrival) - begin;
  const double third = span / 3;
  double stays = 0, squares = 0, gaps = 0, middle = 0, last = 0;
  for (std::size_t i = 0; i < first; ++i) {
    const double from = seconds_of_load(requests[i].arrival) - begin;
    if (i > 0) gaps += square_of(seconds_of_load(requests[i].arrival - requests[i - 1].arrival));
    const double to = seconds_of_load(end_of_conversation(requests, i)) - begin;
    if (to <= from) continue;
    stays += to - from;
    squares += square_of(to - from);
    middle += time_within(from, to, third, 2 * third);
    last += time_within(from, to, 2 * third, span);
  }
  if (stays <= 0) return out;
  const double n = static_cast<double>(first), mean = stays / n;
  out.lasts = span >= kStaysThatLast * mean;
  if (span <= 0) return out;
  out.enough = static_cast<std::size_t>(std::min(
      kMostEnough, std::ceil(static_cast<double>(requests.size()) * kStaysThatLast * mean / span)));
  // Where nobody waits for others, the time average over T of what is there, N on average, varies
  // by N E[S^2] / (E[S] T), times how much burstier than a Poisson process requests come.
  const double variation = gaps / (n - 1) / square_of(span / (n - 1)) - 1;
  const double chance = 2 * std::max(1.0, variation) * middle / third * squares / stays / third;
  out.grows = last - middle > std::max(kGrowthThatIsNone * middle, 3 * std::sqrt(chance) * third);
  return out;
}

ServingTrial ServingTrials::run_steady(const std::vector<ServingPool>& pools, double speed) const {
  ServingTrial out = run_load(base_, pools, speed, true);
  if (base_.drawn == nullptr || base_.drawn->rate <= 0) return out;
  const std::size_t most = std::max(base_.requests.size(), kMostSteady);
  while (out.kept && !out.course.steady() && out.requests < most) {
    std::size_t count = 2 * out.requests;
    while (count < out.course.enough) count *= 2;
    ServingSpec longer = base_;
    redraw_requests(longer, std::min(count, most));
    if (reshape_) reshape_(longer);
    // Conversations are whole: a few requests less than asked for may be all that there are.
    if (longer.requests.size() <= out.requests) break;
    out = run_load(std::move(longer), pools, speed, true);
  }
  if (out.course.grows) out.kept = out.surely = false;
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
    return may_be_kept(spec.requests, spec.objectives);
  });
  out.kept = !out.report.stopped && all_kept(out.report.objectives);
  out.surely = out.kept && kept_at_slow_end(spec, out.report);
  out.course = load_course(spec.requests, spec.coming);
  out.requests = spec.requests.size();
  return out;
}

std::string load_length_words(const ServingTrial& trial, std::size_t given, std::string_view what) {
  if (!trial.course.steady()) {
    return fmt::format(
        "The load is too short to judge the {} by: of {} {}, so that a longer one may not keep the "
        "objectives.",
        what, counted(static_cast<double>(trial.requests), "request"),
        trial.course.lasts ? "more and more stay in the system"
                           : "the last comes before 40 times what one stays");
  }
  if (trial.requests <= given) return {};
  return fmt::format("The {} is judged by {} of this load, which fewer are over too soon for.",
                     what, counted(static_cast<double>(trial.requests), "request"));
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
