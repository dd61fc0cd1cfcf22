#include "topologies/graph/bisection.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

#include "topologies/graph/twin_switches.hpp"

namespace lockstep {
namespace {

using Amount = std::int64_t;  // bytes per second
using CutTraits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct CutLink {
  Amount capacity = 0, residual = 0;
  CutTraits::edge_descriptor reverse;
};
using CutGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, CutLink>;

/// The reverse of a link has no capacity of its own: Boost's conversion of preflows needs that.
void add_link(CutGraph& graph, std::size_t from, std::size_t to, Amount capacity) {
  const auto forward = boost::add_edge(from, to, graph).first;
  const auto backward = boost::add_edge(to, from, graph).first;
  graph[forward].capacity = capacity;
  graph[forward].reverse = backward;
  graph[backward].reverse = forward;
}

/// Switches with what joins them, and hosts with what joins each to its switches: all that a cut
/// between hosts depends on.
class HostCuts {
 public:
  explicit HostCuts(const ClusterGraph& graph)
      : graph_(graph),
        hosts_(static_cast<std::size_t>(graph.nodes())),
        switches_(graph.vertex_count() - graph.port_count()),
        twins_(graph, [&graph](GraphLink link) { return amount(graph.capacity()[link]); }),
        joined_(twins_.joined_pairs()),
        up_(hosts_),
        sends_(hosts_, 0) {
    const std::span<const GraphVertex> vertices = graph.vertices();
    const Vertex ports = graph.port_count();
    for (const GraphCable& cable : graph.cables()) {
      const Amount rate = amount(cable.capacity);
      const Vertex a = std::min(cable.a, cable.b), b = std::max(cable.a, cable.b);
      for (const Vertex v : {a, b}) {
        if (v < ports) sends_[static_cast<std::size_t>(vertices[v].node)] += rate;
      }
      if (b < ports) {
        direct_[{host_of(vertices[a]), host_of(vertices[b])}] += rate;
      } else if (a < ports) {
        add_up(up_[host_of(vertices[a])], b - ports, rate);
      }
    }
  }

  [[nodiscard]] std::size_t hosts() const { return hosts_; }
  [[nodiscard]] std::size_t edges() const { return joined_ + switches_; }

  /// Hosts that hang on the same switches by cables of the same rates; each by itself where hosts
  /// are joined directly. Classes with hosts first in order first.
  [[nodiscard]] std::vector<std::vector<std::size_t>> alike() const {
    std::vector<std::vector<std::size_t>> classes;
    std::map<UpLinks, std::size_t> by_cables;
    for (std::size_t h = 0; h < hosts_; ++h) {
      const auto [at, fresh] = by_cables.emplace(up_[h], classes.size());
      if (fresh || !direct_.empty()) {
        classes.push_back({h});
      } else {
        classes[at->second].push_back(h);
      }
    }
    return classes;
  }

  /// Keeps the narrowest of the cuts tried. `in_first`: by host, whether it is in the first half.
  void attempt(const std::vector<bool>& in_first) {
    std::array<Amount, 2> sends{};
    for (std::size_t h = 0; h < hosts_; ++h) sends[in_first[h] ? 0 : 1] += sends_[h];
    const Amount flow = flow_between(in_first);
    const Amount injection = std::min(sends[0], sends[1]);
    ++best_.cuts;
    const auto better = std::tuple{flow, injection};
    if (best_.cuts > 1 && better >= kept_) return;
    kept_ = better;
    best_.rate = BytesPerSecond{static_cast<double>(flow)};
    best_.injection = BytesPerSecond{static_cast<double>(injection)};
  }

