// Decoders whose layers differ by more than experts and windows, read by the keys that say how.
// Sources: configuration_*.py and modeling_*.py of each family in
// https://github.com/huggingface/transformers, and the code beside the weights of deepseek_v4,
// kimi_linear, minimax_m3, mimo_v2_flash, step3p7 and nemotron-nas on https://huggingface.co.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep::hugging_face {
namespace {

using Keys = std::initializer_list<std::string_view>;

/// The first of several names of one thing that is there and not null.
std::optional<JsonCursor> first_of(const JsonCursor& config, Keys keys) {
  for (const std::string_view key : keys) {
    std::optional<JsonCursor> value = config.find(key);
    if (value && !value->is_null()) return value;
  }
  return std::nullopt;
}

/// A number, or a list with one number for all layers (Hunyuan).
int number_of(const JsonCursor& value, int low, int high) {
  if (!value.is_array()) return value.integer(low, high);
  const std::vector<JsonCursor> each = value.elements(kMostLayers);
  if (each.empty()) value.fail("a number for each layer");
  const int first = each.front().integer(low, high);
  for (const JsonCursor& one : each) {
    if (one.integer(low, high) != first) one.fail(std::to_string(first) + ", as in all layers");
  }
  return first;
}

std::optional<JsonCursor> expert_count(const JsonCursor& config) {
  return first_of(config, {"n_routed_experts", "num_experts", "num_local_experts",
                           "num_routed_experts", "moe_num_experts"});
}

int first_or(const JsonCursor& config, Keys keys, int low, int high, int otherwise) {
  const std::optional<JsonCursor> value = first_of(config, keys);
  return value ? number_of(*value, low, high) : otherwise;
}

/// Where it has to be there: the complaint is about the first of its names.
int first_at(const JsonCursor& config, Keys keys, int low, int high) {
  const std::optional<JsonCursor> value = first_of(config, keys);
  return number_of(value ? *value : config.at(*keys.begin()), low, high);
}

}  // namespace

bool says_dense(const JsonCursor& config, std::string_view type) {
  const std::optional<JsonCursor> count = expert_count(config);
  if (!count) return false;
  for (const std::string_view key : {"is_moe", "use_moe"}) {
    if (!flag_or(config, key, true)) return true;
  }
  const int experts = number_of(*count, 0, kMostExperts);
  return experts == 0 || (experts == 1 && type.starts_with("hunyuan"));
}

namespace {

/// Reads one family's file, layer by layer.
class LayerReader {
 public:
  LayerReader(const JsonCursor& config, std::string_view type, TransformerShape& shape,
              std::vector<std::string>& assumptions)
      : config_(config), type_(type), shape_(shape), assumptions_(assumptions) {}

  void read() {
    read_widths();
    layers_.assign(static_cast<std::size_t>(shape_.layers), KindShape{});
    read_blocks();
    read_experts();
    read_mixers();
    read_image_layers();
    refuse_other_types();
    read_windows();
    read_choices();
    read_gates();
    read_directions();
    read_shared_keys();
    read_layer_inputs();
    shape_.residual_streams = integer_or(config_, "hc_mult", 1, 64, 1);
    read_alternating();
    assign_layers();
    constexpr int kMostPredicted = 64;
    shape_.predicted_tokens =
        first_or(config_, {"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"},
                 0, kMostPredicted, 0);
  }

 private:
  [[nodiscard]] bool has(std::string_view key) const {
    return first_of(config_, {key}).has_value();
  }

  /// A list with an element for each layer; of some, further ones are for prediction modules.
  std::vector<JsonCursor> list_of(const JsonCursor& list) const {
    std::vector<JsonCursor> elements = list.elements(kMostLayers);
    if (std::ssize(elements) < shape_.layers) {
      list.fail("an array of " + std::to_string(shape_.layers) + " (num_hidden_layers)");
    }
    elements.erase(elements.begin() + shape_.layers, elements.end());
    return elements;
  }
  /// Calls `use` for each layer with the value that a list has for it.
  template <class Use>
  bool for_each_layer(const JsonCursor& of, std::string_view key, const Use& use) {
    const std::optional<JsonCursor> list = first_of(of, {key});
    if (!list || !list->is_array()) return false;
    const std::vector<JsonCursor> elements = list_of(*list);
    for (std::size_t i = 0; i < elements.size(); ++i) use(layers_[i], elements[i]);
    return true;
  }

