/// Gated delta nets: linear attention whose state forgets and is corrected with every token (Yang
/// et al. 2024, arXiv:2412.06464; Qwen3-Next), and Kimi Delta Attention, which forgets channel by
/// channel (Kimi Team 2025, arXiv:2510.26692).
#pragma once

namespace lockstep {

/// A mixer: products in, a short convolution, a state of key_dim x value_dim for each value head,
/// a gated norm, one product out. Work grows with the sequence, not with its square.
struct DeltaShape {
  int key_heads = 0;    ///< of queries and keys; 0: the model has no such layer
  int value_heads = 0;  ///< a multiple of them
  int key_dim = 0;      ///< of a query and a key
  int value_dim = 0;
  int kernel = 4;  ///< tokens that the convolution sees
  int chunk = 64;  ///< tokens that the kernels take together
  /// Kimi Delta Attention: a decay for each channel of a key, out of two products, the columns
  /// between which are one head wide; else one for each value head.
  bool channel_decay = false;
  int gate_rank = 0;  ///< columns between the two products of the output gate; 0: one product

  [[nodiscard]] double keys() const { return static_cast<double>(key_heads) * key_dim; }
  [[nodiscard]] double values() const { return static_cast<double>(value_heads) * value_dim; }
  /// Columns that are convolved: queries, keys, values.
  [[nodiscard]] double mixed() const { return 2 * keys() + values(); }
};

/// FLOP of the recurrence of one token, forward, by chunks of Q tokens: for each value head
/// 6 dk dv for reading, correcting and writing the state, and 2 Q (dk + dv) inside the chunk
/// (arXiv:2412.06464, section 3.3).
double delta_flops(const DeltaShape& s);
/// Bytes of one token through memory, forward: columns in and out in 16 bit, a state for each chunk
/// in 32 bit, written and read.
double delta_bytes(const DeltaShape& s);

}  // namespace lockstep
