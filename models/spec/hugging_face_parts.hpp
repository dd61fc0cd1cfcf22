/// Parts of a Hugging Face config.json that only some families have: mixtures of experts, latent
/// attention, windows, blocks of hybrid models. For models/spec/hugging_face.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "models/spec/blocks.hpp"
#include "models/spec/hugging_face.hpp"
#include "models/spec/transformer.hpp"

namespace lockstep::hugging_face {

// Bounds that no published model leaves.
inline constexpr int kMostLayers = 10'000;
inline constexpr int kMostWidth = 1 << 20;
inline constexpr int kMostHeads = 1 << 16;
inline constexpr int kMostTokens = 1 << 24;
inline constexpr int kMostExperts = 1 << 16;

inline constexpr double kColours = 3;  ///< of an image

/// The integer from `low` to `high`, or `otherwise` where the key is missing or null.
int integer_or(const JsonCursor& config, std::string_view key, int low, int high, int otherwise);
bool flag_or(const JsonCursor& config, std::string_view key, bool otherwise);

bool has_experts(std::string_view type);
/// The experts of a family that has them. Throws InputError for layers with experts that
/// ExpertShape cannot say.
ExpertShape read_experts(const JsonCursor& config, std::string_view type, int layers);

/// Writes down which layers have experts; false where ExpertShape cannot say it.
bool set_layout(const std::vector<bool>& marked, ExpertShape& out);

bool has_latent_attention(std::string_view type);
/// Sets `latent`, `head_dim` and `kv_heads`; `heads` is there already.
void read_latent_attention(const JsonCursor& config, TransformerShape& shape);

bool is_hybrid(std::string_view type);
/// Sets the pattern, the Mamba mixers and the experts of `shape`, whose layers are there already; a
/// layer of Jamba is two blocks.
void read_hybrid(const JsonCursor& config, std::string_view type, TransformerShape& shape);
/// Layers of a family that is_hybrid().
int hybrid_layers(const JsonCursor& config, std::string_view layers_key);

/// Sets the window of `shape`, whose layers are there already; one that the shape cannot say, or
/// that the family's code doesn't know, becomes an assumption.
void read_window(const JsonCursor& config, std::string_view type, TransformerShape& shape,
                 std::vector<std::string>& assumptions);

/// A diffusion model, by the class that its file names. Throws InputError for other classes.
HuggingFaceModel read_diffusers(const JsonCursor& config);
/// A convolutional UNet: its layers in the order in which they run, as kinds. Sets all of `m` but
/// its name.
void read_unet(const JsonCursor& config, TransformerShape& m);

/// The mixer that scenarios call so.
Mixer mixer_called(std::string_view name);
/// Gives layers that are alike one letter; `layers` have none yet.
void set_kinds(const JsonCursor& config, const std::vector<KindShape>& layers,
               TransformerShape& shape);
/// Whose row says that layers of the family have it; null where none does.
const MixerKind* mixer_of_family(std::string_view type);
/// Whose row says that it reads the family's whole file; null where none does.
const MixerKind* mixer_reading(std::string_view type);

/// Reads a decoder layer by layer, by the keys that say what each of them is: gated delta nets,
/// windows and heads by layer, indices of keys, compressed keys, MLPs of several widths, experts in
/// a latent. Sets all of `shape` but its name.
void read_layers(const JsonCursor& config, std::string_view type, TransformerShape& shape,
                 std::vector<std::string>& assumptions);

/// A family that is known, whose layers the keys of another file describe.
struct Likeness {
  std::string_view family;
  std::string_view words;  ///< what its layers have that others do not
};
/// By the keys alone: all that decide are there. Null where no family is like it.
const Likeness* likeness_of(const JsonCursor& config);
/// Whether reading a file as one of that family uses the key; nothing is read with null.
bool is_read_with(const Likeness* likeness, std::string_view key);

/// Keys of a file that nobody asked for and that say something of how large or of what make its
/// layers are, for a line; to be called when all else is read.
std::vector<std::string> unread_sizes(const JsonCursor& config);
/// Whether a value is more than "none": no null, 0, false or empty array.
bool says_something(const JsonCursor& value);

/// Whether a file that has keys of experts says that there are none: a flag, or one or no expert
/// where the family's code then has an MLP.
bool says_dense(const JsonCursor& config, std::string_view type);

/// Weights of a matrix with a bias for each column.
inline double with_bias(double in, double out) { return in * out + out; }

/// Tokens around one that layers of Longformer's kin see: a number, or one for each layer.
std::vector<int> windows_of(const JsonCursor& config, int layers);

/// Families of encoders, alone or with a decoder.
std::span<const std::string_view> encoder_families();
/// Those of them with a decoder, and how one is read. Sets all of the model but its name.
std::span<const std::string_view> pair_families();
void read_pair(const JsonCursor& config, std::string_view type, HuggingFaceModel& model);
/// Reads one of all encoders; of CLIP and SigLIP the image encoder, and the text encoder beside it.
HuggingFaceModel read_encoder(const JsonCursor& config, std::string_view type);

/// Weights of a tower and of what brings its result to the decoder, and its layers.
struct VisionPart {
  double parameters = 0;
  VisionTower tower{};
  int seen = 0;       ///< tokens of an image that layers of the decoder attend to by themselves
  bool whole = true;  ///< false: nobody knows what brings its result to the decoder
};
/// That of `vision`, the file's "vision_config"; `hidden` is the decoder's width. Nothing for a
/// tower of another make.
std::optional<VisionPart> vision_part(const JsonCursor& file, const JsonCursor& vision, int hidden);
/// Of them, those that are a stack of plain layers.
std::optional<VisionPart> plain_tower(const JsonCursor& file, const JsonCursor& vision, int text);
/// What brings a tower's patches, `h` columns each, to a decoder of `text` columns, by the family
/// of the file as a whole.
std::optional<double> projector_weights(const JsonCursor& file, const JsonCursor& vision, double h,
                                        double text);
/// SigLIP's query of its own that attends to all patches, and an MLP, where a file has them.
double vision_pooling(const JsonCursor& vision, double h, double ffn);
/// Its layers, unless they cannot be said: heads that do not divide them, patches that nobody
/// knows.
VisionTower tower_of(double layers, double hidden, int heads, double ffn, double patches);
/// An encoder of sound as Whisper has it: two convolutions, positions and layers.
struct SoundEncoder {
  double layers = 0, hidden = 0, ffn = 0;
  double mels = 0;       ///< numbers that say a moment of sound
  double positions = 0;  ///< rows of their table
};
double audio_encoder_weights(const SoundEncoder& encoder);
/// Weights of the tower of `audio` ("audio_config"), an encoder as Whisper has it, and of what
/// brings its result to a decoder of `hidden` columns. Nothing for one of another make.
std::optional<double> audio_parameters(const JsonCursor& file, const JsonCursor& audio, int hidden);

/// Adds what a file has beside its decoder, which `model` is; what is left out is said.
void add_towers(const JsonCursor& config, HuggingFaceModel& model);
/// Says what a file without parts has beside its decoder under keys that say too little of it.
void say_other_towers(const JsonCursor& config, HuggingFaceModel& model);

/// Of a model that attends nowhere "heads" are those of its states, each so many columns wide: what
/// tensor-parallel ranks share out. Of states of one column they are blocks of columns.
void share_states(int heads, int columns, TransformerShape& m);
/// Columns of a share of the stream's width, up to whole units.
int whole_units(const JsonCursor& config, std::string_view share_key, double usual, int hidden,
                int unit);

// Files of families with a mixer of their own, for the mixer's row: all of `m` but its name.
void read_recurrent(const JsonCursor& config, std::string_view type, TransformerShape& m);
void read_recurrent_gemma(const JsonCursor& config, std::string_view type, TransformerShape& m);
void read_falcon_h1(const JsonCursor& config, std::string_view type, TransformerShape& m);
void read_sambay(const JsonCursor& config, std::string_view type, TransformerShape& m);
void read_xlstm(const JsonCursor& config, std::string_view type, TransformerShape& m);
void read_rwkv(const JsonCursor& config, std::string_view type, TransformerShape& m);
void read_zamba(const JsonCursor& config, std::string_view type, TransformerShape& m);
void read_plamo2(const JsonCursor& config, TransformerShape& m);

/// Families of attention with other keys for layers that differ: GPT-Neo, OpenELM, OLMo, LLaDA.
std::span<const std::string_view> varied_families();
/// Sets all of `m` but its name.
void read_varied(const JsonCursor& config, std::string_view type, TransformerShape& m);

/// MosaicML's families, which have keys of their own.
std::span<const std::string_view> mosaic_families();
/// Sets all of `m` but its name.
void read_mosaic(const JsonCursor& config, std::string_view type, TransformerShape& m);

}  // namespace lockstep::hugging_face
