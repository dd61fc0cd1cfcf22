/// What a scenario says about a run of days to months, before it is turned into a Campaign.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "models/checkpoint.hpp"
#include "models/data_supply.hpp"
#include "sim/scenario/checkpoint_rule_extension.hpp"
#include "sim/scenario/cluster_site.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/failure_mode.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/purchase_spec.hpp"
#include "sim/scenario/scenario_draft.hpp"
#include "sim/scenario/site_spec.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// What fails by itself, and how many of them a job has. A cable joins two switches; that of a NIC
/// fails with its NIC.
enum class FailingComponent : std::uint8_t {
  gpu,
  nic,
  cable,
  cpu,
  node,
  rack,
  switch_nodes,
  feed,
  job
};
constexpr std::array<std::string_view, 9> kFailingComponents{
    "gpu", "nic", "cable", "cpu", "node", "rack", "switch", "feed", "job"};

/// Nodes that share something; 0: not said.
struct FailureDomains {
  int rack = 4, switch_nodes = 0, feed = 0;
};

/// A way to fail, with its rate for one component.
struct ReliabilityMode {
  FailureMode mode;  ///< `components` are counted when the job is known
  FailingComponent component = FailingComponent::gpu;
  /// slow, degraded: what of the fabric is broken; its slowdown is simulated.
  std::optional<FabricFault> fault{};
};

/// How often the parts of a cluster fail, as somebody has counted it.
struct ReliabilitySpec {
  std::string name;
  std::string about;
  bool own = false;  ///< the scenario's, not a preset's
  std::vector<ReliabilityMode> modes;
  std::vector<LoggedFailure> log;        ///< known failures of these modes instead of rates
  std::vector<std::string> assumptions;  ///< what its modes leave open
};

struct CheckpointSpec {
  std::string name = "storage";
  CheckpointTarget target = CheckpointTarget::storage;
  bool asynchronous = true;
  Seconds interval{1800};
  /// Where it goes, or a node's drives; none: to peers, or all that matters was measured.
  std::optional<StorageSpec> storage;
  std::optional<Seconds> blocks, finishes, restores;  ///< measured, instead of the model's
  std::optional<double> drag;                         ///< the same
  double corrupt = 0;
  /// Of what the storage sustains: the most that an advised interval writes while steps run.
  double storage_share = 0.1;  // assumed: the rest is for data, for other jobs and for bursts
  NamedCheckpointRule rule{};
};

/// Drives of the nodes that keep what was read once.
struct NodeCacheSpec {
  Bytes per_node;
  BytesPerSecond read, write;  ///< of one node
};

/// CPUs that make batches of what is read.
struct LoaderSpec {
  int cores_per_node = 0;
  double tokens_per_core_s = 0;
};

/// Whether the job begins when all of its data is there, or with the first of it.
enum class DataStaging : std::uint8_t { before, during };
constexpr std::array<std::string_view, 2> kDataStagings{"before", "during"};

/// What training reads.
struct DataSpec {
  double bytes_per_token = 4;
  StorageSpec storage;             ///< that the loader reads from
  std::optional<Bytes> dataset{};  ///< all of it; none: as much as the run reads
  std::vector<DataTier> tiers{};  ///< that it comes from, the coldest first; where it lies at first
  DataStaging staging = DataStaging::before;
  double usd_per_gb_month = 0;  ///< of `storage`
  std::optional<NodeCacheSpec> cache{};
  std::optional<LoaderSpec> loader{};
};

struct RunSpec {
  std::optional<Seconds> duration;  ///< of wall time; else until steps or training.tokens are done
  std::optional<int> steps;         ///< or iterations of "rl", to be done
  ReliabilitySpec reliability;
  std::vector<CheckpointSpec> checkpoints;
  std::optional<DataSpec> data;
  RecoverySpec recovery;
  Seconds restarts_per_thousand_ranks{};  ///< of communicators, beside RecoverySpec::restarts
  SpareSpec spares;
  int elastic = 0;  ///< replicas that the job may go on without
  FailureDomains domains;
  int trajectories = 100;
  double within = 0;
  std::uint64_t seed = 1;
  std::optional<PurchaseSpec> purchase;  ///< how the machines come; none: all are there
  std::optional<SiteSpec> site;          ///< what surrounds the racks; none: power without limits
  std::vector<std::string> assumptions;
};

/// Nodes that are held in reserve and have to be paid for: none where the run says nothing about
/// spares and always has one at hand.
int reserved_nodes(const SpareSpec& spares);

/// Reads and finishes the member "run"; failure rates that it leaves out are those of the site.
/// Throws InputError.
RunSpec read_run_spec(const JsonCursor& from, const PresetStore& presets,
                      const ClusterSite& site = {});

/// "run" of a scenario that has one. Beside read_run_spec()'s errors: where neither failures nor an
/// end are said, both are asked for at once. To be called within read_whole() of the root.
std::optional<RunSpec> read_run_of(const JsonCursor& root, const PresetStore& presets,
                                   const ClusterSite& site);

/// All that a scenario of one training job says.
struct JobFile {
  ScenarioDraft draft;
  std::optional<RunSpec> run;
};
/// Reads a scenario with its "run", if it has one; keys that either lacks are named at once. Throws
/// InputError.
JobFile read_job_file(const JsonCursor& root, const PresetStore& presets);
JobFile read_job_file(const std::string& file, std::string_view text, const PresetStore& presets,
                      const std::vector<std::string>& set = {});

/// Of a job on that many nodes and GPUs: each mode with the number of its components, which is 0
/// where a mode is of cables and the fabric has none between switches. `beside`: nodes that fail
/// with the job and are not on its fabric. Requires a fabric that check() finds nothing about where
/// there is such a mode.
std::vector<FailureMode> failing_modes(const RunSpec& run, const NodeSpec& node, int nodes,
                                       int gpus, const FabricSpec& fabric, int beside = 0);

// What objects of a run may have, and the rules between members (spec_readers.hpp). Storage is
// read whole, that of a checkpoint and of the training data where it is known which is meant.
void declare_run(const DeclaredMembers& member, RunSpec& out);
void declare_checkpoint(const DeclaredMembers& member, CheckpointSpec& out);
void declare_storage(const DeclaredMembers& member, StorageSpec& out);
void declare_site(const DeclaredMembers& member, SiteSpec& out);
void declare_purchase(const DeclaredMembers& member, PurchaseSpec& out);
/// Of a preset of failure rates, or a scenario's own. A log's path starts from the folder of the
/// file.
void declare_reliability(const DeclaredMembers& member, ReliabilitySpec& out);

}  // namespace lockstep
