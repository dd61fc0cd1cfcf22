// `lockstep replay` and the exports of `lockstep run`, as a person calls them.
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tests/sim/trace/pytorch/recorded_pair.hpp"
#include "tests/support/near.hpp"
#include "tests/support/real_files.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr std::string_view kExported = R"({
  "model": "llama2_7b",
  "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "ideal"},
  "parallelism": {"tensor": 2, "pipeline": 2, "data": 2},
  "batch": {"sequences": 8, "micro": 1, "tokens": 2048}
})";

nlohmann::json json_of(const Ran& ran) {
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return nlohmann::json::parse(ran.out);
}

}  // namespace

TEST_CASE("lockstep replay: what run exports as Chakra takes the same time again") {
  const TemporaryFolder folder;
  const std::string scenario = folder.write("step.json", kExported);
  const std::string traces = folder.path() + "/traces";
  const nlohmann::json run = json_of(
      lockstep_with({"run", scenario, "--chakra", traces, "--allow-oom", "--format", "json"}));
  CHECK(std::filesystem::exists(traces + "/step.7.et"));
  const nlohmann::json replay = json_of(lockstep_with(
      {"replay", traces, "--node", "dgx_h100", "--fabric", "ideal", "--format", "json"}));
  CHECK(replay["ranks"] == 8);
  CHECK(std::filesystem::exists(traces + "/comm_groups.json"));
  // Half a per cent: trace_of_step_test.cpp says what may differ.
  CHECK(replay["step_s"].get<double>() == test::near(run["step_s"].get<double>()).epsilon(0.005));
  double parts = 0;
  for (const char* part : {"compute", "exposed_communication", "waiting", "idle", "after_end"}) {
    parts += replay[std::string("mean_") + part + "_s"].get<double>();
  }
  CHECK(parts == test::near(replay["step_s"].get<double>()));
  CHECK(replay["rank_times"].size() == 8);

  // Twice the bandwidth of everything on the other GPU: no slower.
  const nlohmann::json faster =
      json_of(lockstep_with({"replay", traces, "--node", "dgx_b200", "--recorded-on",
                             "h100_sxm5_80gb", "--format", "json"}));
  CHECK(faster["mean_compute_s"].get<double>() < 0.6 * replay["mean_compute_s"].get<double>());

  const std::string timeline = folder.path() + "/timeline.json";
  CHECK(lockstep_with({"replay", traces, "--node", "dgx_h100", "--trace", timeline}).exit ==
        Exit::ok);
  std::ifstream file(timeline);
  CHECK(nlohmann::json::parse(file)["traceEvents"].size() >
        replay["trace_nodes"].get<std::size_t>());
}

TEST_CASE("lockstep replay: a GOAL schedule, as table, JSON and CSV, with an assertion") {
  const TemporaryFolder folder;
  const std::string goal =
      folder.write("plan.goal",
                   "num_ranks 2\nrank 0 { l1: calc 1000; l2: send 8b to 1; l2 requires l1 }\n"
                   "rank 1 { recv 8b from 0 }\n");
  const std::vector<std::string> words{"replay", goal, "--node", "dgx_h100"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return lockstep_with(all);
  };
  CHECK(with({}).out.find("step time") != std::string::npos);
  CHECK(with({"--format", "csv"}).out.starts_with("rank,compute_s,"));
  CHECK(json_of(with({"--format", "json"}))["messages"] == 1);
  CHECK(with({"--assert", "step_s<1"}).exit == Exit::ok);
  CHECK(with({"--assert", "step_s<1e-9"}).exit == Exit::assertion_missed);
}

