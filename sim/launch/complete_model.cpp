#include "sim/launch/complete_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/launch/model_names.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kUsualMultiple = 128;  // Megatron-LM: make-vocab-size-divisible-by
constexpr int kAssumedVocabulary = 128'256;
constexpr int kGpt2Words = 50'257, kLlama2Words = 32'000, kMambaHead = 64, kMambaState = 128;
constexpr int kMambaGroups = 8;

/// Megatron-LM's 4 h, or with three matrices 8 / 3 h down to a multiple of 64.
int usual_ffn(int hidden, bool gated) {
  return gated ? static_cast<int>(std::int64_t{4} * hidden * 2 / 3 / 64) * 64 : 4 * hidden;
}

std::int64_t up_to(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class Completion {
 public:
  Completion(const ModelSketch& model, LaunchKind kind, int tensor, const std::string& file,
             const PresetStore& presets, std::vector<JobAssumption>& assumptions)
      : model_(model),
        kind_(kind),
        tensor_(tensor),
        file_(file),
        presets_(presets),
        assumptions_(assumptions) {}

  Json shape() {
    const int hidden = *model_.hidden;
    const bool gated = model_.gated.value_or(kind_ == LaunchKind::maxtext);
    out_["name"] = std::filesystem::path(file_).stem().string();
    out_["layers"] = *model_.layers;
    out_["hidden"] = hidden;
    heads(hidden);
    out_["ffn"] = model_.ffn.value_or(usual_ffn(hidden, gated));
    out_["vocabulary"] = 0;
    out_["gated"] = gated;
    out_["tied"] = model_.tied.value_or(kind_ != LaunchKind::maxtext);
    positions();
    out_["biases"] = model_.biases.value_or(kind_ != LaunchKind::maxtext);
    if (model_.parallel == true) {
      out_["parallel"] = true;
      out_["separate_norms"] = model_.separate_norms.value_or(false);
    }
    experts();
    latent_attention();
    hybrid();
    if (model_.window) out_["window"] = *model_.window;
    if (model_.predicted_tokens) out_["predicted_tokens"] = *model_.predicted_tokens;
    const std::string same = preset_alike();
    vocabulary(same);
    return same.empty() ? out_ : as_preset(same);
  }

  /// A preset with what the sketch, filled with the preset's experts and ranks, says otherwise.
  Json changes_of(const std::string& preset) {
    const TransformerShape& one = presets_.model(preset);
    Json changes{{"preset", preset}};
    const auto change = [&](const char* key, const auto& said, auto has) {
      if (said && *said != has) changes[key] = *said;
    };
    change("layers", model_.layers, one.layers);
    change("hidden", model_.hidden, one.hidden);
    change("heads", model_.heads, one.heads);
    if (model_.latent_attention != true) {
      change("kv_heads", model_.query_groups, one.kv_heads);
      change("head_dim", head_dim_of(one), one.head_dim);
    }
    change("ffn", model_.ffn, one.ffn);
    change("gated", model_.gated, one.gated);
    change("tied", model_.tied, one.tied);
    change("biases", model_.biases, one.biases);
    change("window", model_.window, one.window);
    change("predicted_tokens", model_.predicted_tokens, one.predicted_tokens);
    if (model_.vocabulary && *model_.vocabulary != one.vocabulary &&
        padded(*model_.vocabulary) != one.vocabulary) {
      changes["vocabulary"] = padded(*model_.vocabulary);
    }
    experts_and_ranks(one, changes);
    return changes.size() == 1 ? Json(preset) : changes;
  }

 private:
  /// A width that the preset has by its heads follows them.
  [[nodiscard]] std::optional<int> head_dim_of(const TransformerShape& one) const {
    if (model_.head_dim || one.head_dim * one.heads != one.hidden) return model_.head_dim;
    return model_.hidden.value_or(one.hidden) / model_.heads.value_or(one.heads);
  }

  void experts_and_ranks(const TransformerShape& one, Json& changes) {
    out_["ffn"] = model_.ffn.value_or(one.ffn);
    experts();
    if (out_.contains("experts") && !same_experts(one.experts))
      changes["experts"] = out_["experts"];
    latent_attention();
    if (!same_latent(one.latent)) changes["latent_attention"] = out_["latent_attention"];
  }

  [[noreturn]] void fail(const std::string& key, const std::string& found,
                         const std::string& allowed) const {
    throw InputError(
        {.file = file_, .pointer = "/" + key, .found = found, .allowed = allowed, .nearest = {}});
  }

  void heads(int hidden) {
    if (!model_.heads) fail("num_attention_heads", "nothing", "the number of attention heads");
    const int all = *model_.heads;
    out_["heads"] = all;
    // NeMo has no flag beside the number of groups.
    const bool grouped = model_.grouped.value_or(kind_ != LaunchKind::megatron);
    const int groups =
        grouped ? model_.query_groups.value_or(grouped && kind_ == LaunchKind::megatron ? 1 : all)
                : all;
    if (all % groups != 0) {
      fail("num_query_groups", std::to_string(groups),
           fmt::format("a divisor of the {} attention heads", all));
    }
    if (model_.latent_attention == true) return;
    out_["kv_heads"] = groups;
    if (!model_.head_dim && hidden / all < 1) {
      fail("num_attention_heads", std::to_string(all), "at most hidden_size");
    }
    out_["head_dim"] = model_.head_dim.value_or(hidden / all);
  }

  void positions() {
    const std::string& kind = model_.position_kind;
    const bool learned = kind.empty() ? kind_ == LaunchKind::megatron ||
                                            kind_ == LaunchKind::nemo || kind_ == LaunchKind::bridge
                                      : kind == "learned_absolute";
    out_["learned_positions"] = learned && model_.positions.has_value();
    if (learned && model_.positions) out_["max_positions"] = *model_.positions;
    out_["rotary"] = kind == "rope" || kind == "yarn" || kind == "mrope" ||
                     (kind.empty() && kind_ == LaunchKind::maxtext);
  }

  void experts() {
    if (!model_.experts) return;
    const int ffn = model_.expert_ffn.value_or(out_["ffn"].get<int>());
    Json one{{"count", *model_.experts},
             {"per_token", std::min(model_.expert_top.value_or(2), *model_.experts)},
             {"ffn", ffn}};
    if (model_.expert_shared_ffn) {
      const int shared = *model_.expert_shared_ffn;  // negative: a number of experts
      one["shared_ffn"] = shared < 0 ? -shared * ffn : shared;
    }
    if (model_.expert_latent) one["latent"] = *model_.expert_latent;
    int leading = model_.leading_dense.value_or(0);
    int interval = model_.expert_interval.value_or(1);
    if (!model_.expert_layers.empty()) {
      const auto& list = model_.expert_layers;
      if (std::ssize(list) != *model_.layers) {
        fail("moe_layer_freq", fmt::format("{} layers", list.size()),
             fmt::format("{}, one for each of num_layers", *model_.layers));
      }
      leading = static_cast<int>(std::ranges::find(list, 1) - list.begin());
      const auto next = std::find(
          list.begin() + std::min<std::ptrdiff_t>(leading + 1, std::ssize(list)), list.end(), 1);
      interval = next == list.end() ? 1 : static_cast<int>(next - list.begin()) - leading;
      leading = std::max(0, leading - interval + 1);
    } else if (interval > 1) {
      // Megatron-LM's every n-th layer begins with the first, the simulator's ends with the n-th.
      assumptions_.push_back({"model.experts.interval", std::to_string(interval),
                              "the last of every so many layers has experts, not the first", ""});
    }
    if (leading > 0) one["leading_dense"] = leading;
    if (interval > 1) one["interval"] = interval;
    out_["experts"] = std::move(one);
  }

  void latent_attention() {
    if (model_.latent_attention != true) return;
    const int plain = model_.head_dim.value_or(128);
    out_["latent_attention"] = {{"query_rank", model_.query_rank.value_or(0)},
                                {"key_value_rank", model_.key_value_rank.value_or(32)},
                                {"nope_dim", model_.nope_dim.value_or(plain)},
                                {"rope_dim", model_.rope_dim.value_or(64)},
                                {"value_dim", model_.value_dim.value_or(plain)}};
  }

  void hybrid() {
    if (model_.pattern.empty()) return;
    out_["pattern"] = model_.pattern;
    out_["layers"] = model_.pattern.size();
    if (model_.pattern.find('M') == std::string::npos) return;
    const int head = model_.mamba_head_dim.value_or(kMambaHead);
    out_["mamba"] = {{"heads", model_.mamba_heads.value_or(2 * *model_.hidden / head)},
                     {"head_dim", head},
                     {"groups", model_.mamba_groups.value_or(kMambaGroups)},
                     {"state", model_.mamba_state.value_or(kMambaState)}};
  }

  [[nodiscard]] std::int64_t padded(std::int64_t words) const {
    if (kind_ == LaunchKind::maxtext || model_.vocabulary_is_padded) return words;
    const std::int64_t multiple =
        std::int64_t{model_.vocabulary_multiple.value_or(kUsualMultiple)} * tensor_;
    return up_to(words, multiple);
  }

  void vocabulary(const std::string& same) {
    if (model_.vocabulary) {
      out_["vocabulary"] = padded(*model_.vocabulary);
      return;
    }
    const std::string kind = lower(model_.tokenizer);
    const std::string named = preset_of_model_name(model_.hint, presets_);
    std::string why;
    std::int64_t words = 0;
    if (!named.empty()) {
      words = presets_.model(named).vocabulary;
      why = "by the tokenizer of " + named;
    } else if (kind.find("gpt2") != std::string::npos) {
      words = kGpt2Words;
      why = "the tokenizer of GPT-2";
    } else if (kind.find("llama2") != std::string::npos) {
      words = kLlama2Words;
      why = "the tokenizer of Llama 2";
    } else if (!same.empty()) {
      words = presets_.model(same).vocabulary;
      why = "as " + same + " has, whose other numbers these are";
    } else {
      words = kAssumedVocabulary;
      why = "no file says it";
    }
    out_["vocabulary"] = padded(words);
    assumptions_.push_back(
        {"model.vocabulary", std::to_string(padded(words)), why, "--set model.vocabulary=N"});
  }

  /// The preset that has these numbers, vocabulary aside where it is not said.
  [[nodiscard]] std::string preset_alike() const {
    for (const std::string& name : presets_.names("models")) {
      const TransformerShape& one = presets_.model(name);
      if (is_alike(one)) return name;
    }
    return {};
  }

  [[nodiscard]] bool is_alike(const TransformerShape& one) const {
    const auto same = [&](const char* key, auto value) {
      return !out_.contains(key) || out_[key] == Json(value);
    };
    const bool plain = one.kinds.empty() && one.window == 0 && model_.pattern.empty() &&
                       one.pattern.empty() && one.parallel == model_.parallel.value_or(false) &&
                       !one.bidirectional &&
                       one.predicted_tokens == model_.predicted_tokens.value_or(0);
    if (!plain || !same("layers", one.layers) || !same("hidden", one.hidden) ||
        !same("heads", one.heads) || !same("kv_heads", one.kv_heads) ||
        !same("head_dim", one.head_dim) || !same("gated", one.gated) || !same("tied", one.tied) ||
        !same("biases", one.biases) || !same("rotary", one.rotary) ||
        !same("learned_positions", one.learned_positions)) {
      return false;
    }
    const bool latent = out_.contains("latent_attention");
    if (latent != (one.latent.key_value_rank > 0) || !same_latent(one.latent)) return false;
    if (!same_experts(one.experts)) return false;
    // If every layer has experts, the width of the MLP is unused.
    const bool all_experts =
        one.experts.count > 0 && one.experts.leading_dense == 0 && one.experts.interval == 1;
    if (!all_experts && !same("ffn", one.ffn)) return false;
    if (!model_.vocabulary) return true;
    const double ratio = static_cast<double>(padded(*model_.vocabulary)) / one.vocabulary;
    return ratio > 0.98 && ratio < 1.03;
  }

  [[nodiscard]] bool same_latent(const LatentAttention& one) const {
    if (!out_.contains("latent_attention")) return true;
    const Json& own = out_["latent_attention"];
    return own["query_rank"] == one.query_rank && own["key_value_rank"] == one.key_value_rank &&
           own["nope_dim"] == one.nope_dim && own["rope_dim"] == one.rope_dim &&
           own["value_dim"] == one.value_dim;
  }

  [[nodiscard]] bool same_experts(const ExpertShape& one) const {
    if (!out_.contains("experts")) return one.count == 0;
    const Json& own = out_["experts"];
    return own["count"] == one.count && own["per_token"] == one.per_token &&
           own["ffn"] == one.ffn && own.value("shared_ffn", 0) == one.shared_ffn &&
           own.value("leading_dense", 0) == one.leading_dense &&
           own.value("interval", 1) == one.interval && own.value("latent", 0) == one.latent &&
           !one.gated_shared;
  }

  [[nodiscard]] Json as_preset(const std::string& name) const {
    const TransformerShape& one = presets_.model(name);
    if (out_["vocabulary"] == one.vocabulary) return name;
    return {{"preset", name}, {"vocabulary", out_["vocabulary"]}};
  }

  const ModelSketch& model_;
  LaunchKind kind_;
  int tensor_;
  const std::string& file_;
  const PresetStore& presets_;
  std::vector<JobAssumption>& assumptions_;
  Json out_;
};

}  // namespace

