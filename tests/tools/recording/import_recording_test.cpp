// `lockstep import recording`, and what takes the stack that it writes.
#include <doctest/doctest.h>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "tests/support/near.hpp"
#include "tests/support/nsys_database.hpp"
#include "tests/support/real_files.hpp"
#include "tests/support/recorded_training.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

using ImportedJson = nlohmann::ordered_json;

/// Few tokens: the host is slower than the GPU.
constexpr const char* kHostBoundJob = R"({"model": "llama3_8b",
  "cluster": {"node": "dgx_h100", "nodes": 1}, "parallelism": {"tensor": 8},
  "batch": {"sequences": 8, "micro": 1, "tokens": 64}})";

double step_on_stack(const std::string& job, const std::string& stack,
                     const std::vector<std::string>& more = {}) {
  std::vector<std::string> args{"run", job, "--stack", stack, "--format", "json"};
  args.insert(args.end(), more.begin(), more.end());
  const Ran ran = lockstep_with(args);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return ImportedJson::parse(ran.out)["step_s"].get<double>();
}

/// A training as Nsight Systems records it, launches 20 us apart.
class NsysTraining {
 public:
  explicit NsysTraining(const std::string& file) : db_(file) {}
  void kernel(const std::string& name) {
    now_ += 20;
    db_.kernel(name, now_ + 5, now_ + 10, {});
  }
  void wait(int took_us) {
    db_.synchronise(now_ + 1);
    now_ += took_us;
  }
  NsysDatabase& database() { return db_; }
  [[nodiscard]] int now() const { return now_; }

 private:
  NsysDatabase db_;
  int now_ = 1000;
};

ImportedJson read_off(const std::string& file) {
  const Ran ran = lockstep_with({"import", "recording", file, "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return ImportedJson::parse(ran.out);
}

}  // namespace

TEST_CASE("import recording: an export of Nsight Systems tells what Kineto's trace tells") {
  const TemporaryFolder folder;
  const std::string trace = folder.write("rank0.json", fused_training().text());
  const std::string file = folder.path() + "/report.sqlite";
  {
    NsysTraining training(file);
    record_fused(training);
  }
  const ImportedJson kineto = read_off(trace), nsys = read_off(file);
  CHECK(nsys["read"] == kineto["read"]);
  CHECK(nsys["not_told"] == kineto["not_told"]);
  CHECK(nsys["preset"]["launch_interval"]["value"] == "20.00 us");
  CHECK(nsys["preset"]["launch_interval"]["source"].get<std::string>().find("report.sqlite") !=
        std::string::npos);
}

TEST_CASE("import recording: ranges of emit_nvtx are operators, a step of several is cut") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/report.sqlite";
  {
    NsysTraining training(file);
    for (int step = 0; step < 3; ++step) {
      const int start = training.now() + 1;
      record_fused(training);
      training.kernel("vectorized_elementwise_kernel");
      const int now = training.now();
      training.database().range("torch::autograd::AccumulateGrad, seq = 7", now - 3, now + 3);
      training.database().range("aten::add_, seq = 8", now - 2, now + 2);
      training.database().range("add, by hand", now - 1, now + 2);
      training.database().range("step " + std::to_string(step), start, now + 10);
    }
  }
  const ImportedJson json = read_off(file);
  CHECK(json["step"].get<std::string>().starts_with("ProfilerStep#"));
  for (const ImportedJson& one : json["read"]) {
    if (one["path"] == "attention") CHECK(one["events"] == 16);  // of one step
    if (one["path"] != "features.gradient_accumulation_fusion") continue;
    CHECK(one["value"] == false);
    CHECK(one["events"] == 1);
  }
  CHECK(
      json["preset"]["features"]["gradient_accumulation_fusion"]["source"].get<std::string>().find(
          "1 addition of AccumulateGrad") != std::string::npos);
}

