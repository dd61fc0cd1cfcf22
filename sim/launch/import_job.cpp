#include "sim/launch/import_job.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_override.hpp"
#include "models/base/json_text.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "models/spec/hugging_face.hpp"
#include "sim/launch/complete_layout.hpp"
#include "sim/launch/complete_model.hpp"
#include "sim/launch/launch_files.hpp"
#include "sim/launch/model_names.hpp"
#include "sim/scenario/capabilities.hpp"
#include "sim/scenario/read_scenario.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr int kAssumedTokens = 4096, kAssumedLoraRank = 8;
constexpr std::string_view kAssumedNode = "dgx_h100";
constexpr const char* kFlash = "flash2";  // where a stack without a fused kernel is given one

/// The kind that decides what the defaults are: of a model's software before what shards it.
LaunchKind leading_kind(const std::vector<LaunchPart>& parts) {
  constexpr std::array kOrder{LaunchKind::megatron,   LaunchKind::neox,     LaunchKind::nanotron,
                              LaunchKind::torchtune,  LaunchKind::foundry,  LaunchKind::levanter,
                              LaunchKind::colossal,   LaunchKind::nemo,     LaunchKind::bridge,
                              LaunchKind::torchtitan, LaunchKind::maxtext,  LaunchKind::trainer,
                              LaunchKind::accelerate, LaunchKind::deepspeed};
  for (const LaunchKind kind : kOrder) {
    if (std::ranges::any_of(parts, [&](const LaunchPart& part) { return part.kind == kind; })) {
      return kind;
    }
  }
  return LaunchKind::model;
}

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

class Import {
 public:
  Import(const std::vector<std::string>& files, const JobImportOptions& options,
         const PresetStore& presets, JobImport& out)
      : files_(files), options_(options), presets_(presets), out_(out) {}

  void run() {
    launch_ = read_launch_files(files_, options_.set);
    for (const LaunchPart& part : launch_.parts) {
      out_.sources.push_back(fmt::format("{}: {}", part.file, title_of(part.kind)));
    }
    kind_ = leading_kind(launch_.parts);
    file_ = fmt::format("{}", fmt::join(files_, ", "));
    SketchedJob sketched = sketch_job(launch_);
    job_ = std::move(sketched.job);
    open_ = std::move(sketched.open);
    out_.keys = std::move(sketched.keys);
    out_.remarks = launch_.remarks;
    if (options_.nodes) job_.nodes = options_.nodes;
    build();
    out_.scenario = write_json(scenario_, 2) + "\n";
    out_.remarks.insert(out_.remarks.end(), job_.remarks.begin(), job_.remarks.end());
  }

 private:
  void assume(const std::string& path, const std::string& value, const std::string& why,
              const std::string& option) {
    out_.assumptions.push_back({path, value, why, option});
  }

  /// Removes assumptions about what --set gives.
  void forget_assumed(const std::string& path) {
    std::erase_if(out_.assumptions, [&](const JobAssumption& one) {
      return one.path == path || one.path.starts_with(path + ".");
    });
  }

  void build() {
    Json& scenario = scenario_;
    scenario["about"] = fmt::format("Imported from {}.", fmt::join(names(), ", "));
    Json model = choose_model();
    choose_node();
    LaunchMachine machine{.node_gpus = presets_.node(node_).gpus,
                          .variable = launch_.node_variable,
                          .fixed_nodes = options_.nodes.has_value(),
                          .layers = layers_of(model),
                          .told_gpus = gpus_of_comments(launch_.texts)};
    layout_ = complete_layout(job_, kind_, machine, file_, out_.assumptions);
    say_pipelines();
    scenario["model"] = std::move(model);
    scenario["cluster"] = {{"node", node_}, {"nodes", layout_.nodes}};
    scenario["parallelism"] = parallelism();
    scenario["batch"] = batch();
    if (!job_.precision.empty()) scenario["precision"] = job_.precision;
    say_full_precision();
    scenario["recompute"] = recompute();
    routing();
    offload();
    lora();
    stack();
    require_model();
    for (const std::string& change : launch_.scenario) {
      (void)apply_override(scenario, change);
      forget_assumed(change.substr(0, change.find('=')));
    }
    allow_what_it_does();
  }

