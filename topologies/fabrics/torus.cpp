// A ring of switches along each dimension; nodes fill the switches evenly, in order.
// Source: Dally and Towles 2004, Principles and Practices of Interconnection Networks, chapter 5
// (k-ary n-cubes).
#include <array>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topologies/fabrics/drawing.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kDimensions = 3;
using Sides = std::array<std::int64_t, kDimensions>;

/// Near cubes that hold a node on each switch, where the spec leaves the sides open.
Sides sides_of(const FabricPlan& plan) {
  Sides sides{1, 1, 1};
  if (!plan.spec.torus.empty()) {
    for (std::size_t d = 0; d < plan.spec.torus.size(); ++d) sides[d] = plan.spec.torus[d];
    return sides;
  }
  while (sides[0] * sides[0] * sides[0] < plan.nodes) ++sides[0];
  while (sides[0] * sides[1] * sides[1] < plan.nodes) ++sides[1];
  sides[2] = divide_up(plan.nodes, sides[0] * sides[1]);
  return sides;
}

}  // namespace

std::optional<FabricProblem> check_torus(const FabricPlan& plan) {
  const std::vector<int>& torus = plan.spec.torus;
  const bool right_size = torus.empty() || torus.size() == 2 || torus.size() == kDimensions;
  bool in_bounds = true;
  for (const int side : torus) in_bounds = in_bounds && side >= 1 && side <= 1024;
  if (!right_size || !in_bounds) {
    return FabricProblem{"torus", fmt::format("[{}]", fmt::join(torus, ", ")),
                         "two or three sides of 1 to 1024 switches"};
  }
  // Before the sides are searched for: they take the root of the nodes to find.
  if (torus.empty() && plan.nodes > kDrawnSwitchesMax) {
    return check_drawing_size("nodes", plan.nodes, plan.nodes, 0);
  }
  const Sides n = sides_of(plan);
  const std::int64_t switches = n[0] * n[1] * n[2];
  return check_drawing_size(
      torus.empty() ? "nodes" : "torus", switches, switches,
      plan.ports() + static_cast<std::int64_t>(kDimensions) * switches * plan.spec.local_cables);
}

FabricDrawing draw_torus(const FabricPlan& plan) {
  const Sides n = sides_of(plan);
  FabricDrawing out = FabricDrawing::of_ports(plan);
  const auto first = static_cast<Vertex>(out.vertices.size());
  const auto at = [&](const Sides& x) {
    return first + static_cast<Vertex>((x[0] * n[1] + x[1]) * n[2] + x[2]);
  };
  const bool flat = plan.spec.torus.size() == 2;
  const auto for_each_switch = [&](auto use) {
    for (std::int64_t x = 0; x < n[0]; ++x) {
      for (std::int64_t y = 0; y < n[1]; ++y) {
        for (std::int64_t z = 0; z < n[2]; ++z) use(Sides{x, y, z});
      }
    }
  };
  for_each_switch([&](const Sides& x) {
    out.add_switch(flat ? fmt::format("switch {},{}", x[0], x[1])
                        : fmt::format("switch {},{},{}", x[0], x[1], x[2]),
                   1);
  });
  const std::int64_t nodes_each = divide_up(plan.nodes, n[0] * n[1] * n[2]);
  out.join_ports(plan, first, static_cast<int>(nodes_each * plan.nics));
  for_each_switch([&](const Sides& x) {
    for (std::size_t d = 0; d < kDimensions; ++d) {
      Sides next = x;
      next[d] = (x[d] + 1) % n[d];
      // A ring of two is one cable, not one each way round.
      if (n[d] < 2 || (n[d] == 2 && x[d] == 1)) continue;
      out.join(at(x), at(next), plan.link(), plan.spec.local_cables);
    }
  });
  return out;
}

}  // namespace lockstep
