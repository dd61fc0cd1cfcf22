// Reads the shapes of language models.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/spec/blocks.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr Interval kWeightsBeside{0, 1e12};

void declare_experts(const DeclaredMembers& member, ExpertShape& out) {
  constexpr int kMostExperts = 65'536;
  member.required("count", out.count, 1, kMostExperts, "Routed experts of a layer");
  member.required("per_token", out.per_token, 1, kMostExperts,
                  "Routed experts that a token goes to");
  member.required("ffn", out.ffn, 1, kMaxWidth, "Width of one expert");
  member.optional("shared_ffn", out.shared_ffn, 0, kMaxWidth,
                  "Width of the MLP that every token takes beside them; default: 0");
  member.optional("leading_dense", out.leading_dense, 0, kMaxLayers,
                  "Layers before the first with experts; default: 0");
  member.optional("interval", out.interval, 1, kMaxLayers,
                  "Of the layers after those every n-th has experts; default: 1");
  member.optional("latent", out.latent, 0, kMaxWidth,
                  "Width of what experts take and return, between a product before their dispatch "
                  "and one behind their sum; default: 0, that of the residual stream");
  member.optional("gated_shared", out.gated_shared,
                  "A gate of one column weighs what every token takes");
  if (const JsonCursor* from = member.object(); from != nullptr && out.per_token > out.count) {
    from->at("per_token").fail("at most " + std::to_string(out.count) + " (count)");
  }
}

void declare_latent_attention(const DeclaredMembers& member, TransformerShape& out) {
  LatentAttention& l = out.latent;
  member.optional("query_rank", l.query_rank, 0, kMaxWidth,
                  "Width of the compressed query; default: 0, not compressed");
  member.required("key_value_rank", l.key_value_rank, 1, kMaxWidth,
                  "Width of compressed keys and values");
  member.required("nope_dim", l.nope_dim, 1, kMaxWidth,
                  "Width of a head's query and key without position");
  member.required("rope_dim", l.rope_dim, 0, kMaxWidth,
                  "The same with position, one key for all heads");
  member.required("value_dim", l.value_dim, 1, kMaxWidth, "Width of a head's value");
  if (member.object() == nullptr) return;
  out.kv_heads = out.heads;
  out.head_dim = (l.nope_dim + l.rope_dim + l.value_dim) / 2;
}

/// The object of a mixer's numbers.
void declare_mixer(const DeclaredMembers& member, const MixerKind& kind, TransformerShape& out) {
  for (const MixerMember& one : kind.members) {
    if (one.flag != nullptr) {
      member.optional(one.key, one.flag(out), one.sentence);
    } else if (one.required) {
      member.required(one.key, one.number(out), one.low, one.high, one.sentence);
    } else {
      member.optional(one.key, one.number(out), one.low, one.high, one.sentence);
    }
  }
  if (member.object() == nullptr || kind.fault == nullptr) return;
  if (const std::optional<MixerFault> fault = kind.fault(out)) {
    const JsonCursor at = fault->key.empty() ? *member.object() : member.object()->at(fault->key);
    at.fail(fault->allowed);
  }
}

void declare_tower(const DeclaredMembers& member, VisionTower& out) {
  member.required("layers", out.layers, 1, kMaxLayers, "Layers");
  member.required("hidden", out.hidden, 1, kMaxWidth, "Width of its stream");
  member.required("heads", out.heads, 1, kMaxHeads, "Heads, a divisor of its width");
  member.required("ffn", out.ffn, 1, kMaxWidth, "Width of its MLP");
  constexpr int kMostPatches = 1 << 17;
  member.required("patches", out.patches, 1, kMostPatches, "Patches of an image");
  member.optional("gated", out.gated, "Three MLP matrices instead of two");
  const JsonCursor* from = member.object();
  if (from == nullptr || out.hidden % out.heads == 0) return;
  const std::optional<JsonCursor> heads = from->find("heads");
  (heads ? *heads : from->at("hidden"))
      .fail("heads that divide the width of the tower; here " + std::to_string(out.heads) +
            " and " + std::to_string(out.hidden));
}

