#include "sim/measured/rows.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/json_text.hpp"
#include "models/base/letter_case.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLargestCount = 1e9;  ///< counts of a row; beyond this they are no counts

/// Collects the first reason why a row makes no scenario.
class Obstacles {
 public:
  explicit Obstacles(std::string& first) : first_(first) {}
  void add(bool there, const char* reason) {
    if (there && first_.empty()) first_ = reason;
  }
  void add(bool there, std::string_view field, const char* reason) {
    if (there && first_.empty()) first_ = fmt::format("{} {}", field, reason);
  }
  void missing(const char* field) { add(true, field, "is missing"); }
  void unknown(std::string_view field, const std::string& found,
               std::span<const std::string_view> allowed) {
    add(true, fmt::format("{} {}", field, in_quotes(found)),
        fmt::format("(allowed: {})", fmt::join(allowed, ", ")).c_str());
  }
  int need(std::optional<int> value, const char* field) {
    add(!value, field, "is missing or no whole number from 1");
    return value.value_or(1);
  }

 private:
  std::string& first_;
};

/// A part of a row. What is missing or null is nothing; what is of another type is an obstacle, as
/// the row would else be predicted without it, but for what sources say beside the format
/// (`extra`).
class Part {
 public:
  Part(const Json* json, std::string path, Obstacles* obstacles)
      : json_(json != nullptr && json->is_object() ? json : nullptr),
        path_(std::move(path)),
        obstacles_(obstacles) {
    if (json != nullptr && json_ == nullptr) complain(path_, "is no object");
  }

  [[nodiscard]] const Json* find(const char* key) const {
    if (json_ == nullptr) return nullptr;
    const auto at = json_->find(key);
    return at == json_->end() || at->is_null() ? nullptr : &*at;
  }
  /// What sources say beside the format.
  [[nodiscard]] Part beside(const char* key) const { return {find(key), path_to(key), nullptr}; }
  [[nodiscard]] Part part(const char* key) const { return {find(key), path_to(key), obstacles_}; }
  [[nodiscard]] std::optional<double> number(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) {
      complain(path_to(key), "is no number");
      return std::nullopt;
    }
    return value->get<double>();
  }
  /// A positive number.
  [[nodiscard]] std::optional<double> positive(const char* key) const {
    const auto value = number(key);
    return value && std::isfinite(*value) && *value > 0 ? value : std::nullopt;
  }
  /// A whole number from 1 to 1e9.
  [[nodiscard]] std::optional<int> count(const char* key) const {
    const auto value = positive(key);
    if (!value || *value != std::floor(*value) || *value > kLargestCount) return std::nullopt;
    return static_cast<int>(*value);
  }
  [[nodiscard]] std::string text(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return {};
    if (value->is_number()) return write_json(*value);  // a release, 24.09
    if (!value->is_string()) {
      complain(path_to(key), "is no text");
      return {};
    }
    return value->get<std::string>();
  }
  /// true, "True", "1", 1 and their opposites, as logs and recipes print them.
  [[nodiscard]] std::optional<bool> flag(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_boolean()) return value->get<bool>();
    if (value->is_number()) return value->get<double>() != 0;
    const std::string word = text(key);
    if (word == "True" || word == "true" || word == "1") return true;
    if (word == "False" || word == "false" || word == "0") return false;
    complain(path_to(key), "is neither true nor false");
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::string path_to(const char* key) const {
    return path_.empty() ? key : path_ + "." + key;
  }
  void complain(const std::string& field, const char* reason) const {
    if (obstacles_ != nullptr) obstacles_->add(true, field, reason);
  }

  const Json* json_;
  std::string path_;
  Obstacles* obstacles_;  ///< null: nothing is one
};

