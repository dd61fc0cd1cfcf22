#include "sim/serving/kv_network.hpp"

#include <algorithm>
#include <cassert>

#include "sim/fabric/collective_load.hpp"
#include "sim/fabric/connections.hpp"

namespace lockstep {
namespace {

constexpr double kAsFull = 1 - 1e-9;  // share of the fullest port that counts as full, for rounding

/// GPUs of the service: the first, and one past the last.
struct GpuRange {
  int first = 0, end = 0;
};

/// The GPUs on nodes of one kind.
GpuRange gpus_of_kind(const ServingSpec& spec, std::size_t kind) {
  const Cluster& cluster = spec.cluster;
  if (cluster.pools.empty()) {
    const int nodes = spec.nodes.empty() ? cluster.nodes : static_cast<int>(spec.nodes.size());
    return {0, nodes * cluster.node.gpus};
  }
  const int before = cluster.nodes_before(kind);
  return {before * cluster.node.gpus, (before + cluster.pools[kind].nodes) * cluster.node.gpus};
}

/// Places replicas one after the other on nodes of one kind; `aligned`: a replica that fits into a
/// node does not straddle two. Returns whether they fit.
bool place(const ServingSpec& spec, std::size_t kind, bool aligned,
           std::array<std::vector<int>, 2>& out) {
  const int node = spec.cluster.node.gpus;
  const GpuRange range = gpus_of_kind(spec, kind);
  int end = range.first;
  for (std::size_t p = 0; p < spec.pools.size(); ++p) {
    if (spec.pools[p].cluster_pool != kind) continue;
    out[p].clear();
    const int gpus = spec.pools[p].gpus();
    for (int r = 0; r < spec.pools[p].replicas; ++r) {
      const int left = node - end % node;
      if (aligned && left < node && gpus > left) end += left;
      out[p].push_back(end);
      end += gpus;
    }
  }
  return end <= range.end;
}

}  // namespace

KvCut kv_cut(const ServingPool& pool) {
  return {.tensor = pool.tensor, .pipeline = pool.pipeline, .groups = pool.attention_data};
}

std::array<std::vector<int>, 2> place_replicas(const ServingSpec& spec) {
  std::array<std::vector<int>, 2> out;
  const std::size_t kinds = std::max<std::size_t>(1, spec.cluster.pools.size());
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    if (!place(spec, kind, true, out)) (void)place(spec, kind, false, out);
  }
  return out;
}

KvNetwork::KvNetwork(const ServingSpec& spec, FabricLinks& links, Told told)
    : spec_(spec),
      links_(links),
      told_(std::move(told)),
      ports_(nic_ports(spec.cluster.node)),
      cuts_{kv_cut(spec.pools[0]), kv_cut(spec.pools[1])},
      first_(place_replicas(spec)) {
  count_users();
}

int KvNetwork::gpu_of(std::size_t pool, const KvEnd& end, int rank) const {
  return first_[pool][end.replica] + cuts_[pool].gpu(static_cast<int>(end.group), rank);
}

int KvNetwork::node_of(int gpu) const {
  const int node = gpu / spec_.cluster.node.gpus;
  return spec_.nodes.empty() ? node : spec_.nodes[static_cast<std::size_t>(node)];
}

const GpuSpec& KvNetwork::card_of(int gpu) const { return spec_.cluster.node_at(node_of(gpu)).gpu; }

int KvNetwork::port_of(int gpu) const {
  const NodeSpec& node = spec_.cluster.node;
  return gpu % node.gpus * std::min(ports_.count, node.gpus) / node.gpus;
}

int KvNetwork::domain_of(int gpu) const {
  const NodeSpec& node = spec_.cluster.node;
  const int of_cluster = node_of(gpu) * node.gpus + gpu % node.gpus;
  return of_cluster / std::max(1, node.nvlink_domain);
}

/// Counts the groups that use each port and the pools that have replicas in each domain.
void KvNetwork::count_users() {
  const auto nodes = static_cast<std::size_t>(spec_.cluster.nodes);
  const auto gpus = static_cast<std::size_t>(spec_.cluster.gpus());
  const auto domain = static_cast<std::size_t>(std::max(1, spec_.cluster.node.nvlink_domain));
  port_users_.assign(nodes * static_cast<std::size_t>(std::max(1, ports_.count)), {});
  domains_.assign(gpus / domain + 1, {});
  std::vector<std::size_t> own;
  for (const std::size_t pool : {0UL, 1UL}) {
    const auto groups = static_cast<std::uint32_t>(cuts_[pool].groups);
    for (std::uint32_t r = 0; r < first_[pool].size(); ++r) {
      for (std::uint32_t g = 0; g < groups; ++g) {
        own.clear();
        for (int rank = 0; rank < cuts_[pool].ranks(); ++rank) {
          const int gpu = gpu_of(pool, {r, g}, rank);
          domains_[static_cast<std::size_t>(domain_of(gpu))][pool] = true;
          own.push_back(static_cast<std::size_t>(node_of(gpu) * ports_.count + port_of(gpu)));
        }
        std::ranges::sort(own);
        const auto repeated = std::ranges::unique(own);
        own.erase(repeated.begin(), repeated.end());
        for (const std::size_t port : own) ++port_users_[port][pool];
      }
    }
  }
}

