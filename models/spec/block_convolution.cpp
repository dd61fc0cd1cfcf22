// Blocks of convolutional UNets (Ronneberger et al. 2015, arXiv:1505.04597; Rombach et al. 2021,
// arXiv:2112.10752): a convolution, between resolutions or beside attention, and two of them with a
// sum around them, in which a vector says the moment.
// Source: ResnetBlock2D, Downsample2D, Upsample2D and UNet2DConditionModel in
// github:huggingface/diffusers.
//
// A token is a place of the image at the layer's resolution. A convolution is a product over the
// places of its window (implicit GEMM), which memory holds once. What gives the moment runs once an
// image: its weights are counted, and nothing else.
#include "models/spec/blocks.hpp"

namespace lockstep {
namespace {

// Behind those that have names, in the list.
constexpr Mixer kConvolution{8}, kResidual{9};

constexpr ProductNames kConvolve{"convolution", "convolution.input_gradient",
                                 "convolution.weight_gradient"};
constexpr ProductNames kShortcut{"shortcut", "shortcut.input_gradient", "shortcut.weight_gradient"};
constexpr double kHalfBytes = 2;

/// A product in 16 bit whatever the recipe, and its biases.
void add_product(const ProductNames& names, double in, double out, double kernel, double inputs,
                 Layer& layer) {
  const double places = kernel * kernel;
  layer.rows.emplace_back(Product{.names = names,
                                  .in = {.whole = places * in},
                                  .out = {.whole = out},
                                  .ways = Ways::none,
                                  .half = true,
                                  .places = places,
                                  .inputs = inputs});
  layer.small += out;
}

/// A norm over groups of channels and one of a block's sums.
void add_norm(double channels, double inputs, Layer& layer) {
  layer.rows.emplace_back(Kernel{.name = "norm_residual",
                                 .columns = {.whole = inputs * channels},
                                 .bytes = 0.5,
                                 .kernels = 2,
                                 .recomputed = Recomputed::norm,
                                 .or_recomputed = Recomputed::norm,
                                 .ways = Ways::none,
                                 .traffic = Traffic::norm_residual});
  layer.small += 2 * channels;
  layer.saved.push_back({.columns = inputs * channels});
}

/// SiLU, which keeps what went into it.
void add_activation(const TransformerShape& m, double channels, double inputs, Layer& layer) {
  layer.rows.emplace_back(Kernel{.name = "activation",
                                 .columns = {.whole = 2 * inputs * channels},
                                 .bytes = m.activation_traffic,
                                 .recomputed = Recomputed::activation,
                                 .or_recomputed = Recomputed::activation,
                                 .ways = Ways::none,
                                 .traffic = Traffic::activation});
  layer.saved.push_back({.columns = inputs * channels, .recomputed = Recomputed::norm});
}

/// What a convolution reads, where no norm before it has kept it.
void save_operand(double channels, Layer& layer) {
  layer.saved.push_back(
      {.columns = channels, .keep = Keep::trained_operand, .recomputed = Recomputed::activation});
}

/// Two tensors side by side in a new one, or each place of an image four times: read, written.
void add_copy(std::string_view name, double read, double written, Layer& layer) {
  layer.rows.emplace_back(Kernel{
      .name = name, .columns = {.whole = read + written}, .bytes = kHalfBytes, .ways = Ways::none});
}

void add_convolution(const TransformerShape& m, const KindShape& k, Layer& out) {
  const ConvolutionShape& c = k.convolution;
  const double inputs = c.inputs(), in = c.in;
  out.width = c.out;
  out.input = inputs * in;
  if (c.norm) add_norm(in, inputs, out);
  if (c.activation) add_activation(m, in, inputs, out);
  if (c.doubles) add_copy("upsampling", inputs * in, in, out);
  const double read = c.halves ? inputs : 1;
  add_product(kConvolve, in, c.out, c.kernel, read, out);
  save_operand(read * in, out);
}

void add_residual(const TransformerShape& m, const KindShape& k, Layer& out) {
  const ConvolutionShape& c = k.convolution;
  const double in = c.in, result = c.out;
  out.width = result;
  out.input = in;
  if (c.skip > 0) add_copy("concatenation", in, in, out);
  add_norm(in, 1, out);
  add_activation(m, in, 1, out);
  add_product(kConvolve, in, result, c.kernel, 1, out);
  save_operand(in, out);
  if (c.moment > 0) out.small += (c.moment + 1.0) * result;
  add_norm(result, 1, out);
  add_activation(m, result, 1, out);
  add_product(kConvolve, result, result, c.kernel, 1, out);
  save_operand(result, out);
  if (c.in != c.out) add_product(kShortcut, in, result, 1, 1, out);
}

constexpr std::string_view kWholeImage =
    "convolutions and norms of an image read it across the parts of a rank";
constexpr std::string_view kWholeChannels =
    "convolutions and norms over groups of channels of an image are not cut by channels in any "
    "software";
constexpr std::string_view kSkips =
    "the layers of several resolutions of an image are on one stage, as what goes across a UNet is";

}  // namespace

extern const MixerKind kConvolutionMixer, kResidualMixer;

constinit const MixerKind kConvolutionMixer{.mixer = kConvolution,
                                            .name = "convolution",
                                            .add = add_convolution,
                                            .operations = "convolution upsampling concatenation",
                                            .convolves = true,
                                            .whole_sequence = kWholeImage,
                                            .whole_layer = kWholeChannels,
                                            .one_stage = kSkips,
                                            .capability = "convolution"};

constinit const MixerKind kResidualMixer{.mixer = kResidual,
                                         .name = "residual_convolutions",
                                         .add = add_residual,
                                         .operations = "convolution shortcut concatenation",
                                         .convolves = true,
                                         .whole_sequence = kWholeImage,
                                         .whole_layer = kWholeChannels,
                                         .one_stage = kSkips};

}  // namespace lockstep
