#include "tools/calibrate/shapes.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep {
namespace {

/// 25 ms on a card of 800 TFLOP/s; longer ones are no training products.
constexpr Flops kLargest{2e13};

constexpr std::array kWideGrid{128.0, 512.0, 2048.0, 8192.0, 32768.0};
constexpr std::array kNarrowGrid{256.0, 1024.0, 4096.0, 16384.0};
constexpr std::array kRanks{1, 2, 4, 8};
constexpr std::array kTokens{8192.0, 4096.0, 2048.0};

void add_grid(std::span<const double> sides, std::vector<ProductShape>& out) {
  for (const double m : sides) {
    for (const double n : sides) {
      for (const double k : sides) {
        if (gemm_flops({m, n, k}) <= kLargest) out.push_back({.shape = {m, n, k}});
      }
    }
  }
}

/// y = x W and its gradients, as in models/workload/operations.cpp.
void add_linear(double tokens, double x_width, double y_width, bool quantised,
                std::vector<ProductShape>& out) {
  out.push_back({{tokens, y_width, x_width}, ProductRole::forward, quantised});
  out.push_back({{tokens, x_width, y_width}, ProductRole::input_gradient, quantised});
  out.push_back({{y_width, x_width, tokens}, ProductRole::weight_gradient, quantised});
}

bool divides(const TransformerShape& m, int ranks) {
  return m.heads % ranks == 0 && m.kv_heads % ranks == 0 && m.ffn % ranks == 0 &&
         m.vocabulary % ranks == 0;
}

void add_model(const TransformerShape& m, int ranks, double tokens,
               std::vector<ProductShape>& out) {
  const double t = ranks, h = m.hidden;
  const double ffn = m.ffn / t;
  add_linear(tokens, h, (m.heads + 2.0 * m.kv_heads) / t * m.head_dim, true, out);
  add_linear(tokens, m.heads / t * m.head_dim, h, true, out);
  add_linear(tokens, h, (m.gated ? 2 : 1) * ffn, true, out);
  add_linear(tokens, ffn, h, true, out);
  add_linear(tokens, h, m.vocabulary / t, false, out);
}

bool has_neighbour(const GemmShape& shape, std::span<const ProductShape> others, double octaves) {
  const auto apart = [](double x, double y) { return std::abs(std::log2(x / y)); };
  return std::ranges::any_of(others, [&](const ProductShape& other) {
    const GemmShape& o = other.shape;
    return std::max({apart(shape.m, o.m), apart(shape.n, o.n), apart(shape.k, o.k)}) < octaves;
  });
}

}  // namespace

std::vector<ProductShape> grid_products() {
  std::vector<ProductShape> out;
  add_grid(kWideGrid, out);
  add_grid(kNarrowGrid, out);
  return out;
}

std::vector<ProductShape> transformer_products(std::span<const TransformerShape> models,
                                               double octaves) {
  std::vector<ProductShape> all, kept;
  for (const double tokens : kTokens) {
    for (const int ranks : kRanks) {
      for (const TransformerShape& model : models) {
        if (divides(model, ranks)) add_model(model, ranks, tokens, all);
      }
    }
  }
  for (const ProductShape& p : all) {
    if (gemm_flops(p.shape) > kLargest || has_neighbour(p.shape, kept, octaves)) continue;
    kept.push_back(p);
  }
  return kept;
}

std::vector<ProductShape> away_from(std::span<const ProductShape> others,
                                    std::span<const ProductShape> shapes, double octaves) {
  std::vector<ProductShape> out(shapes.begin(), shapes.end());
  std::erase_if(out,
                [&](const ProductShape& p) { return has_neighbour(p.shape, others, octaves); });
  return out;
}

}  // namespace lockstep
