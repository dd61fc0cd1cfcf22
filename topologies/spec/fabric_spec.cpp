#include "topologies/spec/fabric_spec.hpp"

#include <array>

namespace lockstep {
namespace {

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

std::span<const RoutingInfo> routings() { return kRoutings; }
std::span<const std::string_view> hash_seed_names() { return kHashSeeds; }

}  // namespace lockstep
