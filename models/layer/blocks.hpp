/// The operations of a layer's rows on one rank.
#pragma once

#include "models/layer/recorder.hpp"
#include "models/spec/layer.hpp"

namespace lockstep {

/// What runs again in the backward pass.
class Repeated {
 public:
  Repeated(const TrainingJob& job, const StackSpec& stack);

  /// Whether what is named so runs again.
  [[nodiscard]] bool is(Recomputed what) const;
  /// Share of a product that runs again.
  [[nodiscard]] double share(const Product& product) const;
  /// The layer as a whole, its exchanges too.
  [[nodiscard]] bool whole() const { return whole_; }

 private:
  bool whole_, selective_, unfused_;
  RecomputeModules modules_;
};

/// Records the rows of a layer in their order, each with its exchanges.
void record_layer(Recorder& record, const WorkloadContext& context, const Layer& layer);

}  // namespace lockstep
