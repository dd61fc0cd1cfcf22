// RWKV of the generations 4 to 7 (Peng et al. 2023, arXiv:2305.13048; 2024, arXiv:2404.05892; 2025,
// arXiv:2503.14456): products out of a token mixed with the one before it, a state of d x d for
// each head, and a product out. Sources of shapes: https://github.com/BlinkDL/RWKV-LM and
// https://github.com/fla-org/flash-linear-attention.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep {
namespace {

constexpr ProductNames kRwkvIn{"rwkv_in", "rwkv_in.input_gradient", "rwkv_in.weight_gradient"};
constexpr ProductNames kRwkvThin{"rwkv_thin", "rwkv_thin.input_gradient",
                                 "rwkv_thin.weight_gradient"};
constexpr ProductNames kRwkvWide{"rwkv_wide", "rwkv_wide.input_gradient",
                                 "rwkv_wide.weight_gradient"};
constexpr ProductNames kRwkvOut{"rwkv_out", "rwkv_out.input_gradient", "rwkv_out.weight_gradient"};
constexpr ProductNames kRwkvReceptance{"rwkv_receptance", "rwkv_receptance.input_gradient",
                                       "rwkv_receptance.weight_gradient"};

constexpr Mixer kRwkv{13};  // behind those that have names
constexpr auto kRwkvPlace = static_cast<std::size_t>(kRwkv);
constexpr int kFirstRwkv = 4, kLastRwkv = 7;
constexpr std::array kRwkvMembers{
    MixerMember{.key = "generation",
                .required = true,
                .low = kFirstRwkv,
                .high = kLastRwkv,
                .sentence = "Of RWKV",
                .number = [](TransformerShape& m) -> int& { return m.mixers[kRwkvPlace][0]; }},
    MixerMember{.key = "heads",
                .required = true,
                .low = 1,
                .high = kMostMixerColumns,
                .sentence = "Heads, each with a state; of generation 4 all columns",
                .number = [](TransformerShape& m) -> int& { return m.mixers[kRwkvPlace][1]; }},
    MixerMember{.key = "head_dim",
                .required = true,
                .low = 1,
                .high = kMostMixerColumns,
                .sentence = "Columns of a head; of generation 4 one",
                .number = [](TransformerShape& m) -> int& { return m.mixers[kRwkvPlace][2]; }},
    MixerMember{.key = "low_rank",
                .low = 0,
                .high = kMostMixerColumns,
                .sentence = "Columns of the thin products that decays, gates and mixtures come "
                            "from, together; default: 0, none",
                .number = [](TransformerShape& m) -> int& { return m.mixers[kRwkvPlace][3]; }},
};

/// What a generation has.
struct RwkvParts {
  double squares;       ///< products from the stream to the heads: receptance, key, value, gate
  double mixtures;      ///< of a token and the one before it, each with weights of its own
  double mixed_in_mlp;  ///< the same before the MLP
  double receptance;    ///< 1: a gate as wide as the stream, out of it, behind the MLP
  double vectors;       ///< weights for each column of the heads: decay, bonus, biases, norm
  double wide;          ///< products out of thin ones, as wide as the heads
  double columns,
      work;  ///< of the recurrence: columns read, and operations of each number of state
};
/// Of equations (16) and (19) of arXiv:2404.05892 the outer product, the bonus, the decay and what
/// receptance reads, seven operations; of equation (16) of arXiv:2503.14456 nine, as the state is
/// corrected in place of the bonus. Generation 4 keeps a sum and its weights for each column, and
/// is counted as 5.
constexpr std::array<RwkvParts, kLastRwkv - kFirstRwkv + 1> kRwkvParts{
    RwkvParts{3, 3, 2, 1, 2, 0, 3, 7},
    RwkvParts{4, 4, 2, 1, 4, 0, 3, 7},
    RwkvParts{4, 6, 2, 1, 4, 6, 4, 7},
    RwkvParts{3, 6, 1, 0, 8, 4, 6, 9},
};

const RwkvParts& rwkv_parts(const TransformerShape& m) {
  return kRwkvParts[static_cast<std::size_t>(m.numbers(kRwkv)[0] - kFirstRwkv)];
}
double rwkv_columns(const TransformerShape& m) {
  const MixerNumbers& n = m.numbers(kRwkv);
  return static_cast<double>(n[1]) * n[2];
}

/// Columns in and out in 16 bit; states stay on the chip.
Scan rwkv_scan(const TransformerShape& m) {
  constexpr double kHalfWord = 2;
  const RwkvParts& p = rwkv_parts(m);
  const double columns = rwkv_columns(m), d = m.numbers(kRwkv)[2];
  return {.flops = p.work * columns * d, .bytes = kHalfWord * (p.columns + 1) * columns};
}

/// Products through few columns, which every tensor-parallel rank has whole.
void add_rwkv_thin(const TransformerShape& m, Layer& out) {
  const double rank = m.numbers(kRwkv)[3], columns = rwkv_columns(m);
  if (rank == 0) return;
  out.rows.emplace_back(Product{.names = kRwkvThin,
                                .in = {.whole = static_cast<double>(m.hidden)},
                                .out = {.whole = rank},
                                .rows = Rows::repeated,
                                .ways = Ways::none});
  out.rows.emplace_back(
      Product{.names = kRwkvWide, .in = {.whole = rank}, .out = {.shared = columns}});
  out.saved.push_back({.columns = rank, .rows = Rows::repeated});
  out.saved.push_back({.columns = rwkv_parts(m).wide * columns});
}

/// The gate of channel mixing is declared here, as the MLP is any model's.
void add_rwkv_receptance(const TransformerShape& m, Layer& out) {
  if (rwkv_parts(m).receptance == 0) return;
  const double h = m.hidden;
  out.rows.emplace_back(
      Product{.names = kRwkvReceptance, .in = {.whole = h}, .out = {.shared = h}});
  out.rows.emplace_back(
      Kernel{.name = "rwkv_gate", .columns = {.shared = h}, .bytes = 6, .backward = 5.0 / 3});
  out.saved.push_back({.columns = 2 * h});
}

/// Mixtures are one kernel that reads the stream twice, and those of the MLP another.
void add_rwkv(const TransformerShape& m, const KindShape&, Layer& out) {
  constexpr double kHalfWord = 2;
  const RwkvParts& p = rwkv_parts(m);
  const double h = m.hidden, columns = rwkv_columns(m);
  const double mixed = p.mixtures + p.mixed_in_mlp;
  out.rows.emplace_back(Kernel{.name = "rwkv_mix",
                               .columns = {.whole = h},
                               .bytes = kHalfWord * (mixed + 4),
                               .kernels = 2,
                               .recomputed = Recomputed::norm,
                               .or_recomputed = Recomputed::norm,
                               .rows = Rows::residual,
                               .ways = Ways::none});
  out.rows.emplace_back(Product{.names = kRwkvIn,
                                .in = {.whole = h},
                                .out = {.shared = p.squares * columns},
                                .in_pieces = true,
                                .adapter = AdapterModule::qkv});
  add_rwkv_thin(m, out);
  out.rows.emplace_back(rwkv_scan(m));
  out.rows.emplace_back(Kernel{.name = "gated_norm",
                               .columns = {.shared = columns},
                               .bytes = 6,
                               .backward = 1.5,
                               .recomputed = Recomputed::norm,
                               .or_recomputed = Recomputed::norm});
  out.rows.emplace_back(Product{.names = kRwkvOut,
                                .in = {.shared = columns},
                                .out = {.whole = h},
                                .in_pieces = true,
                                .adapter = AdapterModule::projection});
  out.rows.emplace_back(PairExchange{kRwkvIn, kRwkvOut});
  add_rwkv_receptance(m, out);
  // The biases of its two norms too.
  out.small += (mixed + (m.biases ? 0 : 2)) * h + p.vectors * columns;
  out.saved.push_back(
      {.columns = mixed * h, .recomputed = Recomputed::norm, .by = SavedBy::stream});
  out.saved.push_back({.columns = (p.squares + 1) * columns});
  out.saved.push_back(
      {.columns = columns, .keep = Keep::operand, .product = AdapterModule::projection});
  out.cache.state = columns * m.numbers(kRwkv)[2];
}

std::optional<MixerFault> rwkv_fault(const TransformerShape& m) {
  if (m.numbers(kRwkv)[0] == kFirstRwkv && m.numbers(kRwkv)[2] != 1) {
    return MixerFault{"head_dim", "1, of generation 4"};
  }
  return std::nullopt;
}

std::vector<SharedParts> rwkv_heads(const TransformerShape& m, const KindShape&) {
  return {{m.numbers(kRwkv)[1], "heads of RWKV"}};
}

}  // namespace

extern const MixerKind kRwkvMixer;
constinit const MixerKind kRwkvMixer{
    .mixer = kRwkv,
    .name = "rwkv",
    .add = add_rwkv,
    .operations = "rwkv_*",
    .sentence = "Time mixing of RWKV, and the gate behind its MLP",
    .members = kRwkvMembers,
    .known = [](const TransformerShape& m) { return m.numbers(kRwkv)[0] > 0; },
    .fault = rwkv_fault,
    .whole_sequence = "RWKV passes its state along the sequence",
    .shared = rwkv_heads,
    .columns =
        [](const TransformerShape& m) {
          return m.numbers(kRwkv)[0] > 0 ? rwkv_parts(m).squares * rwkv_columns(m) : 0;
        },
    .model_families = "rwkv rwkv5 rwkv6 rwkv7",
    .read_model = hugging_face::read_rwkv};

}  // namespace lockstep
