#include "topologies/routes/distances.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <map>
#include <utility>

namespace lockstep {
namespace {

constexpr std::size_t kSetsAtOnce = 64;  // bits of a word

/// Breadth-first searches from up to 64 sets, a bit each.
class Searches {
 public:
  explicit Searches(const ClusterGraph& graph)
      : graph_(graph), seen_(graph.vertex_count()), now_(seen_.size()), next_(seen_.size()) {}

  void start(Vertex at, std::size_t set) {
    if (now_[at] == 0) frontier_.push_back(at);
    now_[at] |= std::uint64_t{1} << set;
    seen_[at] |= std::uint64_t{1} << set;
  }

  /// Calls found(vertex, set) for all that are one link farther; false: there are none.
  template <class Found>
  bool step(Found found) {
    touched_.clear();
    for (const Vertex v : frontier_) {
      for (GraphLink i = graph_.first_link()[v]; i < graph_.first_link()[v + 1]; ++i) {
        const Vertex to = graph_.target()[i];
        const std::uint64_t fresh = now_[v] & ~seen_[to];
        if (fresh == 0 || to < graph_.port_count()) continue;
        if (next_[to] == 0) touched_.push_back(to);
        next_[to] |= fresh;
      }
      now_[v] = 0;
    }
    frontier_.swap(touched_);
    for (const Vertex v : frontier_) {
      now_[v] = std::exchange(next_[v], 0);
      seen_[v] |= now_[v];
      for (std::uint64_t left = now_[v]; left != 0; left &= left - 1) {
        found(v, static_cast<std::size_t>(std::countr_zero(left)));
      }
    }
    return !frontier_.empty();
  }

  void clear() {
    for (const Vertex v : frontier_) now_[v] = 0;
    frontier_.clear();
    std::ranges::fill(seen_, 0);
  }

 private:
  const ClusterGraph& graph_;
  std::vector<std::uint64_t> seen_, now_, next_;  ///< by vertex: of which sets
  std::vector<Vertex> frontier_, touched_;
};

}  // namespace

SetDistances::SetDistances(const ClusterGraph& graph, std::span<const std::vector<Vertex>> sets,
                           std::uint8_t start)
    : switches_(graph.vertex_count() - graph.port_count()),
      distance_(sets.size() * switches_, kUnreachable) {
  const Vertex first = graph.port_count();
  Searches searches(graph);
  for (std::size_t batch = 0; batch < sets.size(); batch += kSetsAtOnce) {
    const std::size_t end = std::min(sets.size(), batch + kSetsAtOnce);
    int depth = start;
    const auto found = [&](Vertex at, std::size_t set) {
      distance_[(batch + set) * switches_ + (at - first)] = static_cast<std::uint8_t>(depth);
    };
    for (std::size_t set = batch; set < end; ++set) {
      for (const Vertex at : sets[set]) {
        assert(at >= first && "messages pass through switches only");
        searches.start(at, set - batch);
        found(at, set - batch);
      }
    }
    do {
      ++depth;
    } while (depth <= kMax && searches.step(found));
    searches.clear();
  }
}

PortDistances::PortDistances(const ClusterGraph& graph) : class_of_(graph.port_count()) {
  std::map<std::vector<Vertex>, std::uint32_t> known;
  std::vector<std::vector<Vertex>> sets;
  for (Vertex port = 0; port < graph.port_count(); ++port) {
    std::vector<Vertex> on;
    for (GraphLink i = graph.first_link()[port]; i < graph.first_link()[port + 1]; ++i) {
      on.push_back(graph.target()[i]);
    }
    std::ranges::sort(on);
    on.erase(std::ranges::unique(on).begin(), on.end());
    const auto [it, is_new] = known.try_emplace(on, static_cast<std::uint32_t>(sets.size()));
    if (is_new) sets.push_back(std::move(on));
    class_of_[port] = it->second;
  }
  classes_ = static_cast<std::uint32_t>(sets.size());
  distances_ = SetDistances(graph, sets, 1);
}

int PortDistances::between(const ClusterGraph& graph, Vertex from, Vertex to) const {
  if (from == to) return 0;
  const std::span<const std::uint8_t> to_port = row(to);
  int nearest = SetDistances::kUnreachable;
  for (GraphLink i = graph.first_link()[from]; i < graph.first_link()[from + 1]; ++i) {
    nearest = std::min<int>(nearest, to_port[graph.target()[i] - graph.port_count()]);
  }
  return nearest + 1;
}

}  // namespace lockstep