TEST_CASE("lockstep replay: execution traces of PyTorch beside Kineto's, here and on another GPU") {
  const TemporaryFolder folder;
  for (int rank = 0; rank < 2; ++rank) {
    RecordedPair pair(rank);
    // 4.4 TFLOP, and a small product that only moves its matrices; no name says so.
    pair.op("aten::mm", 0, 10, {{10, {8192, 32768}}, {11, {32768, 8192}}}, {{12, {8192, 8192}}});
    pair.kernel("fused_0", 2, 10, 6000, 7);
    pair.op("aten::mm", 20, 10, {{12, {8192, 8192}}, {13, {8192, 8}}}, {{14, {8192, 8}}});
    pair.kernel("fused_1", 22, 6010, 60, 7);
    folder.write("et_" + std::to_string(rank) + ".json", pair.operators());
    folder.write("kineto_" + std::to_string(rank) + ".json", pair.kineto());
  }
  const auto step = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"replay", folder.path(), "--format", "json"};
    words.insert(words.end(), more.begin(), more.end());
    return json_of(lockstep_with(words));
  };
  const nlohmann::json same = step({"--node", "dgx_h100"});
  CHECK(same["ranks"] == 2);
  CHECK(same["step_s"].get<double>() == test::near(6070e-6).epsilon(1e-9));
  const nlohmann::json other = step({"--node", "dgx_b200", "--recorded-on", "h100_sxm5_80gb"});
  // By the presets: 989.4 -> 2250 TFLOP/s dense in BF16, 3.35 -> 8 TB/s, and what kernels reach.
  const PresetStore presets;
  const GpuSpec &h100 = presets.gpu("h100_sxm5_80gb"), &b200 = presets.gpu("b200_sxm_180gb"),
                &v100 = presets.gpu("v100_sxm2_32gb");
  const auto reached = [](const GpuSpec& gpu) { return gpu.gemm.efficiency * gpu.gemm.sustained; };
  const double products = reached(h100) / reached(b200);
  const double streams = h100.memory.efficiency / b200.memory.efficiency;
  CHECK(other["mean_compute_s"].get<double>() ==
        test::near(6000e-6 * products * 989.4 / 2250 + 60e-6 * streams * 3.35 / 8).epsilon(0.01));
  // Volta has no BF16: 125 TFLOP/s dense in FP16, 0.9 TB/s.
  const nlohmann::json older = step({"--node", "dgx_h100", "--recorded-on", "v100_sxm2_32gb"});
  CHECK(older["mean_compute_s"].get<double>() ==
        test::near(6000e-6 * reached(v100) / reached(h100) * 125 / 989.4 +
                   60e-6 * v100.memory.efficiency / h100.memory.efficiency * 0.9 / 3.35)
            .epsilon(0.01));
}

namespace {

/// A Kineto trace: kernels in microseconds, with more keys and events where a test asks for them.
struct MadeKernel {
  const char* name;
  double start, took;
  int stream;
};
std::string made_kineto(const std::vector<MadeKernel>& kernels, const std::string& head = "",
                        const std::string& events = "") {
  std::string out = "{" + head + R"("traceEvents": [{"ph": "M"})" + events;
  for (const MadeKernel& k : kernels) {
    out += fmt::format(R"(, {{"ph": "X", "cat": "kernel", "name": "{}", "ts": {}, "dur": {}, )"
                       R"("args": {{"stream": {}}}}})",
                       k.name, k.start, k.took, k.stream);
  }
  return out + "]}";
}
std::string marked_steps(int steps, double each) {
  std::string out;
  for (int i = 0; i < steps; ++i) {
    out += fmt::format(R"(, {{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{}", )"
                       R"("ts": {}, "dur": {}, "args": {{}}}})",
                       i, i * each, each);
  }
  return out;
}
Ran replayed_on(const std::string& file, const std::vector<std::string>& more) {
  std::vector<std::string> words{"replay", file};
  words.insert(words.end(), more.begin(), more.end());
  return lockstep_with(words);
}

}  // namespace

TEST_CASE("lockstep replay: recorded and replayed time stand side by side, and the window") {
  const TemporaryFolder folder;
  // A gap on a second stream counts from the start of the recording.
  const std::string late =
      folder.write("a.json", made_kineto({{"gemm_a", 0, 1000, 7}, {"gemm_b", 101000, 1000, 8}}));
  const Ran text = replayed_on(late, {"--node", "dgx_h100"});
  REQUIRE(text.exit == Exit::ok);
  CHECK(text.out.find("102 ms; the replay takes +0.0 %") != std::string::npos);
  CHECK(text.out.find("note: no ProfilerStep marks") != std::string::npos);
  CHECK(text.out.find("differs:") == std::string::npos);
  const nlohmann::json json =
      json_of(replayed_on(late, {"--node", "dgx_h100", "--format", "json"}));
  CHECK(json["recorded_s"] == 0.102);
  CHECK(json["step_s"] == 0.102);
  CHECK(json["replayed_over_recorded"] == 1);
  // A step of three, whose second half is the host's.
  const std::string steps = folder.write(
      "b.json", made_kineto({{"gemm", 0, 900, 7}, {"gemm", 1000, 900, 7}, {"gemm", 2000, 500, 7}},
                            "", marked_steps(3, 1000)));
  const nlohmann::json step =
      json_of(replayed_on(steps, {"--node", "dgx_h100", "--format", "json"}));
  CHECK(step["step_s"] == 0.001);
  CHECK(step["notes"][0].get<std::string>().find("the median of 3 steps") != std::string::npos);
  CHECK(json_of(replayed_on(steps, {"--node", "dgx_h100", "--step", "all", "--format",
                                    "json"}))["step_s"] == 0.0025);
  CHECK(replayed_on(steps, {"--node", "dgx_h100", "--step", "first"}).err ==
        "--step: found \"first\"; allowed: the number of a ProfilerStep, or all\n");
  CHECK(replayed_on(steps, {"--node", "dgx_h100", "--step", "7"}).err ==
        steps + ": found no ProfilerStep#7; allowed: steps 0, 1, 2\n");
}

