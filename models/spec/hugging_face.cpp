#include "models/spec/hugging_face.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep {
namespace hugging_face {

int integer_or(const JsonCursor& config, std::string_view key, int low, int high, int otherwise) {
  const std::optional<JsonCursor> value = config.find(key);
  return value && !value->is_null() ? value->integer(low, high) : otherwise;
}

bool flag_or(const JsonCursor& config, std::string_view key, bool otherwise) {
  const std::optional<JsonCursor> value = config.find(key);
  return value && !value->is_null() ? value->boolean() : otherwise;
}

namespace {

/// How the families differ in what config.json says, and in what their code fixes.
struct Family {
  std::string_view type;                                   ///< "model_type"
  std::string_view layers, hidden, heads, ffn, positions;  ///< keys
  bool gated, biases, rotary, learned_positions;
  bool tied;              ///< unless "tie_word_embeddings" says otherwise: the default of the code
  int kv_heads;           ///< unless "num_key_value_heads" says; 0: as many as heads
  int head_dim;           ///< unless "head_dim" says; 0: width over heads
  bool parallel = false;  ///< attention and MLP read the same input, unless a flag says otherwise
  bool separate_norms = false;  ///< each through a norm of its own
};
/// What the code of a family has where a part of a file leaves it out; a file as a whole says it.
struct FamilySizes {
  std::string_view type{};
  int layers = 0, hidden = 0, heads = 0, ffn = 0, vocabulary = 0;
};
// Sources: the configuration_*.py of each family in https://github.com/huggingface/transformers.
constexpr std::string_view kLayers = "num_hidden_layers";
constexpr std::string_view kHidden = "hidden_size";
constexpr std::string_view kHeads = "num_attention_heads";
constexpr std::string_view kFfn = "intermediate_size";
constexpr std::string_view kPositions = "max_position_embeddings";
constexpr std::string_view kDenseFfn = "intermediate_size_mlp";
constexpr Family llama_like(std::string_view type, std::string_view ffn = kFfn) {
  return {type, kLayers, kHidden, kHeads, ffn, kPositions, true, false, true, false, false, 0, 0};
}
constexpr Family with(Family family, int kv_heads, int head_dim, bool tied = false) {
  family.kv_heads = kv_heads;
  family.head_dim = head_dim;
  family.tied = tied;
  return family;
}
constexpr Family with_biases(Family family) {
  family.biases = true;
  return family;
}
constexpr Family side_by_side(Family family, bool separate_norms = false) {
  family.parallel = true;
  family.separate_norms = separate_norms;
  return family;
}
constexpr Family ungated(Family family) {
  family.gated = false;
  return family;
}
/// BigScience's and BigCode's, which have GPT-2's names.
constexpr Family like_gpt2(std::string_view type, bool learned_positions) {
  return {type,  "n_layer",         "n_embd", "n_head", "n_inner", "n_positions", false, true,
          false, learned_positions, true,     0,        0};
}
constexpr std::array kFamilies{
    llama_like("llama"),
    with(llama_like("mistral"), 8, 0),
    with(llama_like("mixtral"), 8, 0),
    llama_like("qwen2"),
    llama_like("qwen2_moe"),
    with(llama_like("qwen3"), 0, 128),
    with(llama_like("qwen3_moe"), 4, 0),
    llama_like("deepseek_v2"),
    llama_like("deepseek_v3"),
    llama_like("kimi_k2"),
    with_biases(with(llama_like("gpt_oss"), 8, 64)),
    with(llama_like("llama4", kDenseFfn), 8, 128),
    with(llama_like("llama4_text", kDenseFfn), 8, 128),
    side_by_side(ungated(with_biases(llama_like("gpt_neox"))), true),
    with(llama_like("gemma"), 0, 256, true),
    with(llama_like("gemma2"), 0, 256, true),
    Family{"nemotron_h", kLayers, kHidden, kHeads, kFfn, kPositions, false, false, false, false,
           false, 8, 128},
    Family{"jamba", kLayers, kHidden, kHeads, kFfn, kPositions, true, false, false, false, false, 8,
           0},
    like_gpt2("gpt2", true),
    like_gpt2("gpt_bigcode", true),
    like_gpt2("bloom", false),
    like_gpt2("jais", false),
    with_biases(ungated(llama_like("jais2"))),
    Family{"opt", kLayers, kHidden, kHeads, "ffn_dim", kPositions, false, true, false, true, true,
           0, 0},
    side_by_side(Family{"gptj", "n_layer", "n_embd", "n_head", "n_inner", "n_positions", false,
                        true, true, false, false, 0, 0}),
    side_by_side(ungated(with(llama_like("falcon", "ffn_hidden_size"), 0, 0, true))),
    side_by_side(ungated(with_biases(llama_like("phi")))),
    side_by_side(with(llama_like("cohere"), 0, 0, true)),
    side_by_side(with(llama_like("cohere2"), 0, 0, true)),
    ungated(with_biases(with(llama_like("starcoder2"), 0, 0, true))),
    llama_like("phi3"),
    llama_like("phimoe"),
    llama_like("bitnet"),
    ungated(llama_like("nemotron")),
    ungated(llama_like("arcee")),
    ungated(llama_like("apertus")),
    ungated(llama_like("nanochat")),
    ungated(with_biases(llama_like("persimmon"))),
    side_by_side(Family{"codegen", "n_layer", "n_embd", "n_head", "n_inner", "n_positions", false,
                        true, true, false, false, 0, 0}),
    Family{"telechat", "n_layer", kHidden, "n_head", "ffn_hidden_size", "training_seqlen", true,
           false, true, false, false, 0, 0},
    Family{"xglm", "num_layers", "d_model", "attention_heads", "ffn_dim", kPositions, false, true,
           false, false, true, 0, 0},
    Family{"biogpt", kLayers, kHidden, kHeads, kFfn, kPositions, false, true, false, true, true, 0,
           0},
    llama_like("qwen"),
    Family{"chatglm", "num_layers", kHidden, kHeads, "ffn_hidden_size", "seq_length", true, false,
           true, false, false, 0, 0},
};

/// The names that transformers' attribute_map takes for each other.
constexpr std::array kSynonyms{
    std::pair<std::string_view, std::string_view>{"n_layer", kLayers},
    std::pair<std::string_view, std::string_view>{"n_embd", "n_embed"},
    std::pair<std::string_view, std::string_view>{"n_embd", kHidden},
    std::pair<std::string_view, std::string_view>{"n_head", kHeads},
    std::pair<std::string_view, std::string_view>{"vocab_size", "padded_vocab_size"},
};
/// The name that a file has for `key`; `key` where it has none.
std::string_view name_in(const JsonCursor& config, std::string_view key) {
  if (config.find(key)) return key;
  for (const auto& [one, other] : kSynonyms) {
    if (one == key && config.find(other)) return other;
  }
  return key;
}

/// Families that are read layer by layer (read_layers()), under the name that their decoder has,
/// beside those that a mixer's row names.
constexpr std::array<std::string_view, 34> kLayered{
    "qwen3_next",   "qwen3_5_text", "qwen3_5_moe_text", "qwen3_vl_text", "qwen3_vl_moe_text",
    "deepseek_v32", "deepseek_v4",  "deepseek_ref",     "glm_moe_dsa",   "glm4_moe",
    "kimi_linear",  "minimax_m2",   "minimax_m3",       "mimo",          "mimo_v2_flash",
    "step3p5",      "step3p7",      "gemma4_text",      "nemotron-nas",  "qwen3_5",
    "qwen3_5_moe",  "gemma4",       "gemma3_text",      "exaone4",       "mllama_text_model",
    "step3_text",   "grok1",        "arctic",           "longcat_flash", "vaultgemma",
    "hunyuan",      "gemma3n_text", "olmo_hybrid",      "deci",
};
/// Families whose file holds a decoder in "text_config", by its own name there.
constexpr std::array<std::string_view, 10> kNested{
    "llama4", "qwen3_5",  "qwen3_5_moe", "qwen3_vl",      "qwen3_vl_moe",
    "gemma4", "kimi_k25", "kimi_k3",     "minimax_m3_vl", "gemma3",
};
/// Models that are not read, what they are, and the key of their files that says so.
struct Stranger {
  std::string_view type, words, key;
};
constexpr std::array kStrangers{
    Stranger{"jetmoe", "a decoder whose attention has experts too", "num_local_experts"},
    Stranger{"hymba", "a decoder with attention and Mamba on one input, and learnt tokens",
             "num_memory_tokens"},
    Stranger{"wav2vec2", "an encoder of sound behind convolutions", "conv_dim"},
    Stranger{"hubert", "an encoder of sound behind convolutions", "conv_dim"},
    Stranger{"wavlm", "an encoder of sound behind convolutions", "conv_dim"},
    Stranger{"data2vec-audio", "an encoder of sound behind convolutions", "conv_dim"},
};

constexpr std::array kFamilySizes{
    FamilySizes{"llama", 32, 4096, 32, 11008, 32000},
    FamilySizes{"mistral", 32, 4096, 32, 14336, 32000},
    FamilySizes{"qwen2", 32, 4096, 32, 22016, 151936},
    FamilySizes{"gemma", 28, 3072, 16, 24576, 256000},
};

bool is_one_of(std::string_view type, std::span<const std::string_view> types) {
  return std::ranges::find(types, type) != types.end();
}

const Family* family_called(std::string_view type) {
  const auto* found = std::ranges::find(kFamilies, type, &Family::type);
  return found == kFamilies.end() ? nullptr : found;
}

/// `otherwise`, where it is not 0 and the file leaves `key` out.
int width_at(const JsonCursor& config, std::string_view key, int most, int otherwise) {
  const std::string_view name = name_in(config, key);
  if (otherwise > 0 && !config.find(name)) return otherwise;
  return config.at(name).integer(1, most);
}

/// All names of families, for the complaint about another one.
std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.type);
  for (const auto& types :
       {std::span<const std::string_view>(kLayered), std::span<const std::string_view>(kNested),
        encoder_families(), mosaic_families(), varied_families()}) {
    for (const std::string_view type : types) {
      if (std::ranges::find(names, type) == names.end()) names.emplace_back(type);
    }
  }
  for (const MixerKind* kind : mixer_kinds()) {
    for (const std::string_view type : each_of(kind->families)) names.emplace_back(type);
    for (const std::string_view type : each_of(kind->model_families)) names.emplace_back(type);
  }
  return names;
}

