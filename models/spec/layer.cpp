#include "models/spec/layer.hpp"

#include "models/spec/blocks.hpp"

namespace lockstep {
namespace {

/// The norms and sums of the residual stream, a norm and a sum for each block, and what reads and
/// writes several streams: products for both, and for mixing them
/// (github:deepseek-ai/DeepSeek-V4-Flash:inference/model.py, hc_pre and hc_post).
void add_stream(const TransformerShape& m, LayerKind kind, Layer& out) {
  // Parallel blocks that share a norm share its traffic with their sum's.
  const int blocks = m.separate_norms ? kind.blocks() : kind.sums();
  constexpr ProductNames kStreams{"streams", "streams.input_gradient", "streams.weight_gradient"};
  const double h = m.hidden, streams = m.residual_streams;
  out.rows.emplace_back(Kernel{.name = "norm_residual",
                               .columns = {.whole = streams * h},
                               .bytes = blocks / 2.0,
                               .kernels = 2 * blocks,
                               .recomputed = Recomputed::norm,
                               .or_recomputed = Recomputed::norm,
                               .rows = Rows::residual,
                               .ways = Ways::none,
                               .traffic = Traffic::norm_residual});
  out.small += (m.biases ? 2.0 : 1.0) * blocks * h;
  if (streams == 1) return;
  if (m.alternating) {
    // A router for either step; norm, scale and coefficients.
    out.rows.emplace_back(Product{.names = kStreams,
                                  .in = {.whole = h},
                                  .out = {.whole = streams},
                                  .rows = Rows::residual,
                                  .ways = Ways::none,
                                  .matrices = 2,
                                  .half = true});
    out.small += 2 * h + streams * streams * (streams + 1);
    return;
  }
  const double mixes = (2 + streams) * streams;
  out.rows.emplace_back(Product{.names = kStreams,
                                .in = {.whole = streams * h},
                                .out = {.whole = mixes},
                                .rows = Rows::residual,
                                .ways = Ways::none,
                                .matrices = static_cast<double>(blocks),
                                .half = true});
  constexpr int kScales = 3;
  out.small += blocks * (mixes + kScales);
}

/// Inputs of the norms, and of the products behind them.
void save_stream(const TransformerShape& m, const KindShape& k, Layer& out) {
  const double h = m.hidden;
  const bool mixes = k.mixer != Mixer::none, feeds = k.experts || k.ffn > 0;
  const auto normed = [&](AdapterModule product) {
    return Saved{.columns = h,
                 .keep = Keep::operand,
                 .recomputed = Recomputed::norm,
                 .product = product,
                 .by = SavedBy::stream};
  };
  const auto save = [&](AdapterModule product, std::optional<Recomputed> sum_recomputed) {
    out.saved.push_back({.columns = h * m.residual_streams,
                         .keep = Keep::residual,
                         .recomputed = sum_recomputed,
                         .by = SavedBy::stream});
    out.saved.push_back(normed(product));
  };
  if (mixes) save(AdapterModule::qkv, std::nullopt);
  if (k.parallel) {
    if (m.separate_norms) {
      out.saved.push_back(normed(AdapterModule::mlp_up));
    } else {
      out.saved.back().or_product = AdapterModule::mlp_up;
    }
    return;
  }
  if (k.cross) save(AdapterModule::qkv, std::nullopt);
  if (!feeds) return;
  // What attention adds is made again with its projection, and so is the sum.
  const bool behind = k.mixer == Mixer::attention;
  save(AdapterModule::mlp_up, behind ? std::optional{Recomputed::projection} : std::nullopt);
}

}  // namespace

void join_exchanges(Layer& out) {
  std::optional<PairExchange> joined;
  for (const Row& row : out.rows) {
    const auto* pair = std::get_if<PairExchange>(&row);
    if (pair == nullptr) continue;
    joined = {joined ? joined->first : pair->first, pair->second};
  }
  std::erase_if(out.rows, [](const Row& row) { return std::holds_alternative<PairExchange>(row); });
  if (joined) out.rows.emplace_back(*joined);
}

bool recomputes(const RecomputeModules& m, Recomputed what) {
  switch (what) {
    case Recomputed::layer:
    case Recomputed::products:
    case Recomputed::always:
      return false;
    case Recomputed::core:
      return m.core_attention || m.fused_attention;
    case Recomputed::norm:
      return m.layer_norm;
    case Recomputed::activation:
      return m.activation || m.mlp || m.mlp_up;
    case Recomputed::latent_up:
      return m.latent_up;
    case Recomputed::mlp_up:
      return m.mlp || m.mlp_up;
    case Recomputed::mlp_down:
      return m.mlp;
    case Recomputed::projection:
      return m.projection;
  }
  return false;
}

Lengths lengths_of(const Layer& layer, const Batch& batch) {
  const double source = layer.source_tokens > 0 ? layer.source_tokens : batch.source();
  const bool as_long = layer.source_tokens == 0 && batch.source_tokens == 0;
  const double source_attended = as_long ? batch.attended() : source;
  if (layer.tokens > 0) {
    const double own = layer.tokens;
    return {own, own, source, source_attended};
  }
  if (layer.of_source) return {source, source_attended, source, source_attended};
  const double share = std::ldexp(1.0, -2 * layer.halvings);
  return {share * batch.tokens, share * batch.attended(), source, source_attended};
}

double rows_per_token(const Product& product, const Lengths& lengths, const Batch& batch) {
  return (product.rows == Rows::source ? lengths.source : lengths.own) / batch.tokens;
}

Layer declare_layer(const TransformerShape& m, LayerKind kind) {
  const KindShape k = shape_of(m, kind);
  if (k.hidden != m.hidden || (k.plain_mlp && m.gated)) {
    TransformerShape own = m;
    own.hidden = k.hidden;
    own.gated = m.gated && !k.plain_mlp;
    return declare_layer(own, kind);
  }
  Layer out;
  out.rows.reserve(16);
  out.saved.reserve(16);
  out.width = m.hidden;
  out.gated = m.gated;
  out.input = static_cast<double>(m.residual_streams) * m.hidden;
  out.tokens = k.tokens;
  out.halvings = k.halvings;
  out.of_source = k.of_source;
  out.source_tokens = k.source_tokens;
  const MixerKind& mixer = info(k.mixer);
  if (mixer.convolves) {
    mixer.add(m, k, out);
    return out;
  }
  add_stream(m, kind, out);
  save_stream(m, k, out);
  if (mixer.add != nullptr) mixer.add(m, k, out);
  if (k.side_rank > 0) add_side_path(m, k, out);
  if (k.cross) add_cross_attention(m, k, out);
  if (!kind.feed_forward) {
    if (k.layer_input > 0) add_layer_input(m, k, out);
    return out;
  }
  const double ffn = k.experts ? m.experts.shared_ffn : k.ffn;
  if (m.biases) out.small += (m.gated ? 2.0 : 1.0) * ffn + m.hidden;
  if (k.experts) {
    add_experts(m, out);
  } else {
    add_mlp(m, ffn, out);
  }
  if (k.parallel) join_exchanges(out);
  if (k.layer_input > 0) add_layer_input(m, k, out);
  return out;
}

}  // namespace lockstep