void read_experts(const Part& model, TransformerShape& m) {
  const Part moe = model.part("moe");
  ExpertShape& x = m.experts;
  x.count = moe.count("experts").value_or(0);
  x.per_token = moe.count("topk").value_or(1);
  x.ffn = moe.count("ffn").value_or(m.ffn);
  x.shared_ffn = moe.count("shared_ffn").value_or(0);
  x.leading_dense = moe.count("dense_layers").value_or(0);
  // Half of the layers dense: every second one (Llama 4).
  if (2 * x.leading_dense == m.layers) {
    x.interval = 2;
    x.leading_dense = 0;
  }
}

/// Which layers have the window, where a row does not say: a fact about the model.
struct FamilyWindows {
  std::string_view name;  ///< what the model's name begins with
  int interval, layers;
};
/// Sources: configuration_*.py of each family in https://github.com/huggingface/transformers. Of
/// all others (Mistral) every layer has it.
constexpr std::array kFamilyWindows{FamilyWindows{"gpt-oss", 2, 1}, FamilyWindows{"gemma-2", 2, 1},
                                    FamilyWindows{"gemma2", 2, 1}, FamilyWindows{"gemma-3", 6, 5},
                                    FamilyWindows{"gemma3", 6, 5}};

void read_windows(const Part& model, TransformerShape& m) {
  m.window = model.count("sliding_window").value_or(0);
  if (m.window == 0) return;
  std::string name = lowered(m.name);
  std::ranges::replace(name, '_', '-');
  const auto* const family = std::ranges::find_if(
      kFamilyWindows, [&](const FamilyWindows& each) { return name.starts_with(each.name); });
  const bool known = family != kFamilyWindows.end();
  const auto interval = model.count("window_interval");
  m.window_interval = interval.value_or(known ? family->interval : 1);
  m.window_layers = model.count("window_layers").value_or(known && !interval ? family->layers : 1);
}

void read_attention(const Part& model, TransformerShape& m) {
  const Part mla = model.part("mla");
  LatentAttention& l = m.latent;
  l.key_value_rank = mla.count("kv_lora").value_or(0);
  if (l.key_value_rank > 0) {
    l.query_rank = mla.count("q_lora").value_or(0);
    l.nope_dim = mla.count("qk_nope").value_or(m.head_dim);
    l.rope_dim = mla.count("qk_rope").value_or(0);
    l.value_dim = mla.count("v").value_or(m.head_dim);
    m.kv_heads = m.heads;
    m.head_dim = (l.nope_dim + l.rope_dim + l.value_dim) / 2;
  }
  read_windows(model, m);
  m.predicted_tokens = model.count("mtp").value_or(0);
}

/// A letter for each layer, and the mixers.
void read_hybrid(const Part& model, TransformerShape& m, Obstacles& obstacles) {
  m.pattern = model.text("pattern");
  if (m.pattern.empty()) return;
  const Part mamba = model.part("mamba");
  m.mamba.heads = mamba.count("heads").value_or(0);
  m.mamba.head_dim = mamba.count("head_dim").value_or(0);
  m.mamba.groups = mamba.count("groups").value_or(1);
  m.mamba.state = mamba.count("state").value_or(0);
  m.mamba.chunk = mamba.count("chunk").value_or(m.mamba.chunk);
  const bool fits = m.pattern.find_first_not_of(kPatternLetters) == std::string::npos &&
                    std::ssize(m.pattern) == m.layers &&
                    (m.mamba.heads > 0 || m.pattern.find('M') == std::string::npos) &&
                    (m.experts.count > 0 || m.pattern.find('E') == std::string::npos);
  obstacles.add(!fits, "a pattern that does not fit the model");
}