void refuse_experts(const JsonCursor& config) {
  for (const std::string_view key : {"num_local_experts", "num_experts", "n_routed_experts",
                                     "moe_num_experts", "num_moe_experts"}) {
    const std::optional<JsonCursor> experts = config.find(key);
    if (experts && !experts->is_null()) experts->fail("a dense model, without this key");
  }
}

/// The groups of newer ones, else one for all heads.
int falcon_kv_heads(const JsonCursor& config, int heads) {
  if (flag_or(config, "new_decoder_architecture", false)) {
    return integer_or(config, "num_kv_heads", 1, kMostHeads, heads);
  }
  return flag_or(config, "multi_query", true) ? 1 : heads;
}

/// Attention and MLP beside each other, where the family has them and no flag says otherwise.
void read_parallel(const JsonCursor& config, const Family& family, TransformerShape& shape) {
  shape.parallel = family.parallel && flag_or(config, "use_parallel_residual", true) &&
                   flag_or(config, "parallel_attn", true);
  constexpr int kNorms = 2;
  const bool grouped = flag_or(config, "new_decoder_architecture", false);
  shape.separate_norms =
      shape.parallel &&
      (family.separate_norms ||
       (grouped && integer_or(config, "num_ln_in_parallel_attn", 1, kNorms, kNorms) == kNorms));
  // Biases of the output, which no other family has.
  if (family.type == "gptj" || family.type == "phi" || family.type == "codegen")
    shape.other_parameters = shape.vocabulary;
}

