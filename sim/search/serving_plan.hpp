/// Which machines serve a load within its objectives: the least of each candidate, on one pool and
/// on two, with spares, and which of them to take.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/search/size_serving.hpp"

namespace lockstep {

/// What is least in the best of those that keep the objectives.
enum class ServingPlanGoal : std::uint8_t { gpus, money };
inline constexpr std::array<std::string_view, 2> kServingPlanGoals{"gpus", "money"};

/// One kind of machine; its scenario's pools say the engine.
struct ServingCandidate {
  std::string name, about;
  ServingSpec base;
  std::string pointer;  ///< where it stands in the file
};

/// Lengths and rates over which one pool and two are compared; all empty: no map.
struct ServingMapSpec {
  std::vector<double> input, output, rate;
  int requests = 1000;  ///< of each cell

  [[nodiscard]] bool any() const { return !input.empty(); }
};

struct ServingPlanSpec {
  std::string file, about;
  ServingPlanGoal goal = ServingPlanGoal::gpus;
  bool one_pool = true, two_pools = true;
  ServingSpace space;
  std::optional<ServingFailures> failures;
  ServingMapSpec map;
  std::vector<ServingCandidate> candidates;
  std::vector<std::string> assumptions;
};

/// Whether a plan is for a service: its scenario, or that of a candidate, has "serving".
bool is_serving_plan(const JsonCursor& root);
/// Throws InputError.
ServingPlanSpec read_serving_plan(const JsonCursor& root, const PresetStore& presets);
nlohmann::ordered_json serving_plan_schema();

/// A candidate on one pool or on two.
struct ServingOption {
  std::size_t candidate = 0;
  bool two_pools = false;
  SizedService sized{};
  std::vector<int> spares{};  ///< replicas of each pool
  int spare_gpus = 0;
  /// USD per million tokens of answers, spares included; none: no prices.
  std::optional<double> usd_per_million{};
  std::optional<MoneyOf> billed{};  ///< what that is of

  [[nodiscard]] int gpus() const { return sized.best.gpus() + spare_gpus; }
};

/// The least GPUs of both ways for one load of the map; 0: it cannot.
struct ServingMapCell {
  double input = 0, output = 0, rate = 0;
  int one_pool = 0, two_pools = 0;
};

struct ServingPlanReport {
  std::vector<ServingOption> options;  ///< of each candidate one pool, then two
  std::optional<std::size_t> choice;
  std::vector<ServingTrial> curve;  ///< the choice with fewer and more replicas, few first
  std::vector<ServingMapCell> map;  ///< of the chosen candidate
  int trials = 0;
  bool interrupted = false;
};

struct ServingPlanOptions {
  int jobs = 0;  ///< at once; 0: one per core. The answer is the same for any number.
  std::function<void(std::size_t done, std::size_t most)> progress{};
  std::function<bool()> interrupted{};
};
ServingPlanReport evaluate_serving_plan(const ServingPlanSpec& spec,
                                        const ServingPlanOptions& options);

}  // namespace lockstep
