// Rails that never meet: a fat tree of its own for NIC i of every node.
// Source: Wang et al. 2023, arXiv:2307.12169, section 4: the network of GPUs of one index in their
// high-bandwidth domains; all other traffic goes over NVLink first.
#include <fmt/format.h>

#include "topologies/fabrics/drawing.hpp"

namespace lockstep {
namespace {

FabricSpec rail_spec(const FabricPlan& plan) {
  FabricSpec rail = plan.spec;
  rail.kind = FabricKind::fat_tree;
  return rail;
}

}  // namespace

std::optional<FabricProblem> check_rail_only(const FabricPlan& plan) {
  if (plan.nics > 1 && !plan.spec.pxn) {
    return FabricProblem{
        "pxn", "false",
        "true: rails never meet, so that node 0 nic 0 cannot reach node 0 nic 1; a message must "
        "change rails over NVLink before it leaves its node"};
  }
  const FabricSpec rail = rail_spec(plan);
  return check_tree({rail, plan.nodes, 1, plan.nic_bandwidth});
}

FabricDrawing draw_rail_only(const FabricPlan& plan) {
  const FabricSpec spec = rail_spec(plan);
  const FabricDrawing rail = draw_tree({spec, plan.nodes, 1, plan.nic_bandwidth});
  FabricDrawing out = FabricDrawing::of_ports(plan);
  for (int nic = 0; nic < plan.nics; ++nic) {
    out.append(rail, fmt::format("rail {} ", nic), [&](Vertex node) {
      return node * static_cast<Vertex>(plan.nics) + static_cast<Vertex>(nic);
    });
  }
  return out;
}

}  // namespace lockstep
