#include "sim/measured/serving_rows.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/json_cursor.hpp"
#include "models/base/text_file.hpp"
#include "models/power/gpu_power.hpp"
#include "sim/scenario/recorded_path.hpp"
#include "sim/scenario/rl_spec.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostServingRows = 100'000;
constexpr int kRequestsPerClient = 10;

/// Nodes of the cards that rows name.
constexpr std::array kNodesOfCards{
    std::pair{"A100-SXM-80GB", "dgx_a100_80gb"},
    std::pair{"H100-SXM-80GB", "dgx_h100"},
    std::pair{"H200-SXM-141GB", "dgx_h200"},
    std::pair{"H200-NVL", "dgx_h200"},
    std::pair{"B200-SXM-180GB", "dgx_b200"},
    std::pair{"B300-SXM-288GB", "dgx_b300"},
    std::pair{"GB200-186GB", "gb200_nvl72"},
    std::pair{"GB300-288GB", "gb300_nvl72"},
    std::pair{"L40S", "l40s_8"},
    std::pair{"RTX-PRO-6000-96GB", "rtx_pro_6000_8"},
    std::pair{"RTX-4090-24GB", "rtx4090_8"},
    std::pair{"MI300X", "mi300x_8"},
    std::pair{"MI325X", "mi325x_8"},
    std::pair{"MI355X", "mi355x_8"},
};

std::string written_text(const Json& row, const char* key) {
  const auto at = row.find(key);
  return at != row.end() && at->is_string() ? at->get<std::string>() : std::string();
}
double written_figure(const Json& row, const char* key, double otherwise) {
  const auto at = row.find(key);
  return at != row.end() && at->is_number() ? at->get<double>() : otherwise;
}
int written_count(const Json& row, const char* key, int otherwise) {
  return static_cast<int>(written_figure(row, key, otherwise));
}
const Json& written_object(const Json& row, const char* key) {
  static const Json kNone = Json::object();
  const auto at = row.find(key);
  return at != row.end() && at->is_object() ? *at : kNone;
}

bool has_flag(const Json& row, std::string_view flag) {
  const auto flags = row.find("flags");
  return flags != row.end() && flags->is_array() &&
         std::ranges::any_of(*flags, [&](const Json& one) { return one == flag; });
}

WeightFormat weight_format_of(const std::string& written, WeightFormat otherwise) {
  const auto is = [&](std::string_view part) { return written.find(part) != std::string::npos; };
  if (is("int4")) return WeightFormat::int4;
  if (is("fp4")) return WeightFormat::fp4;
  if (is("fp8")) return WeightFormat::fp8;
  return is("16") ? WeightFormat::bf16 : otherwise;
}

/// Formats as printed. Published checkpoints of gpt-oss in FP4 and of Kimi in INT4 and FP4 quantise
/// the experts alone (their model cards).
void read_formats(const Json& precision, ServingRow& out) {
  const std::string all = written_text(precision, "weights");
  out.weights =
      weight_format_of(written_text(precision, "gemm"), weight_format_of(all, WeightFormat::bf16));
  out.experts = weight_format_of(written_text(precision, "moe"), out.weights);
  const bool experts_alone =
      out.model_name.starts_with("gpt_oss") || out.model_name.starts_with("kimi");
  const bool narrow = out.weights == WeightFormat::fp4 || out.weights == WeightFormat::int4;
  if (experts_alone && narrow) {
    out.experts = out.weights;
    out.weights = WeightFormat::bf16;
  }
  const std::string cache = written_text(precision, "kv");
  // Where it is not printed: as the published checkpoints of such weights ask for (assumed).
  const bool assumed = cache.empty() && out.weights != WeightFormat::bf16;
  const bool narrow_cache = assumed || cache.find("fp8") != std::string::npos;
  out.cache_bytes = narrow_cache ? 1 : 2;
}

ServingPoolRow serving_pool_of(const Json& parallel) {
  ServingPoolRow out;
  out.tensor = written_count(parallel, "tp", 1);
  out.pipeline = written_count(parallel, "pp", 1);
  out.attention_data = written_count(parallel, "attention_dp", 1);
  out.expert = written_count(parallel, "moe_ep", 1);
  out.workers = written_count(parallel, "workers", 1);
  return out;
}

