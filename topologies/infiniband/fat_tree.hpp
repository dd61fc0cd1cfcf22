/// The tree that opensm's ftree engine sees in a subnet: layers, bundles of parallel cables and an
/// index for every switch. osm_ucast_ftree.c of opensm 3.3.23, from fabric_rank() to
/// fabric_validate_topology().
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "topologies/infiniband/switch_fabric.hpp"

namespace lockstep {

/// Parallel cables from a switch to another box.
struct TreeBundle {
  SwitchIndex far = kNoSwitch;  ///< kNoSwitch: an adapter
  Vertex end_port = 0;          ///< of an adapter
  std::uint32_t routes_up = 0;  ///< routes through it so far, towards the roots and away from them
  std::uint32_t routes_down = 0;
  struct Cable {
    std::uint8_t port = 0;
    std::uint8_t far_port = 0;
    std::uint32_t routes_up = 0;
    std::uint32_t routes_down = 0;
  };
  std::vector<Cable> cables;  ///< by port number
};

/// Where a switch is in the tree: its layer from the roots, then its turn at each layer below.
/// 255: not given.
using TreeIndex = std::array<std::uint8_t, 8>;

struct TreeSwitch {
  std::uint32_t rank = kNoRank;  ///< layer from the roots, which have 0
  TreeIndex index{255, 255, 255, 255, 255, 255, 255, 255};
  bool is_leaf = false;  ///< with adapters
  bool down_is_sorted = true;
  std::vector<TreeBundle> up, down, sideways;

  static constexpr std::uint32_t kNoRank = SwitchFabric::kFar;
  [[nodiscard]] bool ranked() const { return rank != kNoRank; }
};

struct FatTree {
  std::vector<TreeSwitch> switches;  ///< by SwitchIndex
  std::vector<SwitchIndex> leaves;   ///< by index, from the first with adapters to the last
  std::size_t most_end_ports = 0;    ///< of any leaf
  std::string refusal;               ///< why this is no fat tree; empty: it is one
};

/// Roots, where given, are trusted: the tree may then be uneven.
[[nodiscard]] FatTree find_fat_tree(const SwitchFabric& fabric, std::span<const Vertex> roots);

}  // namespace lockstep
