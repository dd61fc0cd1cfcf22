#include "sim/serving/prefix_cache.hpp"

#include <algorithm>
#include <cassert>

namespace lockstep {

std::int64_t PrefixCache::blocks(std::int32_t node) const {
  return node < 0 ? 0 : of(node).tokens / block_;
}

std::int32_t PrefixCache::longest(std::int32_t node, std::int64_t most_tokens) const {
  // A node is held only with all nodes before it.
  while (node >= 0 && (blocks(node) * block_ > most_tokens || !held_.contains(node))) {
    node = of(node).parent;
  }
  return node;
}

std::int64_t PrefixCache::unused_of(std::int32_t node) const {
  std::int64_t sum = 0;
  for (; node >= 0; node = of(node).parent) {
    const auto at = held_.find(node);
    // A user of a node uses all nodes before it.
    if (at != held_.end() && at->second.users > 0) break;
    if (at != held_.end()) sum += own_blocks(node);
  }
  return sum;
}

RunTime PrefixCache::ready(std::int32_t node) const {
  RunTime latest = 0;
  for (; node >= 0; node = of(node).parent) {
    const auto at = held_.find(node);
    if (at != held_.end()) latest = std::max(latest, at->second.ready);
  }
  return latest;
}

void PrefixCache::take(std::int32_t node, RunTime ready) {
  for (; node >= 0; node = of(node).parent) {
    const auto [at, added] = held_.try_emplace(node);
    Held& held = at->second;
    if (held.users++ > 0) continue;
    used_ += own_blocks(node);
    if (added) {
      held.ready = ready;
      continue;
    }
    unused_ -= own_blocks(node);
    order_.erase(held.at);
  }
}

void PrefixCache::give(std::int32_t node) {
  for (; node >= 0; node = of(node).parent) {
    Held& held = held_.at(node);
    assert(held.users > 0);
    if (--held.users > 0) continue;
    used_ -= own_blocks(node);
    unused_ += own_blocks(node);
    held.at = order_.insert(order_.end(), node);
  }
}

void PrefixCache::let_go(std::int64_t most_unused, std::vector<PrefixPiece>* left) {
  while (unused_ > most_unused && !order_.empty()) {
    const std::int32_t node = order_.front();
    order_.pop_front();
    unused_ -= own_blocks(node);
    held_.erase(node);
    if (left != nullptr) left->push_back({.node = node, .blocks = own_blocks(node)});
  }
}

void PrefixCache::clear() {
  assert(used_ == 0);
  held_.clear();
  order_.clear();
  unused_ = 0;
}

}  // namespace lockstep
