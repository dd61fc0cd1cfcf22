// `lockstep tune`: what it prints and writes, and what it finds for published jobs.
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "models/layer/flops.hpp"
#include "sim/measured/row_document.hpp"
#include "sim/measured/row_validation.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/search/tune.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/slow_build.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;

const std::string kScenarios = LOCKSTEP_SOURCE_DIR "/scenarios/";

/// Narayanan et al. 2021, arXiv:2104.04473, table 1: the layouts that its authors chose, all with
/// full recomputation and without sharding.
struct PublishedLayout {
  int heads, hidden, layers, tensor, pipeline, gpus, sequences;
};
constexpr std::array kMegatron2021{
    PublishedLayout{24, 2304, 24, 1, 1, 32, 512},         // 1.7 billion weights
    PublishedLayout{32, 3072, 30, 2, 1, 64, 512},         // 3.6
    PublishedLayout{32, 4096, 36, 4, 1, 128, 512},        // 7.5
    PublishedLayout{48, 6144, 40, 8, 1, 256, 1024},       // 18.4
    PublishedLayout{64, 8192, 48, 8, 2, 512, 1536},       // 39.1
    PublishedLayout{80, 10240, 60, 8, 4, 1024, 1792},     // 76.1
    PublishedLayout{96, 12288, 80, 8, 8, 1536, 2304},     // 145.6
    PublishedLayout{128, 16384, 96, 8, 16, 1920, 2160},   // 310.1
    PublishedLayout{128, 20480, 105, 8, 35, 2520, 2520},  // 529.6
    PublishedLayout{160, 25600, 128, 8, 64, 3072, 3072},  // 1008
};

Scenario scenario_of(const PublishedLayout& row) {
  const std::string text = fmt::format(
      R"({{"model": {{"layers": {}, "hidden": {}, "heads": {}, "kv_heads": {}, "head_dim": {},
                      "ffn": {}, "vocabulary": 51200, "tied": true, "learned_positions": true,
                      "max_positions": 2048, "biases": true}},
           "cluster": {{"node": "dgx_a100_80gb", "nodes": {}, "fabric": "selene"}},
           "parallelism": {{"tensor": {}, "pipeline": {}}},
           "batch": {{"sequences": {}, "micro": 1, "tokens": 2048}},
           "precision": "fp16", "recompute": "full", "stack": "megatron_lm_2021"}})",
      row.layers, row.hidden, row.heads, row.heads, row.hidden / row.heads, 4 * row.hidden,
      row.gpus / 8, row.tensor, row.pipeline, row.sequences);
  return read_scenario("megatron.json", text, test::presets());
}

}  // namespace

TEST_CASE("tune: at least as fast as the layouts of Megatron's 2021 models, and says their rank") {
  for (const PublishedLayout& row : kMegatron2021) {
    // The largest take seconds of replays: where those are slow, the first ones say as much.
    if (test::kSlowBuild && row.gpus > 256) continue;
    CAPTURE(row.hidden);
    Scenario scenario = scenario_of(row);
    TuneOptions options;
    // What that software had: the paper recomputes everything and shards nothing.
    options.space.sharding = {Sharding::none};
    options.space.recompute = {Recompute::full};
    // Micro batches and virtual stages are not published: the model's best are.
    TuneOptions published = options;
    published.space.tensor = {row.tensor};
    published.space.pipeline = {row.pipeline};
    published.keep = 1;
    const TuneResult theirs = tune(scenario, published);
    REQUIRE(theirs.best.size() == 1);

    options.rank_own = true;
    const TuneResult all = tune(theirs.best.front().scenario, options);
    REQUIRE(!all.best.empty());
    CHECK(all.fastest_s <= theirs.fastest_s);
    CHECK(all.best.front().step_s <= (1 + kSafer) * all.fastest_s);
    CHECK(all.own_rank_first == all.own_rank_last);
    CHECK(all.own_rank_first <= all.pruned + all.replayed);
  }
}

