/// Single rows of attention and of its gradients, summed plainly in double, to check cuDNN's.
#pragma once

#include <cstdint>
#include <cuda_runtime_api.h>

namespace lockstep {

/// BF16 tensors of the card as [sequence][head][token][element], and the logarithms of each query's
/// sum as [sequence][head][token]. Heads of up to 256 elements.
struct AttentionRows {
  const void *query, *key, *value;
  const void* output;           ///< gradients alone
  const void* output_gradient;  ///< gradients alone
  const float* statistics;      ///< gradients alone
  std::int64_t tokens, heads, kv_heads, head_dim;
  bool causal;
};
/// A query or a key, with the head that it is of: one of the queries' or one of the keys'.
struct AttentionRow {
  std::int64_t sequence, head, token;
};

/// A query's result, head_dim numbers, and behind it the logarithm of its sum of exponentials.
void launch_output_row(const AttentionRows& t, const AttentionRow& row, double* out,
                       cudaStream_t stream);
/// A query's gradient, head_dim numbers, from the results and statistics that are there.
void launch_query_gradient_row(const AttentionRows& t, const AttentionRow& row, double* out,
                               cudaStream_t stream);
/// A key's gradient, head_dim numbers, and behind it its value's.
void launch_key_gradient_row(const AttentionRows& t, const AttentionRow& row, double* out,
                             cudaStream_t stream);

}  // namespace lockstep