void declare_low_rank(const DeclaredMembers& member, LowRankAttention& out) {
  member.required("query_rank", out.query_rank, 1, kMaxWidth, "Width of the compressed query");
  member.optional("output_groups", out.output_groups, 1, kMaxHeads,
                  "Groups of heads whose result goes through a narrow product each, a divisor of "
                  "the heads; default: none, one product of all heads");
  member.optional("output_rank", out.output_rank, 1, kMaxWidth, "Columns of each group");
  const JsonCursor* from = member.object();
  if (from == nullptr || (out.output_groups > 0) == (out.output_rank > 0)) return;
  (void)from->at(out.output_groups > 0 ? "output_rank" : "output_groups");
}

void declare_index(const DeclaredMembers& member, KeyIndex& out) {
  member.required("keys", out.keys, 1, kMaxTokens, "Keys that attention goes over at most");
  member.required("heads", out.heads, 1, kMaxHeads, "Heads of the index");
  member.required("dim", out.dim, 1, kMaxWidth, "Columns of each of them");
  member.optional("block", out.block, 1, kMaxTokens,
                  "Keys that are scored and chosen together; default: 1");
  member.optional("shared", out.shared,
                  "Takes the choice of a layer before it and has no index of its own");
}

void declare_convolution(const DeclaredMembers& member, ConvolutionShape& out) {
  constexpr int kMostSide = 64;
  member.required("in", out.in, 1, kMaxWidth, "Channels of its input");
  member.required("out", out.out, 1, kMaxWidth, "Channels of its result");
  member.required("kernel", out.kernel, 1, kMostSide,
                  "Side of the window of the input that each place of the result is made of");
  member.optional("skip", out.skip, 0, kMaxWidth,
                  "Of the input, channels that come from a layer further back; default: 0");
  member.optional("moment", out.moment, 0, kMaxWidth,
                  "Width of the vector that says the moment, added between two; default: 0, none");
  member.optional("halves", out.halves, "The sides of its input are twice as long");
  member.optional("doubles", out.doubles,
                  "The sides of its input are half as long, and are stretched before it");
  member.optional("norm", out.norm, "A norm before it");
  member.optional("activation", out.activation, "An activation before it, behind the norm");
}

std::vector<std::string_view> mixer_names() {
  std::vector<std::string_view> names;
  for (const MixerKind* kind : mixer_kinds()) names.push_back(kind->name);
  return names;
}

/// Where a kind has other tokens or another width than the model's stream.
void declare_own_stream(const DeclaredMembers& member, KindShape& out) {
  constexpr int kMostHalvings = 10;
  member.optional("hidden", out.hidden, 1, kMaxWidth, "Width of its own stream");
  member.optional("tokens", out.tokens, 1, kMaxTokens,
                  "Tokens of a sequence, where they are not the batch's: words beside an image");
  member.optional("halvings", out.halvings, 0, kMostHalvings,
                  "How often both sides of the image are halved, which leaves a quarter of the "
                  "tokens each time; default: 0");
  member.optional("of_source", out.of_source,
                  "A layer of an encoder, whose tokens are batch.source_tokens");
  member.optional("source_tokens", out.source_tokens, 1, kMaxTokens,
                  "Tokens that \"cross\" attends to; default: batch.source_tokens");
  member.optional("source_width", out.source_width, 1, kMaxWidth,
                  "Width of each of them; default: that of the stream");
  member.optional("shared_by", out.shared_by, 1, kMaxLayers,
                  "Layers of this kind that have one set of weights together; default: each has "
                  "its own");
  member.optional("bare_heads", out.bare_heads,
                  "Queries, keys and values have no biases, where other products have");
  member.optional("convolution", out.convolution, out.convolution.kernel > 0,
                  "The convolution that a mixer of that name is, or both of a residual one",
                  declare_convolution);
}

