#include "tools/calibrate/cudnn/attention_graph.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace lockstep {
namespace {

/// What cuDNN counts as the shape of a tensor: sequences, heads, rows, columns.
using Sizes = std::array<std::int64_t, 4>;
Sizes packed(const Sizes& s) { return {s[1] * s[2] * s[3], s[2] * s[3], s[3], 1}; }
Sizes transposed(const Sizes& s) { return {s[0], s[1], s[3], s[2]}; }

constexpr std::int64_t kTensorAlignment = 16;
constexpr int kRows = 2, kColumns = 3;
/// Before 9.10 an infinity in the mask made NaN (github.com/NVIDIA/cudnn-frontend,
/// include/cudnn_frontend/utils/attn_score_modifiers.h).
constexpr std::size_t kTakesInfinity = 91000;

/// A tensor's descriptor by its place in AttentionGraph::parts.
struct Tensor {
  std::size_t part;
  Sizes sizes;
};

class AttentionBuilder {
 public:
  explicit AttentionBuilder(const AttentionShape& shape)
      : causal_(shape.causal),
        b_(count(shape.sequences)),
        h_(count(shape.heads)),
        g_(count(shape.kv_heads)),
        s_(count(shape.tokens)),
        d_(count(shape.head_dim)),
        scale_(scalar(static_cast<float>(1 / std::sqrt(shape.head_dim)))) {}

  AttentionGraph forward() {
    const Tensor q = real(AttentionTensor::query, {b_, h_, s_, d_});
    const Tensor k = real(AttentionTensor::key, {b_, g_, s_, d_}, true);
    const Tensor v = real(AttentionTensor::value, {b_, g_, s_, d_});
    const Tensor o = real(AttentionTensor::output, {b_, h_, s_, d_});
    const Tensor statistics = real(AttentionTensor::statistics, {b_, h_, s_, 1});

    const Tensor scores = masked(scaled(matmul(q, k, square())));
    const Tensor top = reduce(scores, row(), CUDNN_REDUCE_TENSOR_MAX);
    const Tensor powers = apply(CUDNN_POINTWISE_EXP, apply(CUDNN_POINTWISE_SUB, scores, top));
    const Tensor sum = reduce(powers, row(), CUDNN_REDUCE_TENSOR_ADD);
    pointwise(CUDNN_POINTWISE_ADD, {top, apply(CUDNN_POINTWISE_LOG, sum)}, statistics);
    const Tensor shares = made(square(), CUDNN_DATA_BFLOAT16);
    pointwise(CUDNN_POINTWISE_DIV, {powers, sum}, shares);
    matmul_into(shares, v, o);
    return std::move(graph_);
  }

  AttentionGraph backward() {
    const Tensor q = real(AttentionTensor::query, {b_, h_, s_, d_});
    const Tensor k = real(AttentionTensor::key, {b_, g_, s_, d_}, true);
    const Tensor v = real(AttentionTensor::value, {b_, g_, s_, d_}, true);
    const Tensor o = real(AttentionTensor::output, {b_, h_, s_, d_});
    const Tensor statistics = real(AttentionTensor::statistics, {b_, h_, s_, 1});
    const Tensor d_o = real(AttentionTensor::output_gradient, {b_, h_, s_, d_});
    const Tensor d_q = real(AttentionTensor::query_gradient, {b_, h_, s_, d_});
    const Tensor d_k = real(AttentionTensor::key_gradient, {b_, g_, s_, d_});
    const Tensor d_v = real(AttentionTensor::value_gradient, {b_, g_, s_, d_});
    const Tensor row_sums = real(AttentionTensor::row_sums, {b_, h_, s_, 1});
    const Tensor q_sums = real(AttentionTensor::query_sums, {b_, h_, s_, d_});

    // The factor of one is where dropout's would be: the pattern has it.
    const Tensor products = apply(CUDNN_POINTWISE_MUL, d_o, o);
    const Tensor plain_sums = reduce(products, row(), CUDNN_REDUCE_TENSOR_ADD);
    pointwise(CUDNN_POINTWISE_MUL, {plain_sums, scalar(1)}, row_sums);

    const Tensor scores = scaled(matmul(q, k, square()));
    const Tensor shares =
        apply(CUDNN_POINTWISE_EXP, masked(apply(CUDNN_POINTWISE_SUB, scores, statistics)));
    summed_over_groups(turned(shares), d_o, d_v);

    const Tensor d_shares = matmul(d_o, v, square());
    const Tensor d_scores =
        scaled(apply(CUDNN_POINTWISE_MUL, apply(CUDNN_POINTWISE_SUB, d_shares, row_sums), shares));
    summed_over_groups(turned(d_scores), q, d_k);
    matmul_into(d_scores, turned_key(k), q_sums);
    pointwise(CUDNN_POINTWISE_IDENTITY, {q_sums}, d_q);
    return std::move(graph_);
  }

