/// What decides, besides sizes and machines, how a collective is run: the NCCL release, what the
/// user forces or forbids, and whether switches sum.
#pragma once

#include <compare>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct NcclRelease {
  int major = 2;
  int minor = 27;
  friend auto operator<=>(const NcclRelease&, const NcclRelease&) = default;
};

/// What one generation of switches can sum. One row of sharp_generations() each.
struct SharpGeneration {
  std::string_view name;     ///< as scenarios say it
  int streaming_trees;       ///< in a subnet, over all jobs
  bool one_tree_per_switch;  ///< else one per port: several jobs can share a switch
  std::string_view source;
};
std::span<const SharpGeneration> sharp_generations();
/// The row of this name; null where there is none.
const SharpGeneration* sharp_generation(std::string_view name);

/// SHARP on an InfiniBand fabric. Each rail of a communicator takes one streaming tree.
struct SharpFabric {
  const SharpGeneration* generation = nullptr;  ///< a row of sharp_generations()
  int busy_trees = 0;  ///< streaming trees of other jobs over the same switches
};

/// Which names the user lets NCCL choose among, in NCCL_ALGO's way: "ring,tree" those only, "^tree"
/// all but those; nothing: all.
struct NameFilter {
  std::vector<std::string> names;
  bool except = false;
  [[nodiscard]] bool allows(std::string_view name) const;
  /// Asked for by name: what NCCL would not weigh by itself runs only then.
  [[nodiscard]] bool asks_for(std::string_view name) const;
  [[nodiscard]] bool empty() const { return names.empty(); }
};

/// Reads "ring,tree" or "^nvls,NVLSTree" into `out`. Case, '_' and '-' do not matter, so that
/// NCCL's own spelling is taken. Returns the first word that is none of `allowed`, if there is one.
std::optional<std::string> parse_name_filter(std::string_view text,
                                             std::span<const std::string_view> allowed,
                                             NameFilter& out);

struct CollectiveOptions {
  NameFilter algorithms;             ///< of collective_algorithms(): NCCL_ALGO
  NameFilter protocols;              ///< of kProtocols: NCCL_PROTO
  std::optional<SharpFabric> sharp;  ///< nothing: off, as NCCL_COLLNET_ENABLE=0
  bool pxn = true;                   ///< NCCL_PXN_DISABLE=0
  int max_channels = 0;              ///< NCCL_MAX_NCHANNELS; 0: as many as NCCL takes
  NcclRelease nccl;
};

}  // namespace lockstep
