/// Mamba mixers of both generations, and hybrid models whose layers are one block each (Gu and Dao
/// 2023, arXiv:2312.00752; Dao and Gu 2024, arXiv:2405.21060; NVIDIA 2025, Nemotron-H,
/// arXiv:2504.03624; AI21 2024, Jamba, arXiv:2403.19887).
#pragma once

#include <string_view>

namespace lockstep {

/// A mixer: one product in, a short convolution, a recurrent state for each head, and one product
/// out. Work and memory grow with the sequence, not with its square.
struct MambaShape {
  int heads = 0;     ///< 0: the model has no such layer
  int head_dim = 0;  ///< P
  int groups = 1;    ///< of heads that share their input and output vectors B and C
  int state = 0;     ///< N, width of a head's state for each of its P columns
  int kernel = 4;    ///< tokens that the convolution sees
  int chunk = 256;   ///< Q, tokens that the kernels take together
  /// Of Mamba-1: the rank of its step sizes. Each column is a head with a step size of its own; B,
  /// C and the step sizes come from the columns after the convolution, by two products more. 0:
  /// Mamba-2. Heads of several columns whose B, C and step sizes come so are PLaMo 2's.
  int step_rank = 0;

  [[nodiscard]] bool selects() const { return step_rank > 0; }
  [[nodiscard]] bool first_generation() const { return selects() && head_dim == 1; }
  [[nodiscard]] double inner() const { return static_cast<double>(heads) * head_dim; }
  /// Columns that are convolved: those of the heads, and Mamba-2's B and C of each group.
  [[nodiscard]] double mixed() const { return inner() + (selects() ? 0 : 2.0 * groups * state); }
  /// Columns of the product in: the gate beside them, and Mamba-2's step size for each head.
  [[nodiscard]] double in() const { return inner() + mixed() + (selects() ? 0 : heads); }
  /// Columns of the product behind the convolution, step sizes before they widen, B and C.
  [[nodiscard]] double selected() const { return selects() ? step_rank + 2.0 * groups * state : 0; }
  /// Step sizes, of which there is one for each head.
  [[nodiscard]] double steps() const { return heads; }
};

/// What each letter of TransformerShape::pattern stands for, as in Megatron-Core's
/// hybrid_override_pattern: a mixer, attention, an MLP or experts, with a norm and a residual each.
constexpr std::string_view kPatternLetters = "M*-E";

/// FLOP of the recurrence of one token, forward, by chunks: inside a chunk the scores of each group
/// and what they make of the heads' columns, half of both as later tokens don't count; a state for
/// each chunk and what it gives to the next (arXiv:2405.21060, section 6). Mamba-1: nine for each
/// state of each column, token by token (selective_scan_interface.py in
/// github:state-spaces/mamba).
double scan_flops(const MambaShape& s);
/// Bytes of one token through memory, forward: columns in and out in 16 bit, states and scores of
/// chunks in 32 bit, written and read. Mamba-1 keeps its states on the chip.
double scan_bytes(const MambaShape& s);

}  // namespace lockstep