  void read_widths() {
    shape_.layers = first_at(config_, {"num_hidden_layers", "num_layers"}, 1, kMostLayers);
    if (type_ == "longcat_flash") shape_.layers *= 2;
    shape_.hidden = config_.at("hidden_size").integer(1, kMostWidth);
    if (!read_defaults()) {
      shape_.heads = config_.at("num_attention_heads").integer(1, kMostHeads);
      shape_.vocabulary = config_.at("vocab_size").integer(1, kMostTokens);
    }
    shape_.gated = true;
    shape_.rotary = true;
    shape_.parallel = flag_or(config_, "use_parallel_residual", false);  // StableLM 2 12B
    shape_.tied =
        flag_or(config_, "tie_word_embeddings", flag_or(config_, "tie_embedding", ties_by_code()));
    shape_.kv_heads = first_or(config_, {"num_key_value_heads", "num_attention_groups"}, 1,
                               kMostHeads, shape_.kv_heads > 0 ? shape_.kv_heads : shape_.heads);
    // Hunyuan's files have its ranks whether it is used or not.
    if (has("kv_lora_rank") && flag_or(config_, "use_mla", true)) {
      read_latent_attention(config_, shape_);
      if (flag_or(config_, "mla_use_nope", false)) shape_.rotary = false;
    } else {
      const int otherwise =
          shape_.head_dim > 0 ? shape_.head_dim : std::max(1, shape_.hidden / shape_.heads);
      shape_.head_dim = integer_or(config_, "head_dim", 1, kMostWidth, otherwise);
    }
    if (shape_.heads % shape_.kv_heads != 0) {
      config_.at("num_key_value_heads")
          .fail("a divisor of " + std::to_string(shape_.heads) + " (num_attention_heads)");
    }
    shape_.ffn =
        first_or(config_, {"dense_intermediate_size", "intermediate_size", "ffn_hidden_size"}, 1,
                 kMostWidth, first_or(config_, {"moe_intermediate_size"}, 1, kMostWidth, 1));
    if (flag_or(config_, "block_auto_adjust_ff_dim", false)) shape_.ffn = adjusted(shape_.ffn);
    shape_.max_positions = integer_or(config_, "max_position_embeddings", 1, kMostTokens, 0);
    if (has("share_q_dim")) {  // Step-3: all heads' queries out of one vector
      shape_.low_rank.query_rank = config_.at("share_q_dim").integer(1, kMostWidth);
    }
    if (has("o_groups")) {
      shape_.low_rank = {.query_rank = config_.at("q_lora_rank").integer(1, kMostWidth),
                         .output_groups = config_.at("o_groups").integer(1, shape_.heads),
                         .output_rank = config_.at("o_lora_rank").integer(1, kMostWidth)};
    }
  }

  /// Families whose code has one table of words for both ends unless a file says otherwise.
  [[nodiscard]] bool ties_by_code() const {
    constexpr std::array<std::string_view, 7> kTied{
        "gemma", "vaultgemma", "lfm2", "ernie4_5", "smollm3", "minicpm", "exaone",
    };
    // Of EXAONE the first; the code of the later ones has two.
    if (type_.starts_with("exaone") && type_ != "exaone") return false;
    // MiniCPM's eyes came with another family's words (Qwen 2's and later ones').
    if (type_.starts_with("minicpmv") || type_.starts_with("minicpmo")) return false;
    return std::ranges::any_of(kTied, [&](std::string_view one) { return type_.starts_with(one); });
  }

  /// Gemma 3's files leave out what its code assumes
  /// (github:huggingface/transformers:src/transformers/models/gemma3/configuration_gemma3.py).
  bool read_defaults() {
    if (!type_.starts_with("gemma3")) return false;
    constexpr int kGemmaHeads = 8, kGroups = 4, kColumns = 256, kWords = 262'208;
    shape_.heads = integer_or(config_, "num_attention_heads", 1, kMostHeads, kGemmaHeads);
    shape_.kv_heads = std::min(kGroups, shape_.heads);
    shape_.head_dim = kColumns;
    shape_.vocabulary = integer_or(config_, "vocab_size", 1, kMostTokens, kWords);
    return true;
  }

