// Nothing in a scenario is unread: a key that no command knows is an error wherever it stands.
#include <array>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/json_text.hpp"
#include "models/base/text_file.hpp"
#include "tests/tools/ran.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

using Json = nlohmann::ordered_json;

void add_objects(const Json& node, const std::string& pointer, std::vector<std::string>& out) {
  if (node.is_object()) {
    out.push_back(pointer);
    for (const auto& [key, value] : node.items()) {
      add_objects(value, pointer + "/" + pointer_part(key), out);
    }
  } else if (node.is_array()) {
    for (std::size_t i = 0; i < node.size(); ++i) {
      add_objects(node[i], pointer + "/" + std::to_string(i), out);
    }
  }
}

struct MissingFrom {
  const char* command;
  const char* file;
};
// One of each kind of scenario, and those with the most objects.
constexpr std::array kKinds{
    MissingFrom{"run", "llama3-405b-16k.json"},
    MissingFrom{"run", "llama3-405b-54days.json"},
    MissingFrom{"run", "llama2-70b-h100-a100.json"},
    MissingFrom{"run", "llama2-70b-lora-h100.json"},
    MissingFrom{"run", "llama3-70b-shared-storage.json"},
    MissingFrom{"run", "rsc1-reliability.json"},
    MissingFrom{"run", "deepseek-v3-gb200.json"},
    MissingFrom{"run", "zero-offload-10b-v100.json"},
    MissingFrom{"run", "power/llama3-405b-16k-power.json"},
    MissingFrom{"run", "congestion/two-jobs-one-spine.json"},
    MissingFrom{"run", "congestion/spine-dies.json"},
    MissingFrom{"run", "rl/grpo-llama3-8b-colocated.json"},
    MissingFrom{"comm", "comm/allreduce-dgxh100.json"},
    MissingFrom{"comm", "comm/incast-32.json"},
    MissingFrom{"comm", "comm/permutation-8192.json"},
};

}  // namespace

TEST_CASE("run and comm: an unknown key is an error in every object of a scenario") {
  for (const MissingFrom& kind : kKinds) {
    const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/" + std::string(kind.file);
    std::vector<std::string> objects;
    add_objects(Json::parse(read_text_file(file)), "", objects);
    REQUIRE_FALSE(objects.empty());
    for (const std::string& object : objects) {
      const std::string pointer = object + "/bogus";
      CAPTURE(kind.file);
      CAPTURE(pointer);
      const Ran ran = lockstep_with({kind.command, file, "--set", pointer + "=1"});
      CHECK(ran.exit == Exit::bad_input);
      CHECK(ran.err.starts_with(file + "#" + pointer + ": found the unknown key \"bogus\" (--set " +
                                pointer + "=1); allowed: "));
      CHECK(ran.out.empty());
    }
  }
}

TEST_CASE("run: what is no object is shown one, which runs") {
  const auto shown = [](const std::string& scenario, const std::string& key) {
    const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/" + scenario;
    const Ran ran = lockstep_with({"run", file, "--set", key + "=true"});
    CHECK(ran.exit == Exit::bad_input);
    const std::string before =
        ": found true (--set " + key + "=true); allowed: an object, such as ";
    const std::size_t at = ran.err.find(before);
    CAPTURE(ran.err);
    REQUIRE(at != std::string::npos);
    const std::string example = ran.err.substr(at + before.size());
    const Ran with =
        lockstep_with({"run", file, "--set", key + "=" + example.substr(0, example.find('\n'))});
    CAPTURE(with.err);
    CHECK(with.exit == Exit::ok);
  };
  for (const char* key :
       {"parallelism", "batch", "power", "lora", "price", "training", "frozen", "expect", "run"}) {
    shown("llama3-8b-b200.json", key);
  }
  shown("qwen3-30b-experts-8-nodes.json", "routing");
  shown("llama3-405b-54days.json", "run.recovery");
  shown("llama3-405b-54days.json", "run.spares");
  shown("power/llama3-405b-16k-power.json", "cost");
  for (const char* key : {"objectives", "cache_tiers", "batching"}) {
    shown("serving/llama3-70b-h100-chat.json", "serving." + std::string(key));
  }
}

TEST_CASE("run: of reinforcement learning too, failures and an end are asked for at once") {
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/rl/grpo-llama3-8b-colocated.json";
  const Ran ran = lockstep_with({"run", file, "--set", "run={}"});
  CHECK(ran.exit == Exit::bad_input);
  // With a checkpoint, without which every failure starts the run again.
  CHECK(ran.err ==
        file +
            "#/run: found an object without \"reliability\" and \"duration\"; allowed: an object "
            "with them, such as {\"duration\":\"30 d\",\"reliability\":\"llama3_54_days\","
            "\"checkpoint\":{\"to\":\"storage\",\"interval\":\"30 min\",\"storage\":"
            "\"minio_nvme\"}}\n");
}

TEST_CASE("run: unknown keys come before missing ones, and missing ones together") {
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/llama3-405b-16k.json";
  const auto error = [&](const std::string& set) {
    const Ran ran = lockstep_with({"run", file, "--set", set});
    CHECK(ran.exit == Exit::bad_input);
    return ran.err;
  };
  CHECK(error(R"(run={"days": 30})")
            .starts_with(file + R"(#/run/days: found the unknown key "days")"));
  CHECK(error(R"(model={"hugging_face": "x.json"})").ends_with("Did you mean \"huggingface\"?\n"));
  CHECK(error("run={}") ==
        file +
            "#/run: found an object without \"reliability\"; allowed: an object with it, such as "
            "{\"reliability\":\"llama3_54_days\"}\n");
  CHECK(error("batch={}") ==
        file +
            "#/batch: found an object without \"sequences\" and \"tokens\"; allowed: an object "
            "with them, such as {\"sequences\":256,\"tokens\":4096}\n");
  CHECK(error("model=Qwen2.5-32B.config.json") ==
        file +
            "#/model: found \"Qwen2.5-32B.config.json\" (--set model=Qwen2.5-32B.config.json); "
            "allowed: the name of a preset; for a config.json of Hugging Face: {\"huggingface\": "
            "\"Qwen2.5-32B.config.json\"}\n");
}
