#include <doctest/doctest.h>
#include <numeric>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "tools/views/run/run_result.hpp"

using namespace lockstep;

namespace {

/// A result with round numbers, so that the outputs below can be checked by eye: a step of 2 s on
/// 16 GPUs of 100 TFLOP/s in two stages.
RunResult example() {
  RunResult r{};
  Scenario& s = r.scenario;
  s.file = "example.json";
  s.about = "An example.";
  s.job.model = {.name = "tiny",
                 .layers = 7,
                 .hidden = 64,
                 .heads = 4,
                 .kv_heads = 4,
                 .head_dim = 16,
                 .ffn = 256,
                 .vocabulary = 1000};
  Parallelism& cut = s.job.parallelism;
  cut.tensor = 4;
  cut.pipeline = cut.data = 2;
  cut.sequence = true;
  cut.sharding = Sharding::zero1;
  s.job.batch = {.sequences = 64, .micro_sequences = 2, .tokens = 1024};
  s.node.name = "box";
  s.node.gpu.name = "gpu";
  s.node.gpu.hbm_capacity = gibibytes(80);
  s.nodes = 2;
  s.fabric.name = "tree";
  s.transport.name = "wire";
  s.stack.name = "soft";
  s.stack.release = "1.2";
  s.training_tokens = 65536e6;
  s.usd_per_gpu_hour = 2;
  s.expect = Expectation{.step_time = Seconds{2.2}, .mfu = {}, .within = 0.1, .source = "a paper"};
  s.assumptions = {"recompute: none (not given)"};

  StepReport& report = r.report;
  report.step_s = 2;
  report.peak_flops_per_gpu = 100e12;
  report.mfu_full = 0.45;
  report.mfu_causal = report.hfu = 0.4;
  report.tflops_per_gpu_full = 45;
  report.tflops_per_gpu_causal = 40;
  report.tokens_per_step = 65536;
  report.tokens_per_s = 32768;
  report.tokens_per_s_per_gpu = 2048;
  const auto at = [](Bucket bucket) { return static_cast<std::size_t>(bucket); };
  report.seconds[at(Bucket::model_flops)] = 0.8;
  report.seconds[at(Bucket::kernel_inefficiency)] = 0.4;
  report.seconds[at(Bucket::pipeline_bubble)] = 0.6;
  report.seconds[at(Bucket::data_exposed)] = 0.2;
  MemoryBreakdown memory;
  memory.weights = gibibytes(10);
  memory.activations = gibibytes(30);
  for (int stage = 0; stage < 2; ++stage) {
    report.stages.push_back({.stage = stage,
                             .layers = 4 - stage,
                             .forward_s = 0.02,
                             .backward_s = 0.05,
                             .seconds = report.seconds,
                             .memory = memory});
  }
  report.peak_memory = memory;
  report.critical_path = {{"backward passes", 1.5, 0.75}, {"forward passes", 0.5, 0.25}};
  report.notes = {"an approximation"};
  r.memory.peak = memory;
  r.memory.usable = gibibytes(75);
  return r;
}

}  // namespace

TEST_CASE("run, table: one sequence and one micro batch are no plural") {
  const auto batch_line = [](int sequences) {
    RunResult result = example();
    result.scenario.job.batch.sequences = sequences;
    result.scenario.job.batch.micro_sequences = sequences;
    result.scenario.job.parallelism.data = 1;
    const std::string table = result_table(result, {});
    const std::size_t begin = table.find("  Batch ");
    return table.substr(begin, table.find('\n', begin) - begin);
  };
  CHECK(batch_line(1) == "  Batch             1 sequence of 1,024 tokens, 1 micro batch of 1");
  CHECK(batch_line(2) == "  Batch             2 sequences of 1,024 tokens, 1 micro batch of 2");
}

