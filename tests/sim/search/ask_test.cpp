// Questions without a file: what is filled in, what is kept, and whose mistakes are whose.
#include "sim/search/ask.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/answer/answer.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

Json asked(const Ask& ask, const std::vector<std::string>& sets = {}) {
  return Json::parse(ask_scenario(ask, sets, presets()));
}

std::string error_of(const Ask& ask, const std::vector<std::string>& sets = {}) {
  try {
    ask_scenario(ask, sets, presets());
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

const Ask kSmall{.model = "llama3_8b", .node = "dgx_h100", .nodes = "2"};

}  // namespace

TEST_CASE("ask: what is left open is filled in, and the layout is one that fits") {
  const Json scenario = asked(kSmall);
  CHECK(scenario["model"] == "llama3_8b");
  CHECK(scenario["cluster"] == Json{{"node", "dgx_h100"}, {"nodes", 2}});
  CHECK(scenario["batch"]["tokens"] == 4096);
  CHECK(scenario["batch"]["sequences"] == 1024);  // 4 Mi tokens, and a multiple of 16 GPUs
  CHECK(scenario["about"].get<std::string>().find("1,024 sequences of 4,096 tokens") !=
        std::string::npos);
  const ScenarioAnswer answer = answer_text(std::string(kAskedFile), scenario.dump(), presets());
  CHECK(answer.number("memory_fits") == 1);
  CHECK(answer.number("gpus") == 16);
}

TEST_CASE("ask: the layout is what tune finds, so no other width is faster") {
  const ScenarioAnswer best = answer_text("asked.json", asked(kSmall).dump(), presets());
  for (const char* const tensor : {"1", "2", "4", "8"}) {
    CAPTURE(tensor);
    const Json scenario = asked(kSmall, {std::string("parallelism.tensor=") + tensor});
    CHECK(scenario["parallelism"]["tensor"] == std::stoi(tensor));
    const ScenarioAnswer other = answer_text("asked.json", scenario.dump(), presets());
    // Of layouts within 1 % of the fastest the plainest is taken.
    CHECK(best.number("step_s").value() <= 1.01 * other.number("step_s").value());
  }
}

TEST_CASE("ask: the batch is a multiple of what shares it, on any machine") {
  CHECK(asked({.model = "llama3_8b", .node = "dgx_h100", .gpus = "4"})["batch"]["sequences"] ==
        1024);
  CHECK(asked({.model = "llama3_8b", .node = "dgx_h100", .nodes = "3"})["batch"]["sequences"] ==
        1032);  // 43 x 24 GPUs
  const Json long_ones =
      asked({.model = "llama3_8b", .node = "dgx_h100", .nodes = "4", .tokens = "131072"});
  CHECK(long_ones["batch"]["sequences"] == 32);
  const Json said = asked({.model = "llama3_8b", .node = "dgx_h100", .sequences = "64"});
  CHECK(said["batch"]["sequences"] == 64);
  const Json set = asked({.model = "llama3_8b", .node = "dgx_h100"}, {"batch.sequences=48"});
  CHECK(set["batch"]["sequences"] == 48);
}

TEST_CASE(
    "ask: a model is a preset in any spelling, a config.json, its folder, or a model's file") {
  const TemporaryFolder folder;
  const std::string config = folder.write("config.json", R"({"model_type": "llama",
      "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "intermediate_size": 8192,
      "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
      "vocab_size": 128256, "tie_word_embeddings": true})");
  const std::string own = folder.write("own.json", R"({"layers": 4, "hidden": 1024, "heads": 8,
      "kv_heads": 8, "head_dim": 128, "ffn": 4096, "vocabulary": 32000, "gated": true})");
  const auto model = [](const std::string& name) {
    return asked({.model = name, .node = "dgx_h100"})["model"];
  };
  CHECK(model("Llama3-8B") == "llama3_8b");
  CHECK(model(config) == Json{{"huggingface", config}});
  CHECK(model(config.substr(0, config.rfind('/'))) == Json{{"huggingface", config}});
  CHECK(model(own)["layers"] == 4);
  const std::string pictures = folder.write(
      "pictures.json", R"({"_class_name": "FluxTransformer2DModel", "attention_head_dim": 64,
      "num_attention_heads": 2, "num_layers": 1, "num_single_layers": 1, "in_channels": 16,
      "joint_attention_dim": 64, "pooled_projection_dim": 64})");
  CHECK(asked_model(pictures, presets()) == Json{{"huggingface", pictures}});
  // As asked_model() says it without a machine.
  for (const std::string& name : {std::string("Llama3-8B"), config, own}) {
    CAPTURE(name);
    CHECK(asked_model(name, presets()) == model(name));
  }
  CHECK_THROWS_WITH(asked_model("llama3_9b", presets()),
                    error_of({.model = "llama3_9b", .node = "dgx_h100"}).c_str());
}

