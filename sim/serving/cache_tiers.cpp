#include "sim/serving/cache_tiers.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <ranges>

namespace lockstep {
namespace {

/// Queues a transfer of `takes` on a link that is busy until `until`; returns when it ends.
RunTime after_others(RunTime& until, Seconds takes, RunTime now) {
  until = std::max(until, now) + to_run_time(takes);
  return until;
}

/// The ports through which the groups of ranks of a replica load. `until` gets an entry for each of
/// them.
std::vector<std::vector<PortLoad>> loads_of(const std::vector<std::vector<PortLoad>>& all,
                                            std::size_t first, std::size_t groups,
                                            std::vector<RunTime>& until) {
  std::vector<std::vector<PortLoad>> out;
  for (std::size_t group = first; group < first + groups; ++group) {
    out.push_back(all.empty() ? std::vector{PortLoad{.port = group}} : all[group]);
    for (const PortLoad& load : out.back()) {
      if (load.port >= until.size()) until.resize(load.port + 1, 0);
    }
  }
  return out;
}

/// The group whose ports are free first.
const std::vector<PortLoad>& free_first(const std::vector<std::vector<PortLoad>>& groups,
                                        const std::vector<RunTime>& until) {
  const auto busy = [&](const std::vector<PortLoad>& group) {
    RunTime latest = 0;
    for (const PortLoad& load : group) latest = std::max(latest, until[load.port]);
    return latest;
  };
  return *std::ranges::min_element(groups, {}, busy);
}

}  // namespace

Seconds TierPlan::added(Seconds load_time, Seconds work) const {
  const double parts = load == CacheLoad::by_layer ? layers : 1;
  return std::max(load_time / parts, load_time + work / parts - work);
}

std::int64_t tier_blocks(double tokens, int block) {
  constexpr double kWithoutEnd = 1e15;
  return static_cast<std::int64_t>(std::min(tokens / block, kWithoutEnd));
}

TierFlow& TierFlow::operator+=(const TierFlow& o) {
  written += o.written;
  loaded += o.loaded;
  left += o.left;
  held += o.held;
  return *this;
}

TierAccount& TierAccount::operator+=(const TierAccount& o) {
  gpu += o.gpu;
  host += o.host;
  disk += o.disk;
  remote += o.remote;
  recomputed += o.recomputed;
  loads += o.loads;
  loading += o.loading;
  stalled += o.stalled;
  swaps += o.swaps;
  moved += o.moved;
  of_host += o.of_host;
  of_disk += o.of_disk;
  return *this;
}

void TierStore::write(const PrefixPiece& piece) {
  if (const auto at = held_.find(piece.node); at != held_.end()) {
    order_.splice(order_.end(), order_, at->second);
    return;
  }
  if (capacity_ == 0 || piece.blocks > capacity_ - reserved_) return;
  order_.push_back(piece);
  held_.emplace(piece.node, std::prev(order_.end()));
  flow_.written += piece.blocks;
  flow_.held += piece.blocks;
  make_room();
}

bool TierStore::reserve(std::int64_t blocks) {
  if (blocks > capacity_ - reserved_) return false;
  reserved_ += blocks;
  make_room();
  return true;
}

void TierStore::make_room() {
  while (flow_.held > capacity_ - reserved_) {
    const PrefixPiece oldest = order_.front();
    order_.pop_front();
    held_.erase(oldest.node);
    flow_.held -= oldest.blocks;
    flow_.left += oldest.blocks;
  }
}

void TierStore::clear() {
  flow_.left += flow_.held;
  flow_.held = 0;
  reserved_ = 0;
  held_.clear();
  order_.clear();
}

ReplicaTiers::ReplicaTiers(const TierPlan& plan, std::size_t replica, int block, RemotePool& remote)
    : plan_(&plan),
      block_(block),
      remote_(&remote),
      host_(tier_blocks(plan.host_tokens, block)),
      disk_(tier_blocks(plan.disk_tokens, block)),
      links_(static_cast<std::size_t>(plan.groups), 0),
      out_links_(links_.size(), 0),
      ports_(loads_of(plan.ports, replica * links_.size(), links_.size(), remote.ports)),
      drives_(loads_of(plan.drives, replica * links_.size(), links_.size(), remote.drives)) {}

std::vector<HeldPrompt> ReplicaTiers::find(const PrefixCache& gpu, std::int32_t node,
                                           std::int64_t most_tokens) const {
  struct Tier {
    const TierStore* store;
    std::int64_t HeldPrompt::* blocks;
  };
  // LMCache looks in this order: memory, drives, remote.
  const std::array tiers{Tier{&host_, &HeldPrompt::host}, Tier{&disk_, &HeldPrompt::disk},
                         Tier{&remote_->store, &HeldPrompt::remote}};
  HeldPrompt held;
  held.node = gpu.longest(node, most_tokens);
  held.gpu = gpu.blocks(held.node);
  std::vector<std::int32_t> behind;  // what the GPUs hold, the longest first
  for (; node != held.node; node = gpu.parent(node)) {
    if (gpu.blocks(node) * block_ <= most_tokens) behind.push_back(node);
  }
  std::vector<HeldPrompt> out{held};
  auto before = tiers.end();
  for (const std::int32_t next : behind | std::views::reverse) {
    const auto tier = std::ranges::find_if(
        tiers, [next](const TierStore* store) { return store->holds(next); }, &Tier::store);
    if (tier == tiers.end()) break;
    held.*(tier->blocks) += gpu.own_blocks(next);
    held.node = next;
    if (tier != before) out.emplace_back();
    out.back() = held;
    before = tier;
  }
  return out;
}

void ReplicaTiers::write(std::vector<PrefixPiece>& pieces) {
  for (const PrefixPiece& piece : pieces) {
    host_.write(piece);
    disk_.write(piece);
    remote_->store.write(piece);
  }
  pieces.clear();
}

Seconds ReplicaTiers::host_time(std::int64_t blocks) const {
  return static_cast<double>(blocks * block_) * plan_->host_token;
}

/// Each tier's part is loaded by the group that is free first. What drives read crosses the host's
/// link to the GPUs as well.
std::vector<ReplicaTiers::Claim> ReplicaTiers::claims(const HeldPrompt& held) {
  const auto tokens = [&](std::int64_t blocks) { return static_cast<double>(blocks * block_); };
  std::vector<Claim> out;
  if (held.host + held.disk > 0) {
    out.push_back({&*std::ranges::min_element(links_), host_time(held.host + held.disk)});
  }
  if (held.disk > 0) {
    for (const PortLoad& load : free_first(drives_, remote_->drives)) {
      const Seconds takes = load.share * tokens(held.disk) * plan_->disk_token;
      out.push_back({&remote_->drives[load.port], takes, plan_->disk_latency});
    }
  }
  if (held.remote > 0) {
    const Seconds pool = tokens(held.remote) * plan_->pool_token;
    out.push_back({&remote_->until, pool, plan_->remote_latency});
    for (const PortLoad& load : free_first(ports_, remote_->ports)) {
      const Seconds takes = load.share * tokens(held.remote) * plan_->remote_token;
      out.push_back({&remote_->ports[load.port], takes, plan_->remote_latency});
    }
  }
  return out;
}

Seconds ReplicaTiers::load_time(const HeldPrompt& held, RunTime now) {
  Seconds out{};
  for (const Claim& claim : claims(held)) {
    const Seconds others = to_seconds(std::max<RunTime>(0, *claim.until - now));
    out = std::max(out, others + claim.takes + claim.latency);
  }
  return out;
}

RunTime ReplicaTiers::load(const HeldPrompt& held, RunTime now) {
  if (held.behind() == 0) return now;
  RunTime there = now;
  for (const Claim& claim : claims(held)) {
    const RunTime passed = after_others(*claim.until, claim.takes, now);
    there = std::max(there, passed + to_run_time(claim.latency));
  }
  host_.load(held.host);
  disk_.load(held.disk);
  remote_->store.load(held.remote);
  ++account_.loads;
  account_.loading += there - now;
  return there;
}

Seconds ReplicaTiers::swap_time(std::int64_t blocks, RunTime now) const {
  const RunTime until = *std::ranges::min_element(out_links_);
  return to_seconds(std::max<RunTime>(0, until - now)) + 2 * host_time(blocks);
}

RunTime ReplicaTiers::swap_out(std::int64_t blocks, RunTime now) {
  if (!host_.reserve(blocks)) return -1;
  ++account_.swaps;
  account_.moved += blocks;
  return after_others(*std::ranges::min_element(out_links_), host_time(blocks), now);
}

RunTime ReplicaTiers::swap_in(std::int64_t blocks, std::int64_t held, RunTime now) {
  host_.free(blocks);
  account_.moved += blocks - held;
  return after_others(*std::ranges::min_element(links_), host_time(blocks - held), now);
}

void ReplicaTiers::count(const HeldPrompt& held) {
  account_.gpu += held.gpu;
  account_.host += held.host;
  account_.disk += held.disk;
  account_.remote += held.remote;
  account_.recomputed += held.recomputed;
}

void ReplicaTiers::lose() {
  host_.clear();
  disk_.clear();
  std::ranges::fill(links_, 0);
  std::ranges::fill(out_links_, 0);
}

TierAccount ReplicaTiers::account() const {
  TierAccount out = account_;
  out.of_host = host_.flow();
  out.of_disk = disk_.flow();
  return out;
}

}  // namespace lockstep
