// Experts of decoders: their widths, and which layers have them.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "models/spec/hugging_face_layers.hpp"

namespace lockstep::hugging_face {
namespace {

std::optional<JsonCursor> expert_count(const JsonCursor& config) {
  return first_of(config, {"n_routed_experts", "num_experts", "num_local_experts",
                           "num_routed_experts", "moe_num_experts"});
}

/// Reads how large experts are, and marks the layers that have them.
class LayerExperts : private LayerPart {
 public:
  using LayerPart::LayerPart;

  void read() {
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
    if (draft_.has("zero_expert_num")) read_idle_experts();
    x.gated_shared = type_.starts_with("qwen3_next") || type_.starts_with("qwen3_5");
    mark_experts();
    for (KindShape& layer : layers_) {
      if (layer.experts) layer.ffn = 0;
    }
  }

 private:
  /// Choices among experts that compute and others that give back what they take: of a token's
  /// choices as many compute as there are of them, in the mean (Meituan 2025, LongCat-Flash,
  /// arXiv:2509.01322, section 2.1). The router scores both.
  void read_idle_experts() {
    ExpertShape& x = shape_.experts;
    const int idle = config_.at("zero_expert_num").integer(0, kMostExperts);
    if (idle == 0) return;
    const int choices = x.per_token, all = x.count + idle;
    x.per_token = std::max(1, (2 * choices * x.count + all) / (2 * all));
    draft_.assumptions.push_back("model: of the " + std::to_string(choices) +
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
    if (draft_.for_each_layer(config_, "mlp_layer_types",
                              [&](KindShape& layer, const JsonCursor& type) {
                                layer.experts = type.choice(kMlpTypes) == 1;
                              })) {
      return;
    }
    if (draft_.for_each_layer(config_, "moe_layer_freq",
                              [](KindShape& layer, const JsonCursor& flag) {
                                layer.experts = flag.integer(0, 1) == 1;
                              })) {
      return;
    }
    if (draft_.for_each_layer(
            config_, "is_moe_layer",
            [](KindShape& layer, const JsonCursor& flag) { layer.experts = flag.boolean(); })) {
      return;
    }
    if (draft_.has("moe_layers_enum")) return mark_written(config_.at("moe_layers_enum"));
    if (type_ == "longcat_flash") return mark_shortcuts();
    const int dense =
        first_or(config_, {"first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"}, 0,
                 kMostLayers, 0);
    const int step =
        first_or(config_, {"decoder_sparse_step", "moe_layer_freq", "moe_layer_frequency"}, 1,
                 kMostLayers, 1);
    const bool counts_from_one =
        draft_.has("decoder_sparse_step") || draft_.has("moe_layer_frequency");
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
};

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

void read_layer_experts(LayerDraft& draft) { LayerExperts(draft).read(); }

}  // namespace lockstep::hugging_face
