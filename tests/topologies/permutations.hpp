/// Permutations over whole fabrics, solved by max-min, for tests of what fabrics carry.
#pragma once

#include <cstdint>
#include <doctest/doctest.h>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/core/max_min.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// Rate of each flow over that of its NIC, when port i sends to port destination[i] (itself: idle).
inline std::vector<double> rates(const Fabric& fabric, const std::vector<int>& destination,
                                 std::uint64_t queue_pair) {
  MaxMin network;
  for (FabricLink link = 0; link < fabric.link_count(); ++link) {
    network.add_link(fabric.capacity(link));
  }
  const int nics = fabric.nics_per_node();
  std::vector<FlowIndex> flows;
  std::vector<RouteHop> hops;
  for (int i = 0; i < static_cast<int>(destination.size()); ++i) {
    const int to = destination[static_cast<std::size_t>(i)];
    if (to == i) continue;
    hops.clear();
    fabric.route(i / nics, i % nics, to / nics, to % nics, queue_pair, hops);
    std::vector<FlowEdge> edges;
    edges.reserve(hops.size());
    for (const RouteHop& hop : hops) edges.push_back({hop.link, hop.share});
    flows.push_back(network.add_flow(edges));
    network.start(flows.back());
  }
  network.solve();
  std::vector<double> out;
  out.reserve(flows.size());
  for (const FlowIndex flow : flows) out.push_back(network.rate(flow) / fabric.nic_bandwidth());
  for (FabricLink link = 0; link < fabric.link_count(); ++link) {
    CHECK(network.load(link) <= (1 + 1e-9) * fabric.capacity(link));
  }
  return out;
}

inline double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Fisher and Yates with a fixed linear congruential generator (Knuth's MMIX constants).
inline std::vector<int> random_permutation(int size, std::uint64_t state) {
  std::vector<int> out(static_cast<std::size_t>(size));
  std::iota(out.begin(), out.end(), 0);
  for (std::size_t i = out.size() - 1; i > 0; --i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    std::swap(out[i], out[(state >> 33U) % (i + 1)]);
  }
  return out;
}

inline std::vector<int> shift_permutation(int size, int by) {
  std::vector<int> out(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) out[static_cast<std::size_t>(i)] = (i + by) % size;
  return out;
}

}  // namespace lockstep
