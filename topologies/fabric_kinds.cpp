#include <algorithm>
#include <array>

#include "topologies/builders/drawing.hpp"
#include "topologies/fabric.hpp"

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

constexpr std::array kRoutings{
    RoutingInfo{Routing::spray, "spray",
                "per-packet: every switch splits a message evenly over its shortest ways",
                "Dixit, Prakash, Hu and Kompella 2013, INFOCOM", false},
    RoutingInfo{Routing::ecmp, "ecmp",
                "every switch hashes each queue pair onto one of its links; hashes collide",
                "IETF RFC 2992", false},
    RoutingInfo{Routing::adaptive, "adaptive",
                "in proportion to the capacity beyond each link; dragonflies use longer ways too",
                "Zhou et al. 2014, WCMP, EuroSys; Kim, Dally, Scott and Abts 2008, ISCA", false},
    RoutingInfo{Routing::minhop, "minhop",
                "InfiniBand: shortest ways by destination, each port as few of them as may be",
                "opensm 3.3.23, osm_ucast_mgr.c", true},
    RoutingInfo{Routing::updn, "updn", "InfiniBand: shortest ways that go up, then down",
                "opensm 3.3.23, osm_ucast_updn.c", true},
    RoutingInfo{Routing::ftree, "ftree", "InfiniBand: balanced over a fat tree",
                "opensm 3.3.23, osm_ucast_ftree.c", true},
    RoutingInfo{Routing::tables, "tables", "InfiniBand: forwarding tables that opensm dumped",
                "opensm 3.3.23, opensm-lfts.dump", true},
};

constexpr std::array<std::string_view, 2> kHashSeeds{"per_switch", "shared"};

}  // namespace

std::span<const FabricKindInfo> fabric_kinds() { return kFabricKinds; }
std::span<const RoutingInfo> routings() { return kRoutings; }
std::span<const std::string_view> hash_seed_names() { return kHashSeeds; }

bool is_drawn(const FabricSpec& spec) {
  return kFabricKinds[static_cast<std::size_t>(spec.kind)].always_drawn || spec.planes > 1 ||
         !spec.faults.empty() || kRoutings[static_cast<std::size_t>(spec.routing)].is_static;
}

}  // namespace lockstep
