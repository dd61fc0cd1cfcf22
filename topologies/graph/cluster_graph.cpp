#include "topologies/graph/cluster_graph.hpp"

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

ClusterGraph::ClusterGraph(std::vector<GraphVertex> vertices, std::vector<GraphCable> cables,
                           std::span<const std::array<std::uint32_t, 2>> names)
    : vertices_(std::move(vertices)), cables_(std::move(cables)) {
  assert(names.empty() || names.size() == cables_.size());
  index_ports();
  index_links();
  fabric_link_.resize(link_count());
  std::iota(fabric_link_.begin(), fabric_link_.end(), GraphLink{0});
  for (std::size_t c = 0; c < names.size(); ++c) {
    fabric_link_[ways_[2 * c]] = names[c][0];
    fabric_link_[ways_[2 * c + 1]] = names[c][1];
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
