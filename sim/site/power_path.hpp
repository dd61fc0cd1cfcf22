/// What a path of banks, some of their units down, brings to the nodes.
#pragma once

#include <span>
#include <vector>

#include "models/base/units.hpp"
#include "sim/scenario/site_spec.hpp"

namespace lockstep {

struct PathDelivery {
  int nodes = 0;     ///< that have a way to the outside
  double share = 1;  ///< of what they want, for all alike
};

/// Units of a bank share what goes through it. Each node wants `per_node`; nodes get the same share
/// of it, the largest for which capacities suffice (by maximum flow, within 1e-9).
/// `down`: broken units, by part. `stored`: power that each part's batteries give beside what feeds
/// it, by part; empty: none.
PathDelivery delivered(std::span<const PowerPart> path, std::span<const int> down, Watts per_node,
                       std::span<const Watts> stored = {});

/// Whether at least `needed` nodes have a way to the outside, and each that has one gets
/// `per_node`.
bool brings_all(std::span<const PowerPart> path, std::span<const int> down, Watts per_node,
                int needed);

/// What batteries give while all of them together last longest.
struct PathBridge {
  Seconds lasts;            ///< infinity: nothing is taken from them
  std::vector<Watts> from;  ///< by part
};
/// While nodes get `wanted`, which is what delivered() says of parts whose batteries hold
/// something. `energy`: that they hold, by part. By maximum flow: parts with E give at most E /
/// lasts each.
PathBridge bridged(std::span<const PowerPart> path, std::span<const int> down, Watts per_node,
                   const PathDelivery& wanted, std::span<const Joules> energy);

/// The most that gets to all nodes together, whatever they want.
Watts deliverable(std::span<const PowerPart> path, std::span<const int> down);

/// Nodes that the path feeds when nothing is broken.
int fed_nodes(std::span<const PowerPart> path);

/// The path with the capacities that follow from PowerPart::oversubscription: nodes behind a part
/// take `node_peak` each,
///
///     capacity of a unit = nodes behind it x node_peak / (oversubscription x units)
///
/// and what parts that carry the whole site leave to the machines, at its highest PUE:
///
///     capacity / pue
std::vector<PowerPart> with_capacities(std::vector<PowerPart> path, Watts node_peak, double pue);

/// `down`, with all units of generators down as well: they stand by.
std::vector<int> without_generators(std::span<const PowerPart> path, std::span<const int> down);

/// Energy in the batteries of a part's units that are up, when they are full.
Joules full_store(const PowerPart& part, int down);

}  // namespace lockstep
