#include "sim/site/pace_table.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "models/power/gpu_power.hpp"
#include "sim/power/step_power.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

constexpr int kPacePoints = 7;

/// The lowest share of its limit that each card of the job can keep.
double lowest_share(const Scenario& scenario) {
  double lowest = 0;
  for (std::size_t p = 0; p < scenario.pool_count(); ++p) {
    const GpuSpec& gpu = scenario.node_of(p).gpu;
    lowest = std::max(lowest, std::min<double>(1.0, lowest_cap(gpu) / gpu.power_limit));
  }
  return lowest;
}

Scenario capped_to(Scenario scenario, double share) {
  const auto cap = [share](GpuSpec& gpu) {
    const Watts at = std::max(lowest_cap(gpu), share * gpu.power_limit);
    gpu = capped(gpu, std::min(at, gpu.power_limit));
  };
  cap(scenario.node.gpu);
  for (NodePool& pool : scenario.pools) cap(pool.node.gpu);
  return scenario;
}

PacePoint between(const PacePoint& a, const PacePoint& b, double weight) {
  return {.share = a.share + weight * (b.share - a.share),
          .speed = a.speed + weight * (b.speed - a.speed),
          .it = a.it + weight * (b.it - a.it)};
}

}  // namespace

PaceTable::PaceTable(std::vector<PacePoint> points) : points_(std::move(points)) {
  assert(!points_.empty());
  for (std::size_t i = 1; i < points_.size(); ++i) {
    assert(points_[i].share < points_[i - 1].share && points_[i].it <= points_[i - 1].it);
  }
}

PacePoint PaceTable::at(double share) const {
  for (std::size_t i = 1; i < points_.size(); ++i) {
    const PacePoint &above = points_[i - 1], &below = points_[i];
    if (share < below.share) continue;
    return between(above, below, (above.share - share) / (above.share - below.share));
  }
  return points_.back();
}

std::optional<PacePoint> PaceTable::under(Watts it) const {
  if (it >= points_.front().it) return points_.front();
  for (std::size_t i = 1; i < points_.size(); ++i) {
    const PacePoint &above = points_[i - 1], &below = points_[i];
    if (it < below.it) continue;
    return between(above, below, (above.it - it) / (above.it - below.it));
  }
  return std::nullopt;
}

PaceTable pace_table(const Scenario& scenario) {
  assert(scenario.power);
  const double lowest = lowest_share(scenario);
  std::vector<PacePoint> points;
  double full_s = 0;
  for (int i = 0; i < kPacePoints; ++i) {
    const double share = 1 - (1 - lowest) * i / (kPacePoints - 1);
    if (i > 0 && share >= points.back().share) break;
    const Scenario job = i == 0 ? scenario : capped_to(scenario, share);
    const StepReport step = simulate_step(job, {.record_timeline = true, .keep_actors = true});
    const StepPower power = step_power(job, step);
    if (i == 0) full_s = step.step_s;
    PacePoint point{.share = share,
                    .speed = full_s / step.step_s,
                    .it = power.levels.training.facility / power.pue};
    if (i > 0) {
      point.it = std::min(point.it, points.back().it);
      point.speed = std::min(point.speed, points.back().speed);
    }
    points.push_back(point);
  }
  return PaceTable(std::move(points));
}

}  // namespace lockstep
