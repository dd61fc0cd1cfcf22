/// Collectives of `lockstep comm`: a table as nccl-tests prints it, for any cluster, with NCCL's
/// choice at every size and why. scenarios/comm/README.md describes "collective".
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_cursor.hpp"
#include "models/collectives/choice.hpp"
#include "models/collectives/group_spread.hpp"
#include "sim/answer/hash_answer.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_cluster.hpp"

namespace lockstep {

/// How the group's members lie over the machine.
struct CollectiveGroup {
  std::vector<int> gpus;  ///< by rank, numbered through the cluster
  /// Groups that run the same beside it, placed by the same rule.
  std::vector<std::vector<int>> others;
  int nodes = 1;            ///< NVLink domains that hold a member
  int least = 1, most = 1;  ///< members in such a domain
  /// The ways in which the groups lie, its own first: of eight over racks of 36, some straddle two.
  std::vector<DomainSpread> ways;
  std::vector<int> groups_of_way;  ///< how many lie so
  /// Of a NIC port, as nic_ports() counts them: in a drawing from a file that of the slowest.
  BytesPerSecond port_bandwidth;
  BytesPerSecond nic_bandwidth;  ///< of each member
  /// Whether any group does.
  [[nodiscard]] bool leaves_domains() const {
    return std::ranges::any_of(ways, [](const DomainSpread& way) { return way.domains > 1; });
  }
  [[nodiscard]] NicShare nic() const { return {nic_bandwidth, port_bandwidth / nic_bandwidth}; }
};

struct CollectiveRow {
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes size;                  ///< nccl-tests' size column
  CollectiveChoice choice;     ///< its time is that with no slow NIC, and switches that never limit
  Seconds full_time{};         ///< on a fabric whose switches never limit
  Seconds time{};              ///< on the cluster's own fabric
  std::size_t way = 0;         ///< of CollectiveGroup::ways: that of the groups that end last
  std::string slowest_link{};  ///< that makes `time` longer than the choice's; empty: none does
  double algbw_bytes_per_s = 0, busbw_bytes_per_s = 0;

  /// Beyond what NICs take, slow ones too; the rest is a rounding.
  [[nodiscard]] bool held_by_switches() const { return time > (1 + 1e-6) * full_time; }
};

struct CollectiveStudy {
  std::string file, about;
  Cluster cluster;
  CollectiveGroup group;
  CollectiveOptions options;
  std::vector<CollectiveRow> rows;   ///< by operation, then by size
  std::vector<std::string> notes;    ///< what the times leave out
  std::optional<HashAnswer> hash{};  ///< where hashes decide; a band for each row
};

/// Reads a scenario with "collective" from the root of its file, and predicts every row: all groups
/// at once, on the cluster's own fabric. Throws InputError, also where nothing that the
/// user allows can run. `profiles`: of the cluster's card and network (read_profile.hpp), whose
/// times are taken; they hold NCCL's own choice, so that a scenario with another is an error.
CollectiveStudy run_collective_study(const JsonCursor& root, const PresetStore& presets,
                                     std::span<const std::string> profiles = {});

/// The rows' times where the fabric's hashes are those of another draw.
std::vector<double> times_with_draw(const CollectiveStudy& study, int draw);

/// Whether switches hold any row back.
bool switches_limit(const CollectiveStudy& study);
/// "16 GPUs: 8 in each of 2 NVLink domains, 50 GB/s of NIC each, infiniband".
std::string collective_group_text(const CollectiveStudy& study);
/// The sizes that one algorithm and protocol is taken at, with the reason at the first, and what
/// switches make of the last that they hold back. Each number says the size that it is of.
std::vector<std::string> choice_reasons(const CollectiveStudy& study);

}  // namespace lockstep
