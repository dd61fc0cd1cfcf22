#include "tools/calibrate/shapes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "models/kernels/kernel_profile.hpp"

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

/// y = x W and its gradients, as in models/layer/operations.cpp, `count` times.
void add_linear(double tokens, double x_width, double y_width, bool quantised,
                std::vector<ProductShape>& out, double count = 1) {
  out.push_back({{tokens, y_width, x_width, count}, ProductRole::forward, quantised});
  out.push_back({{tokens, x_width, y_width, count}, ProductRole::input_gradient, quantised});
  out.push_back({{y_width, x_width, tokens, count}, ProductRole::weight_gradient, quantised});
}

/// Whether ranks share its widths evenly. Where layers are of declared kinds or follow a pattern,
/// the model's own numbers are those of none or few of them.
bool divides(const TransformerShape& m, int ranks) {
  return m.kinds.empty() && m.pattern.empty() && m.heads % ranks == 0 && m.kv_heads % ranks == 0 &&
         m.ffn % ranks == 0 && m.vocabulary % ranks == 0;
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
    return std::max({apart(shape.m, o.m), apart(shape.n, o.n), apart(shape.k, o.k),
                     apart(shape.count, o.count)}) < octaves;
  });
}

std::vector<ProductShape> thinned(std::span<const ProductShape> all, double octaves) {
  std::vector<ProductShape> kept;
  for (const ProductShape& p : all) {
    if (gemm_flops(p.shape) > kLargest || has_neighbour(p.shape, kept, octaves)) continue;
    kept.push_back(p);
  }
  return kept;
}

/// Octaves between two shapes, in the direction in which they are farthest apart; a profile
/// corrects masked and unmasked attention apart, and head sizes have kernels of their own.
bool has_neighbour(const AttentionShape& shape, std::span<const AttentionShape> others,
                   double octaves) {
  const RatioPlace place = place_of(shape);
  return std::ranges::any_of(others, [&](const AttentionShape& other) {
    if (other.causal != shape.causal || other.head_dim != shape.head_dim) return false;
    const RatioPlace at = place_of(other);
    for (std::size_t i = 0; i < place.size(); ++i) {
      if (std::abs(place[i] - at[i]) >= octaves) return false;
    }
    return true;
  });
}

}  // namespace

std::vector<ProductShape> grid_products() {
  std::vector<ProductShape> out;
  add_grid(kWideGrid, out);
  add_grid(kNarrowGrid, out);
  return out;
}

std::vector<ProductShape> sparse_grid_products() {
  std::vector<ProductShape> out;
  add_grid(kNarrowGrid, out);
  return out;
}

std::vector<ProductShape> transformer_products(std::span<const TransformerShape> models,
                                               double octaves) {
  std::vector<ProductShape> all;
  for (const double tokens : kTokens) {
    for (const int ranks : kRanks) {
      for (const TransformerShape& model : models) {
        if (divides(model, ranks)) add_model(model, ranks, tokens, all);
      }
    }
  }
  return thinned(all, octaves);
}

std::vector<ProductShape> expert_products(std::span<const TransformerShape> models,
                                          double octaves) {
  std::vector<ProductShape> all;
  for (const double tokens : kTokens) {
    for (const TransformerShape& m : models) {
      const ExpertShape& experts = m.experts;
      for (int ranks = 1; experts.count % ranks == 0 && experts.count / ranks > 1; ranks *= 2) {
        const double here = static_cast<double>(experts.count) / ranks;
        const double rows = std::floor(tokens * experts.per_token / here);
        const double width = experts.width(m.hidden), ffn = experts.ffn;
        if (rows < 1) continue;
        add_linear(rows, width, (m.gated ? 2 : 1) * ffn, true, all, here);
        add_linear(rows, ffn, width, true, all, here);
      }
    }
  }
  return thinned(all, octaves);
}

std::vector<ProductShape> away_from(std::span<const ProductShape> others,
                                    std::span<const ProductShape> shapes, double octaves) {
  std::vector<ProductShape> out(shapes.begin(), shapes.end());
  std::erase_if(out,
                [&](const ProductShape& p) { return has_neighbour(p.shape, others, octaves); });
  return out;
}

std::vector<AttentionShape> grid_attention() {
  constexpr double kTogether = 8192, kHeads = 32, kGroups = 8;
  std::vector<AttentionShape> out;
  const auto add = [&](double tokens, double groups, double head_dim, bool causal) {
    out.push_back({.sequences = std::max(1.0, kTogether / tokens),
                   .tokens = tokens,
                   .heads = kHeads,
                   .kv_heads = groups,
                   .head_dim = head_dim,
                   .causal = causal});
  };
  for (const double tokens : {512.0, 2048.0, 8192.0}) {
    for (const double head_dim : {64.0, 128.0}) {
      for (const bool causal : {true, false}) add(tokens, kHeads, head_dim, causal);
    }
  }
  for (const double tokens : {1024.0, 4096.0, 16384.0}) add(tokens, kGroups, 128, true);
  return out;
}

std::vector<AttentionShape> transformer_attention(std::span<const TransformerShape> models,
                                                  std::span<const AttentionShape> others,
                                                  double octaves) {
  // cuDNN's fused attention has heads of whole 16 bytes, up to 256 wide.
  constexpr int kHeadStep = 8, kWidestHead = 256;
  std::vector<AttentionShape> out;
  for (const double tokens : kTokens) {
    for (const int ranks : kRanks) {
      for (const TransformerShape& m : models) {
        if (m.latent.key_value_rank > 0 || !divides(m, ranks) || m.head_dim % kHeadStep != 0 ||
            m.head_dim > kWidestHead) {
          continue;
        }
        const AttentionShape shape{.sequences = 1,
                                   .tokens = tokens,
                                   .heads = static_cast<double>(m.heads) / ranks,
                                   .kv_heads = static_cast<double>(m.kv_heads) / ranks,
                                   .head_dim = static_cast<double>(m.head_dim)};
        if (has_neighbour(shape, others, octaves) || has_neighbour(shape, out, octaves)) continue;
        out.push_back(shape);
      }
    }
  }
  return out;
}

}  // namespace lockstep