TEST_CASE(
    "tune: of the layouts that were tried for BLOOM the model's best is among the best five") {
  const std::string file = LOCKSTEP_SOURCE_DIR "/tests/reference/training.json";
  std::vector<ReferenceRow> rows = load_rows(file, test::presets());
  std::erase_if(rows, [](const ReferenceRow& row) { return !row.id.starts_with("bloom-tune-"); });
  REQUIRE(rows.size() > 80);
  const std::vector<RowPrediction> predictions = predict_rows(rows, test::presets(), 0, [] {});

  // Useful FLOP/s of a GPU, measured and predicted: of each job, and of all of them.
  struct Speeds {
    double measured, predicted;
  };
  std::map<std::tuple<int, int, int, int, int>, std::vector<Speeds>> jobs;
  for (const RowPrediction& prediction : predictions) {
    const ReferenceRow& row = *prediction.row;
    if (!prediction.predicted_step_s || !row.measured_step_s) continue;
    TrainingJob job;
    job.model = row.model;
    job.batch = row.batch;
    const double work = step_flops(job).full.base_units() / row.gpus;
    const Speeds speeds{work / *row.measured_step_s, work / *prediction.predicted_step_s};
    jobs[{row.model.layers, row.model.hidden, row.model.heads, row.gpus, row.batch.sequences}]
        .push_back(speeds);
    jobs[{}].push_back(speeds);
  }
  std::size_t judged = 0;
  for (const auto& [job, layouts] : jobs) {
    if (layouts.size() <= 5) continue;  // cannot fail
    ++judged;
    const Speeds best = *std::ranges::max_element(layouts, {}, &Speeds::predicted);
    CAPTURE(layouts.size());
    CHECK(std::ranges::count_if(
              layouts, [&](const Speeds& other) { return other.measured > best.measured; }) < 5);
  }
  CHECK(judged >= 3);
}

TEST_CASE("tune: a layout that may run out of memory is marked, and says what decides") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("small.json", R"({"model": {"layers": 6, "hidden": 2048,
    "heads": 16, "kv_heads": 8, "head_dim": 128, "ffn": 8192, "vocabulary": 32000, "gated": true},
    "cluster": {"node": {"preset": "dgx_h100", "gpu": {"hbm_capacity": "8 GiB"}}, "nodes": 2},
    "stack": "megatron_core", "batch": {"sequences": 32, "micro": 1, "tokens": 4096}})");
  const std::string out = lockstep_with({"tune", file, "--micro-batch", "1,2"}).out;
  std::istringstream words(out);
  std::string text;  // as one line
  for (std::string word; words >> word;) text += word + " ";
  CHECK(text.find("close: may not fit, by what is assumed of its memory") != std::string::npos);
  CHECK(text.find("GiB are needed by what is assumed, of") != std::string::npos);
  const std::size_t first = out.find("\n    1 ");
  REQUIRE(first != std::string::npos);
  const std::string row = out.substr(first + 1, out.find('\n', first + 1) - first - 1);
  CHECK(row.find("close") == std::string::npos);
}

TEST_CASE("tune: prints the best, counts the rest, and writes a scenario that runs to the answer") {
  const test::TemporaryFolder folder;
  const std::string best = folder.path() + "/best.json";
  const std::vector<std::string> args{"tune",        kScenarios + "bloom-176b.json",
                                      "--keep",      "3",
                                      "--tensor",    "4,8",
                                      "--sharding",  "none,zero1",
                                      "--recompute", "full",
                                      "-j",          "1",
                                      "-o",          best};
  const test::Ran table = lockstep_with(args);
  CHECK(table.exit == Exit::ok);
  CHECK(table.err.empty());
  CHECK(table.out.starts_with("bloom_176b on 384 GPUs (48 x jean_zay_a100, a100_sxm4_80gb)\n"));
  CHECK(table.out.find("The scenario's own layout is number ") != std::string::npos);

  std::vector<std::string> as_json = args;
  as_json.insert(as_json.end(), {"--format", "json"});
  const nlohmann::json found = nlohmann::json::parse(lockstep_with(as_json).out);
  REQUIRE(found["best"].size() == 3);
  CHECK(found["step_s"] == found["best"][0]["step_s"]);
  CHECK(found["own"]["rank_first"] == found["own"]["rank_last"]);
  double shares = 0;
  for (const auto& [bucket, share] : found["best"][0]["waterfall_shares"].items()) {
    shares += share.get<double>();
  }
  CHECK(shares == doctest::Approx(1));
  std::size_t counted = found["same_as_zero1"].get<std::size_t>() +
                        found["over_memory"].get<std::size_t>() +
                        found["pruned"].get<std::size_t>() + found["replayed"].get<std::size_t>();
  for (const char* list : {"refused", "beyond_stack"}) {
    for (const auto& reason : found[list]) counted += reason["layouts"].get<std::size_t>();
  }
  CHECK(counted == found["considered"].get<std::size_t>());

  const test::Ran run = lockstep_with({"run", best, "--format", "json"});
  CHECK(run.exit == Exit::ok);
  CHECK(nlohmann::json::parse(run.out)["step_s"] == found["step_s"]);
  CHECK_FALSE(nlohmann::json::parse(read_text_file(best)).contains("expect"));

  std::vector<std::string> as_csv = args;
  as_csv.insert(as_csv.end(), {"--format", "csv"});
  const std::string csv = lockstep_with(as_csv).out;
  CHECK(csv.starts_with("rank,step_s,step_s_low,step_s_high,ties,mfu,tensor,context,pipeline,"));
  CHECK(std::ranges::count(csv, '\n') == 4);
}