  /// A step of several pipelines, one after another, is simulated as a long one.
  void say_pipelines() {
    if (layout_.pipelines == 1) return;
    const auto key = std::ranges::find_if(out_.keys, [](const KeyFinding& one) {
      return plain_key(one.setting.key) == "training.global_batch_size";
    });
    if (key == out_.keys.end()) return;
    const std::int64_t all = layout_.sequences / (layout_.data * layout_.micro);
    const std::int64_t each = all / layout_.pipelines;
    const auto idle = [&](std::int64_t micro_batches) {
      const double ways = static_cast<double>(micro_batches) * layout_.virtual_stages;
      return 100 * (layout_.pipeline - 1) / ways;
    };
    key->fate = KeyFate::unmodelled;
    key->note = fmt::format(
        "TorchTitan runs a pipeline of {} micro batches for each of {} accumulation steps; one of "
        "{} is simulated, whose ramps under 1F1B add {:.1f} % and not {:.1f} % to the step. Nearer "
        "is {} times the step of --set batch.sequences={}",
        each, layout_.pipelines, all, idle(all), idle(each), layout_.pipelines,
        layout_.sequences / layout_.pipelines);
  }

  /// Megatron-LM, GPT-NeoX, the Trainer and Accelerate have FP32 products unless something asks for
  /// others.
  void say_full_precision() {
    constexpr std::array kSinglePrecision{LaunchKind::megatron, LaunchKind::neox,
                                          LaunchKind::trainer, LaunchKind::accelerate};
    if (std::ranges::find(kSinglePrecision, kind_) == kSinglePrecision.end()) return;
    if (!job_.precision.empty() || precision_is_set()) return;
    scenario_["precision"] = "bf16";
    const std::string elsewhere = absent_deepspeed_file();
    const std::string note =
        fmt::format("trains in fp32{}; bf16 is simulated",
                    elsewhere.empty() ? "" : fmt::format(" unless {} says otherwise", elsewhere));
    const auto key = std::ranges::find_if(out_.keys, [](const KeyFinding& one) {
      return asks_for_precision(one) && one.setting.is_off();
    });
    if (key == out_.keys.end()) {
      out_.keys.push_back({{"precision", {"fp32"}, file_},
                           KeyFate::unmodelled,
                           "nothing asks for bf16 or fp16: " + note});
    } else {
      key->fate = KeyFate::unmodelled;
      key->note = note;
    }
  }

  static bool asks_for_precision(const KeyFinding& key) {
    const std::string name = plain_key(key.setting.key);
    return name == "mixed_precision" || name == "bf16" || name == "fp16";
  }

  /// By --set, or by a key whose value only a run of the file would fill in.
  [[nodiscard]] bool precision_is_set() const {
    return std::ranges::any_of(
               launch_.scenario,
               [](const std::string& change) { return change.starts_with("precision="); }) ||
           std::ranges::any_of(out_.keys, [](const KeyFinding& key) {
             return asks_for_precision(key) && key.fate == KeyFate::unmodelled;
           });
  }

