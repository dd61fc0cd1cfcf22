/// Which matrix products, and which attention, are worth timing.
#pragma once

#include <span>
#include <vector>

#include "models/kernels/attention.hpp"
#include "models/kernels/gemm.hpp"
#include "models/spec/transformer.hpp"
#include "tools/calibrate/card.hpp"

namespace lockstep {

struct ProductShape {
  GemmShape shape{1, 1, 1};
  ProductRole role = ProductRole::forward;
  bool quantised = true;  ///< false: stays in 16 bit in every recipe (the output projection)
};

/// Sides from 128 to 32,768, two octaves apart on either of two grids that interleave: between
/// them lies no training product farther than an octave from a point.
std::vector<ProductShape> grid_products();
/// The grid of sides from 256 to 16,384 alone: for formats that few train in.
std::vector<ProductShape> sparse_grid_products();

/// Products of the models' layers and output projections, forward and both gradients, as
/// models/layer cuts them over 1, 2, 4 and 8 tensor-parallel ranks (where the heads divide) for
/// micro batches of 2,048, 4,096 and 8,192 tokens. Thinned: of products that are nearer than
/// `octaves` to each other in every side, only the first is kept.
std::vector<ProductShape> transformer_products(std::span<const TransformerShape> models,
                                               double octaves);

/// Products of the models' routed experts, of many in one batched launch: forward and gradients of
/// those that one of 1, 2, 4 and so on expert-parallel ranks has, two at least, for micro batches
/// as above whose tokens spread over them evenly. Thinned as above, their number being a side too.
std::vector<ProductShape> expert_products(std::span<const TransformerShape> models, double octaves);

/// Those of `shapes` that are no nearer than `octaves` to any of `others`.
std::vector<ProductShape> away_from(std::span<const ProductShape> others,
                                    std::span<const ProductShape> shapes, double octaves);

/// Attention of 8,192 tokens and more: head sizes 64 and 128, sequences of 512 to 16,384, masked
/// and not, and with four queries' heads to a key's. All forward.
std::vector<AttentionShape> grid_attention();

/// The models' causal attention over 1 to 8 tensor-parallel ranks, sequences of 2,048 to 8,192
/// tokens; latent attention left out. Thinned as products are, and away from `others`. All forward.
std::vector<AttentionShape> transformer_attention(std::span<const TransformerShape> models,
                                                  std::span<const AttentionShape> others,
                                                  double octaves);

}  // namespace lockstep
