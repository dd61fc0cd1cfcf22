// Convolutional UNets of diffusers (Stable Diffusion 1, 2 and XL). Sources: unet_2d_condition.py,
// unet_2d_blocks.py and transformer_2d.py in https://github.com/huggingface/diffusers.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

constexpr std::array<std::string_view, 2> kDownBlocks{"DownBlock2D", "CrossAttnDownBlock2D"};
constexpr std::array<std::string_view, 2> kUpBlocks{"UpBlock2D", "CrossAttnUpBlock2D"};
constexpr std::string_view kUnetLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr int kMostBlocks = 10;
/// Words that CLIP's text encoders read: no file of a UNet says it.
constexpr int kTextWords = 77;
constexpr int kWindow = 3;  ///< of every convolution but projections and shortcuts
/// Keys that change the layers, and are null or false in all UNets of Stable Diffusion.
constexpr std::array<std::string_view, 12> kNotKnown{"class_embed_type",
                                                     "encoder_hid_dim",
                                                     "encoder_hid_dim_type",
                                                     "num_class_embeds",
                                                     "timestep_post_act",
                                                     "time_cond_proj_dim",
                                                     "cross_attention_norm",
                                                     "reverse_transformer_layers_per_block",
                                                     "dual_cross_attention",
                                                     "only_cross_attention",
                                                     "mid_block_only_cross_attention",
                                                     "resnet_skip_time_act"};

/// A stage of one resolution, on the way down and on the way up.
struct UnetBlock {
  int channels = 0, heads = 0, transformers = 0;
  bool down_attends = false, up_attends = false;
};

/// One number for all blocks, or one for each of them.
std::vector<int> numbers_of(const JsonCursor& config, std::string_view key, std::size_t blocks,
                            int most, int otherwise) {
  const std::optional<JsonCursor> at = config.find(key);
  if (!at || at->is_null()) return std::vector<int>(blocks, otherwise);
  if (!at->is_array()) return std::vector<int>(blocks, at->integer(1, most));
  std::vector<int> out;
  for (const JsonCursor& one : at->elements(blocks)) out.push_back(one.integer(1, most));
  if (out.size() != blocks) {
    at->fail(std::to_string(blocks) + " numbers, one for each of \"block_out_channels\"");
  }
  return out;
}

/// Which of the blocks attend.
std::vector<bool> attending(const JsonCursor& config, std::string_view key, std::size_t blocks,
                            std::span<const std::string_view> classes) {
  std::vector<bool> out;
  const JsonCursor at = config.at(key);
  for (const JsonCursor& one : at.elements(blocks)) out.push_back(one.choice(classes) == 1);
  if (out.size() != blocks) {
    at.fail(std::to_string(blocks) + " blocks, as \"block_out_channels\" has");
  }
  return out;
}

std::vector<UnetBlock> read_unet_blocks(const JsonCursor& config) {
  std::vector<UnetBlock> blocks;
  const JsonCursor channels = config.at("block_out_channels");
  for (const JsonCursor& one : channels.elements(kMostBlocks)) {
    blocks.push_back({.channels = one.integer(1, kMostWidth)});
  }
  if (blocks.empty()) channels.fail("the channels of a block at least");
  const std::size_t count = blocks.size();
  // attention_head_dim is the number of heads where no other key says that.
  const std::optional<JsonCursor> own = config.find("num_attention_heads");
  const bool said = own && !own->is_null();
  const std::string_view key = said ? "num_attention_heads" : "attention_head_dim";
  const std::vector<int> heads = numbers_of(config, key, count, kMostHeads, 8);
  const std::vector<int> transformers =
      numbers_of(config, "transformer_layers_per_block", count, kMostLayers, 1);
  const std::vector<bool> down = attending(config, "down_block_types", count, kDownBlocks);
  const std::vector<bool> up = attending(config, "up_block_types", count, kUpBlocks);
  for (std::size_t i = 0; i < count; ++i) {
    UnetBlock& block = blocks[i];
    block.heads = heads[i];
    block.transformers = transformers[i];
    block.down_attends = down[i];
    block.up_attends = up[count - 1 - i];
    if (block.channels % block.heads != 0) {
      config.at(key).fail("heads that divide the channels of their block, " +
                          std::to_string(block.channels));
    }
  }
  return blocks;
}

