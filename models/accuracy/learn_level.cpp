#include "models/accuracy/learn_level.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

namespace lockstep {

LevelPosterior learn_level(std::span<const LevelWitness> steps, double prior,
                           const LevelNoise& noise) {
  assert(prior > 0);
  // Sorted by job and then by value, so that sums do not depend on the order given.
  std::map<std::string_view, std::vector<const LevelWitness*>> jobs;
  for (const LevelWitness& step : steps) jobs[step.job].push_back(&step);
  double precision = 1 / (prior * prior), weighted = 0;
  for (auto& [job, runs] : jobs) {
    std::ranges::sort(runs, {}, [](const LevelWitness* w) { return w->log_ratio; });
    double ratio = 0, share = 0;
    for (const LevelWitness* run : runs) {
      ratio += run->log_ratio;
      share += run->share;
    }
    const auto count = static_cast<double>(runs.size());
    ratio /= count;
    share /= count;
    const double variance = noise.job * noise.job + noise.repeat * noise.repeat / count;
    precision += share * share / variance;
    weighted += share * ratio / variance;
  }
  return {.mean = weighted / precision,
          .deviation = std::sqrt(1 / precision),
          .jobs = static_cast<int>(jobs.size())};
}

}  // namespace lockstep