TEST_CASE("run, table: everything that a reader asks for, in plain ASCII") {
  CHECK(result_table(example(), {}) ==
        R"(tiny on 16 GPUs (2 x box, gpu)
An example.

  Model             473 k parameters, both embeddings counted
  Job               TP 4 + SP, PP 2 (1f1b), DP 2, zero1, bf16
  Batch             64 sequences of 1,024 tokens, 16 micro batches of 2
  Software          soft 1.2
  Fabric            tree, wire

  Step time         2.00 s
  MFU               45.0 % with attention in full, 40.0 % causal;  HFU 40.0 %
  Throughput        2,048 tokens/s per GPU, 32.8 k tokens/s in all
  Per GPU           45.0 TFLOP/s of 100 (40.0 causal)
  Memory            40.0 GiB at the peak (stage 0) of 75.0 GiB usable on 80.0 GiB
  Without failures  23.1 days for 65.5 B tokens: 8,889 GPU-hours, 17.8 k USD at 2.00 per GPU-hour

Where the GPU time goes
  Useful model FLOPs at peak              40.0 %    800 ms  ##################################
  Kernels below peak                      20.0 %    400 ms  #################
  Pipeline bubble                         30.0 %    600 ms  ##########################
  Exposed data-parallel communication     10.0 %    200 ms  #########
  Together                               100.0 %    2.00 s

Largest loss: Pipeline bubble, 30.0 % of the step. What attacks it in general (--advise simulates
  changes): more micro batches per replica, more virtual stages, or fewer pipeline stages.

Pipeline stages (a micro batch with exchanges inside the stage; shares of the step)
  stage  layers  forward  backward  working  pipeline  exchanges  waiting    memory
      0       4  20.0 ms   50.0 ms   60.0 %    30.0 %     10.0 %    0.0 %  40.0 GiB
      1       3  20.0 ms   50.0 ms   60.0 %    30.0 %     10.0 %    0.0 %  40.0 GiB

Critical path (what the end of the step waited for)
  backward passes                               75.0 %    1.50 s
  forward passes                                25.0 %    500 ms

Expected (a paper)
  step time 2.00 s against 2.20 s measured: -9.1 %, within the 10 % that the scenario allows

Assumed
  - recompute: none (not given)

Notes
  - an approximation
)");
}

TEST_CASE("run, table: within 100 columns, with and without UTF-8") {
  RunResult result = example();
  result.scenario.about = std::string(30, 'w') + " " + std::string(60, 'x') + " and more words";
  for (const bool utf8 : {false, true}) {
    std::istringstream lines(result_table(result, {.utf8 = utf8}));
    for (std::string line; std::getline(lines, line);) CHECK(text_width(line) <= 100);
  }
}

TEST_CASE("run, table: says what was missed, and where replicas were a sample") {
  RunResult result = example();
  result.scenario.expect->within = 0.05;
  result.report.method = StepMethod::sampled;
  result.report.band = {.low_s = 1.9, .high_s = 2.1};
  result.report.replicas = 512;
  result.report.replicas_simulated = 12;
  result.memory.fits = false;
  const std::string table = result_table(result, {});
  CHECK(table.find("-9.1 %, NOT within the 5 %") != std::string::npos);
  CHECK(table.find("1.90 s to 2.10 s (12 of 512 replicas simulated)") != std::string::npos);
  const auto json = result_json(result);
  CHECK(json["exact_low_s"] == 1.9);
  CHECK(json["exact_high_s"] == 2.1);
  CHECK(json["simulation"]["method"] == "sampled");
  CHECK(table.find("DOES NOT FIT") != std::string::npos);
}

TEST_CASE("run, table: neighbouring stages that look the same share a row") {
  RunResult result = example();
  result.report.stages[1].layers = 4;
  CHECK(result_table(result, {}).find("\n    0-1       4  20.0 ms") != std::string::npos);
}

TEST_CASE("run: the interval of the step time, in table, JSON and CSV") {
  RunResult result = example();
  result.interval = PredictionInterval{.low = 0.9,
                                       .high = 1.25,
                                       .known = SoftwareKnown::release,
                                       .group = "dense, hopper",
                                       .rows = 207,
                                       .sources = 5};
  CHECK(
      result_table(result, {})
          .find(
              "\n  90 % interval     1.80 s to 2.50 s (known release, dense, hopper: 207 published "
              "runs of 5 sources)\n") != std::string::npos);
  const nlohmann::ordered_json json = result_json(result);
  CHECK(json["step_s_low"] == 1.8);
  CHECK(json["step_s_high"] == 2.5);
  CHECK(json["interval"]["software"] == "known release");
  CHECK(json["interval"]["rows"] == 207);
  CHECK(result_csv(result).str().starts_with("step_s,step_s_low,step_s_high,mfu,"));
  CHECK_FALSE(result_json(example()).contains("interval"));
}

