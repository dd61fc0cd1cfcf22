#include "topologies/analysis/analysis.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>

#include "topologies/analysis/switch_graph.hpp"
#include "topologies/formats/canonical_order.hpp"
#include "topologies/graph/bisection.hpp"
#include "topologies/graph/twin_switches.hpp"

namespace lockstep {
namespace {

constexpr int kMostSources = 512;         // of breadth-first searches
constexpr double kFlowWork = 4e6;         // edges that all max-flows together look at, about
constexpr double kRemovalWork = 2e8;      // the same for switches taken away one by one
constexpr std::size_t kMostExamples = 4;  // hosts named for a single point of failure

std::size_t index(int i) { return static_cast<std::size_t>(i); }

/// `count` of the numbers below `of`, evenly spread.
std::vector<int> spread_evenly(int count, int of) {
  std::vector<int> out;
  const int taken = std::min(count, of);
  out.reserve(static_cast<std::size_t>(taken));
  for (int i = 0; i < taken; ++i) {
    out.push_back(static_cast<int>(static_cast<std::int64_t>(i) * of / taken));
  }
  return out;
}

Spread spread_of(std::vector<double>& values) {
  if (values.empty()) return {};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const double median = *middle;
  const auto [least, most] = std::ranges::minmax_element(values);
  return {.least = *least, .median = median, .most = *most};
}

/// Switches and cables by layer, and what each layer carries.
void count_layers(const ClusterGraph& graph, TopologyAnalysis& out) {
  std::map<int, int> switches;
  std::map<std::tuple<int, int, BytesPerSecond>, int> cables;
  struct Loads {
    BytesPerSecond down, across, up;
  };
  std::vector<Loads> loads(graph.vertex_count());
  for (const GraphVertex& v : graph.vertices()) {
    if (!v.is_port()) ++switches[v.level];
  }
  for (const GraphCable& cable : graph.cables()) {
    Vertex low = cable.a, high = cable.b;
    const auto level = [&graph](Vertex v) { return graph.vertices()[v].level; };
    if (level(low) > level(high)) std::swap(low, high);
    ++cables[{level(low), level(high), cable.capacity}];
    if (level(low) == level(high)) {
      loads[low].across += cable.capacity;
      loads[high].across += cable.capacity;
    } else {
      loads[low].up += cable.capacity;
      loads[high].down += cable.capacity;
    }
  }
  for (const auto& [level, count] : switches) out.layers.push_back({level, count});
  for (const auto& [key, count] : cables) {
    const auto& [low, high, rate] = key;
    out.cable_counts.push_back({.low = low, .high = high, .rate = rate, .cables = count});
  }
  for (const LayerCount& layer : out.layers) {
    LayerLoad load;
    load.level = layer.level;
    for (Vertex v = graph.port_count(); v < graph.vertex_count(); ++v) {
      if (graph.vertices()[v].level != layer.level) continue;
      const Loads& of = loads[v];
      load.down += of.down;
      load.across += of.across;
      load.up += of.up;
      const double ratio = of.up > BytesPerSecond{} ? double{of.down / of.up} : 0;
      if (ratio > load.worst) {
        load.worst = ratio;
        load.worst_switch = graph.vertex_name(v);
      }
    }
    out.loads.push_back(load);
  }
}

/// Distances and shortest paths from one class of NICs to others, over classes of switches that are
/// twins: but for the switches of the source, which stand alone.
class Search {
 public:
  Search(const SwitchGraph& graph, const TwinSwitches& twins)
      : graph_(graph), twins_(twins), place_(twins.of), left_(twins.size) {}