/// Whether the group shares its ports with no other group, and all its transfers cross them.
bool KvNetwork::folds(std::size_t pool, const KvEnd& end) const {
  const FabricSpec& fabric = links_.fabric().spec();
  if (fabric.pxn || links_.fabric().is_drawn()) return false;
  for (int rank = 0; rank < cuts_[pool].ranks(); ++rank) {
    const int gpu = gpu_of(pool, end, rank);
    const int number = node_of(gpu) * ports_.count + port_of(gpu);
    const auto port = static_cast<std::size_t>(number);
    if (port_users_[port][pool] > 1) return false;
    if (domains_[static_cast<std::size_t>(domain_of(gpu))][1 - pool]) return false;
  }
  return true;
}

void KvNetwork::fold(const Loads& ports, bool folded, Loads& out) const {
  double fullest = 0;
  const auto use = [&](const auto& load) {
    return load.second / links_.network().capacity(load.first).base_units();
  };
  for (const auto& load : ports) fullest = std::max(fullest, use(load));
  for (const auto& load : ports) {
    if (folded && use(load) < kAsFull * fullest) continue;
    out[load.first] += load.second;
    if (folded) return;
  }
}

/// The link between a GPU and the others of its node or NVLink domain.
LinkIndex KvNetwork::inside(int gpu, bool up, bool nvlink) {
  const int key = gpu * 4 + (up ? 2 : 0) + (nvlink ? 1 : 0);
  const auto known = inside_.find(key);
  if (known != inside_.end()) return known->second;
  const GpuSpec& of = card_of(gpu);
  const LinkIndex link =
      links_.network().add_link(nvlink ? of.nvlink_bandwidth : of.pcie_bandwidth);
  inside_.emplace(key, link);
  return link;
}

KvNetwork::Pair KvNetwork::wire(const KvEnd& from, const KvEnd& to) {
  const Fabric& fabric = links_.fabric();
  const double port_part = 1 / spec_.transfer.efficiency;
  // The efficiency of a transfer is a share of a NIC's line rate, that of a link the payload's
  // share.
  const double nic_part = links_.efficiency() * port_part;
  Loads all, ups, downs;
  double largest = 0;
  for (const KvStream& stream : kv_streams(cuts_[0], cuts_[1])) {
    largest = std::max(largest, stream.share);
    const int a = gpu_of(0, from, stream.from), b = gpu_of(1, to, stream.to);
    const bool nvlink =
        domain_of(a) == domain_of(b) && card_of(a).nvlink_bandwidth > BytesPerSecond{};
    if (nvlink || node_of(a) == node_of(b)) {
      all[inside(a, true, nvlink)] += port_part * stream.share;
      all[inside(b, false, nvlink)] += port_part * stream.share;
      continue;
    }
    hops_.clear();
    own_.clear();
    fabric.nic_ups(node_of(a), port_of(a), own_);
    route_connections(fabric, {node_of(a), port_of(a)}, {node_of(b), port_of(b)}, kFirstHashSeed,
                      fabric.spec().queue_pairs, hops_);
    for (const RouteHop& hop : hops_) {
      const double share = hop.share * stream.share;
      const LinkIndex link = links_[hop.link];
      if (!fabric.joins_nic(hop.link)) {
        all[link] += share;
      } else {
        const bool up = std::ranges::find(own_, hop.link, &RouteHop::link) != own_.end();
        (up ? ups : downs)[link] += nic_part * share;
      }
    }
  }
  fold(ups, folds(0, from), all);
  fold(downs, folds(1, to), all);
  Pair out{.unit = largest, .alone = BytesPerSecond{1e30}};
  for (const auto& [link, load] : all) {
    out.edges.push_back({link, load / largest});
    out.alone = std::min(out.alone, 1 / load * links_.network().capacity(link));
  }
  return out;
}

KvChannel KvNetwork::take(const KvEnd& from, const KvEnd& to) {
  const std::uint64_t sender = std::uint64_t{from.replica} * static_cast<unsigned>(cuts_[0].groups);
  const std::uint64_t receiver = std::uint64_t{to.replica} * static_cast<unsigned>(cuts_[1].groups);
  const std::uint64_t key = (sender + from.group) << 32U | (receiver + to.group);
  const auto [at, is_new] = pair_of_.try_emplace(key, static_cast<std::uint32_t>(pairs_.size()));
  if (is_new) pairs_.push_back(wire(from, to));
  Pair& pair = pairs_[at->second];
  KvChannel out{.pair = at->second, .unit = pair.unit, .alone = pair.alone};
  if (pair.free.empty()) {
    out.flow = network().add_flow(pair.edges);
    if (told_) told_(out.flow, out.unit, from, to, pair.flows);
    ++pair.flows;
  } else {
    out.flow = pair.free.back();
    pair.free.pop_back();
  }
  return out;
}

}  // namespace lockstep