  /// Layers without attention, and MLPs of different widths
  /// (https://huggingface.co/nvidia/Llama-3_3-Nemotron-Super-49B-v1/blob/main/modeling_decilm.py).
  void read_blocks() {
    for (KindShape& layer : layers_) {
      layer.latent = shape_.latent.key_value_rank > 0;
      layer.ffn = shape_.ffn;
    }
    // DeciLM's.
    (void)for_each_layer(
        config_, "num_key_value_heads_per_layer", [&](KindShape& layer, const JsonCursor& groups) {
          layer.kv_heads = groups.integer(1, kMostHeads);
          if (shape_.heads % layer.kv_heads == 0) return;
          groups.fail("a divisor of " + std::to_string(shape_.heads) + " (num_attention_heads)");
        });
    int widest = 0;
    const bool listed =
        for_each_layer(config_, "block_configs", [&](KindShape& layer, const JsonCursor& block) {
          const JsonCursor attention = block.at("attention"), mlp = block.at("ffn");
          for (const JsonCursor& part : {attention, mlp}) {
            const std::optional<JsonCursor> linear = part.find("replace_with_linear");
            if (linear && !linear->is_null() && linear->boolean()) {
              linear->fail("false: a layer with a product in place of its block is not known");
            }
          }
          if (flag_or(attention, "no_op", false)) {
            layer.mixer = Mixer::none;
          } else {
            layer.kv_heads =
                shape_.heads / attention.at("n_heads_in_group").integer(1, shape_.heads);
            shape_.kv_heads = layer.kv_heads;
          }
          layer.ffn = flag_or(mlp, "no_op", false) ? 0 : ffn_of(mlp.at("ffn_mult"));
          widest = std::max(widest, layer.ffn);
        });
    if (listed) shape_.ffn = std::max(1, widest);
  }
  /// Two thirds, times a factor, up to whole blocks (LFM2).
  [[nodiscard]] int adjusted(int ffn) const {
    constexpr Interval kFactor{0.01, 64};
    const int block = integer_or(config_, "block_multiple_of", 1, kMostWidth, 256);
    const std::optional<JsonCursor> factor = first_of(config_, {"block_ffn_dim_multiplier"});
    const double width =
        std::floor((factor ? factor->number(kFactor) : 1) * std::floor(2 * ffn / 3));
    return static_cast<int>(std::ceil(width / block)) * block;
  }
  /// Two thirds of the multiple, up to whole blocks of 256.
  [[nodiscard]] int ffn_of(const JsonCursor& multiple) const {
    constexpr Interval kMultiple{0, 64, true};
    constexpr int kBlock = 256;
    const double width = std::floor(2 * multiple.number(kMultiple) * shape_.hidden / 3);
    return static_cast<int>(std::ceil(width / kBlock)) * kBlock;
  }

  void read_experts() {
    const std::optional<JsonCursor> count = expert_count(config_);
    if (!count || !flag_or(config_, "enable_moe_block", true)) return;
    if (says_dense(config_, type_)) return read_dense();
    ExpertShape& x = shape_.experts;
    x.count = number_of(*count, 1, kMostExperts);
    x.per_token = first_at(config_,
                           {"num_experts_per_tok", "num_experts_per_token", "top_k_experts",
                            "moe_k", "moe_topk", "moe_top_k"},
                           1, x.count);
    x.ffn =
        first_at(config_, {"moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size"},
                 1, kMostWidth);
    x.latent =
        first_or(config_, {"moe_latent_size", "routed_expert_hidden_size"}, 0, kMostWidth, 0);
    constexpr int kMostShared = 64;
    const int shared = first_or(
        config_,
        {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"},
        0, kMostShared, 0);
    x.shared_ffn = first_or(
        config_,
        {"shared_expert_intermediate_size", "share_expert_dim", "shared_intermediate_size"}, 0,
        kMostWidth, shared * x.ffn);
    // An MLP beside the experts; Arctic's is as wide as the stream.
    if (type_.starts_with("gemma4") || flag_or(config_, "residual_moe", false)) {
      x.shared_ffn = shape_.ffn;
    }
    if (flag_or(config_, "parallel_attn_mlp_res", false)) x.shared_ffn = shape_.hidden;
    if (type_.starts_with("hunyuan") && !flag_or(config_, "use_mixed_mlp_moe", true)) {
      x.shared_ffn = 0;
    }
    if (has("zero_expert_num")) read_idle_experts();
    x.gated_shared = type_.starts_with("qwen3_next") || type_.starts_with("qwen3_5");
    mark_experts();
    for (KindShape& layer : layers_) {
      if (layer.experts) layer.ffn = 0;
    }
  }
  /// Choices among experts that compute and others that give back what they take: of a token's
  /// choices as many compute as there are of them, in the mean (Meituan 2025, LongCat-Flash,
  /// arXiv:2509.01322, section 2.1). The router scores both.
  void read_idle_experts() {
    ExpertShape& x = shape_.experts;
    const int idle = config_.at("zero_expert_num").integer(0, kMostExperts);
    if (idle == 0) return;
    const int choices = x.per_token, all = x.count + idle;
    x.per_token = std::max(1, (2 * choices * x.count + all) / (2 * all));
    assumptions_.push_back("model: of the " + std::to_string(choices) +
                           " experts of a token (moe_topk) " + std::to_string(x.per_token) +
                           " compute in the mean, as " + std::to_string(idle) + " of " +
                           std::to_string(all) + " do nothing (zero_expert_num)");
  }
  /// No experts: what they would share is the MLP (Granite 4).
  void read_dense() {
    shape_.ffn = first_or(config_, {"shared_intermediate_size"}, 1, kMostWidth, shape_.ffn);
    for (KindShape& layer : layers_) layer.ffn = shape_.ffn;
  }
  void mark_experts() {
    constexpr std::array<std::string_view, 2> kMlpTypes{"dense", "sparse"};
    if (for_each_layer(config_, "mlp_layer_types", [&](KindShape& layer, const JsonCursor& type) {
          layer.experts = type.choice(kMlpTypes) == 1;
        })) {
      return;
    }
    if (for_each_layer(config_, "moe_layer_freq", [](KindShape& layer, const JsonCursor& flag) {
          layer.experts = flag.integer(0, 1) == 1;
        })) {
      return;
    }
    if (for_each_layer(config_, "is_moe_layer", [](KindShape& layer, const JsonCursor& flag) {
          layer.experts = flag.boolean();
        })) {
      return;
    }
    if (has("moe_layers_enum")) return mark_written(config_.at("moe_layers_enum"));
    if (type_ == "longcat_flash") return mark_shortcuts();
    const int dense =
        first_or(config_, {"first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"}, 0,
                 kMostLayers, 0);
    const int step =
        first_or(config_, {"decoder_sparse_step", "moe_layer_freq", "moe_layer_frequency"}, 1,
                 kMostLayers, 1);
    const bool counts_from_one = has("decoder_sparse_step") || has("moe_layer_frequency");
    for (int i = 0; i < shape_.layers; ++i) {
      layers_[static_cast<std::size_t>(i)].experts =
          i >= dense && (counts_from_one ? (i + 1) % step == 0 : i % step == 0);
    }
    if (const std::optional<JsonCursor> only = first_of(config_, {"mlp_only_layers"})) {
      for (const JsonCursor& layer : only->elements(kMostLayers)) {
        layers_[static_cast<std::size_t>(layer.integer(0, shape_.layers - 1))].experts = false;
      }
    }
  }

  /// A layer of LongCat is two of attention and an MLP, and experts that read what the first
  /// attention gives and are added behind the second MLP: here they stand beside the latter.
  void mark_shortcuts() {
    shape_.experts.shared_ffn = shape_.ffn;
    for (std::size_t i = 1; i < layers_.size(); i += 2) layers_[i].experts = true;
    shape_.other_parameters += static_cast<double>(shape_.layers) / 2 * shape_.hidden *
                               integer_or(config_, "zero_expert_num", 0, kMostExperts, 0);
  }
  /// Numbers of layers in a text, with commas (Step-3).
  void mark_written(const JsonCursor& list) {
    const std::string text = list.string();
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
      int layer = -1;
      const auto [behind, error] = std::from_chars(at, end, layer);
      const bool ends = behind == end || *behind == ',';
      if (error != std::errc{} || !ends || layer < 0 || layer >= shape_.layers) {
        list.fail("numbers of layers below " + std::to_string(shape_.layers) + ", with commas");
      }
      layers_[static_cast<std::size_t>(layer)].experts = true;
      at = behind == end ? end : behind + 1;
    }
  }

