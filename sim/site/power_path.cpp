#include "sim/site/power_path.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

constexpr double kUnlimited = 1e14;  // W: above any site, and exact to a hundredth

/// Maximum flow by shortest augmenting paths. Source: Edmonds and Karp 1972, J. ACM 19(2).
/// Each part is two vertices, so that its capacity is an edge's.
class PathFlow {
 public:
  PathFlow(std::span<const PowerPart> path, std::span<const int> down,
           std::span<const Watts> stored = {})
      : parts_(path.size()), first_(2 * path.size() + 2) {
    for (std::size_t i = 0; i < parts_; ++i) {
      const PowerPart& part = path[i];
      const int up = part.bank.units - down[i];
      const double capacity = part.capacity > Watts{} ? part.capacity.base_units() : kUnlimited;
      add(entry(i), leave(i), up > 0 ? std::min(kUnlimited, up * capacity) : 0);
      if (part.from.empty()) add(source(), entry(i), kUnlimited);
      for (const std::size_t from : part.from) add(leave(from), entry(i), kUnlimited);
    }
    for (std::size_t i = 0; i < stored.size(); ++i) {
      stores_.push_back({edges_.size(), std::min(kUnlimited, stored[i].base_units())});
      add(source(), entry(i), 0);
    }
  }

  /// The power that flows out of a part's batteries.
  [[nodiscard]] Watts from_store(std::size_t part) const {
    return Watts{edges_[stores_[part].edge ^ 1].left};
  }

  void want(std::size_t part, double watts) { add(leave(part), sink(), watts); }

  /// Batteries give what is missing from outside: no later way takes back what enters the path.
  double most() {
    double sum = filled();
    for (const Store& store : stores_) edges_[store.edge].left = store.most;
    if (!stores_.empty()) sum += filled();
    return sum;
  }

 private:
  struct Edge {
    std::size_t to;
    double left;
  };
  struct Store {
    std::size_t edge;
    double most;
  };
  [[nodiscard]] std::size_t entry(std::size_t part) const { return 2 * part; }
  [[nodiscard]] std::size_t leave(std::size_t part) const { return 2 * part + 1; }
  [[nodiscard]] std::size_t source() const { return 2 * parts_; }
  [[nodiscard]] std::size_t sink() const { return 2 * parts_ + 1; }

  void add(std::size_t from, std::size_t to, double capacity) {
    first_[from].push_back(edges_.size());
    edges_.push_back({to, capacity});
    first_[to].push_back(edges_.size());
    edges_.push_back({from, 0});
  }

  double filled() {
    double sum = 0;
    while (true) {
      const double more = augment();
      if (more <= 0) return sum;
      sum += more;
    }
  }

  /// Fills one shortest path with capacity left and returns its flow; 0 if there is none.
  double augment() {
    constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
    std::vector<std::size_t> by(first_.size(), kNone), queue{source()};
    for (std::size_t at = 0; at < queue.size() && by[sink()] == kNone; ++at) {
      for (const std::size_t e : first_[queue[at]]) {
        const std::size_t to = edges_[e].to;
        if (edges_[e].left <= kNothing || to == source() || by[to] != kNone) continue;
        by[to] = e;
        queue.push_back(to);
      }
    }
    if (by[sink()] == kNone) return 0;
    double least = kUnlimited;
    for (std::size_t v = sink(); v != source(); v = edges_[by[v] ^ 1].to) {
      least = std::min(least, edges_[by[v]].left);
    }
    for (std::size_t v = sink(); v != source(); v = edges_[by[v] ^ 1].to) {
      edges_[by[v]].left -= least;
      edges_[by[v] ^ 1].left += least;
    }
    return least;
  }

  static constexpr double kNothing = 1e-6;  // W
  std::size_t parts_;
  std::vector<Edge> edges_;
  std::vector<Store> stores_;  ///< by part
  std::vector<std::vector<std::size_t>> first_;
};

/// Whether power from outside or from batteries gets through each part.
std::vector<bool> reached(std::span<const PowerPart> path, std::span<const int> down,
                          std::span<const Watts> stored) {
  std::vector<bool> out(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool fed = path[i].from.empty() || (!stored.empty() && stored[i] > Watts{}) ||
                     std::ranges::any_of(path[i].from, [&](std::size_t from) { return out[from]; });
    out[i] = fed && path[i].bank.units > down[i];
  }
  return out;
}

double nodes_of(const PowerPart& part, int down) {
  return static_cast<double>(part.bank.units - down) * part.nodes;
}