 private:
  static std::int64_t count(double x) { return static_cast<std::int64_t>(x); }
  [[nodiscard]] Sizes square() const { return {b_, h_, s_, s_}; }
  [[nodiscard]] Sizes row() const { return {b_, h_, s_, 1}; }

  Tensor tensor(std::int64_t id, const Sizes& sizes, const Sizes& strides, cudnnDataType_t type,
                bool is_made, bool by_value) {
    CudnnDescriptor& t = graph_.parts.emplace_back(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
    t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
    t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kTensorAlignment);
    t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(sizes));
    t.set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(strides));
    t.set_one(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_made);
    t.set_one(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, by_value);
    t.finalize();
    return {graph_.parts.size() - 1, sizes};
  }
  /// In the card's memory. Transposed: the same memory with rows and columns called the other way.
  Tensor real(AttentionTensor which, const Sizes& sizes, bool turn = false) {
    graph_.tensors.push_back(which);
    const Sizes strides = packed(sizes);
    const bool wide = attention_element_bytes(which) > 2;
    return tensor(static_cast<std::int64_t>(which), turn ? transposed(sizes) : sizes,
                  turn ? transposed(strides) : strides,
                  wide ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16, false, false);
  }
  /// Lives inside the kernel only.
  Tensor made(const Sizes& sizes, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return made(sizes, packed(sizes), type);
  }
  Tensor made(const Sizes& sizes, const Sizes& strides, cudnnDataType_t type) {
    return tensor(next_id_++, sizes, strides, type, true, false);
  }
  Tensor scalar(float value) {
    graph_.scalar_ids.push_back(next_id_);
    graph_.scalars.push_back(value);
    return tensor(next_id_++, {1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, false, true);
  }

  const CudnnDescriptor& of(const Tensor& t) const { return graph_.parts[t.part]; }
  CudnnDescriptor& operation(cudnnBackendDescriptorType_t type) {
    return graph_.operations.emplace_back(type);
  }

  /// Inputs: x, x and y, or x, y and which of them to take.
  void pointwise(cudnnPointwiseMode_t mode, const std::vector<Tensor>& inputs, const Tensor& out,
                 cudnnDataType_t arithmetic = CUDNN_DATA_FLOAT, std::int64_t axis = -1) {
    CudnnDescriptor& how = graph_.parts.emplace_back(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    how.set_one(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, arithmetic);
    if (axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
    how.finalize();
    constexpr std::array kInputs{CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                 CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                 CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
    CudnnDescriptor& op = operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    for (std::size_t i = 0; i < inputs.size(); ++i) op.set(kInputs[i], of(inputs[i]));
    op.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, of(out));
    op.finalize();
  }
  Tensor apply(cudnnPointwiseMode_t mode, const Tensor& x) {
    const Tensor out = made(x.sizes);
    pointwise(mode, {x}, out);
    return out;
  }
  Tensor apply(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& y) {
    const Tensor out = made(x.sizes);
    pointwise(mode, {x, y}, out);
    return out;
  }
  Tensor scaled(const Tensor& x) { return apply(CUDNN_POINTWISE_MUL, x, scale_); }

  /// A query sees the keys up to its own.
  Tensor masked(const Tensor& scores) {
    if (!causal_) return scores;
    const Tensor query = made(square(), CUDNN_DATA_INT32), key = made(square(), CUDNN_DATA_INT32);
    pointwise(CUDNN_POINTWISE_GEN_INDEX, {scores}, query, CUDNN_DATA_INT32, kRows);
    pointwise(CUDNN_POINTWISE_GEN_INDEX, {scores}, key, CUDNN_DATA_INT32, kColumns);
    const Tensor seen = made(square(), CUDNN_DATA_BOOLEAN);
    pointwise(CUDNN_POINTWISE_CMP_GE, {query, key}, seen, CUDNN_DATA_BOOLEAN);
    using Limits = std::numeric_limits<float>;
    const bool infinite = cudnn_library().get_version() >= kTakesInfinity;
    const Tensor out = made(square());
    pointwise(CUDNN_POINTWISE_BINARY_SELECT,
              {scores, scalar(infinite ? -Limits::infinity() : Limits::lowest()), seen}, out);
    return out;
  }

  void reduce_into(const Tensor& x, const Tensor& out, cudnnReduceTensorOp_t how) {
    CudnnDescriptor& reduction = graph_.parts.emplace_back(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    reduction.set_one(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, how);
    reduction.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    reduction.finalize();
    CudnnDescriptor& op = operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction);
    op.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, of(x));
    op.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, of(out));
    op.finalize();
  }
  Tensor reduce(const Tensor& x, const Sizes& to, cudnnReduceTensorOp_t how) {
    const Tensor out = made(to);
    reduce_into(x, out, how);
    return out;
  }

  void matmul_into(const Tensor& a, const Tensor& b, const Tensor& c) {
    CudnnDescriptor& how = graph_.parts.emplace_back(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    how.finalize();
    CudnnDescriptor& op = operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    op.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, of(a));
    op.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, of(b));
    op.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, of(c));
    op.finalize();
  }
  Tensor matmul(const Tensor& a, const Tensor& b, const Sizes& to) {
    const Tensor out = made(to);
    matmul_into(a, b, out);
    return out;
  }
  /// With each key's gradient summed over the queries' heads that share it.
  void summed_over_groups(const Tensor& a, const Tensor& b, const Tensor& out) {
    if (h_ == g_) return matmul_into(a, b, out);
    const Tensor of_each = made({b_, h_, s_, d_}, CUDNN_DATA_BFLOAT16);
    matmul_into(a, b, of_each);
    reduce_into(of_each, out, CUDNN_REDUCE_TENSOR_ADD);
  }

  void reshape(const Tensor& x, const Tensor& out) {
    CudnnDescriptor& op = operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    op.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, of(x));
    op.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, of(out));
    op.finalize();
  }
  /// Rows and columns of the square called the other way, as 16-bit operands of a product.
  Tensor turned(const Tensor& x) {
    const Tensor out = made(square(), transposed(packed(square())), CUDNN_DATA_BFLOAT16);
    reshape(x, out);
    return out;
  }
  Tensor turned_key(const Tensor& k) {
    const Tensor out = made({b_, g_, s_, d_}, CUDNN_DATA_BFLOAT16);
    reshape(k, out);
    return out;
  }

  AttentionGraph graph_;
  std::int64_t next_id_ = 100;  // behind those of AttentionTensor
  bool causal_;
  std::int64_t b_, h_, g_, s_, d_;
  Tensor scale_;
};

}  // namespace

AttentionGraph attention_graph(const AttentionShape& shape) {
  AttentionBuilder builder(shape);
  return shape.direction == Direction::forward ? builder.forward() : builder.backward();
}

double attention_elements(AttentionTensor tensor, const AttentionShape& shape) {
  const double tokens = shape.sequences * shape.tokens;
  switch (tensor) {
    case AttentionTensor::key:
    case AttentionTensor::value:
    case AttentionTensor::key_gradient:
    case AttentionTensor::value_gradient:
      return tokens * shape.kv_heads * shape.head_dim;
    case AttentionTensor::statistics:
    case AttentionTensor::row_sums:
      return tokens * shape.heads;
    default:
      return tokens * shape.heads * shape.head_dim;
  }
}

double attention_element_bytes(AttentionTensor tensor) {
  const bool wide = tensor == AttentionTensor::statistics || tensor == AttentionTensor::row_sums ||
                    tensor == AttentionTensor::query_sums;
  return wide ? 4 : 2;
}

}  // namespace lockstep
