/// Which matrix products are worth timing.
#pragma once

#include <span>
#include <vector>

#include "models/kernels/gemm.hpp"
#include "models/transformer.hpp"
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

/// Products of the models' layers and output projections, forward and both gradients, as
/// models/workload cuts them over 1, 2, 4 and 8 tensor-parallel ranks (where the heads divide) for
/// micro batches of 2,048, 4,096 and 8,192 tokens. Thinned: of products that are nearer than
/// `octaves` to each other in every side, only the first is kept.
std::vector<ProductShape> transformer_products(std::span<const TransformerShape> models,
                                               double octaves);

/// Those of `shapes` that are no nearer than `octaves` to any of `others`.
std::vector<ProductShape> away_from(std::span<const ProductShape> others,
                                    std::span<const ProductShape> shapes, double octaves);

}  // namespace lockstep
