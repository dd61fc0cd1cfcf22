#include "sim/run/optimum.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <utility>

#include "sim/core/random.hpp"

namespace lockstep {

Seconds young_interval(Seconds d, Seconds m) {
  return Seconds{std::sqrt(2 * d.base_units() * m.base_units())};
}

Seconds daly_interval(Seconds d, Seconds m) {
  if (d >= 2 * m) return m;
  const double x = d / (2 * m);
  return young_interval(d, m) * (1 + std::sqrt(x) / 3 + x / 9) - d;
}

double daly_time_ratio(Seconds t, Seconds d, Seconds r, Seconds m) {
  return m / t * portable_exp(r / m) * (portable_exp((t + d) / m) - 1);
}

double expected_ettr(Seconds t, Seconds write, Seconds restart, Seconds m) {
  return (1 - (restart + t / 2) / m) / (1 + write / t);
}

Seconds mean_time_between_stops(std::span<const FailureMode> modes) {
  double rate = 0;
  for (const FailureMode& mode : modes) {
    if (mode.stops_job()) rate += mode.components / mode.mean_time.base_units();
  }
  assert(rate > 0);
  return Seconds{1 / rate};
}

namespace {

/// Goodput by interval, each simulated once.
class Curve {
 public:
  Curve(Campaign campaign, SampleOptions options)
      : campaign_(std::move(campaign)), options_(std::move(options)) {
    options_.within = 0;
  }
  const IntervalPoint& at(Seconds asked) {
    const Seconds interval = std::max(asked, campaign_.step);
    const RunTime key = to_run_time(interval);
    if (const auto known = points_.find(key); known != points_.end()) return known->second;
    campaign_.tiers.front().interval = interval;
    const RunSummary summary = summarise(campaign_, sample(campaign_, options_));
    const IntervalPoint point{interval, summary.goodput.mean, summary.goodput.half_width};
    return points_.emplace(key, point).first->second;
  }
  [[nodiscard]] std::vector<IntervalPoint> points() const {
    std::vector<IntervalPoint> all;
    all.reserve(points_.size());
    for (const auto& [key, point] : points_) all.push_back(point);
    return all;
  }

 private:
  Campaign campaign_;
  SampleOptions options_;
  std::map<RunTime, IntervalPoint> points_;
};

/// Of those that are no shorter than `least` and can be told to a job; there is one.
IntervalPoint best_from(const std::vector<IntervalPoint>& points, Seconds least,
                        const std::function<bool(Seconds)>& can_be) {
  const auto worth = [&](const IntervalPoint& point) {
    return point.interval >= least && can_be(point.interval) ? point.goodput : -1.0;
  };
  return *std::ranges::max_element(points, {}, worth);
}

/// The whole number of steps that is nearest, but no shorter than `least`: a job writes between two
/// steps.
Seconds whole_steps(Seconds interval, Seconds step, Seconds least) {
  if (step <= Seconds{}) return std::max(interval, least);
  const double nearest = std::max(1.0, std::round(interval / step));
  const double enough = std::ceil(least / step * (1 - 1e-12));
  return step * std::max(nearest, enough);
}

}  // namespace

IntervalOptimum optimise_interval(const Campaign& campaign, const SampleOptions& options,
                                  Seconds sustained) {
  const Seconds d = campaign.tiers.front().blocks, m = mean_time_between_stops(campaign.modes);
  assert(d > Seconds{});
  const Seconds young = young_interval(d, m), daly = daly_interval(d, m);
  Curve curve(campaign, options);
  IntervalOptimum out;
  out.young = curve.at(young);
  out.daly = curve.at(daly);
  out.given = curve.at(campaign.tiers.front().interval);
  const auto whole = [&](Seconds interval) {
    return whole_steps(interval, campaign.step, sustained);
  };
  const auto can_be = [&](Seconds interval) {
    return interval == out.given.interval || interval == whole(interval);
  };
  constexpr int kHalvings = 2, kDoublings = 4;  // small intervals take long to simulate
  // A checkpoint that has not finished holds the next one up.
  const Seconds least = std::max(sustained, d + campaign.tiers.front().finishes);
  (void)curve.at(whole(daly));
  for (int i = -2 * kHalvings; i <= 2 * kDoublings; ++i) {
    const Seconds interval = daly * std::exp2(i / 2.0);
    if (interval >= least) (void)curve.at(whole(interval));
  }
  // Twice the neighbourhood of the best, ever finer: the curve is flat there, and unimodal.
  double factor = std::numbers::sqrt2;
  constexpr int kRefinements = 4;
  for (int refinement = 0; refinement < kRefinements; ++refinement) {
    const std::vector<IntervalPoint> points = curve.points();
    const Seconds best = best_from(points, sustained, can_be).interval;
    factor = std::sqrt(factor);
    (void)curve.at(whole(best / factor));
    (void)curve.at(whole(best * factor));
  }
  out.curve = curve.points();
  out.best = best_from(out.curve, sustained, can_be);
  out.least = sustained;
  out.limited = std::ranges::any_of(out.curve, [&](const IntervalPoint& point) {
    return point.interval < sustained && point.goodput > out.best.goodput;
  });
  return out;
}

}  // namespace lockstep
