#include "sim/step/stage_shifts.hpp"

#include <optional>

namespace lockstep {
namespace {

using Links = std::array<std::int64_t, 3>;

/// Links of NICs, leaves and spines from a rank of one stage to that of another; nothing where it
/// is not the same for all.
std::optional<Links> links_between(const Fabric& fabric, const Placement& placement, int from,
                                   int to) {
  const PlacementSpec& spec = placement.spec();
  const int ranks = placement.rank({.tensor = 0, .data = 0, .pipeline = to}) -
                    placement.rank({.tensor = 0, .data = 0, .pipeline = from});
  if (ranks % spec.gpus_per_node != 0 || ranks % spec.nvlink_domain != 0) return std::nullopt;
  const int nodes = ranks / spec.gpus_per_node;
  std::optional<Links> all;
  int seen = -1;
  for (int d = 0; d < spec.data; ++d) {
    for (int lane = 0; lane < spec.tensor; ++lane) {
      const int rank = placement.rank({.tensor = lane, .data = d, .pipeline = from});
      const int node = placement.node_of(rank);
      if (node == seen) continue;
      seen = node;  // on rails, too, all NICs of a node move by as many leaves
      const int before = fabric.leaf_of(node, 0), after = fabric.leaf_of(node + nodes, 0);
      const Links own{std::int64_t{nodes} * fabric.nics_per_node(), after - before,
                      fabric.pod_of(after) - fabric.pod_of(before)};
      if (all && *all != own) return std::nullopt;
      all = own;
    }
  }
  return all;
}

}  // namespace

StageShifts::StageShifts(const Fabric& fabric, const Placement& placement)
    : first_leaf_link_(fabric.leaf_up(0, 0)), first_spine_link_(fabric.spine_up(0, 0, 0)) {
  const int stages = placement.spec().pipeline;
  for (int s = 0; s < stages; ++s) {
    Stage stage{.like = s, .like_with_next = s, .links = {}};
    for (int first = 0; first < s; ++first) {
      if (of(first).like != first) continue;
      const auto links = links_between(fabric, placement, first, s);
      if (!links) continue;
      stage.like = first;
      stage.links = *links;
      break;
    }
    stages_.push_back(stage);
  }
  // Two pairs of neighbours are alike where both stages are, as far apart.
  const auto links_apart = [this](int from, int to) {
    Links out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = of(to).links[i] - of(from).links[i];
    return out;
  };
  for (int s = 0; s + 1 < stages; ++s) {
    for (int first = 0; first < s; ++first) {
      if (of(first).like != of(s).like || of(first + 1).like != of(s + 1).like) continue;
      if (links_apart(first, s) != links_apart(first + 1, s + 1)) continue;
      stages_[static_cast<std::size_t>(s)].like_with_next = first;
      break;
    }
  }
}

}  // namespace lockstep
