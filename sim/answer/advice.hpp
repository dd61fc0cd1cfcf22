/// What would help a step most: standard changes to its scenario, each made alone and simulated.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/answer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// A change that a person could make, as --set says it.
struct StandardChange {
  std::string words;              ///< "micro batch 1 -> 2"
  std::vector<std::string> sets;  ///< "batch.micro=2"
  bool other_gpu = false;         ///< another card: errors of two cards do not cancel
};

/// Those that the scenario leaves room for, whether they can be run or not: micro and global batch,
/// tensor, context and pipeline width at the same number of GPUs, virtual stages, schedule,
/// sharding, recomputation, precision, fusions of composed software, rate and number of NICs, full
/// bisection, routing, the next card, a power cap lifted, stragglers replaced.
std::vector<StandardChange> standard_changes(const Scenario& scenario, const PresetStore& presets);

/// A change, and what it does.
struct AdvisedChange {
  StandardChange change;
  double step_s = 0;
  double gain = 0;  ///< of tokens per second and GPU: 0.1 is 10 % more
  /// Between which nine of ten measured gains lie; nothing where no published runs witness it.
  std::optional<double> gain_low{}, gain_high{};
  /// site_limit_w and site_excess_w of the answer; where there is a limit.
  std::optional<double> site_limit_w{}, site_excess_w{};
};

/// A change that cannot be, and why: one line.
struct RefusedChange {
  StandardChange change;
  std::string why;
};

struct Advice {
  std::string file;
  double step_s = 0;                                      ///< as it is
  double tokens_per_s_per_gpu = 0;                        ///< as it is
  std::optional<double> site_limit_w{}, site_excess_w{};  ///< as it is; where there is a limit
  std::vector<AdvisedChange> changes;                     ///< largest gain first
  std::vector<RefusedChange>
      refused;  ///< do not fit in memory, break a rule, or beyond the software
};

/// Simulates the scenario in a text, and each change to it. Throws InputError about the scenario
/// itself, and where it is none of a single step. `done` is told after each simulation: how many,
/// of how many.
Advice advise(const std::string& file, const std::string& text, const PresetStore& presets,
              const Question& question, const std::function<void(std::size_t, std::size_t)>& done);

/// {"file", "step_s", "tokens_per_s_per_gpu", "changes": [{"change", "set", "step_s", "gain",
/// "gain_low", "gain_high"}], "refused": [{"change", "set", "why"}]}.
nlohmann::ordered_json advice_json(const Advice& advice);

}  // namespace lockstep