void read_heads(const JsonCursor& config, const Family& family, const FamilySizes& sizes,
                TransformerShape& shape) {
  shape.heads = width_at(config, family.heads, kMostHeads, sizes.heads);
  // DeepSeek-VL2's smallest and DeepSeek-OCR have plain heads.
  if (has_latent_attention(family.type) && flag_or(config, "use_mla", true)) {
    read_latent_attention(config, shape);
    return;
  }
  int kv_heads = family.kv_heads > 0 ? family.kv_heads : shape.heads;
  if (family.type == "falcon" || family.type == "gpt_bigcode") {
    kv_heads = falcon_kv_heads(config, shape.heads);
  }
  if (family.type == "chatglm" && flag_or(config, "multi_query_attention", false)) {
    kv_heads = config.at("multi_query_group_num").integer(1, kMostHeads);
  }
  shape.kv_heads = integer_or(config, "num_key_value_heads", 1, kMostHeads, kv_heads);
  if (shape.heads % shape.kv_heads != 0) {
    const std::optional<JsonCursor> groups = config.find("num_key_value_heads");
    (groups ? *groups : config.at(name_in(config, family.heads)))
        .fail("heads that are a multiple of the key-value heads; here " +
              std::to_string(shape.heads) + " and " + std::to_string(shape.kv_heads));
  }
  const int otherwise = family.head_dim > 0 ? family.head_dim : shape.hidden / shape.heads;
  shape.head_dim = integer_or(config, "head_dim", 0, kMostWidth,
                              integer_or(config, "kv_channels", 0, kMostWidth, 0));
  if (shape.head_dim > 0) return;
  shape.head_dim = otherwise;
  if (family.head_dim == 0 && shape.hidden % shape.heads != 0) {
    config.at(name_in(config, family.heads))
        .fail("a divisor of the width " + std::to_string(shape.hidden) + " (" +
              std::string(family.hidden) + "), where \"head_dim\" is left out");
  }
}

