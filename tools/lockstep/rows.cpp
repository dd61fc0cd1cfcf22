#include "tools/lockstep/rows.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/input/input_error.hpp"
#include "models/input/json_cursor.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLargestCount = 1e9;  ///< counts of a row; beyond this they are no counts

/// A part of a row, read without complaint: what is missing, null or of another type is nothing.
class Part {
 public:
  explicit Part(const Json* json) : json_(json != nullptr && json->is_object() ? json : nullptr) {}

  [[nodiscard]] const Json* find(const char* key) const {
    if (json_ == nullptr) return nullptr;
    const auto at = json_->find(key);
    return at == json_->end() || at->is_null() ? nullptr : &*at;
  }
  [[nodiscard]] Part part(const char* key) const { return Part(find(key)); }
  [[nodiscard]] std::optional<double> number(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr || !value->is_number()) return std::nullopt;
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
    return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
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
    return std::nullopt;
  }

 private:
  const Json* json_;
};

/// Collects the first reason why a row makes no scenario.
class Obstacles {
 public:
  explicit Obstacles(std::string& first) : first_(first) {}
  void add(bool there, const char* reason) {
    if (there && first_.empty()) first_ = reason;
  }
  void missing(const char* field) {
    if (first_.empty()) first_ = fmt::format("{} is missing", field);
  }
  int need(std::optional<int> value, const char* field) {
    if (!value) missing(field);
    return value.value_or(1);
  }

 private:
  std::string& first_;
};

void read_model(const Part& model, const Part& row, ReferenceRow& out, Obstacles& obstacles) {
  TransformerShape& m = out.model;
  m.name = model.text("name");
  m.layers = obstacles.need(model.count("layers"), "model.layers");
  m.hidden = obstacles.need(model.count("hidden"), "model.hidden");
  m.heads = obstacles.need(model.count("heads"), "model.heads");
  m.kv_heads = model.count("kv_heads").value_or(m.heads);
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
}

void read_parallel(const Part& parallel, ReferenceRow& out, Obstacles& obstacles) {
  out.tensor = obstacles.need(parallel.count("tp"), "parallel.tp");
  out.pipeline = obstacles.need(parallel.count("pp"), "parallel.pp");
  out.data = obstacles.need(parallel.count("dp"), "parallel.dp");
  out.virtual_stages = parallel.count("vpp");
  if (out.pipeline == 1) out.virtual_stages = 1;
  out.sequence = parallel.flag("sequence_parallel");
  const std::string sharding = parallel.text("sharding");
  out.sharding = sharding == "zero1"   ? Sharding::zero1
                 : sharding == "zero2" ? Sharding::zero2
                                       : Sharding::none;
}

void read_recompute(const std::string& text, ReferenceRow& out, Obstacles& obstacles) {
  if (text.empty()) return;
  if (text == "none")
    out.recompute = Recompute::none;
  else if (text.starts_with("full"))
    out.recompute = Recompute::full;
  else if (text.starts_with("selective"))
    out.recompute = Recompute::selective;
  else
    obstacles.add(true, "recompute of an unknown kind");
}

void read_precision(const std::string& text, ReferenceRow& out, Obstacles& obstacles) {
  const auto known = std::find_if(precisions().begin(), precisions().end(),
                                  [&](const PrecisionInfo& p) { return p.name == text; });
  if (known != precisions().end())
    out.precision = known->precision;
  else if (text.empty())
    obstacles.missing("precision");
  else
    obstacles.add(true, "precision of an unknown kind");
}

