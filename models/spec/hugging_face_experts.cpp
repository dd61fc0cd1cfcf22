#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

/// How the families name their experts. Sources: the configuration_*.py and modeling_*.py of each
/// family in https://github.com/huggingface/transformers; kimi_k2 is deepseek_v3 under its own name
/// (https://huggingface.co/moonshotai/Kimi-K2-Base).
struct ExpertFamily {
  std::string_view type;   ///< "model_type"
  std::string_view count;  ///< key of the number of routed experts
  std::string_view ffn;    ///< key of the width of one
  /// Key of the width of the shared expert, or of the number of shared experts, each as wide as a
  /// routed one; empty: none.
  std::string_view shared_ffn, shared_count;
};
constexpr std::string_view kLocal = "num_local_experts";
constexpr std::string_view kRouted = "n_routed_experts";
constexpr std::string_view kPlain = "num_experts";
constexpr std::string_view kExpertFfn = "moe_intermediate_size";
constexpr std::string_view kAnyFfn = "intermediate_size";
constexpr std::string_view kSharedCount = "n_shared_experts";
constexpr std::array kExpertFamilies{
    ExpertFamily{"mixtral", kLocal, kAnyFfn, "", ""},
    ExpertFamily{"phimoe", kLocal, kAnyFfn, "", ""},
    ExpertFamily{"qwen2_moe", kPlain, kExpertFfn, "shared_expert_intermediate_size", ""},
    ExpertFamily{"qwen3_moe", kPlain, kExpertFfn, "", ""},
    ExpertFamily{"deepseek_v2", kRouted, kExpertFfn, "", kSharedCount},
    ExpertFamily{"deepseek_v3", kRouted, kExpertFfn, "", kSharedCount},
    ExpertFamily{"kimi_k2", kRouted, kExpertFfn, "", kSharedCount},
    ExpertFamily{"gpt_oss", kLocal, kAnyFfn, "", ""},
    ExpertFamily{"llama4", kLocal, kAnyFfn, kAnyFfn, ""},
    ExpertFamily{"llama4_text", kLocal, kAnyFfn, kAnyFfn, ""},
};

const ExpertFamily* find_family(std::string_view type) {
  const auto* found = std::ranges::find(kExpertFamilies, type, &ExpertFamily::type);
  return found == kExpertFamilies.end() ? nullptr : found;
}

/// Marks `layers[i]` for each i in the list.
void mark(const JsonCursor& list, std::vector<bool>& layers, bool value) {
  for (const JsonCursor& layer : list.elements(kMostLayers)) {
    layers[static_cast<std::size_t>(layer.integer(0, static_cast<int>(layers.size()) - 1))] = value;
  }
}

std::optional<JsonCursor> list_at(const JsonCursor& config, std::string_view key) {
  std::optional<JsonCursor> list = config.find(key);
  return list && !list->is_null() ? list : std::nullopt;
}

/// Layers first, first + n, first + 2n... have experts.
std::vector<bool> every(int layers, int first, int n) {
  std::vector<bool> marked(static_cast<std::size_t>(layers));
  for (int i = first; i < layers; i += n) marked[static_cast<std::size_t>(i)] = true;
  return marked;
}

std::vector<bool> layers_with_experts(const JsonCursor& config, std::string_view type, int layers) {
  if (type.starts_with("qwen")) {
    const int step = integer_or(config, "decoder_sparse_step", 1, kMostLayers, 1);
    std::vector<bool> marked = every(layers, step - 1, step);
    if (const auto dense = list_at(config, "mlp_only_layers")) mark(*dense, marked, false);
    return marked;
  }
  if (type.starts_with("llama4")) {
    if (const auto sparse = list_at(config, "moe_layers")) {
      std::vector<bool> marked(static_cast<std::size_t>(layers));
      mark(*sparse, marked, true);
      return marked;
    }
    const int step = integer_or(config, "interleave_moe_layer_step", 1, kMostLayers, 1);
    return every(layers, step - 1, step);
  }
  if (has_latent_attention(type)) {
    const int default_dense = type == "deepseek_v2" ? 0 : 3;
    const int dense = integer_or(config, "first_k_dense_replace", 0, kMostLayers, default_dense);
    const int n = integer_or(config, "moe_layer_freq", 1, kMostLayers, 1);
    return every(layers, (dense + n - 1) / n * n, n);
  }
  return every(layers, 0, 1);
}

}  // namespace