void read_model(const Part& model, const Part& row, ReferenceRow& out, Obstacles& obstacles) {
  TransformerShape& m = out.model;
  m.name = model.text("name");
  m.layers = obstacles.need(model.count("layers"), "model.layers");
  m.hidden = obstacles.need(model.count("hidden"), "model.hidden");
  m.heads = obstacles.need(model.count("heads"), "model.heads");
  m.kv_heads = model.count("kv_heads").value_or(m.heads);
  obstacles.add(m.kv_heads > 0 && m.heads % m.kv_heads != 0,
                "model.kv_heads that do not divide its heads");
  m.head_dim = model.count("head_dim").value_or(std::max(1, m.hidden / m.heads));
  m.ffn = obstacles.need(model.count("ffn"), "model.ffn");
  m.vocabulary = obstacles.need(model.count("vocab"), "model.vocab");
  m.gated = model.flag("gated").value_or(false);
  m.tied = model.flag("tied").value_or(false);
  // A gated MLP marks the Llama line, squared ReLU Nemotron: rotary positions and no biases. The
  // rest are GPT: learned positions and biases.
  const bool modern = m.gated || !model.text("activation").empty();
  m.rotary = modern;
  m.biases = !modern;
  m.learned_positions = model.flag("learned_pos").value_or(!modern);
  m.max_positions = m.learned_positions ? row.count("seq").value_or(0) : 0;
  m.parallel = model.flag("parallel").value_or(false);
  read_experts(model, m);
  read_attention(model, m);
  read_hybrid(model, m, obstacles);
}

void read_parallel(const Part& parallel, ReferenceRow& out, Obstacles& obstacles) {
  out.tensor = obstacles.need(parallel.count("tp"), "parallel.tp");
  out.pipeline = obstacles.need(parallel.count("pp"), "parallel.pp");
  out.data = obstacles.need(parallel.count("dp"), "parallel.dp");
  out.virtual_stages = parallel.count("vpp");
  if (out.pipeline == 1) out.virtual_stages = 1;
  out.sequence = parallel.flag("sequence_parallel");
  const std::string sharding = parallel.text("sharding");
  const auto* const known = std::ranges::find(kShardingNames, sharding);
  const bool is_known = known != kShardingNames.end();
  if (!sharding.empty() && !is_known) {
    obstacles.unknown("parallel.sharding", sharding, kShardingNames);
  }
  if (is_known) out.sharding = static_cast<Sharding>(known - kShardingNames.begin());
  // FSDP's SHARD_GRAD_OP keeps weights from the forward to the backward pass, no longer.
  if (sharding == "zero2" && parallel.text("framework_sharding") == "fsdp" &&
      out.stack != "llama3-internal") {
    out.sharding = Sharding::zero3;
    out.reshard = false;
  }
  out.context = parallel.count("cp").value_or(1);
  out.expert = parallel.count("ep").value_or(1);
  out.expert_tensor = parallel.count("etp");
  if (out.sharding == Sharding::zero3) out.shard_group = parallel.count("shard_group").value_or(0);
}

/// "selective", "selective:layernorm+moe_act", "selective (per-op SAC)": TorchTitan keeps the
/// output of every second product and of attention (torchtitan/models/llama/parallelize_llama.py).
/// "saves:qkv_proj+out_proj": what a policy of JAX saves; all else runs again but the last product,
/// whose result nobody needs.
void read_modules(const std::string& text, ReferenceRow& out) {
  out.recompute = Recompute::selective;
  RecomputeModules& m = out.modules;
  const auto names = [&](std::string_view name) { return text.find(name) != std::string::npos; };
  if (names("SAC") || (text == "selective" && out.stack == "torchtitan")) {
    m = {.core_attention = false, .layer_norm = true, .activation = true, .products = 0.5};
  } else if (text.starts_with("saves:")) {
    m = {.core_attention = false,
         .layer_norm = true,
         .activation = true,
         .mlp_up = !names("mlpwi"),
         .projection = !names("out_proj"),
         .fused_attention = true};
  } else if (names(":")) {
    m = {.core_attention = names("core_attn"),
         .layer_norm = names("layernorm"),
         .activation = names("act"),
         .latent_up = names("mla_up_proj"),
         .mlp = names("mlp")};
  }
}