  // --- what lets tokens see each other ---------------------------------------------------------

  void read_mixers() {
    if (const std::optional<JsonCursor> linear = first_of(config_, {"linear_attn_config"})) {
      return read_kimi(*linear);
    }
    if (const MixerKind* kind = mixer_of_family(type_)) return read_mixer(*kind);
    if (has_linear_attention()) return read_linear();
    if (type_ == "granitemoehybrid" || type_ == "bamba") return read_granite();
    if (!has("linear_num_value_heads")) return;
    DeltaShape& d = shape_.delta;
    d.key_heads = config_.at("linear_num_key_heads").integer(1, kMostHeads);
    d.value_heads = config_.at("linear_num_value_heads").integer(1, kMostHeads);
    d.key_dim = config_.at("linear_key_head_dim").integer(1, kMostWidth);
    d.value_dim = config_.at("linear_value_head_dim").integer(1, kMostWidth);
    d.kernel = integer_or(config_, "linear_conv_kernel_dim", 1, 64, 4);
    if (d.value_heads % d.key_heads != 0) {
      config_.at("linear_num_value_heads")
          .fail("a multiple of " + std::to_string(d.key_heads) + " (linear_num_key_heads)");
    }
    constexpr std::array<std::string_view, 2> kTypes{"full_attention", "linear_attention"};
    if (for_each_layer(config_, "layer_types", [&](KindShape& layer, const JsonCursor& type) {
          if (type.choice(kTypes) == 1) make_delta(layer);
        })) {
      return;
    }
    const int interval = integer_or(config_, "full_attention_interval", 1, kMostLayers, 4);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if ((i + 1) % static_cast<std::size_t>(interval) != 0) make_delta(layers_[i]);
    }
  }
  /// Its numbers, and which layers have it: by their types, or all but those of a list.
  void read_mixer(const MixerKind& kind) {
    for (const MixerMember& one : kind.members) {
      const JsonCursor at = config_.at(one.config_key);
      one.number(shape_) = at.integer(one.low, one.high);
    }
    const std::array<std::string_view, 2> types{"full_attention", kind.layer_type};
    if (for_each_layer(config_, "layer_types", [&](KindShape& layer, const JsonCursor& type) {
          if (type.choice(types) == 1) layer.mixer = kind.mixer;
        })) {
      return;
    }
    for (KindShape& layer : layers_) layer.mixer = kind.mixer;
    for (const JsonCursor& at : config_.at("full_attn_idxs").elements(kMostLayers)) {
      layers_[static_cast<std::size_t>(at.integer(0, shape_.layers - 1))].mixer = Mixer::attention;
    }
  }
  /// Lightning attention of MiniMax-01 and M1, and of Ring's linear models.
  [[nodiscard]] bool has_linear_attention() const {
    constexpr std::array<std::string_view, 4> kTypes{"minimax", "minimax_text_01", "minimax_m1",
                                                     "bailing_moe_linear"};
    return std::ranges::find(kTypes, type_) != kTypes.end();
  }
  /// As many heads of keys and values as of queries; which layers have it says a list, or all but
  /// the last of each group and what is behind the last whole group have it (Ring).
  void read_linear() {
    const Mixer mixer = mixer_called("linear_attention");
    MixerNumbers& numbers = shape_.mixers[static_cast<std::size_t>(mixer)];
    numbers[0] = shape_.heads;
    numbers[1] = shape_.head_dim;
    const auto set = [&](KindShape& layer, bool linear) {
      if (linear) layer.mixer = mixer;
    };
    constexpr std::array<std::string_view, 2> kNames{"full_attention", "linear_attention"};
    if (for_each_layer(config_, "attn_type_list",
                       [&](KindShape& layer, const JsonCursor& type) {
                         set(layer, type.integer(0, 1) == 0);
                       }) ||
        for_each_layer(config_, "layer_types", [&](KindShape& layer, const JsonCursor& type) {
          set(layer, type.choice(kNames) == 1);
        })) {
      return;
    }
    const int group = config_.at("layer_group_size").integer(1, kMostLayers);
    const int whole = shape_.layers / group * group;
    for (int i = 0; i < whole; ++i) {
      set(layers_[static_cast<std::size_t>(i)], (i + 1) % group != 0);
    }
  }
  /// Which layers are Mamba-2's: by their types, or all but those of a list (Bamba).
  void mark_mamba() {
    constexpr std::array<std::string_view, 2> kTypes{"attention", "mamba"};
    if (for_each_layer(config_, "layer_types", [&](KindShape& layer, const JsonCursor& type) {
          if (type.choice(kTypes) == 1) layer.mixer = Mixer::mamba;
        })) {
      return;
    }
    const JsonCursor list = config_.at(type_ == "bamba" ? "attn_layer_indices" : "layer_types");
    for (KindShape& layer : layers_) layer.mixer = Mixer::mamba;
    for (const JsonCursor& at : list.elements(kMostLayers)) {
      layers_[static_cast<std::size_t>(at.integer(0, shape_.layers - 1))].mixer = Mixer::attention;
    }
  }
  /// Mamba-2 or attention before the MLP or the experts of each layer
  /// (github:huggingface/transformers:src/transformers/models/granitemoehybrid).
  void read_granite() {
    mark_mamba();
    MambaShape& mamba = shape_.mamba;
    mamba.heads = integer_or(config_, "mamba_n_heads", 1, kMostHeads, 128);
    mamba.state = integer_or(config_, "mamba_d_state", 1, kMostWidth, 256);
    mamba.groups = integer_or(config_, "mamba_n_groups", 1, kMostHeads, 1);
    mamba.kernel = integer_or(config_, "mamba_d_conv", 1, 64, 4);
    mamba.chunk = integer_or(config_, "mamba_chunk_size", 1, kMostTokens, 256);
    const int columns = shape_.hidden * integer_or(config_, "mamba_expand", 1, 64, 2);
    const std::optional<JsonCursor> dim = first_of(config_, {"mamba_d_head"});
    mamba.head_dim = dim && dim->is_number() ? dim->integer(1, kMostWidth) : columns / mamba.heads;
    if (mamba.head_dim * mamba.heads != columns || mamba.heads % mamba.groups != 0) {
      config_.at("mamba_n_heads")
          .fail("a multiple of mamba_n_groups that with mamba_d_head makes " +
                std::to_string(columns) + " columns");
    }
  }
  /// Layers count from 1 in these lists (github:MoonshotAI/Kimi-Linear).
  void read_kimi(const JsonCursor& linear) {
    DeltaShape& d = shape_.delta;
    d.key_heads = d.value_heads = linear.at("num_heads").integer(1, kMostHeads);
    d.key_dim = d.value_dim = linear.at("head_dim").integer(1, kMostWidth);
    d.kernel = integer_or(linear, "short_conv_kernel_size", 1, 64, 4);
    d.channel_decay = true;
    d.gate_rank = flag_or(linear, "use_full_rank_gate", false) ? 0 : d.key_dim;
    for (const JsonCursor& layer : linear.at("kda_layers").elements(kMostLayers)) {
      make_delta(layers_[static_cast<std::size_t>(layer.integer(1, shape_.layers) - 1)]);
    }
    (void)linear.find("full_attn_layers");
    (void)linear.find("gate_lower_bound");
  }
  /// Layers whose attention goes over an image alone, behind gates, and rows of the embedding for
  /// images (github:huggingface/transformers:src/transformers/models/mllama).
  void read_image_layers() {
    if (type_ != "mllama_text_model") return;
    constexpr int kRows = 8, kGates = 2;
    shape_.other_parameters += static_cast<double>(kRows) * shape_.hidden;
    for (const JsonCursor& at : config_.at("cross_attention_layers").elements(kMostLayers)) {
      KindShape& layer = layers_[static_cast<std::size_t>(at.integer(0, shape_.layers - 1))];
      layer.mixer = Mixer::none;
      layer.cross = true;
      shape_.other_parameters += 2.0 * shape_.head_dim + kGates;
    }
  }
  static void make_delta(KindShape& layer) {
    layer.mixer = Mixer::delta;
    layer.latent = false;
  }

