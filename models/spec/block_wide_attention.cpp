// Blocks of attention and an MLP that layers share and that read the embedding beside the stream,
// and the Mamba layers behind them (Glorioso et al. 2024, Zamba, arXiv:2405.16712, section 2; 2024,
// Zamba2, arXiv:2411.15242, section 2).
// Source: modeling_zamba.py and modeling_zamba2.py in github:huggingface/transformers.
//
// What each use of a shared block has of its own, a product behind it and thin products beside its
// own, is declared with the Mamba layer that takes its result.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep {
namespace {

// Behind those that have names.
constexpr Mixer kWideAttention{15}, kAdaptedMamba{16};

constexpr ProductNames kTaken{"taken", "taken.input_gradient", "taken.weight_gradient"};
constexpr ProductNames kUseDown{"use_down", "use_down.input_gradient", "use_down.weight_gradient"};
constexpr ProductNames kUseUp{"use_up", "use_up.input_gradient", "use_up.weight_gradient"};
constexpr ProductNames kUseMlpDown{"use_mlp_down", "use_mlp_down.input_gradient",
                                   "use_mlp_down.weight_gradient"};
constexpr ProductNames kUseMlpUp{"use_mlp_up", "use_mlp_up.input_gradient",
                                 "use_mlp_up.weight_gradient"};

int& wide_number(TransformerShape& m, std::size_t at) {
  return m.mixers[static_cast<std::size_t>(kWideAttention)][at];
}
double wide_inputs(const TransformerShape& m) { return m.numbers(kWideAttention)[0]; }

constexpr int kMostInputs = 8;
constexpr std::array kWideMembers{
    MixerMember{.key = "inputs",
                .required = true,
                .low = 1,
                .high = kMostInputs,
                .sentence = "Tensors as wide as the stream that it reads side by side",
                .number = [](TransformerShape& m) -> int& { return wide_number(m, 0); }},
    MixerMember{.key = "attention_rank",
                .low = 0,
                .high = kMostMixerColumns,
                .sentence = "Columns of the thin products that each use has beside queries, keys "
                            "and values; default: 0, none",
                .number = [](TransformerShape& m) -> int& { return wide_number(m, 1); }},
    MixerMember{.key = "mlp_rank",
                .low = 0,
                .high = kMostMixerColumns,
                .sentence = "The same beside the MLP; default: 0, none",
                .number = [](TransformerShape& m) -> int& { return wide_number(m, 2); }},
};

/// Plain attention but for what it reads, which is copied side by side before its norm.
void add_wide_attention(const TransformerShape& m, const KindShape& k, Layer& out) {
  constexpr double kHalfWord = 2;
  kAttentionMixer.add(m, k, out);
  const double h = m.hidden, more = wide_inputs(m) - 1;
  for (Row& row : out.rows) {
    auto* product = std::get_if<Product>(&row);
    if (product != nullptr && product->names[0] == "qkv") product->in.whole += more * h;
  }
  out.rows.emplace_back(Kernel{.name = "concatenation",
                               .columns = {.whole = 2 * (more + 1) * h},
                               .bytes = kHalfWord,
                               .rows = Rows::residual,
                               .ways = Ways::none});
  out.small += more * h;
  out.saved.push_back({.columns = more * h,
                       .keep = Keep::operand,
                       .recomputed = Recomputed::norm,
                       .product = AdapterModule::qkv,
                       .by = SavedBy::stream});
}

Product use_product(const ProductNames& names, double in, double out) {
  return {.names = names, .in = {.whole = in}, .out = {.shared = out}};
}

void add_adapted_mamba(const TransformerShape& m, const KindShape& k, Layer& out) {
  kMambaMixer.add(m, k, out);
  const double h = m.hidden, ffn = m.ffn, queries = static_cast<double>(k.heads) * k.head_dim;
  const double keys = static_cast<double>(k.kv_heads) * (k.head_dim + k.value_dim);
  const MixerNumbers& numbers = m.numbers(kWideAttention);
  out.rows.emplace_back(Product{.names = kTaken,
                                .in = {.whole = h},
                                .out = {.whole = h},
                                .rows = Rows::own,
                                .ways = Ways::none});
  out.saved.push_back({.columns = h, .keep = Keep::trained_operand, .by = SavedBy::sequence});
  if (numbers[1] > 0) {
    constexpr double kThree = 3;  // queries, keys, values
    const double rank = numbers[1];
    Product down = use_product(kUseDown, wide_inputs(m) * h, 0);
    down.out = {.whole = kThree * rank};
    down.rows = Rows::own;
    down.ways = Ways::none;
    out.rows.emplace_back(down);
    out.rows.emplace_back(use_product(kUseUp, rank, queries + keys));
    out.saved.push_back({.columns = kThree * rank, .by = SavedBy::sequence});
  }
  if (numbers[2] > 0) {
    const double rank = numbers[2];
    Product down = use_product(kUseMlpDown, h, 0);
    down.out = {.whole = rank};
    down.rows = Rows::own;
    down.ways = Ways::none;
    out.rows.emplace_back(down);
    out.rows.emplace_back(use_product(kUseMlpUp, rank, (m.gated ? 2 : 1) * ffn));
    out.saved.push_back({.columns = rank, .by = SavedBy::sequence});
  }
}

std::optional<MixerFault> wide_fault(const TransformerShape& m) {
  if (m.mamba.heads > 0) return std::nullopt;
  return MixerFault{"", "a model with \"mamba\" beside it, whose layers take what it gives"};
}

}  // namespace

extern const MixerKind kWideAttentionMixer, kAdaptedMambaMixer;

constinit const MixerKind kWideAttentionMixer{
    .mixer = kWideAttention,
    .name = "wide_attention",
    .add = add_wide_attention,
    .sentence = "Attention that reads the embedding beside the stream (Zamba)",
    .members = kWideMembers,
    .known = [](const TransformerShape& m) { return wide_inputs(m) > 0; },
    .fault = wide_fault,
    .shared = [](const TransformerShape& m,
                 const KindShape& kind) { return kAttentionMixer.shared(m, kind); },
    .columns = [](const TransformerShape& m) { return wide_inputs(m) * m.hidden; },
    .model_families = "zamba zamba2",
    .read_model = hugging_face::read_zamba};

constinit const MixerKind kAdaptedMambaMixer{
    .mixer = kAdaptedMamba,
    .name = "adapted_mamba",
    .add = add_adapted_mamba,
    .whole_sequence = "Mamba layers pass their state along the sequence",
    .shared = [](const TransformerShape& m,
                 const KindShape& kind) { return kMambaMixer.shared(m, kind); },
    .capability = "mamba",
    .numbers_of = &kWideAttentionMixer};

}  // namespace lockstep
