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

void declare_disk_tier(const DeclaredMembers& member, ServingTiers::Disk& out) {
  member.required("memory", out.memory, kTierMemory,
                  "Of the drives of each node; a replica has the part of its GPUs for itself");
  member.required("bandwidth", out.bandwidth, kTierRate,
                  "Read from the drives of a node, all its replicas together");
  member.optional("latency", out.latency, Interval{0, 10}, "Of each load; default: 0.1 ms");
}

void declare_remote_tier(const DeclaredMembers& member, ServingTiers::Remote& out) {
  member.required("memory", out.memory, kTierMemory, "Of the pool, which all replicas share");
  member.required("bandwidth", out.bandwidth, kTierRate, "Out of it, all replicas together");
  member.optional("latency", out.latency, Interval{0, 10}, "Of each load; default: 1 ms");
}

void check_host_tier(const JsonCursor& host, const NodeSpec& node, const ServingTiers::Host& tier) {
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

/// What is done with keys and values where the scenario does not say.
void assume_policies(const JsonCursor& at, ServingSpec& out) {
  const auto assume = [&](std::string_view key, std::string_view value) {
    if (at.find(key)) return;
    out.assumptions.push_back(fmt::format("cache_tiers: {} {} (not given)", key, value));
  };
  out.assumptions.emplace_back("cache_tiers: written when the GPUs let go of it (write_back)");
  assume("reuse", kCacheReuseNames[static_cast<std::size_t>(out.tiers->reuse)]);
  if (!out.tiers->host) return;  // nothing is swapped
  assume("preemption", kCachePreemptionNames[static_cast<std::size_t>(out.tiers->preemption)]);
}

}  // namespace

void declare_cache_tiers(const DeclaredMembers& member, ServingTiers& out) {
  member.optional("host", out.host, "Memory of the nodes that hold the replicas",
                  declare_host_tier);
  member.optional("disk", out.disk, "Drives of these nodes (NVMe)", declare_disk_tier);
  member.optional("remote", out.remote, "A pool that replicas reach over their NICs",
                  declare_remote_tier);
  member.optional("load", out.load, kCacheLoadNames,
                  "asynchronous: beside passes of others; by_layer: beside the pass that needs "
                  "them; blocking: before it; default: as the engine does");
  member.optional("reuse", out.reuse, kCacheReuseNames,
                  "Of what a tier holds of a prompt: fastest: loaded where the first token comes "
                  "sooner so, else computed again; default: fastest");
  member.optional("preemption", out.preemption, kCachePreemptionNames,
                  "Of a sequence that has to leave a full cache: swap: to host memory, while that "
                  "has room; fastest: swapped where that takes less time than to compute it again; "
                  "default: fastest; recompute without \"host\"");
}

void settle_cache_tiers(const JsonCursor& serving, ServingSpec& out) {
  if (!out.tiers) return;
  const JsonCursor at = serving.at("cache_tiers");
  if (!out.tiers->host && !out.tiers->disk && !out.tiers->remote) {
    at.fail(R"("host", "disk", "remote" or several of them)");
  }
  if (!out.prefix_cache) at.fail(R"(no such key where "batching" has "prefix_cache": false)");
  if (out.tiers->host) {
    for (const ServingPool& pool : out.pools) {
      check_host_tier(at.at("host"), out.node_of(pool), *out.tiers->host);
    }
  } else if (out.tiers->preemption == CachePreemption::swap) {
    at.at("preemption").fail(R"("host" beside "swap": sequences go to host memory)");
  }
  if (!out.tiers->load) {
    out.tiers->load = out.pools[0].engine.serving->cache_load;
    out.assumptions.push_back(fmt::format(
        "cache_tiers: load {} (not given; as {} does)",
        kCacheLoadNames[static_cast<std::size_t>(*out.tiers->load)], out.pools[0].engine.name));
  }
  assume_policies(at, out);
}

}  // namespace lockstep