/// Numbers that are left out are those of the model.
void declare_kind(const DeclaredMembers& member, KindShape& out) {
  member.required("letter", out.letter, "Its letter in \"pattern\"");
  member.optional("mixer", out.mixer, mixer_names(),
                  "What lets tokens see each other; default: attention");
  member.optional("heads", out.heads, 1, kMaxHeads, "Query heads");
  member.optional("kv_heads", out.kv_heads, 1, kMaxHeads, "Key and value heads");
  member.optional("head_dim", out.head_dim, 1, kMaxWidth, "Width of a query and a key");
  member.optional("value_dim", out.value_dim, 1, kMaxWidth,
                  "Width of a value; default: that of a key");
  member.optional("latent", out.latent, "Attention is latent, as latent_attention says");
  member.optional("one_projection", out.one_projection, "Keys are values too");
  member.optional("shared_keys", out.shared_keys,
                  "Keys and values are those of the last layer before it that has its own and as "
                  "wide ones");
  member.optional("output_gate", out.output_gate, "A gate for each column of what attention gives");
  member.optional("window", out.window, 1, kMaxTokens,
                  "Tokens that attention looks back; default: all");
  member.optional("chunked", out.chunked, "The window is a chunk that attention does not leave");
  member.optional("bidirectional", out.bidirectional,
                  "Attention sees later tokens too: a layer of an encoder");
  member.optional("cross", out.cross,
                  "Attention over an encoder's result, as long as batch.source_tokens says, behind "
                  "the mixer, or in place of one (Llama 3.2 Vision)");
  member.optional("compression", out.compression, 1, kMaxTokens,
                  "Tokens of which one key is made, seen beside the window; default: none");
  member.optional("index", out.index, out.index.keys > 0,
                  "Attention goes over the keys that an index chooses", declare_index);
  member.optional(
      "distances", out.distances, 0, kMaxTokens,
      "Beside \"bidirectional\": how far a table of distances reaches either way, which "
      "queries and keys are scored against (DeBERTa); default: 0, none");
  member.optional(
      "summaries", out.summaries, 0, kMaxTokens,
      "Beside \"bidirectional\" and a window: tokens of which one key more is made, which "
      "all see (LongT5); default: 0, none");
  member.optional("ffn", out.ffn, 0, kMaxWidth, "Width of its MLP; default: 0, none");
  member.optional("side_rank", out.side_rank, 0, kMaxWidth,
                  "Columns of two thin products beside the mixer, whose result is added to its own "
                  "(LAuReL); default: 0, none");
  member.optional("layer_input", out.layer_input, 0, kMaxWidth,
                  "Columns of an embedding of its own that is gated and added behind it (Gemma 4); "
                  "default: 0, none");
  member.optional("experts", out.experts, "Experts in place of an MLP");
  member.optional("parallel", out.parallel,
                  "Mixer and MLP read the same input, and one sum takes both results");
  declare_own_stream(member, out);
}

void require_known_stream(const JsonCursor& from, const KindShape& kind) {
  const bool convolves = info(kind.mixer).convolves;
  if (convolves && kind.convolution.kernel == 0) (void)from.at("convolution");
  if (!convolves && kind.convolution.kernel > 0) {
    from.at("convolution").fail("no such key, unless the mixer is a convolution");
  }
  if (convolves && (kind.cross || kind.ffn > 0 || kind.experts || kind.hidden > 0)) {
    from.at("mixer").fail(R"(a convolution has no "cross", "ffn", "experts" or "hidden")");
  }
  const ConvolutionShape& c = kind.convolution;
  if (convolves && (c.halves && c.doubles)) {
    from.at("convolution").at("doubles").fail("false beside \"halves\"");
  }
  if (convolves && c.skip >= c.in) {
    from.at("convolution").at("skip").fail("less than \"in\", " + std::to_string(c.in));
  }
  if (!kind.cross && (kind.source_tokens > 0 || kind.source_width > 0)) {
    from.at(kind.source_tokens > 0 ? "source_tokens" : "source_width")
        .fail("no such key, unless \"cross\" is true");
  }
  if (kind.tokens > 0 && kind.halvings > 0) from.at("halvings").fail("0 beside \"tokens\"");
  if (kind.of_source && (kind.tokens > 0 || kind.halvings > 0)) {
    from.at("of_source").fail(R"(false beside "tokens" and "halvings")");
  }
}

