#include "sim/scenario/serving_tiers.hpp"

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr Interval kTierMemory{0, 1e18};
constexpr Interval kTierRate{1e6, 1e18};

void declare_host_tier(const DeclaredMembers& member, ServingTiers::Host& out) {
  member.required("memory", out.memory, kTierMemory,
                  "Of each node; a replica has the part of its GPUs for itself");
  member.optional("bandwidth", out.bandwidth, kTierRate,
                  "To a GPU; default: what copies reach of its link to the host, or its part of "
                  "the host's memory bandwidth");
}

void declare_remote_tier(const DeclaredMembers& member, ServingTiers::Remote& out) {
  member.required("memory", out.memory, kTierMemory, "Of the pool, which all replicas share");
  member.required("bandwidth", out.bandwidth, kTierRate, "Out of it, all replicas together");
  member.optional("latency", out.latency, Interval{0, 10}, "Of each load; default: 1 ms");
}

void check_host_tier(const JsonCursor& host, const ServingSpec& spec) {
  const ServingTiers::Host& tier = *spec.tiers->host;
  const NodeSpec& node = spec.node_of(spec.pools[0]);
  if (!node.host) {
    if (!tier.bandwidth) {
      host.fail(fmt::format(R"("bandwidth" beside "memory": nobody said what the host of {} has)",
                            node.name));
    }
    return;
  }
  if (tier.memory <= node.host->memory) return;
  host.at("memory").fail(
      fmt::format("at most the {:g} GB of a node's host", node.host->memory.base_units() * 1e-9));
}

}  // namespace

void declare_cache_tiers(const DeclaredMembers& member, ServingTiers& out) {
  member.optional("host", out.host, "Memory of the nodes that hold the replicas",
                  declare_host_tier);
  member.optional("remote", out.remote, "A pool that replicas reach over their NICs",
                  declare_remote_tier);
  member.optional("load", out.load, kCacheLoadNames,
                  "asynchronous: beside passes of others; by_layer: beside the pass that needs "
                  "them; blocking: before it; default: as the engine does");
}

void settle_cache_tiers(const JsonCursor& serving, ServingSpec& out) {
  if (!out.tiers) return;
  const JsonCursor at = serving.at("cache_tiers");
  if (!out.tiers->host && !out.tiers->remote) at.fail(R"("host", "remote" or both)");
  if (!out.prefix_cache) at.fail(R"(no such key where "batching" has "prefix_cache": false)");
  if (out.tiers->host) check_host_tier(at.at("host"), out);
  if (out.tiers->load) return;
  out.tiers->load = out.pools[0].engine.serving->cache_load;
  out.assumptions.push_back(fmt::format("cache_tiers: load {} (not given; as {} does)",
                                        kCacheLoadNames[static_cast<std::size_t>(*out.tiers->load)],
                                        out.pools[0].engine.name));
}

}  // namespace lockstep
