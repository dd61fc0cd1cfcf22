#include "tools/views/queue/node_names.hpp"

#include <fmt/format.h>
#include <utility>

#include "sim/scenario/host_list.hpp"

namespace lockstep {

std::string node_name(const QueueSpec& spec, int node) {
  const int own = spec.cluster.nodes;
  return node < own ? fmt::format("n{}", node + 1) : fmt::format("cloud{}", node - own + 1);
}

bool are_rented(const QueueSpec& spec, const std::vector<int>& from_one) {
  return !from_one.empty() && from_one.front() > spec.cluster.nodes;
}

std::string node_list(const QueueSpec& spec, std::vector<int> from_one) {
  if (!are_rented(spec, from_one)) return host_list("n", std::move(from_one));
  for (int& node : from_one) node -= spec.cluster.nodes;
  return host_list("cloud", std::move(from_one));
}

int pictured_nodes(const QueueSpec& spec, const QueueResult& result) {
  return spec.cluster.nodes + (result.burst ? result.burst->most_nodes : 0);
}

}  // namespace lockstep
