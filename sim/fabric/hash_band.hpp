/// What the draw of an ECMP fabric's hashes (FabricSpec::hash_draw) does to a time.
#pragma once

#include <span>
#include <string>

#include "topologies/fabrics/fabric.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

/// The time that an answer has with one draw.
struct HashDraw {
  int draw = 1;
  double seconds = 0;
  friend bool operator==(const HashDraw&, const HashDraw&) = default;
};

struct HashBand {
  HashDraw least, median, most;
};

/// The band of times that draws `first`, `first` + 1, ... have. Of draws that take equally long the
/// first counts; the median of an even number is the shorter of the two in the middle, so that it
/// is a draw's time too. Requires at least one time.
HashBand hash_band(int first, std::span<const double> seconds);

/// Whether hashes decide which links messages take on a fabric of so many nodes: paths are hashed,
/// and there is more than one leaf switch.
bool is_hashed(const FabricSpec& fabric, int nodes, const NicPorts& ports);

/// Throws InputError, which names what decides instead, where that is not so. `file` holds the
/// fabric at /cluster.
void require_hashed(const std::string& file, const FabricSpec& fabric, int nodes,
                    const NicPorts& ports);

}  // namespace lockstep
