/// A message over several connections: each is hashed by itself.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// The port of a node.
struct NodePort {
  int node = 0;
  int nic = 0;
};

/// Appends what a message crosses that so many connections between two ports share evenly: one
/// queue pair after another, from `queue_pair` on, as far as hashes tell them apart. Requires one
/// connection at least.
void route_connections(const Fabric& fabric, const NodePort& from, const NodePort& to,
                       std::uint64_t queue_pair, int connections, std::vector<RouteHop>& out);

/// The queue pair of a connection between two ports, of which the first has `queue_pair`.
constexpr std::uint64_t queue_pair_of_connection(std::uint64_t queue_pair, int connection) {
  // Far from the numbers that ranks, seeds and channels give.
  return queue_pair + (static_cast<std::uint64_t>(connection) << 48U);
}

/// What the connections between two GPUs hash with, of which `from` and `to` are the turns among
/// the GPUs that share their ports: each GPU opens connections of its own.
constexpr std::uint64_t queue_pair_of_turns(std::uint64_t queue_pair, int from, int to) {
  // Spread over all bits, since seeds, channels and connections use the low and the high ones.
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15, kTurns = 1U << 16U;
  return queue_pair +
         kOdd * (static_cast<std::uint64_t>(from) + kTurns * static_cast<std::uint64_t>(to));
}

}  // namespace lockstep
