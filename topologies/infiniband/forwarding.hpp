/// Forwarding tables as opensm computes them, entry by entry: the algorithms of opensm 3.3.23 with
/// its defaults (one LID a port, no options files but roots), written anew from its behaviour and
/// source (github.com/linux-rdma/opensm). Pure functions of the subnet.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/infiniband/subnet.hpp"
#include "topologies/routes/forwarding_tables.hpp"

namespace lockstep {

constexpr std::uint8_t kNoPath = 255;  ///< of a LID that a switch cannot reach

/// The linear forwarding table of every switch: out port by LID; 0: the switch itself.
struct LidTables {
  std::vector<std::vector<std::uint8_t>> out_port;  ///< by vertex, then LID; of others: empty

  friend bool operator==(const LidTables&, const LidTables&) = default;
};

/// Tables without any route, up to the largest LID.
[[nodiscard]] LidTables empty_tables(const InfinibandSubnet& subnet);

/// Where opensm's engine refuses a fabric, it falls back to minhop, and so do these.
struct InfinibandRouting {
  LidTables tables;
  std::string_view engine;  ///< the one that made them: "minhop", "updn", "ftree"
  std::string refusal;      ///< why the engine asked for did not; empty: it did
};

/// Shortest paths; of equal ports the one that carries the fewest destinations so far.
/// osm_ucast_mgr.c, osm_switch_recommend_path().
[[nodiscard]] InfinibandRouting minhop(const InfinibandSubnet& subnet);

/// minhop over paths that first go up, then down; so no cycle of credits. Directions are away from
/// the roots: given ones, or the switches that see over 90 % of adapters at one distance and over
/// 5 % at no other. Roots do not reach each other. Refuses where there is no root.
/// osm_ucast_updn.c.
[[nodiscard]] InfinibandRouting updn(const InfinibandSubnet& subnet,
                                     std::span<const Vertex> roots = {});

/// Balanced over the switches of a fat tree, destination by destination. Refuses what is no tree of
/// 2 to 8 layers with all adapters below, and, without roots given, one whose switches of a layer
/// differ in their uplinks or downlinks. osm_ucast_ftree.c.
[[nodiscard]] InfinibandRouting ftree(const InfinibandSubnet& subnet,
                                      std::span<const Vertex> roots = {});

/// One row per engine above: for lists, options and their messages.
struct InfinibandEngine {
  std::string_view name;
  std::string_view summary;
  std::string_view source;
  InfinibandRouting (*route)(const InfinibandSubnet& subnet, std::span<const Vertex> roots);
};
[[nodiscard]] std::span<const InfinibandEngine> infiniband_engines();

/// The links that messages between NIC ports take by these tables. An entry that names a port
/// without a cable is no route.
[[nodiscard]] ForwardingTables forwarding_tables(const InfinibandSubnet& subnet,
                                                 const LidTables& tables);

}  // namespace lockstep
