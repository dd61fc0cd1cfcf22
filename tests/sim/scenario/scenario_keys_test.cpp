#include "sim/scenario/scenario_keys.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"

namespace lockstep {
namespace {

const std::vector<ScenarioKey>& all_keys() {
  static const std::vector<ScenarioKey> keys = scenario_keys(PresetStore{});
  return keys;
}

ScenarioKey key_at(const std::string& path) {
  const auto found = std::ranges::find(all_keys(), path, &ScenarioKey::path);
  REQUIRE_MESSAGE(found != all_keys().end(), path);
  return *found;
}

const nlohmann::json& job_schema() {
  static const auto schema =
      nlohmann::json::parse(read_text_file(LOCKSTEP_SOURCE_DIR "/scenarios/scenario.schema.json"));
  return schema;
}

}  // namespace

TEST_CASE("scenario keys: kind, unit, bounds and default are what the reader takes") {
  const ScenarioKey storage = key_at("run.checkpoint.storage.client_read");
  CHECK(storage.value == "data rate");
  CHECK(storage.unit == "B/s");
  CHECK(storage.allowed == "0, or 1000000 to 1e+16");  // as --set ...=0 and 1 MB/s say
  CHECK(storage.default_rule == "its NICs");
  CHECK(storage.sentence == "Of one node");
  const ScenarioKey micro = key_at("batch.micro");
  CHECK(micro.value == "whole number");
  CHECK(micro.default_rule == "1");
  CHECK(key_at("batch.tokens").default_rule == "required");
  CHECK(key_at("stragglers").value == "list of objects");
  CHECK(key_at("stragglers.*.slowdown").allowed == "1 to 100");
  CHECK(key_at("cluster.node").value == "preset or object");
  CHECK(key_at("parallelism.sharding").allowed.starts_with("none, zero1, "));
  CHECK(key_at("queue.jobs.*.training.model").value == "as model");
}

TEST_CASE("scenario keys: those that several kinds of files share are one row") {
  CHECK(key_at("cluster.node.gpu.hbm_bandwidth").of == "job, queue, serving");
  CHECK(key_at("model.layers").of == "job, serving");
  CHECK(key_at("parallelism.tensor").of == "job");
  for (const ScenarioKey& key : all_keys()) {
    CAPTURE(key.path);
    CHECK_FALSE(key.value.empty());
  }
}

TEST_CASE("scenario keys: what no declaration has is as the schema of a job says") {
  for (const auto& [name, type] : job_schema().at("$defs").items()) {
    const WrittenType* row = written_type_of(name);
    if (row != nullptr) CHECK(type.at("description") == std::string(row->sentence));
  }
  const auto described = [](const char* pointer) {
    return job_schema()
        .at(nlohmann::json::json_pointer(pointer))
        .at("description")
        .get<std::string>();
  };
  CHECK(key_at("model.huggingface").sentence ==
        described("/properties/model/anyOf/1/properties/huggingface"));
  CHECK(key_at("stack.release").sentence ==
        described("/properties/stack/anyOf/1/properties/release"));
  CHECK(key_at("stack.allow").sentence == described("/properties/stack/anyOf/1/properties/allow"));
}

TEST_CASE("scenario keys: the page has every key") {
  const std::string page = read_text_file(LOCKSTEP_SOURCE_DIR "/scenarios/keys.md");
  std::string asked;
  for (std::size_t at = 0; (at = page.find("lockstep list keys ", at)) != std::string::npos; ++at) {
    const std::string line = page.substr(at, page.find('\n', at) - at);
    if (line.ends_with(" -->")) asked += line.substr(0, line.size() - 3);
  }
  for (const ScenarioKey& key : all_keys()) {
    const std::string top = key.path.substr(0, key.path.find('.'));
    if (top == "$schema" || top == "about") continue;
    CHECK_MESSAGE(asked.find(" " + top + " ") != std::string::npos, top);
  }
}

}  // namespace lockstep
