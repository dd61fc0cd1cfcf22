/// One replica of a model that answers prompts: what it holds, how long a prefill takes and how
/// long a decoding step takes.
///
/// A decoding step moves every sequence one token ahead. Its products are those of a layer with one
/// row per sequence (models/layer), so that few sequences pay for reading the weights and many
/// for arithmetic; attention reads the keys and values of all tokens so far:
///
///     T_attention = t0 + max(cache bytes / (e_b HBM), FLOP / (e_a peak)) in every layer.
///
/// Of E experts T sequences meet E (1 - (1 - k / E)^T): weights of others are not read. Latent
/// attention is decoded on compressed vectors (DeepSeek-AI 2024, arXiv:2405.04434, section 2.1.2):
/// the cache of a token is one vector, which every tensor-parallel rank keeps. Tensor-parallel
/// ranks sum up after every block; experts are cut like the rest, or stand whole on a rank each.
/// A GPU draws what its kernels do (models/power/gpu_power.hpp).
/// Leaves out: speculative decoding, data-parallel attention, pipelines of stages.
#pragma once

#include <utility>
#include <vector>

#include "models/collectives/collectives.hpp"
#include "models/generation/engine.hpp"
#include "models/power/gpu_power.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/software.hpp"
#include "models/spec/transformer.hpp"

namespace lockstep {

struct ReplicaSpec {
  TransformerShape model;
  NodeSpec node;
  TransportSpec transport;
  EngineSpec engine;
  int tensor = 1;                ///< GPUs of the replica
  bool expert_parallel = false;  ///< whole experts on each rank, instead of a part of every expert
  Precision weights = Precision::bf16;  ///< of the layers' products; ends stay in 16 bit
  double cache_bytes = 2;               ///< of an element of keys and values
};

/// Where the time of a pass goes, on each GPU of the replica, and what the GPU draws in it.
struct PassTime {
  Seconds products;   ///< matrix products: their weights or their arithmetic
  Seconds attention;  ///< reading keys and values
  Seconds memory;     ///< norms, activations, sampling
  Seconds exchange;   ///< sums over tensor-parallel ranks
  Seconds host;       ///< launching, scheduling
  /// `active` over the whole pass and what each FLOP and byte takes, the card's limit at most; all
  /// 0 of a card whose constants nobody knows.
  ByGpuPart<Joules> drawn{};

  [[nodiscard]] Seconds total() const { return products + attention + memory + exchange + host; }
  PassTime& operator+=(const PassTime& o);
  friend PassTime operator*(double k, const PassTime& t);
};

/// Requires tensor ranks that divide the heads and, where they stand whole, the experts, and a GPU
/// that has the format. Not for several threads at once: it remembers what it has worked out.
class Replica {
 public:
  explicit Replica(ReplicaSpec spec);

  [[nodiscard]] const ReplicaSpec& spec() const { return spec_; }
  /// Weights on a GPU of the replica.
  [[nodiscard]] Bytes weights() const;
  /// Weights of the whole model in the format of generation: what a change of weights moves.
  [[nodiscard]] Bytes model_bytes() const;
  /// Keys and values of one token on a GPU; of windowed layers as if nothing left the window.
  [[nodiscard]] Bytes cache_per_token() const;
  /// Recurrent states of one sequence on a GPU (Mamba-2); 0: the model has none.
  [[nodiscard]] Bytes state_per_sequence() const;
  /// Tokens that the cache holds beside `resident` bytes of others; 0: not even the weights fit.
  [[nodiscard]] double cache_tokens(Bytes resident) const;

  /// Sequences that may be decoded at once where none gets longer than `longest` tokens.
  [[nodiscard]] int most_sequences(double cache, int longest) const;

  /// One decoding step of `sequences` whose mean length is `context` tokens; both at least 1.
  [[nodiscard]] PassTime decode_step(int sequences, double context);
  /// Prompts of `tokens` each in one pass, the first token of every response included.
  [[nodiscard]] PassTime prefill_pass(int prompts, int tokens);

 private:
  [[nodiscard]] PassTime without_attention(int sequences, int tokens, bool prefill) const;
  /// The pass with the fixed part of what it draws, held to the limit.
  [[nodiscard]] PassTime held(PassTime pass) const;

  ReplicaSpec spec_;
  std::vector<std::pair<LayerKind, int>> layers_;  ///< of each kind, in the order of their first
  std::vector<PassTime> decode_;                   ///< but for attention, by sequences
};

}  // namespace lockstep