  /// Types of layers that no mixer above has read, and that nobody would read.
  void refuse_other_types() const {
    if (shape_.delta.key_heads > 0 || shape_.mamba.heads > 0 || mixer_of_family(type_) != nullptr ||
        has_linear_attention()) {
      return;
    }
    const std::optional<JsonCursor> types = first_of(config_, {"layer_types"});
    if (!types || !types->is_array()) return;
    constexpr std::array<std::string_view, 2> kKnown{"full_attention", "sliding_attention"};
    for (const JsonCursor& type : types->elements(kMostLayers)) (void)type.choice(kKnown);
  }

  void read_windows() {
    // -1: none (Grok 2).
    const int window = std::max(
        0, first_or(config_, {"sliding_window", "sliding_window_size"}, -1, kMostTokens, 0));
    if (has("compress_ratios")) return read_compression(window);
    constexpr std::array<std::string_view, 2> kTypes{"full_attention", "sliding_attention"};
    const auto slide = [&](KindShape& layer, bool slides) {
      if (slides) {
        make_sliding(layer, window);
      } else {
        make_global(layer);
      }
    };
    if (for_each_layer(
            config_, "hybrid_layer_pattern",
            [&](KindShape& layer, const JsonCursor& at) { slide(layer, at.integer(0, 1) == 1); })) {
      require_window(window);
    } else if (window > 0 && ((shape_.delta.key_heads == 0 &&
                               for_each_layer(config_, "layer_types",
                                              [&](KindShape& layer, const JsonCursor& at) {
                                                slide(layer, at.choice(kTypes) == 1);
                                              })) ||
                              read_sliding_pattern(slide))) {
      return;
    } else if (window > 0 && flag_or(config_, "use_sliding_window", true)) {
      config_.at("sliding_window").fail("layer_types beside it, which say which layers have it");
    }
    if (has("v_head_dim") && shape_.latent.key_value_rank == 0) {
      const int value = config_.at("v_head_dim").integer(1, kMostWidth);
      for (KindShape& layer : layers_) {
        if (layer.value_dim == 0) layer.value_dim = value;
      }
    }
  }
  /// Every n-th layer attends to all, or a letter says it of each of so many: L for a window
  /// (EXAONE 4).
  template <class Slide>
  bool read_sliding_pattern(const Slide& slide) {
    constexpr int kGemma = 6;
    const std::optional<JsonCursor> pattern = first_of(config_, {"sliding_window_pattern"});
    if (!pattern && !type_.starts_with("gemma3")) return false;
    if (pattern && pattern->is_string()) {
      const std::string letters = pattern->string();
      if (letters.empty() || letters.find_first_not_of("LG") != std::string::npos) {
        pattern->fail("letters L (a window) and G (all tokens), or a number");
      }
      for (std::size_t i = 0; i < layers_.size(); ++i) {
        slide(layers_[i], letters[i % letters.size()] == 'L');
      }
      return true;
    }
    const auto every =
        static_cast<std::size_t>(pattern ? pattern->integer(1, kMostLayers) : kGemma);
    for (std::size_t i = 0; i < layers_.size(); ++i) slide(layers_[i], (i + 1) % every != 0);
    return true;
  }
  void require_window(int window) const {
    if (window == 0) (void)config_.at("sliding_window");
  }
  void make_sliding(KindShape& layer, int window) {
    layer.window = window;
    layer.heads = first_or(config_, {"swa_num_attention_heads"}, 1, kMostHeads, 0);
    layer.kv_heads = first_or(config_, {"swa_num_key_value_heads"}, 1, kMostHeads, 0);
    layer.head_dim = first_or(config_, {"swa_head_dim"}, 1, kMostWidth, 0);
    layer.value_dim = first_or(config_, {"swa_v_head_dim"}, 1, kMostWidth, 0);
  }
  void make_global(KindShape& layer) {
    layer.head_dim = first_or(config_, {"global_head_dim"}, 1, kMostWidth, 0);
    layer.kv_heads = first_or(config_, {"num_global_key_value_heads"}, 1, kMostHeads, 0);
    layer.one_projection = flag_or(config_, "attention_k_eq_v", false);
  }

