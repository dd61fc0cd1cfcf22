// `lockstep import job` and `lockstep export job` from the command line.
#include <doctest/doctest.h>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;
using test::Ran;

constexpr const char* kScript =
    "torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
    "--ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention --num-query-groups 8 "
    "--swiglu --disable-bias-linear --untie-embeddings-and-output-weights "
    "--position-embedding-type rope --vocab-size 128256 --seq-length 4096 --micro-batch-size 1 "
    "--global-batch-size 64 --tensor-model-parallel-size 2 --bf16 --lr 1e-4 --qk-layernorm "
    "--use-distributed-optimizer "
    "--recompute-granularity full --use-distributed-optimiser\n";

}  // namespace

TEST_CASE("import job: the scenario runs as it is, and the report names every kind of key") {
  const test::TemporaryFolder folder;
  const std::string script = folder.write("train.sh", kScript), out = folder.path() + "/my.json";
  const Ran ran = lockstep_with({"import", "job", script, "--node", "dgx_h100", "-o", out});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  for (const char* const part :
       {"Megatron-LM arguments\n", "Used (", "Not modelled, matters (1)\n  --qk-layernorm: ",
        "Unknown (1)\n  --use-distributed-optimiser: did you mean \"use_distributed_optimizer\"?",
        "Ignored, harmless (1)\n  --lr\n"}) {
    CAPTURE(part);
    CHECK(ran.out.find(part) != std::string::npos);
  }
  const Ran run = lockstep_with({"run", out, "--format", "json"});
  REQUIRE_MESSAGE(run.exit == Exit::ok, run.err);
  CHECK(nlohmann::json::parse(run.out)["gpus"] == 16);
}

TEST_CASE("import job: without a file to write to, the scenario alone is on standard output") {
  const test::TemporaryFolder folder;
  const Ran ran = lockstep_with({"import", "job", folder.write("train.sh", kScript)});
  CHECK(nlohmann::json::parse(ran.out)["cluster"]["nodes"] == 2);
  CHECK(
      ran.err.find("Assumed\n  cluster.node dgx_h100: no file says which machine (--node NAME)") !=
      std::string::npos);
}

TEST_CASE("import job: --format json has the fate of each key") {
  const test::TemporaryFolder folder;
  const std::string script = folder.write("train.sh", kScript), out = folder.path() + "/my.json";
  const Ran ran = lockstep_with({"import", "job", script, "--format", "json", "-o", out});
  const auto report = nlohmann::json::parse(ran.out);
  CHECK(report["keys"][0]["fate"] == "used");
  CHECK(report["keys"].back()["fate"] == "unknown");
  CHECK(report["scenario"]["parallelism"]["tensor"] == 2);
}

TEST_CASE("import job: after an error nothing is written") {
  const test::TemporaryFolder folder;
  const std::string config = folder.write("ds.json", R"({"train_batch_size": 8})"),
                    out = folder.path() + "/my.json";
  const Ran ran = lockstep_with({"import", "job", config, "-o", out});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.out.empty());
  CHECK(ran.err.ends_with(
      "/ds.json: found no model; allowed: --model NAME (lockstep list models), or --model "
      "config.json\n"));
  CHECK_FALSE(std::filesystem::exists(out));
  CHECK(lockstep_with({"import", "job"}).exit == Exit::bad_input);
  CHECK(lockstep_with({"import", "job", config, "--gpu", "h100"}).exit == Exit::bad_input);
}

TEST_CASE("export job: the file is the answer, and what it cannot say is on standard error") {
  const Ran ran = lockstep_with({"export", "job", "llama3-405b-16k", "--format", "torchtitan"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  CHECK(ran.out.find("[parallelism]\n") != std::string::npos);
  CHECK(ran.out.find("tensor_parallel_degree = 8\n") != std::string::npos);
  CHECK(ran.err.find("not in torchtitan: cluster.nodes 2048: who launches it says that\n") !=
        std::string::npos);
}

TEST_CASE("export job: a format that is not there is named with the nearest") {
  const Ran ran = lockstep_with({"export", "job", "llama3-405b-16k", "--format", "megatrn"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err ==
        "--format: found \"megatrn\"; allowed: megatron, nemo, bridge, torchtitan, deepspeed, "
        "accelerate. Did you mean megatron?\n");
  CHECK(lockstep_with({"export", "job"}).exit == Exit::bad_input);
  CHECK(lockstep_with({"export", "jobs", "x"}).exit == Exit::bad_input);
}

}  // namespace lockstep