int read_ffn(const JsonCursor& config, const Family& family, const FamilySizes& sizes, int hidden) {
  // Where it may be left out, it is four times the width.
  constexpr std::array<std::string_view, 7> kFourfold{"gpt2",  "gptj",    "falcon", "gpt_bigcode",
                                                      "bloom", "codegen", "jais"};
  if (is_one_of(family.type, kFourfold)) {
    return integer_or(config, family.ffn, 1, 4 * kMostWidth, 4 * hidden);
  }
  // Both halves of a gated MLP.
  if (family.type == "qwen") return config.at(family.ffn).integer(2, 2 * kMostWidth) / 2;
  return width_at(config, family.ffn, kMostWidth, sizes.ffn);
}

/// OPT's table of words may have another width than its layers (350m: 512 of 1,024), with a product
/// before the first and one behind the last; that of positions is as wide as they are. Where norms
/// are behind blocks there is none behind the last layer (modeling_opt.py: OPTDecoder).
void read_opt_table(const JsonCursor& config, TransformerShape& m) {
  m.last_norm = flag_or(config, "do_layer_norm_before", true) &&
                !flag_or(config, "_remove_final_layer_norm", false);
  const int table = integer_or(config, "word_embed_proj_dim", 1, kMostWidth, m.hidden);
  if (table == m.hidden) return;
  if (table > m.hidden) {
    config.at("word_embed_proj_dim")
        .fail("at most " + std::to_string(m.hidden) + ", the width of its layers");
  }
  m.table_width = table;
  const double h = m.hidden, t = table;
  m.other_parameters += 2 * t * h + m.max_positions * (h - t);
}

/// Of other families nobody knows what brings words from one width to the other.
void refuse_other_table(const JsonCursor& config, int hidden) {
  for (const std::string_view key : {"embedding_size", "word_embed_proj_dim", "embedding_dim"}) {
    const std::optional<JsonCursor> width = config.find(key);
    if (!width || width->is_null() || width->integer(0, kMostWidth) == hidden) continue;
    width->fail(std::to_string(hidden) +
                ", the width of its layers: a table of words of another "
                "width is known of opt alone");
  }
}

/// Weights that families have beside their layers and tables: a norm behind the embedding, biases
/// of the output.
double beside_layers(const JsonCursor& config, const Family& family,
                     const TransformerShape& shape) {
  if (family.type == "bloom") return 2.0 * shape.hidden;
  return flag_or(config, "lm_head_bias", false) ? shape.vocabulary : shape.other_parameters;
}

/// Jais's first generations are GPT-2 with a gate, and with slopes in place of a table of
/// positions, unless their files say otherwise.
void read_jais(const JsonCursor& config, TransformerShape& m) {
  constexpr std::string_view kGated = "swiglu", kTable = "learned";
  const std::optional<JsonCursor> activation = config.find("activation_function");
  const std::optional<JsonCursor> positions = config.find("position_embedding_type");
  m.gated = activation && !activation->is_null() && activation->string() == kGated;
  m.learned_positions = !positions || positions->is_null() || positions->string() == kTable;
}

