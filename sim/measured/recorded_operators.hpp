/// Which operator of the model each kernel of a recorded step is of.
#pragma once

#include <optional>
#include <vector>

#include "sim/measured/job_products.hpp"
#include "sim/measured/model_operators.hpp"
#include "sim/trace/pytorch/kineto_recording.hpp"

namespace lockstep {

struct RecordedOperator {
  std::optional<ModelOperator> of;  ///< none: nothing tells, or it is of several
  /// By the products around it alone: what runs between the MLP's products is its activation.
  bool by_place = false;
  bool of_several = false;  ///< that torch.compile made one kernel of
  /// A product whose sizes were recorded; else nothing tells them.
  bool sized = false;
  bool of_other_job = false;  ///< sized, and the job has no product of these widths
};

/// By event of the GPU; those of communication and copies are of none. A product is told by its
/// sizes, where several have the same ones by what ran before it; a kernel of a backward pass
/// without a name of its own by the call of the forward pass that has its number. Else names tell:
/// of the kernel, of the operators around its launch, from the inside out.
std::vector<RecordedOperator> recorded_operators(const KinetoRecording& recording,
                                                 const JobProducts& products);

}  // namespace lockstep
