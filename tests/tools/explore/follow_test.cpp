// What follows a control of `lockstep explore`, so that its positions have answers.
#include "tools/explore/follow.hpp"

#include <array>
#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/explore/explorer.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;
using FollowSets = std::vector<std::string>;

/// A shipped scenario, and changes to it.
struct FollowedScenario {
  const char* name;
  FollowSets sets{};
};
// Large and dense, experts, one node, racks of one NVLink domain, and the long sequences of
// arXiv:2407.21783, table 4.
const std::array kFollowed{
    FollowedScenario{"llama3-405b-16k"}, FollowedScenario{"mixtral-8x7b-h100"},
    FollowedScenario{"llama3-8b-b200"}, FollowedScenario{"deepseek-v3-gb200"},
    FollowedScenario{"llama3-405b-16k",
                     {"batch.tokens=131072", "batch.sequences=128", "parallelism.context=16",
                      "parallelism.data=8"}}};

const PresetStore& follow_presets() {
  static const PresetStore presets;
  return presets;
}
Explorer explorer_of(const FollowedScenario& scenario) {
  const std::string file = std::string(LOCKSTEP_SOURCE_DIR "/scenarios/") + scenario.name + ".json";
  return Explorer(file, read_text_file(file), scenario.sets, follow_presets());
}
ExploreState followed_state_of(const Json& state) {
  ExploreState out;
  for (const auto& [path, value] : state.items()) out.emplace(path, value.get<std::string>());
  return out;
}
Json followed_positions(const Explorer& explorer, std::string_view path) {
  return Json::parse(explorer.positions({}, path)).at("positions");
}

}  // namespace

TEST_CASE("explore: every position of tensor, pipeline and servers answers or is too large") {
  for (const FollowedScenario& scenario : kFollowed) {
    CAPTURE(scenario.name);
    const Explorer explorer = explorer_of(scenario);
    for (const auto& [path, least] : {std::pair{"parallelism.tensor", 4U},
                                      {"parallelism.pipeline", 5U},
                                      {"cluster.nodes", 10U}}) {
      CAPTURE(path);
      const Json positions = followed_positions(explorer, path);
      CHECK(positions.size() >= least);
      for (const Json& position : positions) {
        const std::string value = position.at("value");
        CAPTURE(value);
        CHECK_FALSE(position.contains("error"));
        const Json moved = Json::parse(explorer.moved({}, {path, value}));
        const ExploreState state = followed_state_of(moved.at("state"));
        CAPTURE(moved.dump());
        // What was moved stays where it was put.
        const auto chosen = state.find(path);
        CHECK((chosen == state.end() ? plain_value_at(explorer.scenario(), path)
                                     : chosen->second) == value);
        const Json answer = Json::parse(explorer.answer(state));
        CHECK(answer.at("memory_fits") == !position.contains("too_large"));
        const Json& cut = answer.at("job").at("parallelism");
        CHECK(cut.at("tensor").get<int>() * cut.at("pipeline").get<int>() *
                  cut.at("context").get<int>() * cut.at("data").get<int>() ==
              answer.at("gpus").get<int>());
        // A state is a scenario of its own.
        CHECK(answer.at("scenario") == Json::parse(explorer.scenario_text(state)));
      }
    }
  }
}

TEST_CASE("explore: what follows a move is told, and is the least") {
  const Explorer explorer = explorer_of(kFollowed[0]);
  const auto move = [&](const char* path, const char* value) {
    return Json::parse(explorer.moved({}, {path, value}));
  };
  // Half of the servers: half of the replicas.
  Json moved = move("cluster.nodes", "1024");
  CHECK(moved.at("state") == Json{{"cluster.nodes", "1024"}});
  CHECK(moved.at("said") == "data width 128 -> 64 follows");
  // 16 replicas less in 128: the batch goes to the nearest multiple of 112 x 16 micro batches.
  moved = move("cluster.nodes", "1792");
  CHECK(moved.at("state") == Json{{"batch.sequences", "1792"}, {"cluster.nodes", "1792"}});
  CHECK(moved.at("said") == "data width 128 -> 112 and batch 2,048 -> 1,792 sequences follow");
  // 24 ranks to a replica of 3 servers: 2,048 servers are not whole ones.
  moved = move("parallelism.pipeline", "3");
  CHECK(moved.at("state").at("cluster.nodes") == "2049");
  CHECK(moved.at("said").get<std::string>().find("servers 2,048 -> 2,049") != std::string::npos);
  // One stage has no virtual ones.
  moved = move("parallelism.pipeline", "1");
  CHECK(moved.at("state").at("parallelism.virtual_stages") == "1");
  CHECK(moved.at("state").at("parallelism.schedule") == "1f1b");
  // As it is given nothing follows.
  moved = move("parallelism.tensor", "8");
  CHECK(moved.at("state") == Json::object());
  CHECK(moved.at("said") == "");
  // Not what the layout can help.
  CHECK_THROWS_AS((void)move("precision", "fp8_per_tensor"), InputError);
}

