#include "sim/fabric/hash_band.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <fmt/format.h>
#include <vector>

#include "models/base/input_error.hpp"
#include "topologies/fabrics/fabric_counts.hpp"

namespace lockstep {
namespace {

bool is_tree_of_leaves(FabricKind kind) {
  return kind == FabricKind::fat_tree || kind == FabricKind::rail_optimised;
}

bool has_one_leaf(const FabricSpec& fabric, int nodes, const NicPorts& ports) {
  return is_tree_of_leaves(fabric.kind) &&
         fabric_counts(fabric, nodes, ports.count, ports.bandwidth).leaves == 1;
}

bool hashes_paths(const FabricSpec& fabric) {
  return fabric.kind != FabricKind::ideal && fabric.routing == Routing::ecmp;
}

}  // namespace

HashBand hash_band(int first, std::span<const double> values) {
  assert(!values.empty());
  std::vector<HashDraw> draws;
  draws.reserve(values.size());
  for (const double one : values) draws.push_back({first + static_cast<int>(draws.size()), one});
  std::ranges::stable_sort(draws, {}, &HashDraw::value);
  const auto most = std::ranges::find(draws, draws.back().value, &HashDraw::value);
  return {.least = draws.front(), .median = draws[(draws.size() - 1) / 2], .most = *most};
}

bool is_hashed(const FabricSpec& fabric, int nodes, const NicPorts& ports) {
  return hashes_paths(fabric) && !has_one_leaf(fabric, nodes, ports);
}

void require_hashed(const std::string& file, const FabricSpec& fabric, int nodes,
                    const NicPorts& ports) {
  constexpr const char* kWanted = "for --hash-seeds, ";
  if (!hashes_paths(fabric)) {
    const bool ideal = fabric.kind == FabricKind::ideal;
    const auto routing = static_cast<std::size_t>(fabric.routing);
    throw InputError({.file = file,
                      .pointer = "/cluster/fabric",
                      .found = ideal ? "an ideal fabric, where no hash decides anything"
                                     : fmt::format("routing \"{}\" ({})", routings()[routing].name,
                                                   routings()[routing].summary),
                      .allowed = fmt::format("{}routing \"ecmp\", whose hashes are drawn", kWanted),
                      .nearest = {}});
  }
  if (has_one_leaf(fabric, nodes, ports)) {
    throw InputError({.file = file,
                      .pointer = "/cluster",
                      .found = fmt::format("{} nodes whose NICs share one leaf switch, where the "
                                           "destination decides",
                                           nodes),
                      .allowed = fmt::format("{}NICs on several leaf switches", kWanted),
                      .nearest = {}});
  }
}

std::string draw_words(const FabricSpec& fabric, int nodes, const NicPorts& ports) {
  if (!is_hashed(fabric, nodes, ports)) return {};
  return fmt::format("fabric: draw {} of the paths' hashes (cluster.fabric.hash_draw)",
                     fabric.hash_draw);
}

}  // namespace lockstep