  /// Cables from a host to each other one; hosts that it does not reach are as far as can be.
  [[nodiscard]] std::vector<int> distances(std::size_t from) const {
    // By switch, then by host.
    std::vector<int> far(switches_ + hosts_, std::numeric_limits<int>::max());
    std::vector<std::size_t> queue{switches_ + from};
    far[queue.front()] = 0;
    const Vertex ports = graph_.port_count();
    const auto reach_from = [&](Vertex v, int hops) {
      for (GraphLink i = graph_.first_link()[v]; i < graph_.first_link()[v + 1]; ++i) {
        const Vertex to = graph_.target()[i];
        const std::size_t next =
            to < ports ? switches_ + host_of(graph_.vertices()[to]) : to - ports;
        if (far[next] != std::numeric_limits<int>::max()) continue;
        far[next] = hops;
        queue.push_back(next);
      }
    };
    for (std::size_t i = 0; i < queue.size(); ++i) {
      const std::size_t at = queue[i];
      const int hops = far[at] + 1;
      if (at < switches_) {
        reach_from(ports + static_cast<Vertex>(at), hops);
        continue;
      }
      if (i > 0 && direct_.empty()) continue;  // a host passes nothing on
      const int host = static_cast<int>(at - switches_);
      for (int nic = 0; nic < graph_.nics(host); ++nic) {
        reach_from(graph_.nic_port(host, nic), hops);
      }
    }
    return {far.begin() + static_cast<std::ptrdiff_t>(switches_), far.end()};
  }

  [[nodiscard]] Bisection best(bool exact) const {
    Bisection out = best_;
    out.exact = exact;
    return out;
  }

 private:
  static std::size_t host_of(const GraphVertex& port) {
    return static_cast<std::size_t>(port.node);
  }

  static Amount amount(BytesPerSecond rate) { return std::llround(rate.base_units()); }

  /// Of a host: to each switch, ascending.
  using UpLinks = std::vector<std::pair<std::size_t, Amount>>;
  static void add_up(UpLinks& up, std::size_t to, Amount rate) {
    const auto at = std::ranges::lower_bound(up, to, {}, &UpLinks::value_type::first);
    if (at != up.end() && at->first == to) {
      at->second += rate;
    } else {
      up.insert(at, {to, rate});
    }
  }

  /// Twins on which as much of both halves hangs are one vertex.
  [[nodiscard]] Amount flow_between(const std::vector<bool>& in_first) const {
    std::vector<std::array<Amount, 2>> hangs(switches_);
    for (std::size_t h = 0; h < hosts_; ++h) {
      for (const auto& [s, rate] : up_[h]) hangs[s][in_first[h] ? 0 : 1] += rate;
    }
    struct Part {
      std::size_t vertex;
      Amount switches;
      std::array<Amount, 2> hangs;  // of each
    };
    std::vector<std::vector<Part>> parts(twins_.classes());
    std::size_t vertices = 0;
    for (std::size_t s = 0; s < switches_; ++s) {
      std::vector<Part>& of_class = parts[static_cast<std::size_t>(twins_.of[s])];
      const auto at = std::ranges::find(of_class, hangs[s], &Part::hangs);
      if (at != of_class.end()) {
        ++at->switches;
      } else {
        of_class.push_back({vertices++, 1, hangs[s]});
      }
    }
    CutGraph graph(vertices + 2);
    const std::size_t source = vertices, sink = vertices + 1;
    for (std::size_t c = 0; c < parts.size(); ++c) {
      for (const TwinSwitches::Edge& edge : twins_.edges[c]) {
        for (const Part& from : parts[c]) {
          for (const Part& to : parts[static_cast<std::size_t>(edge.to)]) {
            add_link(graph, from.vertex, to.vertex, from.switches * to.switches * edge.weight);
          }
        }
      }
      for (const Part& part : parts[c]) {
        const auto [first, second] = part.hangs;
        if (first > 0) add_link(graph, source, part.vertex, part.switches * first);
        if (second > 0) add_link(graph, part.vertex, sink, part.switches * second);
      }
    }
    Amount across = 0;
    for (const auto& [ends, rate] : direct_) {
      if (in_first[ends.first] != in_first[ends.second]) across += rate;
    }
    return across +
           boost::push_relabel_max_flow(graph, source, sink,
                                        boost::capacity_map(get(&CutLink::capacity, graph))
                                            .residual_capacity_map(get(&CutLink::residual, graph))
                                            .reverse_edge_map(get(&CutLink::reverse, graph))
                                            .vertex_index_map(get(boost::vertex_index, graph)));
  }

