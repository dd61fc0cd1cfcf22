// lockstep diagnose: a recorded step beside the simulated one.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "tests/support/near.hpp"
#include "tests/support/real_files.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

using DiagnosedJson = nlohmann::json;

constexpr const char* kDiagnosedJob = R"({"model": "llama2_7b",
  "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "ideal"},
  "parallelism": {"tensor": 2, "data": 4},
  "batch": {"sequences": 8, "micro": 1, "tokens": 2048}})";

struct DiagnosedKernel {
  std::string name;
  double start_ms, end_ms;
  std::string args{};
};

std::string recording(int rank, int world, const std::vector<DiagnosedKernel>& kernels) {
  std::string out = fmt::format(
      R"({{"distributedInfo": {{"rank": {}, "world_size": {}}}, "traceEvents": [{{"ph": "M"}})",
      rank, world);
  int stream = 7;
  for (const DiagnosedKernel& k : kernels) {
    out += fmt::format(R"(, {{"ph": "X", "cat": "kernel", "name": "{}", "ts": {}, "dur": {}, )"
                       R"("args": {{"stream": {}{}}}}})",
                       k.name, k.start_ms * 1e3, (k.end_ms - k.start_ms) * 1e3, stream++, k.args);
  }
  return out + "]}";
}

std::string reduce_call(int first, int second, double elements) {
  return fmt::format(R"(, "Collective name": "allreduce", "In msg nelems": {0}, )"
                     R"("Out msg nelems": {0}, "dtype": "BFloat16", "Group size": 2, )"
                     R"("Process Group Name": "tp", "Process Group Ranks": "[{1}, {2}]")",
                     elements, first, second);
}

DiagnosedJson diagnosed(const std::vector<std::string>& words) {
  std::vector<std::string> args{"diagnose"};
  args.insert(args.end(), words.begin(), words.end());
  args.insert(args.end(), {"--format", "json"});
  const Ran ran = lockstep_with(args);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return DiagnosedJson::parse(ran.out);
}

double part(const DiagnosedJson& json, const std::string& name, const std::string& which) {
  for (const DiagnosedJson& each : json["parts"]) {
    if (each["name"] == name) return each[which].get<double>();
  }
  FAIL("no part " << name);
  return 0;
}

}  // namespace

TEST_CASE("lockstep diagnose: each instant goes to one part, and computing hides the rest") {
  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", kDiagnosedJob);
  // A product, an all-reduce of which 20 ms are beside it, a norm, a gap of the host, a copy.
  const std::string trace = folder.write(
      "rank3.json", recording(3, 8,
                              {{"gemm", 0, 100},
                               {"ncclDevKernel_AllReduce", 80, 130, reduce_call(2, 3, 1e6)},
                               {"layer_norm", 130, 140},
                               {"Memcpy DtoH", 145, 150}}));
  const DiagnosedJson json = diagnosed({job, trace});
  CHECK(json["recorded_s"].get<double>() == near(0.150));
  CHECK(part(json, "products", "recorded_s") == near(0.100));
  CHECK(part(json, "exchange", "recorded_s") == near(0.030));
  CHECK(part(json, "memory_bound", "recorded_s") == near(0.010));
  CHECK(part(json, "host", "recorded_s") == near(0.005));
  const DiagnosedJson run =
      DiagnosedJson::parse(lockstep_with({"run", job, "--format", "json"}).out);
  CHECK(json["predicted_s"] == run["step_s"]);
  CHECK(json["predicted_high_s"].get<double>() == near(run["step_s_high"].get<double>()));
  double predicted = 0, recorded = 0;
  for (const DiagnosedJson& each : json["parts"]) {
    predicted += each["predicted_s"].get<double>();
    recorded += each["recorded_s"].get<double>();
  }
  CHECK(predicted == near(json["predicted_s"].get<double>()).epsilon(1e-9));
  CHECK(recorded == near(0.150));
}

