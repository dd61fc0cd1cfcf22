/// Writes a subnet as a net file that ibsim simulates: ibnetdiscover's format, without its header.
#pragma once

#include <string>

#include "topologies/infiniband/subnet.hpp"

namespace lockstep {

struct IbsimOptions {
  /// Boxes start with their LIDs, which a subnet manager then keeps; else it assigns them.
  bool lids = false;
};

/// Ends in a newline. The manager's adapter comes first, since ibsim attaches programs to the first
/// box; then the other boxes in the order of their vertices. Speeds that ibsim does not know stand
/// in a comment, which read_ibnetdiscover() reads back.
[[nodiscard]] std::string write_ibsim(const InfinibandSubnet& subnet,
                                      const IbsimOptions& options = {});

/// How the net file names the box of a vertex: "S-0000000000200000", for ibsim's console.
[[nodiscard]] std::string ibsim_box_id(const InfinibandVertex& vertex);

}  // namespace lockstep