void read_load(const Json& load, ServingRow& out) {
  const std::string kind = written_text(load, "kind");
  out.concurrency = written_count(load, "concurrency", written_count(load, "batch", 0));
  out.requests = written_count(load, "requests", 0);
  out.input = written_count(load, "input_tokens", written_count(load, "input_tokens_mean", 0));
  out.output = written_count(load, "output_tokens", written_count(load, "output_tokens_mean", 0));
  out.rate = written_figure(load, "request_rate", 0);
  out.trace = written_text(load, "trace");
  out.shortest = written_figure(load, "range_ratio", 1);
  if (const double spread = written_figure(load, "spread", 0); spread > 0) {
    out.shortest = 1 - spread;
    out.longest = 1 + spread;
  }
  if (kind == "closed_loop") {
    out.load = ServingLoad::closed_loop;
    if (out.requests == 0) out.requests = kRequestsPerClient * out.concurrency;
  } else if (kind == "one_batch") {
    out.load = ServingLoad::one_batch;
    out.requests = out.concurrency;
  } else if (kind == "offline") {
    out.load = ServingLoad::offline;
  } else if (kind == "poisson" || (kind == "open_loop" && out.trace.empty())) {
    out.load = ServingLoad::poisson;
  } else if (kind == "open_loop") {
    out.load = ServingLoad::trace;
  } else {
    out.skipped = "load " + kind;
  }
  const bool lengths = out.load == ServingLoad::trace || (out.input > 0 && out.output > 0);
  if (out.skipped.empty() && !lengths) out.skipped = "lengths are not printed";
  if (out.skipped.empty() && out.load == ServingLoad::closed_loop && out.concurrency < 1) {
    out.skipped = "no concurrency";
  }
}

/// A figure, or the statistics of one.
void read_measure(const Json& measured, const char* key, const char* name, ServingRow& out) {
  const auto at = measured.find(key);
  if (at == measured.end()) return;
  if (at->is_number()) out.measured.push_back({name, at->get<double>(), false, true});
  if (!at->is_object()) return;
  const double middle = written_figure(*at, "mean", written_figure(*at, "p50", 0));
  if (middle > 0) out.measured.push_back({name, middle, false, at->contains("mean")});
  const double p99 = written_figure(*at, "p99", 0);
  if (p99 > 0) out.measured.push_back({std::string(name) + "_p99", p99, true});
}

void read_measures(const Json& measured, ServingRow& out) {
  read_measure(measured, "tpot_ms", "tpot_ms", out);
  read_measure(measured, "decode_step_ms", "tpot_ms", out);
  read_measure(measured, "itl_ms", "itl_ms", out);
  read_measure(measured, "ttft_ms", "ttft_ms", out);
  read_measure(measured, "prefill_ms", "prefill_ms", out);
  read_measure(measured, "e2e_ms", "e2e_ms", out);
  if (const double rate = written_figure(measured, "output_tokens_per_s", 0); rate > 0) {
    out.measured.push_back({"output_tokens_per_s", rate});
  }
  if (out.measured.empty()) out.skipped = "no figure that is predicted";
}

void read_limits(const Json& limits, ServingRow& out) {
  ServingEngine& e = out.rules;
  e.most_sequences = written_count(limits, "max_batch", e.most_sequences);
  e.pass_tokens = written_count(limits, "max_num_tokens", e.pass_tokens);
  e.block = written_count(limits, "block", e.block);
  e.memory_fraction = written_figure(limits, "kv_fraction", e.memory_fraction);
  out.cache_tokens = written_figure(limits, "kv_blocks", 0) * e.block;
}

/// Where nobody printed it: benchmarks start TensorRT-LLM for models as large as these with room
/// for a prompt and the batch in a pass (assumed; their times to the first token rise accordingly).
void limit_prompts(const Json& limits, ServingRow& out) {
  const bool printed = limits.contains("max_num_tokens");
  if (printed || out.engine != "tensorrt_llm" || out.load != ServingLoad::closed_loop) return;
  if (out.model.latent.key_value_rank == 0 || out.decoding) return;
  out.rules.pass_tokens = std::max(256, out.input + out.concurrency);
}

/// How benchmarks start TensorRT-LLM: attention ranks wait for each other's prompts for 60 passes
/// and draft a token at most; prompts of a dense model on fewer than eight ranks wait 20 passes for
/// more of them where lengths are 1k and 1k (github:SemiAnalysisAI/InferenceX:benchmarks/
/// dsr1_fp8_h200_trt.sh, single_node/dsr1_fp4_b200_trt_mtp.sh, 70b_fp8_b200_trt_slurm.sh).
void assume_tensorrt_llm(ServingRow& out) {
  out.rules.balance_wait = 60;
  if (out.serving.attention_data > 1 && out.speculation.drafts > 1) out.speculation.drafts = 1;
  constexpr int kShort = 1024, kAllRanks = 8, kWait = 20;
  constexpr double kEnough = 0.9;
  const bool short_both = out.input == kShort && out.output == kShort;
  if (out.model.experts.count > 0 || !short_both || out.serving.tensor >= kAllRanks) return;
  out.rules.batch_wait = kWait;
  out.rules.batch_wait_tokens = kEnough;
}

/// How benchmarks start engines where nobody printed it: TensorRT-LLM as above, vLLM with graphs of
/// passes of up to 2,048 rows of gpt-oss, SGLang so that it looks for requests three times as often
/// of few clients (github:SemiAnalysisAI/InferenceX:benchmarks/gptoss_fp4_h200.sh,
/// single_node/dsr1_fp4_b200.sh).
void assume_start(ServingRow& out) {
  if (out.load != ServingLoad::closed_loop) return;
  constexpr int kCaptured = 2048;
  if (out.engine == "tensorrt_llm") assume_tensorrt_llm(out);
  if (out.engine == "vllm" && out.model_name.starts_with("gpt_oss")) {
    out.rules.captured_tokens = kCaptured;
  }
  constexpr int kFewClients = 16, kOften = 10;
  if (out.engine != "sglang" || out.concurrency >= kFewClients) return;
  for (KernelLaws& laws : out.rules.kernels) laws.host.poll = std::min(laws.host.poll, kOften);
}

