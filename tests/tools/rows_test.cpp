#include "sim/measured/rows.hpp"

#include <algorithm>
#include <atomic>
#include <doctest/doctest.h>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/measured/row_scenario.hpp"
#include "sim/measured/row_validation.hpp"
#include "tools/console/progress.hpp"
#include "tools/views/tables/validation_output.hpp"

using namespace lockstep;

namespace {

/// A row that can be simulated: Llama 2 7B on one DGX H100.
nlohmann::json good_row() {
  return nlohmann::json::parse(R"({
    "id": "made-up-7b", "kind": "pretrain",
    "model": {"name": "llama-7b", "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 32,
              "head_dim": 128, "ffn": 11008, "gated": true, "vocab": 32000, "tied": false},
    "parallel": {"tp": 2, "pp": 1, "vpp": 1, "dp": 4, "cp": 1, "ep": 1, "sequence_parallel": true,
                 "sharding": "zero1", "framework_sharding": "megatron"},
    "seq": 4096, "micro_batch": 1, "global_batch": 32, "recompute": "none", "precision": "bf16",
    "gpu": {"kind": "H100-SXM5-80GB", "count": 8, "per_node": 8},
    "network": {"fabric": "infiniband", "gbps_per_node": 3200},
    "stack": "nemo", "release": "25.02",
    "measured": {"step_seconds": 3.5}, "derived": {"step_seconds": 3.0},
    "simulable": true, "suspect": null})");
}

ReferenceRow read(const nlohmann::json& row) {
  return parse_rows("rows.json", nlohmann::json::array({row}).dump()).front();
}

ReferenceRow with(const std::string& pointer, const nlohmann::json& value) {
  nlohmann::json row = good_row();
  row[nlohmann::json::json_pointer(pointer)] = value;
  return read(row);
}

std::vector<RowPrediction> predictions_of(const std::vector<ReferenceRow>& rows, int threads,
                                          const std::vector<Profile>& profiles = {}) {
  const PresetStore presets;
  std::atomic<std::size_t> done{0};
  std::vector<RowPrediction> out = predict_rows(rows, presets, threads, [&] { ++done; }, profiles);
  CHECK(done == rows.size());
  return out;
}

}  // namespace

TEST_CASE("rows: a complete row is read as it stands") {
  const ReferenceRow row = read(good_row());
  CHECK(row.obstacle.empty());
  CHECK(row.source == "made");
  CHECK(row.dense);
  CHECK(row.measured_step_s == 3.0);  // derived before measured
  CHECK(row.model.rotary);
  CHECK_FALSE(row.model.biases);
  CHECK(row.sharding == Sharding::zero1);
  CHECK(row.recompute == Recompute::none);
  CHECK(row.gbps_per_node == 3200);
}

TEST_CASE("rows: what cannot be simulated says why, by its first reason") {
  CHECK(with("/kind", "inference").obstacle == "neither pre-training nor fine-tuning");
  CHECK(with("/micro_batch", nullptr).obstacle ==
        "micro_batch is missing or no whole number from 1");
  CHECK(with("/model/ffn", "many").obstacle == "model.ffn is no number");
  CHECK(with("/model/ffn", -1).obstacle == "model.ffn is missing or no whole number from 1");
  // Values that would else be left out in silence.
  CHECK(with("/parallel/sharding", "zero9").obstacle ==
        "parallel.sharding \"zero9\" (allowed: none, zero1, zero2, zero3)");
  CHECK(with("/parallel/cp", "two").obstacle == "parallel.cp is no number");
  CHECK(with("/parallel/sequence_parallel", "perhaps").obstacle ==
        "parallel.sequence_parallel is neither true nor false");
  CHECK(with("/model/moe", 8).obstacle == "model.moe is no object");
  CHECK(with("/recompute", true).obstacle == "recompute is no text");
  CHECK(with("/release", 25.02).release == "25.02");
  CHECK(with("/extra", {{"compile", "perhaps"}}).obstacle.empty());  // beside the format
  CHECK(with("/gpu/count", -8).obstacle == "gpu.count is missing or no whole number from 1");
  CHECK(with("/seq", 1e300).obstacle == "seq is missing or no whole number from 1");
  CHECK(with("/precision", "int7").obstacle.starts_with("precision \"int7\" (allowed: fp16, "));
  CHECK(with("/recompute", "some").obstacle ==
        "recompute \"some\" (allowed: none, full, selective, saves:...)");
  nlohmann::json unmeasured = good_row();
  unmeasured.erase("measured");
  unmeasured.erase("derived");
  CHECK(read(unmeasured).obstacle == "no measured step time");
  unmeasured["outcome"] = "oom";
  CHECK(read(unmeasured).obstacle.empty());
}

