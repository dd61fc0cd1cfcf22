// Blocks of diffusion transformers over two streams of tokens, an image's patches and a text's
// words, that attend together and have weights of their own (MMDiT: Esser et al. 2024,
// arXiv:2403.03206, section 4), and blocks that modulation scales and shifts.
// Source: JointTransformerBlock and FluxTransformerBlock in github:huggingface/diffusers.
//
// A sequence is both streams, one behind the other: each token meets the weights of one stream, so
// that rows, FLOP and what is saved are those of one encoder's block over all tokens, and the other
// stream's weights are beside them. What modulates runs once an image.
#include <array>

#include "models/spec/blocks.hpp"

namespace lockstep {

namespace {

// Behind those that have names.
constexpr Mixer kJoint{5}, kClosing{6}, kModulated{7};
constexpr int kMostVectors = 64;

MixerNumbers& mixer_numbers(TransformerShape& m, Mixer mixer) {
  return m.mixers[static_cast<std::size_t>(mixer)];
}
int vectors_of(const TransformerShape& m, Mixer mixer) { return m.numbers(mixer)[0]; }
// NOLINTBEGIN(google-readability-casting): how the analyser writes kOf, which has no name
template <Mixer kOf>
constexpr std::array kModulation{
    MixerMember{
        .key = "vectors",
        .required = true,
        .low = 1,
        .high = kMostVectors,
        .sentence =
            "As wide as the residual stream, that modulation makes for each stream of a layer",
        .number = [](TransformerShape& m) -> int& { return mixer_numbers(m, kOf)[0]; }},
    MixerMember{.key = "shared_modulation",
                .low = 0,
                .high = 1,
                .sentence =
                    "1: one product modulates all layers, whose weights are among the model's "
                    "other_parameters (FLUX.2); default: 0",
                .number = [](TransformerShape& m) -> int& { return mixer_numbers(m, kOf)[1]; }}};
// NOLINTEND(google-readability-casting)
constexpr std::array kJointMembers = kModulation<kJoint>;
constexpr std::array kModulatedMembers = kModulation<kModulated>;

/// A product with its biases: `vectors` of the residual stream out of one that says time and text,
/// for each layer of `mixer`.
double modulation(const TransformerShape& m, Mixer mixer, int vectors) {
  const double h = m.hidden;
  return m.numbers(mixer)[1] > 0 ? 0 : vectors * h * (h + 1);
}

/// Attention of one stream over all tokens. Its norms have no weights: modulation scales them.
void add_stream_attention(const TransformerShape& m, const KindShape& k, Layer& out) {
  out.small = 0;
  kAttentionMixer.add(m, k, out);
}

double product_weights(const Layer& layer) {
  double sum = 0;
  for_each_product(layer, [&](const Product& p) { sum += p.weights(); });
  return sum;
}

void add_joint(const TransformerShape& m, const KindShape& k, Layer& out) {
  add_stream_attention(m, k, out);
  const double h = m.hidden, f = k.ffn, gates = m.gated ? 2 : 1;
  const double mlp = f > 0 ? (gates + 1) * h * f + (m.biases ? gates * f + h : 0) : 0;
  out.small +=
      product_weights(out) + out.small + mlp + modulation(m, kJoint, 2 * vectors_of(m, kJoint));
}

/// The last layer, behind which nobody reads the text: it gives queries, keys and values alone, and
/// two vectors modulate it. Its rows are taken for those of the others.
void add_closing(const TransformerShape& m, const KindShape& k, Layer& out) {
  add_stream_attention(m, k, out);
  constexpr int kOfText = 2;
  const double h = m.hidden, projection = static_cast<double>(k.heads) * k.value_dim * h;
  out.small += product_weights(out) - projection + out.small - (m.biases ? h : 0) +
               modulation(m, kJoint, vectors_of(m, kJoint) + kOfText);
}

void add_modulated(const TransformerShape& m, const KindShape& k, Layer& out) {
  add_stream_attention(m, k, out);
  // One product, with one bias, gives what attention and MLP give beside each other.
  out.small += modulation(m, kModulated, vectors_of(m, kModulated)) -
               (k.parallel && m.biases ? static_cast<double>(m.hidden) : 0);
}

std::vector<SharedParts> joint_parts(const TransformerShape& m, const KindShape& k) {
  return kAttentionMixer.shared(m, k);
}

}  // namespace

extern const MixerKind kJointAttentionMixer, kClosingAttentionMixer, kModulatedAttentionMixer;

constinit const MixerKind kJointAttentionMixer{
    .mixer = kJoint,
    .name = "joint_attention",
    .add = add_joint,
    .sentence = "Two streams of tokens with weights of their own that attend together (MMDiT)",
    .members = kJointMembers,
    .known = [](const TransformerShape& m) { return vectors_of(m, kJoint) > 0; },
    .shared = joint_parts};

constinit const MixerKind kClosingAttentionMixer{.mixer = kClosing,
                                                 .name = "closing_joint_attention",
                                                 .add = add_closing,
                                                 .shared = joint_parts,
                                                 .numbers_of = &kJointAttentionMixer};

constinit const MixerKind kModulatedAttentionMixer{
    .mixer = kModulated,
    .name = "modulated_attention",
    .add = add_modulated,
    .sentence = "Attention over one stream whose norms modulation scales and shifts (Flux)",
    .members = kModulatedMembers,
    .known = [](const TransformerShape& m) { return vectors_of(m, kModulated) > 0; },
    .shared = joint_parts};

}  // namespace lockstep