TEST_CASE("tune: the table is no wider than a page, however long a layout's words are") {
  const std::vector<std::vector<std::string>> searches{
      {"llama3-405b-16k.json", "--tensor", "8", "--context", "1"},
      {"mixtral-8x7b-h100.json", "--sharding", "zero3"},
      {"deepseek-v3-gb200.json", "--tensor", "2", "--pipeline", "8"}};
  for (std::vector<std::string> args : searches) {
    CAPTURE(args.front());
    args.front() = kScenarios + args.front();
    args.insert(args.begin(), "tune");
    args.insert(args.end(), {"--keep", "5"});
    const test::Ran ran = lockstep_with(args);
    REQUIRE(ran.exit == Exit::ok);
    std::istringstream lines(ran.out);
    std::size_t longest = 0;
    for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
    CHECK(longest > 80);
    CHECK(longest <= 100);
  }
}

TEST_CASE("tune: a layout with sharded weights and experts is written as it was found") {
  const test::TemporaryFolder folder;
  const std::string best = folder.path() + "/best.json";
  const test::Ran found = lockstep_with({"tune", kScenarios + "mixtral-8x7b-h100.json", "--keep",
                                         "1", "--sharding", "zero3", "--pipeline", "1", "--expert",
                                         "8", "--format", "json", "-j", "1", "-o", best});
  REQUIRE(found.exit == Exit::ok);
  const test::Ran run = lockstep_with({"run", best, "--format", "json"});
  REQUIRE(run.exit == Exit::ok);
  CHECK(nlohmann::json::parse(run.out)["step_s"] == nlohmann::json::parse(found.out)["step_s"]);
}

TEST_CASE("tune: a scenario without a layout, or with a wrong one, is a place to start from") {
  const test::TemporaryFolder folder;
  const auto job = [&](const char* nodes, const char* layout) {
    return folder.write("job.json", fmt::format(R"({{"model": "llama3_8b", "stack": "megatron_core",
        "cluster": {{"node": "dgx_h100", "nodes": {}}},
        "batch": {{"sequences": 40, "tokens": 8192}}, "parallelism": {}}})",
                                                nodes, layout));
  };
  // 80 replicas would not divide 40 sequences, and so would no other layout without the search.
  const test::Ran open = lockstep_with({"tune", job("10", "{}"), "--keep", "1"});
  CHECK(open.exit == Exit::ok);
  CHECK(open.out.find("The scenario's own layout cannot be run: /batch/sequences: found 40") !=
        std::string::npos);
  const test::Ran wrong = lockstep_with({"tune", job("10", R"({"tensor": 3})"), "--keep", "1"});
  CHECK(wrong.exit == Exit::ok);
  CHECK(wrong.out.find("cannot be run: /parallelism/tensor: found 3") != std::string::npos);
  const test::Ran unable =
      lockstep_with({"tune", job("10", R"({"schedule": "zb_v", "pipeline": 2})"), "--keep", "1"});
  CHECK(unable.exit == Exit::ok);
  CHECK(unable.out.find("/parallelism/schedule: found \"zb_v\"") != std::string::npos);
  // What no layout mends is an error as before.
  const test::Ran typo = lockstep_with({"tune", job("10", R"({"tensor": "x"})")});
  CHECK(typo.exit == Exit::bad_input);
  CHECK(typo.err.find("#/parallelism/tensor: found \"x\"") != std::string::npos);
}

