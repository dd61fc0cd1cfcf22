#include "sim/scenario/read_pools.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

void check_alike(const JsonCursor& node, const NodeSpec& first, const NodeSpec& here) {
  const auto rule = [](const std::string& what) { return what + ", as in the first pool"; };
  if (here.gpus != first.gpus) {
    node.fail(rule("a node of " + std::to_string(first.gpus) + " GPUs"));
  }
  if (here.nvlink_domain != first.nvlink_domain) {
    node.fail(rule("a node of which NVLink joins " + std::to_string(first.nvlink_domain) +
                   " GPUs (nvlink_domain)"));
  }
  const int ports = nic_ports(first).count;
  if (nic_ports(here).count != ports) {
    node.fail(rule("a node of " + std::to_string(ports) +
                   " NIC ports (nics, with the nic_bandwidth that makes up for it)"));
  }
}

}  // namespace

void read_pools(const JsonCursor& cluster, const JsonCursor& pools, const PresetStore& presets,
                ClusterDraft& out) {
  for (const std::string_view key : {"preset", "node", "nodes"}) {
    if (const auto other = cluster.find(key)) {
      other->fail("no such key beside \"pools\", which have a node and a number each");
    }
  }
  const nlohmann::ordered_json* last = nullptr;
  std::int64_t nodes = 0;
  for (const JsonCursor& from : pools.elements(kMostClusterPools)) {
    NodePool pool;
    const JsonCursor node = from.at("node");
    read_node_choice(node, presets, pool.node);
    const JsonCursor count = from.at("nodes");
    pool.nodes = count.integer(1, kMaxNodes);
    from.finish();
    nodes += pool.nodes;
    if (nodes > kMaxNodes) count.fail("at most " + std::to_string(kMaxNodes) + " in all pools");
    out.written.push_back(pool);
    if (last != nullptr && *last == node.json()) {
      out.pools.back().nodes += pool.nodes;
      continue;
    }
    last = &node.json();
    const int domain = std::max(1, pool.node.nvlink_domain / pool.node.gpus);
    if (pool.nodes % domain != 0) {
      count.fail("a multiple of " + std::to_string(domain) + " (nodes that NVLink joins)");
    }
    if (!out.pools.empty()) check_alike(node, out.pools.front().node, pool.node);
    out.pools.push_back(std::move(pool));
  }
  if (out.pools.empty()) pools.fail("a pool of nodes at least");
  out.node = out.pools.front().node;
  out.nodes = static_cast<int>(nodes);
  if (out.pools.size() == 1) out.pools.clear();
}

}  // namespace lockstep