TEST_CASE("rows: experts, compressed attention, shared sequences and sharded weights") {
  const ReferenceRow moe =
      with("/model/moe",
           {{"experts", 8}, {"topk", 2}, {"ffn", 512}, {"shared_ffn", 256}, {"dense_layers", 1}});
  CHECK(moe.obstacle.empty());
  CHECK_FALSE(moe.dense);
  CHECK(moe.model.experts.count == 8);
  CHECK(moe.model.experts.per_token == 2);
  CHECK(moe.model.experts.shared_ffn == 256);
  CHECK(moe.model.experts.leading_dense == 1);
  CHECK(moe.model.experts.interval == 1);
  const int half = moe.model.layers / 2;
  CHECK(with("/model/moe", {{"experts", 8}, {"dense_layers", half}}).model.experts.interval == 2);

  const ReferenceRow mla =
      with("/model/mla",
           {{"q_lora", 1536}, {"kv_lora", 512}, {"qk_nope", 128}, {"qk_rope", 64}, {"v", 128}});
  CHECK_FALSE(mla.dense);
  CHECK(mla.model.latent.key_value_rank == 512);
  CHECK(mla.model.head_dim == 160);
  CHECK(with("/parallel/cp", 2).context == 2);
  CHECK_FALSE(with("/parallel/cp", 2).dense);
  CHECK(with("/parallel/sharding", "zero3").sharding == Sharding::zero3);
  CHECK_FALSE(with("/parallel/sharding", "zero3").dense);
}

TEST_CASE("rows: a model that a table calls tokendrop has experts padded to their mean") {
  nlohmann::json row = good_row();
  row["model"]["moe"] = {{"experts", 8}, {"topk", 2}, {"ffn", 1024}};
  row["notes"] = "model label: Qwen3_30B_a3B (tokendrop); precision label inferred";
  const PresetStore presets;
  const auto routing = [&] { return row_scenario(read(row), presets).job.routing; };
  CHECK(routing().padded);
  CHECK(routing().capacity == 1);
  row["scenario"] = {{"routing", {{"zipf", 0.5}}}};  // the row's own word counts
  CHECK_FALSE(routing().padded);
  row.erase("scenario");
  row["notes"] = "MoE: forced balanced routing, dropless";
  CHECK(routing().capacity == 0);
  row["notes"] = "a dense model (tokendrop)";
  row["model"].erase("moe");
  CHECK_FALSE(routing().padded);
}

TEST_CASE("rows: what is recomputed, and a pipeline layout that a recipe writes out") {
  const ReferenceRow modules = with("/recompute", "selective:layernorm+moe_act");
  CHECK(modules.recompute == Recompute::selective);
  CHECK(modules.modules.layer_norm);
  CHECK(modules.modules.activation);
  CHECK_FALSE(modules.modules.core_attention);
  CHECK(with("/recompute", "selective (per-op SAC)").modules.products == 0.5);
  const RecomputeModules saves = with("/recompute", "saves:qkv_proj+out_proj").modules;
  CHECK(saves.mlp_up);
  CHECK_FALSE(saves.projection);
  CHECK(with("/recompute", "saves:qkv_proj").modules.projection);
  CHECK(with("/recompute", "selective").modules.core_attention);
  const ReferenceRow layout =
      with("/extra", {{"recipe_fields", {{"pp_layout", "Et*4|(t*3|)*2tmL"}}}});
  CHECK(layout.layers_per_stage == std::vector<int>{4, 3, 3, 1});
}

TEST_CASE("rows: a throughput stands for a step time where there is none") {
  nlohmann::json row = good_row();
  row.erase("derived");
  row["measured"] = {{"tokens_per_s_per_gpu", 8192}};
  CHECK(read(row).measured_step_s == 2.0);  // 32 sequences of 4,096 tokens on 8 GPUs
}

