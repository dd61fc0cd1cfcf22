// Groups of leaves and spines, each leaf on each spine, and cables between the spines of every two
// groups.
// Source: Shpiner et al. 2017, Dragonfly+: low cost topology for scaling datacenters, HiPINEB,
// section 3; the same as the megafly of Flajslik et al. 2018, ISC.
#include <fmt/format.h>

#include "topologies/fabrics/drawing.hpp"

namespace lockstep {
namespace {

struct DragonflyPlusCounts {
  std::int64_t p, leaves, spines, groups;
};

DragonflyPlusCounts dragonfly_plus_counts(const FabricPlan& plan) {
  const FabricSpec& spec = plan.spec;
  DragonflyPlusCounts c{.p = spec.leaf_ports_down,
                        .leaves = spec.group_switches,
                        .spines = spec.group_spines,
                        .groups = spec.groups};
  if (c.leaves == 0) c.leaves = c.p;
  if (c.spines == 0) c.spines = c.leaves;
  if (c.groups == 0) c.groups = divide_up(plan.ports(), c.leaves * c.p);
  return c;
}

}  // namespace

std::optional<FabricProblem> check_dragonfly_plus(const FabricPlan& plan) {
  const FabricSpec& spec = plan.spec;
  const DragonflyPlusCounts c = dragonfly_plus_counts(plan);
  if (c.groups * c.leaves * c.p < plan.ports()) {
    return FabricProblem{
        "groups", fmt::format("{}", spec.groups),
        fmt::format("at least {}: a group has {} leaves of {} NIC ports, and "
                    "there are {} NICs",
                    divide_up(plan.ports(), c.leaves * c.p), c.leaves, c.p, plan.ports())};
  }
  const std::int64_t leaf = c.p + c.spines * spec.local_cables;
  const std::int64_t spine =
      c.leaves * spec.local_cables + divide_up(spec.global_cables * (c.groups - 1), c.spines);
  if (spec.switch_ports > 0 && std::max(leaf, spine) > spec.switch_ports) {
    return FabricProblem{"switch_ports", fmt::format("{}", spec.switch_ports),
                         fmt::format("at least {}: a leaf uses {} ports, a spine {}",
                                     std::max(leaf, spine), leaf, spine)};
  }
  const std::int64_t cables = plan.ports() + c.groups * c.leaves * c.spines * spec.local_cables +
                              c.groups * (c.groups - 1) / 2 * spec.global_cables;
  return check_drawing_size("groups", c.groups, c.groups * (c.leaves + c.spines), cables);
}

FabricDrawing draw_dragonfly_plus(const FabricPlan& plan) {
  const FabricSpec& spec = plan.spec;
  const DragonflyPlusCounts c = dragonfly_plus_counts(plan);
  FabricDrawing out = FabricDrawing::of_ports(plan);
  const auto add_layer = [&](const char* what, int level, std::int64_t each) {
    const auto first = static_cast<Vertex>(out.vertices.size());
    for (std::int64_t i = 0; i < c.groups * each; ++i) {
      out.add_switch(fmt::format("group {} {} {}", i / each, what, i % each), level,
                     static_cast<int>(i / each));
    }
    return first;
  };
  const Vertex leaves = add_layer("leaf", 1, c.leaves);
  const Vertex spines = add_layer("spine", 2, c.spines);
  const auto spine = [&](std::int64_t group, std::int64_t i) {
    return spines + static_cast<Vertex>(group * c.spines + i);
  };
  out.join_ports(plan, leaves, static_cast<int>(c.p));
  for (std::int64_t leaf = 0; leaf < c.groups * c.leaves; ++leaf) {
    for (std::int64_t s = 0; s < c.spines; ++s) {
      out.join(leaves + static_cast<Vertex>(leaf), spine(leaf / c.leaves, s), plan.link(),
               spec.local_cables);
    }
  }
  // Groups are counted on from one's own, so that every group looks the same.
  const auto global_port = [&](std::int64_t from, std::int64_t to, int cable) {
    return ((to - from + c.groups) % c.groups - 1) * spec.global_cables + cable;
  };
  for (std::int64_t one = 0; one < c.groups; ++one) {
    for (std::int64_t other = one + 1; other < c.groups; ++other) {
      for (int cable = 0; cable < spec.global_cables; ++cable) {
        out.join(spine(one, global_port(one, other, cable) % c.spines),
                 spine(other, global_port(other, one, cable) % c.spines), plan.upper_link());
      }
    }
  }
  return out;
}

}  // namespace lockstep