/// Whether each node that is fed gets `per_node`, and what flows then.
struct Sufficing {
  bool enough = false;
  PathFlow flow;
};
Sufficing suffices(std::span<const PowerPart> path, std::span<const int> down,
                   const std::vector<bool>& fed, double per_node, std::span<const Watts> stored) {
  Sufficing out{.enough = false, .flow = PathFlow(path, down, stored)};
  double wanted = 0;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i].nodes == 0 || !fed[i]) continue;
    const double watts = nodes_of(path[i], down[i]) * per_node;
    out.flow.want(i, watts);
    wanted += watts;
  }
  out.enough = out.flow.most() >= wanted * (1 - 1e-12) - 1;
  return out;
}

}  // namespace

PathDelivery delivered(std::span<const PowerPart> path, std::span<const int> down, Watts per_node,
                       std::span<const Watts> stored) {
  const std::vector<bool> fed = reached(path, down, stored);
  PathDelivery out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (fed[i]) out.nodes += static_cast<int>(nodes_of(path[i], down[i]));
  }
  if (out.nodes == 0) return {.nodes = 0, .share = 0};
  const double full = per_node.base_units();
  const auto enough = [&](double share) {
    return suffices(path, down, fed, share * full, stored).enough;
  };
  if (enough(1)) return out;
  double low = 0, high = 1;
  for (int i = 0; i < 32; ++i) {
    const double middle = (low + high) / 2;
    (enough(middle) ? low : high) = middle;
  }
  out.share = low;
  return out;
}

bool brings_all(std::span<const PowerPart> path, std::span<const int> down, Watts per_node,
                int needed) {
  const std::vector<bool> fed = reached(path, down, {});
  double nodes = 0;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (fed[i]) nodes += nodes_of(path[i], down[i]);
  }
  return nodes >= needed && suffices(path, down, fed, per_node.base_units(), {}).enough;
}

PathBridge bridged(std::span<const PowerPart> path, std::span<const int> down, Watts per_node,
                   const PathDelivery& wanted, std::span<const Joules> energy) {
  const double watts = wanted.share * per_node.base_units();
  std::vector<Watts> stored(path.size());
  double high = 0;  // one over the time, at which every store gives what goes through its part
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (energy[i] <= Joules{}) continue;
    stored[i] = (path[i].bank.units - down[i]) * path[i].capacity;
    high = std::max<double>(high, stored[i] / energy[i] * Seconds{1});
  }
  // Nodes without a path to the outside count as fed while their batteries hold energy.
  const std::vector<bool> fed = reached(path, down, stored);
  const auto at = [&](double rate) {
    for (std::size_t i = 0; i < path.size(); ++i) {
      stored[i] = std::max(0.0, energy[i].base_units()) * Watts{rate};
    }
    return suffices(path, down, fed, watts, stored);
  };
  double low = 0;
  if (at(low).enough) high = 0;
  while (high > low * (1 + 1e-12) && high > 1e-12) {
    const double middle = (low + high) / 2;
    (at(middle).enough ? high : low) = middle;
  }
  const Sufficing found = at(high);
  PathBridge out{.lasts = Seconds{high > 0 ? 1 / high : INFINITY}, .from = {}};
  for (std::size_t i = 0; i < path.size(); ++i) out.from.push_back(found.flow.from_store(i));
  return out;
}

Watts deliverable(std::span<const PowerPart> path, std::span<const int> down) {
  PathFlow flow(path, down);
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i].nodes > 0) flow.want(i, kUnlimited);
  }
  return Watts{flow.most()};
}

int fed_nodes(std::span<const PowerPart> path) {
  int nodes = 0;
  for (const PowerPart& part : path) nodes += part.bank.units * part.nodes;
  return nodes;
}

std::vector<PowerPart> with_capacities(std::vector<PowerPart> path, Watts node_peak, double pue) {
  for (std::size_t i = 0; i < path.size(); ++i) {
    PowerPart& part = path[i];
    if (part.carries == PathLoad::site) {
      part.over_machines = pue;
      part.capacity = part.capacity / pue;
    }
    if (part.oversubscription <= 0) continue;
    std::vector<bool> behind(path.size());
    double nodes = 0;
    for (std::size_t j = i; j < path.size(); ++j) {
      behind[j] = j == i ||
                  std::ranges::any_of(path[j].from, [&](std::size_t from) { return behind[from]; });
      if (behind[j]) nodes += nodes_of(path[j], 0);
    }
    part.capacity = nodes / (part.oversubscription * part.bank.units) * node_peak;
  }
  return path;
}

std::vector<int> without_generators(std::span<const PowerPart> path, std::span<const int> down) {
  std::vector<int> out(down.begin(), down.end());
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i].generator) out[i] = path[i].bank.units;
  }
  return out;
}

Joules full_store(const PowerPart& part, int down) {
  return (part.bank.units - down) * part.capacity * part.bridge;
}

}  // namespace lockstep