TEST_CASE("rows: dense excludes what the accuracy figures exclude") {
  CHECK(with("/parallel/sharding", "none").dense);
  CHECK_FALSE(with("/parallel/sharding", "zero2").dense);
  CHECK_FALSE(with("/suspect", "disagrees with itself").dense);
  CHECK_FALSE(with("/simulable", false).dense);
  CHECK_FALSE(with("/precision", "nvfp4").dense);
}

TEST_CASE("rows: reserved memory before peak memory, and nanotron's peak is none") {
  nlohmann::json row = good_row();
  row["measured"]["peak_memory_gib"] = 20;
  CHECK(read(row).measured_memory_gib == 20);
  row["measured"]["reserved_memory_gib"] = 30;
  CHECK(read(row).measured_memory_gib == 30);
  row["measured"].erase("reserved_memory_gib");
  row["stack"] = "nanotron";
  CHECK_FALSE(read(row).measured_memory_gib);
}

TEST_CASE("rows: an array or an object with rows, anything else is an error") {
  const std::string array = nlohmann::json::array({good_row()}).dump();
  CHECK(parse_rows("r.json", array).size() == 1);
  CHECK(parse_rows("r.json", R"({"rows": )" + array + "}").size() == 1);
  CHECK_THROWS_AS(parse_rows("r.json", "{}"), InputError);
  CHECK_THROWS_AS(parse_rows("r.json", "[]"), InputError);
  CHECK_THROWS_AS(parse_rows("r.json", "[{"), InputError);
  const auto mixed = parse_rows("r.json", "[1, " + good_row().dump() + "]");
  CHECK(mixed.front().obstacle == "no JSON object");
  CHECK_THROWS_WITH_AS(parse_rows("r.json", "[1, 2]"),
                       "r.json#/0: found 1; allowed: an object: a row of measurements", InputError);
  CHECK_THROWS_WITH_AS(parse_rows("r.json", R"({"rows": ["a"]})"),
                       "r.json#/rows/0: found \"a\"; allowed: an object: a row of measurements",
                       InputError);
  CHECK_THROWS_WITH_AS(parse_rows("r.json", " \n"),
                       "r.json: found an empty text; allowed: an array of rows, or an object that "
                       "has one under \"rows\"",
                       InputError);
}

TEST_CASE("rows: rows that all say nothing to be judged by are refused where rows are judged") {
  const auto judged = [](const std::string& text) {
    require_measured("r.json", parse_rows("r.json", text));
  };
  const std::string good = good_row().dump();
  CHECK_NOTHROW(judged("[" + good + "]"));
  CHECK_NOTHROW(judged("[{}, " + good + "]"));  // it is listed with what it lacks
  for (const char* said :
       {R"({"outcome": "oom"})", R"({"simulable": false})", R"({"derived": {"step_seconds": 1}})",
        R"({"measured": {"mfu": 0.4}})"}) {
    CHECK_NOTHROW(judged(std::string("[") + said + "]"));
  }
  for (const char* bare : {"{}", "{\"measured\": null}", "{\"measured\": {}}"}) {
    CAPTURE(bare);
    CHECK_THROWS_WITH_AS(
        judged(std::string("{\"rows\": [") + bare + ", {}]}"),
        "r.json#/rows/0: found a row that says nothing of what was measured, as do all; allowed: "
        "\"measured\" (step_seconds, tokens_per_s_per_gpu, peak_memory_gib, gpu_power_w), "
        "\"derived\" (step_seconds), \"outcome\": \"oom\", or \"simulable\": false",
        InputError);
  }
}

TEST_CASE("row_scenario: names of GPUs in rows find their presets") {
  const PresetStore presets;
  CHECK(gpu_preset_of("H100-SXM5-80GB", "r", presets) == "h100_sxm5_80gb");
  CHECK(gpu_preset_of("H100-SXM-96GB-HBM2e-500W", "r", presets) == "h100_sxm_96gb_hbm2e");
  CHECK(gpu_preset_of("GB200-186GB", "r", presets) == "gb200_186gb");
  CHECK_THROWS_AS(gpu_preset_of("TPU-v5p", "r", presets), InputError);
}

TEST_CASE("row_scenario: the machine is the row's, whichever preset is nearest") {
  const PresetStore presets;
  const Scenario plain = row_scenario(read(good_row()), presets);
  CHECK(plain.node.name == "dgx_h100");
  CHECK(plain.nodes == 1);
  ReferenceRow slow = with("/network", {{"fabric", "omni-path"}, {"gbps_per_node", 400}});
  const Scenario omni_path = row_scenario(slow, presets);
  CHECK(omni_path.node.nics == 4);
  CHECK(omni_path.node.nic_bandwidth.base_units() == doctest::Approx(100e9 / 8));
  CHECK(omni_path.transport.name == "omni_path");
}