void read_recompute(const std::string& text, ReferenceRow& out, Obstacles& obstacles) {
  if (text.empty()) return;
  if (text == "none")
    out.recompute = Recompute::none;
  else if (text.starts_with("full"))
    out.recompute = Recompute::full;
  else if (text.starts_with("selective") || text.starts_with("saves:"))
    read_modules(text, out);
  else
    obstacles.unknown("recompute", text,
                      std::array<std::string_view, 4>{"none", "full", "selective", "saves:..."});
}

/// Adapters; where the row does not say which, those of NVIDIA's recipes (launcher_scripts/conf/
/// peft/llama/squad.yaml in github:NVIDIA/NeMo-Framework-Launcher@04c921b4f045).
void read_adapters(const Part& row, ReferenceRow& out) {
  if (row.text("kind") != "lora") return;
  const Part lora = row.part("lora");
  out.adapters.rank = lora.count("rank").value_or(32);
  const Json* modules = lora.find("modules");
  for (std::size_t i = 0; i < kAdapterModules; ++i) {
    const bool named =
        modules != nullptr && modules->is_array() &&
        std::ranges::any_of(*modules, [i](const Json& m) { return m == kAdapterModuleNames[i]; });
    out.adapters.modules[i] = modules == nullptr ? i == 0 : named;
  }
}

void read_precision(const std::string& text, ReferenceRow& out, Obstacles& obstacles) {
  const auto known = std::find_if(training_precisions().begin(), training_precisions().end(),
                                  [&](const PrecisionInfo& p) { return p.name == text; });
  if (known != training_precisions().end())
    out.precision = known->precision;
  else if (text.empty())
    obstacles.missing("precision");
  else {
    std::vector<std::string_view> names;
    for (const PrecisionInfo& p : training_precisions()) names.push_back(p.name);
    obstacles.unknown("precision", text, names);
  }
}

/// Layers of a Megatron pipeline layout such as "Et*4|(t*4|)*14tmL": stages end with '|', t is a
/// layer, E embedding, m a predicted token, L the loss; *n repeats what is before it.
std::vector<int> layers_of_layout(const std::string& layout) {
  if (layout.empty()) return {};
  std::string flat, group;
  bool grouped = false;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    const char c = layout[i];
    if (c == '(') {
      grouped = true;
      group.clear();
    } else if (c == ')') {
      grouped = false;
      flat += group;
    } else if (c == '*') {
      const int times = std::atoi(layout.c_str() + i + 1);
      while (i + 1 < layout.size() && std::isdigit(static_cast<unsigned char>(layout[i + 1])) != 0)
        ++i;
      constexpr int kMostTimes = 1000;
      std::string& to = grouped ? group : flat;
      const std::string again =
          group.empty() || grouped ? std::string(1, to.empty() ? '|' : to.back()) : group;
      for (int n = 1; n < std::min(times, kMostTimes); ++n) to += again;
      if (!grouped) group.clear();
    } else {
      (grouped ? group : flat) += c;
      if (!grouped) group.clear();
    }
  }
  std::vector<int> layers{0};
  for (const char c : flat) {
    if (c == 't') ++layers.back();
    if (c == '|') layers.push_back(0);
  }
  return layers;
}

void read_software(const Part& row, ReferenceRow& out) {
  const Part extra = row.beside("extra"), recipe = extra.part("recipe_fields");
  out.overlaps_tensor_parallel = extra.flag("tp_comm_overlap");
  if (extra.flag("async_tp") == true) out.tensor_overlap = TensorOverlap::pieces;
  out.cuda_graph = extra.flag("cuda_graph");
  out.compiled = extra.flag("compile");
  if (const std::string graph = recipe.text("cuda_graph_impl"); !graph.empty()) {
    out.cuda_graph = graph == "full_iteration" ||
                     (graph != "none" && recipe.text("cuda_graph_scope") == "full_iteration");
  }
  out.partial_graph = !out.cuda_graph.value_or(false) &&
                      recipe.find("cuda_graph_scope") != nullptr &&
                      !recipe.find("cuda_graph_scope")->empty();
  out.two_level_dispatch = !recipe.text("moe_flex_dispatcher_backend").empty();
  out.expert_overlap = recipe.flag("moe_a2a_overlap").value_or(false);
  out.layers_per_stage = layers_of_layout(recipe.text("pp_layout"));
  out.offload.activation_layers =
      static_cast<int>(recipe.positive("cpu_offloading_num_layers").value_or(0));
  const std::string reduced = row.text("grad_reduce");
  if (reduced == "fp32") out.gradient_bytes = 4;
  if (reduced == "bf16" || reduced == "fp16") out.gradient_bytes = 2;
  const Part collectives = row.part("collectives_measured_gb_s");
  out.all_gather_gb_per_s = collectives.positive("all_gather");
  out.all_gather_in_node_gb_per_s = collectives.positive("all_gather_intra");
}

