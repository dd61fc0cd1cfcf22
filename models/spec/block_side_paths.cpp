// What Gemma 3n and 4 have beside mixers and MLPs. Sources: modular_gemma3n.py and
// modular_gemma4.py in https://github.com/huggingface/transformers.
#include "models/spec/blocks.hpp"

namespace lockstep {
namespace {

constexpr ProductNames kLayerInput{"layer_input", "layer_input.input_gradient",
                                   "layer_input.weight_gradient"};
constexpr ProductNames kLayerOutput{"layer_output", "layer_output.input_gradient",
                                    "layer_output.weight_gradient"};
constexpr ProductNames kSideDown{"side_down", "side_down.input_gradient",
                                 "side_down.weight_gradient"};
constexpr ProductNames kSideUp{"side_up", "side_up.input_gradient", "side_up.weight_gradient"};

/// On a part of the tokens of a tensor-parallel group.
Product side_product(const ProductNames& names, double in, double out) {
  return {.names = names,
          .in = {.whole = in},
          .out = {.whole = out},
          .rows = Rows::own,
          .ways = Ways::none};
}
/// A norm and a sum, of which two blocks have two.
Kernel side_norm(std::string_view name, double columns) {
  return {.name = name,
          .columns = {.whole = columns},
          .bytes = 0.5,
          .kernels = 2,
          .recomputed = Recomputed::norm,
          .or_recomputed = Recomputed::norm,
          .rows = Rows::residual,
          .ways = Ways::none,
          .traffic = Traffic::norm_residual};
}

}  // namespace

/// Its share of the product that all layers' embeddings come from, and its gate, are one product
/// here; rows of its table are read for nothing.
void add_layer_input(const TransformerShape& m, const KindShape& k, Layer& out) {
  constexpr double kHalfWord = 2;
  const double h = m.hidden, columns = k.layer_input;
  out.rows.emplace_back(side_product(kLayerInput, h, 2 * columns));
  out.rows.emplace_back(Kernel{.name = "layer_gate",
                               .columns = {.whole = columns},
                               .bytes = 4 * kHalfWord,
                               .backward = 5.0 / 3,
                               .rows = Rows::own,
                               .ways = Ways::none});
  out.rows.emplace_back(side_product(kLayerOutput, columns, h));
  out.rows.emplace_back(side_norm("layer_norm", h));
  out.small += h;
  // Both products' inputs, what the gate takes, and the norm's input.
  out.saved.push_back({.columns = 2 * h + 4 * columns});
}

void add_side_path(const TransformerShape& m, const KindShape& k, Layer& out) {
  const double h = m.hidden, rank = k.side_rank;
  out.rows.emplace_back(side_product(kSideDown, h, rank));
  out.rows.emplace_back(side_product(kSideUp, rank, h));
  out.rows.emplace_back(side_norm("side_norm", h));
  out.small += h;
  out.saved.push_back({.columns = rank + h});
}

}  // namespace lockstep
