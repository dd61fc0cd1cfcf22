/// What somebody said about a job, before defaults: left open where they said nothing. The scenario
/// reader makes one from JSON; a row of published measurements is turned into one by its own
/// reader. complete_scenario() fills in what is open, checks that all of it fits together, and says
/// what it assumed.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "models/kernels/kernel_profile.hpp"
#include "models/spec/checkpoint_format.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

struct ScenarioDraft {
  std::string file;   ///< for messages: a file name, or a file and a row
  std::string place;  ///< pointer to the job within the file; the cluster is at the root
  std::string about;
  TransformerShape model;
  std::optional<CheckpointFormat> checkpoint;  ///< of a config.json that says one
  NodeSpec node;
  std::optional<int> nodes;            ///< else from the parallelism
  std::vector<NodePool> pools;         ///< of which `node` is the first; empty: there is one kind
  std::optional<ParallelAxis> across;  ///< what is laid over the pools; else as ranks come
  std::optional<FabricSpec> fabric;    ///< else default_fabric()
  bool fabric_assumed = false;         ///< it is default_fabric(), with changes
  int tensor = 1;
  int context = 1;
  int expert = 1;
  std::optional<int> expert_tensor;               ///< else the stack's default
  std::optional<ExpertDispatch> expert_dispatch;  ///< else the stack's default
  bool expert_overlap = false;
  ExpertRouting routing;
  int pipeline = 1;
  std::optional<int> data;            ///< else GPUs / (tensor x context x pipeline), else 1
  std::optional<int> virtual_stages;  ///< else the stack's default, where the layers allow it
  std::optional<bool> sequence;       ///< else the stack's default
  std::optional<TensorOverlap> tensor_overlap;      ///< else the stack's exposed share
  std::optional<Sharding> sharding;                 ///< else none
  std::optional<ContextExchange> context_exchange;  ///< else the stack's default
  int shard_group = 0;                              ///< 0: all replicas
  std::optional<bool> reshard;                      ///< else where there is one pipeline stage
  std::optional<int> prefetch;                      ///< else 1
  std::optional<Schedule> schedule;                 ///< else from virtual_stages
  std::shared_ptr<const FixedOrder> order;          ///< in place of `schedule`, when written out
  std::vector<int> layers_per_stage;
  bool balanced_layers = false;
  EndPlace embedding = EndPlace::automatic, output = EndPlace::automatic;
  Batch batch;
  std::vector<int> micro_batches;  ///< by replica or by pool; empty: equal
  bool balanced_batch = false;
  std::optional<Precision> precision;  ///< else bf16, or fp16 where the GPU has no bf16
  std::optional<Recompute> recompute;  ///< else none, or the least that fits
  RecomputeModules modules;            ///< of selective recomputation
  Adapters adapters;
  HostOffload offload;
  FrozenParts frozen;
  StackSpec stack;
  bool stack_given = true;  ///< else it stands for software that is not named
  /// A search finds the layout: rules that a layout alone can break are not asked, and the stack
  /// need not be able to run this one.
  bool layout_open = false;
  /// Of an open `recompute`: the least of the stack's ladder with which the job fits in memory.
  bool least_recompute = false;
  std::vector<Straggler> stragglers;
  std::optional<double> training_tokens;
  std::optional<double> usd_per_gpu_hour;
  std::optional<Expectation> expect;
  std::optional<PowerSpec> power;
  ClusterSite site;
  std::vector<std::string> unknown_software;  ///< reasons, as Scenario has them
  std::vector<std::string> assumptions;       ///< made so far
  std::vector<JsonOverride> overrides;        ///< named in messages about what they set
};

/// The largest job that is taken; it keeps every product within 64 bits.
constexpr int kMaxGpus = 8'000'000;

/// Throws InputError where the parts do not fit; pointers are those of the scenario format
/// ("/parallelism/tensor").
Scenario complete_scenario(const ScenarioDraft& draft, const PresetStore& presets,
                           std::span<const Profile> profiles = {});

}  // namespace lockstep