/// What the row says in the words of a scenario. Megatron-Bridge's tables say of a model
/// "(tokendrop)": experts take the mean and are padded to it (training/utils/moe_token_drop.py).
void read_changes(const Part& row, ReferenceRow& out, Obstacles& obstacles) {
  Json changes = Json::object();
  const Json* notes = row.find("notes");
  const bool drops = notes != nullptr && notes->is_string() &&
                     notes->get<std::string>().find("(tokendrop)") != std::string::npos;
  if (drops && out.model.experts.count > 0) {
    changes["routing"] = {{"capacity_factor", 1}, {"pad_to_capacity", true}};
  }
  if (const Json* scenario = row.find("scenario")) {
    obstacles.add(!scenario->is_object(), "scenario", "is no object");
    if (scenario->is_object()) changes.update(*scenario);
  }
  if (!changes.empty()) out.changes = write_json(changes);
}

void read_measured(const Part& row, ReferenceRow& out) {
  const Part measured = row.part("measured");
  out.ran_out_of_memory = row.text("outcome") == "oom";
  out.measured_step_s = row.part("derived").positive("step_seconds");
  if (!out.measured_step_s) out.measured_step_s = measured.positive("step_seconds");
  out.measured_gpu_power_w = measured.positive("gpu_power_w");
  const std::optional<double> rate = measured.positive("tokens_per_s_per_gpu");
  if (!out.measured_step_s && rate) {
    const double tokens = static_cast<double>(out.batch.sequences) * out.batch.tokens;
    out.measured_step_s = tokens / (*rate * out.gpus);
  }
  out.measured_memory_gib = measured.positive("reserved_memory_gib");
  // nanotron prints the allocation at the optimiser step as its peak: activations are gone by then.
  if (!out.measured_memory_gib && out.stack != "nanotron") {
    out.measured_memory_gib = measured.positive("peak_memory_gib");
  }
}

void add_kind_obstacles(const Part& row, Obstacles& obstacles) {
  const std::string kind = row.text("kind");
  obstacles.add(!kind.empty() && kind != "pretrain" && kind != "sft" && kind != "lora",
                "neither pre-training nor fine-tuning");
  obstacles.add(row.find("parallel") == nullptr, "parallelism is missing");
}

bool is_complete(const Part& row) {
  return row.flag("simulable") != false && row.find("suspect") == nullptr;
}

/// "https://..., table 3".
std::string words_of_source(const Json* source) {
  if (source == nullptr) return {};
  if (source->is_string()) return source->get<std::string>();
  std::string words;
  for (const char* key : {"url", "table"}) {
    if (!source->is_object() || !source->contains(key) || !(*source)[key].is_string()) continue;
    words += (words.empty() ? "" : ", ") + (*source)[key].get<std::string>();
  }
  return words;
}

std::string text_or_none(const JsonCursor& from, std::string_view key) {
  const auto text = from.find(key);
  return text ? text->string() : std::string();
}

