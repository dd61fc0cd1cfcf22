#include "sim/run/summary.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cmath>
#include <mutex>
#include <numeric>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <utility>

#include <boost/math/special_functions/gamma.hpp>

#include "sim/core/random.hpp"
#include "sim/core/thread_leave.hpp"

namespace lockstep {
namespace {

double percentile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(below);
  return sorted[below] * (1 - part) + sorted[above] * part;
}

double seconds(RunTime t) { return to_seconds(t).base_units(); }

}  // namespace

double student_quantile(std::size_t freedom) {
  assert(freedom >= 1);
  if (freedom == 1) return 12.706204736174705;  // tan(0.475 pi)
  if (freedom == 2) return 4.302652729749464;   // 0.95 sqrt(2 / (1 - 0.95^2))
  const double z = normal_quantile(0.975), n = static_cast<double>(freedom);
  const double z2 = z * z;
  return z * (1 + (z2 + 1) / (4 * n) + ((5 * z2 + 16) * z2 + 3) / (96 * n * n) +
              (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * n * n * n));
}

SampleMean sample_mean(std::span<const double> values) {
  SampleMean out;
  if (values.empty()) return out;
  const auto n = static_cast<double>(values.size());
  for (const double value : values) out.mean += value / n;
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  out.low = percentile(sorted, 0.05);
  out.median = percentile(sorted, 0.5);
  out.high = percentile(sorted, 0.95);
  if (values.size() < 2) return out;
  double squares = 0;
  for (const double value : values) squares += (value - out.mean) * (value - out.mean);
  out.half_width = student_quantile(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  return out;
}

SampleMean sample_ratio(std::span<const double> parts, std::span<const double> wholes) {
  assert(parts.size() == wholes.size());
  std::vector<double> ratios, residuals;
  for (std::size_t i = 0; i < parts.size(); ++i) ratios.push_back(parts[i] / wholes[i]);
  SampleMean out = sample_mean(ratios);
  if (parts.empty()) return out;
  const double whole = std::accumulate(wholes.begin(), wholes.end(), 0.0);
  out.mean = std::accumulate(parts.begin(), parts.end(), 0.0) / whole;
  for (std::size_t i = 0; i < parts.size(); ++i)
    residuals.push_back(parts[i] - out.mean * wholes[i]);
  const double mean_whole = whole / static_cast<double>(wholes.size());
  out.half_width = sample_mean(residuals).half_width / mean_whole;
  return out;
}

MeanTimeToFailure mean_time_to_failure(double wall_s, double interruptions) {
  constexpr double kConfidence = 0.95;
  MeanTimeToFailure out;
  out.interruptions = interruptions;
  if (interruptions > 0) out.mean_s = wall_s / interruptions;
  out.at_least_s = wall_s / boost::math::gamma_p_inv(interruptions + 1, kConfidence);
  return out;
}

RunSummary summarise(const Campaign& campaign, std::span<const TrajectoryResult> results) {
  RunSummary out;
  out.trajectories = results.size();
  const auto n = static_cast<double>(results.size());
  std::vector<double> productive, wall, interruptions;
  std::array<double, kRunBuckets> books{};
  double all = 0;
  for (const FailureMode& mode : campaign.modes) out.modes.push_back({.name = mode.name});
  for (const TrajectoryResult& r : results) {
    const double took = seconds(r.wall);
    wall.push_back(took);
    productive.push_back(seconds(r.buckets[0]));
    interruptions.push_back(r.interruptions);
    all += took;
    for (std::size_t b = 0; b < books.size(); ++b) books[b] += seconds(r.buckets[b]);
    for (std::size_t m = 0; m < out.modes.size(); ++m) {
      out.modes[m].failures += r.failures[m] / n;
      out.modes[m].cost_s += seconds(r.cost[m]) / n;
    }
    out.checkpoints += r.checkpoints / n;
    out.fallbacks += r.fallbacks / n;
    out.site_stops += r.site_stops / n;
    out.site_stopped_s += to_seconds(r.site_stopped).base_units() / n;
    out.site_slowed_s += to_seconds(r.site_slowed).base_units() / n;
    out.machines_missing_s += to_seconds(r.machines_missing).base_units() / n;
    if (r.work == to_run_time(campaign.work)) out.finished += 1 / n;
  }
  for (std::size_t b = 0; b < books.size(); ++b) out.shares[b] = all > 0 ? books[b] / all : 0;
  out.goodput = sample_ratio(productive, wall);
  out.wall_s = sample_mean(wall);
  out.interruptions = sample_mean(interruptions);
  out.mttf = mean_time_to_failure(all, out.interruptions.mean * n);
  return out;
}

namespace {

/// Tells of trajectories on several threads how far they are, and whether to go on.
class SampleReport {
 public:
  SampleReport(const SampleOptions& options, int jobs)
      : options_(options), shares_(static_cast<std::size_t>(jobs)) {}

  [[nodiscard]] bool stopped() const { return stopped_; }
  /// Of the trajectory on thread `job`.
  bool reached(int job, double share) {
    const std::scoped_lock lock(reporting_);
    shares_[static_cast<std::size_t>(job)] = share;
    const double under_way = std::accumulate(shares_.begin(), shares_.end(), 0.0);
    if (options_.under_way && !options_.under_way(done_ + under_way)) stopped_ = true;
    return !stopped_;
  }
  void one_done(int job) {
    const std::scoped_lock lock(reporting_);
    shares_[static_cast<std::size_t>(job)] = 0;
    ++done_;
    if (options_.progress && !options_.progress()) stopped_ = true;
  }

 private:
  const SampleOptions& options_;
  std::mutex reporting_;
  std::atomic<bool> stopped_{false};
  std::vector<double> shares_;
  double done_ = 0;
};

}  // namespace

std::vector<TrajectoryResult> sample(const Campaign& campaign, const SampleOptions& options) {
  std::vector<TrajectoryResult> results;
  const int jobs = std::max(1, options.jobs);
  SampleReport report(options, jobs);
  const ThreadLeave leave(jobs);  // also more than the machine has cores, as somebody may ask for
  tbb::task_arena arena(jobs);
  const auto add = [&](std::size_t count) {
    std::atomic<std::size_t> next{results.size()};
    results.resize(results.size() + count);
    // In order of number, so that what is there when somebody stops it is nearly all of it.
    const auto work = [&](int job) {
      for (std::size_t i; !report.stopped() && (i = next++) < results.size();) {
        bool whole = true;
        results[i] =
            run_trajectory(campaign, static_cast<std::uint32_t>(i), RunDetail::sums,
                           [&](double share) { return whole = report.reached(job, share); });
        if (!whole) results[i] = {};
        if (whole) report.one_done(job);
      }
    };
    arena.execute([&] { tbb::parallel_for(0, jobs, work); });
  };
  add(options.trajectories);
  // Doubling keeps the number of trajectories independent of threads and machine.
  while (options.within > 0 && !report.stopped() && results.size() < options.most) {
    const RunSummary summary = summarise(campaign, results);
    if (summary.goodput.half_width <= options.within) break;
    add(std::min<std::size_t>(results.size(), options.most - results.size()));
  }
  if (report.stopped()) {
    const auto missing = std::ranges::find(results, RunTime{0}, &TrajectoryResult::wall);
    results.erase(missing, results.end());
  }
  return results;
}

std::uint32_t median_trajectory(std::span<const TrajectoryResult> results) {
  assert(!results.empty());
  std::vector<std::pair<double, std::uint32_t>> by_goodput;
  for (const TrajectoryResult& r : results) {
    by_goodput.emplace_back(seconds(r.buckets[0]) / seconds(r.wall),
                            static_cast<std::uint32_t>(by_goodput.size()));
  }
  const auto middle = by_goodput.begin() + static_cast<std::ptrdiff_t>(by_goodput.size() / 2);
  std::ranges::nth_element(by_goodput, middle);
  return middle->second;
}

}  // namespace lockstep
