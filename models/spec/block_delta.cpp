#include <array>
#include <string>

#include "models/spec/hugging_face_layers.hpp"

namespace lockstep {
namespace {

constexpr ProductNames kDeltaIn{"delta_in", "delta_in.input_gradient", "delta_in.weight_gradient"};
constexpr ProductNames kDeltaThin{"delta_thin", "delta_thin.input_gradient",
                                  "delta_thin.weight_gradient"};
constexpr ProductNames kDeltaDecay{"delta_decay", "delta_decay.input_gradient",
                                   "delta_decay.weight_gradient"};
constexpr ProductNames kDeltaGate{"delta_gate", "delta_gate.input_gradient",
                                  "delta_gate.weight_gradient"};
constexpr ProductNames kDeltaOut{"delta_out", "delta_out.input_gradient",
                                 "delta_out.weight_gradient"};

/// What decays and gates are made from, whole on every tensor-parallel rank.
void add_thin(double hidden, double columns, Layer& out) {
  if (columns == 0) return;
  out.rows.emplace_back(Product{.names = kDeltaThin,
                                .in = {.whole = hidden},
                                .out = {.whole = columns},
                                .rows = Rows::repeated,
                                .ways = Ways::none});
  out.saved.push_back({.columns = columns, .rows = Rows::repeated});
}

/// A wide product's columns out of thin ones.
void add_widening(const ProductNames& names, double rank, double columns, Layer& out) {
  out.rows.emplace_back(Product{.names = names, .in = {.whole = rank}, .out = {.shared = columns}});
  out.saved.push_back({.columns = columns});
}

}  // namespace

double delta_flops(const DeltaShape& s) {
  const double k = s.key_dim, v = s.value_dim;
  return s.value_heads * (6 * k * v + 2.0 * s.chunk * (k + v));
}

double delta_bytes(const DeltaShape& s) {
  constexpr double kHalfWord = 2, kWord = 4;
  // Queries, keys and values, and what they give; decays and strengths.
  const double decays = s.channel_decay ? s.keys() : s.value_heads;
  const double columns = kHalfWord * (s.mixed() + s.values() + decays + s.value_heads);
  // Written, read, and read again with the gradients' states of the same size apart.
  const double states = 3 * kWord * s.values() * s.key_dim / s.chunk;
  return columns + states;
}

namespace {

void add_delta(const TransformerShape& m, const KindShape&, Layer& out) {
  const DeltaShape& s = m.delta;
  const double h = m.hidden, values = s.values();
  // Queries, keys, values, the output gate, a strength for each head and its decay.
  double columns = s.mixed() + s.value_heads;
  if (!s.channel_decay) columns += s.value_heads;
  if (s.gate_rank == 0) columns += values;
  out.rows.emplace_back(Product{.names = kDeltaIn,
                                .in = {.whole = h},
                                .out = {.shared = columns},
                                .in_pieces = true,
                                .adapter = AdapterModule::qkv});
  out.saved.push_back({.columns = columns});
  add_thin(h, (s.channel_decay ? s.key_dim : 0) + s.gate_rank, out);
  if (s.channel_decay) add_widening(kDeltaDecay, s.key_dim, s.keys(), out);
  if (s.gate_rank > 0) add_widening(kDeltaGate, s.gate_rank, values, out);
  out.rows.emplace_back(
      Kernel{.name = "convolution", .columns = {.shared = s.mixed()}, .bytes = 4, .backward = 3});
  // Kernels of a pass: scores of a chunk, their inverse, states, and what they give
  // (github:fla-org/flash-linear-attention:fla/ops/gated_delta_rule/chunk.py).
  out.rows.emplace_back(Scan{.flops = delta_flops(s), .bytes = delta_bytes(s), .kernels = 5});
  out.rows.emplace_back(Kernel{.name = "gated_norm",
                               .columns = {.shared = values},
                               .bytes = 6,
                               .backward = 1.5,
                               .recomputed = Recomputed::norm,
                               .or_recomputed = Recomputed::norm});
  out.rows.emplace_back(Product{.names = kDeltaOut,
                                .in = {.shared = values},
                                .out = {.whole = h},
                                .in_pieces = true,
                                .adapter = AdapterModule::projection});
  out.rows.emplace_back(PairExchange{kDeltaIn, kDeltaOut});
  // The convolution; decay and step bias of each head, or of each channel; the norm.
  out.small += s.mixed() * s.kernel + s.value_heads + s.value_dim +
               (s.channel_decay ? s.keys() : s.value_heads);
  // Convolved columns, what the recurrence gives, and the operand of the product out.
  out.saved.push_back({.columns = s.mixed() + values});
  out.saved.push_back(
      {.columns = values, .keep = Keep::operand, .product = AdapterModule::projection});
  out.cache.state = values * s.key_dim;
}

std::optional<MixerFault> delta_fault(const TransformerShape& m) {
  if (m.delta.value_heads % m.delta.key_heads == 0) return std::nullopt;
  return MixerFault{"value_heads",
                    "a multiple of " + std::to_string(m.delta.key_heads) + " (key_heads)"};
}

std::vector<SharedParts> delta_parts(const TransformerShape& m, const KindShape&) {
  return {{m.delta.key_heads, "key heads of delta layers"}};
}

constexpr std::array kDeltaMembers{
    MixerMember{.key = "key_heads",
                .required = true,
                .low = 1,
                .high = kMostMixerHeads,
                .sentence = "Heads of queries and keys",
                .number = [](TransformerShape& m) -> int& { return m.delta.key_heads; }},
    MixerMember{.key = "value_heads",
                .required = true,
                .low = 1,
                .high = kMostMixerHeads,
                .sentence = "Heads of values, each with a state: a multiple of key_heads",
                .number = [](TransformerShape& m) -> int& { return m.delta.value_heads; }},
    MixerMember{.key = "key_dim",
                .required = true,
                .low = 1,
                .high = kMostMixerColumns,
                .sentence = "Columns of a query and a key",
                .number = [](TransformerShape& m) -> int& { return m.delta.key_dim; }},
    MixerMember{.key = "value_dim",
                .required = true,
                .low = 1,
                .high = kMostMixerColumns,
                .sentence = "Columns of a value",
                .number = [](TransformerShape& m) -> int& { return m.delta.value_dim; }},
    MixerMember{.key = "kernel",
                .low = 1,
                .high = 64,
                .sentence = "Tokens that the convolution sees; default: 4",
                .number = [](TransformerShape& m) -> int& { return m.delta.kernel; }},
    MixerMember{.key = "chunk",
                .low = 1,
                .high = kMostMixerTokens,
                .sentence = "Tokens that the recurrence's kernels take together; default: 64",
                .number = [](TransformerShape& m) -> int& { return m.delta.chunk; }},
    MixerMember{
        .key = "channel_decay",
        .sentence = "Kimi Delta Attention: a decay for each channel of a key, not for each head",
        .flag = [](TransformerShape& m) -> bool& { return m.delta.channel_decay; }},
    MixerMember{
        .key = "gate_rank",
        .low = 0,
        .high = kMostMixerColumns,
        .sentence = "Columns between the two products of the output gate; default: 0, one product",
        .number = [](TransformerShape& m) -> int& { return m.delta.gate_rank; }},
};

}  // namespace

/// A gated delta net; the state of a head stays on its tensor-parallel rank.
extern const MixerKind kDeltaMixer;
constinit const MixerKind kDeltaMixer{
    .mixer = Mixer::delta,
    .name = "delta",
    .add = add_delta,
    .operations = "delta_* convolution",
    .sentence = "Gated delta nets: linear attention whose state forgets and is corrected",
    .members = kDeltaMembers,
    .known = [](const TransformerShape& m) { return m.delta.key_heads > 0; },
    .fault = delta_fault,
    .whole_sequence = "delta layers pass their state along the sequence",
    .shared = delta_parts,
    .columns = [](const TransformerShape& m) { return m.delta.mixed() + m.delta.values(); },
    .family_keys = "linear_attn_config linear_num_value_heads",
    .read_layers = hugging_face::read_delta_layers};

}  // namespace lockstep
