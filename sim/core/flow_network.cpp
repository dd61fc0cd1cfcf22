#include "sim/core/flow_network.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep {

namespace {
constexpr Seconds kLongest{1.7e7};  // what to_step_time() takes
constexpr StepTime kLastTick{std::numeric_limits<std::uint64_t>::max()};
}  // namespace

LinkIndex FlowNetwork::add_link(BytesPerSecond capacity) {
  carried_.push_back(0);
  return rates_.add_link(capacity);
}

FlowIndex FlowNetwork::add_flow(std::span<const FlowEdge> edges) {
  transfers_.emplace_back();
  due_.fit(transfers_.size());
  return rates_.add_flow(edges);
}

void FlowNetwork::start(FlowIndex flow, Bytes amount, StepTime now) {
  assert(!active(flow) && amount > Bytes{} && std::isfinite(amount.base_units()));
  transfers_[flow] = {amount.base_units(), amount.base_units(), now};
  rates_.start(flow);
  ++active_;
}

void FlowNetwork::settle(StepTime now) {
  for (const FlowIndex flow : rates_.solve()) {
    Transfer& transfer = transfers_[flow];
    if (transfer.since != now) {
      const Bytes moved = rates_.previous_rate(flow) * to_seconds(now - transfer.since);
      transfer.remaining = std::max(0.0, transfer.remaining - moved.base_units());
      transfer.since = now;
    }
    const Seconds rest = Bytes{transfer.remaining} / rates_.rate(flow);
    due_.set(flow, now + std::min(to_step_time(std::min(rest, kLongest)), kLastTick - now));
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

void FlowNetwork::end(FlowIndex flow, StepTime now) {
  Transfer& transfer = transfers_[flow];
  const Bytes last = rates_.rate(flow) * to_seconds(now - transfer.since);
  const double moved = transfer.amount - transfer.remaining + last.base_units();
  for (const MaxMin::Edge& edge : rates_.edges(flow)) {
    carried_[edge.link] += edge.coefficient * moved;
  }
  transfer.amount = 0;
  rates_.stop(flow);
  --active_;
}

}  // namespace lockstep