TEST_CASE("row_scenario: unknown recompute is the least that fits in memory, and is said") {
  const PresetStore presets;
  const Scenario scenario = row_scenario(with("/recompute", nullptr), presets);
  CHECK(scenario.job.recompute == Recompute::none);
  CHECK(std::find(scenario.assumptions.begin(), scenario.assumptions.end(),
                  "recompute: none (the least that fits in memory)") != scenario.assumptions.end());
  ReferenceRow large = with("/recompute", nullptr);
  large.batch.micro_sequences = 8;
  CHECK(row_scenario(large, presets).job.recompute != Recompute::none);
}

TEST_CASE("row_scenario: a network without a preset is refused, tcp is plain Ethernet and said") {
  const PresetStore presets;
  const Scenario tcp = row_scenario(with("/network/fabric", "tcp"), presets);
  const Scenario ethernet = row_scenario(with("/network/fabric", "ethernet"), presets);
  CHECK(tcp.transport.name == "ethernet");
  CHECK(tcp.transport.efficiency == ethernet.transport.efficiency);
  CHECK_THROWS_WITH_AS(row_scenario(with("/network/fabric", "carrier pigeon"), presets),
                       doctest::Contains("#/network/fabric: found \"carrier pigeon\"; allowed: "),
                       InputError);
  // Inside one node nothing stands for anything; over two it is an assumption of the answer.
  nlohmann::json two = good_row();
  two["gpu"]["count"] = 16;
  two["parallel"]["dp"] = 8;
  two["network"]["fabric"] = "tcp";
  const auto assumed = row_scenario(read(two), presets).assumptions;
  CHECK(std::ranges::find(assumed, "transport: ethernet (stands for tcp)") != assumed.end());
  two["network"]["fabric"] = "omni-path";
  for (const std::string& words : row_scenario(read(two), presets).assumptions) {
    CHECK_FALSE(words.starts_with("transport: "));
  }
}

TEST_CASE("row_scenario: the software decides whether experts are cut by the tensor width") {
  const PresetStore presets;
  nlohmann::json row = good_row();
  row["model"]["moe"] = {{"experts", 8}, {"topk", 2}, {"ffn", 512}};
  const auto width = [&](const nlohmann::json& of) {
    return row_scenario(read(of), presets).job.parallelism.expert_tensor;
  };
  CHECK(width(row) == 2);
  row["stack"] = "megatron-bridge";
  row["release"] = "25.09";
  CHECK(width(row) == 1);
  row["parallel"]["etp"] = 2;
  CHECK(width(row) == 2);
  row["model"].erase("moe");
  CHECK(width(row) == 1);
}

TEST_CASE("rows: which layers have a window is the row's to say, else the model's") {
  const auto pattern = [](const std::string& name, const nlohmann::json& interval = nullptr) {
    nlohmann::json row = good_row();
    row["model"]["name"] = name;
    row["model"]["sliding_window"] = 128;
    row["model"]["window_interval"] = interval;
    const TransformerShape model = read(row).model;
    return std::pair(model.window_interval, model.window_layers);
  };
  CHECK(pattern("gpt-oss-120b") == std::pair(2, 1));
  CHECK(pattern("mistral-7b") == std::pair(1, 1));
  CHECK(pattern("gemma-3-27b") == std::pair(6, 5));
  CHECK(pattern("mistral-7b", 4) == std::pair(4, 1));
  CHECK(pattern("gemma-3-27b", 2) == std::pair(2, 1));
}

