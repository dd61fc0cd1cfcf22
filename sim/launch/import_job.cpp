#include "sim/launch/import_job.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_override.hpp"
#include "models/base/write_json.hpp"
#include "sim/launch/complete_layout.hpp"
#include "sim/launch/import_parts.hpp"
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

class Import {
 public:
  Import(const std::vector<std::string>& files, const JobImportOptions& options,
         const PresetStore& presets, JobImport& out)
      : imported_{.files = files, .options = options, .presets = presets, .out = out},
        files_(files),
        options_(options),
        presets_(presets),
        out_(out) {}

  void run() {
    launch_ = read_launch_files(files_, options_.set);
    for (const LaunchPart& part : launch_.parts) {
      out_.sources.push_back(fmt::format("{}: {}", part.file, title_of(part.kind)));
    }
    kind_ = leading_kind(launch_.parts);
    file_ = fmt::format("{}", fmt::join(files_, ", "));
    SketchedJob sketched = sketch_job(launch_);
    job_ = std::move(sketched.job);
    imported_.open = std::move(sketched.open);
    out_.keys = std::move(sketched.keys);
    out_.remarks = launch_.remarks;
    if (options_.nodes) job_.nodes = options_.nodes;
    build();
    out_.scenario = write_json(scenario_, 2) + "\n";
    out_.remarks.insert(out_.remarks.end(), job_.remarks.begin(), job_.remarks.end());
  }

 private:
  /// Removes assumptions about what --set gives.
  void forget_assumed(const std::string& path) {
    std::erase_if(out_.assumptions, [&](const JobAssumption& one) {
      return one.path == path || one.path.starts_with(path + ".");
    });
  }

  void build() {
    Json& scenario = scenario_;
    scenario["about"] = fmt::format("Imported from {}.", fmt::join(names(), ", "));
    Json model = import_model(imported_);
    choose_node();
    const int node_gpus = presets_.node(node_).gpus;
    imported_.layers = layers_of_model(imported_, model);
    LaunchMachine machine{.node_gpus = node_gpus,
                          .variable = launch_.node_variable,
                          .fixed_nodes = options_.nodes.has_value(),
                          .layers = imported_.layers,
                          .told_gpus = gpus_of_comments(launch_.texts)};
    layout_ = complete_layout(job_, kind_, machine, file_, out_.assumptions);
    say_pipelines();
    scenario["model"] = std::move(model);
    scenario["cluster"] = {{"node", node_}, {"nodes", layout_.nodes}};
    scenario["parallelism"] = import_parallelism(imported_);
    scenario["batch"] = batch();
    if (!job_.precision.empty()) scenario["precision"] = job_.precision;
    say_full_precision();
    scenario["recompute"] = import_recompute(imported_);
    routing();
    offload();
    lora();
    scenario["stack"] = import_stack(imported_);
    require_model(imported_, scenario["model"]);
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
    imported_.assume(
        "cluster.node", node_,
        spoken.empty() ? "no file says which machine" : "by the card that a file speaks of",
        "--node NAME");
  }

  Json batch() {
    int tokens = options_.tokens.value_or(job_.tokens.value_or(0));
    if (tokens == 0) {
      tokens = kAssumedTokens;
      imported_.assume("batch.tokens", std::to_string(tokens),
                       "no file says how long a sequence is", "--tokens N");
    }
    if (job_.packed) {
      imported_.assume(
          "batch.sample_tokens", "none",
          "samples are packed, and no file says how long they are: one fills a sequence",
          "--set batch.sample_tokens=N");
    }
    return {{"sequences", layout_.sequences}, {"micro", layout_.micro}, {"tokens", tokens}};
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
      imported_.assume("lora.rank", std::to_string(kAssumedLoraRank), "no file says it",
                       "--set lora.rank=N");
    }
    Json one{{"rank", job_.lora_rank.value_or(kAssumedLoraRank)}};
    if (job_.lora_nf4) one["base"] = "nf4";
    if (!job_.lora_modules.empty()) one["modules"] = job_.lora_modules;
    scenario_["lora"] = std::move(one);
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

  ImportedJob imported_;
  const std::vector<std::string>& files_;
  const JobImportOptions& options_;
  const PresetStore& presets_;
  JobImport& out_;
  LaunchFiles& launch_ = imported_.launch;
  LaunchKind& kind_ = imported_.kind;
  JobSketch& job_ = imported_.job;
  std::string& file_ = imported_.file;
  CompleteLayout& layout_ = imported_.layout;
  std::string node_;
  Json scenario_;
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