  /// 0: a window alone; 4: entries that an index chooses from; others: all entries.
  void read_compression(int window) {
    require_window(window);
    constexpr int kChosenFrom = 4;
    constexpr int kMostRatio = 1 << 16;
    (void)for_each_layer(config_, "compress_ratios", [&](KindShape& layer, const JsonCursor& at) {
      layer.window = window;
      layer.one_projection = true;
      layer.compression = at.integer(0, kMostRatio);
      if (layer.compression == kChosenFrom) layer.index = index_of_keys();
    });
  }
  [[nodiscard]] KeyIndex index_of_keys() const {
    return {.keys = config_.at("index_topk").integer(1, kMostTokens),
            .heads = config_.at("index_n_heads").integer(1, kMostHeads),
            .dim = config_.at("index_head_dim").integer(1, kMostWidth)};
  }

  /// Layers whose attention goes over the keys that an index chooses.
  void read_choices() {
    if (has("sparse_attention_config")) return read_sparse_blocks();
    if (!has("index_topk") || has("compress_ratios")) return;
    for (KindShape& layer : layers_) layer.index = index_of_keys();
    constexpr std::array<std::string_view, 2> kTypes{"full", "shared"};
    (void)for_each_layer(config_, "indexer_types", [&](KindShape& layer, const JsonCursor& type) {
      layer.index.shared = type.choice(kTypes) == 1;
    });
  }
  void read_sparse_blocks() {
    const JsonCursor sparse = config_.at("sparse_attention_config");
    if (!flag_or(sparse, "use_sparse_attention", true)) return;
    const int block = sparse.at("sparse_block_size").integer(1, kMostTokens);
    const int blocks = sparse.at("sparse_topk_blocks").integer(1, kMostTokens / block / 2) +
                       integer_or(sparse, "sparse_local_block", 0, kMostTokens / block / 4, 0) +
                       integer_or(sparse, "sparse_init_block", 0, kMostTokens / block / 4, 0);
    const KeyIndex index{.keys = blocks * block,
                         .heads = sparse.at("sparse_num_index_heads").integer(1, kMostHeads),
                         .dim = sparse.at("sparse_index_dim").integer(1, kMostWidth),
                         .block = block};
    if (for_each_layer(sparse, "sparse_attention_freq",
                       [&](KindShape& layer, const JsonCursor& flag) {
                         if (flag.integer(0, 1) == 1) layer.index = index;
                       })) {
      return;
    }
    for (KindShape& layer : layers_) layer.index = index;
  }

