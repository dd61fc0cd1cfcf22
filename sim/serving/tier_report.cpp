#include "sim/serving/tier_report.hpp"

#include <array>
#include <map>
#include <vector>

#include "models/generation/serving_replica.hpp"
#include "models/layer/offload.hpp"
#include "sim/fabric/fabric_member.hpp"
#include "sim/serving/kv_network.hpp"

namespace lockstep {
namespace {

/// Of a replica: the part of its GPUs.
Bytes host_memory(const ServingSpec& spec) {
  if (!spec.tiers->host) return Bytes{};
  const double nodes = static_cast<double>(spec.pools[0].gpus()) / spec.cluster.node.gpus;
  return nodes * spec.tiers->host->memory;
}

Bytes remote_memory(const ServingSpec& spec) {
  return spec.tiers->remote ? spec.tiers->remote->memory : Bytes{};
}

double tokens_in(Bytes memory, Bytes token) {
  return memory > Bytes{} ? double{memory / token} : 0;
}

/// Ranks of a group load equal parts, each through the port of its GPU.
std::vector<std::vector<PortLoad>> port_loads(const ServingSpec& spec) {
  const KvCut cut = kv_cut(spec.pools[0]);
  const NodeSpec& node = spec.node_of(spec.pools[0]);
  const std::array<std::vector<int>, 2> placed = place_replicas(spec);
  std::vector<std::vector<PortLoad>> out;
  for (const int first : placed[0]) {
    for (int group = 0; group < cut.groups; ++group) {
      std::map<std::size_t, int> ranks;  // by port
      for (int rank = 0; rank < cut.ranks(); ++rank) {
        const FabricMember at = fabric_member(node, first + cut.gpu(group, rank));
        ++ranks[static_cast<std::size_t>(at.node * nic_ports(node).count + at.nic)];
      }
      std::vector<PortLoad>& loads = out.emplace_back();
      for (const auto& [port, count] : ranks) {
        loads.push_back({port, static_cast<double>(count) / cut.ranks()});
      }
    }
  }
  return out;
}

/// Of what was written to a tier and so on.
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

/// Tokens of all prompts that were worked on.
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
               .layers = spec.model.layers,
               .groups = spec.pools[0].attention_data,
               .host_tokens = tokens_in(host_memory(spec), token),
               .remote_tokens = tokens_in(remote_memory(spec), token)};
  if (tiers.host) {
    const BytesPerSecond link =
        tiers.host->bandwidth ? *tiers.host->bandwidth : host_copy_rate(node);
    out.host_token = replica.cache_per_token() / link;
  }
  if (tiers.remote) {
    const NicPorts ports = nic_ports(node);
    out.ports = port_loads(spec);
    out.remote_token = token / (spec.transfer.efficiency * ports.bandwidth);
    out.pool_token = token / tiers.remote->bandwidth;
    out.remote_latency = tiers.remote->latency;
  }
  return out;
}

std::optional<ServingTierReport> tier_report(const ServingSpec& spec, const ServingReplica& replica,
                                             const ServeResult& result) {
  if (!spec.tiers) return std::nullopt;
  const TierAccount& books = result.serving.tiers;
  const int block = spec.pools[0].engine.serving->block;
  const Bytes bytes = static_cast<double>(block) * replica.moved_per_token();
  const double asked = prompt_tokens(spec);
  const auto share = [&](std::int64_t blocks) {
    return asked > 0 ? static_cast<double>(blocks * block) / asked : 0;
  };
  ServingTierReport out{.gpu_found_share = share(books.gpu),
                        .loads = static_cast<double>(books.loads),
                        .stall_s = to_seconds(books.stalled).base_units()};
  if (spec.tiers->host) {
    const Bytes all = static_cast<double>(spec.pools[0].replicas) * host_memory(spec);
    out.tiers.push_back(tier_of("host", all, share(books.host), books.of_host, bytes));
  }
  if (spec.tiers->remote) {
    out.tiers.push_back(
        tier_of("remote", remote_memory(spec), share(books.remote), result.remote, bytes));
  }
  if (books.loads > 0) out.load_s = to_seconds(books.loading).base_units() / out.loads;
  return out;
}

}  // namespace lockstep
