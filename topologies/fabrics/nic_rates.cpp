#include "topologies/fabrics/nic_rates.hpp"

#include <algorithm>
#include <vector>

#include "models/base/quantity.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {

namespace {

/// Of the NIC ports before this one.
NicRates rates_before(const ClusterGraph& graph, Vertex end) {
  std::vector<BytesPerSecond> ports(graph.port_count());
  for (const GraphCable& cable : graph.cables()) {
    for (const Vertex v : {cable.a, cable.b}) {
      if (v < graph.port_count()) ports[v] += cable.capacity;
    }
  }
  ports.resize(end);
  std::erase(ports, BytesPerSecond{});  // without a cable
  if (ports.empty()) return {};
  const auto [least, most] = std::ranges::minmax(ports);
  return {least, most};
}

}  // namespace

NicRates nic_rates(const FabricSpec& spec, int nodes, BytesPerSecond nic_bandwidth) {
  if (spec.kind != FabricKind::file || spec.graph == nullptr) return {nic_bandwidth, nic_bandwidth};
  const ClusterGraph& graph = *spec.graph;
  Vertex end = graph.port_count();
  if (nodes < graph.nodes() && graph.nics(nodes) > 0) end = graph.nic_port(nodes, 0);
  const NicRates rates = rates_before(graph, end);
  return rates.most > BytesPerSecond{} ? rates : NicRates{nic_bandwidth, nic_bandwidth};
}

NicRates nic_rates(const ClusterGraph& graph) { return rates_before(graph, graph.port_count()); }

std::string words_of(const NicRates& rates) {
  const auto text = [](BytesPerSecond rate) {
    return format_quantity(rate.base_units(), Dimension::data_rate);
  };
  return rates.least == rates.most ? text(rates.least)
                                   : text(rates.least) + " to " + text(rates.most);
}

}  // namespace lockstep