TEST_CASE("tune: where nothing divides, it says which counts of nodes and sequences would") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write(
      "job.json", R"({"model": "llama3_70b", "cluster": {"node": "dgx_a100_80gb", "nodes": 2000},
                      "batch": {"sequences": 2048, "tokens": 4096}})");
  const test::Ran ran = lockstep_with({"tune", file, "--keep", "1"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.out.empty());
  CHECK(ran.err.find("#/batch/sequences: found no layout that divides 2,048 sequences of a step on "
                     "16,000 GPUs; allowed: ") != std::string::npos);
  // 16,000 GPUs are 2^7 x 5^3, of which no replica of this model is 125 or 25 x 5 ranks.
  CHECK(ran.err.find(" nodes (") != std::string::npos);
  CHECK(ran.err.find(" sequences a step, which can be laid out") != std::string::npos);
}

TEST_CASE("tune: what none of the layouts asked for can be run by the stack is an error of it") {
  const test::Ran ran = lockstep_with(
      {"tune", kScenarios + "gpt3-175b-selene.json", "--sharding", "zero3", "--keep", "1"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.find("#/stack: found no layout that megatron_lm_2021 can run: ") !=
        std::string::npos);
  CHECK(ran.err.find("sharding.zero3") != std::string::npos);
}

TEST_CASE("tune: a model on a machine is asked about without a file") {
  const std::vector<std::string> question{"tune",     "--model",     "llama3_8b", "--node",
                                          "dgx_h100", "--sequences", "64",        "--keep",
                                          "2",        "--format",    "json"};
  const nlohmann::json asked = nlohmann::json::parse(lockstep_with(question).out);
  REQUIRE(asked["best"].size() == 2);
  // The layout that run takes for the same question.
  std::vector<std::string> run{question.begin(), question.begin() + 7};
  run.front() = "run";
  run.insert(run.end(), {"--format", "json"});
  const nlohmann::json answer = nlohmann::json::parse(lockstep_with(run).out);
  CHECK(asked["best"][0]["step_s"] == answer["step_s"]);
  // Nobody wrote a scenario that would have a layout of its own.
  CHECK(asked["own"].is_null());
  CHECK_FALSE(asked.contains("own_problem"));
  std::vector<std::string> table{question.begin(), question.end() - 2};
  const std::string words = lockstep_with(table).out;
  CHECK(words.find("scenario's own") == std::string::npos);
  CHECK(words.find(" own  ") == std::string::npos);
  table.insert(table.end(), {"--set", "parallelism.tensor=8"});
  CHECK(lockstep_with(table).out.find("The plain layout that these options leave") !=
        std::string::npos);
  CHECK(lockstep_with({"tune", "--node", "dgx_h100"}).err ==
        "--node: found it without --model; allowed: beside --model\n");
}

TEST_CASE("tune: mistakes are one line that says what is allowed") {
  const std::string bloom = kScenarios + "bloom-176b.json";
  const auto error = [](std::vector<std::string> args) {
    const test::Ran ran = lockstep_with(args);
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(error({"tune"}) ==
        "lockstep tune: no scenario file; usage: lockstep tune [FILE|NAME] [options]\n");
  CHECK(error({"tune", bloom, "--tensor", "4,x"}) ==
        "--tensor: found \"x\"; allowed: whole numbers from 1 to 1000000 with commas\n");
  CHECK(error({"tune", bloom, "--tensor", "7,5"}) ==
        "--tensor: found 7,5; allowed: a divisor of the 384 GPUs\n");
  CHECK(error({"tune", bloom, "--pipeline", "5"}) ==
        "--pipeline: found 5; allowed: a divisor of the 384 GPUs\n");
  CHECK(error({"tune", bloom, "--sharding", "zero"}) ==
        "--sharding: found \"zero\"; allowed: none, zero1, zero2, zero3 with commas. Did you mean "
        "zero1?\n");
  CHECK(error({"tune", kScenarios + "congestion/spine-dies.json"}).find("one job at a time") !=
        std::string::npos);
  CHECK(
      error({"tune", bloom, "--tensor", "1", "--pipeline", "1", "--sharding", "none"})
          .find("#/batch/sequences: found no layout that divides 2,048 sequences of a step on "
                "384 GPUs; allowed: 32 or 64 nodes (256 or 512 GPUs), or 1920 or 2304 sequences a "
                "step") != std::string::npos);
  CHECK(error({"tune", bloom, "--tensor", "1", "--pipeline", "3", "--sharding", "none"})
            .find("found no layout that fits") != std::string::npos);
}

}  // namespace lockstep
