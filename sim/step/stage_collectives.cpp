#include "sim/step/stage_collectives.hpp"

#include <algorithm>

#include "sim/fabric/summed_streams.hpp"

namespace lockstep {
namespace {

/// Of collectives between replicas.
CollectiveOptions data_options(const Scenario& s, bool switches_sum) {
  CollectiveOptions options;
  if (switches_sum) {
    options.sharp = SharpFabric{.generation = sharp_generation(s.fabric.sharp)};
  }
  return options;
}

}  // namespace

CollectiveCost cost_among(const Scenario& s, const std::vector<std::uint32_t>& pools,
                          const CollectiveCall& call, const DomainSpreads& spreads,
                          const CollectiveOptions& options) {
  std::vector<MemberCard> cards;
  for (const std::uint32_t pool : pools) {
    const NodeSpec& node = s.node_of(pool);
    cards.push_back({node.gpu, nic_share(node)});
  }
  return slowest_cost(call, spreads, cards, s.transport, options);
}

StageCollectives::StageCollectives(const Scenario& scenario, bool switches_sum,
                                   const std::vector<std::uint32_t>& pools, StagePlan& out)
    : scenario_(scenario),
      pools_(pools),
      out_(out),
      policy_(scenario.stack.communication),
      par_(scenario.job.parallelism),
      options_(data_options(scenario, switches_sum)) {}

std::uint32_t StageCollectives::channel_of(CollectiveOp op, Bytes payload, DataGroupKind kind) {
  payload = std::max(payload, Bytes{1});
  const auto same = [&](const DataChannel& c) {
    return c.group == kind && c.op == op && c.payload == payload;
  };
  auto it = std::ranges::find_if(out_.channels, same);
  if (it == out_.channels.end()) {
    const DataGroup& group = out_.groups[static_cast<std::size_t>(kind)];
    CollectiveCost cost =
        cost_among(scenario_, pools_, {op, payload, group.ranks}, group.spreads, options_);
    cost.latency *= policy_.data_slowdown;
    cost.payload_rate *= 1 / policy_.data_slowdown;
    out_.channels.push_back({kind, op, payload, cost});
    it = out_.channels.end() - 1;
  }
  return static_cast<std::uint32_t>(it - out_.channels.begin());
}
Seconds StageCollectives::time_alone(CollectiveOp op, Bytes payload, DataGroupKind kind) {
  const DataChannel& channel = out_.channels[channel_of(op, payload, kind)];
  return channel.cost.latency + channel.payload / channel.cost.payload_rate;
}

Seconds StageCollectives::time_alone(CollectiveOp op, double bytes_per_weight, const Weights& w) {
  Seconds time = time_alone(op, Bytes{bytes_per_weight * w.all}, DataGroupKind::replicas);
  if (exchanges_experts(w)) {
    time += time_alone(op, Bytes{bytes_per_weight * w.experts}, DataGroupKind::experts);
  }
  return time;
}

void StageCollectives::post(CollectiveOp op, Bytes payload, DataGroupKind kind) {
  const std::uint32_t number = channel_of(op, payload, kind);
  const DataChannel& channel = out_.channels[number];
  out_.collectives.push_back({op, channel.payload, to_step_time(channel.cost.latency), number});
}

}  // namespace lockstep
