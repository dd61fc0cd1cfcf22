#include "models/spec/blocks.hpp"

namespace lockstep {
namespace {

constexpr ProductNames kMlpUp{"mlp_up", "mlp_up.input_gradient", "mlp_up.weight_gradient"};
constexpr ProductNames kMlpDown{"mlp_down", "mlp_down.input_gradient", "mlp_down.weight_gradient"};
constexpr ProductNames kRouter{"router", "router.input_gradient", "router.weight_gradient"};
constexpr ProductNames kLatentDown{"latent_down", "latent_down.input_gradient",
                                   "latent_down.weight_gradient"};
constexpr ProductNames kLatentUp{"latent_up", "latent_up.input_gradient",
                                 "latent_up.weight_gradient"};
constexpr ProductNames kExpertUp{"expert_up", "expert_up.input_gradient",
                                 "expert_up.weight_gradient"};
constexpr ProductNames kExpertDown{"expert_down", "expert_down.input_gradient",
                                   "expert_down.weight_gradient"};

double gates(const TransformerShape& m) { return m.gated ? 2 : 1; }

Kernel activation(const TransformerShape& m, double ffn) {
  return {.name = "activation",
          .columns = {.shared = (gates(m) + 1) * ffn},
          .bytes = m.activation_traffic,
          .recomputed = Recomputed::activation,
          .or_recomputed = Recomputed::activation,
          .traffic = Traffic::activation};
}

void save_activation(double ffn, Rows rows, AdapterModule down,
                     std::optional<Recomputed> recomputed, Layer& out) {
  out.saved.push_back({.columns = ffn,
                       .keep = Keep::activation_input,
                       .recomputed = recomputed,
                       .product = down,
                       .rows = rows});
  out.saved.push_back({.columns = ffn,
                       .keep = Keep::activation_output,
                       .recomputed = recomputed,
                       .product = down,
                       .rows = rows});
}

/// A product between the residual stream and the width of experts, on a rank's own tokens.
Product latent_product(const ProductNames& names, double in, double out) {
  return {.names = names,
          .in = {.whole = in},
          .out = {.whole = out},
          .rows = Rows::own,
          .ways = Ways::none};
}

}  // namespace

void add_mlp(const TransformerShape& m, double ffn, Layer& out) {
  const double h = m.hidden;
  out.rows.emplace_back(Product{.names = kMlpUp,
                                .in = {.whole = h},
                                .out = {.shared = gates(m) * ffn},
                                .recomputed = Recomputed::mlp_up,
                                .in_pieces = true,
                                .adapter = AdapterModule::mlp_up});
  out.rows.emplace_back(activation(m, ffn));
  out.rows.emplace_back(Product{.names = kMlpDown,
                                .in = {.shared = ffn},
                                .out = {.whole = h},
                                .recomputed = Recomputed::mlp_down,
                                .in_pieces = true,
                                .adapter = AdapterModule::mlp_down});
  out.rows.emplace_back(PairExchange{kMlpUp, kMlpDown});
  save_activation(ffn, Rows::tokens, AdapterModule::mlp_down, Recomputed::mlp_up, out);
}

void add_experts(const TransformerShape& m, Layer& out) {
  const ExpertShape& x = m.experts;
  const double h = m.hidden, width = x.width(m.hidden), count = x.count;
  // Scores, top k and their softmax.
  out.rows.emplace_back(Product{.names = kRouter,
                                .in = {.whole = h},
                                .out = {.whole = count},
                                .rows = Rows::own,
                                .ways = Ways::none,
                                .recomputed = Recomputed::layer,
                                .half = true});
  out.rows.emplace_back(Kernel{.name = "routing",
                               .columns = {.whole = count},
                               .bytes = 24,
                               .kernels = 4,
                               .rows = Rows::own,
                               .ways = Ways::none});
  if (x.latent > 0) {
    out.rows.emplace_back(latent_product(kLatentDown, h, width));
    out.saved.push_back({.columns = 2 * width});
  }
  // Sorted before they leave, and as they are where they arrive.
  out.rows.emplace_back(Kernel{.name = "permute",
                               .columns = {.whole = width},
                               .kernels = 2,
                               .rows = Rows::copies,
                               .ways = Ways::none,
                               .traffic = Traffic::permute});
  out.rows.emplace_back(Product{.names = kExpertUp,
                                .in = {.whole = width},
                                .out = {.shared = gates(m) * x.ffn},
                                .rows = Rows::copies,
                                .ways = Ways::expert_tensor,
                                .adapter = AdapterModule::expert_up});
  Kernel between = activation(m, x.ffn);
  between.rows = Rows::copies;
  between.ways = Ways::expert_tensor;
  out.rows.emplace_back(between);
  out.rows.emplace_back(Product{.names = kExpertDown,
                                .in = {.shared = static_cast<double>(x.ffn)},
                                .out = {.whole = width},
                                .rows = Rows::copies,
                                .ways = Ways::expert_tensor,
                                .adapter = AdapterModule::expert_down});
  if (m.biases) {
    // That of the product before it is added in the product, or where the activation reads it.
    out.rows.emplace_back(Kernel{.name = "expert_bias",
                                 .columns = {.whole = width},
                                 .rows = Rows::copies,
                                 .ways = Ways::none,
                                 .traffic = Traffic::expert_bias});
  }
  out.rows.emplace_back(Dispatch{width});
  if (x.latent > 0) out.rows.emplace_back(latent_product(kLatentUp, width, h));
  // What experts return is not saved: the router's probabilities are applied inside the expert, so
  // that the sum over a token's experts needs no operand
  // (github:NVIDIA/Megatron-LM:megatron/core/transformer/moe/experts.py, since core 0.12;
  // github:pytorch/torchtitan, score_before_experts).
  out.saved.push_back({.columns = width,
                       .keep = Keep::operand,
                       .product = AdapterModule::expert_up,
                       .rows = Rows::copies});
  save_activation(x.ffn, Rows::copies, AdapterModule::expert_down, std::nullopt, out);
  out.saved.push_back({.columns = count, .keep = Keep::word});
  if (x.shared_ffn > 0) {
    add_mlp(m, x.shared_ffn, out);
    if (x.gated_shared) out.small += h;
  } else {
    out.rows.emplace_back(ExpertGather{});
  }
}

}  // namespace lockstep
