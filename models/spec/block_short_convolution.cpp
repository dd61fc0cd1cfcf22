// Gated short convolutions (Liquid AI 2025, LFM2): three columns for each of the hidden state, of
// which the product of two is convolved over a few tokens and the third gates the result.
// Source: github:huggingface/transformers:src/transformers/models/lfm2/modeling_lfm2.py.
#include <array>

#include "models/spec/hugging_face_layers.hpp"

namespace lockstep {
namespace {

constexpr ProductNames kConvolutionIn{"convolution_in", "convolution_in.input_gradient",
                                      "convolution_in.weight_gradient"};
constexpr ProductNames kConvolutionOut{"convolution_out", "convolution_out.input_gradient",
                                       "convolution_out.weight_gradient"};

constexpr Mixer kShortConvolution{4};  // behind those that have names
constexpr auto kPlace = static_cast<std::size_t>(kShortConvolution);
constexpr std::array kShortConvolutionMembers{
    MixerMember{.key = "kernel",
                .required = true,
                .low = 1,
                .high = 64,
                .sentence = "Tokens that the convolution sees",
                .number = [](TransformerShape& m) -> int& { return m.mixers[kPlace][0]; },
                .config_key = "conv_L_cache"},
};

/// Both gates and the convolution are taken as one kernel that reads three columns and writes one;
/// backward it reads the gradient too and writes three. The convolution's own FLOP, two for each
/// token that it sees, are left out as those of other short ones are.
void add_short_convolution(const TransformerShape& m, const KindShape& k, Layer& out) {
  constexpr double kColumns = 3, kHalfWord = 2;
  const double h = m.hidden, kernel = m.numbers(k.mixer)[0];
  out.rows.emplace_back(Product{.names = kConvolutionIn,
                                .in = {.whole = h},
                                .out = {.shared = kColumns * h},
                                .in_pieces = true,
                                .adapter = AdapterModule::qkv});
  out.rows.emplace_back(Kernel{.name = "short_convolution",
                               .columns = {.shared = h},
                               .bytes = kHalfWord * (kColumns + 1),
                               .backward = (2 * kColumns + 1) / (kColumns + 1)});
  out.rows.emplace_back(Product{.names = kConvolutionOut,
                                .in = {.shared = h},
                                .out = {.whole = h},
                                .in_pieces = true,
                                .adapter = AdapterModule::projection});
  out.rows.emplace_back(PairExchange{kConvolutionIn, kConvolutionOut});
  out.small += kernel * h + (m.biases ? (kColumns + 2) * h : 0);
  out.saved.push_back({.columns = kColumns * h});
  out.saved.push_back({.columns = h, .keep = Keep::operand, .product = AdapterModule::projection});
  out.cache.state = kernel * h;
}

std::vector<SharedParts> convolution_parts(const TransformerShape& m, const KindShape&) {
  return {{m.hidden, "columns of short convolutions"}};
}

}  // namespace

extern const MixerKind kShortConvolutionMixer;
constinit const MixerKind kShortConvolutionMixer{
    .mixer = kShortConvolution,
    .name = "short_convolution",
    .add = add_short_convolution,
    .operations = "convolution_* short_convolution",
    .sentence = "Gated short convolutions, the mixers of LFM2",
    .members = kShortConvolutionMembers,
    .known = [](const TransformerShape& m) { return m.mixers[kPlace][0] > 0; },
    .whole_sequence = "short convolutions see the tokens before a rank's part",
    .shared = convolution_parts,
    .columns =
        [](const TransformerShape& m) { return m.mixers[kPlace][0] > 0 ? 3.0 * m.hidden : 0; },
    .capability = "short_convolution",
    .families = "lfm2*",
    .read_layers = hugging_face::read_short_convolutions};

}  // namespace lockstep
