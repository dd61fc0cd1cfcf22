/// Writes the segments of one stage of a plan, and books what their time goes to.
#pragma once

#include <algorithm>
#include <cstddef>

#include "models/layer/operations.hpp"
#include "sim/core/clock.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/pieces.hpp"
#include "sim/step/plan.hpp"

namespace lockstep {

class StageSegments {
 public:
  /// All outlive this.
  StageSegments(const Scenario& scenario, const StepPlan& plan, StagePlan& out)
      : plan_(plan),
        out_(out),
        policy_(scenario.stack.communication),
        variation_(kernel_variation(scenario.job, scenario.node_of(out.pool).gpu)),
        level_(scenario.stack.level) {}

  /// `window`: collectives between replicas run beside it, for the time `beside` when alone, and
  /// take their share of the SMs while they do.
  void add(const PhaseCost& cost, bool window, Seconds beside) {
    const Seconds counted = cost.compute() - cost.launch;
    const Seconds kernels = level_ * counted;
    const Seconds yielded = policy_.sm_share / (1 - policy_.sm_share) * std::min(kernels, beside);
    const Seconds compute = (1 + variation_) * kernels + yielded + cost.launch + cost.copies;
    Segment segment;
    segment.compute = to_step_time(compute);
    // Slow GPUs round each part of it by itself.
    constexpr StepTime kRounding{4};
    StepTime free = segment.compute - std::min(segment.compute, kRounding);
    Seconds closed;
    for (std::size_t a = 0; a < kAxes; ++a) {
      const ExchangeCost& exchange = cost.exchanges[a];
      const Seconds waits =
          add_flow(a, exchange, window, segment, free) ? exchange.latency : exchange.total();
      closed += waits;
      segment.closed[a] = to_step_time(waits);
      out_.exchange[a] += waits.base_units();
    }
    segment.tensor = to_step_time(closed);
    out_.segments.push_back(segment);
    const auto book = [&](Bucket bucket, Seconds time) {
      out_.compute[static_cast<std::size_t>(bucket)] += time.base_units();
    };
    book(Bucket::model_flops, cost.useful);
    book(Bucket::kernel_inefficiency, cost.inefficiency + (kernels - counted) + yielded);
    book(Bucket::memory_bound, cost.memory);
    book(Bucket::recompute, cost.recompute);
    book(Bucket::launch, cost.launch);
    book(Bucket::expert_imbalance, cost.imbalance);
    book(Bucket::host_exposed, cost.copies);
    book(Bucket::variation, variation_ * kernels);
  }

 private:
  /// Makes transfers of one axis a flow of the segment where others can slow them; false: they are
  /// not. `free` is compute that nothing goes on beside yet.
  bool add_flow(std::size_t axis, const ExchangeCost& exchange, bool window, Segment& segment,
                StepTime& free) {
    const HiddenTransfer& hidden = exchange.hidden;
    const bool leaves = exchange.network > Bytes{} || hidden.network > Bytes{};
    const bool shares = window && plan_.data_over_nvlink && exchange.transfer > Seconds{};
    if (!leaves && !shares) return false;
    // Progress runs at the pace of the transfer alone; its links see their share of it.
    const double rate = plan_.costs(out_.pool).layers[axis].rate;
    Seconds moves = exchange.transfer;
    if (leaves && hidden.transfer + hidden.spare > Seconds{}) {
      const StepTime covered = std::min(free, to_step_time(hidden.transfer + hidden.spare));
      free = free - covered;
      const Seconds least = to_seconds(covered) + exchange.transfer;
      segment.covered[axis] = covered;
      segment.least[axis] = to_step_time(least);
      // What compute of other passes covers does not make this one wait.
      moves = std::min(exchange.transfer + hidden.transfer, least);
    }
    segment.amounts[axis] = moves.base_units() * rate;
    return segment.amounts[axis] > 0;
  }

  const StepPlan& plan_;
  StagePlan& out_;
  const CommunicationPolicy& policy_;
  double variation_;
  double level_;
};

}  // namespace lockstep