  void run(int from) {
    for (const int s : own_) {
      place_[index(s)] = twins_.of[index(s)];
      ++left_[index(twins_.of[index(s)])];
    }
    own_.clear();
    hops_.assign(twins_.classes(), -1);
    paths_.assign(twins_.classes(), 0.0);
    queue_.clear();
    for (const SwitchGraph::Edge& edge : graph_.classes[index(from)].switches) {
      const int place = static_cast<int>(hops_.size());
      place_[index(edge.to)] = place;
      --left_[index(twins_.of[index(edge.to)])];
      own_.push_back(edge.to);
      hops_.push_back(1);
      paths_.push_back(edge.cables);
      queue_.push_back(place);
    }
    const int classes = static_cast<int>(twins_.classes());
    // reach() appends to the queue.
    for (std::size_t i = 0; i < queue_.size(); ++i) {  // NOLINT(modernize-loop-convert)
      const int here = queue_[i];
      const bool alone = here >= classes;
      const int of = alone ? twins_.of[index(own_[index(here - classes)])] : here;
      const double paths =
          paths_[index(here)] * (alone ? 1.0 : static_cast<double>(left_[index(here)]));
      for (const TwinSwitches::Edge& edge : twins_.edges[index(of)]) {
        if (left_[index(edge.to)] > 0) reach(edge, hops_[index(here)] + 1, paths);
      }
    }
  }
  /// Cables from a NIC of the source to one of the class, and ways of that length; -1: none.
  [[nodiscard]] std::pair<int, double> to(int target) const {
    int hops = -1;
    double paths = 0;
    for (const SwitchGraph::Edge& edge : graph_.classes[index(target)].switches) {
      const std::size_t place = index(place_[index(edge.to)]);
      const int here = hops_[place] + 1;
      if (here == 0 || (hops >= 0 && here > hops)) continue;
      if (here != hops) paths = 0;
      hops = here;
      paths += paths_[place] * edge.cables;
    }
    return {hops, paths};
  }
  /// Classes with a cable to a switch of the source, each once.
  [[nodiscard]] std::vector<int> beside() const {
    std::vector<int> out;
    for (const int s : own_) {
      for (const SwitchGraph::Edge& edge : graph_.below[index(s)]) out.push_back(edge.to);
    }
    std::ranges::sort(out);
    out.erase(std::ranges::unique(out).begin(), out.end());
    return out;
  }

 private:
  void reach(const TwinSwitches::Edge& edge, int hops, double paths) {
    int& known = hops_[index(edge.to)];
    if (known < 0) {
      known = hops;
      queue_.push_back(edge.to);
    }
    if (known == hops) paths_[index(edge.to)] += paths * static_cast<double>(edge.weight);
  }

  const SwitchGraph& graph_;
  const TwinSwitches& twins_;
  std::vector<int> place_;          ///< by switch: its class or, of the source, beyond them
  std::vector<std::int64_t> left_;  ///< by class: switches that are not the source's
  std::vector<int> own_;            ///< the source's
  std::vector<int> hops_;           ///< by place
  std::vector<double> paths_;
  std::vector<int> queue_;
};

/// Classes of NICs with as many cables to the same classes of twins: as far from all that hangs on
/// other switches.
struct AlikeClasses {
  explicit AlikeClasses(const SwitchGraph& graph, const TwinSwitches& twins) {
    std::map<std::vector<std::pair<int, int>>, std::size_t> known;
    for (std::size_t c = 0; c < graph.classes.size(); ++c) {
      std::vector<std::pair<int, int>> key;
      for (const SwitchGraph::Edge& edge : graph.classes[c].switches) {
        key.emplace_back(twins.of[index(edge.to)], edge.cables);
      }
      std::ranges::sort(key);
      of.push_back(known.try_emplace(std::move(key), members.size()).first->second);
      if (of.back() == members.size()) {
        members.emplace_back();
        nics.push_back(0);
      }
      members[of.back()].push_back(static_cast<int>(c));
      nics[of.back()] += graph.classes[c].nics.size();
    }
  }
  std::vector<std::size_t> of;            ///< by class
  std::vector<std::vector<int>> members;  ///< classes, ascending
  std::vector<std::size_t> nics;          ///< of all of them
};

/// Values, and how often there is each.
class Counted {
 public:
  void add(double value, std::int64_t times) {
    counts_[value] += times;
    all_ += times;
  }
  /// As spread_of() has it of the values one by one.
  [[nodiscard]] Spread spread() const {
    if (all_ == 0) return {};
    std::int64_t below = 0;
    auto middle = counts_.begin();
    while (below + middle->second <= all_ / 2) below += (middle++)->second;
    return {
        .least = counts_.begin()->first, .median = middle->first, .most = counts_.rbegin()->first};
  }