bool set_layout(const std::vector<bool>& marked, ExpertShape& out) {
  const auto first = std::ranges::find(marked, true);
  if (first == marked.end()) return false;
  const auto second = std::find(first + 1, marked.end(), true);
  const int before = static_cast<int>(first - marked.begin());
  out.interval = static_cast<int>(second - first);
  out.leading_dense = before + 1 - out.interval;
  return out.leading_dense >= 0 &&
         marked == every(static_cast<int>(marked.size()), before, out.interval);
}

bool has_experts(std::string_view type) { return find_family(type) != nullptr; }

namespace {

/// SimAI's files spell DeepSeek's key their own way (github:aliyun/SimAI:vidur-alibabacloud).
JsonCursor count_key(const JsonCursor& config, const ExpertFamily& family) {
  constexpr std::string_view kOther = "num_routed_experts";
  const bool other = family.count == kRouted && !config.find(family.count) && config.find(kOther);
  return config.at(other ? kOther : family.count);
}

}  // namespace

ExpertShape read_experts(const JsonCursor& config, std::string_view type, int layers) {
  const ExpertFamily& family = *find_family(type);
  ExpertShape experts;
  experts.count = count_key(config, family).integer(1, kMostExperts);
  const JsonCursor per_token = config.at("num_experts_per_tok");
  experts.per_token = per_token.integer(1, kMostExperts);
  if (experts.per_token > experts.count) {
    per_token.fail("at most " + std::to_string(experts.count) + " (" + std::string(family.count) +
                   ")");
  }
  experts.ffn = config.at(family.ffn).integer(1, kMostWidth);
  if (!family.shared_ffn.empty()) {
    experts.shared_ffn = config.at(family.shared_ffn).integer(0, kMostWidth);
  }
  if (!family.shared_count.empty()) {
    constexpr int kMostShared = 64;
    const int other = integer_or(config, "num_shared_experts", 0, kMostShared, 0);
    const int shared = integer_or(config, family.shared_count, 0, kMostShared, other);
    experts.shared_ffn = shared * experts.ffn;
  }
  if (!set_layout(layers_with_experts(config, type, layers), experts)) {
    config.fail("a model with experts in every n-th layer behind layers without");
  }
  return experts;
}

bool is_hybrid(std::string_view type) { return type == "nemotron_h" || type == "jamba"; }

namespace {

/// Layers of a mixer, Mamba-1 or attention, and an MLP or experts
/// (github:huggingface/transformers:src/transformers/models/jamba/configuration_jamba.py).
void read_jamba(const JsonCursor& config, TransformerShape& shape) {
  const auto every = [&](const std::string& what, int period, int offset) {
    const int of = integer_or(config, what + "_layer_period", 1, kMostLayers, period);
    const int first = integer_or(config, what + "_layer_offset", 0, of - 1, offset);
    return [of, first](int layer) { return layer % of == first; };
  };
  const auto attends = every("attn", 8, 4), has_experts = every("expert", 2, 1);
  ExpertShape& experts = shape.experts;
  experts.count = integer_or(config, "num_experts", 1, kMostExperts, 16);
  experts.per_token = integer_or(config, "num_experts_per_tok", 1, experts.count, 2);
  experts.ffn = shape.ffn;
  for (int layer = 0; layer < shape.layers; ++layer) {
    shape.pattern += attends(layer) ? '*' : 'M';
    shape.pattern += experts.count > 1 && has_experts(layer) ? 'E' : '-';
  }
  shape.layers *= 2;
  if (shape.pattern.find('E') == std::string::npos) experts = {};
  constexpr int kColumnsPerStep = 16;  // of "auto"
  MambaShape& mamba = shape.mamba;
  mamba.heads = shape.hidden * integer_or(config, "mamba_expand", 1, 64, 2);
  mamba.head_dim = 1;
  mamba.state = integer_or(config, "mamba_d_state", 1, kMostWidth, 16);
  mamba.kernel = integer_or(config, "mamba_d_conv", 1, 64, 4);
  const std::optional<JsonCursor> rank = config.find("mamba_dt_rank");
  mamba.step_rank = rank && rank->is_number()
                        ? rank->integer(1, kMostWidth)
                        : (shape.hidden + kColumnsPerStep - 1) / kColumnsPerStep;
}

/// The words that newer files have in place of letters.
constexpr std::array<std::string_view, 4> kBlockTypes{"mamba", "attention", "mlp", "moe"};

void read_pattern(const JsonCursor& config, TransformerShape& shape) {
  if (const std::optional<JsonCursor> types = list_at(config, "layers_block_type")) {
    for (const JsonCursor& type : types->elements(kMostLayers)) {
      shape.pattern += kPatternLetters[type.choice(kBlockTypes)];
    }
    if (std::ssize(shape.pattern) == shape.layers) return;
    types->fail("an array of " + std::to_string(shape.layers) + " (num_hidden_layers)");
  }
  const JsonCursor pattern = config.at("hybrid_override_pattern");
  shape.pattern = pattern.string();
  const bool known = shape.pattern.find_first_not_of(kPatternLetters) == std::string::npos;
  if (!known || std::ssize(shape.pattern) != shape.layers) {
    pattern.fail(std::to_string(shape.layers) +
                 " letters (num_hidden_layers): M (Mamba-2), * (attention), - (MLP), E (experts)");
  }
}

}  // namespace

