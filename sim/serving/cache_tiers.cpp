#include "sim/serving/cache_tiers.hpp"

#include <algorithm>
#include <iterator>
#include <ranges>

namespace lockstep {
namespace {

/// So long after what was asked of the same link before; when it ends.
RunTime after_others(RunTime& until, Seconds takes, RunTime now) {
  until = std::max(until, now) + to_run_time(takes);
  return until;
}

}  // namespace

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
  remote += o.remote;
  loads += o.loads;
  loading += o.loading;
  stalled += o.stalled;
  of_host += o.of_host;
  return *this;
}

void TierStore::write(const PrefixPiece& piece) {
  if (const auto at = held_.find(piece.node); at != held_.end()) {
    order_.splice(order_.end(), order_, at->second);
    return;
  }
  if (capacity_ == 0 || piece.blocks > capacity_) return;
  order_.push_back(piece);
  held_.emplace(piece.node, std::prev(order_.end()));
  flow_.written += piece.blocks;
  flow_.held += piece.blocks;
  while (flow_.held > capacity_) {
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
  held_.clear();
  order_.clear();
}

ReplicaTiers::ReplicaTiers(const TierPlan& plan, std::size_t replica, int block, RemotePool& remote)
    : plan_(&plan),
      block_(block),
      remote_(&remote),
      host_(tier_blocks(plan.host_tokens, block)),
      links_(static_cast<std::size_t>(plan.groups), 0) {
  const std::size_t first = replica * links_.size();
  for (std::size_t group = first; group < first + links_.size(); ++group) {
    ports_.push_back(plan.ports.empty() ? std::vector{PortLoad{.port = group}} : plan.ports[group]);
    for (const PortLoad& load : ports_.back()) {
      if (load.port >= remote.ports.size()) remote.ports.resize(load.port + 1, 0);
    }
  }
}

HeldPrompt ReplicaTiers::find(const PrefixCache& gpu, std::int32_t node,
                              std::int64_t most_tokens) const {
  HeldPrompt out;
  out.node = gpu.longest(node, most_tokens);
  out.gpu = gpu.blocks(out.node);
  std::vector<std::int32_t> behind;  // what the GPUs hold, the longest first
  for (; node != out.node; node = gpu.parent(node)) {
    if (gpu.blocks(node) * block_ <= most_tokens) behind.push_back(node);
  }
  for (const std::int32_t next : behind | std::views::reverse) {
    if (host_.holds(next)) {
      out.host += gpu.own_blocks(next);
    } else if (remote_->store.holds(next)) {
      out.remote += gpu.own_blocks(next);
    } else {
      break;
    }
    out.node = next;
  }
  return out;
}

void ReplicaTiers::write(std::vector<PrefixPiece>& pieces) {
  for (const PrefixPiece& piece : pieces) {
    host_.write(piece);
    remote_->store.write(piece);
  }
  pieces.clear();
}

/// To the group whose ports are free first.
RunTime ReplicaTiers::load_remote(double tokens, RunTime now) {
  const auto busy = [&](const std::vector<PortLoad>& group) {
    RunTime until = 0;
    for (const PortLoad& load : group) until = std::max(until, remote_->ports[load.port]);
    return until;
  };
  RunTime there = after_others(remote_->until, tokens * plan_->pool_token, now);
  for (const PortLoad& load : *std::ranges::min_element(ports_, {}, busy)) {
    const Seconds takes = load.share * tokens * plan_->remote_token;
    there = std::max(there, after_others(remote_->ports[load.port], takes, now));
  }
  return there + to_run_time(plan_->remote_latency);
}

RunTime ReplicaTiers::load(const HeldPrompt& held, RunTime now) {
  if (held.host + held.remote == 0) return now;
  const auto tokens = [&](std::int64_t blocks) { return static_cast<double>(blocks * block_); };
  RunTime there = now;
  if (held.host > 0) {
    RunTime& link = *std::ranges::min_element(links_);
    there = after_others(link, tokens(held.host) * plan_->host_token, now);
    host_.load(held.host);
  }
  if (held.remote > 0) {
    there = std::max(there, load_remote(tokens(held.remote), now));
    remote_->store.load(held.remote);
  }
  ++account_.loads;
  account_.loading += there - now;
  return there;
}

void ReplicaTiers::count(const HeldPrompt& held) {
  account_.gpu += held.gpu;
  account_.host += held.host;
  account_.remote += held.remote;
}

void ReplicaTiers::lose() {
  host_.clear();
  std::ranges::fill(links_, 0);
}

TierAccount ReplicaTiers::account() const {
  TierAccount out = account_;
  out.of_host = host_.flow();
  return out;
}

}  // namespace lockstep