TEST_CASE("ask: --set says the rest of a scenario") {
  const Json tray = asked({.model = "llama3_8b", .node = "gb200_nvl72", .nodes = "2"});
  CHECK(tray["about"].get<std::string>().find(
            "A node of gb200_nvl72 has 4 GPUs: 8 of the 72 that NVLink joins.") !=
        std::string::npos);
  const Json lora = asked({.model = "llama2_70b", .node = "dgx_h100"}, {"lora.rank=16"});
  CHECK(lora["lora"]["rank"] == 16);
  CHECK(lora["batch"]["sequences"] == 128);  // half a Mi of tokens: adapters alone are trained
  const Json priced = asked(kSmall, {"training.tokens=15 T tokens"});
  CHECK(answer_text("asked.json", priced.dump(), presets()).number("time_to_train_s").value() > 0);
}

TEST_CASE("ask: a run of weeks saves as a plan without a file does, unless --set says otherwise") {
  const std::vector<std::string> weeks{"run.duration=30 d", "run.reliability=llama3_54_days"};
  const Json saved = asked(kSmall, weeks);
  CHECK(saved["run"]["checkpoint"]["interval"] == "30 min");
  CHECK(saved["about"].get<std::string>().find("Assumed: a checkpoint every 30 min") !=
        std::string::npos);
  std::vector<std::string> never = weeks;
  never.emplace_back("run.checkpoint=[]");
  const Json unsaved = asked(kSmall, never);
  CHECK(unsaved["run"]["checkpoint"] == Json::array());
  CHECK(unsaved["about"].get<std::string>().find("checkpoint") == std::string::npos);
  CHECK_FALSE(asked(kSmall).contains("run"));
}

TEST_CASE("ask: a mistake is told of the option that made it") {
  CHECK(error_of({.model = "llama3_8b", .node = "dgx_h1000"})
            .starts_with("--node: found \"dgx_h1000\"; allowed: "));
  CHECK(error_of({.model = "llama3_9b", .node = "dgx_h100"})
            .starts_with("--model: found \"llama3_9b\"; allowed: "));
  const TemporaryFolder folder;
  const std::string job = folder.write("job.json", R"({"model": "llama3_8b", "cluster": {}})");
  CHECK(error_of({.model = job, .node = "dgx_h100"})
            .ends_with("allowed: a model, and this is a scenario: lockstep run " + job +
                       " takes it"));
  CHECK(error_of({.model = "llama3_8b", .node = "dgx_h100", .nodes = "many"}) ==
        "--nodes: found \"many\"; allowed: a whole number from 1 to 1000000");
  CHECK(error_of({.model = "llama3_8b", .node = "dgx_h100", .gpus = "20"}) ==
        "--gpus: found \"20\"; allowed: whole nodes of 8 GPUs: 16 or 24");
  CHECK(error_of({.model = "llama3_8b", .node = "dgx_h100", .nodes = "1", .gpus = "8"}) ==
        "--gpus: found \"8\"; allowed: this or --nodes, not both");
  CHECK(error_of({.model = "llama3_8b"}) ==
        "--model: found \"llama3_8b\"; allowed: beside it a machine: --node NAME --nodes N, or "
        "--cluster NAME");
  CHECK(error_of({.model = "llama3_8b", .cluster = "meta_24k_roce", .node = "dgx_h100"}) ==
        "--node: found \"dgx_h100\"; allowed: this or --cluster, not both");
  CHECK(error_of({.model = "llama3_8b", .node = "dgx_h100", .fabric = "fat_tre"})
            .starts_with("--fabric: found \"fat_tre\"; allowed: "));
  CHECK(error_of(kSmall, {"bogus=1"}).starts_with("command line#/bogus: found the unknown key"));
  const std::string large = error_of({.model = "llama3_405b", .node = "dgx_h100"});
  CHECK(large.find("no layout that fits") != std::string::npos);
  // 406 B parameters of 18 bytes, 637 GiB a node.
  CHECK(large.find("allowed: at least 11 nodes, whose memory holds") != std::string::npos);
  CHECK(error_of({.model = "llama3_8b", .node = "dgx_h100"}, {"parallelism.tensor=3"})
            .find("; allowed: widths that divide the 8 GPUs") != std::string::npos);
}

}  // namespace lockstep::test
