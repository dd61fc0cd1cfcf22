#include "topologies/cluster_graph.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <numeric>
#include <string_view>
#include <utility>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <boost/graph/strong_components.hpp>

namespace lockstep {

namespace {

using CsrGraph = boost::compressed_sparse_row_graph<boost::directedS>;

CsrGraph csr_graph(const ClusterGraph& graph) {
  std::vector<std::pair<Vertex, Vertex>> links;
  links.reserve(graph.link_count());
  for (std::uint32_t i = 0; i < graph.link_count(); ++i) {
    links.emplace_back(graph.source()[i], graph.target()[i]);
  }
  return {boost::edges_are_sorted, links.begin(), links.end(), graph.vertex_count()};
}

// Whole bytes per second: with fractions, rounding could keep an augmenting path open for ever.
using FlowUnit = std::int64_t;
using CableFlowTraits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct CableFlowLink {
  FlowUnit capacity = 0;
  FlowUnit residual = 0;
  CableFlowTraits::edge_descriptor reverse;
};
using CableFlow = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS,
                                        boost::no_property, CableFlowLink>;

void add_flow_link(CableFlow& graph, Vertex from, Vertex to, FlowUnit capacity) {
  const auto forward = add_edge(from, to, graph).first;
  const auto backward = add_edge(to, from, graph).first;
  graph[forward].capacity = capacity;
  graph[forward].reverse = backward;
  graph[backward].reverse = forward;
}

}  // namespace

namespace {

/// Vertices and cables of a fabric with arithmetic routes, and the fabric's names of both ways.
struct Drawing {
  std::vector<GraphVertex> vertices;
  std::vector<GraphCable> cables;
  std::vector<std::array<FabricLink, 2>> links;  ///< of each cable, up and down