/// `sizes` are 0 where the file has to say them.
HuggingFaceModel read_model(const JsonCursor& config, const Family& family,
                            const FamilySizes& sizes, std::string name) {
  const bool sparse = has_experts(family.type), hybrid = is_hybrid(family.type);
  if (!sparse && !hybrid) refuse_experts(config);
  HuggingFaceModel model;
  TransformerShape& shape = model.shape;
  shape.name = std::move(name);
  shape.layers = hybrid ? hybrid_layers(config, family.layers)
                        : width_at(config, family.layers, kMostLayers, sizes.layers);
  shape.hidden = width_at(config, family.hidden, kMostWidth, sizes.hidden);
  read_heads(config, family, sizes, shape);
  shape.ffn = read_ffn(config, family, sizes, shape.hidden);
  shape.vocabulary = width_at(config, "vocab_size", kMostTokens, sizes.vocabulary);
  shape.gated = family.gated;
  shape.tied = flag_or(config, "tie_word_embeddings", family.tied);
  shape.rotary = family.rotary && !flag_or(config, "alibi", false);
  // OPT's and StarCoder 2's flags for biases that their families have.
  const bool biases = flag_or(config, "enable_bias", true) && flag_or(config, "use_bias", true);
  shape.biases = (family.biases && biases) || flag_or(config, "mlp_bias", false) ||
                 (family.type == "falcon" && flag_or(config, "bias", false));
  read_parallel(config, family, shape);
  shape.other_parameters = beside_layers(config, family, shape);
  shape.learned_positions = family.learned_positions;
  shape.max_positions = integer_or(config, family.positions, 1, kMostTokens, 0);
  // OPTLearnedPositionalEmbedding's offset, and BioGPT's.
  if (family.type == "opt" || family.type == "biogpt") shape.max_positions += 2;
  if (family.type == "jais") read_jais(config, shape);
  if (family.type == "opt") {
    read_opt_table(config, shape);
  } else {
    refuse_other_table(config, shape.hidden);
  }
  if (sparse) shape.experts = read_experts(config, family.type, shape.layers);
  if (hybrid) read_hybrid(config, family.type, shape);
  constexpr int kMostPredicted = 64;
  shape.predicted_tokens = integer_or(config, "num_nextn_predict_layers", 0, kMostPredicted, 0);
  if (!shape.pattern.empty() && shape.predicted_tokens > 0) {
    shape.predicted_tokens = 0;
    model.assumptions.emplace_back(
        "model: its modules that predict further tokens are left out, as they are several blocks");
  }
  read_window(config, family.type, shape, model.assumptions);
  return model;
}

/// Keys that say how layers differ from those of an ordinary decoder, by a part of their name.
constexpr std::array<std::string_view, 36> kTellingParts{
    "mamba",     "ssm_",         "conv_",        "linear_num",   "linear_attn", "index_",
    "indexer",   "compress",     "hybrid",       "block_config", "cross_at",    "sparse_attent",
    "recurrent", "kv_shared",    "hc_mult",      "attn_type",    "use_cla",     "layer_group",
    "attn_mlp",  "use_residual", "residual_moe", "zero_expert",  "share_q_dim", "lru_width",
    "altup",     "laurel",       "relative_at",  "embd_layer",   "linear_silu", "cross_layer",
    "ut_steps",  "shared_freq",  "loop_num",     "layer_shar",   "depth_deco",  "codebooks",
};

/// A family whose keys say more than its code knows is not what its name says; `like`: which other
/// family's layers the keys describe, where nobody knows the name.
void refuse_telling_keys(const JsonCursor& config, const Likeness* like = nullptr) {
  for (const std::string& key : config.keys()) {
    const bool tells = std::ranges::any_of(
        kTellingParts, [&](std::string_view part) { return key.find(part) != std::string::npos; });
    if (!tells || is_read_with(like, key) || !says_something(config.at(key))) continue;
    config.at(key).fail(
        "a decoder without this key, which says that its layers are not those of its model_type");
  }
}

/// Whether masked words are what it predicts, which needs attention both ways.
bool is_encoder_class(const JsonCursor& config) {
  const std::optional<JsonCursor> classes = config.find("architectures");
  if (!classes || !classes->is_array()) return false;
  return std::ranges::any_of(classes->elements(kMostLayers), [](const JsonCursor& one) {
    return one.is_string() && one.string().ends_with("ForMaskedLM");
  });
}