TEST_CASE("lockstep diagnose: operators add up to both steps, and what nothing tells is a row") {
  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", kDiagnosedJob);
  // A product without sizes, 20 ms of an all-reduce beside it, attention, a norm, a gap, a copy.
  const std::string trace =
      folder.write("rank3.json", recording(3, 8,
                                           {{"gemm", 0, 100},
                                            {"ncclDevKernel_AllReduce", 80, 130},
                                            {"flash_fwd_kernel", 130, 145},
                                            {"rmsnorm_fwd_tuned_kernel", 145, 155},
                                            {"Memcpy DtoH", 160, 165}}));
  const DiagnosedJson json = diagnosed({job, trace});
  std::map<std::string, DiagnosedJson> rows;
  double predicted = 0, recorded = 0;
  for (const DiagnosedJson& row : json["operators"]) {
    rows[row["name"]] = row;
    predicted += row["predicted_s"].get<double>();
    recorded += row["recorded_s"].get<double>();
  }
  CHECK(predicted == near(json["predicted_s"].get<double>()).epsilon(1e-9));
  CHECK(recorded == near(0.165));
  const auto took = [&](const std::string& name) { return rows[name]["recorded_s"].get<double>(); };
  CHECK(took("unassigned") == near(0.100));
  CHECK(rows["unassigned"]["predicted_s"] == 0);
  CHECK(took("attention") == near(0.015));
  CHECK(took("norm") == near(0.010));
  CHECK(rows["norm"]["kernels"] == 1);
  CHECK(took("exchange") == near(0.030));
  CHECK(took("copies") == near(0.005));
  CHECK(took("host") == near(0.005));
  // Llama 2 7B's products in a layer are as 3 to 1 to 2 x 2.6875 to 2.6875 by their work.
  const auto of_model = [&](const std::string& name) {
    return rows[name]["predicted_s"].get<double>();
  };
  CHECK(of_model("qkv") / of_model("projection") == doctest::Approx(3).epsilon(0.1));
  CHECK(of_model("mlp_up") / of_model("mlp_down") == doctest::Approx(2).epsilon(0.1));
  CHECK(of_model("optimiser") > 0);
  CHECK(json["notes"].dump().find(
            "60.6 % of the recorded step is in kernels of which nothing tells "
            "the operator, most of it in gemm: a row of its own") != std::string::npos);
  const Ran table = lockstep_with({"diagnose", job, trace});
  CHECK(table.out.find("kernels of no known operator") != std::string::npos);
}

// Qwen1.5 0.5B of Hugging Face, 24 layers, operator by operator: a forward pass of 16 texts. The
// file's first kernels are of the step before, without their launches: the products of a layer's
// attention among them are told by nothing.
TEST_CASE("lockstep diagnose: a real recording's kernels are of the operators that launched them" *
          doctest::skip(!has_real_files())) {
  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", R"({
    "model": {"layers": 24, "hidden": 1024, "ffn": 2816, "heads": 16, "vocabulary": 151936,
              "gated": true, "biases": false, "learned_positions": false, "rotary": true,
              "tied": true},
    "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "ideal"}, "parallelism": {"data": 8},
    "batch": {"sequences": 128, "micro": 16, "tokens": 559}})");
  const DiagnosedJson json =
      diagnosed({job, real_file("kineto/pairs/qwen1.5-0.5b-chat-h100.json.gz")});
  std::map<std::string, double> kernels;
  for (const DiagnosedJson& row : json["operators"]) {
    kernels[row["name"]] = row["kernels"].get<double>();
  }
  CHECK(kernels["embedding"] == 1);
  CHECK(kernels["mlp_up"] == 48);
  CHECK(kernels["mlp_down"] == 24);
  CHECK(kernels["projection"] == 24);
  CHECK(kernels["qkv"] == 69);
}

