/// Cables of an ibnetdiscover text, from the ends that its boxes list.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "topologies/infiniband/net_records.hpp"

namespace lockstep {

/// A cable with both ends, each a plug of a box.
struct NetCable {
  std::size_t box_a, plug_a, box_b, plug_b;
};

struct NetCables {
  std::vector<NetCable> cables;  ///< each once, from the box that comes first
  int cut = 0;                   ///< left out, since they lead nowhere
};

/// Joins the ends. Throws InputError in the name of `lines` for a box or port twice, and for ends
/// that do not fit. Cables that lead to boxes that are not there, to a port that does not list
/// them, or from a box to itself are errors as well, or, if asked, cut.
[[nodiscard]] NetCables join_cables(const TextLines& lines, std::span<const NetBox> boxes,
                                    bool cut_dangling);

}  // namespace lockstep