/// Writes layers down in the order in which they run.
class UnetLayers {
 public:
  UnetLayers(TransformerShape& m, int moment, int text) : m_(m), moment_(moment), text_(text) {}

  void convolution(ConvolutionShape c, int halvings) {
    if (c.kernel == 0) c.kernel = kWindow;
    add("convolution", c, halvings);
    channels_ = c.out;
  }
  void residual(int out, int halvings, int skip = 0) {
    add("residual_convolutions",
        {.in = channels_ + skip, .out = out, .kernel = kWindow, .skip = skip, .moment = moment_},
        halvings);
    channels_ = out;
  }
  /// A projection of the image's places, attention over them and over the words, and back.
  void transformer(const UnetBlock& block, int halvings) {
    const int c = block.channels;
    convolution({.in = c, .out = c, .kernel = 1, .norm = true}, halvings);
    KindShape kind = plain(halvings);
    kind.hidden = c;
    kind.heads = kind.kv_heads = block.heads;
    kind.head_dim = c / block.heads;
    constexpr int kWider = 4;
    kind.ffn = kWider * c;
    kind.cross = true;
    kind.source_tokens = kTextWords;
    kind.source_width = text_;
    kind.bare_heads = true;
    for (int i = 0; i < block.transformers; ++i) add(kind);
    convolution({.in = c, .out = c, .kernel = 1}, halvings);
  }
  /// Remembers what goes across to the way up.
  void keep() { skips_.push_back(channels_); }
  int take() {
    const int channels = skips_.back();
    skips_.pop_back();
    return channels;
  }
  [[nodiscard]] int channels() const { return channels_; }

 private:
  static KindShape plain(int halvings) {
    KindShape kind;
    kind.halvings = halvings;
    return kind;
  }
  void add(std::string_view mixer, const ConvolutionShape& c, int halvings) {
    KindShape kind = plain(halvings);
    for (const MixerKind* one : mixer_kinds()) {
      if (one->name == mixer) kind.mixer = one->mixer;
    }
    kind.convolution = c;
    add(kind);
  }
  void add(KindShape kind) {
    const auto same = [&](const KindShape& known) {
      kind.letter = known.letter;
      return known == kind;
    };
    const auto at = std::ranges::find_if(m_.kinds, same);
    if (at == m_.kinds.end()) {
      kind.letter = kUnetLetters[std::min(m_.kinds.size(), kUnetLetters.size() - 1)];
      m_.kinds.push_back(kind);
    }
    m_.pattern += kind.letter;
  }

  TransformerShape& m_;
  int moment_, text_;
  int channels_ = 0;
  std::vector<int> skips_{};
};

/// Sides of the windows of the convolutions at the ends.
struct EndKernels {
  int first = kWindow, last = kWindow;
};

void add_ways(const std::vector<UnetBlock>& blocks, const std::vector<int>& layers, int in, int out,
              EndKernels kernels, UnetLayers& to) {
  const int last = static_cast<int>(blocks.size()) - 1;
  const auto of = [](int i) { return static_cast<std::size_t>(i); };
  to.convolution({.in = in, .out = blocks[0].channels, .kernel = kernels.first}, 0);
  to.keep();
  for (int i = 0; i <= last; ++i) {
    const UnetBlock& block = blocks[of(i)];
    for (int j = 0; j < layers[of(i)]; ++j) {
      to.residual(block.channels, i);
      if (block.down_attends) to.transformer(block, i);
      to.keep();
    }
    if (i == last) break;
    to.convolution({.in = block.channels, .out = block.channels, .halves = true}, i + 1);
    to.keep();
  }
  to.residual(blocks.back().channels, last);
  to.transformer(blocks.back(), last);
  to.residual(blocks.back().channels, last);
  for (int i = last; i >= 0; --i) {
    const UnetBlock& block = blocks[of(i)];
    for (int j = 0; j <= layers[of(i)]; ++j) {
      to.residual(block.channels, i, to.take());
      if (block.up_attends) to.transformer(block, i);
    }
    if (i > 0) {
      to.convolution({.in = block.channels, .out = block.channels, .doubles = true}, i - 1);
    }
  }
  to.convolution(
      {.in = to.channels(), .out = out, .kernel = kernels.last, .norm = true, .activation = true},
      0);
}

