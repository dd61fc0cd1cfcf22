#include "sim/scenario/replica_variants.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "models/base/input_error.hpp"

namespace lockstep {

PlacementSpec placement_spec(const Scenario& s) {
  const Parallelism& par = s.job.parallelism;
  return {.tensor = par.tensor * par.context,
          .data = par.data,
          .pipeline = par.pipeline,
          .order = parse_rank_order(s.stack.placement).value(),
          .gpus_per_node = s.node.gpus,
          .nvlink_domain = domain_share(s.gpus(), s.node),
          .nic_ports = nic_ports(s.node).count};
}

PoolOfNode::PoolOfNode(const Scenario& scenario) {
  int nodes = 0;
  for (const NodePool& pool : scenario.pools) ends_.push_back(nodes += pool.nodes);
}

std::uint32_t PoolOfNode::operator()(int node) const {
  const auto pool = std::ranges::upper_bound(ends_, node);
  return static_cast<std::uint32_t>(pool - ends_.begin());
}

ReplicaVariants replica_variants(const Scenario& scenario, const Placement& placement) {
  const Parallelism& cut = scenario.job.parallelism;
  const auto stages = static_cast<std::size_t>(cut.pipeline);
  ReplicaVariants out;
  if (!scenario.unequal()) {
    out.list.push_back({std::vector<std::uint32_t>(stages, 0), scenario.job.micro_batches()});
    return out;
  }
  const PoolOfNode pool_of(scenario);
  std::map<std::pair<std::vector<std::uint32_t>, int>, std::uint32_t> known;
  for (int replica = 0; replica < cut.data; ++replica) {
    ReplicaVariant variant{std::vector<std::uint32_t>(stages, 0), scenario.job.micro_batches()};
    for (std::size_t s = 0; s < stages; ++s) {
      const int rank = placement.rank({0, replica, static_cast<int>(s)});
      variant.pools[s] = pool_of(placement.node_of(rank));
    }
    if (!scenario.micro_batches.empty()) {
      variant.micro_batches = scenario.micro_batches[static_cast<std::size_t>(replica)];
    }
    const auto number = static_cast<std::uint32_t>(out.list.size());
    const auto [it, is_new] = known.try_emplace({variant.pools, variant.micro_batches}, number);
    if (is_new) out.list.push_back(std::move(variant));
    out.of.push_back(it->second);
  }
  return out;
}

TrainingJob job_of_replica(const TrainingJob& job, int micro_batches) {
  TrainingJob out = job;
  out.batch.sequences = micro_batches * job.batch.micro_sequences * job.parallelism.data;
  return out;
}

void require_equal(const Scenario& scenario, std::string_view what) {
  if (!scenario.unequal()) return;
  const bool pools = !scenario.pools.empty();
  throw InputError(
      {.file = scenario.file,
       .pointer = pools ? "/cluster/pools" : "/batch/micro_batches",
       .found = pools ? "nodes of several kinds" : "replicas with unequal batches",
       .allowed = (pools ? "one kind of node, for " : "no such key, for ") + std::string(what),
       .nearest = {}});
}

}  // namespace lockstep
