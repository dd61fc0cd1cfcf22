#include "sim/trace/pytorch/operator_work.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>

namespace lockstep {
namespace {

enum class ProductKind : std::uint8_t {
  matrices,
  convolution,
  convolution_backward,
  attention,
  attention_backward
};

struct ProductRow {
  std::string_view name;
  ProductKind kind;
  std::size_t first;         ///< argument that is the left matrix, the image or the query
  std::size_t sequence = 0;  ///< of attention: which dimension of its arguments
};
constexpr std::array kProducts{
    ProductRow{"aten::mm", ProductKind::matrices, 0},
    ProductRow{"aten::addmm", ProductKind::matrices, 1},
    ProductRow{"aten::addmm_", ProductKind::matrices, 1},
    ProductRow{"aten::bmm", ProductKind::matrices, 0},
    ProductRow{"aten::baddbmm", ProductKind::matrices, 1},
    ProductRow{"aten::baddbmm_", ProductKind::matrices, 1},
    ProductRow{"aten::_scaled_mm", ProductKind::matrices, 0},
    ProductRow{"aten::_int_mm", ProductKind::matrices, 0},
    ProductRow{"aten::cudnn_convolution", ProductKind::convolution, 0},
    ProductRow{"aten::miopen_convolution", ProductKind::convolution, 0},
    ProductRow{"aten::convolution_backward", ProductKind::convolution_backward, 0},
    ProductRow{"aten::_flash_attention_forward", ProductKind::attention, 0, 1},
    ProductRow{"aten::_efficient_attention_forward", ProductKind::attention, 0, 1},
    ProductRow{"aten::_scaled_dot_product_flash_attention", ProductKind::attention, 0, 2},
    ProductRow{"aten::_scaled_dot_product_efficient_attention", ProductKind::attention, 0, 2},
    ProductRow{"aten::_scaled_dot_product_cudnn_attention", ProductKind::attention, 0, 2},
    ProductRow{"aten::_flash_attention_backward", ProductKind::attention_backward, 1, 1},
    ProductRow{"aten::_efficient_attention_backward", ProductKind::attention_backward, 1, 1},
    ProductRow{"aten::_scaled_dot_product_flash_attention_backward",
               ProductKind::attention_backward, 1, 2},
    ProductRow{"aten::_scaled_dot_product_efficient_attention_backward",
               ProductKind::attention_backward, 1, 2},
    ProductRow{"aten::_scaled_dot_product_cudnn_attention_backward",
               ProductKind::attention_backward, 1, 2}};

double elements_of(const TensorShape& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>{});
}

/// (b x) m x k times (b x) k x n.
std::optional<Flops> matrices(const TensorShape& a, const TensorShape& b) {
  if (a.size() < 2 || a.size() != b.size() || a.back() != b[b.size() - 2]) return std::nullopt;
  return Flops{2 * elements_of(a) * b.back()};
}

/// Every element of the output takes a filter of c_in / groups x k x k.
std::optional<Flops> convolution(const TensorShape& output, const TensorShape& filters) {
  if (output.size() < 3 || filters.size() != output.size() || filters[0] < 1) return std::nullopt;
  return Flops{2 * elements_of(output) * elements_of(filters) / filters[0]};
}

/// Products as wide as a query, and those as wide as a value, over all pairs of tokens.
std::optional<Flops> attention(std::span<const TensorShape> qkv, std::size_t sequence,
                               double of_queries, double of_values) {
  if (qkv.size() < 3) return std::nullopt;
  constexpr std::size_t kDimensions = 4;  // batch, heads, sequence, width of a head
  for (const TensorShape& shape : qkv.first(3)) {
    if (shape.size() != kDimensions || shape.back() < 1) return std::nullopt;
  }
  const double keys = qkv[1][sequence];
  const double rows = elements_of(qkv[0]) / qkv[0].back();  // of the scores
  return Flops{2 * rows * keys * (of_queries * qkv[0].back() + of_values * qkv[2].back())};
}

}  // namespace

std::optional<Flops> operator_flops(std::string_view name, std::span<const TensorShape> inputs,
                                    std::span<const TensorShape> outputs) {
  const auto* const row = std::ranges::find(kProducts, name, &ProductRow::name);
  if (row == kProducts.end() || inputs.size() < row->first + 2) return std::nullopt;
  const std::span<const TensorShape> own = inputs.subspan(row->first);
  switch (row->kind) {
    case ProductKind::matrices:
      return matrices(own[0], own[1]);
    case ProductKind::convolution:
      return outputs.empty() ? std::nullopt : convolution(outputs[0], own[1]);
    case ProductKind::convolution_backward: {
      // Arguments: gradient of the output, image, filters. Gradients of both cost one each.
      if (own.size() < 3) return std::nullopt;
      const std::optional<Flops> once = convolution(own[0], own[2]);
      return once ? std::optional(2 * *once) : std::nullopt;
    }
    case ProductKind::attention:
      return attention(own, row->sequence, 1, 1);
    case ProductKind::attention_backward:
      // Scores, gradients of queries and of keys; of scores and of values.
      return attention(own, row->sequence, 3, 2);
  }
  return std::nullopt;
}

}  // namespace lockstep