  void add(Vertex low, Vertex high, BytesPerSecond capacity, FabricLink up, FabricLink down) {
    cables.push_back({.a = low, .b = high, .capacity = capacity});
    links.push_back({up, down});
  }
};

/// `per_pod` of them to each pod; 0: they are of none.
void add_switches(std::vector<GraphVertex>& vertices, std::string_view what, int level, int count,
                  int per_pod) {
  for (int i = 0; i < count; ++i) {
    vertices.push_back({.name = fmt::format("{} {}", what, i),
                        .level = level,
                        .group = per_pod > 0 ? i / per_pod : -1});
  }
}

Drawing drawing_of(const Fabric& fabric) {
  const FabricCounts& c = fabric.counts();
  Drawing out;
  for (int node = 0; node < fabric.nodes(); ++node) {
    for (int nic = 0; nic < fabric.nics_per_node(); ++nic) {
      out.vertices.push_back(
          {.name = fmt::format("node {} nic {}", node, nic), .level = 0, .node = node, .nic = nic});
    }
  }
  const auto here = [&] { return static_cast<Vertex>(out.vertices.size()); };
  const Vertex leaves = here();
  add_switches(out.vertices, "leaf", 1, c.leaves, c.pod_leaves);
  const Vertex spines = here();
  add_switches(out.vertices, "spine", 2, c.pods * c.spines, c.spines);
  const Vertex cores = here();
  add_switches(out.vertices, "core", 3, c.spines * c.cores, 0);

  for (Vertex port = 0; port < leaves; ++port) {
    const GraphVertex& at = out.vertices[port];
    out.add(port, leaves + static_cast<Vertex>(fabric.leaf_of(at.node, at.nic)),
            fabric.nic_bandwidth(), fabric.nic_up(at.node, at.nic),
            fabric.nic_down(at.node, at.nic));
  }
  for (int l = 0; l < c.leaves; ++l) {
    for (int uplink = 0; uplink < c.leaf_uplinks; ++uplink) {
      const int s = fabric.pod_of(l) * c.spines + uplink / (c.leaf_uplinks / c.spines);
      out.add(leaves + static_cast<Vertex>(l), spines + static_cast<Vertex>(s),
              c.leaf_link_capacity, fabric.leaf_up(l, uplink), fabric.leaf_down(l, uplink));
    }
  }
  for (int spine = 0; spine < c.pods * c.spines; ++spine) {
    const int pod = spine / c.spines, s = spine % c.spines;
    for (int uplink = 0; uplink < c.spine_uplinks; ++uplink) {
      const int core = s * c.cores + uplink / (c.spine_uplinks / c.cores);
      out.add(spines + static_cast<Vertex>(spine), cores + static_cast<Vertex>(core),
              c.spine_link_capacity, fabric.spine_up(pod, s, uplink),
              fabric.spine_down(pod, s, uplink));
    }
  }
  return out;
}

}  // namespace

ClusterGraph::ClusterGraph(std::vector<GraphVertex> vertices, std::vector<GraphCable> cables)
    : vertices_(std::move(vertices)), cables_(std::move(cables)) {
  index_ports();
  index_links();
  fabric_link_.resize(link_count());
  std::iota(fabric_link_.begin(), fabric_link_.end(), FabricLink{0});
}

ClusterGraph::ClusterGraph(const Fabric& fabric) {
  if (fabric.is_drawn()) {
    *this = *fabric.graph();
    return;
  }
  Drawing drawing = drawing_of(fabric);
  vertices_ = std::move(drawing.vertices);
  cables_ = std::move(drawing.cables);
  index_ports();
  index_links();
  fabric_link_.resize(link_count());
  for (std::size_t c = 0; c < drawing.links.size(); ++c) {
    fabric_link_[ways_[2 * c]] = drawing.links[c][0];
    fabric_link_[ways_[2 * c + 1]] = drawing.links[c][1];
  }
}

void ClusterGraph::index_ports() {
  for (const GraphVertex& v : vertices_) {
    if (!v.is_port()) break;
    assert(v.nic >= 0 && v.node >= nodes() - 1);
    while (nodes() <= v.node) first_port_.push_back(first_port_.back());
    assert(v.nic == nics(v.node) && "NICs of a node are numbered from 0");
    first_port_.back() = ++ports_;
  }
  assert(std::all_of(vertices_.begin() + ports_, vertices_.end(),
                     [](const GraphVertex& v) { return !v.is_port(); }));
}

void ClusterGraph::index_links() {
  first_link_.assign(vertices_.size() + 1, 0);
  for (const GraphCable& cable : cables_) {
    assert(cable.a < vertex_count() && cable.b < vertex_count() && cable.a != cable.b);
    assert(cable.capacity > BytesPerSecond{});
    ++first_link_[cable.a + 1];
    ++first_link_[cable.b + 1];
  }
  for (Vertex v = 0; v < vertex_count(); ++v) first_link_[v + 1] += first_link_[v];
  std::vector<std::uint32_t> next(first_link_.begin(), first_link_.end() - 1);
  source_.resize(2 * cables_.size());
  target_.resize(source_.size());
  capacity_.resize(source_.size());
  cable_.resize(source_.size());
  ways_.reserve(source_.size());
  for (std::uint32_t c = 0; c < cables_.size(); ++c) {
    const GraphCable& cable = cables_[c];
    for (const auto& [from, to] : {std::pair{cable.a, cable.b}, std::pair{cable.b, cable.a}}) {
      const GraphLink at = next[from]++;
      source_[at] = from;
      target_[at] = to;
      capacity_[at] = cable.capacity;
      cable_[at] = c;
      ways_.push_back(at);
    }
  }
}

GraphLink ClusterGraph::reverse(GraphLink link) const {
  const std::size_t first = std::size_t{2} * cable_[link];
  return ways_[first] == link ? ways_[first + 1] : ways_[first];
}

int ClusterGraph::nics(int node) const {
  const auto n = static_cast<std::size_t>(node);
  assert(node >= 0 && node < nodes());
  return static_cast<int>(first_port_[n + 1] - first_port_[n]);
}

Vertex ClusterGraph::nic_port(int node, int nic) const {
  assert(nic >= 0 && nic < nics(node));
  return first_port_[static_cast<std::size_t>(node)] + static_cast<Vertex>(nic);
}

std::string ClusterGraph::link_name(GraphLink link) const {
  const Vertex from = source_[link], to = target_[link];
  std::uint32_t parallel = 0, before = 0;
  for (GraphLink i = first_link_[from]; i < first_link_[from + 1]; ++i) {
    if (target_[i] != to) continue;
    before += i < link ? 1 : 0;
    ++parallel;
  }
  std::string name = fmt::format("{} to {}", vertex_name(from), vertex_name(to));
  if (parallel > 1) name += fmt::format(" link {}", before);
  return name;
}

std::vector<int> ClusterGraph::hops_from(Vertex start) const {
  assert(start < vertex_count());
  const CsrGraph graph = csr_graph(*this);
  std::vector<int> hops(vertex_count(), -1);
  hops[start] = 0;
  std::vector<boost::default_color_type> colours(vertex_count());
  const auto measure = boost::record_distances(hops.data(), boost::on_tree_edge());
  boost::breadth_first_search(
      graph, start, boost::visitor(boost::make_bfs_visitor(measure)).color_map(colours.data()));
  return hops;
}

int ClusterGraph::strong_components() const {
  const CsrGraph graph = csr_graph(*this);
  std::vector<int> component(vertex_count());
  return boost::strong_components(
      graph, boost::make_iterator_property_map(component.begin(), get(boost::vertex_index, graph)));
}

BytesPerSecond ClusterGraph::max_flow(std::span<const Vertex> sources,
                                      std::span<const Vertex> sinks) const {
  CableFlow graph(vertex_count() + 2);
  const Vertex source = vertex_count();
  const Vertex sink = vertex_count() + 1;
  FlowUnit unbounded = 1;
  for (std::uint32_t i = 0; i < link_count(); ++i) {
    const FlowUnit capacity = std::llround(capacity_[i].base_units());
    add_flow_link(graph, source_[i], target_[i], capacity);
    unbounded += capacity;
  }
  for (const Vertex v : sources) add_flow_link(graph, source, v, unbounded);
  for (const Vertex v : sinks) add_flow_link(graph, v, sink, unbounded);
  const FlowUnit flow =
      boost::push_relabel_max_flow(graph, source, sink,
                                   boost::capacity_map(get(&CableFlowLink::capacity, graph))
                                       .residual_capacity_map(get(&CableFlowLink::residual, graph))
                                       .reverse_edge_map(get(&CableFlowLink::reverse, graph))
                                       .vertex_index_map(get(boost::vertex_index, graph)));
  return BytesPerSecond{static_cast<double>(flow)};
}

BytesPerSecond ClusterGraph::bisection() const {
  std::vector<Vertex> first, second;
  const int half = nodes() / 2;
  for (int node = 0; node < 2 * half; ++node) {
    for (int nic = 0; nic < nics(node); ++nic) {
      (node < half ? first : second).push_back(nic_port(node, nic));
    }
  }
  return max_flow(first, second);
}

}  // namespace lockstep
