#include "sim/core/flow_network.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace lockstep {

namespace {
constexpr double kLeast = 1e-6;  // bytes
constexpr StepTime kLastTick{std::numeric_limits<std::uint64_t>::max()};
}  // namespace

LinkIndex FlowNetwork::add_link(BytesPerSecond capacity) { return rates_.add_link(capacity); }

FlowIndex FlowNetwork::add_flow(std::span<const FlowEdge> edges) {
  transfers_.emplace_back();
  due_.fit(transfers_.size());
  return rates_.add_flow(edges);
}

void FlowNetwork::start(FlowIndex flow, Bytes amount, StepTime now) {
  assert(!active(flow) && amount > Bytes{} && std::isfinite(amount.base_units()));
  transfers_[flow] = {amount.base_units(), amount.base_units(), now};
  rates_.start(flow);
  for (FlowObserver* observer : observers_) observer->started(flow, amount, now);
}

void FlowNetwork::start_held(FlowIndex flow, Bytes amount, StepTime now) {
  assert(!active(flow) && amount > Bytes{} && std::isfinite(amount.base_units()));
  transfers_[flow] = {amount.base_units(), amount.base_units(), now};
  transfers_[flow].held = true;
  for (FlowObserver* observer : observers_) observer->started(flow, amount, now);
}

void FlowNetwork::book(FlowIndex flow, BytesPerSecond rate, StepTime now) {
  Transfer& transfer = transfers_[flow];
  if (transfer.since == now) return;
  const Bytes moved = rate * to_seconds(now - transfer.since);
  for (FlowObserver* observer : observers_) {
    observer->moved(flow, transfer.since, now, rate, transfer.held_by);
  }
  transfer.remaining = std::max(0.0, transfer.remaining - moved.base_units());
  transfer.since = now;
}

void FlowNetwork::settle(StepTime now) {
  for (const FlowIndex flow : rates_.solve()) {
    Transfer& transfer = transfers_[flow];
    book(flow, rates_.previous_rate(flow), now);
    transfer.held_by = rates_.bottleneck(flow);
    const Seconds rest = Bytes{transfer.remaining} / rates_.rate(flow);
    due_.set(flow, now + std::min(to_step_time(std::min(rest, kLongestSpan)), kLastTick - now));
  }
}

void FlowNetwork::collect_ended(StepTime now, std::vector<FlowIndex>& ended) {
  while (!due_.empty() && due_.top().key <= now) {
    const auto [at, flow] = due_.pop();
    assert(at == now && "an end was passed over");
    end(flow, at);
    ended.push_back(flow);
  }
}

void FlowNetwork::take_stock(StepTime now) {
  for (FlowIndex flow = 0; flow < transfers_.size(); ++flow) {
    if (active(flow) && !held(flow)) book(flow, rates_.rate(flow), now);
  }
}

void FlowNetwork::end(FlowIndex flow, StepTime now) {
  book(flow, rates_.rate(flow), now);
  leave(flow);
  transfers_[flow].amount = 0;
  for (FlowObserver* observer : observers_) observer->ended(flow, now);
}

void FlowNetwork::leave(FlowIndex flow) {
  Transfer& transfer = transfers_[flow];
  const Bytes moved{transfer.amount - transfer.remaining};
  transfer.amount = transfer.remaining;
  rates_.stop(flow, moved);
}

void FlowNetwork::hand_over(FlowIndex from, FlowIndex to, StepTime now) {
  assert(active(from) && !active(to));
  if (!held(from)) hold(from, now);
  std::swap(transfers_[to], transfers_[from]);
  transfers_[from] = {};
}

void FlowNetwork::hold(FlowIndex flow, StepTime now) {
  assert(active(flow) && !held(flow));
  book(flow, rates_.rate(flow), now);
  leave(flow);
  due_.remove(flow);
  Transfer& transfer = transfers_[flow];
  // Rounding may leave nothing where a tick was left: it still has to end.
  if (!active(flow)) transfer.amount = transfer.remaining = kLeast;
  transfer.held = true;
}

void FlowNetwork::set_weight(FlowIndex flow, double weight, StepTime now) {
  if (rates_.weight(flow) == weight) return;
  const bool moving = active(flow) && !held(flow);
  if (moving) hold(flow, now);
  rates_.set_weight(flow, weight);
  if (moving) resume(flow, now);
}

void FlowNetwork::resume(FlowIndex flow, StepTime now) {
  assert(held(flow));
  transfers_[flow].held = false;
  transfers_[flow].since = now;
  rates_.start(flow);
}

}  // namespace lockstep
