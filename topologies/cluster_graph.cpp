#include "topologies/cluster_graph.hpp"

#include <cassert>
#include <cmath>
#include <fmt/format.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <boost/graph/strong_components.hpp>

namespace lockstep {

struct ClusterGraph::Cable {
  Vertex from, to;
  BytesPerSecond capacity;
  FabricLink link;
};

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
using FlowTraits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct FlowLink {
  FlowUnit capacity = 0;
  FlowUnit residual = 0;
  FlowTraits::edge_descriptor reverse;
};
using FlowGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, FlowLink>;

void add_flow_link(FlowGraph& graph, Vertex from, Vertex to, FlowUnit capacity) {
  const auto forward = add_edge(from, to, graph).first;
  const auto backward = add_edge(to, from, graph).first;
  graph[forward].capacity = capacity;
  graph[forward].reverse = backward;
  graph[backward].reverse = forward;
}

}  // namespace

ClusterGraph::ClusterGraph(const Fabric& fabric)
    : nodes_(fabric.nodes()),
      nics_(fabric.nics_per_node()),
      spines_(fabric.counts().spines),
      cores_(fabric.counts().cores) {
  const FabricCounts& c = fabric.counts();
  nics_end_ = static_cast<Vertex>(nodes_ * nics_);
  leaves_end_ = nics_end_ + static_cast<Vertex>(c.leaves);
  spines_end_ = leaves_end_ + static_cast<Vertex>(c.pods * c.spines);
  cores_end_ = spines_end_ + static_cast<Vertex>(c.spines * c.cores);

  const std::vector<Cable> all = cables(fabric);
  first_link_.assign(cores_end_ + 1, 0);
  for (const Cable& cable : all) ++first_link_[cable.from + 1];
  for (Vertex v = 0; v < cores_end_; ++v) first_link_[v + 1] += first_link_[v];
  std::vector<std::uint32_t> next(first_link_.begin(), first_link_.end() - 1);
  source_.resize(all.size());
  target_.resize(all.size());
  capacity_.resize(all.size());
  fabric_link_.resize(all.size());
  for (const Cable& cable : all) {
    const std::uint32_t at = next[cable.from]++;
    source_[at] = cable.from;
    target_[at] = cable.to;
    capacity_[at] = cable.capacity;
    fabric_link_[at] = cable.link;
  }
}

std::vector<ClusterGraph::Cable> ClusterGraph::cables(const Fabric& fabric) const {
  const FabricCounts& c = fabric.counts();
  std::vector<Cable> out;
  const auto both_ways = [&](Vertex low, Vertex high, BytesPerSecond capacity, FabricLink up,
                             FabricLink down) {
    out.push_back({low, high, capacity, up});
    out.push_back({high, low, capacity, down});
  };
  for (int node = 0; node < nodes_; ++node) {
    for (int nic = 0; nic < nics_; ++nic) {
      both_ways(nic_port(node, nic), leaf(fabric.leaf_of(node, nic)), fabric.nic_bandwidth(),
                fabric.nic_up(node, nic), fabric.nic_down(node, nic));
    }
  }
  for (int l = 0; l < c.leaves; ++l) {
    for (int uplink = 0; uplink < c.leaf_uplinks; ++uplink) {
      const int s = uplink / (c.leaf_uplinks / c.spines);
      both_ways(leaf(l), spine(fabric.pod_of(l), s), c.leaf_link_capacity,
                fabric.leaf_up(l, uplink), fabric.leaf_down(l, uplink));
    }
  }
  for (int pod = 0; pod < c.pods; ++pod) {
    for (int s = 0; s < c.spines; ++s) {
      for (int uplink = 0; uplink < c.spine_uplinks; ++uplink) {
        both_ways(spine(pod, s), core(s, uplink / (c.spine_uplinks / c.cores)),
                  c.spine_link_capacity, fabric.spine_up(pod, s, uplink),
                  fabric.spine_down(pod, s, uplink));
      }
    }
  }
  return out;
}

Vertex ClusterGraph::nic_port(int node, int nic) const {
  assert(node >= 0 && node < nodes_ && nic >= 0 && nic < nics_);
  return static_cast<Vertex>(node * nics_ + nic);
}
Vertex ClusterGraph::spine(int pod, int spine) const {
  return leaves_end_ + static_cast<Vertex>(pod * spines_ + spine);
}
Vertex ClusterGraph::core(int spine, int core) const {
  return spines_end_ + static_cast<Vertex>(spine * cores_ + core);
}

std::string ClusterGraph::vertex_name(Vertex vertex) const {
  assert(vertex < cores_end_);
  if (vertex < nics_end_) {
    const auto nics = static_cast<Vertex>(nics_);
    return fmt::format("node {} nic {}", vertex / nics, vertex % nics);
  }
  if (vertex < leaves_end_) return fmt::format("leaf {}", vertex - nics_end_);
  if (vertex < spines_end_) return fmt::format("spine {}", vertex - leaves_end_);
  return fmt::format("core {}", vertex - spines_end_);
}

std::vector<int> ClusterGraph::hops_from(Vertex start) const {
  assert(start < cores_end_);
  const CsrGraph graph = csr_graph(*this);
  std::vector<int> hops(cores_end_, -1);
  hops[start] = 0;
  std::vector<boost::default_color_type> colours(cores_end_);
  const auto measure = boost::record_distances(hops.data(), boost::on_tree_edge());
  boost::breadth_first_search(
      graph, start, boost::visitor(boost::make_bfs_visitor(measure)).color_map(colours.data()));
  return hops;
}

int ClusterGraph::strong_components() const {
  const CsrGraph graph = csr_graph(*this);
  std::vector<int> component(cores_end_);
  return boost::strong_components(
      graph, boost::make_iterator_property_map(component.begin(), get(boost::vertex_index, graph)));
}

BytesPerSecond ClusterGraph::max_flow(std::span<const Vertex> sources,
                                      std::span<const Vertex> sinks) const {
  FlowGraph graph(cores_end_ + 2);
  const Vertex source = cores_end_;
  const Vertex sink = cores_end_ + 1;
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
                                   boost::capacity_map(get(&FlowLink::capacity, graph))
                                       .residual_capacity_map(get(&FlowLink::residual, graph))
                                       .reverse_edge_map(get(&FlowLink::reverse, graph))
                                       .vertex_index_map(get(boost::vertex_index, graph)));
  return BytesPerSecond{static_cast<double>(flow)};
}

BytesPerSecond ClusterGraph::bisection() const {
  std::vector<Vertex> first, second;
  const int half = nodes_ / 2;
  for (int node = 0; node < 2 * half; ++node) {
    for (int nic = 0; nic < nics_; ++nic) {
      (node < half ? first : second).push_back(nic_port(node, nic));
    }
  }
  return max_flow(first, second);
}

}  // namespace lockstep