TEST_CASE("import recording: prints what was read, and writes a stack that run takes") {
  const TemporaryFolder folder;
  const std::string trace = folder.write("rank0.json", fused_training().text());
  const std::string out = folder.path() + "/my-stack.json";
  const Ran ran =
      lockstep_with({"import", "recording", trace, "--like", "Megatron-Core", "-o", out});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(ran.err == "");
  for (const char* words : {"features.fused_norm", "24 kernels, such as rmsnorm_fwd_tuned_kernel",
                            "Not told by it, and as in the stack that it is laid over",
                            "no kernel that says its types: features.optimiser_states fp32"}) {
    CAPTURE(words);
    CHECK(ran.out.find(words) != std::string::npos);
  }
  const Ran run = lockstep_with({"run", folder.write("job.json", kHostBoundJob), "--stack", out});
  CHECK_MESSAGE(run.exit == Exit::ok, run.err);
  CHECK(run.out.find("my-stack is composed from what its code does") != std::string::npos);
}

TEST_CASE("import recording: JSON says the same, and without -o the stack is on standard output") {
  const TemporaryFolder folder;
  const std::string trace = folder.write("rank0.json", fused_training().text());
  const Ran json = lockstep_with({"import", "recording", trace, "--format", "json"});
  REQUIRE_MESSAGE(json.exit == Exit::ok, json.err);
  const auto answer = ImportedJson::parse(json.out);
  const Ran plain = lockstep_with({"import", "recording", trace});
  CHECK(answer["preset"] == ImportedJson::parse(plain.out));
  CHECK(plain.err.find("read off the recording") != std::string::npos);
  CHECK(answer["preset"]["framework"]["value"] == "neutral");
  CHECK(answer["read"].at(0)["path"] == "attention");
  CHECK(answer["read"].at(0)["value"] == "cudnn");
  CHECK(answer["read"].at(0)["events"] == 16);
}

TEST_CASE("import recording: a launch that takes longer makes a host-bound step longer") {
  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", kHostBoundJob);
  const std::string trace = folder.write("rank0.json", fused_training().text());
  const std::string stack = folder.path() + "/stack.json";
  REQUIRE(lockstep_with({"import", "recording", trace, "-o", stack}).exit == Exit::ok);
  auto changed = ImportedJson::parse(read_text_file(stack));
  changed["launch_interval"]["value"] = "200 us";
  const std::string slow = folder.write("slow.json", changed.dump());
  changed["launch_interval"]["value"] = "500 us";
  const std::string slower = folder.write("slower.json", changed.dump());
  CHECK(step_on_stack(job, stack) < step_on_stack(job, slow));
  // On processors that are 2.5 times as slow, 200 us are 500.
  std::string grace = kHostBoundJob;
  const std::string node = R"("dgx_h100")";
  grace.replace(grace.find(node), node.size(),
                R"({"preset": "dgx_h100", "host": {"launch_slowness": 2.5}})");
  CHECK(step_on_stack(folder.write("grace.json", grace), slow) == near(step_on_stack(job, slower)));
}

