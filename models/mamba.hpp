/// Mamba-2 mixers, and hybrid models whose layers are one block each (Dao and Gu 2024,
/// arXiv:2405.21060; NVIDIA 2025, Nemotron-H, arXiv:2504.03624).
#pragma once

#include <string_view>

namespace lockstep {

struct TransformerShape;

/// A mixer: one product in, a short convolution, a recurrent state for each head, and one product
/// out. Work and memory grow with the sequence, not with its square.
struct MambaShape {
  int heads = 0;     ///< 0: the model has no such layer
  int head_dim = 0;  ///< P
  int groups = 1;    ///< of heads that share their input and output vectors B and C
  int state = 0;     ///< N, width of a head's state for each of its P columns
  int kernel = 4;    ///< tokens that the convolution sees
  int chunk = 256;   ///< Q, tokens that the kernels take together

  [[nodiscard]] double inner() const { return static_cast<double>(heads) * head_dim; }
  /// Columns that are convolved: those of the heads, and B and C of each group.
  [[nodiscard]] double mixed() const { return inner() + 2.0 * groups * state; }
  /// Columns of the product in: the gate and a step size for each head beside them.
  [[nodiscard]] double in() const { return inner() + mixed() + heads; }
};

/// What each letter of TransformerShape::pattern stands for, as in Megatron-Core's
/// hybrid_override_pattern: a mixer, attention, an MLP or experts, with a norm and a residual each.
constexpr std::string_view kPatternLetters = "M*-E";

/// Weights of the two products, and of all of a mixer.
double mamba_matrix_parameters(const TransformerShape& shape);
double mamba_parameters(const TransformerShape& shape);
/// FLOP of the recurrence of one token, forward, by chunks: inside a chunk the scores of each group
/// and what they make of the heads' columns, half of both as later tokens don't count; a state for
/// each chunk and what it gives to the next (arXiv:2405.21060, section 6).
double scan_flops(const MambaShape& mamba);
/// Bytes of one token through memory, forward: columns in and out in 16 bit, states and scores of
/// chunks in 32 bit, written and read.
double scan_bytes(const MambaShape& mamba);

}  // namespace lockstep
