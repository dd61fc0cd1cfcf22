#include "models/accuracy/learn_level.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

namespace lockstep {
namespace {

constexpr double kDegrees = 4;  ///< of freedom: heavy tails, and yet a variance

/// What the steps of one job say together.
struct JobWitness {
  double log_ratio, share, variance;
};

/// Sorted by job and then by value, so that sums do not depend on the order given.
std::vector<JobWitness> by_job(std::span<const LevelWitness> steps, const LevelNoise& noise) {
  std::map<std::string_view, std::vector<const LevelWitness*>> jobs;
  for (const LevelWitness& step : steps) jobs[step.job].push_back(&step);
  std::vector<JobWitness> out;
  out.reserve(jobs.size());
  for (auto& [job, runs] : jobs) {
    std::ranges::sort(runs, {}, [](const LevelWitness* w) { return w->log_ratio; });
    JobWitness all{};
    for (const LevelWitness* run : runs) {
      all.log_ratio += run->log_ratio;
      all.share += run->share;
    }
    const auto count = static_cast<double>(runs.size());
    all.log_ratio /= count;
    all.share /= count;
    all.variance = noise.job * noise.job + noise.repeat * noise.repeat / count;
    out.push_back(all);
  }
  return out;
}

/// The mean where every job has this precision.
template <class Precision>
double weighted_mean(const std::vector<JobWitness>& jobs, double prior,
                     const Precision& precision_of) {
  double precision = 1 / (prior * prior), weighted = 0;
  for (const JobWitness& job : jobs) {
    const double own = precision_of(job);
    precision += own * job.share * job.share;
    weighted += own * job.share * job.log_ratio;
  }
  return weighted / precision;
}

}  // namespace

double informative_variance(double scale_squared) {
  return (kDegrees + 3) / (kDegrees + 1) * scale_squared;
}

LevelPosterior learn_level(std::span<const LevelWitness> steps, double prior,
                           const LevelNoise& noise) {
  assert(prior > 0);
  constexpr int kMostIterations = 200;
  constexpr double kSettled = 1e-12;
  const std::vector<JobWitness> jobs = by_job(steps, noise);
  LevelPosterior out{.jobs = static_cast<int>(jobs.size())};
  out.least_squares =
      weighted_mean(jobs, prior, [](const JobWitness& job) { return 1 / job.variance; });
  out.mean = out.least_squares;
  for (int i = 0; i < kMostIterations; ++i) {
    const double next = weighted_mean(jobs, prior, [&](const JobWitness& job) {
      const double missed = job.log_ratio - job.share * out.mean;
      return (kDegrees + 1) / (kDegrees * job.variance + missed * missed);
    });
    const double moved = std::abs(next - out.mean);
    out.mean = next;
    if (moved < kSettled) break;
  }
  double precision = 1 / (prior * prior);
  for (const JobWitness& job : jobs) {
    precision += job.share * job.share / informative_variance(job.variance);
  }
  out.deviation = std::sqrt(1 / precision);
  return out;
}

}  // namespace lockstep