  /// Head by head, between their product and their rotation.
  [[nodiscard]] bool norms_queries() const {
    constexpr std::array kNormed{"qwen3",       "gemma3",  "olmo2", "olmo3",
                                 "olmo_hybrid", "exaone4", "afmoe"};
    const bool family = std::ranges::any_of(
        kNormed, [this](const char* prefix) { return type_.starts_with(prefix); });
    return family || flag_or(config_, "use_qk_norm", false) ||
           flag_or(config_, "qk_layernorm", false);
  }

  void read_gates() {
    const bool plain =
        type_.starts_with("qwen3_next") || type_.starts_with("qwen3_5") || type_ == "afmoe";
    const bool gates = flag_or(config_, "attn_output_gate", plain) ||
                       flag_or(config_, "attention_output_gate", false) ||
                       flag_or(config_, "mla_use_output_gate", false);
    for (KindShape& layer : layers_) {
      layer.output_gate = gates && layer.mixer == Mixer::attention;
    }
    if (norms_queries()) {
      assumptions_.emplace_back("model: norms of queries and keys are left out");
    }
    if (has("attn_res_block_size")) {
      assumptions_.emplace_back(
          "model: the sums of its residual stream over earlier blocks (attn_res_block_size) are "
          "left out");
    }
  }

  /// Gemma 3n: four streams, of which a layer reads and writes one, a thin path beside attention,
  /// and products between the streams at both ends. Layers that take keys from others have the
  /// weights of their own all the same, which nobody uses.
  void read_alternating() {
    if (!type_.starts_with("gemma3n")) return;
    constexpr int kStreams = 4, kRank = 64, kMostStreams = 64;
    shape_.residual_streams = integer_or(config_, "altup_num_inputs", 1, kMostStreams, kStreams);
    shape_.alternating = shape_.residual_streams > 1;
    const int rank = integer_or(config_, "laurel_rank", 0, kMostWidth, kRank);
    const double h = shape_.hidden, keys = 2.0 * shape_.kv_heads * shape_.head_dim;
    for (KindShape& layer : layers_) {
      layer.side_rank = rank;
      if (layer.shared_keys) shape_.other_parameters += keys * h;
    }
    shape_.other_parameters += 2 * (shape_.residual_streams - 1) * h * h;
    assumptions_.emplace_back(
        "model: products between its streams before the first layer and behind the last one "
        "(altup_num_inputs) compute nothing; their weights are counted");
  }