 private:
  std::map<double, std::int64_t> counts_;
  std::int64_t all_ = 0;
};

void measure_distances(const SwitchGraph& graph, const TwinSwitches& twins, TopologyAnalysis& out) {
  const int classes = static_cast<int>(graph.classes.size());
  constexpr int kSameSwitch = 2;  // cables: up and down again
  double sum = 0, pairs = 0;
  Counted ways;
  Search search(graph, twins);
  const AlikeClasses alike(graph, twins);
  const std::vector<int> sources = spread_evenly(kMostSources, classes);
  for (const int from : sources) {
    search.run(from);
    const auto here = static_cast<double>(graph.classes[index(from)].nics.size());
    const auto add = [&](int to, std::size_t nics, std::size_t times) {
      const auto [hops, paths] = search.to(to);
      if (hops < 0 || nics == 0) return;
      const double count = here * static_cast<double>(nics);
      sum += hops * count;
      pairs += count;
      out.diameter = std::max(out.diameter, hops);
      if (hops > kSameSwitch) ways.add(paths, static_cast<std::int64_t>(times));
    };
    std::map<std::size_t, std::vector<int>> apart;  // by number among the alike
    for (const int to : search.beside()) {
      const std::size_t there = graph.classes[index(to)].nics.size();
      add(to, to == from ? there - 1 : there, 1);
      apart[alike.of[index(to)]].push_back(to);
    }
    for (std::size_t a = 0; a < alike.members.size(); ++a) {
      const std::vector<int>& members = alike.members[a];
      std::size_t nics = alike.nics[a], first = 0, taken = 0;
      if (const auto it = apart.find(a); it != apart.end()) {
        taken = it->second.size();
        for (const int to : it->second) nics -= graph.classes[index(to)].nics.size();
        while (first < taken && members[first] == it->second[first]) ++first;
      }
      if (taken < members.size()) add(members[first], nics, members.size() - taken);
    }
  }
  out.sources = static_cast<int>(sources.size());
  out.sources_of = classes;
  out.average_distance = pairs > 0 ? sum / pairs : 0;
  out.shortest_paths = ways.spread();
}

using SwitchFlowTraits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct SwitchFlowEdge {
  std::int64_t capacity = 0;
  std::int64_t residual = 0;
  SwitchFlowTraits::edge_descriptor reverse;
};
using SwitchFlow = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS,
                                         boost::no_property, SwitchFlowEdge>;

/// The largest flow between two switches, over classes of twins.
class PairFlows {
 public:
  explicit PairFlows(const TwinSwitches& twins) : twins_(twins) {}

  [[nodiscard]] std::int64_t between(int from, int to) {
    const int source = twins_.of[index(from)], sink = twins_.of[index(to)];
    if (twins_.size[index(source)] == 1 && twins_.size[index(sink)] == 1) {
      if (!whole_) join_classes(twins_.size, whole_.emplace(twins_.classes()));
      return largest(*whole_, index(source), index(sink));
    }
    // The two stand alone, beyond the classes.
    std::vector<std::int64_t> left = twins_.size;
    --left[index(source)];
    --left[index(sink)];
    const std::size_t one = twins_.classes(), other = one + 1;
    SwitchFlow flow(other + 1);
    join_classes(left, flow);
    for (const TwinSwitches::Edge& edge : twins_.edges[index(source)]) {
      join(flow, one, index(edge.to), edge.weight * left[index(edge.to)]);
      if (edge.to == sink) join(flow, one, other, edge.weight);
    }
    for (const TwinSwitches::Edge& edge : twins_.edges[index(sink)]) {
      join(flow, index(edge.to), other, edge.weight * left[index(edge.to)]);
    }
    return largest(flow, one, other);
  }

 private:
  /// Boost wants a reverse edge of no capacity for each; a cable, which carries both ways, has
  /// four.
  static void join(SwitchFlow& flow, std::size_t from, std::size_t to, std::int64_t capacity) {
    if (capacity == 0) return;
    const auto there = add_edge(from, to, flow).first;
    const auto back = add_edge(to, from, flow).first;
    flow[there] = {capacity, 0, back};
    flow[back] = {0, 0, there};
  }
  /// In place: a copy's edges would have the reverse edges of the original.
  void join_classes(const std::vector<std::int64_t>& size, SwitchFlow& out) const {
    for (std::size_t c = 0; c < size.size(); ++c) {
      for (const TwinSwitches::Edge& edge : twins_.edges[c]) {
        join(out, c, index(edge.to), edge.weight * size[c] * size[index(edge.to)]);
      }
    }
  }
  static std::int64_t largest(SwitchFlow& flow, std::size_t from, std::size_t to) {
    return boost::push_relabel_max_flow(
        flow, from, to,
        boost::capacity_map(get(&SwitchFlowEdge::capacity, flow))
            .residual_capacity_map(get(&SwitchFlowEdge::residual, flow))
            .reverse_edge_map(get(&SwitchFlowEdge::reverse, flow))
            .vertex_index_map(get(boost::vertex_index, flow)));
  }