TEST_CASE("lockstep diagnose: a recording of another model is said to be one, before all else") {
  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", kDiagnosedJob);
  // A product of `k` columns, launched by an operator that says its sizes.
  const auto trace_of = [&](const std::string& name, int k) {
    return folder.write(
        name, fmt::format(R"({{"distributedInfo": {{"rank": 0, "world_size": 8}}, "traceEvents": [
          {{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "tid": 1, "ts": 0, "dur": 20,
            "args": {{"Input Dims": [[2048, {0}], [{0}, 4096]]}}}},
          {{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 1, "ts": 5,
            "dur": 2, "args": {{"correlation": 1}}}},
          {{"ph": "X", "cat": "kernel", "name": "nvjet_tst", "tid": 7, "ts": 30, "dur": 100000,
            "args": {{"stream": 7, "correlation": 1}}}}]}})",
                          k));
  };
  const std::string own = trace_of("own.json", 5504);      // the MLP's second product, cut in two
  const std::string other = trace_of("other.json", 8960);  // Qwen2.5 1.5B's
  constexpr const char* kDoubt = "This may not be the recorded job: 100.0 % of the time";
  CHECK(diagnosed({job, own})["other_products_share"] == 0);
  CHECK(diagnosed({job, other})["other_products_share"] == 1);
  CHECK(lockstep_with({"diagnose", job, own}).out.find(kDoubt) == std::string::npos);
  CHECK(lockstep_with({"diagnose", job, other}).out.starts_with(kDoubt));
}

TEST_CASE("lockstep diagnose: the rank that works longest is named, and what it costs") {
  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", kDiagnosedJob);
  for (int rank = 0; rank < 4; ++rank) {
    const double works = rank == 2 ? 130 : 100;
    folder.write(fmt::format("rank{}.json", rank),
                 recording(rank, 8,
                           {{"gemm", 0, works},
                            {"ncclDevKernel_AllReduce", works, 150, reduce_call(0, 1, 1e6)}}));
  }
  const DiagnosedJson json =
      diagnosed({job, folder.path() + "/rank0.json", folder.path() + "/rank1.json",
                 folder.path() + "/rank2.json", folder.path() + "/rank3.json"});
  CHECK(json["slowest_rank"] == 2);
  CHECK(json["behind_s"].get<double>() == near(0.030));
  CHECK(json["behind_in"] == "products");
  CHECK(json["rank_times"].size() == 4);
  const Ran text = lockstep_with({"diagnose", job, folder.path() + "/rank0.json",
                                  folder.path() + "/rank2.json", "--step", "1"});
  CHECK(text.exit == Exit::bad_input);  // nothing is marked
  const Ran table = lockstep_with({"diagnose", job, folder.path() + "/rank0.json",
                                   folder.path() + "/rank2.json", folder.path() + "/rank3.json"});
  CHECK(table.out.find("Rank 2 works longest: 130 ms without its waits, 30.0 ms more") !=
        std::string::npos);
}

TEST_CASE("lockstep diagnose: the page says what the table says, and lists the inputs") {
  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", kDiagnosedJob);
  std::vector<std::string> words{"diagnose", job};
  for (int rank = 0; rank < 4; ++rank) {
    const double works = rank == 2 ? 140 : 100;
    words.push_back(
        folder.write(fmt::format("rank{}.json", rank),
                     recording(rank, 8,
                               {{"gemm", 0, works},
                                {"ncclDevKernel_AllReduce", works, 150, reduce_call(0, 1, 1e8)}})));
  }
  const std::string text = lockstep_with(words).out;
  const std::string file = folder.path() + "/diagnosis.html";
  words.insert(words.end(), {"--report", file});
  const Ran ran = lockstep_with(words);
  if (ran.err.find("chart library") != std::string::npos) return;  // built without it
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(ran.out == text);
  const std::string page = read_text_file(file);
  const auto has = [&](const std::string& part) {
    CHECK_MESSAGE(page.find(part) != std::string::npos, part);
  };
  has("<h1>llama2_7b on 8 GPUs</h1>");
  has("The recorded step takes 150\u00a0ms, ");
  has("Rank 2 works longest: 140\u00a0ms without its waits, 40.0\u00a0ms more");
  has("kernels of no known operator");
  has(">+110\u00a0ms<");  // of kernels that nothing tells, a mean over the ranks
  has("all-reduce of 200");
  has("parallelism.<wbr>tensor");
  has("<h2>Sources</h2>");
  // Predicted, then recorded, for each part; the parts of either add up to its step.
  const std::string chart = page.substr(page.find("id=\"chart-1\">") + 13);
  const DiagnosedJson options = DiagnosedJson::parse(chart.substr(0, chart.find("</script>")));
  REQUIRE(options["series"].size() == 2);
  double recorded = 0;
  for (const DiagnosedJson& part : options["series"][1]["data"]) recorded += part.get<double>();
  CHECK(recorded == near(150).epsilon(1e-3));  // milliseconds
}

