/// What somebody wants to know before they sign: a training, its limits, the clusters that could do
/// it, and what is uncertain about all of them.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/search/distribution.hpp"
#include "sim/search/plan_regions.hpp"

namespace lockstep {

/// What is known only roughly. Each is a factor on what the models or the file say.
enum class PlanInput : std::uint8_t {
  efficiency,
  power,
  failure_rate,
  recovery,
  price,
  tariff,
  value_loss
};
constexpr std::size_t kPlanInputs = 7;
using PlanFactors = std::array<double, kPlanInputs>;

/// An input as files and people name it, and what is taken where a file says nothing. For the
/// efficiency that is each candidate's own: what the models miss runs like it by.
struct PlanInputInfo {
  PlanInput input;
  std::string_view name;   ///< as JSON says it: "failure_rate"
  std::string_view title;  ///< as a person reads it: "Failure rate"
  std::string_view about;  ///< what the factor multiplies
  Distribution otherwise;
  std::string_view source;  ///< of `otherwise`
};
std::span<const PlanInputInfo, kPlanInputs> plan_inputs();

/// What a plan is held against; nothing: no limit.
struct PlanLimits {
  std::optional<Seconds> time;
  std::optional<Watts> power;  ///< of the site, at its highest reading
  std::optional<double> usd;
  double confidence = 0.9;  ///< in that share of the samples a candidate has to keep all of them
};

/// What is least in the best plan that keeps the limits.
enum class PlanGoal : std::uint8_t { money, time, energy, gpus };
inline constexpr std::array<std::string_view, 4> kPlanGoals{"money", "time", "energy", "gpus"};

/// How much is trained, and why as much.
struct PlanTraining {
  double tokens = 0;
  std::string law;  ///< that the tokens come from, or that judges them; empty: none
  std::vector<std::string> words;
};

struct PlanPhase;

/// A way of doing it: one cluster of one size, or several one after the other.
struct PlanCandidate {
  std::string name, about;
  Scenario scenario;  ///< with "power" and training_tokens
  RunSpec run;
  bool rented = false;               ///< pays by the GPU-hour; else owns the machines
  bool tuned = false;                ///< its layout is searched for; else it is the scenario's
  bool spares_by_share = false;      ///< hot spares are a share of its nodes; else the run's own
  std::optional<Watts> power_limit;  ///< of its own site
  std::array<Distribution, kPlanInputs> inputs;
  /// What published runs like its own layout say of the efficiency; none: the file says it.
  std::shared_ptr<const StepIntervals> intervals{};
  std::string pointer;   ///< where it stands in the file
  std::string family{};  ///< what it is called in every region; empty: the plan has no regions
  std::shared_ptr<const PlanPlace> place{};  ///< the same
  double price_factor = 1;                   ///< of its region
  std::string refused{};  ///< why it may not train there; it is told, and not evaluated
  /// What comes after its training, in this order: refinement, elsewhere perhaps.
  std::vector<std::shared_ptr<const PlanPhase>> then{};
};

/// A training that begins when the one before it is done and its weights are there.
struct PlanPhase {
  PlanCandidate of;  ///< where and on what, with its own tokens; none after it
  /// Over which weights and states of the phase before come; none: they are there.
  std::optional<WideAreaLink> way;
  bool kept = false;  ///< it goes on with the machines of the phase before, which come in lots
};

/// Whether there is an answer about its money: a rent, or any price of owning.
bool is_priced(const PlanCandidate& candidate);

struct PlanSpec {
  std::string file, about;
  PlanTraining training;
  PlanLimits limits;
  PlanGoal goal = PlanGoal::money;
  std::uint32_t samples = 400;  ///< of the Monte Carlo
  std::uint64_t seed = 1;
  std::vector<PlanCandidate> candidates;
  std::vector<PlanRegion> regions;                ///< none: nobody says where
  std::optional<PlanData> data;                   ///< that moves between them
  std::optional<std::chrono::sys_seconds> start;  ///< local time; none: answers count days
  std::vector<std::string> assumptions;           ///< of the plan; each candidate has its own

  /// Money is told of those that have prices, and decides only where all have.
  [[nodiscard]] bool any_priced() const { return std::ranges::any_of(candidates, is_priced); }
  [[nodiscard]] bool all_priced() const { return std::ranges::all_of(candidates, is_priced); }
};

}  // namespace lockstep
