#include "models/spec/blocks.hpp"

namespace lockstep {
namespace {

constexpr ProductNames kMambaIn{"mamba_in", "mamba_in.input_gradient", "mamba_in.weight_gradient"};
constexpr ProductNames kMambaSelect{"mamba_x", "mamba_x.input_gradient", "mamba_x.weight_gradient"};
constexpr ProductNames kMambaStep{"mamba_step", "mamba_step.input_gradient",
                                  "mamba_step.weight_gradient"};
constexpr ProductNames kMambaOut{"mamba_out", "mamba_out.input_gradient",
                                 "mamba_out.weight_gradient"};

/// Mamba-1: step sizes, B and C from the convolved columns, and the step sizes of all columns,
/// which the backward pass makes again. Ranks of a tensor-parallel group sum what they selected;
/// that sum of a few hundred columns is left out.
void add_selection(const MambaShape& s, Layer& out) {
  out.rows.emplace_back(
      Product{.names = kMambaSelect, .in = {.shared = s.inner()}, .out = {.whole = s.selected()}});
  out.rows.emplace_back(Product{.names = kMambaStep,
                                .in = {.whole = static_cast<double>(s.step_rank)},
                                .out = {.shared = s.inner()},
                                .again = Again::always});
}

}  // namespace

void add_mamba(const TransformerShape& m, const KindShape&, Layer& out) {
  const MambaShape& s = m.mamba;
  const double h = m.hidden, inner = s.inner();
  const bool first = s.first_generation();
  out.rows.emplace_back(
      Product{.names = kMambaIn, .in = {.whole = h}, .out = {.shared = s.in()}, .in_pieces = true});
  // The fused kernel saves the product alone: convolution and states are made again backward.
  out.rows.emplace_back(
      Kernel{.name = "convolution", .columns = {.shared = s.mixed()}, .bytes = 4, .backward = 3});
  if (first) add_selection(s, out);
  // Kernels of a pass: their implementations.
  out.rows.emplace_back(
      Scan{.flops = scan_flops(s), .bytes = scan_bytes(s), .kernels = first ? 1 : 5});
  if (!first) {
    out.rows.emplace_back(Kernel{.name = "gated_norm",
                                 .columns = {.shared = inner},
                                 .bytes = 6,
                                 .backward = 1.5,
                                 .again = Again::norm,
                                 .or_again = Again::norm});
  }
  out.rows.emplace_back(
      Product{.names = kMambaOut, .in = {.shared = inner}, .out = {.whole = h}, .in_pieces = true});
  out.rows.emplace_back(PairExchange{kMambaIn, kMambaOut});
  // Decay, skip and step bias of each head, and Mamba-2's norm; Mamba-1 decays each state.
  out.small += s.mixed() * (s.kernel + 1) + (first ? inner * (s.state + 2) : 3.0 * s.heads + inner);
  // The product in, what the recurrence gives, and the operand of the product out. Convolution and
  // states are made again, and of Mamba-1 the step sizes and the operand
  // (github:state-spaces/mamba:mamba_ssm/ops/triton/ssd_combined.py, selective_scan_interface.py).
  out.saved.push_back({.columns = s.in() + s.selected() + inner});
  if (!first) out.saved.push_back({.columns = inner, .keep = Keep::operand});
  out.cache.state = inner * s.state;
}

}  // namespace lockstep
