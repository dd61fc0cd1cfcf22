#include "models/spec/layer.hpp"

#include "models/spec/blocks.hpp"

namespace lockstep {
namespace {

/// The norms and sums of the residual stream, a norm and a sum for each block, and what reads and
/// writes several streams: products for both, and for mixing them
/// (github:deepseek-ai/DeepSeek-V4-Flash:inference/model.py, hc_pre and hc_post).
void add_stream(const TransformerShape& m, int blocks, Layer& out) {
  constexpr ProductNames kStreams{"streams", "streams.input_gradient", "streams.weight_gradient"};
  const double h = m.hidden, streams = m.residual_streams;
  out.rows.emplace_back(Kernel{.name = "norm_residual",
                               .columns = {.whole = streams * h},
                               .bytes = blocks / 2.0,
                               .kernels = 2 * blocks,
                               .again = Again::norm,
                               .or_again = Again::norm,
                               .rows = Rows::residual,
                               .ways = Ways::none,
                               .traffic = Traffic::norm_residual});
  out.small += (m.biases ? 2.0 : 1.0) * blocks * h;
  if (streams == 1) return;
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
  const auto save = [&](AdapterModule product, std::optional<Again> sum_again) {
    out.saved.push_back({.columns = h * m.residual_streams,
                         .keep = Keep::residual,
                         .made_again = sum_again,
                         .by = SavedBy::stream});
    out.saved.push_back({.columns = h,
                         .keep = Keep::operand,
                         .made_again = Again::norm,
                         .product = product,
                         .by = SavedBy::stream});
  };
  if (mixes) save(AdapterModule::qkv, std::nullopt);
  if (!feeds) return;
  // What attention adds is made again with its projection, and so is the sum.
  const bool behind = k.mixer == Mixer::attention;
  save(AdapterModule::mlp_up, behind ? std::optional{Again::projection} : std::nullopt);
}

}  // namespace

Layer declare_layer(const TransformerShape& m, LayerKind kind) {
  const KindShape k = shape_of(m, kind);
  Layer out;
  out.rows.reserve(16);
  out.saved.reserve(16);
  add_stream(m, kind.blocks(), out);
  save_stream(m, k, out);
  const MixerKind& mixer = info(k.mixer);
  if (mixer.add != nullptr) mixer.add(m, k, out);
  if (!kind.feed_forward) return out;
  const double ffn = k.experts ? m.experts.shared_ffn : k.ffn;
  if (m.biases) out.small += (m.gated ? 2.0 : 1.0) * ffn + m.hidden;
  if (k.experts) {
    add_experts(m, out);
  } else {
    add_mlp(m, ffn, out);
  }
  return out;
}

}  // namespace lockstep
