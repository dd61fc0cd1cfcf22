/// The operations of fused attention, as descriptors of cuDNN's backend.
#pragma once

#include <cstdint>
#include <vector>

#include "models/kernels/attention.hpp"
#include "tools/calibrate/cudnn/descriptor.hpp"

namespace lockstep {

/// The tensors that a plan reads and writes. All of BF16 lie as [sequence][head][token][element],
/// the statistics and the sums as [sequence][head][token] in single precision.
enum class AttentionTensor : std::int64_t {
  query = 1,
  key,
  value,
  output,      ///< written forward, read backward
  statistics,  ///< logarithm of each query's sum of exponentials: written forward, read backward
  output_gradient,  ///< backward only, as all that follow
  query_gradient,
  key_gradient,
  value_gradient,
  row_sums,    ///< of output times its gradient: scratch
  query_sums,  ///< the query's gradient in single precision: scratch
};

/// Elements of a tensor.
double attention_elements(AttentionTensor tensor, const AttentionShape& shape);
/// Bytes of one of its elements.
double attention_element_bytes(AttentionTensor tensor);

struct AttentionGraph {
  std::vector<CudnnDescriptor> parts;       ///< tensors and operators that the operations refer to
  std::vector<CudnnDescriptor> operations;  ///< in an order in which each finds its inputs made
  std::vector<AttentionTensor> tensors;     ///< those that need memory
  std::vector<std::int64_t> scalar_ids;     ///< of single-precision numbers, handed over by value
  std::vector<float> scalars;
};

/// Forward: O = softmax(scale Q K^T, masked) V and the statistics. Backward: all three gradients,
/// from the statistics. Throws TaskFailed where cuDNN refuses a descriptor.
AttentionGraph attention_graph(const AttentionShape& shape);

}  // namespace lockstep
