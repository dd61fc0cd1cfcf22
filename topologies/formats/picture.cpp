#include "topologies/formats/picture.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "topologies/formats/picture_layout.hpp"

namespace lockstep {
namespace {

/// Whether cables go from layer to layer only.
bool is_layered(const ClusterGraph& graph) {
  const auto level = [&graph](Vertex v) { return graph.vertices()[v].level; };
  return std::none_of(graph.cables().begin(), graph.cables().end(), [&](const GraphCable& cable) {
    return level(cable.a) == level(cable.b) && level(cable.a) != 0;
  });
}

}  // namespace

Picture picture_of(const DrawnFabric& fabric) {
  if (is_layered(fabric.graph)) return layered_picture(fabric);
  if (std::optional<Picture> torus = torus_picture(fabric)) return std::move(*torus);
  return circle_picture(fabric);
}

}  // namespace lockstep
