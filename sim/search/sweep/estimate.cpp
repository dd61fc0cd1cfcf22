#include "sim/search/sweep/estimate.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numbers>
#include <numeric>
#include <set>

namespace lockstep {
namespace {

/// Two-sided 95 % points of Student's t by degrees of freedom from 1; beyond them, at most the
/// last.
constexpr std::array kStudent{12.706, 4.303, 3.182, 2.776, 2.571,
                              2.447,  2.365, 2.306, 2.262, 2.228};

double student(std::size_t degrees) { return kStudent[std::min(degrees, kStudent.size()) - 1]; }

/// How far the sum of so many others is off so many means, nineteen times of twenty.
double spread_of_sum(std::span<const double> tried_s, double mean, double others) {
  double squares = 0;
  for (const double each : tried_s) squares += (each - mean) * (each - mean);
  const auto n = static_cast<double>(tried_s.size());
  const double deviation = std::sqrt(squares / (n - 1));
  return student(tried_s.size() - 1) * deviation * std::sqrt(others * others / n + others);
}

}  // namespace

std::vector<std::size_t> points_to_try(std::size_t points, std::size_t most) {
  const std::size_t count = std::min(points, most);
  std::vector<std::size_t> out;
  std::set<std::size_t> known;
  for (double place = 0.5; out.size() < count; place += std::numbers::phi) {
    const double part = place - std::floor(place);
    const auto point = static_cast<std::size_t>(part * static_cast<double>(points));
    if (known.insert(point).second) out.push_back(point);
  }
  return out;
}

SweepEstimate estimate_sweep(std::span<const double> tried_s, std::size_t points, int jobs) {
  assert(!tried_s.empty() && tried_s.size() <= points && jobs >= 1);
  const double sum = std::accumulate(tried_s.begin(), tried_s.end(), 0.0);
  const double longest = std::ranges::max(tried_s);
  const double mean = sum / static_cast<double>(tried_s.size());
  const auto others = static_cast<double>(points - tried_s.size());
  const double cores = std::min<double>(jobs, static_cast<double>(points));
  const auto soonest = [&](double work) { return std::max(work / cores, longest); };
  const auto latest = [&](double work) { return work / cores + longest * (1 - 1 / cores); };
  const double work = sum + others * mean;
  SweepEstimate out{.tried = tried_s.size(),
                    .seconds_per_point = mean,
                    .seconds = (soonest(work) + latest(work)) / 2,
                    .low_s = soonest(work),
                    .high_s = latest(work)};
  if (others == 0) return out;
  out.low_s = soonest(sum);
  out.high_s.reset();
  if (tried_s.size() == 1) return out;
  const double spread = spread_of_sum(tried_s, mean, others);
  out.low_s = soonest(std::max(sum, work - spread));
  out.high_s = latest(work + spread);
  return out;
}

}  // namespace lockstep