/// A row in the scenario's own words.
ReferenceRow read_own_row(const JsonCursor& from) {
  constexpr std::size_t kMostAssumed = 100;
  constexpr Interval kOwnTime{0, 1e7, true}, kOwnMemory{0, 1e15, true}, kOwnPower{0, 1e5, true};
  ReferenceRow out;
  const JsonCursor name = from.at("row");
  out.id = name.string();
  if (out.id.empty()) name.fail("a name");
  out.source = out.id.substr(0, out.id.find('-'));
  out.published = from.at("source").string();
  const JsonCursor scenario = from.at("scenario"), measured = from.at("measured");
  out.scenario = write_json(scenario.json());
  out.file = from.file();
  out.place = scenario.pointer();
  out.measured_step_s = measured.at("step_time").seconds(kOwnTime).base_units();
  if (const auto memory = measured.find("memory")) {
    out.measured_memory_gib = memory->bytes(kOwnMemory) / gibibytes(1);
  }
  if (const auto power = measured.find("gpu_power")) {
    out.measured_gpu_power_w = power->watts(kOwnPower).base_units();
  }
  measured.finish();
  out.gpu = text_or_none(from, "gpu");
  out.stack = text_or_none(from, "software");
  out.complete = text_or_none(from, "suspect").empty();
  if (const auto assumed = from.find("assumed")) {
    for (const JsonCursor& each : assumed->elements(kMostAssumed)) {
      out.assumed.push_back(each.string());
    }
  }
  if (const auto notes = from.find("notes"); notes && !notes->is_object()) {
    notes->fail_type("an object: what else the source says, which nothing reads");
  }
  from.finish();
  return out;
}

ReferenceRow read_row(const Json& json, std::size_t index) {
  ReferenceRow out;
  Obstacles obstacles(out.obstacle);
  const Part row(json.is_object() ? &json : nullptr, {}, &obstacles);
  out.id = row.text("id");
  if (out.id.empty()) out.id = fmt::format("row-{}", index);
  out.source = out.id.substr(0, out.id.find('-'));
  out.published = words_of_source(row.find("source"));
  out.stack = row.text("stack");
  out.release = row.text("release");
  out.sharding_framework = row.part("parallel").text("framework_sharding");
  const Part gpu = row.part("gpu"), network = row.part("network");
  out.gpu = gpu.text("kind");
  obstacles.add(!json.is_object(), "no JSON object");
  obstacles.add(row.flag("simulable") == false, "the row says that it cannot be simulated");
  add_kind_obstacles(row, obstacles);
  if (out.gpu.empty()) obstacles.missing("gpu.kind");
  out.gpus = obstacles.need(gpu.count("count"), "gpu.count");
  out.gpus_per_node = gpu.count("per_node").value_or(8);
  out.transport = network.text("fabric");
  out.gbps_per_node = network.positive("gbps_per_node");
  out.nvlink_domain = network.count("nvlink_domain");
  read_model(row.part("model"), row, out, obstacles);
  read_parallel(row.part("parallel"), out, obstacles);
  out.batch.tokens = obstacles.need(row.count("seq"), "seq");
  out.batch.sample_tokens = row.positive("sample_tokens").value_or(0);
  out.batch.micro_sequences = obstacles.need(row.count("micro_batch"), "micro_batch");
  out.batch.sequences = obstacles.need(row.count("global_batch"), "global_batch");
  read_recompute(row.text("recompute"), out, obstacles);
  read_adapters(row, out);
  read_precision(row.text("precision"), out, obstacles);
  read_software(row, out);
  read_changes(row, out, obstacles);
  read_measured(row, out);
  obstacles.add(!out.measured_step_s && !out.ran_out_of_memory, "no measured step time");
  const auto says = [&](const char* key) {
    const Json* value = row.find(key);
    return value != nullptr && !(value->is_object() && value->empty());
  };
  out.unmeasured = json.is_object() && !says("measured") && !says("derived") &&
                   !out.ran_out_of_memory && row.flag("simulable") != false;
  out.complete = is_complete(row);
  out.dense = is_dense(out);
  return out;
}