/// What gives the vector of the moment, and for XL that of the image's size and the text's sum.
double moment_parameters(const JsonCursor& config, double sines, double width) {
  double sum = with_bias(sines, width) + with_bias(width, width);
  const std::optional<JsonCursor> more = config.find("addition_embed_type");
  if (!more || more->is_null()) return sum;
  constexpr std::array<std::string_view, 1> kTextAndTime{"text_time"};
  (void)more->choice(kTextAndTime);
  const double in = config.at("projection_class_embeddings_input_dim").integer(1, kMostWidth);
  return sum + with_bias(in, width) + with_bias(width, width);
}

void refuse_unknown(const JsonCursor& config) {
  for (const std::string_view key : kNotKnown) {
    const std::optional<JsonCursor> at = config.find(key);
    if (!at || at->is_null()) continue;
    const bool says_more = at->is_string() || at->is_number() || at->is_array() || at->is_object();
    if (!says_more && !at->boolean()) continue;
    at->fail("null or false, as in all UNets of Stable Diffusion: other layers are not known");
  }
  const auto only = [&](std::string_view key, std::string_view value) {
    const std::array<std::string_view, 1> choices{value};
    const std::optional<JsonCursor> at = config.find(key);
    if (at && !at->is_null()) (void)at->choice(choices);
  };
  only("mid_block_type", "UNetMidBlock2DCrossAttn");
  only("resnet_time_scale_shift", "default");
  only("time_embedding_type", "positional");
}

}  // namespace

void read_unet(const JsonCursor& config, TransformerShape& m) {
  refuse_unknown(config);
  const std::vector<UnetBlock> blocks = read_unet_blocks(config);
  const std::vector<int> layers =
      numbers_of(config, "layers_per_block", blocks.size(), kMostLayers, 2);
  const UnetBlock& first = blocks.front();
  m.hidden = first.channels;
  m.heads = m.kv_heads = first.heads;
  m.head_dim = first.channels / first.heads;
  constexpr int kWider = 4;
  m.ffn = kWider * first.channels;
  m.vocabulary = 1;
  m.tied = m.gated = m.biases = m.bidirectional = true;
  const int moment =
      integer_or(config, "time_embedding_dim", 1, kMostWidth, kWider * first.channels);
  const int text = integer_or(config, "cross_attention_dim", 1, kMostWidth, 1280);
  const int in = integer_or(config, "in_channels", 1, kMostWidth, 4);
  const int out = integer_or(config, "out_channels", 1, kMostWidth, 4);
  UnetLayers to{m, moment, text};
  const EndKernels kernels{.first = integer_or(config, "conv_in_kernel", 1, kMostBlocks, kWindow),
                           .last = integer_or(config, "conv_out_kernel", 1, kMostBlocks, kWindow)};
  add_ways(blocks, layers, in, out, kernels, to);
  m.layers = static_cast<int>(m.pattern.size());
  if (m.layers > kMostLayers || m.kinds.size() > kUnetLetters.size()) {
    config.at("block_out_channels").fail("fewer kinds of layers than this file makes");
  }
  // A row stands in place of a table of words; no file has its weights and the norm behind it.
  const double counted = embedding_parameters(m) + output_parameters(m);
  m.other_parameters = moment_parameters(config, first.channels, moment) - counted;
}

}  // namespace lockstep::hugging_face
