/// The blocks that layers consist of, each declared in one place: a mixer adds its rows to a layer,
/// and so do an MLP and experts. A new mixer is a file of its own with its row, and a line of
/// blocks.cpp that lists it: its members in scenarios, config.json of its families, what ranks
/// share out of it, whose operators its rows are and which software can run it follow from that,
/// and the tests over all rows take it. Without a capability it runs on every stack.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/layer.hpp"

namespace lockstep {

class JsonCursor;
namespace hugging_face {
struct LayerDraft;
}

// Bounds of members, which no published model leaves.
inline constexpr int kMostMixerHeads = 1 << 16, kMostMixerColumns = 1 << 20;
inline constexpr int kMostMixerTokens = 1 << 24;

/// A number or a switch of a mixer that all layers of a model share: a member of the object under
/// the mixer's name in a scenario, and a key of config.json.
struct MixerMember {
  std::string_view key;
  bool required = false;
  int low = 0, high = 1;  ///< of a number
  std::string_view sentence;
  int& (*number)(TransformerShape& m) = nullptr;
  bool& (*flag)(TransformerShape& m) = nullptr;  ///< in place of it
  std::string_view config_key = {};
};
/// A rule across members that a model breaks.
struct MixerFault {
  std::string_view key;  ///< empty: of the object as a whole
  std::string allowed;
};
/// Names between blanks, as "delta_* scan": one that ends with * is all names that begin so.
bool is_among(std::string_view names, std::string_view name);
/// Each of them, without its *.
std::vector<std::string_view> each_of(std::string_view names);

/// Parts of which each tensor-parallel rank has as many.
struct SharedParts {
  int parts = 1;
  std::string_view what;
  bool copied = false;  ///< where ranks are a multiple of the parts, too
};

struct MixerKind {
  Mixer mixer;            ///< its place in the list
  std::string_view name;  ///< in scenarios
  /// Adds rows, saved tensors, the cache and weights beside products, norms before it left out.
  void (*add)(const TransformerShape& m, const KindShape& kind, Layer& out) = nullptr;
  /// Of its rows, by the first part of their names, those that recordings and reports count as
  /// recurrences and convolutions (is_among()).
  std::string_view operations = {};
  std::string_view sentence = {};  ///< about the object with its members
  std::span<const MixerMember> members{};
  /// Whether a model says its numbers; null: it has none of its own.
  bool (*known)(const TransformerShape& m) = nullptr;
  std::optional<MixerFault> (*fault)(const TransformerShape& m) = nullptr;
  bool convolves = false;  ///< it is all of its layer, of KindShape::convolution
  /// Why context-parallel ranks cannot share a sequence; empty: they can.
  std::string_view whole_sequence = {};
  /// Why tensor-parallel ranks cannot share a layer, and why it is on one stage with all others.
  std::string_view whole_layer = {}, one_stage = {};
  std::vector<SharedParts> (*shared)(const TransformerShape& m, const KindShape& kind) = nullptr;
  /// Columns that it reads or writes at most, where they are more than a layer's others.
  double (*columns)(const TransformerShape& m) = nullptr;
  std::string_view capability = {};  ///< of software that can run it; empty: all of it can
  /// "model_type" of config.json (is_among()) of decoders that have it in some layers, and keys one
  /// of which says so of another family; `read_layers` sets its numbers and says which layers.
  std::string_view families = {}, family_keys = {};
  void (*read_layers)(hugging_face::LayerDraft& draft) = nullptr;
  /// Families that have keys of their own; `read_model` sets all of `m` but its name.
  std::string_view model_families = {};
  void (*read_model)(const JsonCursor& config, std::string_view type,
                     TransformerShape& m) = nullptr;
  const MixerKind* numbers_of = nullptr;  ///< another mixer, whose numbers it takes
};
/// Other mixers are made from these.
extern const MixerKind kAttentionMixer, kMambaMixer;
std::span<const MixerKind* const> mixer_kinds();
const MixerKind& info(Mixer mixer);
/// The heads, groups or blocks of a layer that so many tensor-parallel ranks cannot share out;
/// nothing: they can share all layers.
std::optional<SharedParts> uneven_parts(const TransformerShape& m, int ranks);
/// Why layers of a kind are on one pipeline stage with all others; empty: they need not be.
std::string_view why_one_stage(const KindShape& kind);
/// The widest of all mixers that a model says numbers of.
double mixer_columns(const TransformerShape& m);

/// What linear recurrences that keep a state of keys x values for each head take for a token when
/// their kernels go by chunks.
struct ChunkedHeads {
  double heads = 0, keys = 0, values = 0;  ///< columns of each head
  double chunk = 0;                        ///< tokens
};
/// Scores inside a chunk and what they make of values, half of both as later tokens don't count; a
/// state that is added to and read. States of chunks go through memory in 32 bit, written and read
/// (Qin et al. 2024, arXiv:2401.04658, algorithm 1).
Scan chunked_scan(const ChunkedHeads& of);

/// Blocks beside each other gather their input once, and scatter one sum.
void join_exchanges(Layer& out);
/// Attention over an encoder's result: another text, of its own length and width.
void add_cross_attention(const TransformerShape& m, const KindShape& kind, Layer& out);
/// An embedding for this layer alone, made of the word and of the first layer's input, which the
/// stream gates (Gemma 3n and 4: github:huggingface/transformers, gemma4/modular_gemma4.py).
void add_layer_input(const TransformerShape& m, const KindShape& kind, Layer& out);
/// Two thin products that read what the mixer reads and whose result is added to its own (LAuReL:
/// Menghani et al. 2024, arXiv:2411.07501, section 2.2).
void add_side_path(const TransformerShape& m, const KindShape& kind, Layer& out);
/// What chooses the keys of a layer that has an index of its own.
void add_index(const TransformerShape& m, const KindShape& kind, Layer& out);

/// Two products (three matrices where gated) of inner width `ffn`, and the activation between them.
void add_mlp(const TransformerShape& m, double ffn, Layer& out);
/// Router, dispatch, the experts' products, combine, and the MLP that all tokens share. The experts
/// of a rank share its rows evenly; the fullest rank has as many more as expert_load() says.
void add_experts(const TransformerShape& m, Layer& out);

}  // namespace lockstep