void require_known_parts(const JsonCursor& from, const KindShape& kind,
                         const TransformerShape& model) {
  const auto needs = [&](bool used, bool there, const char* key, const std::string& what) {
    if (used && !there) from.at(key).fail("no such kind, unless the model has " + what);
  };
  const MixerKind& own = info(kind.mixer);
  const MixerKind& mixer = own.numbers_of != nullptr ? *own.numbers_of : own;
  needs(mixer.known != nullptr, mixer.known != nullptr && mixer.known(model), "mixer",
        "\"" + std::string(mixer.name) + "\"");
  needs(kind.latent, model.latent.key_value_rank > 0, "latent", "\"latent_attention\"");
  needs(kind.experts, model.experts.count > 0, "experts", "\"experts\"");
  if (kind.experts && kind.ffn > 0) from.at("ffn").fail("0, where the kind has experts");
  if (kind.experts && kind.shared_by > 1) {
    from.at("shared_by").fail("1, where the kind has experts");
  }
  if ((kind.compression > 0 || kind.chunked) && kind.window == 0) (void)from.at("window");
  if (kind.chunked && (kind.compression > 0 || kind.index.keys > 0)) {
    from.at("chunked").fail("false beside compressed or chosen keys");
  }
  if (kind.bidirectional && kind.index.keys > 0) {
    from.at("bidirectional").fail("false beside an index");
  }
  const bool both_ways = kind.bidirectional || model.bidirectional;
  if (kind.distances > 0 && (!both_ways || kind.mixer != Mixer::attention)) {
    from.at("distances").fail("0, unless the kind is attention that is bidirectional");
  }
  if (kind.summaries > 0 &&
      (!both_ways || kind.window == 0 || kind.chunked || kind.mixer != Mixer::attention)) {
    from.at("summaries").fail("0, unless the kind is attention that is bidirectional in a window");
  }
  if (kind.cross && kind.latent) {
    from.at("cross").fail("false, where attention is latent");
  }
  if (kind.shared_keys && (kind.latent || kind.index.keys > 0 || kind.compression > 0 ||
                           model.low_rank.query_rank > 0 || kind.mixer != Mixer::attention)) {
    from.at("shared_keys").fail("false, unless the kind is plain attention");
  }
  if (kind.side_rank > 0 && kind.mixer == Mixer::none) {
    from.at("side_rank").fail("0, where the kind has no mixer");
  }
  if (kind.parallel && (kind.ffn == 0 || kind.mixer == Mixer::none || kind.cross)) {
    from.at("parallel").fail("false, unless the kind is one mixer and an MLP");
  }
  require_known_stream(from, kind);
  const KindShape whole = complete_kind(model, kind);
  if (whole.heads % whole.kv_heads != 0) {
    const std::optional<JsonCursor> kv_heads = from.find("kv_heads");
    (kv_heads ? *kv_heads : from.at("heads"))
        .fail("heads that are a multiple of the key-value heads; here " +
              std::to_string(whole.heads) + " and " + std::to_string(whole.kv_heads));
  }
}

