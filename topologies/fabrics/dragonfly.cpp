// Groups of switches that all meet, and cables between every two groups.
// Source: Kim, Dally, Scott and Abts 2008, Technology-driven, highly-scalable dragonfly topology,
// ISCA, section 3: p NICs on a switch, a switches in a group, h global cables of a switch; balanced
// at a = 2 p = 2 h.
#include <fmt/format.h>

#include "topologies/fabrics/drawing.hpp"

namespace lockstep {
namespace {

struct DragonflyCounts {
  std::int64_t p, a, groups;
};

DragonflyCounts dragonfly_counts(const FabricPlan& plan) {
  const FabricSpec& spec = plan.spec;
  DragonflyCounts c{.p = spec.leaf_ports_down, .a = spec.group_switches, .groups = spec.groups};
  if (c.a == 0) c.a = 2 * c.p;
  if (c.groups == 0) c.groups = divide_up(plan.ports(), c.a * c.p);
  return c;
}

/// Which of a group's global cables leads to group `to` as the `cable`th: groups are counted on
/// from one's own, so that every group looks the same.
std::int64_t global_port(const DragonflyCounts& c, std::int64_t from, std::int64_t to, int cable,
                         int cables) {
  return ((to - from + c.groups) % c.groups - 1) * cables + cable;
}

}  // namespace

std::optional<FabricProblem> check_dragonfly(const FabricPlan& plan) {
  const FabricSpec& spec = plan.spec;
  const DragonflyCounts c = dragonfly_counts(plan);
  const std::int64_t held = c.groups * c.a * c.p;
  if (held < plan.ports()) {
    return FabricProblem{"groups", fmt::format("{}", spec.groups),
                         fmt::format("at least {}: a group has {} switches of {} NIC ports, and "
                                     "there are {} NICs",
                                     divide_up(plan.ports(), c.a * c.p), c.a, c.p, plan.ports())};
  }
  const std::int64_t global = divide_up(spec.global_cables * (c.groups - 1), c.a);
  const std::int64_t used = c.p + (c.a - 1) * spec.local_cables + global;
  if (spec.switch_ports > 0 && used > spec.switch_ports) {
    return FabricProblem{"switch_ports", fmt::format("{}", spec.switch_ports),
                         fmt::format("at least {}: {} down, {} to {} switches of the group, {} to "
                                     "other groups",
                                     used, c.p, (c.a - 1) * spec.local_cables, c.a - 1, global)};
  }
  const std::int64_t cables = plan.ports() + c.groups * c.a * (c.a - 1) / 2 * spec.local_cables +
                              c.groups * (c.groups - 1) / 2 * spec.global_cables;
  return check_drawing_size("groups", c.groups, c.groups * c.a, cables);
}

FabricDrawing draw_dragonfly(const FabricPlan& plan) {
  const FabricSpec& spec = plan.spec;
  const DragonflyCounts c = dragonfly_counts(plan);
  FabricDrawing out = FabricDrawing::of_ports(plan);
  const auto first = static_cast<Vertex>(out.vertices.size());
  const auto at = [&](std::int64_t group, std::int64_t i) {
    return first + static_cast<Vertex>(group * c.a + i);
  };
  for (std::int64_t group = 0; group < c.groups; ++group) {
    for (std::int64_t i = 0; i < c.a; ++i) {
      out.add_switch(fmt::format("group {} switch {}", group, i), 1, static_cast<int>(group));
    }
  }
  out.join_ports(plan, first, static_cast<int>(c.p));
  for (std::int64_t group = 0; group < c.groups; ++group) {
    for (std::int64_t i = 0; i < c.a; ++i) {
      for (std::int64_t j = i + 1; j < c.a; ++j) {
        out.join(at(group, i), at(group, j), plan.link(), spec.local_cables);
      }
    }
  }
  const int k = spec.global_cables;
  for (std::int64_t one = 0; one < c.groups; ++one) {
    for (std::int64_t other = one + 1; other < c.groups; ++other) {
      for (int cable = 0; cable < k; ++cable) {
        out.join(at(one, global_port(c, one, other, cable, k) % c.a),
                 at(other, global_port(c, other, one, cable, k) % c.a), plan.upper_link());
      }
    }
  }
  return out;
}

}  // namespace lockstep
