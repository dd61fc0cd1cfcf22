#include "models/kernels/ratio_field.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace lockstep {
namespace {

constexpr double kRadius = 3;  // octaves
/// As much as a point half an octave inside of the radius.
constexpr double kPriorWeight = 0.004;
constexpr double kSame = 1e-9;
/// As near as this a point is believed as it is: 7 % in one size.
constexpr double kAlike = 0.1;  // octaves
/// A point that others miss by more says no more about them: a stray one decides nothing.
constexpr double kWorstMiss = 0.5;
constexpr std::array kTrusts{0.0, 0.25, 0.5, 0.75, 1.0};
/// Where nothing says how well a point predicts another. Assumed: over the published profiles a
/// random point predicts others within 1.5 octaves best with 1/4 to 3/4 of its deviation, and those
/// beyond the radius best with none.
constexpr double kUntriedNear = 0.5, kUntriedFar = 0;
/// As many points are predicted from the others, evenly over all.
constexpr std::size_t kMostProbes = 256;
/// Up to here trust is found again for each point that is left out.
constexpr std::size_t kFewPoints = 64;

double distance(const RatioPlace& a, const RatioPlace& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

/// Requires at least one.
double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// What a place takes from its neighbours, with `centre` far from all.
double blended(double weights, double sum, double centre) {
  return (sum + kPriorWeight * centre) / (weights + kPriorWeight);
}

/// The trust that predicts best; `untried` where there is nothing to predict. `predict`: with full
/// trust, NaN for a probe that cannot be.
template <class Probes, class Predict>
double best_trust(const Probes& probes, double untried, Predict predict) {
  double best = untried, least = std::numeric_limits<double>::infinity();
  for (const double trust : kTrusts) {
    double missed = 0;
    bool tried = false;
    for (const auto& probe : probes) {
      const double full = predict(probe);
      if (std::isnan(full)) continue;
      missed += std::min(std::abs(trust * full - probe.log_ratio), kWorstMiss);
      tried = true;
    }
    if (tried && missed < least) {
      best = trust;
      least = missed;
    }
  }
  return best;
}

}  // namespace

void RatioField::add(const RatioPlace& place, double ratio, Reach reach) {
  assert(ratio > 0);
  points_.push_back({place, std::log(ratio), reach});
}

void RatioField::finish() {
  if (points_.empty()) return;
  median_ = median_beyond(points_.front().place, 0, kNone);
  probes_ = probes(kNone);
  trust_ = trust_of(probes_);
}

bool RatioField::is_out(const Point& point, std::size_t left_out) const {
  return left_out != kNone && distance(point.place, points_[left_out].place) < kSame;
}

RatioField::Neighbours RatioField::neighbours(const RatioPlace& place, std::size_t left_out,
                                              bool without_here) const {
  Neighbours out;
  for (const Point& p : points_) {
    const double d = distance(p.place, place);
    if (d >= kRadius || (without_here && d < kSame) || is_out(p, left_out)) continue;
    if (p.reach == Reach::place && d >= kSame) continue;
    out.nearest = std::min(out.nearest, d);
    if (d < kSame) {
      out.here += p.log_ratio;
      ++out.count;
      continue;
    }
    const double root = (kRadius - d) / (kRadius * d);
    out.weights += root * root;
    out.sum += root * root * p.log_ratio;
  }
  return out;
}

double RatioField::median_beyond(const RatioPlace& place, double octaves,
                                 std::size_t left_out) const {
  std::vector<double> logs;
  for (const Point& p : points_) {
    if (p.reach == Reach::place || is_out(p, left_out)) continue;
    if (distance(p.place, place) >= octaves) logs.push_back(p.log_ratio);
  }
  return logs.empty() ? std::numeric_limits<double>::quiet_NaN() : median_of(logs);
}

std::vector<RatioField::Probe> RatioField::probes(std::size_t left_out) const {
  std::vector<Probe> out;
  const std::size_t stride = (points_.size() + kMostProbes - 1) / kMostProbes;
  for (std::size_t i = 0; i < points_.size(); i += stride) {
    const Point& p = points_[i];
    if (p.reach == Reach::place || is_out(p, left_out)) continue;
    out.push_back({i, p.log_ratio, neighbours(p.place, left_out, true),
                   median_beyond(p.place, kSame, left_out),
                   median_beyond(p.place, kRadius, left_out)});
  }
  return out;
}

RatioField::Trust RatioField::trust_of(const std::vector<Probe>& probes) {
  Trust out;
  out.far = best_trust(probes, kUntriedFar, [](const Probe& p) { return p.far_median; });
  out.near = best_trust(probes, kUntriedNear, [&](const Probe& p) {
    return blended(p.others.weights, p.others.sum, out.far * p.median);
  });
  return out;
}

RatioField::Trust RatioField::trust_without(std::size_t left_out) const {
  if (left_out == kNone) return trust_;
  if (points_.size() <= kFewPoints) return trust_of(probes(left_out));
  std::vector<Probe> rest = probes_;
  std::erase_if(rest, [&](const Probe& p) { return is_out(points_[p.number], left_out); });
  return trust_of(rest);
}

double RatioField::at(const RatioPlace& place, std::size_t left_out) const {
  if (points_.empty()) return 1;
  const Neighbours around = neighbours(place, left_out, false);
  if (around.count > 0) return std::exp(around.here / around.count);
  const double median =
      left_out == kNone ? median_ : median_beyond(points_[left_out].place, kSame, left_out);
  if (std::isnan(median)) return 1;  // nothing is left
  const Trust trust = trust_without(left_out);
  const double alike = std::max(0.0, 1 - around.nearest / kAlike);
  return std::exp((trust.near + (1 - trust.near) * alike) *
                  blended(around.weights, around.sum, trust.far * median));
}

}  // namespace lockstep
