/// A subnet as opensm's routing engines see it: switches and end ports in opensm's order, cables by
/// port number. What the engines in this folder share.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "topologies/infiniband/forwarding.hpp"

namespace lockstep {

/// Switches are numbered by opensm's order of their GUIDs, so that "the next switch" means the
/// same.
using SwitchIndex = std::uint32_t;
constexpr SwitchIndex kNoSwitch = std::numeric_limits<SwitchIndex>::max();

struct SwitchPort {
  SwitchIndex far_switch = kNoSwitch;  ///< kNoSwitch: an end port, or no cable
  std::uint8_t far_port = 0;
  Vertex end_port = 0;  ///< where there is a cable, but no far switch
  bool cabled = false;

  [[nodiscard]] bool leads_to_switch() const { return far_switch != kNoSwitch; }
  [[nodiscard]] bool leads_to_end_port() const { return cabled && far_switch == kNoSwitch; }
};

class SwitchFabric {
 public:
  explicit SwitchFabric(const InfinibandSubnet& subnet);

  [[nodiscard]] const InfinibandSubnet& subnet() const { return subnet_; }
  [[nodiscard]] SwitchIndex switches() const { return static_cast<SwitchIndex>(vertices_.size()); }
  [[nodiscard]] Vertex vertex(SwitchIndex s) const { return vertices_[s]; }
  [[nodiscard]] Lid lid(SwitchIndex s) const { return subnet_.vertices[vertices_[s]].lid; }
  [[nodiscard]] std::uint64_t guid(SwitchIndex s) const {
    return subnet_.vertices[vertices_[s]].node_guid;
  }
  [[nodiscard]] SwitchIndex switch_at(Vertex vertex) const { return index_[vertex]; }
  /// Ports 0 to the last one; port 0 has no cable.
  [[nodiscard]] const std::vector<SwitchPort>& ports(SwitchIndex s) const { return ports_[s]; }

  /// Links between switches on a shortest path from each switch to `to`; kFar: there is none.
  [[nodiscard]] std::vector<std::uint32_t> distances(SwitchIndex to) const;
  static constexpr std::uint32_t kFar = std::numeric_limits<std::uint32_t>::max();

 private:
  const InfinibandSubnet& subnet_;
  std::vector<Vertex> vertices_;
  std::vector<SwitchIndex> index_;  ///< by vertex
  std::vector<std::vector<SwitchPort>> ports_;
};

/// The ports of each switch, in ascending order, on paths to one destination switch that may be
/// used.
using PortChoices = std::vector<std::vector<std::uint8_t>>;

/// Tables while they are made: all switches' entries for a LID lie together, since engines go from
/// LID to LID.
class LidColumns {
 public:
  explicit LidColumns(const SwitchFabric& fabric);

  [[nodiscard]] std::uint8_t& at(Lid lid, SwitchIndex s) {
    return ports_[std::size_t{lid} * fabric_.switches() + s];
  }
  [[nodiscard]] LidTables tables() const;

 private:
  const SwitchFabric& fabric_;
  std::size_t lids_;
  std::vector<std::uint8_t> ports_;
};

/// Fills `choices`, a list for each switch, for the destination switch.
using ChoosePorts = std::function<void(SwitchIndex to, PortChoices& choices)>;

/// Spreads all LIDs over the ports that `choose` allows, as ucast_mgr_build_lfts() does: end ports
/// switch by switch, those with the most first, each over the port that carries the fewest end
/// ports so far, then the switches themselves, which do not count.
[[nodiscard]] LidTables balanced_tables(const SwitchFabric& fabric, const ChoosePorts& choose);

}  // namespace lockstep
