/// How many cables join a fabric's switches with each other, and how many of them NICs can fill.
#pragma once

#include <cstdint>

#include "models/base/units.hpp"
#include "topologies/fabrics/placement.hpp"
#include "topologies/spec/fabric_spec.hpp"

namespace lockstep {

/// Of all planes, faults aside; cables between NICs and switches are not counted. A tree costs the
/// same for any number of nodes, another fabric is drawn. Requires that check() finds nothing.
std::uint32_t switch_cables(const FabricSpec& fabric, int nodes, const NicPorts& ports);

/// Cables of a tree that the NICs below them cannot fill, of all planes and rails.
struct IdleCables {
  std::int64_t above_leaves = 0;  ///< between leaves and spines
  std::int64_t above_spines = 0;  ///< between spines and cores
  std::int64_t of = 0;            ///< cables between its switches, idle or not
  BytesPerSecond capacity;        ///< of all idle ones, one way
};

/// What a tree that is only partly filled has on paper and nobody buys for it. A leaf with d NIC
/// ports in use needs
///
///     ceil(d x NIC bandwidth / leaf oversubscription / bandwidth of an uplink)
///
/// uplinks, and the spines of a pod as many as these uplinks fill at the spines' oversubscription;
/// the rest is idle. None where every leaf and pod is full, and none of other kinds of fabric,
/// whose cables nodes come and go below. Faults aside. Requires that check() finds nothing.
IdleCables idle_cables(const FabricSpec& fabric, int nodes, const NicPorts& ports);

}  // namespace lockstep
