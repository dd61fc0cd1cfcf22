#include <cuda_bf16.h>

#include "tools/calibrate/cuda/kernels.hpp"
#include "tools/calibrate/cudnn/cuda/attention_rows.hpp"

namespace lockstep {
namespace {

/// Keys, or queries, that a block looks at in one go; and the widest head.
constexpr int kTile = 256;

__device__ const __nv_bfloat16* row_of(const void* tensor, const AttentionRows& t,
                                       std::int64_t heads, const AttentionRow& row) {
  return static_cast<const __nv_bfloat16*>(tensor) +
         ((row.sequence * heads + row.head) * t.tokens + row.token) * t.head_dim;
}
__device__ double element(const __nv_bfloat16* row, std::int64_t i) {
  return __bfloat162float(row[i]);
}
__device__ double dot(const __nv_bfloat16* a, const __nv_bfloat16* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += element(a, i) * element(b, i);
  return sum;
}
__device__ double scale_of(const AttentionRows& t) {
  return 1 / sqrt(static_cast<double>(t.head_dim));
}
/// The keys' head that a head of the queries reads.
__device__ std::int64_t group_of(const AttentionRows& t, std::int64_t head) {
  return head / (t.heads / t.kv_heads);
}
__device__ double statistics_of(const AttentionRows& t, const AttentionRow& row) {
  return t.statistics[(row.sequence * t.heads + row.head) * t.tokens + row.token];
}

/// A block a query: its scores twice, once for their maximum.
__global__ void output_row_kernel(AttentionRows t, AttentionRow row, double* out) {
  __shared__ double shared[kTile];
  const int me = static_cast<int>(threadIdx.x);
  const std::int64_t keys = t.causal ? row.token + 1 : t.tokens;
  const double scale = scale_of(t);
  const __nv_bfloat16* const query = row_of(t.query, t, t.heads, row);
  AttentionRow at{row.sequence, group_of(t, row.head), 0};
  double top = -INFINITY;
  for (at.token = me; at.token < keys; at.token += kTile) {
    top = fmax(top, scale * dot(query, row_of(t.key, t, t.kv_heads, at), t.head_dim));
  }
  shared[me] = top;
  __syncthreads();
  for (int i = 0; i < kTile; ++i) top = fmax(top, shared[i]);

  double sum = 0, result = 0;
  for (std::int64_t start = 0; start < keys; start += kTile) {
    at.token = start + me;
    __syncthreads();  // what stood there has been read
    shared[me] = at.token < keys
                     ? exp(scale * dot(query, row_of(t.key, t, t.kv_heads, at), t.head_dim) - top)
                     : 0;
    __syncthreads();
    for (int i = 0; i < kTile && start + i < keys; ++i) {
      at.token = start + i;
      sum += shared[i];
      if (me < t.head_dim) {
        result += shared[i] * element(row_of(t.value, t, t.kv_heads, at), me);
      }
    }
  }
  if (me < t.head_dim) out[me] = result / sum;
  if (me == 0) out[t.head_dim] = log(sum) + top;
}

struct ScoreGradient {
  double share;     ///< of the key in the query's result
  double gradient;  ///< of the score
};
__device__ ScoreGradient score_gradient(const AttentionRows& t, const AttentionRow& query,
                                        const AttentionRow& key) {
  const std::int64_t d = t.head_dim;
  const __nv_bfloat16* const d_o = row_of(t.output_gradient, t, t.heads, query);
  const double score =
      scale_of(t) * dot(row_of(t.query, t, t.heads, query), row_of(t.key, t, t.kv_heads, key), d);
  const double share = exp(score - statistics_of(t, query));
  const double d_share = dot(d_o, row_of(t.value, t, t.kv_heads, key), d);
  const double mean = dot(d_o, row_of(t.output, t, t.heads, query), d);
  return {share, share * (d_share - mean)};
}

__global__ void query_gradient_row_kernel(AttentionRows t, AttentionRow row, double* out) {
  __shared__ double gradient[kTile];
  const int me = static_cast<int>(threadIdx.x);
  const std::int64_t keys = t.causal ? row.token + 1 : t.tokens;
  AttentionRow at{row.sequence, group_of(t, row.head), 0};
  double result = 0;
  for (std::int64_t start = 0; start < keys; start += kTile) {
    at.token = start + me;
    __syncthreads();
    gradient[me] = at.token < keys ? score_gradient(t, row, at).gradient : 0;
    __syncthreads();
    for (int i = 0; i < kTile && start + i < keys && me < t.head_dim; ++i) {
      at.token = start + i;
      result += gradient[i] * element(row_of(t.key, t, t.kv_heads, at), me);
    }
  }
  if (me < t.head_dim) out[me] = scale_of(t) * result;
}

__global__ void key_gradient_row_kernel(AttentionRows t, AttentionRow row, double* out) {
  __shared__ double share[kTile], gradient[kTile];
  const int me = static_cast<int>(threadIdx.x);
  const std::int64_t ratio = t.heads / t.kv_heads, first = t.causal ? row.token : 0;
  double of_key = 0, of_value = 0;
  for (std::int64_t head = row.head * ratio; head < (row.head + 1) * ratio; ++head) {
    AttentionRow at{row.sequence, head, 0};
    for (std::int64_t start = first; start < t.tokens; start += kTile) {
      at.token = start + me;
      __syncthreads();
      const ScoreGradient mine =
          at.token < t.tokens ? score_gradient(t, at, row) : ScoreGradient{0, 0};
      share[me] = mine.share;
      gradient[me] = mine.gradient;
      __syncthreads();
      for (int i = 0; i < kTile && start + i < t.tokens && me < t.head_dim; ++i) {
        at.token = start + i;
        of_key += gradient[i] * element(row_of(t.query, t, t.heads, at), me);
        of_value += share[i] * element(row_of(t.output_gradient, t, t.heads, at), me);
      }
    }
  }
  if (me >= t.head_dim) return;
  out[me] = scale_of(t) * of_key;
  out[t.head_dim + me] = of_value;
}

}  // namespace

void launch_output_row(const AttentionRows& t, const AttentionRow& row, double* out,
                       cudaStream_t stream) {
  output_row_kernel<<<1, kTile, 0, stream>>>(t, row, out);
  check_launch("output_row_kernel");
}
void launch_query_gradient_row(const AttentionRows& t, const AttentionRow& row, double* out,
                               cudaStream_t stream) {
  query_gradient_row_kernel<<<1, kTile, 0, stream>>>(t, row, out);
  check_launch("query_gradient_row_kernel");
}
void launch_key_gradient_row(const AttentionRows& t, const AttentionRow& row, double* out,
                             cudaStream_t stream) {
  key_gradient_row_kernel<<<1, kTile, 0, stream>>>(t, row, out);
  check_launch("key_gradient_row_kernel");
}

}  // namespace lockstep