TEST_CASE("lockstep replay: a replay that differs from the recording says so and why") {
  const TemporaryFolder folder;
  // An all-reduce of 2 MB that waited 20 ms for the other rank, which nobody recorded.
  const std::string file = folder.write(
      "only.json",
      R"({"distributedInfo": {"rank": 1, "world_size": 2}, "traceEvents": [{"ph": "X", )"
      R"("cat": "kernel", "name": "gemm", "ts": 0, "dur": 1000, "args": {"stream": 7}}, )"
      R"({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "ts": 1000, )"
      R"("dur": 20000, "args": {"stream": 20, "Collective name": "allreduce", )"
      R"("dtype": "BFloat16", "In msg nelems": 1000000, "Out msg nelems": 1000000, )"
      R"("Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}}]})");
  const Ran ran = replayed_on(file, {"--node", "dgx_h100"});
  REQUIRE(ran.exit == Exit::ok);
  CHECK(ran.out.find("differs: communication costs what it does on this cluster") !=
        std::string::npos);
  std::string words = ran.out;  // without the breaks of lines
  for (std::size_t at = 0; (at = words.find("\n  ", at)) != std::string::npos;) {
    words.replace(at, 3, " ");
  }
  CHECK(words.find("the calls of a rank took 20.0 ms, waits for others in it, and take ") !=
        std::string::npos);
  const Ran kept = replayed_on(file, {"--node", "dgx_h100", "--as-recorded"});
  REQUIRE(kept.exit == Exit::ok);
  CHECK(kept.out.find("21.0 ms; the replay takes +0.0 %") != std::string::npos);
  CHECK(kept.out.find("repaired: 2 kernels of communication at the recorded length") !=
        std::string::npos);
  const std::string repaired =
      "repaired: 1 of 2 ranks were recorded; the other is a copy of the nearest one that was, rank";
  CHECK(ran.out.find(repaired) != std::string::npos);
  // The page says both too.
  const std::string page = folder.path() + "/replay.html";
  REQUIRE(replayed_on(file, {"--node", "dgx_h100", "--report", page}).exit == Exit::ok);
  const std::string html = read_text_file(page);
  CHECK(html.find("The replay differs from the recording: communication costs what it does on this "
                  "cluster") != std::string::npos);
  CHECK(html.find(repaired) != std::string::npos);
}

TEST_CASE("lockstep replay: --as-recorded needs calls with a recorded length") {
  const TemporaryFolder folder;
  const std::string file = folder.write(
      "only.json", R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 0, )"
                   R"("dur": 1000, "args": {"stream": 7}}]})");
  const Ran ran = replayed_on(file, {"--node", "dgx_h100", "--as-recorded"});
  CHECK(ran.exit != Exit::ok);
  CHECK(ran.err.starts_with("--as-recorded: found no call that is told with its recorded length"));
}

