#include <algorithm>
#include <array>

#include "topologies/fabrics/drawing.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {
namespace {

constexpr std::array kFabricKinds{
    FabricKindInfo{FabricKind::ideal, "ideal",
                   "one switch of unlimited capacity: only the NICs limit", "definition",
                   check_tree, draw_tree, false},
    FabricKindInfo{FabricKind::fat_tree, "fat_tree",
                   "leaf, spine and core switches; all NICs of a node on one leaf",
                   "Leiserson 1985, IEEE Trans. Comput. C-34, 892-901; Al-Fares, Loukissas and "
                   "Vahdat 2008, SIGCOMM",
                   check_tree, draw_tree, false},
    FabricKindInfo{FabricKind::rail_optimised, "rail_optimised",
                   "a fat tree whose leaf i joins NIC i of every node of a scalable unit",
                   "NVIDIA DGX SuperPOD reference architecture, RA-11333-001", check_tree,
                   draw_tree, false},
    FabricKindInfo{FabricKind::rail_only, "rail_only",
                   "a fat tree of its own for NIC i of every node; the rails never meet",
                   "Wang et al. 2023, arXiv:2307.12169", check_rail_only, draw_rail_only, true},
    FabricKindInfo{FabricKind::dragonfly, "dragonfly",
                   "groups of switches that all meet, and cables between every two groups",
                   "Kim, Dally, Scott and Abts 2008, ISCA", check_dragonfly, draw_dragonfly, true},
    FabricKindInfo{FabricKind::dragonfly_plus, "dragonfly_plus",
                   "groups of leaves and spines, and cables between the spines of every two",
                   "Shpiner et al. 2017, HiPINEB", check_dragonfly_plus, draw_dragonfly_plus, true},
    FabricKindInfo{FabricKind::torus, "torus",
                   "a ring of switches along each of two or three dimensions",
                   "Dally and Towles 2004, Principles and Practices of Interconnection Networks",
                   check_torus, draw_torus, true},
    FabricKindInfo{FabricKind::file, "file", "read from a drawing of its NICs, switches and cables",
                   "definition", check_file, draw_file, true},
};

}  // namespace

std::span<const FabricKindInfo> fabric_kinds() { return kFabricKinds; }

bool is_drawn(const FabricSpec& spec) {
  return kFabricKinds[static_cast<std::size_t>(spec.kind)].always_drawn || spec.planes > 1 ||
         !spec.faults.empty() || routings()[static_cast<std::size_t>(spec.routing)].is_static;
}

}  // namespace lockstep
