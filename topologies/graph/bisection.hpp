/// The narrowest cut of a fabric into two halves of its hosts.
#pragma once

#include "models/base/units.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {

struct Bisection {
  BytesPerSecond rate;       ///< the most that can flow from one half to the other
  BytesPerSecond injection;  ///< what the NICs of that cut's smaller half could send
  bool exact = false;        ///< every cut that differs was tried; else `rate` is an upper bound: a
                             ///< narrower cut may exist
  int cuts = 0;              ///< that were tried
};

/// Halves differ by a host where the hosts are odd. Every cut is tried where hosts that are alike
/// leave few different ones; else hosts are halved in the order of their nodes and by their
/// distance from several hosts that lie far apart, and the narrowest cut is kept. Finding that one
/// is NP-hard in general. Graphs that differ in the order of cables and switches alone have the
/// same result; nodes are to be in an order that means something (in_canonical_order()).
Bisection narrowest_bisection(const ClusterGraph& graph);

}  // namespace lockstep