  const ClusterGraph& graph_;
  std::size_t hosts_, switches_;
  TwinSwitches twins_;
  std::size_t joined_;                                            ///< pairs of switches that are
  std::vector<UpLinks> up_;                                       ///< by host
  std::vector<Amount> sends_;                                     ///< by host
  std::map<std::pair<std::size_t, std::size_t>, Amount> direct_;  ///< hosts
  std::tuple<Amount, Amount> kept_;
  Bisection best_;
};

/// How many ways there are to take `half` hosts out of classes of these sizes; at most `most` + 1.
std::size_t count_cuts(const std::vector<std::vector<std::size_t>>& classes, std::size_t half,
                       std::size_t most) {
  std::vector<std::size_t> ways(half + 1, 0);
  ways[0] = 1;
  for (const std::vector<std::size_t>& alike : classes) {
    for (std::size_t taken = half + 1; taken-- > 0;) {
      std::size_t sum = 0;
      for (std::size_t k = 0; k <= std::min(alike.size(), taken); ++k) sum += ways[taken - k];
      ways[taken] = std::min(sum, most + 1);
    }
  }
  return ways[half];
}

void attempt_all(HostCuts& cuts, const std::vector<std::vector<std::size_t>>& classes,
                 std::size_t half) {
  std::vector<std::size_t> room_after(classes.size() + 1, 0);
  for (std::size_t c = classes.size(); c-- > 0;) {
    room_after[c] = room_after[c + 1] + classes[c].size();
  }
  std::vector<bool> in_first(cuts.hosts(), false);
  const std::function<void(std::size_t, std::size_t)> choose = [&](std::size_t c,
                                                                   std::size_t left) {
    if (c == classes.size()) {
      cuts.attempt(in_first);
      return;
    }
    for (std::size_t k = 0; k <= std::min(classes[c].size(), left); ++k) {
      if (k > 0) in_first[classes[c][k - 1]] = true;
      if (left - k <= room_after[c + 1]) choose(c + 1, left - k);
    }
    for (const std::size_t h : classes[c]) in_first[h] = false;
  };
  choose(0, half);
}

void attempt_some(HostCuts& cuts, std::size_t half) {
  constexpr std::size_t kLargeGraph = 20'000;  // edges: a cut takes a good part of a second
  const int starts = cuts.edges() > kLargeGraph ? 2 : 8;
  std::vector<std::size_t> order(cuts.hosts());
  const auto attempt_order = [&] {
    std::vector<bool> in_first(cuts.hosts(), false);
    for (std::size_t i = 0; i < half; ++i) in_first[order[i]] = true;
    cuts.attempt(in_first);
  };
  std::iota(order.begin(), order.end(), std::size_t{0});
  attempt_order();
  // Each start is the host that lies farthest from all before it, the first of them in order.
  std::vector<int> nearest(cuts.hosts(), std::numeric_limits<int>::max());
  std::size_t start = 0;
  for (int i = 0; i < starts; ++i) {
    const std::vector<int> far = cuts.distances(start);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&far](std::size_t h) { return far[h]; });
    attempt_order();
    for (std::size_t h = 0; h < far.size(); ++h) nearest[h] = std::min(nearest[h], far[h]);
    start = static_cast<std::size_t>(std::ranges::max_element(nearest) - nearest.begin());
    if (nearest[start] == 0) break;
  }
}

}  // namespace

Bisection narrowest_bisection(const ClusterGraph& graph) {
  constexpr std::size_t kMostCuts = 1000, kMostWork = 1'000'000;  // cuts; edges over all of them
  HostCuts cuts(graph);
  const std::size_t half = cuts.hosts() / 2;
  if (half == 0) return {.rate = {}, .injection = {}, .exact = true, .cuts = 0};
  const std::vector<std::vector<std::size_t>> classes = cuts.alike();
  const std::size_t ways = count_cuts(classes, half, kMostCuts);
  const bool all = ways <= kMostCuts && ways * cuts.edges() <= kMostWork;
  if (all) {
    attempt_all(cuts, classes, half);
  } else {
    attempt_some(cuts, half);
  }
  return cuts.best(all);
}

}  // namespace lockstep
