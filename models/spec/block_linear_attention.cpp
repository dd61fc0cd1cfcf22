// Linear attention with a fixed decay for each head (lightning attention: MiniMax 2025,
// arXiv:2501.08313, section 2.2): products of queries, keys, values and a gate, a state that grows
// no longer than a head is wide, a norm and a product out. Gates of each head that forget and take
// in by the token (xLSTM's matrix memory: Beck et al. 2025, arXiv:2503.13427, section 2) are
// columns of the same product.
#include <array>

#include "models/spec/hugging_face_layers.hpp"

namespace lockstep {
namespace {

constexpr ProductNames kLinearIn{"linear_in", "linear_in.input_gradient",
                                 "linear_in.weight_gradient"};
constexpr ProductNames kLinearOut{"linear_out", "linear_out.input_gradient",
                                  "linear_out.weight_gradient"};

constexpr Mixer kLinear{10};  // behind those that have names
constexpr auto kLinearPlace = static_cast<std::size_t>(kLinear);
constexpr int kUsualChunk = 256;
constexpr std::array kLinearMembers{
    MixerMember{.key = "heads",
                .required = true,
                .low = 1,
                .high = kMostMixerHeads,
                .sentence = "Heads, each with a state",
                .number = [](TransformerShape& m) -> int& { return m.mixers[kLinearPlace][0]; }},
    MixerMember{.key = "head_dim",
                .required = true,
                .low = 1,
                .high = kMostMixerColumns,
                .sentence = "Columns of a value, and of a query and a key unless key_dim is there",
                .number = [](TransformerShape& m) -> int& { return m.mixers[kLinearPlace][1]; }},
    MixerMember{.key = "chunk",
                .low = 1,
                .high = kMostMixerTokens,
                .sentence = "Tokens that the kernels take together; default: 256",
                .number = [](TransformerShape& m) -> int& { return m.mixers[kLinearPlace][2]; }},
    MixerMember{.key = "key_dim",
                .low = 0,
                .high = kMostMixerColumns,
                .sentence = "Columns of a query and a key; default: 0, as many as of a value",
                .number = [](TransformerShape& m) -> int& { return m.mixers[kLinearPlace][3]; }},
    MixerMember{.key = "head_gates",
                .low = 0,
                .high = 64,
                .sentence = "Gates of one column that each head has; default: 0",
                .number = [](TransformerShape& m) -> int& { return m.mixers[kLinearPlace][4]; }},
};

double linear_columns(const TransformerShape& m) {
  const MixerNumbers& n = m.numbers(kLinear);
  return static_cast<double>(n[0]) * n[1];
}
double linear_key_dim(const TransformerShape& m) {
  const MixerNumbers& n = m.numbers(kLinear);
  return n[3] > 0 ? n[3] : n[1];
}
/// Queries and keys, values and the gate of the result, and gates of heads.
double linear_made(const TransformerShape& m) {
  const MixerNumbers& n = m.numbers(kLinear);
  return n[0] * (2 * linear_key_dim(m) + 2.0 * n[1] + n[4]);
}

Scan linear_scan(const TransformerShape& m) {
  const MixerNumbers& n = m.numbers(kLinear);
  return chunked_scan({.heads = static_cast<double>(n[0]),
                       .keys = linear_key_dim(m),
                       .values = static_cast<double>(n[1]),
                       .chunk = static_cast<double>(n[2] > 0 ? n[2] : kUsualChunk)});
}

void add_linear_attention(const TransformerShape& m, const KindShape&, Layer& out) {
  const double h = m.hidden, columns = linear_columns(m), made = linear_made(m);
  out.rows.emplace_back(Product{.names = kLinearIn,
                                .in = {.whole = h},
                                .out = {.shared = made},
                                .in_pieces = true,
                                .adapter = AdapterModule::qkv});
  out.rows.emplace_back(linear_scan(m));
  out.rows.emplace_back(Kernel{.name = "gated_norm",
                               .columns = {.shared = columns},
                               .bytes = 6,
                               .backward = 1.5,
                               .recomputed = Recomputed::norm,
                               .or_recomputed = Recomputed::norm});
  out.rows.emplace_back(Product{.names = kLinearOut,
                                .in = {.shared = columns},
                                .out = {.whole = h},
                                .in_pieces = true,
                                .adapter = AdapterModule::projection});
  out.rows.emplace_back(PairExchange{kLinearIn, kLinearOut});
  out.small += columns + (m.biases ? made + h : 0);
  // What the product in gives, what the recurrence makes of it, and the operand of the one out.
  out.saved.push_back({.columns = made + columns});
  out.saved.push_back(
      {.columns = columns, .keep = Keep::operand, .product = AdapterModule::projection});
  out.cache.state = columns * linear_key_dim(m);
}

std::vector<SharedParts> linear_parts(const TransformerShape& m, const KindShape&) {
  return {{m.numbers(kLinear)[0], "heads of linear attention"}};
}

}  // namespace

Scan chunked_scan(const ChunkedHeads& of) {
  constexpr double kHalfWord = 2, kWord = 4;
  const double heads = of.heads, d = of.values, keys = of.keys, chunk = of.chunk;
  return {.flops = heads * (chunk * (keys + d) + 4 * keys * d),
          .bytes = heads * (2 * kHalfWord * (keys + d) + 2 * kWord * keys * d / chunk),
          .kernels = 2};
}

extern const MixerKind kLinearAttentionMixer;
constinit const MixerKind kLinearAttentionMixer{
    .mixer = kLinear,
    .name = "linear_attention",
    .add = add_linear_attention,
    .operations = "linear_*",
    .sentence = "Linear attention whose heads forget at a fixed pace (lightning attention)",
    .members = kLinearMembers,
    .known = [](const TransformerShape& m) { return m.numbers(kLinear)[0] > 0; },
    .whole_sequence = "linear attention passes its state along the sequence",
    .shared = linear_parts,
    .columns = [](const TransformerShape& m) { return linear_made(m); },
    .families = "minimax minimax_text_01 minimax_m1 bailing_moe_linear",
    .read_layers = hugging_face::read_linear_layers,
    .model_families = "xlstm",
    .read_model = hugging_face::read_xlstm};

}  // namespace lockstep