TEST_CASE("row_scenario: a row says in the words of a scenario what it has no key for") {
  const PresetStore presets;
  const auto changed = [&](const nlohmann::json& scenario) {
    nlohmann::json row = good_row();
    row.erase("stack");  // not every stack can do all of this
    row["scenario"] = scenario;
    return row_scenario(read(row), presets);
  };
  const Scenario plain = row_scenario(read(good_row()), presets);
  const Scenario all = changed(nlohmann::json::parse(R"({
    "model": {"window": 1024, "window_interval": 2},
    "offload": {"optimiser": "50 %"},
    "frozen": {"embedding": true, "layers": 4},
    "recompute": "selective",
    "stack": {"communication": {"gradient_bytes": 2}}})"));
  CHECK(all.job.model.window == 1024);
  CHECK(all.job.model.window_interval == 2);
  CHECK(all.job.model.layers == plain.job.model.layers);
  CHECK(all.job.offload.optimiser == doctest::Approx(0.5));
  CHECK(all.job.frozen.layers == 4);
  CHECK(all.job.recompute == Recompute::selective);
  CHECK(all.stack.communication.gradient_bytes == 2);
  CHECK(all.job.parallelism.tensor == plain.job.parallelism.tensor);

  // Experts: skew and capacity. A pipeline: its schedule.
  nlohmann::json experts = good_row();
  experts["model"]["moe"] = {{"experts", 8}, {"topk", 2}, {"ffn", 14336}};
  experts["parallel"]["ep"] = 4;
  experts["scenario"] = {{"routing", {{"zipf", 0.5}, {"capacity_factor", 1.25}}}};
  const ReferenceRow skewed = read(experts);
  REQUIRE(skewed.obstacle.empty());
  CHECK(row_scenario(skewed, presets).job.routing.capacity == doctest::Approx(1.25));
  nlohmann::json piped = good_row();
  piped["parallel"]["pp"] = 2;
  piped["parallel"]["dp"] = 2;
  piped["scenario"] = {{"parallelism", {{"schedule", "interleaved"}, {"virtual_stages", 4}}}};
  CHECK(row_scenario(read(piped), presets).job.parallelism.virtual_stages == 4);

  // A mistake is told at its place in the row, and leaves the row out.
  try {
    (void)changed({{"ofload", {}}});
    FAIL("no key of a scenario");
  } catch (const InputError& error) {
    CHECK(error.problem().file == "made-up-7b");
    CHECK(error.problem().pointer == "/scenario/ofload");
  }
  CHECK(with("/scenario", "zb_h1").obstacle == "scenario is no object");
}

TEST_CASE("rows: a row that says it cannot be simulated is skipped with that reason") {
  const auto predictions = predictions_of({with("/simulable", false)}, 1);
  CHECK(predictions.front().status == RowPrediction::Status::skipped);
  CHECK(predictions.front().reason == "the row says that it cannot be simulated");
}

TEST_CASE("rows: a flat table reads as the same rows written out, with what is common to them") {
  const auto flat = parse_rows("flat.json", R"json({"common": {"recompute": "full",
      "precision": "fp16 (assumed)", "framework": "Megatron-DeepSpeed"},
      "rows": [{"id": "a-1", "gpus": 4, "gpu": "A100-SXM4-80GB", "layers": 24, "hidden": 2048,
                "heads": 16, "ffn": 8192, "vocab": 51200, "seq": 1024, "tp": 1, "dp": 2, "pp": 2,
                "micro_batch": 4, "global_batch": 16, "step_seconds": 0.410491}]
})json");
  REQUIRE(flat.size() == 1);
  const ReferenceRow& row = flat.front();
  CHECK(row.obstacle.empty());
  CHECK(row.stack == "Megatron-DeepSpeed");
  CHECK(row.precision == Precision::fp16);
  CHECK(row.recompute == Recompute::full);
  CHECK(row.gpus == 4);
  CHECK(row.pipeline == 2);
  CHECK(row.model.vocabulary == 51200);
  CHECK(row.measured_step_s == 0.410491);
  CHECK(predictions_of(flat, 1).front().status == RowPrediction::Status::predicted);
}

TEST_CASE("rows: unknown software is predicted by the default stack, and said to be unknown") {
  const std::vector<ReferenceRow> rows{with("/stack", "my-own"), with("/stack", nullptr),
                                       with("/stack", "Megatron-Core")};
  const auto predictions = predictions_of(rows, 1);
  const auto says = [](const RowPrediction& p, const std::string& words) {
    return std::ranges::find(p.assumptions, words) != p.assumptions.end();
  };
  CHECK(says(predictions[0], "stack: neutral (stands in for \"my-own\", which has no preset)"));
  CHECK(says(predictions[1], "stack: neutral (not given)"));
  for (const RowPrediction& p : predictions) REQUIRE(p.interval);
  CHECK(predictions[0].interval->known == SoftwareKnown::none);
  CHECK(predictions[0].interval->gaps.front() == "no preset of \"my-own\"");
  CHECK(predictions[1].interval->gaps.front() == "no stack given");
  CHECK(predictions[2].interval->known == SoftwareKnown::stack);
  // The same prediction; what is not known shows in the interval.
  CHECK(*predictions[0].predicted_step_s == *predictions[1].predicted_step_s);
  CHECK(predictions[0].interval->half_width() > predictions[2].interval->half_width());
}

