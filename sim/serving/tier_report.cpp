#include "sim/serving/tier_report.hpp"

#include <array>
#include <functional>
#include <map>
#include <vector>

#include "models/generation/serving_replica.hpp"
#include "models/layer/offload.hpp"
#include "sim/fabric/fabric_member.hpp"
#include "sim/serving/kv_network.hpp"

namespace lockstep {
namespace {

/// A replica's share of a quantity that each of its nodes has.
Bytes replica_part(const Bytes& of_node, const ServingSpec& spec, const ServingPool& pool) {
  return static_cast<double>(pool.gpus()) / spec.cluster.node.gpus * of_node;
}

Bytes host_memory(const ServingSpec& spec, const ServingPool& pool) {
  return spec.tiers->host ? replica_part(spec.tiers->host->memory, spec, pool) : Bytes{};
}

Bytes disk_memory(const ServingSpec& spec) {
  return spec.tiers->disk ? replica_part(spec.tiers->disk->memory, spec, spec.pools[0]) : Bytes{};
}

Bytes remote_memory(const ServingSpec& spec) {
  return spec.tiers->remote ? spec.tiers->remote->memory : Bytes{};
}

double tokens_in(Bytes memory, Bytes token) {
  return memory > Bytes{} ? double{memory / token} : 0;
}

/// Ranks of a group load equal parts, each through what `place` says of its GPU: of each group,
/// replica by replica.
std::vector<std::vector<PortLoad>> rank_loads(
    const ServingSpec& spec, const std::function<std::size_t(const FabricMember&)>& place) {
  const KvCut cut = kv_cut(spec.pools[0]);
  const NodeSpec& node = spec.node_of(spec.pools[0]);
  const std::array<std::vector<int>, 2> placed = place_replicas(spec);
  std::vector<std::vector<PortLoad>> out;
  for (const int first : placed[0]) {
    for (int group = 0; group < cut.groups; ++group) {
      std::map<std::size_t, int> ranks;  // by place
      for (int rank = 0; rank < cut.ranks(); ++rank) {
        ++ranks[place(fabric_member(node, first + cut.gpu(group, rank)))];
      }
      std::vector<PortLoad>& loads = out.emplace_back();
      for (const auto& [port, count] : ranks) {
        loads.push_back({port, static_cast<double>(count) / cut.ranks()});
      }
    }
  }
  return out;
}

Seconds host_token(const ServingTiers& tiers, const NodeSpec& node, const ServingReplica& replica) {
  if (tiers.host && tiers.host->bandwidth) {
    return replica.cache_per_token() / *tiers.host->bandwidth;
  }
  return node.host ? replica.cache_per_token() / host_copy_rate(node) : Seconds{};
}

/// The figures of one tier: its share of what was found, and bytes loaded, written, left and held.
ServingTier tier_of(std::string_view name, Bytes capacity, double found_share, const TierFlow& flow,
                    Bytes block) {
  const auto bytes = [&](std::int64_t blocks) {
    return static_cast<double>(blocks) * block.base_units();
  };
  return {.name = std::string(name),
          .capacity_bytes = capacity.base_units(),
          .found_share = found_share,
          .loaded_bytes = bytes(flow.loaded),
          .written_bytes = bytes(flow.written),
          .left_bytes = bytes(flow.left),
          .held_bytes = bytes(flow.held)};
}

/// Tokens of all prompts that were computed.
double prompt_tokens(const ServingSpec& spec) {
  double sum = 0;
  for (const ServedRequest& r : spec.requests) sum += r.scheduled < 0 ? 0 : r.input;
  return sum;
}

}  // namespace

std::optional<TierPlan> tier_plan(const ServingSpec& spec, const ServingReplica& replica) {
  if (!spec.tiers) return std::nullopt;
  const ServingTiers& tiers = *spec.tiers;
  const NodeSpec& node = spec.node_of(spec.pools[0]);
  const Bytes token = replica.moved_per_token();
  TierPlan out{.load = tiers.load.value_or(CacheLoad::blocking),
               .reuse = tiers.reuse,
               .preemption = tiers.preemption,
               .layers = spec.model.layers,
               .groups = spec.pools[0].attention_data,
               .host_tokens = tokens_in(host_memory(spec, spec.pools[0]), token),
               .disk_tokens = tokens_in(disk_memory(spec), token),
               .remote_tokens = tokens_in(remote_memory(spec), token)};
  if (tiers.host || tiers.disk) out.host_token = host_token(tiers, node, replica);
  if (tiers.disk) {
    out.drives =
        rank_loads(spec, [](const FabricMember& at) { return static_cast<std::size_t>(at.node); });
    out.disk_token = token / tiers.disk->bandwidth;
    out.disk_latency = tiers.disk->latency;
  }
  if (tiers.remote) {
    const NicPorts ports = nic_ports(node);
    out.ports = rank_loads(spec, [&](const FabricMember& at) {
      return static_cast<std::size_t>(at.node) * static_cast<std::size_t>(ports.count) +
             static_cast<std::size_t>(at.nic);
    });
    out.remote_token = token / (spec.transfer.efficiency * ports.bandwidth);
    out.pool_token = token / tiers.remote->bandwidth;
    out.remote_latency = tiers.remote->latency;
  }
  return out;
}

std::optional<TierPlan> decoding_tier_plan(const ServingSpec& spec, const ServingReplica& replica) {
  if (spec.pools.size() < 2 || !spec.tiers || !spec.tiers->host) return std::nullopt;
  const ServingPool& pool = spec.pools[1];
  return TierPlan{.load = spec.tiers->load.value_or(CacheLoad::blocking),
                  .preemption = spec.tiers->preemption,
                  .layers = spec.model.layers,
                  .groups = pool.attention_data,
                  .host_tokens = tokens_in(host_memory(spec, pool), replica.moved_per_token()),
                  .host_token = host_token(*spec.tiers, spec.node_of(pool), replica)};
}

std::optional<ServingTierReport> tier_report(const ServingSpec& spec, const ServingReplica& replica,
                                             const ServeResult& result) {
  if (!spec.tiers) return std::nullopt;
  const TierAccount& books = result.serving.tiers;
  const TierAccount& decoding = result.decoding.tiers;
  const int block = spec.pools[0].engine.serving->block;
  const Bytes bytes = static_cast<double>(block) * replica.moved_per_token();
  const double asked = prompt_tokens(spec);
  const auto replicas = static_cast<double>(spec.pools[0].replicas);
  const auto share = [&](std::int64_t blocks) {
    return asked > 0 ? static_cast<double>(blocks * block) / asked : 0;
  };
  ServingTierReport out{
      .gpu_found_share = share(books.gpu),
      .recomputed_share = share(books.recomputed),
      .loads = static_cast<double>(books.loads),
      .stall_s = to_seconds(books.stalled + decoding.stalled).base_units(),
      .swaps = static_cast<double>(books.swaps + decoding.swaps),
      .swapped_bytes = static_cast<double>(books.moved + decoding.moved) * bytes.base_units()};
  if (spec.tiers->host) {
    const Bytes all = replicas * host_memory(spec, spec.pools[0]);
    out.tiers.push_back(tier_of("host", all, share(books.host), books.of_host, bytes));
  }
  if (spec.tiers->disk) {
    const Bytes all = replicas * disk_memory(spec);
    out.tiers.push_back(tier_of("disk", all, share(books.disk), books.of_disk, bytes));
  }
  if (spec.tiers->remote) {
    out.tiers.push_back(
        tier_of("remote", remote_memory(spec), share(books.remote), result.remote, bytes));
  }
  if (books.loads > 0) out.load_s = to_seconds(books.loading).base_units() / out.loads;
  return out;
}

}  // namespace lockstep
