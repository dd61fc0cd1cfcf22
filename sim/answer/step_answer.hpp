/// The answer to a scenario of one training step, and its JSON.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/accuracy/prediction_interval.hpp"
#include "models/layer/memory.hpp"
#include "sim/answer/hash_answer.hpp"
#include "sim/answer/member_names.hpp"
#include "sim/power/step_power.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/fabric_what_if.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {

/// What starts of transfers that are not exactly together do to a step.
struct JitterAnswer {
  Seconds most;          ///< how late a transfer starts at most
  double aligned_s = 0;  ///< the step without it
};

/// A scenario's JSON, with what --set changed in it; null where an answer is not of a file.
using WrittenScenario = std::shared_ptr<const nlohmann::ordered_json>;

struct RunResult {
  Scenario scenario;
  StepReport report;
  MemoryVerdict memory;
  std::optional<StepPower> power{};              ///< where the scenario asks for it
  std::optional<PredictionInterval> interval{};  ///< of the step time
  /// Where switches can hold back its transfers, or somebody asks what does.
  std::optional<FabricWhatIf> full_fabric{};
  std::vector<FabricWhatIf> relief{};    ///< where asked for
  std::optional<JitterAnswer> jitter{};  ///< where asked for
  std::optional<HashAnswer> hash{};      ///< where hashes decide; its band is of step_s
  WrittenScenario written{};             ///< for the answer to hold
};

/// What is asked of a step beside what its scenario says.
struct StepQuestion {
  bool timeline = false;     ///< keep it; a scenario with "power" has it anyway
  bool draw_fabric = false;  ///< keep the use of every link
  bool link_rates = false;   ///< keep what classes of links carry over time
  /// Simulate the step on switches that never limit too, where they can limit at all.
  bool full_fabric = true;
  bool explain_fabric = false;  ///< which links hold it back, and what relieves them
  Seconds jitter{};             ///< how late a transfer starts at most
  StepProgress progress{};      ///< told of each simulation, one after the other
};

/// Reads nothing and simulates nothing: what a step's answer begins with. `written` as in
/// RunResult.
RunResult step_to_answer(Scenario scenario, WrittenScenario written);

/// The one place where a step's answer is put together: simulates the step, and what is asked
/// beside it, and fills in report, fabric, jitter, interval and power; the hash only of the draw
/// that it is of.
void answer_step(const StepQuestion& asked, const StepIntervals& intervals, RunResult& result);

/// The draw that an answer is of, where hashes decide anything.
std::optional<HashAnswer> draw_of(const FabricSpec& fabric, int nodes, const NodeSpec& node);

/// Makes the interval that published runs give around a step's time hold its band too.
void widen(PredictionInterval& interval, const std::optional<StepBand>& band, double step_s);

/// Throws InputError that names the nearest change that fits, where the job does not.
void require_memory(const RunResult& result);

/// Cost of the whole training; nothing when the scenario gives no training.tokens.
struct TrainingCost {
  double seconds = 0;
  double gpu_hours = 0;
  std::optional<double> usd;  ///< when a price is known
};
std::optional<TrainingCost> training_cost(const RunResult& result);

/// One measured value that the scenario states, against the prediction.
struct ExpectationCheck {
  std::string what;  ///< "step time", "MFU"
  double expected = 0;
  double predicted = 0;
  double error = 0;  ///< predicted / expected - 1
  bool within = false;
};
std::vector<ExpectationCheck> check_expectation(const RunResult& result);

/// A step and what it draws: of training, or an iteration of reinforcement learning.
struct PoweredStep {
  const Scenario& scenario;
  const StepPower& power;
  double step_s = 0;
  double tokens = 0;
  Flops model_flops;
};
/// Requires result.power.
PoweredStep powered_step(const RunResult& result);

/// Energy, carbon and money of a stretch of training at the step's pace: of training.tokens where
/// the scenario has them, else of one step.
struct EnergyBill {
  Usage usage;
  CostReport cost;
  bool whole_training = false;
};
EnergyBill energy_bill(const PoweredStep& step);
/// Requires result.power.
EnergyBill energy_bill(const RunResult& result);

/// The JSON's "power". Requires result.power.
nlohmann::ordered_json power_json(const RunResult& result);

/// The kind of node on which memory is tightest.
const NodeSpec& tightest_node(const Scenario& scenario);
/// Useful work of a pool of nodes at the pool's own peak.
double pool_mfu(const PoolReport& pool, double step_s);

/// The largest bucket that a change can attack. No change is simulated: what one gains may be less,
/// and another bucket's change may gain more.
struct LargestLoss {
  const BucketInfo* bucket = nullptr;  ///< null: nothing is lost
  double share = 0;                    ///< of the step
};
LargestLoss largest_loss(const StepReport& report);

/// Share of each bucket in the step, in the order of buckets(). Adds up to 1.
std::vector<double> bucket_shares(const BucketTimes& seconds);

/// The result with units in the names, at most 12 significant digits, in a fixed order.
/// Every member is a row of step_fields(); of these `only`, where they are given.
nlohmann::ordered_json result_json(const RunResult& result, const MemberNames* only = nullptr);

}  // namespace lockstep
