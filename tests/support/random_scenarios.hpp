/// Random small jobs on random clusters, for what must hold in every run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "sim/core/random.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep::test {

enum class RandomFabrics : std::uint8_t {
  symmetric,  ///< ideal ones, and trees whose packets take every way
  hashed,     ///< trees whose hashed routes tell replicas apart
  every,      ///< all kinds and routings, with planes and faults
};

struct RandomScenarioOptions {
  RandomFabrics fabrics = RandomFabrics::symmetric;
  bool straggler = false;      ///< one GPU is slow
  bool pools = false;          ///< nodes of two kinds
  bool power = false;          ///< "power": a cap, a meter, smoothing
  bool weeks = false;          ///< "run": what fails, checkpoints, recovery, spares
  bool many_replicas = false;  ///< more than the least sample of them, of models of everyday size
  int most_nodes = 64;
};

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
