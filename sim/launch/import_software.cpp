// What the software of an imported job does: its stack, and what it computes twice.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/launch/import_parts.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFlash = "flash2";  // where a stack without a fused kernel is given one
constexpr std::string_view kCore = "core_attn", kFusedCore = "fused_attention";

/// What selective recomputation repeats, as the scenario calls it.
std::string_view module_name(std::string_view written) {
  constexpr std::array<std::array<std::string_view, 2>, 7> kModules{{{kCore, "core_attention"},
                                                                     {"layernorm", "layer_norm"},
                                                                     {"moe_act", "activation"},
                                                                     {"mla_up_proj", "latent_up"},
                                                                     {"mlp", "mlp"},
                                                                     {"shared_experts", "mlp"},
                                                                     {"moe", "activation"}}};
  for (const auto& [from, to] : kModules) {
    if (from == written) return to;
  }
  return written;
}

/// Says what the software does as a scenario does, where it is not what its preset says.
class ImportedSoftware {
 public:
  explicit ImportedSoftware(const ImportedJob& imported)
      : job_(imported.job),
        layout_(imported.layout),
        kind_(imported.kind),
        layers_(imported.layers),
        presets_(imported.presets) {}

  /// "recompute"; remarks say what is taken otherwise than it is written.
  Json recompute(std::vector<std::string>& remarks) const {
    if (job_.recompute == "full") {
      const int most = layout_.pipeline > 0 ? layers_ / layout_.pipeline : 0;
      const int some = job_.recompute_every_layer ? 0 : job_.recompute_layers.value_or(0);
      if (some > 0 && some < most) {
        remarks.push_back(fmt::format(
            "recomputation of {} of {} layers a stage: taken as all of them (not modelled)", some,
            most));
      }
      return "full";
    }
    if (job_.recompute.empty() && job_.recompute_modules.empty()) return "none";
    if (job_.recompute == "none") return "none";
    Json modules = Json::array();
    for (const std::string& name : job_.recompute_modules) {
      if (name == "moe") {
        remarks.emplace_back("recompute module moe: taken as the experts' activation");
      }
      const std::string_view word = core_repeats(name) ? kFusedCore : module_name(name);
      if (std::ranges::find(modules, Json(word)) == modules.end()) modules.push_back(word);
    }
    if (kind_ == LaunchKind::torchtitan) {
      return {{"modules", {"layer_norm", "activation"}},
              {"products", fmt::format("{:g} %", 100 * job_.recompute_products.value_or(0.5))}};
    }
    if (modules.empty() && core_repeats(kCore)) modules.push_back(kFusedCore);
    if (modules.empty()) return "selective";
    if (std::ranges::find(modules, Json(kFusedCore)) != modules.end()) {
      remarks.emplace_back(
          "recompute module core_attn: the fused kernel's forward pass runs again; memory is "
          "counted without its output, which Megatron-Core keeps for the product behind it");
    }
    return {{"modules", std::move(modules)}};
  }

  /// The stack, with what the files switch otherwise than it does.
  [[nodiscard]] Json stack() const {
    const std::string name = stack_name();
    const StackSpec& spec = presets_.stack(name).spec;
    Json one{{"preset", name}};
    std::map<std::string, bool> communication = job_.communication;
    // These two are switches of Megatron's own wrappers; fully_shard prefetches and reduces beside
    // compute by itself (pytorch.org/docs/stable/distributed.fsdp.fully_shard.html).
    if (kind_ == LaunchKind::megatron && !job_.zero_stage && !job_.torch_fsdp2) {
      communication.try_emplace("overlap_gradients", false);
      communication.try_emplace("overlap_parameters", false);
    }
    const std::array<std::pair<const char*, bool>, 4> has{
        {{"overlap_gradients", spec.communication.overlap_gradients},
         {"overlap_parameters", spec.communication.overlap_parameters},
         {"overlap_pipeline", spec.communication.overlap_pipeline},
         {"sharp", spec.communication.sharp}}};
    for (const auto& [key, value] : has) {
      const auto said = communication.find(key);
      if (said != communication.end() && said->second != value) {
        one["communication"][key] = said->second;
      }
    }
    if (!job_.attention.empty() && is_fused(spec) != (job_.attention == "fused")) {
      one["attention"] = is_fused(spec) ? "unfused" : kFlash;
    }
    if (!job_.optimiser_states.empty()) one["optimiser_states"] = job_.optimiser_states;
    std::map<std::string, bool> switches = job_.stack_switches;
    for (const PresetRow& row : presets_.show("stacks", name)) {
      constexpr std::string_view kFeatures = "features.";
      if (!row.path.starts_with(kFeatures)) continue;
      const std::string feature = row.path.substr(kFeatures.size());
      if (job_.bf16_gradients && (feature == "gradients" || feature == "reduced_format")) {
        const std::string said = *job_.bf16_gradients ? "bf16" : "fp32";
        // fp16 training has 16-bit ones unless it says otherwise.
        if (row.value != said || job_.precision == "fp16") one[feature] = said;
      }
      const auto said = switches.find(feature);
      if (said == switches.end()) continue;
      if (row.value != (said->second ? "true" : "false")) one[said->first] = said->second;
      switches.erase(said);
    }
    for (const auto& [feature, on] : switches) {  // the preset is silent on it: off
      if (on) one[feature] = true;
    }
    return one.size() == 1 ? Json(name) : one;
  }

