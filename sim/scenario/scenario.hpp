/// A scenario: everything that a run needs, checked. read_scenario.hpp makes one from JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/collectives/collectives.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/software.hpp"
#include "models/spec/transformer.hpp"
#include "sim/scenario/claim.hpp"
#include "sim/scenario/cluster_site.hpp"
#include "sim/scenario/node_pool.hpp"
#include "sim/scenario/power_spec.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// A GPU that runs slower than its kind.
struct Straggler {
  int gpu = 0;            ///< global rank
  double slowdown = 1.0;  ///< time of every kernel over that of a healthy GPU, >= 1
};

/// What the scenario's author measured or expects: checked by `run` and by the tests.
struct Expectation {
  std::optional<Seconds> step_time;
  std::optional<double> mfu;  ///< with attention counted in full
  double within = 0.05;       ///< relative
  bool fits = true;           ///< false: the job is expected not to fit in memory
  Claim claim{};
  std::string source;
};

/// How the data-parallel replicas of a job are simulated.
enum class Folding : std::uint8_t {
  /// Those that do the same once, where that changes nothing; else each on its own, or above a
  /// budget of work a sample of them, with a band that holds the exact answer.
  automatic,
  folded,    ///< those that look alike once, also where hashed paths make that approximate
  unfolded,  ///< each on its own
};

struct Scenario {
  std::string file;  ///< where it was read from, for messages
  std::string about;
  TrainingJob job;
  NodeSpec node;  ///< of the first pool, where there are several
  int nodes = 1;
  std::vector<NodePool> pools;     ///< in the order in which ranks fill them; empty: all are `node`
  std::vector<int> micro_batches;  ///< of each replica; empty: the batch is split evenly
  FabricSpec fabric;
  TransportSpec transport;
  StackSpec stack;
  /// What the job needs and the stack is not known to do: "sharding.zero3" (capabilities.hpp).
  std::vector<std::string> beyond_stack{};
  std::vector<Straggler> stragglers;
  std::optional<double> training_tokens;
  std::optional<double> usd_per_gpu_hour;  ///< scenario's, else the node's
  std::optional<Expectation> expect;
  std::optional<PowerSpec> power;  ///< asked for
  ClusterSite site;                ///< of the cluster's preset, if it named one
  Folding folding = Folding::automatic;
  /// Why the interval around its step time is that of unknown software, whatever its name: "no
  /// stack given", "a feature that the stack never had". Empty: known as its name and release are.
  std::vector<std::string> unknown_software;
  /// What the reader filled in because the scenario left it open:
  /// "virtual stages: 4 (stack default)".
  std::vector<std::string> assumptions;

  /// A job on one kind of node has one pool too.
  [[nodiscard]] std::size_t pool_count() const { return pools.empty() ? 1 : pools.size(); }
  [[nodiscard]] const NodeSpec& node_of(std::size_t pool) const {
    return pools.empty() ? node : pools[pool].node;
  }
  /// Whether its nodes are of several kinds, or its replicas get unequal parts of the batch.
  [[nodiscard]] bool unequal() const { return !pools.empty() || !micro_batches.empty(); }

  [[nodiscard]] int gpus() const {
    const Parallelism& cut = job.parallelism;
    return cut.tensor * cut.context * cut.pipeline * cut.data;
  }
};

}  // namespace lockstep
