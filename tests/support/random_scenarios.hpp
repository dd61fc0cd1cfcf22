/// Random small jobs on random clusters, for what must hold in every run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "sim/core/random.hpp"
#include "sim/laws/random_job.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep::test {

using lockstep::RandomFabrics;
using RandomScenarioOptions = JobDrawOptions;

/// Draws scenarios until one fits together. `text` is what a failing test prints.
class RandomScenarios {
 public:
  RandomScenarios(std::uint64_t seed, const RandomScenarioOptions& options)
      : random_({.seed = seed, .purpose = 7}), options_(options) {}

  Scenario next();
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  RandomStream random_;
  RandomScenarioOptions options_;
  std::string text_;
};

/// The run of weeks of a scenario that has one.
RunSpec run_of(const std::string& text);

/// What must hold in a scenario; `text` is its file.
using ScenarioLaw = std::function<void(const Scenario&, const std::string& text)>;
/// Holds a law against the scenarios that failed it once (failed_scenarios.cpp), then against
/// `count` new ones. What a seed draws changes with the generator: the text of a scenario that
/// fails belongs there, with what was wrong, once that is mended.
void hold(std::string_view law, std::uint64_t seed, int count, const RandomScenarioOptions& options,
          const ScenarioLaw& check);

}  // namespace lockstep::test