TEST_CASE("lockstep diagnose: the shortest call of each group stands beside its price here") {
  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", kDiagnosedJob);
  // The second pair's link is slow: even its last rank takes ten times as long.
  const auto rank = [&](int number, int first, double took) {
    return folder.write(
        fmt::format("rank{}.json", number),
        recording(number, 8,
                  {{"gemm", 0, 10},
                   {"ncclDevKernel_AllReduce", 10, 10 + took, reduce_call(first, first + 1, 1e8)},
                   {"gemm", 100, 110}}));
  };
  const std::vector<std::string> words{job, rank(0, 0, 4), rank(1, 0, 3), rank(2, 2, 40),
                                       rank(3, 2, 30)};
  const DiagnosedJson calls = diagnosed(words)["collectives"];
  REQUIRE(calls.size() == 2);
  CHECK(calls[0]["first_rank"] == 2);
  CHECK(calls[0]["shortest_s"].get<double>() == near(0.030));
  CHECK(calls[1]["shortest_s"].get<double>() == near(0.003));
  CHECK(calls[0]["size_bytes"] == 2e8);
  CHECK(calls[0]["calls"] == 1);
  CHECK(calls[0]["predicted_s"] == calls[1]["predicted_s"]);
  CHECK(calls[0]["predicted_s"].get<double>() > 0);
  std::vector<std::string> args{"diagnose"};
  args.insert(args.end(), words.begin(), words.end());
  CHECK(lockstep_with(args).out.find("The all-reduce of 200 MB among ranks 2, 3 takes ") !=
        std::string::npos);
  args.insert(args.end(), {"--assert", "recorded_over_predicted<=0.001"});
  CHECK(lockstep_with(args).exit == Exit::assertion_missed);
}

TEST_CASE(
    "lockstep diagnose: a slow link is of the ranks that no fast group has, and has a price") {
  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", R"({"model": "llama3_8b",
    "cluster": {"node": "dgx_h100", "nodes": 2},
    "parallelism": {"tensor": 8, "sequence": true, "data": 2},
    "batch": {"sequences": 16, "micro": 1, "tokens": 4096}})");
  // Pairs over the network: that of rank 3 takes three times as long as the seven others.
  std::vector<std::string> words{job};
  for (int rank = 0; rank < 16; ++rank) {
    const bool slow = rank % 8 == 3;
    const double took = slow ? 15 : 5;
    std::vector<DiagnosedKernel> kernels{{"gemm", 0, 10}};
    for (int call = 0; call < 4; ++call) {
      kernels.push_back({"ncclDevKernel_AllReduce", 10 + 20.0 * call, 10 + 20.0 * call + took,
                         reduce_call(rank % 8, rank % 8 + 8, 67'108'864)});
    }
    words.push_back(folder.write(fmt::format("rank{}.json", rank), recording(rank, 16, kernels)));
  }
  const DiagnosedJson groups = diagnosed(words)["slow_groups"];
  REQUIRE(groups.size() == 1);
  CHECK(groups[0]["ranks"].dump() == "[3.0,11.0]");
  CHECK(groups[0]["suspects"].dump() == "[3.0,11.0]");
  CHECK(groups[0]["spans_nodes"] == true);
  CHECK(groups[0]["peers"] == 7);
  CHECK(groups[0]["calls"] == 4);
  CHECK(groups[0]["ratio"].get<double>() == near(3));
  CHECK(groups[0]["cost_s"].get<double>() == near(0.040));
  std::vector<std::string> args{"diagnose"};
  args.insert(args.end(), words.begin(), words.end());
  const std::string text = lockstep_with(args).out;
  CHECK(text.find("The 4 calls among ranks 3, 11, between nodes, take 3.0 times as long") !=
        std::string::npos);
  CHECK(text.find("40.0 ms of a step") != std::string::npos);
  // A pair across rails that is fast clears rank 11.
  const std::string fast = folder.write(
      "rank4.json",
      recording(4, 16,
                {{"gemm", 0, 10},
                 {"ncclDevKernel_AllReduce", 10, 15, reduce_call(4, 12, 67'108'864)},
                 {"ncclDevKernel_AllReduce", 30, 35, reduce_call(4, 11, 67'108'864)}}));
  words[5] = fast;
  CHECK(diagnosed(words)["slow_groups"][0]["suspects"].dump() == "[3.0]");
}

