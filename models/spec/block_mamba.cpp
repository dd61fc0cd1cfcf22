#include <array>
#include <string>

#include "models/spec/hugging_face_layers.hpp"

namespace lockstep {
namespace {

constexpr ProductNames kMambaIn{"mamba_in", "mamba_in.input_gradient", "mamba_in.weight_gradient"};
constexpr ProductNames kMambaSelect{"mamba_x", "mamba_x.input_gradient", "mamba_x.weight_gradient"};
constexpr ProductNames kMambaStep{"mamba_step", "mamba_step.input_gradient",
                                  "mamba_step.weight_gradient"};
constexpr ProductNames kMambaOut{"mamba_out", "mamba_out.input_gradient",
                                 "mamba_out.weight_gradient"};

/// Step sizes, B and C from the convolved columns, and the step sizes of all heads, which are
/// columns of Mamba-1 and which the backward pass makes again. Ranks of a tensor-parallel group sum
/// what they selected; that sum of a few hundred columns is left out.
void add_selection(const MambaShape& s, Layer& out) {
  out.rows.emplace_back(
      Product{.names = kMambaSelect, .in = {.shared = s.inner()}, .out = {.whole = s.selected()}});
  out.rows.emplace_back(Product{.names = kMambaStep,
                                .in = {.whole = static_cast<double>(s.step_rank)},
                                .out = {.shared = s.steps()},
                                .recomputed = Recomputed::always});
}

void add_mamba(const TransformerShape& m, const KindShape&, Layer& out) {
  const MambaShape& s = m.mamba;
  const double h = m.hidden, inner = s.inner();
  const bool first = s.first_generation();
  out.rows.emplace_back(
      Product{.names = kMambaIn, .in = {.whole = h}, .out = {.shared = s.in()}, .in_pieces = true});
  // The fused kernel saves the product alone: convolution and states are made again backward.
  out.rows.emplace_back(
      Kernel{.name = "convolution", .columns = {.shared = s.mixed()}, .bytes = 4, .backward = 3});
  if (s.selects()) add_selection(s, out);
  // Kernels of a pass: their implementations.
  out.rows.emplace_back(
      Scan{.flops = scan_flops(s), .bytes = scan_bytes(s), .kernels = first ? 1 : 5});
  if (!s.selects()) {
    out.rows.emplace_back(Kernel{.name = "gated_norm",
                                 .columns = {.shared = inner},
                                 .bytes = 6,
                                 .backward = 1.5,
                                 .recomputed = Recomputed::norm,
                                 .or_recomputed = Recomputed::norm});
  }
  out.rows.emplace_back(
      Product{.names = kMambaOut, .in = {.shared = inner}, .out = {.whole = h}, .in_pieces = true});
  out.rows.emplace_back(PairExchange{kMambaIn, kMambaOut});
  // Decay, skip and step bias of each head, and Mamba-2's norm; Mamba-1 decays each state. PLaMo 2
  // has norms of what it selects, and no biases of its convolution.
  if (first) {
    out.small += s.mixed() * (s.kernel + 1) + inner * (s.state + 2);
  } else {
    out.small += s.mixed() * (s.kernel + (s.selects() ? 0 : 1)) + 3.0 * s.heads +
                 (s.selects() ? s.selected() : inner);
  }
  // The product in, what the recurrence gives, and the operand of the product out. Convolution and
  // states are made again, and of Mamba-1 the step sizes and the operand
  // (github:state-spaces/mamba:mamba_ssm/ops/triton/ssd_combined.py, selective_scan_interface.py).
  out.saved.push_back({.columns = s.in() + s.selected() + inner});
  if (!first) out.saved.push_back({.columns = inner, .keep = Keep::operand});
  out.cache.state = inner * s.state;
}

std::vector<SharedParts> mamba_parts(const TransformerShape& m, const KindShape&) {
  const MambaShape& s = m.mamba;
  if (s.first_generation()) return {{s.heads, "Mamba columns"}};
  if (s.selects()) return {{s.heads, "Mamba heads"}};
  return {{s.groups, "Mamba groups"}};
}

std::optional<MixerFault> mamba_fault(const TransformerShape& m) {
  const MambaShape& s = m.mamba;
  if (s.selects() && s.groups != 1) {
    return MixerFault{"", "1 group beside \"step_rank\", as Mamba-1 and PLaMo 2 have"};
  }
  if (s.heads % s.groups == 0) return std::nullopt;
  return MixerFault{"groups", "a divisor of " + std::to_string(s.heads) + " (heads)"};
}

constexpr std::array kMambaMembers{
    MixerMember{.key = "heads",
                .required = true,
                .low = 1,
                .high = kMostMixerHeads,
                .sentence = "Heads",
                .number = [](TransformerShape& m) -> int& { return m.mamba.heads; }},
    MixerMember{.key = "head_dim",
                .required = true,
                .low = 1,
                .high = kMostMixerColumns,
                .sentence = "Columns of a head",
                .number = [](TransformerShape& m) -> int& { return m.mamba.head_dim; }},
    MixerMember{.key = "groups",
                .required = true,
                .low = 1,
                .high = kMostMixerHeads,
                .sentence = "Groups of heads that share B and C, a divisor of the heads",
                .number = [](TransformerShape& m) -> int& { return m.mamba.groups; }},
    MixerMember{.key = "state",
                .required = true,
                .low = 1,
                .high = kMostMixerColumns,
                .sentence = "Width of a head's state",
                .number = [](TransformerShape& m) -> int& { return m.mamba.state; }},
    MixerMember{.key = "kernel",
                .low = 1,
                .high = 64,
                .sentence = "Tokens that the convolution sees; default: 4",
                .number = [](TransformerShape& m) -> int& { return m.mamba.kernel; }},
    MixerMember{.key = "chunk",
                .low = 1,
                .high = kMostMixerTokens,
                .sentence = "Tokens that the recurrence's kernels take together; default: 256",
                .number = [](TransformerShape& m) -> int& { return m.mamba.chunk; }},
    MixerMember{
        .key = "step_rank",
        .low = 1,
        .high = kMostMixerColumns,
        .sentence =
            "Mamba-1, with head_dim 1 and 1 group: rank of its step sizes (dt_rank); with wider "
            "heads, PLaMo 2",
        .number = [](TransformerShape& m) -> int& { return m.mamba.step_rank; }},
};

}  // namespace

/// Mamba of both generations; the state of a head stays on its tensor-parallel rank.
constinit const MixerKind kMambaMixer{
    .mixer = Mixer::mamba,
    .name = "mamba",
    .add = add_mamba,
    .operations = "mamba_* convolution",
    .sentence = "The mixers of a hybrid model, Mamba-2 unless step_rank is there",
    .members = kMambaMembers,
    .known = [](const TransformerShape& m) { return m.mamba.heads > 0; },
    .fault = mamba_fault,
    .whole_sequence = "Mamba layers pass their state along the sequence",
    .shared = mamba_parts,
    .columns = [](const TransformerShape& m) { return m.mamba.in(); },
    .capability = "mamba",
    .families = "granitemoehybrid bamba",
    .read_layers = hugging_face::read_mamba_layers,
    .model_families = "mamba falcon_mamba mamba2 plamo2",
    .read_model = hugging_face::read_recurrent};

}  // namespace lockstep