TEST_CASE("lockstep replay: on another GPU a kernel keeps the floor of its launch") {
  const TemporaryFolder folder;
  std::vector<MadeKernel> kernels;
  for (int i = 0; i < 100; ++i) kernels.push_back({"elementwise", 2.0 * i, 2, 7});
  const std::string small = folder.write(
      "rank0.json",
      made_kineto(kernels, R"("deviceProperties": [{"name": "NVIDIA H100 80GB HBM3"}], )"));
  const auto on = [&](const std::string& node) {
    return json_of(replayed_on(
        small, {"--node", node, "--recorded-on", "h100_sxm5_80gb", "--format", "json"}));
  };
  const PresetStore presets;
  const GpuSpec& h100 = presets.gpu("h100_sxm5_80gb");
  for (const char* node : {"dgx_h100", "mi300x_8", "dgx_b200", "dgx_v100"}) {
    const GpuSpec& gpu = presets.node(node).gpu;
    const double above = 2e-6 - h100.memory.launch.base_units();
    const double rates =
        h100.memory.efficiency / gpu.memory.efficiency * (h100.hbm_bandwidth / gpu.hbm_bandwidth);
    const double expected = 100 * (gpu.memory.launch.base_units() + above * rates);
    const nlohmann::json json = on(node);
    CHECK(json["step_s"].get<double>() == test::near(expected).epsilon(1e-6));
    CHECK(json["kernels_launch_bound_s"].get<double>() +
              json["kernels_gpu_bound_s"].get<double>() ==
          test::near(expected).epsilon(1e-6));
  }
  CHECK(on("dgx_h100")["step_s"] == 200e-6);
  // Half of the time the host is late: no card shortens that.
  const std::string idle =
      folder.write("idle.json", made_kineto({{"gemm", 0, 5000, 7}, {"gemm", 10000, 5000, 7}}));
  const Ran ran = replayed_on(idle, {"--node", "dgx_b200", "--recorded-on", "h100_sxm5_80gb"});
  CHECK(ran.out.find("the GPU waits for the host, as recorded") != std::string::npos);
  CHECK(ran.out.find("note: the recording does not name its card") != std::string::npos);
  CHECK(ran.out.find("note: the step on b200_sxm_180gb has no interval") != std::string::npos);
  const Ran same = replayed_on(idle, {"--node", "dgx_h100", "--recorded-on", "h100_sxm5_80gb"});
  CHECK(same.out.find("has no interval") == std::string::npos);
  // Nothing says whether a whole pass multiplies or moves data.
  const std::string untold = "of the kernels' time is of nodes whose names and sizes do not say";
  CHECK(ran.out.find(untold) == std::string::npos);
  const std::string pass =
      folder.write("pass.json", made_kineto({{"forward of micro batch 0", 0, 5000, 7}}));
  const Ran whole = replayed_on(pass, {"--node", "dgx_b200", "--recorded-on", "h100_sxm5_80gb"});
  CHECK_MESSAGE(whole.out.find("100.0 % " + untold) != std::string::npos, whole.out);
}

