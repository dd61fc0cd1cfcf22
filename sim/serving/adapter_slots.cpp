#include "sim/serving/adapter_slots.hpp"

#include <algorithm>
#include <cassert>

namespace lockstep {

void RecentlyUsed::use(std::int32_t one) {
  auto& at = places_[static_cast<std::size_t>(one)];
  if (at) {
    order_.splice(order_.end(), order_, *at);
  } else {
    at = order_.insert(order_.end(), one);
  }
}

void RecentlyUsed::erase(std::int32_t one) {
  auto& at = places_[static_cast<std::size_t>(one)];
  order_.erase(*at);
  at.reset();
}

void RecentlyUsed::clear() {
  for (const std::int32_t one : order_) places_[static_cast<std::size_t>(one)].reset();
  order_.clear();
}

AdapterSlots::AdapterSlots(const AdapterRules& rules)
    : rules_(rules),
      users_(static_cast<std::size_t>(rules.count), 0),
      gpu_(static_cast<std::size_t>(rules.count)),
      host_(static_cast<std::size_t>(rules.count)) {
  assert(rules.on_gpu >= 1 && rules.in_host >= rules.on_gpu);
}

/// Lets go of the adapter that was used longest ago and that no request uses.
void AdapterSlots::make_place() {
  const auto unused = [&](std::int32_t one) { return users_[static_cast<std::size_t>(one)] == 0; };
  gpu_.erase(*std::ranges::find_if(gpu_.order(), unused));
}

RunTime AdapterSlots::join(std::int32_t adapter) {
  if (adapter < 0) return 0;
  assert(may_join(adapter));
  if (users_[static_cast<std::size_t>(adapter)]++ == 0) in_use_.push_back(adapter);
  RunTime wait = 0;
  if (!gpu_.has(adapter)) {
    if (!host_.has(adapter)) {
      if (host_.size() == static_cast<std::size_t>(rules_.in_host)) {
        host_.erase(host_.order().front());
      }
      wait += rules_.from_storage;
      ++from_storage_;
    }
    if (gpu_.size() == static_cast<std::size_t>(rules_.on_gpu)) make_place();
    wait += rules_.from_host;
    ++loads_;
    loading_ += wait;
  }
  host_.use(adapter);
  gpu_.use(adapter);
  return wait;
}

void AdapterSlots::leave(std::int32_t adapter) {
  if (adapter < 0) return;
  if (--users_[static_cast<std::size_t>(adapter)] == 0) std::erase(in_use_, adapter);
}

Seconds AdapterSlots::longer(std::size_t adapters, double rows) const {
  if (adapters == 0) return {};
  return rules_.pass + static_cast<double>(adapters) * rules_.adapter + rows * rules_.row;
}

void AdapterSlots::clear() {
  assert(in_use_.empty());
  gpu_.clear();
  host_.clear();
}

}  // namespace lockstep