 private:
  /// Megatron-Core checkpoints attention whatever its kernel is (megatron/core/transformer/
  /// attention.py: _checkpointed_attention_forward), so that a fused one runs forward twice.
  [[nodiscard]] bool core_repeats(std::string_view module) const {
    constexpr std::array<std::string_view, 3> kCoreStacks{"megatron_core", "megatron_bridge",
                                                          "nemo"};
    return module == kCore && fused_attention() &&
           std::ranges::find(kCoreStacks, stack_name()) != kCoreStacks.end();
  }

  static bool is_fused(const StackSpec& spec) { return spec.attention != AttentionKernel::unfused; }
  /// Whether attention is one kernel, by the files or by the stack that they mean.
  [[nodiscard]] bool fused_attention() const {
    if (!job_.attention.empty()) return job_.attention == "fused";
    return is_fused(presets_.stack(stack_name()).spec);
  }

  [[nodiscard]] std::string stack_name() const {
    const bool deepspeed = job_.zero_stage.has_value();
    switch (kind_) {
      case LaunchKind::megatron:
        return deepspeed ? "megatron_deepspeed" : "megatron_core";
      case LaunchKind::nemo:
        return "nemo";
      case LaunchKind::bridge:
        return "megatron_bridge";
      case LaunchKind::torchtitan:
        return job_.compiled.value_or(false) ? "torchtitan" : "torchtitan_eager";
      case LaunchKind::maxtext:
        return "maxtext";
      case LaunchKind::neox:
        return "megatron_deepspeed";
      case LaunchKind::nanotron:
        return "nanotron";
      case LaunchKind::torchtune:
        return "torchtune";
      case LaunchKind::deepspeed:
        return "deepspeed";
      case LaunchKind::levanter:
        return "maxtext";
      case LaunchKind::colossal:
        if (job_.pipeline.value_or(1) > 1 || job_.tensor.value_or(1) > 1) return "megatron_core";
        return deepspeed && *job_.zero_stage == 3 ? "huggingface_deepspeed_zero3"
                                                  : "huggingface_deepspeed_zero2";
      case LaunchKind::foundry:
        return "huggingface_fsdp1";
      case LaunchKind::trainer:
      case LaunchKind::accelerate:
        if (job_.pipeline.value_or(1) > 1) return "megatron_core";
        if (deepspeed) {
          return *job_.zero_stage == 3 ? "huggingface_deepspeed_zero3"
                                       : "huggingface_deepspeed_zero2";
        }
        return job_.fsdp_version.value_or(2) == 1 && layout_.sharding != "none"
                   ? "huggingface_fsdp1"
                   : "huggingface_fsdp2";
      case LaunchKind::model:
        break;
    }
    return "neutral";
  }

  const JobSketch& job_;
  const CompleteLayout& layout_;
  LaunchKind kind_;
  int layers_;  ///< of the model
  const PresetStore& presets_;
};

}  // namespace

Json import_recompute(ImportedJob& imported) {
  return ImportedSoftware(imported).recompute(imported.job.remarks);
}

Json import_stack(const ImportedJob& imported) { return ImportedSoftware(imported).stack(); }

}  // namespace lockstep