TEST_CASE("lockstep replay: --recorded-on takes the name of a card, and names itself") {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("rank0.json",
                   made_kineto({{"gemm", 0, 5, 7}}, R"("deviceProperties": [{"name": "A100"}], )"));
  const Ran ran = replayed_on(file, {"--node", "dgx_b200", "--recorded-on", "a100"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.starts_with("--recorded-on: found \"a100\"; allowed: a100_pcie_80gb, "));
}

TEST_CASE("lockstep replay: a recording of another card than --recorded-on is refused") {
  const TemporaryFolder folder;
  const std::string file = folder.write(
      "rank0.json", made_kineto({{"gemm", 0, 5, 7}},
                                R"("deviceProperties": [{"name": "Tesla V100-SXM2-32GB"}], )"));
  CHECK(replayed_on(file, {"--node", "dgx_b200", "--recorded-on", "h100_sxm5_80gb"}).err ==
        file +
            ": found recorded on \"Tesla V100-SXM2-32GB\"; allowed: recordings of "
            "h100_sxm5_80gb, which --recorded-on says; presets of that card: v100_sxm2_32gb, "
            "v100_sxm3_32gb\n");
  const Ran plain = replayed_on(file, {"--node", "dgx_b200"});
  CHECK(plain.out.find("--recorded-on scales them") != std::string::npos);
  CHECK(replayed_on(file, {"--node", "dgx_v100"}).out.find("--recorded-on") == std::string::npos);
}

TEST_CASE("lockstep replay: a pipe without a writer and a folder without traces are errors") {
  const TemporaryFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const std::string rule = "; allowed: a readable file, plain or .gz, of at most ";
  CHECK(replayed_on(pipe, {"--node", "dgx_h100"})
            .err.starts_with(pipe + ": found a pipe that nobody writes to" + rule));
  CHECK(lockstep_with({"import", "nsys", pipe, "--gpu", "h100_sxm5_80gb"})
            .err.starts_with(pipe + ": found a pipe that nobody writes to" + rule));
  CHECK(lockstep_with({"import", "kineto", folder.path(), "--gpu", "h100_sxm5_80gb"})
            .err.starts_with(folder.path() + ": found a directory" + rule));
}

// Recordings of other people (tests/support/real_files.hpp). Those without communication have to
// come out as long as they were; expected times are those of the recording's marks or its last
// kernel, read off the files with another program.
TEST_CASE("lockstep replay: recordings of other people" * doctest::skip(!has_real_files())) {
  struct Real {
    const char* file;
    double step_ms;  ///< of the window
    double within;
  };
  constexpr double kExact = 1e-4;  // of what is printed there
  for (const Real& real : {Real{"a100-alexnet.json.gz", 12920, 1e-3},
                           {"a100-event-sync-3-streams.json.gz", 19.506, kExact},
                           {"v100-five-profiler-steps.pt.trace.json.gz", 95.7, 1e-3},
                           {"mi210-gpu-only.json.gz", 5.98, 1e-3},
                           {"mi300x-torch-compile-triton.json.gz", 12.55, 1e-3},
                           {"mi300x-sglang-prefill-decode-2-streams.json.gz", 987.3, kExact},
                           {"vllm-prefill-decode-graphs.json.gz", 156.5, 1e-3},
                           {"mi300x-sd3.5.json.gz", 1195, 1e-3},
                           // Collectives are costed anew, or keep their length.
                           {"a100-rank-0-of-2-nccl-metadata.json.gz", 222.4, 0.02},
                           {"v100-rank-1-of-2.json.gz", 345.8, 0.02},
                           // From the first rank's mark to the end of the last one's.
                           {"dlrm-8-ranks", 20.82, 0.02}}) {
    CAPTURE(real.file);
    const nlohmann::json json = json_of(replayed_on(
        real_file("kineto/") + real.file, {"--node", "dgx_a100_80gb", "--format", "json"}));
    CHECK(json["step_s"].get<double>() * 1e3 == test::near(real.step_ms).epsilon(real.within));
    CHECK(json["replayed_over_recorded"].get<double>() ==
          test::near(1).epsilon(real.within == kExact ? 1e-9 : real.within));
  }
}

// Execution traces that nothing links to the Kineto trace beside them, and workloads.
TEST_CASE("lockstep replay: execution traces and workloads of other people" *
          doctest::skip(!has_real_files())) {
  for (const auto& [folder, step_ms] :
       {std::pair{"et/linear", 1008.570}, {"et/simple-add", 108.919}}) {
    CAPTURE(folder);
    const nlohmann::json json =
        json_of(replayed_on(real_file(folder), {"--node", "dgx_a100_80gb", "--format", "json"}));
    CHECK(json["step_s"].get<double>() * 1e3 == test::near(step_ms).epsilon(1e-5));
  }
  // Ranks as the files say, or as many as two nodes have; a rank's calls, counted in the files.
  struct Workload {
    const char* file;
    int ranks, calls;
  };
  for (const Workload& workload : {Workload{"simai/llama7b-megatron-tp2.csv", 128, 139},
                                   {"simai/llama7b-zero2.csv", 128, 14},
                                   {"simai/llama7b-megatron-tp2.txt", 16, 142},
                                   {"simai/llama7b-deepspeed-zero3.txt", 16, 13},
                                   {"simai/microAllReduce.txt", 8, 2}}) {
    CAPTURE(workload.file);
    std::vector<std::string> options{"--node", "dgx_a100_80gb", "--format", "json"};
    if (workload.ranks == 16) options.insert(options.end(), {"--nodes", "2"});
    const nlohmann::json json = json_of(replayed_on(real_file(workload.file), options));
    CHECK(json["ranks"] == workload.ranks);
    int calls = 0;  // of all ranks
    for (const nlohmann::json& call : json["collectives"]) {
      calls += call["calls"].get<int>() * call["ranks"].get<int>();
    }
    CHECK(calls == workload.calls * workload.ranks);
    CHECK(json["step_s"].get<double>() > 0);
  }
  for (const char* archive : {"et/pt2_et.json.tar.gz", "chakra/1.0.2-chakra.0.0.4.tgz"}) {
    const Ran ran = replayed_on(real_file(archive), {"--node", "dgx_a100_80gb"});
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.err.find("found a tar archive; allowed: the files that are in it") !=
          std::string::npos);
  }
}

