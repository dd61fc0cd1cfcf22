#include "sim/search/serving_trials.hpp"

#include <algorithm>
#include <utility>

namespace lockstep {

int ServingTrial::gpus() const {
  int sum = 0;
  for (const ServingPool& pool : pools) sum += pool.replicas * pool.gpus();
  return sum;
}

namespace {

bool kept_at_slow_end(const ServingSpec& spec, const ServingReport& report) {
  if (!report.interval) return true;
  const ServingFigures& f = report.figures;
  const double first = f.ttft_s.mean > 0 ? report.interval->ttft_high_s / f.ttft_s.mean : 1;
  const double each = f.tpot_s.mean > 0 ? report.interval->tpot_high_s / f.tpot_s.mean : 1;
  return all_kept(check_objectives(spec.requests, f, tightened(spec.objectives, first, each)));
}

}  // namespace

ServingTrial ServingTrials::run(const std::vector<ServingPool>& pools, double speed) const {
  ServingSpec spec = base_;
  spec.pools = pools;
  if (pools.size() == 1) spec.pools[0].name = "both";
  if (speed != 1) {
    for (ServedRequest& r : spec.requests) r.arrival = to_run_time(to_seconds(r.arrival) / speed);
  }
  ++count_;
  ServingTrial out{.pools = spec.pools, .speed = speed, .report = {}};
  out.report = simulate_serving(spec, [&](std::size_t) { return !stopped(); });
  out.kept = !out.report.stopped && all_kept(out.report.objectives);
  out.surely = out.kept && kept_at_slow_end(spec, out.report);
  return out;
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

double greatest_that_keeps(double floor, const std::function<bool(double)>& keeps) {
  constexpr double kGrowth = 2, kMost = 1000, kClose = 1.01;
  if (!keeps(floor)) return 0;
  double holds = floor, fails = floor;
  while (fails <= holds && holds < kMost) {
    const double next = holds * kGrowth;
    (keeps(next) ? holds : fails) = next;
  }
  while (fails > holds * kClose) {
    const double middle = (holds + fails) / 2;
    (keeps(middle) ? holds : fails) = middle;
  }
  return holds;
}

}  // namespace lockstep
