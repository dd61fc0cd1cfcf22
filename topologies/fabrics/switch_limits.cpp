#include "topologies/fabrics/switch_limits.hpp"

#include <fmt/format.h>

#include "topologies/fabrics/fabric_counts.hpp"

namespace lockstep {
namespace {

bool is_tree(FabricKind kind) {
  return kind == FabricKind::fat_tree || kind == FabricKind::rail_optimised ||
         kind == FabricKind::rail_only;
}

void add_limit(std::string& out, const std::string& limit) {
  out += (out.empty() ? "" : ", ") + limit;
}

}  // namespace

std::string switch_limits(const FabricSpec& spec, int nodes, int nics_per_node,
                          BytesPerSecond nic_bandwidth) {
  if (spec.kind == FabricKind::ideal) return {};
  std::string out;
  if (!spec.faults.empty()) add_limit(out, "broken or slow links");
  if (!is_tree(spec.kind)) {
    add_limit(out, spec.kind == FabricKind::file
                       ? "links drawn in a file"
                       : fmt::format("links of a {}",
                                     fabric_kinds()[static_cast<std::size_t>(spec.kind)].name));
  } else if (spec.kind != FabricKind::rail_only &&
             fabric_counts(spec, nodes, nics_per_node, nic_bandwidth).leaves == 1) {
    return out;
  }
  if (is_tree(spec.kind) && spec.leaf_oversubscription > 1) {
    add_limit(out, fmt::format("uplinks oversubscribed {:g}:1", spec.leaf_oversubscription));
  }
  if (is_tree(spec.kind) && spec.levels == 3 && spec.spine_oversubscription > 1) {
    add_limit(out, fmt::format("spines oversubscribed {:g}:1", spec.spine_oversubscription));
  }
  if (spec.routing == Routing::ecmp) add_limit(out, "hashed paths");
  if (routings()[static_cast<std::size_t>(spec.routing)].is_static) {
    add_limit(out, "one path to each destination");
  }
  return out;
}

std::string switch_limits(const Fabric& fabric) {
  return switch_limits(fabric.spec(), fabric.nodes(), fabric.nics_per_node(),
                       fabric.nic_bandwidth());
}

}  // namespace lockstep