/// A family that nobody has described, by its keys: a decoder with a gated MLP.
HuggingFaceModel read_unknown(const JsonCursor& config, std::string_view type, std::string name) {
  const Likeness* const like = likeness_of(config);
  refuse_telling_keys(config, like);
  std::optional<JsonCursor> activation;
  for (const std::string_view key : {"hidden_act", "hidden_activation", "activation_function"}) {
    if (!activation) activation = config.find(key);
  }
  const bool complete = config.find("hidden_size") && config.find("num_attention_heads") &&
                        (config.find("num_hidden_layers") || config.find("num_layers")) &&
                        config.find("vocab_size");
  if (!complete || !activation) config.at("model_type").fail_name(family_names());
  constexpr std::string_view kGated = "silu";
  if (activation->string() != kGated && activation->string() != "swiglu") {
    activation->fail(
        "silu, which stands for a gated MLP; of others the code of a family that is "
        "not known decides");
  }
  // Doge's are a row of a table each, and not as wide as the dense layers.
  if (flag_or(config, "is_moe", false) && !config.find("moe_intermediate_size")) {
    config.at("is_moe").fail("false: how wide an expert is of a family that is not known");
  }
  HuggingFaceModel model;
  read_layers(config, like == nullptr ? type : like->family, model.shape, model.assumptions);
  refuse_other_table(config, model.shape.hidden);
  for (const std::string& key : config.keys()) {
    if (model.shape.experts.count > 0 || says_dense(config, type)) break;
    if (key.find("expert") == std::string::npos) continue;
    if (says_something(config.at(key))) {
      config.at(key).fail("a dense model, where num_experts does not say how many there are");
    }
  }
  model.shape.name = std::move(name);
  if (is_encoder_class(config)) {
    model.shape.bidirectional = true;
    model.assumptions.push_back(
        "model: an encoder, as the name of its class (architectures) says; of what it has behind "
        "its last norm the product over all words is counted, " +
        std::string(model.shape.tied ? "with the table of words"
                                     : "with a table of its own (tie_word_embeddings)") +
        ", and nothing else");
  }
  const TransformerShape& m = model.shape;
  std::string words = like == nullptr ? std::string() : std::string(like->words) + ", ";
  words += m.latent.key_value_rank > 0 ? "latent attention"
                                       : std::to_string(m.heads) + " heads over " +
                                             std::to_string(m.kv_heads) + " of keys and values";
  if (m.experts.count > 0) words += ", " + std::to_string(m.experts.count) + " experts";
  model.assumptions.push_back(
      "model: " + std::string(type) + " is no family that is known; its keys were taken for " +
      words + ", a gated MLP, " + (m.rotary ? "" : "no ") + "rotary positions and no biases");
  std::string unread;
  for (const std::string& key : unread_sizes(config)) unread += (unread.empty() ? "" : ", ") + key;
  if (!unread.empty()) {
    model.assumptions.push_back("model: not read, whatever they say of its layers: " + unread);
  }
  return model;
}

/// What the code of a family has; nothing for those that nobody listed.
FamilySizes sizes_of(std::string_view type) {
  const auto* found = std::ranges::find(kFamilySizes, type, &FamilySizes::type);
  return found == kFamilySizes.end() ? FamilySizes{} : *found;
}

/// Says what a part of a file leaves out.
void say_left_out(const JsonCursor& text, std::string_view type, HuggingFaceModel& model) {
  if (sizes_of(type).layers == 0) return;
  std::string keys;
  for (const std::string_view key : {kLayers, kHidden, kHeads, kFfn}) {
    if (!text.find(key)) keys += (keys.empty() ? "" : ", ") + std::string(key);
  }
  if (keys.empty()) return;
  model.assumptions.push_back("model: " + keys + " as the code of " + std::string(type) +
                              " has them, where the file leaves them out");
}

/// The family; that of its class where "model_type" does not say one: Grok 2's file says "git".
std::string family_of(const JsonCursor& config) {
  std::string type = config.at("model_type").string();
  const std::optional<JsonCursor> classes = config.find("architectures");
  if (type != "git" || !classes || !classes->is_array()) return type;
  const std::vector<JsonCursor> names = classes->elements(kMostLayers);
  const bool grok =
      !names.empty() && names.front().is_string() && names.front().string() == "Grok1ForCausalLM";
  return grok ? "grok1" : type;
}

/// Families of attention that a file of their own reads.
struct OwnReader {
  std::span<const std::string_view> (*families)();
  void (*read)(const JsonCursor& config, std::string_view type, TransformerShape& m);
};
constexpr std::array kOwnReaders{OwnReader{mosaic_families, read_mosaic},
                                 OwnReader{varied_families, read_varied}};

