/// What one GPU spends on each slice of a step's timeline.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "models/layer/operations.hpp"
#include "models/power/gpu_power.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/plan.hpp"
#include "sim/step/step_report.hpp"

namespace lockstep {

/// Energy above the fixed part of one pass through a layer, the embedding or the head.
struct PieceEnergy {
  ByGpuPart<Joules> forward{}, input{}, weight{};
};

/// What one GPU of a pool spends above the fixed part on each kind of slice of the timeline. In a
/// pass it is the kernels' energy (models/power/gpu_power.hpp), of the model's mean layer.
class SliceEnergy {
 public:
  /// Requires that GPUs of the pool have power constants; scenario and plan outlive it. `timeline`
  /// is that of the step, of so many `actors`.
  SliceEnergy(const Scenario& scenario, const StepPlan& plan,
              std::span<const TimelineSlice> timeline, std::size_t actors, std::size_t pool);

  static double length(const TimelineSlice& s) { return to_seconds(s.end - s.start).base_units(); }
  /// Slices of passes come first, in the order of Pass.
  static bool is_pass(const TimelineSlice& s) {
    return s.kind <= static_cast<std::uint8_t>(Pass::backward_weight);
  }

  /// `stage`: the part of the plan that the slice's actor does.
  [[nodiscard]] ByGpuPart<Joules> of(const TimelineSlice& s, const StagePlan& stage) const;
  [[nodiscard]] ByGpuPart<Joules> pass(Pass done, int chunk, const StagePlan& stage) const;
  /// One forward pass through all chunks of a stage.
  [[nodiscard]] ByGpuPart<Joules> forward(const StagePlan& stage) const;
  /// Bytes out of the GPU, read once and written once where they arrive.
  [[nodiscard]] ByGpuPart<Joules> transfer(Bytes out) const;

 private:
  [[nodiscard]] PieceEnergy mean_layer(const WorkloadContext& context) const;
  [[nodiscard]] ByGpuPart<Joules> optimiser(const TimelineSlice& s) const;
  [[nodiscard]] ByGpuPart<Joules> collective(const TimelineSlice& s, const StagePlan& stage) const;

  const StepPlan& plan_;
  const GpuSpec& gpu_;
  double offloaded_;  ///< share of the optimiser that the host does
  PieceEnergy layer_, embedding_, head_;
  std::vector<double> collective_time_;  ///< seconds, by actor
};

}  // namespace lockstep
