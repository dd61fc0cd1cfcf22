/// The blocks that layers consist of, each declared in one place: a mixer adds its rows to a layer,
/// and so do an MLP and experts. A new mixer is a function in a file of its own and a row here.
#pragma once

#include <span>
#include <string_view>

#include "models/spec/layer.hpp"

namespace lockstep {

struct MixerKind {
  Mixer mixer;
  std::string_view name;  ///< in scenarios
  /// Adds rows, saved tensors, the cache and weights beside products, norms before it left out.
  void (*add)(const TransformerShape& m, const KindShape& kind, Layer& out);
  bool recurrent;  ///< passes a state along the sequence
};
std::span<const MixerKind> mixer_kinds();
const MixerKind& info(Mixer mixer);

/// Plain, windowed, compressed and latent attention, with or without an index.
void add_attention(const TransformerShape& m, const KindShape& kind, Layer& out);
/// What chooses the keys of a layer that has an index of its own.
void add_index(const TransformerShape& m, const KindShape& kind, Layer& out);
/// Mamba of both generations; the state of a head stays on its tensor-parallel rank.
void add_mamba(const TransformerShape& m, const KindShape& kind, Layer& out);
/// A gated delta net; the state of a head stays on its tensor-parallel rank.
void add_delta(const TransformerShape& m, const KindShape& kind, Layer& out);

/// Two products (three matrices where gated) of inner width `ffn`, and the activation between them.
void add_mlp(const TransformerShape& m, double ffn, Layer& out);
/// Router, dispatch, the experts' products, combine, and the MLP that all tokens share. The experts
/// of a rank share its rows evenly; the fullest rank has as many more as expert_load() says.
void add_experts(const TransformerShape& m, Layer& out);

}  // namespace lockstep
