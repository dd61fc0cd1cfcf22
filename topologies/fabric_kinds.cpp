#include <array>

#include "topologies/fabric.hpp"

namespace lockstep {
namespace {

constexpr std::array kFabricKinds{
    FabricKindInfo{FabricKind::ideal, "ideal",
                   "one switch of unlimited capacity: only the NICs limit", "definition"},
    FabricKindInfo{FabricKind::fat_tree, "fat_tree",
                   "leaf, spine and core switches; all NICs of a node on one leaf",
                   "Leiserson 1985, IEEE Trans. Comput. C-34, 892-901; Al-Fares, Loukissas and "
                   "Vahdat 2008, SIGCOMM"},
    FabricKindInfo{FabricKind::rail_optimised, "rail_optimised",
                   "a fat tree whose leaf i joins NIC i of every node of a scalable unit",
                   "NVIDIA DGX SuperPOD reference architecture, RA-11333-001"},
};

constexpr std::array kRoutings{
    RoutingInfo{Routing::spray, "spray",
                "adaptive or per-packet: a message uses all parallel links evenly",
                "Dixit, Prakash, Hu and Kompella 2013, INFOCOM"},
    RoutingInfo{Routing::ecmp, "ecmp",
                "every switch hashes each queue pair onto one of its links; hashes collide",
                "IETF RFC 2992"},
};

}  // namespace

std::span<const FabricKindInfo> fabric_kinds() { return kFabricKinds; }
std::span<const RoutingInfo> routings() { return kRoutings; }

}  // namespace lockstep