std::string node_of_card(const std::string& card, const PresetStore& presets) {
  for (const auto& [name, node] : kNodesOfCards) {
    if (card == name) return node;
  }
  return presets.has("nodes", card) ? card : std::string();
}

/// Finds the trace that a row replays.
void find_trace(const std::string& file, ServingRow& out) {
  if (!out.skipped.empty() || out.load != ServingLoad::trace) return;
  for (const std::string_view folder : {"", "serving-traces/"}) {
    const std::string name = fmt::format("{}{}.csv.gz", folder, out.trace);
    if (const auto path = recorded_path(file, name)) {
      out.trace = *path;
      return;
    }
  }
  out.skipped = "its trace is not there (LOCKSTEP_DATA)";
}

ServingRow serving_row_of(const Json& row, const PresetStore& presets) {
  ServingRow out;
  out.id = written_text(row, "id");
  const Json& source = written_object(row, "source");
  out.source = source.empty() ? written_text(row, "source") : written_text(source, "key");
  out.engine = written_text(written_object(row, "engine"), "name");
  out.gpu = written_text(written_object(row, "gpu"), "kind");
  out.model_name = written_text(written_object(row, "model"), "preset");
  out.gpus = written_count(written_object(row, "gpu"), "count", 1);
  if (!row.value("simulable", true)) {
    out.skipped = "not simulable, as the file says";
    return out;
  }
  const std::string node = node_of_card(out.gpu, presets);
  if (node.empty()) out.skipped = "no card " + out.gpu;
  if (!presets.has("models", out.model_name)) out.skipped = "no model " + out.model_name;
  if (!presets.has("engines", out.engine)) out.skipped = "no engine " + out.engine;
  if (!out.skipped.empty()) return out;
  const EngineSpec engine = engine_preset(presets, out.engine);
  if (!engine.serving) out.skipped = "engine " + out.engine + " does not serve";
  if (!out.skipped.empty()) return out;
  out.rules = *engine.serving;
  out.node = presets.node(node);
  const Watts cap{written_figure(written_object(row, "gpu"), "power_cap_w", 0)};
  if (cap > Watts{} && out.node.gpu.power) {
    if (cap < lowest_cap(out.node.gpu)) {
      out.skipped = fmt::format("a cap of {:.0f} W, below what the card keeps", cap / Watts{1});
      return out;
    }
    out.node.gpu = capped(out.node.gpu, std::min(cap, out.node.gpu.power_limit));
  }
  out.model = presets.model(out.model_name);
  out.release = written_text(written_object(row, "engine"), "version");
  const auto drafts =
      std::ranges::find(out.rules.drafting_releases, out.release, &DraftingRelease::release);
  if (out.model.predicted_tokens > 0 && drafts != out.rules.drafting_releases.end()) {
    out.speculation = drafts->speculation;
  }
  read_formats(written_object(row, "precision"), out);
  if (written_text(row, "mode") == "disaggregated") {
    const Json& pools = written_object(row, "pools");
    out.serving = serving_pool_of(written_object(pools, "prefill"));
    out.decoding = serving_pool_of(written_object(pools, "decode"));
  } else {
    out.serving = serving_pool_of(written_object(row, "parallel"));
    if (out.model.experts.count > 0 && has_flag(row, "moe_layout_not_printed")) {
      // The tables' command for such models turns data-parallel attention on (assumed of all rows).
      out.serving.attention_data = out.serving.expert = out.serving.tensor;
      out.serving.tensor = 1;
    }
    const int each = out.serving.tensor * out.serving.attention_data * out.serving.pipeline;
    const int replicas = written_count(written_object(row, "parallel"), "dp", 1);
    out.serving.workers = std::max(replicas, out.gpus / std::max(1, each));
  }
  read_limits(written_object(row, "limits"), out);
  read_load(written_object(row, "load"), out);
  limit_prompts(written_object(row, "limits"), out);
  assume_start(out);
  if (out.skipped.empty()) read_measures(written_object(row, "measured"), out);
  return out;
}

}  // namespace

std::vector<ServingRow> read_serving_rows(const std::string& file, const PresetStore& presets) {
  const JsonCursor root = JsonCursor::parse(file, read_text_file(file));
  std::vector<ServingRow> out;
  for (const JsonCursor& row : root.at("rows").elements(kMostServingRows)) {
    if (!row.is_object()) row.fail("an object");
    out.push_back(serving_row_of(row.json(), presets));
    find_trace(file, out.back());
  }
  return out;
}

}  // namespace lockstep