/// Kinds that are written out replace those that there are.
void read_kinds(const JsonCursor& from, TransformerShape& out) {
  out.kinds.clear();
  for (const JsonCursor& one : from.elements(kMostKinds)) {
    KindShape kind;
    declare_kind({one, Extent::whole}, kind);
    one.finish();
    const auto same = [&](const KindShape& known) { return known.letter == kind.letter; };
    if (kind.letter.size() != 1 || std::ranges::any_of(out.kinds, same)) {
      one.at("letter").fail("one letter, that no other kind has");
    }
    require_known_parts(one, kind, out);
    out.kinds.push_back(std::move(kind));
  }
  if (out.kinds.empty()) from.fail("an array with a kind at least");
}

/// What letters of a pattern stand for.
struct Alphabet {
  std::string letters, words;
};
Alphabet alphabet_of(const TransformerShape& model) {
  if (model.kinds.empty()) {
    return {std::string(kPatternLetters), "M (Mamba), * (attention), - (MLP) and E (experts)"};
  }
  Alphabet out{{}, "letters of \"kinds\" ("};
  for (const KindShape& kind : model.kinds) {
    out.words += (out.letters.empty() ? "" : ", ") + kind.letter;
    out.letters += kind.letter;
  }
  out.words += ")";
  return out;
}

/// A layer that has keys of its own is before each that takes them from another.
void require_lenders(const JsonCursor& from, const TransformerShape& model) {
  if (model.kinds.empty()) return;
  std::vector<KindShape> lenders;
  for (int layer = 0; layer < model.layers; ++layer) {
    const KindShape one = shape_of(model, model.kind(layer));
    if (one.mixer == Mixer::attention && !one.shared_keys) lenders.push_back(one);
    if (!one.shared_keys) continue;
    const bool lent = std::ranges::any_of(lenders, [&](const KindShape& lender) {
      return lender.kv_heads == one.kv_heads && lender.head_dim == one.head_dim &&
             lender.value_dim == one.value_dim;
    });
    if (!lent) {
      from.fail("a layer with as many keys and values of its own before " + one.letter +
                ", whose keys are shared");
    }
  }
}

/// A letter for each layer.
void read_pattern(const JsonCursor& from, TransformerShape& out) {
  const std::string text = from.string();
  const auto [letters, words] = alphabet_of(out);
  if (text.find_first_not_of(letters) != std::string::npos) {
    from.fail(words + ", one for each layer");
  }
  if (std::ssize(text) != out.layers) {
    from.fail(std::to_string(out.layers) + " letters, one for each of \"layers\"");
  }
  const auto needs = [&](char letter, bool there, std::string_view what) {
    if (!out.kinds.empty() || there || text.find(letter) == std::string::npos) return;
    from.fail("no " + std::string(1, letter) + ", unless the model has \"" + std::string(what) +
              "\"");
  };
  needs('M', out.mamba.heads > 0, "mamba");
  needs('E', out.experts.count > 0, "experts");
  out.pattern = text;
  require_lenders(from, out);
}

void declare_attention(const DeclaredMembers& member, TransformerShape& out) {
  const JsonCursor* from = member.object();
  const bool whole = from != nullptr && member.extent() == Extent::whole;
  member.required("heads", out.heads, 1, kMaxHeads, "Query heads");
  if (whole) out.kv_heads = out.heads;
  member.optional("kv_heads", out.kv_heads, 1, kMaxHeads,
                  "Key and value heads; default: as many as heads");
  if (whole) out.head_dim = out.hidden / out.heads;
  member.optional("head_dim", out.head_dim, 1, kMaxWidth,
                  "Width of a head; default: hidden / heads");
  if (from != nullptr && out.head_dim < 1) {
    from->at("heads").fail("at most \"hidden\", " + std::to_string(out.hidden) +
                           ", where \"head_dim\" is left out");
  }
}

