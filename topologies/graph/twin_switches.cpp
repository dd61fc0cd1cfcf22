#include "topologies/graph/twin_switches.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

namespace lockstep {
namespace {

constexpr std::size_t as_index(int i) { return static_cast<std::size_t>(i); }

/// The switches that a switch is joined to, ascending, each once.
class Neighbours {
 public:
  Neighbours(const ClusterGraph& graph, const std::function<std::int64_t(GraphLink)>& weight)
      : graph_(graph), weight_(weight) {}

  const std::vector<TwinSwitches::Edge>& of(int number) {
    list_.clear();
    const Vertex v = graph_.port_count() + static_cast<Vertex>(number);
    for (GraphLink i = graph_.first_link()[v]; i < graph_.first_link()[v + 1]; ++i) {
      const Vertex to = graph_.target()[i];
      if (to < graph_.port_count()) continue;
      list_.push_back({static_cast<int>(to - graph_.port_count()), weight_(i)});
    }
    std::ranges::sort(list_, {}, &TwinSwitches::Edge::to);
    std::size_t kept = 0;
    for (const TwinSwitches::Edge& edge : list_) {
      if (kept > 0 && list_[kept - 1].to == edge.to) {
        list_[kept - 1].weight += edge.weight;
      } else {
        list_[kept++] = edge;
      }
    }
    list_.resize(kept);
    return list_;
  }

 private:
  const ClusterGraph& graph_;
  const std::function<std::int64_t(GraphLink)>& weight_;
  std::vector<TwinSwitches::Edge> list_;
};

std::uint64_t hash_of(const std::vector<TwinSwitches::Edge>& list) {
  constexpr std::uint64_t kBasis = 14695981039346656037ULL, kPrime = 1099511628211ULL;  // FNV-1a
  std::uint64_t hash = kBasis;
  for (const TwinSwitches::Edge& edge : list) {
    hash = (hash ^ static_cast<std::uint64_t>(edge.to)) * kPrime;
    hash = (hash ^ static_cast<std::uint64_t>(edge.weight)) * kPrime;
  }
  return hash;
}

}  // namespace

TwinSwitches::TwinSwitches(const ClusterGraph& graph,
                           const std::function<std::int64_t(GraphLink)>& weight) {
  const int switches = static_cast<int>(graph.vertex_count() - graph.port_count());
  Neighbours neighbours(graph, weight), of_first(graph, weight);
  std::unordered_map<std::uint64_t, std::vector<int>> known;  // classes of a hash
  std::vector<int> first;                                     // switch, by class
  for (int s = 0; s < switches; ++s) {
    const std::vector<Edge>& own = neighbours.of(s);
    std::vector<int>& alike = known[hash_of(own)];
    const auto at = std::ranges::find_if(alike, [&](int c) {
      return std::ranges::equal(
          own, of_first.of(first[as_index(c)]),
          [](const Edge& a, const Edge& b) { return a.to == b.to && a.weight == b.weight; });
    });
    if (at != alike.end()) {
      of.push_back(*at);
      ++size[as_index(*at)];
      continue;
    }
    of.push_back(static_cast<int>(first.size()));
    alike.push_back(of.back());
    first.push_back(s);
    size.push_back(1);
  }
  edges.resize(first.size());
  std::vector<int> seen_from(first.size(), -1);
  for (std::size_t c = 0; c < first.size(); ++c) {
    for (const Edge& edge : neighbours.of(first[c])) {
      const int to = of[as_index(edge.to)];
      if (seen_from[as_index(to)] == static_cast<int>(c)) continue;
      seen_from[as_index(to)] = static_cast<int>(c);
      edges[c].push_back({to, edge.weight});
    }
  }
}

std::size_t TwinSwitches::joined_pairs() const {
  std::int64_t ends = 0;
  for (std::size_t c = 0; c < classes(); ++c) {
    for (const Edge& edge : edges[c]) ends += size[c] * size[as_index(edge.to)];
  }
  return static_cast<std::size_t>(ends / 2);
}

}  // namespace lockstep
