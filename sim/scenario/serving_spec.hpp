/// What a scenario says about a model that serves: on which pools of replicas, under which load.
/// read_serving.hpp makes it from JSON, sim/serving simulates it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/generation/engine.hpp"
#include "models/spec/transformer.hpp"
#include "sim/scenario/cache_policy.hpp"
#include "sim/scenario/claim.hpp"
#include "sim/scenario/power_spec.hpp"
#include "sim/scenario/prefix_tree.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/served_adapters.hpp"
#include "sim/scenario/served_request.hpp"
#include "sim/scenario/serving_admission.hpp"
#include "sim/scenario/serving_objectives.hpp"
#include "sim/scenario/serving_regions.hpp"

namespace lockstep {

/// Which replica a request goes to. Of equal ones the next in turn.
enum class ServingRouter : std::uint8_t {
  round_robin,
  least_loaded,
  power_of_two,
  random,
  prefix_aware,
  session,  ///< turns of a conversation where its first one went
  cost,     ///< tokens to compute and tokens held
  adapter_aware,
};
constexpr std::array<std::string_view, 8> kServingRouterNames{
    "round_robin",  "least_loaded", "power_of_two", "random",
    "prefix_aware", "session",      "cost",         "adapter_aware"};

/// How a pool follows its load; its replicas are the most it has.
struct ServingAutoscale {
  int least = 1;
  double target = 0;  ///< requests of a replica, waiting or worked on
  Seconds check{10}, calm{300};
};

/// From nothing to a replica that serves: processes and graphs, then its weights.
struct ReplicaStart {
  Seconds overhead{30};
  BytesPerSecond rate{5e9};  ///< at which weights come to a replica
};

/// What befalls replicas.
struct ServingFailureSpec {
  std::optional<Seconds> gpu_mean_time{};  ///< of a GPU between failures
  Seconds repair{3600};
  Seconds detect{10};  ///< until requests are sent to others
  struct Event {
    Seconds at;
    std::size_t pool = 0;
    int replica = 0;
  };
  std::vector<Event> events{};
};

/// Replicas of one layout.
struct ServingPool {
  std::string name = "both";  ///< or "prefill", "decode"
  EngineSpec engine;
  int replicas = 1;
  int tensor = 1;
  int pipeline = 1;
  int attention_data = 1;
  int expert = 1;
  std::optional<ServingAutoscale> autoscale{};
  std::size_t cluster_pool = 0;  ///< whose nodes they fill, where the cluster has several kinds

  /// Of a replica.
  [[nodiscard]] int gpus() const { return tensor * attention_data * pipeline; }
};

/// Keys and values on their way from one pool to the other.
struct ServingTransfer {
  bool by_layer = true;     ///< sent while later layers of the prompt are worked on
  double efficiency = 0.8;  ///< share of the links' rate
  Seconds latency{1e-3};    ///< of each request's
};

/// Slower memory that keeps what the cache of a replica has let go of.
struct ServingTiers {
  struct Host {
    Bytes memory;                               ///< of a node; a replica has the part of its GPUs
    std::optional<BytesPerSecond> bandwidth{};  ///< of a GPU; else what copies reach
  };
  struct Disk {
    Bytes memory;              ///< of a node's drives; a replica has the part of its GPUs
    BytesPerSecond bandwidth;  ///< out of them, all replicas of the node together
    Seconds latency{1e-4};     ///< of each load
  };
  struct Remote {
    Bytes memory;              ///< of the pool that all replicas share
    BytesPerSecond bandwidth;  ///< out of it, all replicas together
    Seconds latency{1e-3};     ///< of each load
  };
  std::optional<Host> host{};
  std::optional<Disk> disk{};
  std::optional<Remote> remote{};
  std::optional<CacheLoad> load{};  ///< else as the engine does
  CacheReuse reuse = CacheReuse::fastest;
  CachePreemption preemption = CachePreemption::fastest;  ///< recompute, without a host
};

struct SharedScenario;
struct WrittenLoad;

struct ServingSpec {
  std::string file;
  std::string about;
  Cluster cluster;
  std::vector<int> nodes{};  ///< of the cluster, that the pools fill in order; empty: all
  TransformerShape model;
  WeightFormat weights = WeightFormat::bf16, experts = WeightFormat::bf16;
  double cache_bytes = 2;
  std::vector<ServingPool> pools;  ///< one, or the prompts' pool and the decoding one
  ServingTransfer transfer;
  Speculation speculation;
  ServingRouter router = ServingRouter::least_loaded;
  int clients = 0;  ///< closed loop; 0: requests come when they say
  RunTime think = 0;
  std::uint64_t seed = 1;
  std::string load;  ///< in words
  std::vector<ServedRequest> requests;
  std::vector<PrefixNode> prefixes;            ///< what their prompts share; none: nothing
  std::size_t coming = 0;                      ///< of them, first turns of conversations; 0: all
  std::shared_ptr<const WrittenLoad> drawn{};  ///< what they are drawn from; null: a trace
  bool prefix_cache = true;                    ///< whether replicas keep that for others
  std::optional<ServingTiers> tiers;           ///< where it stays when they let go of it
  ServingObjectives objectives;
  std::vector<ServingPopulation> populations{};  ///< none: all users are alike
  ServingRegions regions{};
  ReplicaStart start;
  std::optional<ServingFailureSpec> failures;
  std::optional<ServingAdmission> admission{};  ///< none: all that fits is taken, and users wait
  std::optional<ServingRestarts> restarts{};
  std::optional<ServedAdapters> adapters{};        ///< none: the model alone answers
  std::optional<PowerSpec> power;                  ///< asked for; its site and its prices
  std::optional<double> usd_per_gpu_hour;          ///< scenario's, else the only kind's
  std::shared_ptr<const SharedScenario> beside{};  ///< trainings on other nodes; null: none
  std::optional<BoundsExpectation> expect{};
  std::vector<std::string> assumptions;

  /// What a request of these users must keep.
  [[nodiscard]] const ServingObjectives& limits_of(const ServedRequest& request) const {
    if (populations.empty()) return objectives;
    const ServingPopulation& of = populations[static_cast<std::size_t>(request.population)];
    return of.objectives.per_request() ? of.objectives : objectives;
  }
  [[nodiscard]] bool limits_requests() const {
    const auto limited = [](const ServingPopulation& of) { return of.objectives.per_request(); };
    return objectives.per_request() || std::ranges::any_of(populations, limited);
  }
  /// Whether anything is asked of the service.
  [[nodiscard]] bool asks() const { return objectives.any() || limits_requests(); }
  [[nodiscard]] int gpus() const {
    int sum = 0;
    for (const ServingPool& pool : pools) sum += pool.replicas * pool.gpus();
    return sum;
  }
  /// The kind of node under a pool's replicas.
  [[nodiscard]] const NodeSpec& node_of(const ServingPool& pool) const {
    return cluster.pools.empty() ? cluster.node : cluster.pools[pool.cluster_pool].node;
  }
  /// What a GPU of a pool costs by the hour: the scenario's price, else that of its node.
  [[nodiscard]] std::optional<double> gpu_hour_usd(const ServingPool& pool) const {
    return usd_per_gpu_hour ? usd_per_gpu_hour : node_of(pool).usd_per_gpu_hour;
  }
};

}  // namespace lockstep