/// The decoder of a file, or of a `part` of one.
HuggingFaceModel read_decoder(const JsonCursor& config, std::string_view type, std::string name,
                              bool part = false) {
  const Family* family = family_called(type);
  const bool chooses_keys = family != nullptr && has_latent_attention(type) &&
                            config.find("index_topk") && !config.at("index_topk").is_null();
  if (is_one_of(type, kLayered) || mixer_of_family(type) != nullptr || chooses_keys) {
    HuggingFaceModel model;
    read_layers(config, type, model.shape, model.assumptions);
    model.shape.name = std::move(name);
    if (chooses_keys) {
      model.assumptions.push_back("model: " + std::string(type) +
                                  " with index_topk; its layers were taken for those of "
                                  "deepseek_v32, whose attention chooses keys");
    }
    return model;
  }
  for (const OwnReader& one : kOwnReaders) {
    if (!is_one_of(type, one.families())) continue;
    HuggingFaceModel model;
    one.read(config, type, model.shape);
    model.shape.name = std::move(name);
    return model;
  }
  if (const MixerKind* mixer = mixer_reading(type)) {
    HuggingFaceModel model;
    mixer->read_model(config, type, model.shape);
    model.shape.name = std::move(name);
    return model;
  }
  if (family == nullptr) return read_unknown(config, type, std::move(name));
  if (!is_hybrid(type)) refuse_telling_keys(config);
  return read_model(config, *family, part ? sizes_of(type) : FamilySizes{}, std::move(name));
}

/// The part of a file with several that is the decoder, by the names that it has.
std::optional<JsonCursor> decoder_in(const JsonCursor& config) {
  for (const std::string_view key : {"text_config", "llm_config", "language_config"}) {
    std::optional<JsonCursor> part = config.find(key);
    if (part && part->is_object()) return part;
  }
  return std::nullopt;
}

/// A decoder with its own family's name in a part of the file, and what is beside it.
HuggingFaceModel read_nested(const JsonCursor& config, const JsonCursor& text,
                             const std::string& type, std::string name) {
  const std::optional<JsonCursor> inner = text.find("model_type");
  const std::string decoder = inner && !inner->is_null() ? inner->string() : type;
  HuggingFaceModel model = read_decoder(text, decoder, std::move(name), true);
  say_left_out(text, decoder, model);
  // The file as a whole says it where the part does not.
  if (!text.find("tie_word_embeddings")) {
    model.shape.tied = flag_or(config, "tie_word_embeddings", model.shape.tied);
  }
  add_towers(config, model);
  return model;
}

/// Points at the key that decides, where the file has it.
[[noreturn]] void refuse_stranger(const JsonCursor& config, const JsonCursor& type,
                                  const Stranger& stranger) {
  const std::string what = std::string(stranger.type) + " is " + std::string(stranger.words);
  const std::optional<JsonCursor> key = config.find(stranger.key);
  if (key && !key->is_null()) key->fail("a model without this key; " + what);
  type.fail("a decoder, or an encoder of text or images; " + what);
}

}  // namespace
}  // namespace hugging_face

HuggingFaceModel read_hugging_face(const JsonCursor& config, std::string name) {
  using namespace hugging_face;
  if (!config.find("model_type") && config.find("_class_name")) {
    HuggingFaceModel model = read_diffusers(config);
    model.shape.name = std::move(name);
    return model;
  }
  const JsonCursor at = config.at("model_type");
  const std::string type = family_of(config);
  const auto* stranger = std::ranges::find(kStrangers, type, &Stranger::type);
  if (stranger != kStrangers.end()) refuse_stranger(config, at, *stranger);
  if (is_one_of(type, encoder_families())) {
    HuggingFaceModel model = read_encoder(config, type);
    model.shape.name = std::move(name);
    return model;
  }
  if (const std::optional<JsonCursor> thinker = config.find("thinker_config")) {
    HuggingFaceModel model = read_hugging_face(*thinker, std::move(name));
    model.assumptions.emplace_back(
        "model: the part that thinks (thinker_config); those that speak are left out");
    return model;
  }
  if (const std::optional<JsonCursor> text = decoder_in(config)) {
    return read_nested(config, *text, type, std::move(name));
  }
  if (flag_or(config, "is_encoder_decoder", false)) {
    config.at("is_encoder_decoder").fail("false: a decoder alone");
  }
  HuggingFaceModel model = read_decoder(config, type, std::move(name));
  // Older files have the decoder's keys beside those of what it sees with.
  if (config.find("vision_config") || config.find("audio_config")) add_towers(config, model);
  say_other_towers(config, model);
  return model;
}

}  // namespace lockstep