/// A row of a flat table, whose columns stand beside each other and whose rows share what is
/// `common` to all, in the form of the others. A remark in brackets behind a value is dropped.
Json from_flat(const Json& row, const Json& common) {
  constexpr std::array kModel{"layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "tied"};
  constexpr std::array kParallel{"tp", "pp", "vpp", "dp", "cp", "ep", "sharding"};
  Json all = common;
  all.update(row);
  for (auto& [key, value] : all.items()) {
    if (!value.is_string()) continue;
    const auto text = value.get<std::string>();
    value = text.substr(0, text.find(" ("));
  }
  Json out = all;
  const auto take = [&](const char* from, const Json::json_pointer& to) {
    if (all.contains(from)) out[to] = all[from];
  };
  for (const char* key : kModel) take(key, Json::json_pointer("/model") / key);
  for (const char* key : kParallel) take(key, Json::json_pointer("/parallel") / key);
  out["gpu"] = Json::object();
  take("gpu", Json::json_pointer("/gpu/kind"));
  take("gpus", Json::json_pointer("/gpu/count"));
  take("framework", Json::json_pointer("/stack"));
  take("step_seconds", Json::json_pointer("/measured/step_seconds"));
  return out;
}

/// A row in the form that read_row() takes.
Json plain_row(const Json& row, const Json& common) {
  if (!row.is_object()) return row;
  if (row.contains("tp") && !row.contains("parallel")) return from_flat(row, common);
  Json shared = common;
  shared.update(row);
  return shared;
}

}  // namespace

bool is_dense(const ReferenceRow& row) {
  return row.complete && row.obstacle.empty() && row.context == 1 &&
         row.sharding <= Sharding::zero1 && row.precision != Precision::nvfp4 &&
         row.model.experts.count == 0 && row.model.latent.key_value_rank == 0 &&
         !row.adapters.any() && row.model.pattern.empty();
}

std::vector<ReferenceRow> parse_rows(const std::string& file, std::string_view text) {
  constexpr const char* kRows = "an array of rows, or an object that has one under \"rows\"";
  require_json_text(file, text, kRows);
  const JsonCursor root = JsonCursor::parse(file, text);
  const Json* rows = &root.json();
  Json common = Json::object();
  if (rows->is_object() && rows->contains("rows")) {
    if (rows->contains("common") && (*rows)["common"].is_object()) common = (*rows)["common"];
    rows = &(*rows)["rows"];
  }
  if (rows->is_array() && rows->empty()) {
    throw InputError({.file = file,
                      .pointer = root.json().is_object() ? "/rows" : "",
                      .found = "an empty array",
                      .allowed = "at least one row",
                      .nearest = {}});
  }
  if (!rows->is_array()) {
    root.fail(kRows);
  }
  const std::vector<JsonCursor> list =
      (root.is_array() ? root : root.at("rows")).elements(rows->size());
  if (std::ranges::none_of(*rows, [](const Json& row) { return row.is_object(); })) {
    list.front().fail("an object: a row of measurements");
  }
  std::vector<ReferenceRow> out;
  out.reserve(rows->size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json& row = (*rows)[i];
    if (row.is_object() && row.contains("row")) {
      out.push_back(root.read_whole([&] { return read_own_row(list[i]); }));
    } else {
      out.push_back(read_row(plain_row(row, common), i));
    }
    out.back().pointer = fmt::format("{}/{}", root.is_array() ? "" : "/rows", i);
  }
  return out;
}

void require_measured(const std::string& file, const std::vector<ReferenceRow>& rows) {
  if (rows.empty() || !std::ranges::all_of(rows, &ReferenceRow::unmeasured)) return;
  throw InputError({.file = file,
                    .pointer = rows.front().pointer,
                    .found = "a row that says nothing of what was measured, as do all",
                    .allowed = "\"measured\" (step_seconds, tokens_per_s_per_gpu, "
                               "peak_memory_gib, gpu_power_w), \"derived\" (step_seconds), "
                               "\"outcome\": \"oom\", or \"simulable\": false",
                    .nearest = {}});
}

}  // namespace lockstep