  /// Encoders that were made of decoders (EmbeddingGemma), whose windows are around each token.
  void read_directions() {
    const std::optional<JsonCursor> both = first_of(config_, {"use_bidirectional_attention"});
    // Of some the word "vision": among an image's patches, which is left out. Dream fills words in.
    const bool says = both && !both->is_string() && both->boolean();
    if (type_.starts_with("llada2") || type_.starts_with("sdar")) {
      assumptions_.emplace_back(
          "model: it fills words in, block by block; its tokens were taken to see those before "
          "them "
          "alone, each once");
    }
    if (!says && type_ != "Dream" && type_ != "llada_moe") return;
    for (KindShape& layer : layers_) layer.bidirectional = true;
  }

  /// Layers that take keys and values from a layer before them: all but the first of each few
  /// (Hunyuan Large: Sun et al. 2024, arXiv:2411.02265, section 2.1.2), or so many at the end, each
  /// from the last of its own type (Gemma 4).
  void read_shared_keys() {
    if (flag_or(config_, "use_cla", false)) {
      const int of = integer_or(config_, "cla_share_factor", 1, kMostLayers, 1);
      for (int i = 0; i < shape_.layers; ++i) {
        layers_[static_cast<std::size_t>(i)].shared_keys = i % of != 0;
      }
    }
    const int last = integer_or(config_, "num_kv_shared_layers", 0, kMostLayers, 0);
    if (last == 0) return;
    if (last >= shape_.layers) {
      config_.at("num_kv_shared_layers")
          .fail("less than " + std::to_string(shape_.layers) + " (num_hidden_layers)");
    }
    const bool wide = flag_or(config_, "use_double_wide_mlp", false);
    for (int i = shape_.layers - last; i < shape_.layers; ++i) {
      KindShape& layer = layers_[static_cast<std::size_t>(i)];
      layer.shared_keys = true;
      if (wide) layer.ffn *= 2;
    }
  }
  /// Embeddings of each layer's own, whose table no layer has (Gemma 3n and 4).
  void read_layer_inputs() {
    const int columns = integer_or(config_, "hidden_size_per_layer_input", 0, kMostWidth, 0);
    if (columns == 0) return;
    if (!type_.starts_with("gemma4") && !type_.starts_with("gemma3n")) {
      config_.at("hidden_size_per_layer_input").fail("0: how others add it is not known");
    }
    for (KindShape& layer : layers_) layer.layer_input = columns;
    const double words =
        integer_or(config_, "vocab_size_per_layer_input", 1, kMostTokens, shape_.vocabulary);
    shape_.other_parameters += (words * shape_.layers + 1) * columns;
  }

  /// Layers that are alike become one kind with a letter; a model of which all layers are alike, or
  /// differ by experts in a regular order only, needs none.
  void assign_layers() {
    const auto is_plain = [&](KindShape layer) {
      layer.ffn = 0;
      layer.experts = false;
      KindShape ordinary;
      ordinary.latent = shape_.latent.key_value_rank > 0;
      return layer == ordinary;
    };
    const bool plain = std::ranges::all_of(layers_, [&](const KindShape& layer) {
      return is_plain(layer) && (layer.experts || layer.ffn == shape_.ffn);
    });
    if (plain) {
      std::vector<bool> marked;
      for (const KindShape& layer : layers_) marked.push_back(layer.experts);
      if (std::ranges::find(marked, true) == marked.end()) {
        shape_.experts = {};
        return;
      }
      if (set_layout(marked, shape_.experts)) return;
    }
    set_kinds(config_, layers_, shape_);
  }

  const JsonCursor& config_;
  std::string_view type_;
  TransformerShape& shape_;
  std::vector<std::string>& assumptions_;
  std::vector<KindShape> layers_;
};

}  // namespace

Mixer mixer_called(std::string_view name) {
  const auto kinds = mixer_kinds();
  return (*std::ranges::find_if(kinds, [&](const MixerKind* kind) { return kind->name == name; }))
      ->mixer;
}

void set_kinds(const JsonCursor& config, const std::vector<KindShape>& layers,
               TransformerShape& shape) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  shape.pattern.clear();
  for (KindShape layer : layers) {
    auto same = std::ranges::find_if(shape.kinds, [&](KindShape known) {
      known.letter.clear();
      return known == layer;
    });
    if (same == shape.kinds.end()) {
      if (shape.kinds.size() == kLetters.size()) {
        config.fail("at most " + std::to_string(kLetters.size()) + " kinds of layers");
      }
      layer.letter = kLetters[shape.kinds.size()];
      same = shape.kinds.insert(shape.kinds.end(), layer);
    }
    shape.pattern += same->letter;
  }
}

const MixerKind* mixer_of_family(std::string_view type) {
  for (const MixerKind* kind : mixer_kinds()) {
    if (!kind->family.empty() && type.starts_with(kind->family)) return kind;
  }
  return nullptr;
}

void read_layers(const JsonCursor& config, std::string_view type, TransformerShape& shape,
                 std::vector<std::string>& assumptions) {
  LayerReader(config, type, shape, assumptions).read();
}

}  // namespace lockstep::hugging_face
