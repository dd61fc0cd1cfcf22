#include "sim/fabric/connections.hpp"

#include <cassert>
#include <cstddef>

#include "topologies/routes/merge_hops.hpp"

namespace lockstep {

void route_connections(const Fabric& fabric, const NodePort& from, const NodePort& to,
                       std::uint64_t queue_pair, int connections, std::vector<RouteHop>& out) {
  assert(connections >= 1);
  if (connections == 1 || fabric.spec().routing != Routing::ecmp) {
    return fabric.route(from.node, from.nic, to.node, to.nic, queue_pair, out);
  }
  const std::size_t first = out.size();
  for (int c = 0; c < connections; ++c) {
    fabric.route(from.node, from.nic, to.node, to.nic, queue_pair_of_connection(queue_pair, c),
                 out);
  }
  for (std::size_t i = first; i < out.size(); ++i) out[i].share /= connections;
  merge_hops(out, first);
}

}  // namespace lockstep