TEST_CASE("run, JSON: units in the names, and the waterfall adds up") {
  const nlohmann::ordered_json json = result_json(example());
  std::string first_level;
  for (const auto& [name, value] : json.items()) first_level += name + " ";
  CHECK(first_level ==
        "schema kind step_s mfu mfu_causal hfu tokens_per_s tokens_per_s_per_gpu tflops_per_gpu "
        "tflops_per_gpu_causal tokens_per_step gpus nodes peak_memory_gib needed_memory_gib "
        "peak_memory_stage "
        "usable_memory_gib memory_capacity_gib training_tokens time_to_train_s gpu_hours "
        "usd_per_gpu_hour price_usd memory_fits memory_band job "
        "hardware waterfall stages critical_path "
        "largest_loss assumptions notes expectation simulation ");
  CHECK(json["mfu"] == 0.45);
  CHECK(json["peak_memory_gib"] == 40);
  CHECK(json["time_to_train_s"] == 2e6);
  CHECK(json["price_usd"] == 17777.7777778);  // 2e6 s on 16 GPUs at 2 dollars, twelve digits
  CHECK(json["waterfall"].size() == kBuckets);
  double shares = 0;
  for (const auto& bucket : json["waterfall"]) shares += bucket["share"].get<double>();
  CHECK(shares == doctest::Approx(1).epsilon(1e-11));
  CHECK(json["largest_loss"]["bucket"] == "pipeline_bubble");
  CHECK(json["expectation"]["checks"][0]["error"] == -0.0909090909091);
  CHECK(json["expectation"]["checks"][0]["within"] == true);
}

TEST_CASE("run: what a capacity drops and pads, and samples that are packed") {
  RunResult r = example();
  r.scenario.job.model.experts = {.count = 4, .per_token = 1, .ffn = 64};
  r.scenario.job.parallelism.expert = 2;
  r.scenario.job.routing = {.zipf = 1, .capacity = 1.2};
  r.scenario.job.batch.sample_tokens = 256;
  const std::string table = result_table(r, {});
  CHECK(
      table.find("Routing           the fullest rank has 1.15 times the mean; 18.0 % of the copies "
                 "are dropped") != std::string::npos);
  CHECK(table.find("64 sequences of 1,024 tokens in samples of 256") != std::string::npos);
  r.scenario.job.routing.padded = true;
  const auto routing = result_json(r)["job"]["routing"];
  CHECK(routing["capacity_factor"] == 1.2);
  CHECK(routing["dropped_share"] == doctest::Approx(0.18));
  CHECK(routing["padding_share"] == doctest::Approx(1 - 0.82 / 1.2));
  CHECK(routing["fullest_rank"] == 1);
}

TEST_CASE("run, JSON: cost and expectation are left out where nothing is known of them") {
  RunResult result = example();
  result.scenario.usd_per_gpu_hour.reset();
  CHECK(result_json(result).contains("gpu_hours"));
  CHECK_FALSE(result_json(result).contains("price_usd"));
  result.scenario.training_tokens.reset();
  result.scenario.expect.reset();
  CHECK_FALSE(result_json(result).contains("gpu_hours"));
  CHECK_FALSE(result_json(result).contains("expectation"));
}

TEST_CASE("run, CSV: a header and one line of numbers") {
  CHECK(
      result_csv(example()).str() ==
      "step_s,mfu,mfu_causal,hfu,tokens_per_s,tokens_per_s_per_gpu,tflops_per_gpu,"
      "tflops_per_gpu_causal,tokens_per_step,gpus,nodes,peak_memory_gib,needed_memory_gib,peak_"
      "memory_stage,"
      "usable_memory_gib,memory_capacity_gib,training_tokens,time_to_train_s,gpu_hours,"
      "usd_per_gpu_hour,price_usd,model_flops_share,kernel_inefficiency_share,memory_bound_share,"
      "recompute_share,launch_share,tensor_exposed_share,context_exposed_share,"
      "expert_exposed_share,expert_imbalance_share,pipeline_exposed_share,"
      "pipeline_bubble_share,data_exposed_share,host_exposed_share,variation_share,straggler_share,"
      "optimiser_share\n"
      "2,0.45,0.4,0.4,32768,2048,45,40,65536,16,2,40,40,0,75,80,65536000000,2000000,8888.88888889,"
      "2,17777.7777778,0.4,0.2,0,0,0,0,0,0,0,0,0.3,0.1,0,0,0,0\n");
}