/// How a layer differs from the plain one of widths, norms and positions.
void declare_blocks(const DeclaredMembers& member, TransformerShape& out) {
  member.optional("experts", out.experts, out.experts.count > 0,
                  "Mixture of experts in place of the MLP", declare_experts);
  member.optional("latent_attention", out, out.latent.key_value_rank > 0,
                  "Multi-head latent attention: queries, keys and values out of compressed vectors",
                  declare_latent_attention);
  member.optional("activation_traffic", out.activation_traffic, kRatio,
                  "Memory traffic of the activation over that of SwiGLU or GELU; default: 1");
  member.optional("window", out.window, 1, kMaxTokens,
                  "Tokens that windowed attention looks back; default: no layer is windowed");
  member.optional("window_interval", out.window_interval, 1, kMaxLayers,
                  "Of every n layers the first window_layers are windowed; default: 1, all");
  member.optional(
      "window_layers", out.window_layers, 1, kMaxLayers,
      "How many of every window_interval layers are windowed (Gemma 3: 5 of 6); default: 1");
  member.optional("chunked", out.chunked,
                  "Windows are chunks of the sequence that attention does not leave (Llama 4)");
  member.optional("bidirectional", out.bidirectional,
                  "An encoder: attention sees later tokens too");
  member.optional("parallel", out.parallel,
                  "Attention and MLP read the same input, and one sum takes both results");
  member.optional("separate_norms", out.separate_norms,
                  "Parallel attention and MLP have a norm each (GPT-NeoX)");
  member.optional("predicted_tokens", out.predicted_tokens, 0, 64,
                  "Further tokens that are predicted, by a layer and the output projection each "
                  "(DeepSeek-V3: 1); default: 0");
  for (const MixerKind* kind : mixer_kinds()) {
    if (kind->known == nullptr) continue;
    member.optional(kind->name, out, kind->known(out), kind->sentence,
                    [kind](const DeclaredMembers& inner, TransformerShape& model) {
                      declare_mixer(inner, *kind, model);
                    });
  }
  member.optional("low_rank", out.low_rank, out.low_rank.query_rank > 0,
                  "Plain attention with compressed queries, and maybe its result in groups through "
                  "narrow products",
                  declare_low_rank);
  member.optional("residual_streams", out.residual_streams, 1, 64,
                  "Residual streams that blocks read from and write to (hyper-connections); "
                  "default: 1");
  member.optional("alternating", out.alternating,
                  "Of the residual streams one goes through a layer, the others are predicted and "
                  "corrected (AltUp)");
  member.optional("vision_parameters", out.vision_parameters, kWeightsBeside,
                  "Weights of a tower that turns images into tokens, stored and trained; without "
                  "batch.images it computes nothing; default: 0");
  member.optional("tower", out.tower, out.tower.layers > 0,
                  "Layers of that tower, whose weights are among vision_parameters", declare_tower);
  member.optional(
      "other_parameters", out.other_parameters, kWeightsBeside,
      "Weights beside the embedding that no layer has and that compute next to nothing: "
      "an embedding's norm, a pooler; default: 0");
}

void declare_kinds(const DeclaredMembers& member, TransformerShape& out) {
  member.optional(
      "kinds", kMostKinds, "A kind of layer; numbers left out are the model's",
      "Kinds of layers, where they differ by more than experts and windows; \"pattern\" has the "
      "letter of one for each layer",
      out.kinds, declare_kind, [&](const JsonCursor& at) { read_kinds(at, out); });
  member.optional(
      "pattern", written_type(R"({"type": "string", "pattern": "^[A-Za-z*-]+$"})"),
      "Of hybrid models: a letter for each layer, which is one block: M Mamba, * "
      "attention, - MLP, E experts; or the letters of \"kinds\"",
      [&](const JsonCursor& at) { read_pattern(at, out); },
      [&] { return std::string_view(out.pattern); });
}

/// Layers that have their weights together are there in full.
void check_shared_layers(const JsonCursor& from, const TransformerShape& model) {
  for (std::size_t i = 0; i < model.kinds.size(); ++i) {
    const KindShape& kind = model.kinds[i];
    const auto layers = std::ranges::count(model.pattern, kind.letter.front());
    if (kind.shared_by <= 1 || layers % kind.shared_by == 0) continue;
    from.at("kinds")
        .elements(kMostKinds)[i]
        .at("shared_by")
        .fail("a divisor of " + std::to_string(layers) + ", its letters in \"pattern\"");
  }
}

