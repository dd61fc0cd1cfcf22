/// Finds presets (GPUs, nodes, models, stacks, ...) by name in JSON files, reads them when asked.
///
/// A preset is KIND/NAME.json in one of the preset folders, searched in this order: those given to
/// the constructor, those in the environment variable LOCKSTEP_PRESETS (colons between), then those
/// that ship: installed with the program or its package, else in the source tree
/// (preset_files.hpp). Its keys are the field names of the C++ struct; its values carry their
/// source: sim/scenario/README.md describes the format.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/collectives/collectives.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/software.hpp"
#include "models/spec/transformer.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// One value of a preset, as `lockstep show` prints it.
struct PresetRow {
  std::string path;    ///< "gemm.efficiency", "releases.24.05.elementwise.slowdown"
  std::string value;   ///< as the file writes it: "400 Gb/s", "0.82", "true"
  std::string source;  ///< empty: the file names none
  std::string note;
};

struct ReliabilitySpec;  // sim/scenario/run_spec.hpp
struct StorageSpec;      // models/checkpoint.hpp
struct ClusterPreset;    // sim/scenario/read_cluster.hpp
struct OperatorCosts;    // models/spec/compose_stack.hpp

struct StackPreset {
  StackSpec spec;
  /// In words, where the release asked for is not known and another one was taken; else empty.
  std::string assumption;
};

/// All functions may be called from several threads. Each throws InputError for an unknown name
/// (with those that there are) and for a file that cannot be read. References live as long as the
/// store.
class PresetStore {
 public:
  explicit PresetStore(std::vector<std::string> folders = {});
  ~PresetStore();
  PresetStore(const PresetStore&) = delete;
  PresetStore& operator=(const PresetStore&) = delete;

  /// "gpus", "nodes", "models", "stacks", "fabrics", "transports", "nvlinks", "reliability",
  /// "storages", "chassis", "facilities", "clusters", "profiles" (read by load_profile of
  /// read_profile.hpp), "engines", "operators".
  static std::span<const std::string_view> kinds();

  /// Names of a kind, sorted. Throws for an unknown kind, and where there are none.
  [[nodiscard]] std::vector<std::string> names(std::string_view kind) const;
  [[nodiscard]] bool has(std::string_view kind, std::string_view name) const;
  /// The preset that a person means: that of the name, in another spelling too ("Megatron-Core"),
  /// or by another word for it ("mcore", of transports "tcp"); empty: none. Whatever takes a name
  /// takes these.
  [[nodiscard]] std::string meant(std::string_view kind, std::string_view written) const;
  /// Path of the file of a preset.
  [[nodiscard]] std::string path(std::string_view kind, std::string_view name) const;

  [[nodiscard]] const GpuSpec& gpu(std::string_view name) const;
  [[nodiscard]] const NodeSpec& node(std::string_view name) const;
  [[nodiscard]] const TransformerShape& model(std::string_view name) const;
  [[nodiscard]] const FabricSpec& fabric(std::string_view name) const;
  [[nodiscard]] const TransportSpec& transport(std::string_view name) const;
  [[nodiscard]] const IntraNodeCollectives& nvlink(std::string_view name) const;
  [[nodiscard]] const ReliabilitySpec& reliability(std::string_view name) const;
  [[nodiscard]] const StorageSpec& storage(std::string_view name) const;
  [[nodiscard]] const ChassisSpec& chassis(std::string_view name) const;
  [[nodiscard]] const FacilitySpec& facility(std::string_view name) const;
  [[nodiscard]] const ClusterPreset& cluster(std::string_view name) const;
  /// The counts that stacks are composed from: the preset "counted".
  [[nodiscard]] const OperatorCosts& operator_costs() const;

  /// The stack with what the release changes. Releases compare as dotted numbers ("24.05"); one
  /// that is not known takes the nearest earlier, else the earliest one. Empty: the base values.
  [[nodiscard]] const StackPreset& stack(std::string_view name,
                                         std::string_view release = {}) const;

  /// Every value of a preset in the order of its file.
  [[nodiscard]] std::vector<PresetRow> show(std::string_view kind, std::string_view name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