  const TwinSwitches& twins_;
  std::optional<SwitchFlow> whole_;  ///< of all classes, once it was asked for
};

/// Switches that are joined, when one of them or a cable is taken away.
class Parts {
 public:
  explicit Parts(const SwitchGraph& graph) : graph_(graph), part_(graph.edges.size()) {}

  static constexpr int kNone = -1;

  void find(int without_switch, std::pair<int, int> without_cable) {
    std::ranges::fill(part_, kNone);
    weight_.clear();
    for (int s = 0; s < graph_.switches(); ++s) {
      if (part_[index(s)] != kNone || s == without_switch) continue;
      flood(s, without_switch, without_cable);
    }
  }
  [[nodiscard]] int of(int s) const { return part_[index(s)]; }
  [[nodiscard]] std::size_t weight(int part) const { return weight_[index(part)]; }
  [[nodiscard]] int count() const { return static_cast<int>(weight_.size()); }

 private:
  void flood(int start, int without_switch, std::pair<int, int> without_cable) {
    const int part = count();
    weight_.push_back(0);
    std::vector<int> open{start};
    part_[index(start)] = part;
    while (!open.empty()) {
      const int here = open.back();
      open.pop_back();
      for (const SwitchGraph::Edge& edge : graph_.below[index(here)]) {
        weight_.back() += graph_.classes[index(edge.to)].nics.size();
      }
      for (const SwitchGraph::Edge& edge : graph_.edges[index(here)]) {
        if (edge.to == without_switch || part_[index(edge.to)] != kNone) continue;
        if (std::pair(here, edge.to) == without_cable) continue;
        if (std::pair(edge.to, here) == without_cable) continue;
        part_[index(edge.to)] = part;
        open.push_back(edge.to);
      }
    }
  }

  const SwitchGraph& graph_;
  std::vector<int> part_;
  std::vector<std::size_t> weight_;  ///< NICs
};

/// Switches with NICs, by the part of the fabric that they are in: others do not reach each other.
std::vector<std::vector<int>> ends_by_part(const SwitchGraph& graph) {
  Parts parts(graph);
  parts.find(Parts::kNone, {Parts::kNone, Parts::kNone});
  std::vector<std::vector<int>> out(index(parts.count()));
  for (int s = 0; s < graph.switches(); ++s) {
    if (!graph.below[index(s)].empty()) out[index(parts.of(s))].push_back(s);
  }
  std::erase_if(out, [](const std::vector<int>& ends) { return ends.size() < 2; });
  return out;
}

/// Paths that share no cable, between switches that have NICs.
void count_disjoint_paths(const SwitchGraph& graph, const TwinSwitches& twins,
                          TopologyAnalysis& out) {
  constexpr double kFewestPairs = 8, kMostPairs = 256;
  const std::vector<std::vector<int>> parts = ends_by_part(graph);
  for (const std::vector<int>& ends : parts) {
    const auto count = static_cast<double>(ends.size());
    out.pairs_of_switches += count * (count - 1) / 2;
  }
  if (parts.empty()) return;
  std::size_t edges = 1;
  for (const auto& of : graph.edges) edges += of.size();
  const double affordable = std::floor(kFlowWork / static_cast<double>(edges));
  const int pairs = static_cast<int>(
      std::min(out.pairs_of_switches, std::clamp(affordable, kFewestPairs, kMostPairs)));
  PairFlows flows(twins);
  std::vector<double> ways;
  const int most = static_cast<int>(parts.size());
  for (int i = 0; i < pairs; ++i) {
    // Parts take turns. Starts go around evenly, partners by a step that differs from one to the
    // next.
    const std::vector<int>& ends = parts[index(i % most)];
    const int turn = i / most, turns = (pairs + most - 1) / most;
    const int size = static_cast<int>(ends.size());
    const int from = static_cast<int>(static_cast<std::int64_t>(turn) * size / turns) % size;
    const int step = 1 + static_cast<int>((static_cast<std::int64_t>(i) * 7919) % (size - 1));
    const int to = (from + step) % size;
    ways.push_back(static_cast<double>(flows.between(ends[index(from)], ends[index(to)])));
  }
  out.disjoint_pairs = pairs;
  out.disjoint_paths = spread_of(ways);
}

class FailureSearch {
 public:
  FailureSearch(const DrawnFabric& fabric, const SwitchGraph& graph, TopologyAnalysis& out)
      : fabric_(fabric), graph_(graph), out_(out), whole_(graph), after_(graph) {
    whole_.find(Parts::kNone, {Parts::kNone, Parts::kNone});
    lost_.resize(graph.classes.size());
  }