// The same models on an H100 and an MI300X: what the presets make of the one, beside the other. The
// issue of these numbers is the floor of a launch (scaled by bandwidth alone, bert-small's kernels
// came out at -42 and +76 %), and what products reach of either card's peak.
TEST_CASE("lockstep replay: recordings of a model on two cards" *
          doctest::skip(!has_real_files())) {
  struct Pair {
    const char* model;
    double within;  ///< of the time of all kernels
  };
  for (const Pair& pair :
       {Pair{"timesformer", 0.1}, {"bert-small", 0.1}, {"qwen1.5-0.5b-chat", 0.1}}) {
    CAPTURE(pair.model);
    const auto kernels = [&](const char* card, const char* node, const char* recorded,
                             const std::string& prefix) {
      const nlohmann::json json =
          json_of(replayed_on(real_file("kineto/pairs/") + pair.model + "-" + card + ".json.gz",
                              {"--node", node, "--recorded-on", recorded, "--format", "json"}));
      return json[prefix + "kernels_launch_bound_s"].get<double>() +
             json[prefix + "kernels_gpu_bound_s"].get<double>();
    };
    const double h100 = kernels("h100", "mi300x_8", "h100_sxm5_80gb", "recorded_");
    const double mi300x = kernels("mi300x", "dgx_h100", "mi300x", "recorded_");
    CHECK(kernels("h100", "mi300x_8", "h100_sxm5_80gb", "") ==
          test::near(mi300x).epsilon(pair.within));
    CHECK(kernels("mi300x", "dgx_h100", "mi300x", "") == test::near(h100).epsilon(pair.within));
  }
}

TEST_CASE("lockstep replay --vary: each point is the replay on that cluster") {
  const TemporaryFolder folder;
  std::string text =
      "num_ranks 16\nrank 0 { l1: calc 1000; l2: send 800000b to 15; l2 requires l1 }\n";
  for (int r = 1; r < 15; ++r) text += fmt::format("rank {} {{ calc 1 }}\n", r);
  const std::string goal = folder.write("plan.goal", text + "rank 15 { recv 800000b from 0 }\n");
  const std::vector<std::string> words{"replay", goal, "--vary",
                                       "cluster.node=dgx_a100_80gb,dgx_h100"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return lockstep_with(more);
  };
  const nlohmann::json points = json_of(with({"--format", "json"}))["points"];
  REQUIRE(points.size() == 2);
  for (const nlohmann::json& point : points) {
    nlohmann::json alone = json_of(lockstep_with(
        {"replay", goal, "--node", point["values"][0].get<std::string>(), "--format", "json"}));
    CHECK(point["answer"]["step_s"] == alone["step_s"]);
    CHECK(point["answer"]["cluster"] == alone["cluster"]);
  }
  CHECK(points[0]["answer"]["step_s"] > points[1]["answer"]["step_s"]);
  CHECK(with({}).out.find("exposed comm.") != std::string::npos);
  CHECK(with({"--assert", "step_s<1"}).err ==
        "lockstep replay: found --assert beside --vary; allowed: one of them\n");
  CHECK(lockstep_with({"replay", goal, "--node", "dgx_h100", "--vary", "batch.micro=1,2"}).err ==
        "--vary: found \"batch.micro\"; allowed: a value of the cluster, such as "
        "cluster.fabric=rail_optimised\n");
}

TEST_CASE("lockstep replay: a mistake is one line, with status 2") {
  const TemporaryFolder folder;
  const std::string goal = folder.write("plan.goal", "num_ranks 9\nrank 0 { calc 1 }\n");
  const std::string scenario = folder.write("step.json", kExported);
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes{
      {{"replay"}, "lockstep replay: no trace; usage: lockstep replay TRACE... [options]\n"},
      {{"replay", goal}, "lockstep: no cluster to replay on; give --node NAME or --cluster FILE\n"},
      {{"replay", goal, "--node", "dgx_h100"},
       goal + ": found 1 rank; allowed: the 9 that num_ranks says\n"},
      {{"replay", goal, "--node", "dgx_h100", "--from", "goat"},
       "--from: found \"goat\"; allowed: chakra, chakra-json, kineto, goal, pytorch, simai, aicb, "
       "nsys, goal-bin. "
       "Did you mean "
       "goal?\n"}};
  for (const auto& [words, line] : mistakes) {
    const Ran ran = lockstep_with(words);
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.err == line);
    CHECK(ran.out.empty());
  }
  std::string nine = "num_ranks 9\n";
  for (int r = 0; r < 9; ++r) nine += "rank " + std::to_string(r) + " { calc 1 }\n";
  const std::string more = folder.write("nine.goal", nine);
  CHECK(lockstep_with({"replay", more, "--cluster", scenario}).err ==
        scenario + "#/cluster/nodes: found 1; allowed: at least 2, since the trace has 9 ranks\n");
}
