/// What the draw of an ECMP fabric's hashes (FabricSpec::hash_draw) does to an answer.
#pragma once

#include <span>
#include <string>

#include "topologies/fabrics/fabric.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

/// What an answer is with one draw.
struct HashDraw {
  int draw = 1;
  double value = 0;  ///< a time in seconds, or a ratio
  friend bool operator==(const HashDraw&, const HashDraw&) = default;
};

struct HashBand {
  HashDraw least, median, most;
};

/// The band of values that draws `first`, `first` + 1, ... have. Of draws with equal values the
/// first counts; the median of an even number is the smaller of the two in the middle, so that it
/// is a draw's value too. Requires at least one value.
HashBand hash_band(int first, std::span<const double> values);

/// Whether hashes decide which links messages take on a fabric of so many nodes: paths are hashed,
/// and there is more than one leaf switch.
bool is_hashed(const FabricSpec& fabric, int nodes, const NicPorts& ports);

/// Throws InputError, which names what decides instead, where that is not so. `file` holds the
/// fabric at /cluster.
void require_hashed(const std::string& file, const FabricSpec& fabric, int nodes,
                    const NicPorts& ports);

/// "fabric: draw 3 of the paths' hashes (cluster.fabric.hash_draw)": what an answer says that is of
/// one draw and has no band; empty where hashes decide nothing.
std::string draw_words(const FabricSpec& fabric, int nodes, const NicPorts& ports);

}  // namespace lockstep