  void run() {
    count_parts();
    std::vector<std::size_t> cut_switches;
    std::vector<std::pair<int, int>> bridges;
    find_candidates(cut_switches, bridges);
    const std::set<std::size_t> cuts(cut_switches.begin(), cut_switches.end());
    const auto each = static_cast<double>(edges_ + graph_.edges.size() + 1);
    double work = 0;
    for (int s = 0; s < graph_.switches(); ++s) {
      lost_classes_.clear();
      const bool splits = cuts.contains(index(s));
      if (splits && work < kRemovalWork) {
        work += each;
        after_.find(s, {Parts::kNone, Parts::kNone});
        lose_by_parts(whole_.of(s));
      } else {
        out_.single_points_complete = out_.single_points_complete && !splits;
        lose_at(s);
      }
      add(fabric_.graph.vertex_name(graph_.vertex[index(s)]), true);
    }
    for (const auto& bridge : bridges) {
      if (work >= kRemovalWork) out_.single_points_complete = false;
      if (work >= kRemovalWork) break;
      work += each;
      lost_classes_.clear();
      after_.find(Parts::kNone, bridge);
      lose_by_parts(whole_.of(bridge.first));
      add(fabric_.graph.vertex_name(graph_.vertex[index(bridge.first)]) + " to " +
              fabric_.graph.vertex_name(graph_.vertex[index(bridge.second)]),
          false);
    }
    std::ranges::stable_sort(out_.single_points, [](const SinglePoint& a, const SinglePoint& b) {
      return a.hosts > b.hosts;
    });
  }

 private:
  void count_parts() {
    std::set<int> parts;
    for (const SwitchGraph::NicClass& c : graph_.classes) {
      if (c.switches.empty()) {
        out_.unplugged_nics += static_cast<int>(c.nics.size());
      } else {
        parts.insert(whole_.of(c.switches.front().to));
      }
    }
    out_.parts = static_cast<int>(parts.size());
    for (const SwitchGraph::HostClass& host : graph_.hosts) {
      if (host.classes.size() != 1) continue;
      const SwitchGraph::NicClass& c = graph_.classes[index(host.classes.front())];
      if (c.switches.size() != 1 || c.switches.front().cables != 1) continue;
      for (const int node : host.nodes) out_.hosts_on_one_cable += fabric_.graph.nics(node) == 1;
    }
  }

  /// Switches that join parts of the fabric, and single cables that do, ascending. Source: Tarjan
  /// 1972, SIAM J. Comput. 1(2), section 3: `low` is the first switch entered that those below one
  /// reach by an edge past the search's tree.
  void find_candidates(std::vector<std::size_t>& switches,
                       std::vector<std::pair<int, int>>& bridges) {
    for (int s = 0; s < graph_.switches(); ++s) {
      edges_ += static_cast<std::size_t>(std::ranges::count_if(
          graph_.edges[index(s)], [s](const SwitchGraph::Edge& edge) { return edge.to > s; }));
    }
    std::vector<int> entered(graph_.edges.size(), 0), low(graph_.edges.size(), 0);
    std::vector<char> cuts(graph_.edges.size(), 0);
    int time = 0;
    struct Frame {
      int at, parent;
      std::size_t next;
    };
    std::vector<Frame> stack;
    for (int root = 0; root < graph_.switches(); ++root) {
      if (entered[index(root)] != 0) continue;
      int children = 0;
      entered[index(root)] = low[index(root)] = ++time;
      stack.push_back({root, -1, 0});
      while (!stack.empty()) {
        Frame& frame = stack.back();
        const int at = frame.at, parent = frame.parent;
        if (frame.next < graph_.edges[index(at)].size()) {
          const int to = graph_.edges[index(at)][frame.next++].to;
          if (to == parent) continue;
          if (entered[index(to)] != 0) {
            low[index(at)] = std::min(low[index(at)], entered[index(to)]);
            continue;
          }
          entered[index(to)] = low[index(to)] = ++time;
          stack.push_back({to, at, 0});
          continue;
        }
        stack.pop_back();
        if (parent < 0) continue;
        low[index(parent)] = std::min(low[index(parent)], low[index(at)]);
        if (parent == root) {
          ++children;
        } else if (low[index(at)] >= entered[index(parent)]) {
          cuts[index(parent)] = 1;
        }
        if (low[index(at)] > entered[index(parent)]) bridges.emplace_back(std::minmax(at, parent));
      }
      cuts[index(root)] = children > 1 ? 1 : 0;
    }
    for (std::size_t s = 0; s < cuts.size(); ++s) {
      if (cuts[s] != 0) switches.push_back(s);
    }
    std::erase_if(bridges, [this](const std::pair<int, int>& ends) {
      const auto& of = graph_.edges[index(ends.first)];
      return std::ranges::find(of, ends.second, &SwitchGraph::Edge::to)->cables > 1;
    });
    std::ranges::sort(bridges);
  }

