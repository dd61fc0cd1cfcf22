/// Reads what ibnetdiscover prints of an InfiniBand subnet, and the net files of ibsim, which are a
/// subset of it: switches and channel adapters, and each cable on both of its ends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topologies/infiniband/subnet.hpp"

namespace lockstep {

struct IbnetdiscoverOptions {
  /// These hosts become nodes 0, 1, ...; the others follow in the natural order of their names
  /// ("host2" before "host10"). Read them with read_hosts().
  std::vector<std::string> hosts;
  std::string hosts_file;  ///< what messages call the place that `hosts` come from
  /// Cables to boxes that the text does not describe (an excerpt) are left out, as are cables from
  /// a box to itself and those that one end does not list, instead of being an error.
  bool cut_dangling = false;
  /// Capacity of every cable, where the file's speeds are not the real ones (ibsim ends at QDR); 0:
  /// as the file says.
  BytesPerSecond capacity;
};

struct IbnetdiscoverImport {
  InfinibandSubnet subnet;
  int cut_cables = 0;  ///< left out because of `cut_dangling`
};

/// The subnet that `text` describes. Adapters belong to the host that their description begins
/// with: "host1 mlx5_0", "host1_mlx5_0", "host1 HCA-1", "node 1 nic 0", "RMD7 ibp11s0f0"; one that
/// names no device is a host of its own. NICs of a host are in the natural order of their devices.
/// Aggregation nodes of switches (SHARP) are adapters, but no host's. Switches get levels from
/// below. Speeds come from the comments ("4xNDR") or from ibsim's `w=` and `s=`, the slower where
/// ends differ; LIDs and GUIDs that the text does not give are assigned as ibsim and opensm do.
/// Throws InputError, with the number of the line: `file:17: found ...; allowed: ...`.
[[nodiscard]] IbnetdiscoverImport read_ibnetdiscover(const std::string& file, std::string_view text,
                                                     const IbnetdiscoverOptions& options = {});

/// Host names, one a line; empty lines and what follows a `#` are left out. Throws InputError for a
/// name twice.
[[nodiscard]] std::vector<std::string> read_hosts(const std::string& file, std::string_view text);

}  // namespace lockstep