  /// DeepSpeed's settings that a file names and that are not among the files; empty: none.
  [[nodiscard]] std::string absent_deepspeed_file() const {
    const auto given = [](const LaunchPart& part) { return part.kind == LaunchKind::deepspeed; };
    if (std::ranges::any_of(launch_.parts, given)) return {};
    if (!job_.deepspeed_file.empty()) return job_.deepspeed_file;
    const bool launched = std::ranges::any_of(
        launch_.parts, [](const LaunchPart& part) { return part.kind == LaunchKind::accelerate; });
    if (!job_.settings_file.empty() && !launched) return job_.settings_file;
    for (const KeyFinding& key : out_.keys) {
      const std::string name = plain_key(key.setting.key);
      if (last_part(name) == "deepspeed_config_file" && !key.setting.is_null()) {
        return key.setting.text();
      }
    }
    return {};
  }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const LaunchPart& part : launch_.parts) {
      out.push_back(
          fmt::format("{} ({})", fs::path(part.file).filename().string(), title_of(part.kind)));
    }
    return out;
  }

  /// The path of a config.json from the folder that the scenario goes to.
  [[nodiscard]] std::string from_scenario(const std::string& path) const {
    const fs::path folder = fs::path(options_.scenario_file).parent_path();
    std::error_code error;
    const fs::path out = fs::relative(path, folder.empty() ? "." : folder, error);
    return error || out.empty() ? fs::absolute(path).string() : out.string();
  }

  /// A config.json that can be read only once.
  static Json written_out(const std::string& config) {
    return {{"huggingface", JsonCursor::parse("config.json", quote_non_finite(config)).json()}};
  }

  /// What standard input held, which is read already.
  [[nodiscard]] std::string standard_input() const {
    if (files_.size() == 1) return launch_.texts;
    throw InputError({.file = kStandardInput,
                      .pointer = {},
                      .found = "a config.json beside other files",
                      .allowed = "its path, or --model -",
                      .nearest = {}});
  }

  Json choose_model() {
    if (options_.model.starts_with('{')) return written_out(options_.model);
    if (!options_.model.empty()) {
      if (options_.model.ends_with(".json")) {
        config_ = options_.model;
        return {{"huggingface", from_scenario(options_.model)}};
      }
      const std::string meant = presets_.meant("models", options_.model);
      std::string named = meant.empty() ? preset_of_model_name(options_.model, presets_) : meant;
      if (!named.empty()) return named;
      const std::vector<std::string> all = presets_.names("models");
      throw InputError({.file = "--model",
                        .pointer = {},
                        .found = in_quotes(options_.model),
                        .allowed = "a model (lockstep list models), or the path of a config.json",
                        .nearest = nearest_name(options_.model, all)});
    }
    if (!job_.model.config.empty()) {
      if (job_.model.config == kStandardInput) return written_out(standard_input());
      config_ = job_.model.config;
      return {{"huggingface", from_scenario(config_)}};
    }
    take_recipe_name();
    return complete_model(job_.model, kind_, job_.tensor.value_or(1), files_.front(), presets_,
                          out_.assumptions);
  }

  /// Takes the model from a recipe's name. What else the recipe sets is not read.
  void take_recipe_name() {
    if (job_.recipe.empty()) return;
    std::vector<std::string> open;
    const auto note = [&](bool said, const char* name) {
      if (!said) open.emplace_back(name);
    };
    note(job_.tensor.has_value(), "parallelism.tensor");
    note(job_.pipeline.has_value(), "parallelism.pipeline");
    note(job_.context.has_value(), "parallelism.context");
    note(job_.sequences || job_.local, "batch.sequences");
    note(job_.micro || job_.local, "batch.micro");
    note(options_.tokens || job_.tokens, "batch.tokens");
    note(!job_.precision.empty(), "precision");
    note(!job_.recompute.empty(), "recompute");
    if (!open.empty()) {
      job_.remarks.push_back(
          fmt::format("recipe {}: what it sets itself is not read, here {} (--set PATH=VALUE)",
                      job_.recipe, fmt::join(open, ", ")));
    }
    if (!job_.model.name.empty() || job_.model.layers) return;
    const std::string named = preset_of_model_name(job_.recipe, presets_);
    (named.empty() ? job_.model.hint : job_.model.name) = named.empty() ? job_.recipe : named;
  }

  [[nodiscard]] int layers_of(const Json& model) const {
    if (model.is_string()) return presets_.model(model.get<std::string>()).layers;
    if (!config_.empty()) {
      const JsonCursor config = JsonCursor::parse(config_, read_text_file(config_));
      return read_hugging_face(config, "model").shape.layers;
    }
    if (!model.is_object()) return 0;
    if (model.contains("huggingface")) {
      const std::string text = write_json(model["huggingface"]);
      return read_hugging_face(JsonCursor::parse("config.json", text), "model").shape.layers;
    }
    if (model.contains("preset")) return presets_.model(model["preset"].get<std::string>()).layers;
    return model.value("layers", 0);
  }

  void choose_node() {
    node_ = options_.node;
    if (!node_.empty()) {
      node_ = presets_.meant("nodes", options_.node);
      if (node_.empty()) {
        const std::vector<std::string> all = presets_.names("nodes");
        throw InputError({.file = "--node",
                          .pointer = {},
                          .found = in_quotes(options_.node),
                          .allowed = "a node (lockstep list nodes)",
                          .nearest = nearest_name(options_.node, all)});
      }
      return;
    }
    std::string words = launch_.texts;
    for (const std::string& file : files_) words += " " + fs::path(file).filename().string();
    const std::string spoken = node_of_words(words);
    node_ = spoken.empty() ? std::string(kAssumedNode) : spoken;
    assume("cluster.node", node_,
           spoken.empty() ? "no file says which machine" : "by the card that a file speaks of",
           "--node NAME");
  }

  Json parallelism() const {
    Json out{{"tensor", layout_.tensor}};
    if (layout_.context > 1) {
      out["context"] = layout_.context;
      if (!job_.context_exchange.empty()) out["context_exchange"] = job_.context_exchange;
    }
    const bool experts = layout_.expert > 1 || job_.expert_tensor;
    if (experts) {
      out["expert"] = layout_.expert;
      out["expert_tensor"] = layout_.expert_tensor;
      if (!job_.expert_dispatch.empty() && layout_.expert > 1) {
        out["expert_dispatch"] = job_.expert_dispatch;
      }
      if (job_.expert_overlap && layout_.expert > 1) out["expert_overlap"] = *job_.expert_overlap;
    }
    out["pipeline"] = layout_.pipeline;
    out["data"] = layout_.data;
    out["virtual_stages"] = layout_.virtual_stages;
    const bool always = kind_ == LaunchKind::torchtitan || kind_ == LaunchKind::maxtext;
    out["sequence"] = layout_.tensor > 1 && job_.sequence.value_or(always);
    if (!job_.tensor_overlap.empty() && out["sequence"] == true) {
      out["tensor_overlap"] = job_.tensor_overlap;
    }
    out["sharding"] = layout_.sharding;
    if (layout_.shard_group > 0) out["shard_group"] = layout_.shard_group;
    if (job_.reshard && layout_.sharding == "zero3") out["reshard"] = *job_.reshard;
    if (!job_.schedule.empty() && layout_.pipeline > 1) out["schedule"] = job_.schedule;
    stages(out);
    return out;
  }

  void stages(Json& out) const {
    if (layout_.pipeline == 1) return;
    if (!job_.stage_layers.empty()) {
      out["layers_per_stage"] = job_.stage_layers;
    } else if ((job_.first_layers || job_.last_layers) && model_layers() > 0) {
      out["layers_per_stage"] = uneven_stages();
    } else {
      if (!job_.embedding.empty()) out["embedding"] = job_.embedding;
      if (!job_.output.empty()) out["output"] = job_.output;
    }
  }

  [[nodiscard]] int model_layers() const { return layers_of(scenario_["model"]); }

  /// The first and the last rank have layers of their own number, each in equal chunks; the others
  /// share what is left.
  [[nodiscard]] std::vector<int> uneven_stages() const {
    const int ranks = layout_.pipeline, chunks = layout_.virtual_stages;
    const int ends = (job_.first_layers ? 1 : 0) + (job_.last_layers ? 1 : 0);
    const int rest = model_layers() - job_.first_layers.value_or(0) - job_.last_layers.value_or(0);
    const int between = ranks - ends;
    const bool fits = rest >= 0 && (between == 0 ? rest == 0 : rest % (between * chunks) == 0) &&
                      job_.first_layers.value_or(0) % chunks == 0 &&
                      job_.last_layers.value_or(0) % chunks == 0;
    if (!fits) {
      throw InputError(
          {.file = file_,
           .pointer = {},
           .found = fmt::format("{} layers on the first of {} stages, {} on the last",
                                job_.first_layers.value_or(0), ranks, job_.last_layers.value_or(0)),
           .allowed = fmt::format("numbers that leave the rest of {} layers in equal "
                                  "parts",
                                  model_layers()),
           .nearest = {}});
    }
    std::vector<int> out;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int rank = 0; rank < ranks; ++rank) {
        int layers = between > 0 ? rest / between : 0;
        if (rank == 0 && job_.first_layers) layers = *job_.first_layers;
        if (rank == ranks - 1 && job_.last_layers) layers = *job_.last_layers;
        out.push_back(layers / chunks);
      }
    }
    return out;
  }

  Json batch() {
    int tokens = options_.tokens.value_or(job_.tokens.value_or(0));
    if (tokens == 0) {
      tokens = kAssumedTokens;
      assume("batch.tokens", std::to_string(tokens), "no file says how long a sequence is",
             "--tokens N");
    }
    if (job_.packed) {
      assume("batch.sample_tokens", "none",
             "samples are packed, and no file says how long they are: one fills a sequence",
             "--set batch.sample_tokens=N");
    }
    return {{"sequences", layout_.sequences}, {"micro", layout_.micro}, {"tokens", tokens}};
  }

  Json recompute() {
    if (job_.recompute == "full") {
      const int most = layout_.pipeline > 0 ? model_layers() / layout_.pipeline : 0;
      const int some = job_.recompute_every_layer ? 0 : job_.recompute_layers.value_or(0);
      if (some > 0 && some < most) {
        job_.remarks.push_back(fmt::format(
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
        job_.remarks.emplace_back("recompute module moe: taken as the experts' activation");
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
      job_.remarks.emplace_back(
          "recompute module core_attn: the fused kernel's forward pass runs again; memory is "
          "counted without its output, which Megatron-Core keeps for the product behind it");
    }
    return {{"modules", std::move(modules)}};
  }

  /// Megatron-Core checkpoints attention whatever its kernel is (megatron/core/transformer/
  /// attention.py: _checkpointed_attention_forward), so that a fused one runs forward twice.
  [[nodiscard]] bool core_repeats(std::string_view module) const {
    constexpr std::array<std::string_view, 3> kCoreStacks{"megatron_core", "megatron_bridge",
                                                          "nemo"};
    return module == kCore && fused_attention() &&
           std::ranges::find(kCoreStacks, stack_name()) != kCoreStacks.end();
  }

  void routing() {
    if (!job_.capacity_factor || *job_.capacity_factor <= 0 || !job_.model.experts) return;
    Json one{{"capacity_factor", *job_.capacity_factor}};
    if (job_.pad_to_capacity) one["pad_to_capacity"] = true;
    scenario_["routing"] = std::move(one);
  }

  void offload() {
    Json one = Json::object();
    if (job_.offload_optimizer) one["optimiser"] = *job_.offload_optimizer;
    if (job_.offload_parameters && layout_.sharding == "zero3") one["parameters"] = true;
    if (job_.offload_layers) one["activation_layers"] = *job_.offload_layers;
    if (!one.empty()) scenario_["offload"] = std::move(one);
  }

  void lora() {
    if (!job_.lora && !job_.lora_rank) {
      if (job_.lora_nf4) {
        job_.remarks.emplace_back("weights of 4 bits without an adapter: taken as 16 bits");
      }
      return;
    }
    if (!job_.lora_rank) {
      assume("lora.rank", std::to_string(kAssumedLoraRank), "no file says it", "--set lora.rank=N");
    }
    Json one{{"rank", job_.lora_rank.value_or(kAssumedLoraRank)}};
    if (job_.lora_nf4) one["base"] = "nf4";
    if (!job_.lora_modules.empty()) one["modules"] = job_.lora_modules;
    scenario_["lora"] = std::move(one);
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

  /// The stack, with what the files switch otherwise than it does.
  void stack() {
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
    scenario_["stack"] = one.size() == 1 ? Json(name) : one;
  }

  void require_model() const {
    if (!scenario_["model"].is_null()) return;
    std::string hint = preset_of_model_name(job_.model.hint, presets_);
    if (hint.empty())
      hint = preset_of_model_name(fs::path(files_.front()).stem().string(), presets_);
    std::string found = "no model";
    if (!job_.model.name.empty()) {
      found = fmt::format(
          "the model {}, which is no preset",
          in_quotes(job_.model.name + (job_.model.flavor.empty() ? "" : " " + job_.model.flavor)));
    }
    std::string allowed = fmt::format("--model {} (lockstep list models), or --model config.json",
                                      hint.empty() ? "NAME" : hint);
    if (!open_.empty()) {
      allowed += fmt::format("; open: {} (--set NAME=VALUE)", fmt::join(open_, ", "));
    }
    throw InputError(
        {.file = file_, .pointer = {}, .found = found, .allowed = allowed, .nearest = {}});
  }

  /// What the job needs of its software beyond what the preset lists, it demonstrably does.
  void allow_what_it_does() {
    Json& scenario = scenario_;
    const std::string file =
        options_.scenario_file.empty() ? "the scenario" : options_.scenario_file;
    Json all = scenario;
    Json& stack = all["stack"];
    if (stack.is_string()) stack = {{"preset", stack}};
    Json names = Json::array();
    for (const CapabilityKey& key : capability_keys()) {
      for (const std::string_view value : key.values) {
        names.push_back(fmt::format("{}.{}", key.name, value));
      }
    }
    stack["allow"] = std::move(names);
    const Scenario read = read_scenario(file, write_json(all), presets_);
    if (read.beyond_stack.empty()) return;
    if (scenario["stack"].is_string()) scenario["stack"] = {{"preset", scenario["stack"]}};
    scenario["stack"]["allow"] = read.beyond_stack;
  }

  const std::vector<std::string>& files_;
  const JobImportOptions& options_;
  const PresetStore& presets_;
  JobImport& out_;
  LaunchFiles launch_;
  LaunchKind kind_ = LaunchKind::megatron;
  JobSketch job_;
  std::vector<std::string> open_;
  std::string file_, node_, config_;
  Json scenario_;
  CompleteLayout layout_;
};

}  // namespace

JobImport import_job(const std::vector<std::string>& files, const JobImportOptions& options,
                     const PresetStore& presets, JobImport* partial) {
  JobImport own;
  JobImport& out = partial != nullptr ? *partial : own;
  Import(files, options, presets, out).run();
  return out;
}

}  // namespace lockstep
