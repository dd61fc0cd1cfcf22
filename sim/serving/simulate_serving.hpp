/// A scenario with "serving", simulated: its pools as replicas, its load played.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scenario/serving_spec.hpp"
#include "sim/serving/load_course.hpp"
#include "sim/serving/objectives.hpp"
#include "sim/serving/serving_figures.hpp"
#include "sim/serving/serving_power.hpp"

namespace lockstep {

/// Where GPU time goes.
enum class ServingBucket : std::uint8_t {
  prompts,
  products,
  attention,
  exchange,
  host,
  idle,
  down,  ///< broken, or being started again
};
constexpr std::size_t kServingBuckets = 7;
constexpr std::array<std::string_view, kServingBuckets> kServingBucketNames{
    "prompts", "products", "attention", "exchange", "host", "idle", "down"};

/// A pool over the run.
struct ServingPoolReport {
  std::string name;
  int replicas = 0, gpus = 0;
  double cache_tokens = 0;   ///< of a replica
  double fullest = 0;        ///< share of it that was taken at most
  double weights_bytes = 0;  ///< on a GPU
  double passes = 0, preempted = 0;
  double busy_s = 0;  ///< of all replicas
  double on = 0;      ///< replicas that were switched on, on average
  // Where the cluster has nodes of several kinds.
  std::string node{};                ///< theirs
  std::optional<double> rent_usd{};  ///< of all GPU-hours, where such a GPU has a price
  std::array<double, kServingBuckets> gpu_seconds{};
};

/// Between what nine of ten measurements of such engines and models would lie.
struct ServingInterval {
  double tpot_low_s = 0, tpot_high_s = 0;
  double ttft_low_s = 0, ttft_high_s = 0;
  std::string basis;  ///< what it is read off
};

/// A link that keys and values crossed.
struct ServingLink {
  std::string name;
  double capacity_bytes_per_s = 0;  ///< for payload
  double bytes = 0;
  double share = 0;  ///< of what it could have carried over the run
};

/// Memory behind the caches of replicas, all of its kind together.
struct ServingTier {
  std::string name;  ///< host, disk or remote
  double capacity_bytes = 0;
  double found_share = 0;  ///< of the tokens of prompts
  double loaded_bytes = 0, written_bytes = 0;
  double left_bytes = 0;  ///< of what was written: no longer there
  double held_bytes = 0;  ///< and what is, in the end
};
struct ServingTierReport {
  double gpu_found_share = 0;   ///< of the tokens of prompts
  double recomputed_share = 0;  ///< of them: held behind the GPUs, and worked on again
  std::vector<ServingTier> tiers{};
  double loads = 0;
  double load_s = 0;         ///< from when one is asked for, on average
  double stall_s = 0;        ///< that passes waited for loads and swaps, of all replicas
  double swaps = 0;          ///< of sequences that left a full cache
  double swapped_bytes = 0;  ///< of them, out and back, each copied once
};

/// What requests' adapters took, of all replicas.
struct ServingAdapterReport {
  double requests = 0;    ///< that have one
  double room_bytes = 0;  ///< kept for them on a GPU of the pool that works on prompts
  double loads = 0;       ///< to the GPUs
  double from_storage = 0;
  double load_s = 0;    ///< that replicas waited for loads
  double kernel_s = 0;  ///< that passes took longer
};

/// A training beside the service.
struct BesideJob {
  std::string name, about;
  std::size_t steps = 0;  ///< while requests were served, the last one perhaps a little longer
  double step_s = 0;      ///< their mean
  double alone_s = 0;     ///< of a step with nothing else on the fabric
  [[nodiscard]] double slowdown() const { return alone_s > 0 ? step_s / alone_s : 1; }
};
/// A link that both the service and a training crossed.
struct BesideLink {
  std::string name;
  double capacity_bytes_per_s = 0;
  double share = 0;  ///< of what it could have carried
  double service_bytes = 0, training_bytes = 0;
};
/// A transfer that the other side held back.
struct BesideTransfer {
  std::string job, name;  ///< "service", or the training
  std::uint32_t runs = 1;
  double mean_s = 0, alone_s = 0;  ///< of a run: so, and with its links to itself
  std::string link;                ///< that held it back longest
  std::string cause;               ///< who else put most bytes on it: "training: gradients ..."
  [[nodiscard]] double slowdown() const { return alone_s > 0 ? mean_s / alone_s : 1; }
};
/// A service and trainings on one fabric.
struct ServingBeside {
  ServingFigures alone;         ///< of the service with nothing else on the fabric
  double transfer_alone_s = 0;  ///< that a request waits for its keys and values then
  std::vector<BesideJob> jobs;
  std::vector<BesideLink> links;          ///< where they meet, fullest first
  std::vector<BesideTransfer> transfers;  ///< most slowed first
};

/// What users of one place or kind saw.
struct ServingPopulationReport {
  std::string name;
  double requests = 0;
  ServingFigures figures;  ///< of theirs; without the times between tokens
  double away_s = 0;       ///< on the network, there and back, on average
  double attained = 0;     ///< share of them within their limits
  std::vector<std::pair<std::string, double>> regions{};  ///< share of those served that it served
};

/// Replicas in one place.
struct ServingRegionReport {
  std::string name;
  int replicas = 0, gpus = 0;
  double requests = 0, output_tokens = 0;  ///< served there
  double busy = 0;                         ///< share of the run in passes
  std::optional<double> rent_usd{};
  std::optional<double> energy_j{}, energy_usd{}, tonnes_co2{};
};

struct ServingReport {
  ServingFigures figures;
  std::vector<ServingPoolReport> pools;
  std::vector<ServingPopulationReport> populations{};  ///< where the load has several
  std::vector<ServingRegionReport> regions{};          ///< where the service has several
  std::array<double, kServingBuckets> shares{};        ///< of all GPU time; they add up to 1
  double refused = 0;                                  ///< would not fit in an empty cache
  double shed = 0;                                     ///< found every replica busy
  double gave_up = 0;                                  ///< left by their users while they waited
  double failures = 0;                                 ///< of replicas
  double restarts = 0;                                 ///< of replicas, that were planned
  double restarts_left = 0;     ///< planned too, and still to come when the load was over
  double retried = 0;           ///< requests that a failure or restart sent to another replica
  double found_share = 0;       ///< of the tokens of prompts: those that a replica held already
  double transfer_s = 0;        ///< that a request waited for its keys and values, on average
  double transfer_alone_s = 0;  ///< that it would with the way to itself
  double transferred_bytes = 0;
  std::vector<ServingLink> links;  ///< the fullest on the way between pools, fullest first
  double attained = 0;             ///< share of requests within the objectives
  double goodput = 0;              ///< of them, a second
  std::vector<ObjectiveCheck> objectives;
  /// Whether what requests saw would go on; says something of loads that come at a rate of their
  /// own.
  LoadCourse course;
  bool stopped = false;
  std::optional<ServingInterval> interval;       ///< of mean TPOT and TTFT
  std::optional<ServingPower> power;             ///< where the scenario asks for it
  std::optional<ServingBeside> beside;           ///< where trainings share the fabric
  std::optional<ServingAdapterReport> adapters;  ///< where requests have any
  std::optional<ServingTierReport> tiers;        ///< where memory stands behind the caches
  std::optional<TokenPrice> rent;                ///< where a GPU-hour has a price
};

/// The money of a service, and what it is of.
struct ServingMoney {
  MoneyOf of = MoneyOf::owned;
  TokenPrice price;
};
/// The one that the answer counts; none: nothing has a price.
std::optional<ServingMoney> money_of(const ServingSpec& spec, const ServingReport& report);
/// Owning, or what has a price where the machines have none. Requires a spec with prices.
TokenPrice cost_price(const ServingReport& report);

/// Plays the load on the pools; the requests' times are written into the spec. `go_on` is asked now
/// and then with the number that has ended.
ServingReport simulate_serving(ServingSpec& spec,
                               const std::function<bool(std::size_t)>& go_on = {});

}  // namespace lockstep
