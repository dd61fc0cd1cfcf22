/// What crossed each link of a fabric over a time, as a drawing of boxes and lines that stays small
/// for any number of nodes: switches and nodes that are alike share a box.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// A link by the name that Fabric::link_name() has for it, and what flows moved over it.
struct CarriedLink {
  std::string name;
  BytesPerSecond capacity;  ///< for payload, as it was
  Bytes bytes;
};

/// How much of their capacity links have; each by FabricLink, or empty: all have all of it.
struct LinkHealth {
  std::vector<double> left;    ///< all the time; 0: dead
  std::vector<double> lowest;  ///< at some time: links that fail and come back
};

struct FabricUse {
  /// Nodes of a layer 0, switches of a layer above.
  struct Box {
    std::string name;  ///< "spine 1"; of several: "leaf × 30"
    int level = 0;
    std::uint32_t count = 1;  ///< switches or nodes that it stands for
  };
  /// All cables between two boxes, one way.
  struct Way {
    Bytes bytes;
    BytesPerSecond capacity;   ///< together, for payload
    double fullest = 0;        ///< share of its capacity that the fullest of them moved
    std::string fullest_link;  ///< its name; empty: none moved anything
  };
  struct Line {
    std::size_t lower = 0, upper = 0;  ///< boxes; the same for cables within one
    std::uint32_t cables = 0;
    Way up, down;                ///< from the lower box to the upper, and back
    std::uint32_t dead = 0;      ///< of the cables
    std::uint32_t degraded = 0;  ///< of the cables: have part of their capacity
    std::uint32_t passing = 0;   ///< of the cables: failed for a part of the time
    double least_left = 1;       ///< of its capacity that the most degraded cable has
    [[nodiscard]] double share(const Way& way) const;
    double window_s = 0;
  };
  double window_s = 0;
  std::vector<Box> boxes;   ///< rising levels; from left to right in each
  std::vector<Line> lines;  ///< in the order of their boxes
  /// Of bytes over all links: what all flows sent, times the links that they crossed.
  [[nodiscard]] Bytes bytes() const;
  [[nodiscard]] int levels() const { return boxes.empty() ? 0 : boxes.back().level + 1; }
};

inline constexpr std::size_t kMostBoxes = 12;  ///< of a level, where switches can share boxes

/// The use of `whole`, a fabric on which nothing is broken: links of `carried` are its links, by
/// name, but for which of parallel cables it is. Several of one name add up.
FabricUse use_of_fabric(const Fabric& whole, std::span<const CarriedLink> carried, Seconds window,
                        const LinkHealth& health = {});

/// "leaf to spines" for "leaf 3 to spines": links and switches of a kind have the same name but for
/// numbers.
std::string without_numbers(std::string_view name);

}  // namespace lockstep
