#include "sim/serving/load_course.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace lockstep {
namespace {

constexpr double kStaysThatLast = 40;
constexpr double kGrowthThatIsNone = 0.1;
constexpr double kMostEnough = 1e9;
constexpr std::size_t kThirdThatTells = 10;  // fewest requests for a meaningful mean
constexpr double kMuchLonger = 1.5;

double seconds_of_load(RunTime time) { return to_seconds(time).base_units(); }
double square_of(double x) { return x * x; }
double time_within(double a, double b, double from, double to) {
  return std::max(0.0, std::min(b, to) - std::max(a, from));
}

/// When the last turn of the conversation of request `i` ended. A turn that was refused gives a
/// time before the request's arrival.
RunTime end_of_conversation(const std::vector<ServedRequest>& requests, std::size_t i) {
  while (requests[i].next >= 0) i = static_cast<std::size_t>(requests[i].next);
  return requests[i].last;
}

struct Stay {
  double from, to;
};

struct MeanStay {
  double mean, variance;  ///< `variance` is that of the mean
};
MeanStay mean_stay(std::span<const Stay> stays) {
  const auto n = static_cast<double>(stays.size());
  double sum = 0, squares = 0;
  for (const Stay& s : stays) sum += s.to - s.from;
  for (const Stay& s : stays) squares += square_of(s.to - s.from - sum / n);
  return {.mean = sum / n, .variance = squares / (n - 1) / n};
}

/// Whether requests, in order of arrival, end at a much lower rate than they arrive, and the last
/// third of them stays much longer than the first, by more than chance explains. Without waiting
/// the rates and the stays are alike, however short the load.
bool falls_behind(const std::vector<Stay>& stays) {
  const std::size_t third = stays.size() / 3, quarter = stays.size() / 4;
  if (third < kThirdThatTells) return false;
  const std::span<const Stay> all(stays);
  const MeanStay before = mean_stay(all.first(third)), after = mean_stay(all.last(third));
  const double longer = after.mean - before.mean;
  if (longer < (kMuchLonger - 1) * before.mean) return false;
  if (longer < 3 * std::sqrt(before.variance + after.variance)) return false;
  std::vector<double> ends;
  ends.reserve(stays.size());
  for (const Stay& s : stays) ends.push_back(s.to);
  std::ranges::sort(ends);
  // Rates are those of the middle half, because the first and the last requests distort them.
  const double coming = stays[3 * quarter].from - stays[quarter].from;
  return ends[3 * quarter] - ends[quarter] > kMuchLonger * coming;
}

}  // namespace

LoadCourse load_course(const std::vector<ServedRequest>& requests, std::size_t coming) {
  const std::size_t first = coming > 0 ? coming : requests.size();
  LoadCourse out{.enough = requests.size()};
  if (first < 2) return out;
  const double begin = seconds_of_load(requests.front().arrival);
  const double span = seconds_of_load(requests[first - 1].arrival) - begin;
  out.coming_s = span * static_cast<double>(first) / static_cast<double>(first - 1);
  const double third = span / 3;
  double stays = 0, squares = 0, gaps = 0, middle = 0, last = 0;
  std::vector<Stay> each;
  for (std::size_t i = 0; i < first; ++i) {
    const double from = seconds_of_load(requests[i].arrival) - begin;
    if (i > 0) gaps += square_of(seconds_of_load(requests[i].arrival - requests[i - 1].arrival));
    const double to = seconds_of_load(end_of_conversation(requests, i)) - begin;
    if (to <= from) continue;
    each.push_back({from, to});
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
  // Without queueing, the average over T of the number of requests present, N in the mean, has the
  // variance N E[S^2] / (E[S] T), times the burstiness of arrivals over a Poisson process.
  const double variation = gaps / (n - 1) / square_of(span / (n - 1)) - 1;
  const double chance = 2 * std::max(1.0, variation) * middle / third * squares / stays / third;
  out.grows = last - middle > std::max(kGrowthThatIsNone * middle, 3 * std::sqrt(chance) * third);
  // If the load is that short, the long stays of a growing queue would raise the variance and hide
  // the growth.
  out.grows = out.grows || (!out.lasts && falls_behind(each));
  return out;
}

}  // namespace lockstep