  void lose_at(int s) {
    for (const SwitchGraph::Edge& edge : graph_.below[index(s)]) {
      if (graph_.classes[index(edge.to)].switches.size() == 1) lost_classes_.push_back(edge.to);
    }
  }

  /// Of what was one part: all classes that are not in the largest of its remains.
  void lose_by_parts(int whole) {
    int largest = Parts::kNone;
    for (int s = 0; s < graph_.switches(); ++s) {
      if (whole_.of(s) != whole || after_.of(s) == Parts::kNone) continue;
      const int part = after_.of(s);
      if (largest == Parts::kNone || after_.weight(part) > after_.weight(largest)) largest = part;
    }
    for (std::size_t c = 0; c < graph_.classes.size(); ++c) {
      const auto& on = graph_.classes[c].switches;
      if (on.empty() || whole_.of(on.front().to) != whole) continue;
      const bool stays = std::ranges::any_of(on, [&](const SwitchGraph::Edge& edge) {
        return after_.of(edge.to) != Parts::kNone && after_.of(edge.to) == largest;
      });
      if (!stays) lost_classes_.push_back(static_cast<int>(c));
    }
  }

  [[nodiscard]] bool is_lost(int c) const {
    return lost_[index(c)] || graph_.classes[index(c)].switches.empty();
  }

  void add(std::string name, bool is_switch) {
    SinglePoint point;
    point.name = std::move(name);
    point.is_switch = is_switch;
    for (const int c : lost_classes_) {
      lost_[index(c)] = true;
      point.nics += static_cast<int>(graph_.classes[index(c)].nics.size());
    }
    std::set<int> touched;
    for (const int c : lost_classes_) {
      touched.insert(graph_.hosts_of_class[index(c)].begin(),
                     graph_.hosts_of_class[index(c)].end());
    }
    std::vector<int> nodes;
    for (const int h : touched) {
      const SwitchGraph::HostClass& host = graph_.hosts[index(h)];
      const bool cut = std::ranges::all_of(host.classes, [this](int c) { return is_lost(c); });
      if (cut) nodes.insert(nodes.end(), host.nodes.begin(), host.nodes.end());
    }
    std::ranges::sort(nodes);
    for (const int node : nodes) {
      if (point.examples.size() == kMostExamples) break;
      point.examples.push_back(fabric_.hosts[index(node)]);
    }
    point.hosts = static_cast<int>(nodes.size());
    for (const int c : lost_classes_) lost_[index(c)] = false;
    if (is_switch && point.nics > out_.worst_switch.nics) out_.worst_switch = point;
    if (point.hosts > 0) out_.single_points.push_back(std::move(point));
  }

  const DrawnFabric& fabric_;
  const SwitchGraph& graph_;
  TopologyAnalysis& out_;
  Parts whole_, after_;
  std::size_t edges_ = 0;
  std::vector<int> lost_classes_;
  std::vector<bool> lost_;  ///< by class
};

}  // namespace

TopologyAnalysis analyse(const DrawnFabric& as_given) {
  assert(as_given.hosts.size() == index(as_given.graph.nodes()));
  // Samples and halves are chosen by number, and the order of a file's lines is to move no figure.
  const DrawnFabric fabric = in_canonical_order(as_given);
  const ClusterGraph& graph = fabric.graph;
  TopologyAnalysis out;
  out.hosts = graph.nodes();
  out.nics = static_cast<int>(graph.port_count());
  out.switches = static_cast<int>(graph.vertex_count() - graph.port_count());
  out.cables = static_cast<int>(graph.cables().size());
  out.down_cables = static_cast<int>(fabric.down.size());
  count_layers(graph, out);
  const SwitchGraph folded(graph);
  {
    const TwinSwitches twins(graph, [](GraphLink) { return 1; });
    measure_distances(folded, twins, out);
    count_disjoint_paths(folded, twins, out);
  }
  out.bisection = narrowest_bisection(graph);
  FailureSearch(fabric, folded, out).run();
  return out;
}

}  // namespace lockstep