void read_software(const Part& row, ReferenceRow& out) {
  const Part extra = row.part("extra"), recipe = extra.part("recipe_fields");
  out.overlaps_tensor_parallel = extra.flag("tp_comm_overlap");
  out.cuda_graph = extra.flag("cuda_graph");
  if (const std::string graph = recipe.text("cuda_graph_impl"); !graph.empty()) {
    out.cuda_graph = graph != "none" && recipe.text("cuda_graph_scope") == "full_iteration";
  }
  const std::string reduced = row.text("grad_reduce");
  if (reduced == "fp32") out.gradient_bytes = 4;
  if (reduced == "bf16" || reduced == "fp16") out.gradient_bytes = 2;
  const Part collectives = row.part("collectives_measured_gb_s");
  out.all_gather_gb_per_s = collectives.positive("all_gather");
  out.all_gather_in_node_gb_per_s = collectives.positive("all_gather_intra");
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
  const Part model = row.part("model"), parallel = row.part("parallel");
  const std::string kind = row.text("kind");
  const std::string framework = parallel.text("framework_sharding");
  const bool llama3 = row.text("stack") == "llama3-internal";  // calls its ZeRO-2 FSDP
  obstacles.add(!kind.empty() && kind != "pretrain", "not pre-training (fine-tuning)");
  obstacles.add(model.find("moe") != nullptr, "mixture of experts");
  obstacles.add(model.find("mla") != nullptr, "multi-head latent attention");
  obstacles.add(parallel.count("cp").value_or(1) > 1, "context parallelism");
  obstacles.add(parallel.text("sharding") == "zero3", "FSDP / ZeRO-3");
  obstacles.add(framework.find("fsdp") != std::string::npos && !llama3, "FSDP / ZeRO-3");
  obstacles.add(row.find("parallel") == nullptr, "parallelism is missing");
}

/// Dense as the accuracy figures mean it; `obstacle` already excludes MoE, MLA, CP and FSDP.
bool is_dense(const Part& row, const ReferenceRow& out) {
  const Json* simulable = row.find("simulable");
  const bool complete = simulable == nullptr || !simulable->is_boolean() || simulable->get<bool>();
  return complete && out.obstacle.empty() && out.sharding != Sharding::zero2 &&
         out.precision != Precision::nvfp4 && row.find("suspect") == nullptr;
}

ReferenceRow read_row(const Json& json, std::size_t index) {
  const Part row(&json);
  ReferenceRow out;
  Obstacles obstacles(out.obstacle);
  out.id = row.text("id");
  if (out.id.empty()) out.id = fmt::format("row-{}", index);
  out.source = out.id.substr(0, out.id.find('-'));
  out.stack = row.text("stack");
  out.release = row.text("release");
  out.sharding_framework = row.part("parallel").text("framework_sharding");
  const Part gpu = row.part("gpu"), network = row.part("network");
  out.gpu = gpu.text("kind");
  obstacles.add(!json.is_object(), "no JSON object");
  add_kind_obstacles(row, obstacles);
  if (out.gpu.empty()) obstacles.missing("gpu.kind");
  if (out.stack.empty()) obstacles.missing("stack");
  out.gpus = obstacles.need(gpu.count("count"), "gpu.count");
  out.gpus_per_node = gpu.count("per_node").value_or(8);
  out.transport = network.text("fabric");
  out.gbps_per_node = network.positive("gbps_per_node");
  out.nvlink_domain = network.count("nvlink_domain");
  read_model(row.part("model"), row, out, obstacles);
  read_parallel(row.part("parallel"), out, obstacles);
  out.batch.tokens = obstacles.need(row.count("seq"), "seq");
  out.batch.micro_sequences = obstacles.need(row.count("micro_batch"), "micro_batch");
  out.batch.sequences = obstacles.need(row.count("global_batch"), "global_batch");
  read_recompute(row.text("recompute"), out, obstacles);
  read_precision(row.text("precision"), out, obstacles);
  read_software(row, out);
  read_measured(row, out);
  obstacles.add(!out.measured_step_s && !out.ran_out_of_memory, "no measured step time");
  out.dense = is_dense(row, out);
  return out;
}

}  // namespace

std::vector<ReferenceRow> parse_rows(const std::string& file, std::string_view text) {
  const JsonCursor root = JsonCursor::parse(file, text);
  const Json* rows = &root.json();
  if (rows->is_object() && rows->contains("rows")) rows = &(*rows)["rows"];
  if (!rows->is_array() || rows->empty()) {
    root.fail("an array of rows, or an object that has one under \"rows\"");
  }
  std::vector<ReferenceRow> out;
  out.reserve(rows->size());
  for (std::size_t i = 0; i < rows->size(); ++i) out.push_back(read_row((*rows)[i], i));
  return out;
}

}  // namespace lockstep