namespace {

/// Families of Megatron-Bridge whose base class is a decoder with a gated MLP, rotary positions, an
/// output of its own and no biases (megatron/bridge/models/*/*_provider.py).
constexpr std::array<std::string_view, 5> kLikeLlama{"llama", "mistral", "mixtral", "qwen",
                                                     "deepseek"};

/// What the base class of a family has, where the file leaves it out.
ModelSketch with_defaults_of(const std::string& provider, ModelSketch model,
                             std::vector<JobAssumption>& assumptions) {
  const std::string name = lower(provider);
  const bool known = std::ranges::any_of(
      kLikeLlama, [&](std::string_view family) { return name.starts_with(family); });
  if (known) {
    model.gated = model.gated.value_or(true);
    model.tied = model.tied.value_or(false);
    model.biases = model.biases.value_or(false);
    if (model.position_kind.empty()) model.position_kind = "rope";
  } else if (!name.starts_with("gpt")) {
    assumptions.push_back({"model", "Megatron-LM's defaults",
                           "what the class " + provider +
                               " sets beside the file's sizes is not "
                               "known",
                           "--model NAME"});
  }
  return model;
}

/// Experts and ranks of latent attention, where a file says a part of them.
ModelSketch with_parts_of(ModelSketch model, const TransformerShape& one) {
  const auto fill = [](std::optional<int>& said, int has) {
    if (!said && has > 0) said = has;
  };
  fill(model.layers, one.layers);
  fill(model.hidden, one.hidden);
  if (one.latent.key_value_rank > 0) {
    model.latent_attention = true;
    fill(model.query_rank, one.latent.query_rank);
    fill(model.key_value_rank, one.latent.key_value_rank);
    fill(model.nope_dim, one.latent.nope_dim);
    fill(model.rope_dim, one.latent.rope_dim);
    fill(model.value_dim, one.latent.value_dim);
  }
  const bool says_experts = model.experts || model.expert_top || model.expert_ffn ||
                            model.expert_shared_ffn || !model.expert_layers.empty();
  if (one.experts.count == 0 || !says_experts) return model;
  fill(model.experts, one.experts.count);
  fill(model.expert_top, one.experts.per_token);
  fill(model.expert_ffn, one.experts.ffn);
  fill(model.expert_shared_ffn, one.experts.shared_ffn);
  fill(model.expert_latent, one.experts.latent);
  if (model.expert_layers.empty()) {
    fill(model.leading_dense, one.experts.leading_dense);
    if (!model.expert_interval) model.expert_interval = one.experts.interval;
  }
  return model;
}

}  // namespace

bool has_shape(const ModelSketch& model) { return model.layers && model.hidden && model.heads; }

Json complete_model(const ModelSketch& model, LaunchKind kind, int tensor, const std::string& file,
                    const PresetStore& presets, std::vector<JobAssumption>& assumptions) {
  std::string name = model.name;
  if (!model.flavor.empty()) name += " " + model.flavor;
  const std::string preset = preset_of_model_name(name, presets);
  // Of these the name is a class, whose sizes hold where the file says nothing else.
  const bool of_class = kind == LaunchKind::bridge || kind == LaunchKind::nemo;
  if (of_class && !preset.empty()) {
    const ModelSketch whole = with_parts_of(model, presets.model(preset));
    return Completion(whole, kind, tensor, file, presets, assumptions).changes_of(preset);
  }
  if (has_shape(model)) {
    const ModelSketch whole =
        of_class && !name.empty() ? with_defaults_of(name, model, assumptions) : model;
    return Completion(whole, kind, tensor, file, presets, assumptions).shape();
  }
  return preset.empty() ? Json(nullptr) : Json(preset);
}

}  // namespace lockstep