TEST_CASE("validate: rows are predicted, skipped or out of memory, in their order") {
  nlohmann::json tuned = good_row(), oom = good_row(), odd = good_row();
  tuned["id"] = "other-tuned";
  tuned["kind"] = "inference";
  oom["id"] = "other-oom";
  oom["outcome"] = "oom";
  oom["micro_batch"] = 8;
  oom.erase("measured");
  oom.erase("derived");
  odd["id"] = "other-odd";
  odd["stack"] = "unheard-of";
  const auto rows =
      parse_rows("r.json", nlohmann::json::array({tuned, good_row(), oom, odd}).dump());
  const std::vector<RowPrediction> predictions = predictions_of(rows, 1);
  REQUIRE(predictions.size() == 4);
  CHECK(predictions[0].status == RowPrediction::Status::skipped);
  CHECK(predictions[0].reason == "neither pre-training nor fine-tuning");
  CHECK(predictions[1].status == RowPrediction::Status::predicted);
  CHECK(*predictions[1].error ==
        doctest::Approx(*predictions[1].predicted_step_s / 3.0 - 1).epsilon(1e-12));
  CHECK(predictions[1].predicted_fits == true);
  CHECK(predictions[2].status == RowPrediction::Status::oom);
  CHECK(predictions[2].predicted_fits == false);
  CHECK_FALSE(predictions[2].predicted_step_s);
  CHECK(predictions[3].status == RowPrediction::Status::predicted);

  const RowSummary summary = summarise_rows(predictions);
  CHECK(summary.rows == 4);
  CHECK(summary.predicted == 2);
  CHECK(summary.skipped == 1);
  CHECK(summary.oom == 1);
  CHECK(summary.dense.errors.n == 2);
  CHECK(summary.out_of_memory.precision() == 1);
  CHECK(summary.out_of_memory.recall() == 1);
  // Of rows that ran: the one that ran out is not among them.
  REQUIRE(summary.said_not_to_fit.size() == 2);
  for (const auto& source : summary.said_not_to_fit) {
    CHECK(source.rows == 1);
    CHECK(source.not_fitting == 0);
  }

  const auto json = nlohmann::json::parse(rows_json(predictions).str());
  CHECK(json["rows"][1]["id"] == "made-up-7b");
  CHECK(json["rows"][1]["status"] == "predicted");
  CHECK(json["rows"][1]["reason"] == nullptr);
  CHECK(json["rows"][1]["software"] == "known stack");
  CHECK(json["rows"][1]["step_s_low"] < json["rows"][1]["predicted_step_s"]);
  CHECK(json["rows"][1]["step_s_high"] > json["rows"][1]["predicted_step_s"]);
  CHECK(json["rows"][0]["step_s_low"] == nullptr);
  CHECK(json["rows"][0]["predicted_step_s"] == nullptr);
  CHECK(json["rows"][2]["predicted_fits"] == false);
  CHECK(json["summary"]["skipped_for"]["neither pre-training nor fine-tuning"] == 1);
}

TEST_CASE("validate: the same bytes on one thread and on two") {
  std::vector<nlohmann::json> rows;
  for (int i = 0; i < 12; ++i) {
    nlohmann::json row = good_row();
    row["id"] = "made-" + std::to_string(i);
    row["global_batch"] = 32 * (1 + i % 4);
    rows.push_back(row);
  }
  const auto parsed = parse_rows("r.json", nlohmann::json(rows).dump());
  const std::string one = rows_json(predictions_of(parsed, 1)).str();
  CHECK(one == rows_json(predictions_of(parsed, 2)).str());
  CHECK(rows_table(predictions_of(parsed, 1), {}) == rows_table(predictions_of(parsed, 2), {}));
}