TEST_CASE("lockstep diagnose: a call is priced among its NVLink domains and NICs, as replay does") {
  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", R"({"model": "llama3_8b",
    "cluster": {"node": "aws_p5", "nodes": 2},
    "parallelism": {"tensor": 8, "sequence": true, "data": 2},
    "batch": {"sequences": 16, "micro": 1, "tokens": 4096}})");
  // Four calls of a pair, of which both members were recorded, or one.
  const std::string pair = reduce_call(0, 8, 134'217'728);
  std::vector<std::string> files;
  for (const int rank : {0, 8}) {
    std::vector<DiagnosedKernel> kernels{{"gemm", 0, 10}};
    for (int call = 0; call < 4; ++call) {
      kernels.push_back({"ncclDevKernel_AllReduce", 10.0 + 10 * call, 19.0 + 10 * call, pair});
    }
    files.push_back(folder.write(fmt::format("rank{}.json", rank), recording(rank, 16, kernels)));
  }
  const auto call_on = [&](const std::vector<std::string>& sets, std::size_t ranks) {
    std::vector<std::string> words{job};
    words.insert(words.end(), files.begin(), files.begin() + static_cast<std::ptrdiff_t>(ranks));
    words.insert(words.end(), sets.begin(), sets.end());
    const DiagnosedJson calls = diagnosed(words)["collectives"];
    REQUIRE(calls.size() == 1);
    return calls[0];
  };
  // A ring of two moves all of the buffer over a GPU's share of the NICs: 4 of 12.5 GB/s, or half
  // of one of 50; in one NVLink domain it never leaves it.
  const double bytes = 2 * 134'217'728.0;
  CHECK(call_on({}, 2)["predicted_s"].get<double>() == near(bytes / 50e9).epsilon(0.2));
  CHECK(call_on({"--set", "cluster.node=hgx_h100_pcie"}, 2)["predicted_s"].get<double>() ==
        near(bytes / 25e9).epsilon(0.2));
  CHECK(call_on({"--set", "cluster.node=gb200_nvl72", "--set", "cluster.nodes=4"}, 2)["predicted_s"]
            .get<double>() < bytes / 300e9);
  for (const std::size_t ranks : {1U, 2U}) {
    const DiagnosedJson call = call_on({}, ranks);
    CHECK(call["calls"] == 4);
    CHECK(call["total_s"].get<double>() == near(0.036));
  }
}

TEST_CASE("lockstep diagnose: a mistake is one line, with status 2") {
  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", kDiagnosedJob);
  const std::string other = folder.write("rank0.json", recording(0, 16, {{"gemm", 0, 10}}));
  const std::string fits = folder.write("rank1.json", recording(1, 8, {{"gemm", 0, 10}}));
  const std::string goal = folder.write("plan.goal", "num_ranks 1\nrank 0 {\ncalc 5\n}\n");
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"diagnose"}, "lockstep diagnose: a scenario is missing; usage: "},
      {{"diagnose", job}, "lockstep diagnose: a trace is missing; usage: "},
      {{"diagnose", job, other},
       other + ": found a recording of 16 ranks; allowed: one of a rank of the 8 GPUs that " + job},
      {{"diagnose", job, goal}, goal + ": found no trace of the PyTorch profiler; allowed: Kineto"},
      {{"diagnose", job, fits, fits}, fits + ": found rank 1; allowed: each rank once"},
      {{"diagnose", folder.path() + "/no.json", fits}, folder.path() + "/no.json: "}};
  for (const auto& [words, line] : mistakes) {
    const Ran ran = lockstep_with(words);
    CHECK(ran.exit == Exit::bad_input);
    CHECK_MESSAGE(ran.err.starts_with(line), ran.err);
    CHECK(ran.out.empty());
  }
}
