// Reads the shapes of language models.
#include <optional>
#include <string>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

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

void declare_mamba(const DeclaredMembers& member, MambaShape& out) {
  member.required("heads", out.heads, 1, kMaxHeads, "Heads");
  member.required("head_dim", out.head_dim, 1, kMaxWidth, "Columns of a head");
  member.required("groups", out.groups, 1, kMaxHeads,
                  "Groups of heads that share B and C, a divisor of the heads");
  member.required("state", out.state, 1, kMaxWidth, "Width of a head's state");
  member.optional("kernel", out.kernel, 1, 64, "Tokens that the convolution sees; default: 4");
  member.optional("chunk", out.chunk, 1, kMaxTokens,
                  "Tokens that the recurrence's kernels take together; default: 256");
  member.optional("step_rank", out.step_rank, 1, kMaxWidth,
                  "Mamba-1, with head_dim 1 and 1 group: rank of its step sizes (dt_rank)");
  const JsonCursor* from = member.object();
  if (from == nullptr) return;
  if (out.first_generation() && (out.head_dim != 1 || out.groups != 1)) {
    from->fail("a head_dim of 1 and 1 group beside \"step_rank\", as Mamba-1 has");
  }
  if (out.heads % out.groups != 0) {
    from->at("groups").fail("a divisor of " + std::to_string(out.heads) + " (heads)");
  }
}

/// A letter for each layer.
void read_pattern(const JsonCursor& from, TransformerShape& out) {
  const std::string text = from.string();
  const std::size_t wrong = text.find_first_not_of(kPatternLetters);
  if (wrong != std::string::npos) {
    from.fail("M (Mamba), * (attention), - (MLP) and E (experts), one for each layer");
  }
  if (std::ssize(text) != out.layers) {
    from.fail(std::to_string(out.layers) + " letters, one for each of \"layers\"");
  }
  if (text.find('M') != std::string::npos && out.mamba.heads == 0) {
    from.fail("no M, unless the model has \"mamba\"");
  }
  if (text.find('E') != std::string::npos && out.experts.count == 0) {
    from.fail("no E, unless the model has \"experts\"");
  }
  out.pattern = text;
}

}  // namespace

void declare_model(const DeclaredMembers& member, TransformerShape& out) {
  const JsonCursor* from = member.object();
  const bool whole = from != nullptr && member.extent() == Extent::whole;
  member.optional("name", out.name, "As reports call it");
  member.optional("about", text_type(), "What it is",
                  [](const JsonCursor& at) { (void)at.string(); });
  member.required("layers", out.layers, 1, kMaxLayers, "Decoder layers");
  member.required("hidden", out.hidden, 1, kMaxWidth, "Width of the residual stream");
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
  member.required("ffn", out.ffn, 1, kMaxWidth, "Width of the MLP");
  member.required("vocabulary", out.vocabulary, 1, kMaxVocabulary,
                  "Rows of the embedding, after padding");
  member.optional("gated", out.gated, "SwiGLU or GeGLU: three MLP matrices instead of two");
  member.optional("tied", out.tied, "Input embedding and output projection share weights");
  member.optional("learned_positions", out.learned_positions, "A learned position table");
  member.optional("max_positions", out.max_positions, 0, kMaxTokens,
                  "Rows of the learned position table");
  member.optional("biases", out.biases, "Matrices have biases");
  member.optional("rotary", out.rotary, "Rotary position embedding");
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
  member.optional("predicted_tokens", out.predicted_tokens, 0, 64,
                  "Further tokens that are predicted, by a layer and the output projection each "
                  "(DeepSeek-V3: 1); default: 0");
  member.optional("mamba", out.mamba, out.mamba.heads > 0,
                  "The mixers of a hybrid model, Mamba-2 unless step_rank is there", declare_mamba);
  member.optional("pattern", written_type(R"({"type": "string", "pattern": "^[M*E-]+$"})"),
                  "Of hybrid models: a letter for each layer, which is one block: M Mamba, * "
                  "attention, - MLP, E experts",
                  [&](const JsonCursor& at) { read_pattern(at, out); });
  if (from == nullptr) return;
  if (!out.pattern.empty() && std::ssize(out.pattern) != out.layers) {
    from->at("layers").fail(std::to_string(out.pattern.size()) + " (letters of its pattern)");
  }
  if (out.heads % out.kv_heads != 0) {
    const std::optional<JsonCursor> kv_heads = from->find("kv_heads");
    const JsonCursor wrong = kv_heads ? *kv_heads : from->at("heads");
    wrong.fail(kv_heads ? "a divisor of " + std::to_string(out.heads) + " (heads)"
                        : "a multiple of " + std::to_string(out.kv_heads) + " (kv_heads)");
  }
}

}  // namespace lockstep
