#include "models/accuracy/learn_level.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "sim/core/random.hpp"

using namespace lockstep;

namespace {

constexpr double kPrior = 0.1;
constexpr double kNinetyPercent = 1.6449;  // of a normal variable, in deviations

std::vector<LevelWitness> two_jobs() {
  return {{"a", 0.1, 0.9}, {"b", 0.04, 0.7}, {"a", 0.12, 0.9}};
}

}  // namespace

TEST_CASE("learn_level: no steps give the prior") {
  const LevelPosterior none = learn_level({}, kPrior);
  CHECK(none.mean == 0);
  CHECK(none.deviation == doctest::Approx(kPrior));
  CHECK(none.jobs == 0);
}

TEST_CASE("learn_level: one step moves the level by prior over prior and noise") {
  // Noise and prior alike, and a step that misses by both: half of it is believed. Student's errors
  // of four degrees say five sevenths of what normal ones would.
  const LevelNoise noise{.job = kPrior, .repeat = 0};
  const LevelPosterior half = learn_level(std::vector<LevelWitness>{{"a", 0.2, 1}}, kPrior, noise);
  CHECK(half.mean == doctest::Approx(0.1));
  CHECK(half.least_squares == doctest::Approx(0.1));
  CHECK(half.deviation == doctest::Approx(kPrior / std::sqrt(1 + 5.0 / 7)));
  // A step that kernels decide nothing of teaches nothing about them.
  const LevelPosterior blind = learn_level(std::vector<LevelWitness>{{"a", 0.2, 0}}, kPrior, noise);
  CHECK(blind.mean == 0);
  CHECK(blind.deviation == doctest::Approx(kPrior));
}

TEST_CASE("learn_level: the order of steps is irrelevant, to the last bit") {
  std::vector<LevelWitness> steps = two_jobs();
  const LevelPosterior forward = learn_level(steps, kPrior);
  std::ranges::reverse(steps);
  const LevelPosterior back = learn_level(steps, kPrior);
  CHECK(forward.mean == back.mean);
  CHECK(forward.deviation == back.deviation);
  CHECK(forward.jobs == 2);
}

TEST_CASE("learn_level: a job that is repeated narrows by the noise of repeats alone") {
  const LevelNoise noise{.job = 0.1, .repeat = 0.02};
  std::vector<LevelWitness> steps{{"a", 0.1, 1}};
  const double once = learn_level(steps, kPrior, noise).deviation;
  steps.resize(1000, steps.front());
  const double often = learn_level(steps, kPrior, noise).deviation;
  CHECK(often < once);
  // The limit: the misfit of the job stays.
  CHECK(often == doctest::Approx(1 / std::sqrt(1 / 0.01 + 5.0 / 7 / 0.01)).epsilon(1e-3));
  CHECK(learn_level(std::vector<LevelWitness>{{"a", 0.1, 1}, {"b", 0.1, 1}}, kPrior, noise)
            .deviation < often);
}

TEST_CASE("learn_level: a step that others contradict counts for less, steps that agree do not") {
  const auto taught = [](std::vector<double> ratios) {
    std::vector<LevelWitness> steps;
    for (const double ratio : ratios) steps.push_back({std::to_string(steps.size()), ratio, 1});
    return learn_level(steps, kPrior);
  };
  const LevelPosterior odd = taught({0, 0, 0.6});
  CHECK(odd.mean < 0.5 * odd.least_squares);
  CHECK(odd.mean > 0);
  CHECK(odd.deviation == taught({0.1, 0.1, 0.1}).deviation);
  const LevelPosterior agreed = taught({0.4, 0.4, 0.4});
  CHECK(agreed.mean > 0.9 * agreed.least_squares);
}

TEST_CASE("learn_level: the interval holds the true level in 90 % of draws") {
  constexpr int kDraws = 500, kSteps = 5;
  const LevelNoise noise;
  int covered = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    RandomStream stream({.seed = 18, .trajectory = static_cast<std::uint32_t>(draw)});
    const auto normal = [&] {
      return normal_quantile((static_cast<double>(stream.bits() >> 12) + 0.5) / 0x1p52);
    };
    const double level = kPrior * normal();
    std::vector<LevelWitness> steps;
    for (int i = 0; i < kSteps; ++i) {
      const double share = 0.6 + 0.1 * i;
      double squares = 0;
      for (int k = 0; k < 4; ++k) squares += std::pow(normal(), 2);
      const double misfit = noise.job * normal() / std::sqrt(squares / 4);
      // Every job twice.
      for (int repeat = 0; repeat < 2; ++repeat) {
        steps.push_back(
            {std::to_string(i), share * level + misfit + noise.repeat * normal(), share});
      }
    }
    const LevelPosterior found = learn_level(steps, kPrior);
    covered += std::abs(found.mean - level) <= kNinetyPercent * found.deviation ? 1 : 0;
  }
  CHECK(covered >= 0.86 * kDraws);
  CHECK(covered <= 0.94 * kDraws);
}
