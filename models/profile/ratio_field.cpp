#include "models/profile/ratio_field.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace lockstep {
namespace {

constexpr double kRadius = 3;  // octaves
/// As much as a point half an octave inside of the radius.
constexpr double kPriorWeight = 0.004;
constexpr double kSame = 1e-9;

double distance(const RatioPlace& a, const RatioPlace& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

}  // namespace

void RatioField::add(const RatioPlace& place, double ratio) {
  assert(ratio > 0);
  points_.push_back({place, std::log(ratio)});
}

void RatioField::finish() {
  if (points_.empty()) return;
  std::vector<double> logs;
  logs.reserve(points_.size());
  for (const Point& p : points_) logs.push_back(p.log_ratio);
  const auto middle = logs.begin() + static_cast<std::ptrdiff_t>(logs.size() / 2);
  std::ranges::nth_element(logs, middle);
  median_ = *middle;
}

double RatioField::at(const RatioPlace& place, std::size_t left_out) const {
  if (points_.empty()) return 1;
  double weights = kPriorWeight, sum = 0;
  double here = 0, count = 0;  // of points at the very place
  for (const Point& p : points_) {
    if (left_out != kNone && distance(p.place, points_[left_out].place) < kSame) continue;
    const double d = distance(p.place, place);
    if (d >= kRadius) continue;
    if (d < kSame) {
      here += p.log_ratio;
      ++count;
      continue;
    }
    const double root = (kRadius - d) / (kRadius * d);
    weights += root * root;
    sum += root * root * (p.log_ratio - median_);
  }
  return std::exp(count > 0 ? here / count : median_ + sum / weights);
}

}  // namespace lockstep
