/// What GraphML and DOT have in common: vertices and edges with attributes, all text. Which of them
/// are hosts, NICs, switches and cables is found here, for both formats.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/formats/drawn_fabric.hpp"

namespace lockstep {

using Attributes = std::map<std::string, std::string, std::less<>>;

struct NamedGraph {
  struct Node {
    std::string name;
    Attributes attributes;
    int line = 1;  ///< of the file, for messages
  };
  struct Edge {
    std::size_t a = 0, b = 0;  ///< indices of nodes
    Attributes attributes;
    int line = 1;
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  bool directed = false;
};

/// What tells a reader the things that its file leaves out.
struct ImportOptions {
  BytesPerSecond rate;             ///< of cables that name none; 0: every cable has to name one
  std::vector<std::string> hosts;  ///< become nodes 0, 1, ..., whatever the file says that they are
  std::string hosts_file;          ///< what messages call the place that `hosts` come from
  std::string topology{};          ///< of a file with several, the one that is read
};

/// Attributes, in capital or small letters (exporters write the first of each):
/// - of a vertex: kind (also type, role) is "nic", "switch" or "host"; common other words are known
///   too. `host`: of a NIC; `level`, `group`: of a switch.
/// - of an edge: rate (bandwidth, speed, capacity) with its unit, "400 Gb/s", "100Gbps"; count;
///   port_a, port_b; state=down.
/// A host gets a NIC for each of its edges. Where neither kinds nor `options.hosts` tell, vertices
/// with one edge are hosts. In a directed graph, an edge and one that goes back are one cable.
/// Throws InputError with the number of the line.
DrawnFabric fabric_of(const std::string& file, const NamedGraph& graph,
                      const ImportOptions& options);

/// The reverse: NICs and switches with the attributes above.
NamedGraph named_graph(const DrawnFabric& fabric);

/// Hosts in this order, the others behind them in theirs. Throws InputError for a host that the
/// fabric does not have.
DrawnFabric with_hosts_first(const DrawnFabric& fabric, std::span<const std::string> hosts,
                             const std::string& hosts_file);

}  // namespace lockstep
