#include "models/spec/blocks.hpp"

namespace lockstep {
namespace {

constexpr ProductNames kIndexQuery{"index_query", "index_query.input_gradient",
                                   "index_query.weight_gradient"};
constexpr ProductNames kIndexKey{"index_key", "index_key.input_gradient",
                                 "index_key.weight_gradient"};

}  // namespace

/// Queries of the index come from the compressed query where attention has one, else from the
/// hidden state; its key does too, or is compressed as attention's keys are; a weight for each of
/// its heads, unless it scores blocks. Every rank of a tensor-parallel group has the whole index,
/// over all its tokens (github:NVIDIA/Megatron-LM:megatron/core/transformer/
/// experimental_attention_variant/dsa.py).
void add_index(const TransformerShape& m, const KindShape& k, Layer& out) {
  const KeyIndex& x = k.index;
  const double h = m.hidden, heads = x.heads, dim = x.dim;
  const double rank = k.latent ? m.latent.query_rank : m.low_rank.query_rank;
  const double weights = x.block == 1 ? heads : 0;
  const bool compressed = k.compression > 0;
  const double key = compressed ? 4 * dim : dim;
  out.rows.emplace_back(Product{.names = kIndexQuery,
                                .in = {.whole = rank > 0 ? rank : h},
                                .out = {.whole = heads * dim},
                                .rows = Rows::repeated,
                                .ways = Ways::none});
  out.rows.emplace_back(Product{.names = kIndexKey,
                                .in = {.whole = h},
                                .out = {.whole = key + weights},
                                .rows = Rows::repeated,
                                .ways = Ways::none});
  const double ratio = compressed ? k.compression : x.block;
  const IndexScores scores{.heads = heads, .dim = dim, .keys = {.limit = 0, .ratio = ratio}};
  out.rows.emplace_back(scores);
  // A norm of the key; compressed ones have places inside their tokens too.
  if (x.block == 1) out.small += compressed ? k.compression * 2 * dim + dim : 2 * dim;
  // Whole on every rank: its saved tensors are not shared out.
  out.saved.push_back({.columns = heads * dim + key + weights, .rows = Rows::repeated});
  out.cache.index_entry = dim / ratio;
  out.cache.index_flops = scores.flops_per_key();
  out.cache.index_keys = scores.keys;
}

}  // namespace lockstep