TEST_CASE("validate: a profile corrects the rows of its card, others are left out") {
  const PresetStore presets;
  // Products on this card take twice what the law says; nothing else was measured.
  const GemmShape shape{8192, 8192, 8192};
  const GpuSpec& gpu = presets.gpu("h100_sxm5_80gb");
  GemmPoint point;
  point.shape = shape;
  point.load = Load::sustained;
  point.time = 2 * gemm_time(shape, point.precision, gpu, point.load);
  Profile profile;
  profile.gpu = gpu.name;
  profile.gemm.push_back(point);

  const std::vector<ReferenceRow> rows{read(good_row()), with("/gpu/kind", "A100-SXM4-80GB")};
  const auto by_law = predictions_of(rows, 1), corrected = predictions_of(rows, 1, {profile});
  REQUIRE(by_law[0].predicted_step_s);
  REQUIRE(corrected[0].predicted_step_s);
  // How far a lone point is believed, the profile says; the rest of a step stays as it is.
  CHECK(*corrected[0].predicted_step_s > 1.1 * *by_law[0].predicted_step_s);
  CHECK(*corrected[0].predicted_step_s < 2 * *by_law[0].predicted_step_s);
  CHECK(by_law[1].status == RowPrediction::Status::predicted);
  CHECK(corrected[1].status == RowPrediction::Status::skipped);
  CHECK(corrected[1].reason == "another card than the profile's");
}

TEST_CASE("validate: the power of a GPU is predicted where a row has it measured") {
  nlohmann::json row = good_row();
  row["measured"]["gpu_power_w"] = 600;
  const std::vector<ReferenceRow> rows{read(good_row()), read(row)};
  const auto predictions = predictions_of(rows, 1);
  CHECK_FALSE(predictions[0].predicted_gpu_power_w);
  REQUIRE(predictions[1].predicted_gpu_power_w);
  // At work it takes more than at rest, and no more than its limit of 700 W.
  CHECK(*predictions[1].predicted_gpu_power_w > 200);
  CHECK(*predictions[1].predicted_gpu_power_w <= 700);
  CHECK(predictions[1].predicted_step_s == predictions[0].predicted_step_s);
  const RowSummary summary = summarise_rows(predictions);
  CHECK(summary.power.errors.n == 1);
  CHECK(summary.power.errors.bias ==
        doctest::Approx(*predictions[1].predicted_gpu_power_w / 600 - 1));
  CHECK(rows_table(predictions, {}).find("\nGPU power: 1 rows, median error ") !=
        std::string::npos);
}

TEST_CASE("validate: layouts of one job are ranked when there are ten of them") {
  std::vector<ReferenceRow> rows(10, read(good_row()));
  std::vector<RowPrediction> predictions(10);
  for (std::size_t i = 0; i < 10; ++i) {
    const double step = 1 + static_cast<double>(i);
    rows[i].measured_step_s = step;
    predictions[i] = {.row = &rows[i],
                      .status = RowPrediction::Status::predicted,
                      .reason = {},
                      .predicted_step_s = 2 * step,
                      .error = 1.0,
                      .predicted_memory_gib = {},
                      .predicted_fits = {},
                      .assumptions = {}};
  }
  const RowSummary ranked = summarise_rows(predictions);
  REQUIRE(ranked.rankings.size() == 1);
  CHECK(ranked.rankings[0].spearman == doctest::Approx(1));
  predictions.pop_back();
  CHECK(summarise_rows(predictions).rankings.empty());
}

TEST_CASE("progress: says how far it is and what is left") {
  CHECK(progress_text("rows", 120, 480, 30) == "rows 120 of 480, 25 %, 01:30 left");
  CHECK(progress_text("runs", 0.25, 4, 30) == "runs 0 of 4, 6 %, 07:30 left");
  CHECK(progress_text("rows", 480, 480, 30) == "rows 480 of 480, 100 %, 00:00 left");
}

TEST_CASE("progress: what is made within something else says so") {
  std::ostringstream out;
  const auto told = [&out] {
    Progress progress(out, "layouts", 10, false);
    progress.update(5, 10);
    return progress.text();
  };
  {
    const ProgressWithin within("point 2 of 3");
    CHECK(told().starts_with("point 2 of 3: layouts 5 of 10, 50 %"));
  }
  CHECK(told().starts_with("layouts 5 of 10, 50 %"));
  CHECK(out.str().empty());
}

TEST_CASE("progress: nothing is written where no terminal shows it") {
  std::ostringstream out;
  {
    ProgressInTurn progress(out, "passes", false);
    for (const std::size_t done : {0U, 10U, 0U, 5U, 20U}) progress.update(done, 20);
  }
  CHECK(out.str().empty());
}