TEST_CASE("explore: servers and batches stop where they divide") {
  const Explorer explorer = explorer_of(kFollowed[0]);
  for (const Json& position : followed_positions(explorer, "cluster.nodes")) {
    const int servers = std::stoi(position.at("value").get<std::string>());
    CHECK((servers < 16 || servers % 16 == 0));
  }
  for (const Json& position : followed_positions(explorer, "batch.sequences")) {
    CHECK(std::stoi(position.at("value").get<std::string>()) % 2048 == 0);
  }
}

TEST_CASE("explore: a job on a part of one server takes whole ones where their number moves") {
  const Explorer explorer = explorer_of({"llama3-8b-b200", {"parallelism.data=4"}});
  CHECK(Json::parse(explorer.answer({})).at("gpus") == 4);
  const Json moved = Json::parse(explorer.moved({}, {"cluster.nodes", "2"}));
  CHECK(moved.at("said") == "data width 4 -> 16 follows");
  CHECK(Json::parse(explorer.answer(followed_state_of(moved.at("state")))).at("gpus") == 16);
  CHECK(followed_positions(explorer, "cluster.nodes").size() >= 5);
  // Another width shares the same GPUs out.
  const Json wider = Json::parse(explorer.moved({}, {"parallelism.tensor", "2"}));
  CHECK(wider.at("said").get<std::string>().starts_with("data width 4 -> 2"));
  CHECK(Json::parse(explorer.answer(followed_state_of(wider.at("state")))).at("gpus") == 4);
  for (const Json& position : followed_positions(explorer, "parallelism.tensor")) {
    CHECK_FALSE(position.contains("error"));
  }
}

TEST_CASE("explore: another model's layout is searched where the present one does not fit it") {
  const Explorer explorer = explorer_of(kFollowed[2]);
  const Json moved = Json::parse(explorer.moved({}, {"model", "llama3_70b"}));
  CHECK(moved.at("search") == true);
  const Json found = Json::parse(explorer.layout({}, {"model", "llama3_70b"}));
  CHECK(found.at("said").get<std::string>().find("data width 8 -> ") != std::string::npos);
  const ExploreState state = followed_state_of(found.at("state"));
  CHECK(state.at("model") == "llama3_70b");
  CHECK(Json::parse(explorer.answer(state)).at("memory_fits") == true);
}

TEST_CASE("explore: a shard group that a layout does not fit is left out, and kept where it does") {
  const Explorer explorer = explorer_of({"llama3-70b-hsdp"});
  const auto answered = [&](const ExploreState& state) {
    return Json::parse(explorer.answer(state)).at("scenario").at("parallelism");
  };
  CHECK(answered({{"batch.tokens", "4096"}}).at("shard_group") == 64);
  CHECK_FALSE(answered({{"parallelism.sharding", "none"}}).contains("shard_group"));
  const Json unsharded = Json::parse(explorer.moved({}, {"parallelism.sharding", "none"}));
  CHECK(unsharded.at("said") == "shard group of 64 -> none follows");
  const Json found = Json::parse(explorer.layout({}, {"model", "llama3_405b"}));
  const ExploreState larger = followed_state_of(found.at("state"));
  CHECK(Json::parse(explorer.answer(larger)).at("memory_fits") == true);
  for (const std::string_view path : {"model", "parallelism.tensor", "cluster.nodes"}) {
    for (const Json& position : followed_positions(explorer, path)) {
      CHECK(position.dump().find("shard_group") == std::string::npos);
    }
  }
}

}  // namespace lockstep::test