int hybrid_layers(const JsonCursor& config, std::string_view layers_key) {
  const auto list = list_at(config, "layers_block_type");
  if (config.find(layers_key) || !list) return config.at(layers_key).integer(1, kMostLayers);
  return static_cast<int>(list->elements(kMostLayers).size());
}

void read_hybrid(const JsonCursor& config, std::string_view type, TransformerShape& shape) {
  if (type == "jamba") return read_jamba(config, shape);
  read_pattern(config, shape);
  if (shape.pattern.find('M') != std::string::npos) {
    MambaShape& mamba = shape.mamba;
    mamba.heads = config.at("mamba_num_heads").integer(1, kMostHeads);
    mamba.head_dim = config.at("mamba_head_dim").integer(1, kMostWidth);
    mamba.groups = integer_or(config, "n_groups", 1, kMostHeads, 8);
    mamba.state = config.at("ssm_state_size").integer(1, kMostWidth);
    mamba.kernel = integer_or(config, "conv_kernel", 1, 64, 4);
    mamba.chunk = integer_or(config, "chunk_size", 1, kMostTokens, 128);
    if (mamba.heads % mamba.groups != 0) {
      config.at("mamba_num_heads")
          .fail("a multiple of " + std::to_string(mamba.groups) + " (n_groups)");
    }
  }
  if (shape.pattern.find('E') == std::string::npos) return;
  ExpertShape& experts = shape.experts;
  experts.count = config.at("n_routed_experts").integer(1, kMostExperts);
  experts.per_token = config.at("num_experts_per_tok").integer(1, experts.count);
  experts.ffn = config.at("moe_intermediate_size").integer(1, kMostWidth);
  experts.shared_ffn =
      integer_or(config, "n_shared_experts", 0, 64, 1) *
      integer_or(config, "moe_shared_expert_intermediate_size", 0, kMostWidth / 64, 0);
  experts.latent = integer_or(config, "moe_latent_size", 0, kMostWidth, 0);
}

bool has_latent_attention(std::string_view type) {
  return type == "deepseek_v2" || type == "deepseek_v3" || type == "kimi_k2";
}

void read_latent_attention(const JsonCursor& config, TransformerShape& shape) {
  LatentAttention& latent = shape.latent;
  latent.query_rank = integer_or(config, "q_lora_rank", 1, kMostWidth, 0);
  latent.key_value_rank = config.at("kv_lora_rank").integer(1, kMostWidth);
  latent.nope_dim = config.at("qk_nope_head_dim").integer(1, kMostWidth);
  latent.rope_dim = config.at("qk_rope_head_dim").integer(0, kMostWidth);
  // MiniCPM3's code takes the stream's width over the heads.
  const bool derived = !config.find("v_head_dim") && config.find("scale_depth");
  latent.value_dim = derived ? config.at("hidden_size").integer(1, kMostWidth) / shape.heads
                             : config.at("v_head_dim").integer(1, kMostWidth);
  shape.head_dim = (latent.nope_dim + latent.rope_dim + latent.value_dim) / 2;
  shape.kv_heads = shape.heads;
}

}  // namespace lockstep::hugging_face