TEST_CASE("import recording: with its job the stack's step takes as long as the recorded one") {
  const TemporaryFolder folder;
  const auto job_of = [](const std::string& tokens) {
    std::string job = kHostBoundJob;
    return job.replace(job.find("64}"), 2, tokens);
  };
  const std::string job = folder.write("job.json", job_of("2048"));
  RecordedTraining training = fused_training();
  training.kernel("nvjet_tst_64x8", 20, 300'000);
  const std::string trace = folder.write("rank0.json", training.text());
  const std::string stack = folder.path() + "/stack.json", plain = folder.path() + "/plain.json";
  const Ran ran = lockstep_with({"import", "recording", trace, "--job", job, "-o", stack});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  REQUIRE(lockstep_with({"import", "recording", trace, "-o", plain}).exit == Exit::ok);
  const Ran diagnosis = lockstep_with({"diagnose", job, trace, "--format", "json"});
  const double recorded = ImportedJson::parse(diagnosis.out)["recorded_s"].get<double>();
  CHECK(step_on_stack(job, stack) == near(recorded).epsilon(0.002));
  CHECK(step_on_stack(job, plain) != near(recorded).epsilon(0.02));
  const auto preset = ImportedJson::parse(read_text_file(stack));
  CHECK(preset["learnt"][0]["evidence"][0].get<std::string>().starts_with("rank0.json: 0.3"));
  // Another layout of the same software moves by the same factor.
  const std::string wide = folder.write("wide.json", job_of("4096"));
  const double moved = step_on_stack(wide, stack) / step_on_stack(wide, plain);
  CHECK(moved == doctest::Approx(recorded / step_on_stack(job, plain)).epsilon(0.05));
  // A recording that is no step of this job is not explained by its kernels.
  const std::string short_trace = folder.write("short.json", fused_training().text());
  const Ran other = lockstep_with(
      {"import", "recording", short_trace, "--job", job, "-o", stack, "--format", "json"});
  CHECK(other.out.find("their level alone does not reach it") != std::string::npos);
}

TEST_CASE(
    "import recording: what is no recording of training is one line, and nothing is written") {
  const TemporaryFolder folder;
  const std::string out = folder.path() + "/out.json";
  const auto refused = [&](const std::vector<std::string>& words) {
    std::vector<std::string> args{"import", "recording"};
    args.insert(args.end(), words.begin(), words.end());
    args.insert(args.end(), {"-o", out});
    const Ran ran = lockstep_with(args);
    CHECK(ran.exit == Exit::bad_input);
    CHECK(ran.out == "");
    CHECK_FALSE(std::filesystem::exists(out));
    return ran.err;
  };
  const std::string good = folder.write("rank0.json", fused_training().text());
  const std::string text = folder.write("notes.txt", "hello");
  CHECK(refused({text}) == text +
                               ": found no trace of the PyTorch profiler; allowed: Kineto's Chrome "
                               "trace (export_chrome_trace), one file a rank, or an SQLite export "
                               "of Nsight Systems\n");
  const std::string host =
      folder.write("host.json", R"({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm",
                       "ts": 1, "dur": 2, "args": {}}]})");
  CHECK(refused({host}).find("host.json: found no kernel; allowed: ") != std::string::npos);
  RecordedTraining inference;
  inference.kernel("gemm");
  CHECK(refused({folder.write("inference.json", inference.text())})
            .find("allowed: a recorded training step") != std::string::npos);
  CHECK(refused({good, "--like", "megatron_cor"}).find("Did you mean megatron_core?") !=
        std::string::npos);
  CHECK(refused({good, "--step", "3"}).find("found no ProfilerStep#3") != std::string::npos);
  CHECK(refused({good, good}).find("found rank 0; allowed: each rank once") != std::string::npos);
  CHECK(refused({good, "--gpu", "h100_sxm5_80gb"}).find("--gpu is not for") != std::string::npos);
  CHECK(refused({good, "--op", "all_reduce"}).find("--op is for lockstep import nccl-tests") !=
        std::string::npos);
}

TEST_CASE("import recording: a real step of DDP tells its formats and no attention" *
          doctest::skip(!has_real_file("kineto/a100-rank-0-of-2-nccl-metadata.json.gz"))) {
  const Ran ran = lockstep_with({"import", "recording",
                                 real_file("kineto/a100-rank-0-of-2-nccl-metadata.json.gz"),
                                 "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const auto answer = ImportedJson::parse(ran.out);
  const auto value = [&](const std::string& list, const std::string& path) {
    for (const auto& row : answer[list]) {
      if (row["path"] == path) return row["value"];
    }
    return ImportedJson();
  };
  CHECK(value("read", "features.reduced_format") == "fp32");
  CHECK(value("read", "features.sharding_unit") == "bucket");
  CHECK(value("read", "features.cuda_graphs") == "none");
  // A network of convolutions.
  CHECK(value("not_told", "attention") == "cudnn");
  CHECK(value("not_told", "features.fused_rope") == true);
  CHECK(value("not_told", "features.merged_qkv") == true);
}