/// Rules across members.
void check_model(const JsonCursor& from, const TransformerShape& model) {
  const auto at = [&](std::string_view key) { return from.find(key).value_or(from); };
  if (model.chunked && model.window == 0) (void)from.at("window");
  if (model.bidirectional && model.predicted_tokens > 0) {
    at("predicted_tokens").fail("0, as an encoder predicts no further tokens");
  }
  if (model.alternating && model.residual_streams == 1) {
    from.at("alternating").fail("false, unless the model has \"residual_streams\"");
  }
  if (model.parallel && model.experts.count > 0) {
    at("parallel").fail("false, where the model has experts");
  }
  if (model.separate_norms && !model.parallel && model.kinds.empty()) {
    at("separate_norms").fail("false, unless attention and MLP are parallel");
  }
  if (!model.kinds.empty() && model.pattern.empty()) (void)from.at("pattern");
  if (from.find("kinds")) check_shared_layers(from, model);
  if (!model.pattern.empty() && std::ssize(model.pattern) != model.layers) {
    from.at("layers").fail(std::to_string(model.pattern.size()) + " (letters of its pattern)");
  }
  // Latent attention and kinds of layers have widths of their own.
  const bool plain = model.latent.key_value_rank == 0 && model.kinds.empty();
  const bool derived = from.find("heads") && from.find("hidden") && !from.find("head_dim");
  if (plain && derived && model.head_dim * model.heads < model.hidden &&
      model.head_dim == model.hidden / model.heads) {
    from.at("heads").fail("a divisor of \"hidden\", " + std::to_string(model.hidden) +
                          ", where \"head_dim\" is left out");
  }
  if (model.heads % model.kv_heads == 0) return;
  const std::optional<JsonCursor> kv_heads = from.find("kv_heads");
  const JsonCursor wrong = kv_heads ? *kv_heads : from.at("heads");
  wrong.fail(kv_heads ? "a divisor of " + std::to_string(model.heads) + " (heads)"
                      : "a multiple of " + std::to_string(model.kv_heads) + " (kv_heads)");
}

}  // namespace

void declare_model(const DeclaredMembers& member, TransformerShape& out) {
  member.optional("name", out.name, "As reports call it");
  member.optional("about", text_type(), "What it is",
                  [](const JsonCursor& at) { (void)at.string(); });
  member.required("layers", out.layers, 1, kMaxLayers, "Decoder layers");
  member.required("hidden", out.hidden, 1, kMaxWidth, "Width of the residual stream");
  declare_attention(member, out);
  member.required("ffn", out.ffn, 1, kMaxWidth, "Width of the MLP");
  member.required("vocabulary", out.vocabulary, 1, kMaxVocabulary,
                  "Rows of the embedding, after padding");
  member.optional("table_width", out.table_width, 1, kMaxWidth,
                  "Columns of the tables of words and positions, where products among "
                  "other_parameters bring them to the width of the layers (ALBERT); default: that "
                  "width");
  member.optional("last_norm", out.last_norm,
                  "A norm behind the last layer; default: true (false: Marian, OPT 350M)");
  member.optional("gated", out.gated, "SwiGLU or GeGLU: three MLP matrices instead of two");
  member.optional("tied", out.tied, "Input embedding and output projection share weights");
  member.optional("learned_positions", out.learned_positions, "A learned position table");
  member.optional("max_positions", out.max_positions, 0, kMaxTokens,
                  "Rows of the learned position table");
  member.optional("biases", out.biases, "Matrices have biases");
  member.optional("rotary", out.rotary, "Rotary position embedding");
  declare_blocks(member, out);
  declare_kinds(member, out);
  if (member.object() != nullptr) check_model(*member.object(), out);
}

}  // namespace lockstep
