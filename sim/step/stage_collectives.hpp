/// What replicas exchange for one stage of a plan: its gradients and parameters, as collectives in
/// the order in which they are posted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/collectives/group_spread.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/pieces.hpp"
#include "sim/step/plan.hpp"

namespace lockstep {

/// What a collective among GPUs of all these pools costs: it goes at the pace of the slowest, and
/// at that of the group that lies worst.
CollectiveCost cost_among(const Scenario& s, const std::vector<std::uint32_t>& pools,
                          const CollectiveCall& call, const DomainSpreads& spreads,
                          const CollectiveOptions& options = {});

class StageCollectives {
 public:
  /// `pools`: of the replicas of the stage. All outlive this.
  StageCollectives(const Scenario& scenario, bool switches_sum,
                   const std::vector<std::uint32_t>& pools, StagePlan& out);

  /// Optimiser states are split over replicas, and gathered weights follow them.
  [[nodiscard]] bool sharded() const {
    return par_.replicas() > 1 &&
           (par_.sharding == Sharding::zero1 || par_.sharding == Sharding::zero2);
  }
  /// Weights are split, and gathered where they are used.
  [[nodiscard]] bool gathers_weights() const {
    return par_.sharding == Sharding::zero3 && par_.shards() > 1;
  }
  /// Collectives of the stage that are posted so far.
  [[nodiscard]] std::uint32_t count() const {
    return static_cast<std::uint32_t>(out_.collectives.size());
  }

  // --- of weights that all replicas hold. A time is that of the collectives alone on their links.

  void gather(const Weights& w) {
    if (frozen(w)) return;
    post(CollectiveOp::all_gather, parameter_bytes(w.all));
    if (exchanges_experts(w)) {
      post(CollectiveOp::all_gather, parameter_bytes(w.experts), DataGroupKind::experts);
    }
  }
  void reduce(const Weights& w) {
    if (frozen(w)) return;
    post(reduce_op(), gradient_bytes(w.all));
    if (exchanges_experts(w)) post(reduce_op(), gradient_bytes(w.experts), DataGroupKind::experts);
  }
  Seconds gather_time(const Weights& w) {
    return time_alone(CollectiveOp::all_gather, scenario_.stack.parameter_bytes, w);
  }
  Seconds reduce_time(const Weights& w) {
    return time_alone(reduce_op(), policy_.gradient_bytes, w);
  }

  // --- of weights that are split over replicas

  void gather_split(const Weights& w) {
    for_each_split(w, [&](double parameters, DataGroupKind kind) {
      post(CollectiveOp::all_gather, parameter_bytes(parameters), kind);
    });
  }
  void reduce_split(const Weights& w) {
    if (frozen(w)) return;
    for_each_split(w, [&](double parameters, DataGroupKind kind) {
      post(CollectiveOp::reduce_scatter, gradient_bytes(parameters), kind);
    });
    if (par_.shards() == par_.replicas()) return;
    post(CollectiveOp::all_reduce, gradient_bytes(w.all / par_.shards()), DataGroupKind::copies);
  }
  void add_gather_time(const Weights& w, Seconds& time) {
    for_each_split(w, [&](double parameters, DataGroupKind kind) {
      time += time_alone(CollectiveOp::all_gather, parameter_bytes(parameters), kind);
    });
  }
  void add_reduce_time(const Weights& w, Seconds& time) {
    if (frozen(w)) return;
    for_each_split(w, [&](double parameters, DataGroupKind kind) {
      time += time_alone(CollectiveOp::reduce_scatter, gradient_bytes(parameters), kind);
    });
  }

 private:
  [[nodiscard]] CollectiveOp reduce_op() const {
    return sharded() ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce;
  }
  [[nodiscard]] Bytes gradient_bytes(double p) const { return Bytes{policy_.gradient_bytes * p}; }
  [[nodiscard]] Bytes parameter_bytes(double p) const {
    return Bytes{scenario_.stack.parameter_bytes * p};
  }
  /// Replicas of the experts are fewer than those of the rest, and a group of their own.
  [[nodiscard]] bool exchanges_experts(const Weights& w) const {
    return w.experts > 0 && par_.expert_replicas() > 1;
  }
  /// Embedding and output projection beside adapters, and frozen parts.
  [[nodiscard]] bool frozen(const Weights& w) const {
    return (scenario_.job.adapters.any() || scenario_.job.frozen.any()) && w.sum() == 0;
  }
  /// Both kinds of weights: those of experts are split over their own replicas.
  template <class Function>
  void for_each_split(const Weights& w, Function&& function) {
    function(w.all, DataGroupKind::shard);
    if (exchanges_experts(w)) function(w.experts, DataGroupKind::experts);
  }

  /// The flow of such collectives.
  std::uint32_t channel_of(CollectiveOp op, Bytes payload, DataGroupKind kind);
  Seconds time_alone(CollectiveOp op, Bytes payload, DataGroupKind kind);
  Seconds time_alone(CollectiveOp op, double bytes_per_weight, const Weights& w);
  void post(CollectiveOp op, Bytes payload, DataGroupKind kind = DataGroupKind::replicas);

  const Scenario& scenario_;
  const std::vector<std::uint32_t>& pools_;
  StagePlan& out_;
  const CommunicationPolicy& policy_;
  const Parallelism& par_;
  CollectiveOptions options_;
};

}  // namespace lockstep
