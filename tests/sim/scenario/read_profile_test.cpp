#include "sim/scenario/read_profile.hpp"

#include <doctest/doctest.h>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "models/kernels/memory_bound.hpp"
#include "models/power/gpu_power.hpp"
#include "sim/scenario/names.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/same_schema.hpp"

namespace lockstep {
namespace {

using test::presets;
using Json = nlohmann::ordered_json;

Json sound_profile() {
  return Json::parse(R"({
    "gpu": "h100_sxm5_80gb",
    "conditions": {"driver": "560.35"},
    "gemm": [{"m": 4096, "n": 4096, "k": 1024, "precision": "bf16", "time": "60 us"}],
    "attention": [{"kernel": "flash2", "direction": "forward", "sequences": 1, "tokens": 2048,
                   "heads": 32, "head_dim": 128, "time": "200 us"}],
    "memory": [{"kernel": "copy", "traffic": "100 MB", "time": "40 us"}],
    "collectives": [{"op": "all_reduce", "gpus_per_node": 8, "size": "1 MiB", "time": "30 us"}],
    "network": {"transport": "infiniband", "nic_bandwidth": "400 Gb/s"}
  })");
}

std::string problem_text(const Json& profile) {
  try {
    (void)read_profile("p.json", profile.dump(), presets());
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}
InputProblem problem_of_profile(const Json& profile) {
  try {
    (void)read_profile("p.json", profile.dump(), presets());
  } catch (const InputError& error) {
    return error.problem();
  }
  return {};
}

struct ProfilePlace {
  std::string profile, schema;
};
const std::vector<ProfilePlace>& profile_places() {
  static const std::vector<ProfilePlace> all{{"", ""},
                                             {"/gemm/0", "/properties/gemm/items"},
                                             {"/attention/0", "/properties/attention/items"},
                                             {"/memory/0", "/properties/memory/items"},
                                             {"/collectives/0", "/properties/collectives/items"}};
  return all;
}

Json profile_schema() {
  return Json::parse(read_text_file(LOCKSTEP_SOURCE_DIR "/scenarios/profile.schema.json"));
}

}  // namespace

TEST_CASE("profile schema: every object has exactly the keys that the reader knows") {
  CHECK(problem_text(sound_profile()).empty());
  for (const ProfilePlace& place : profile_places()) {
    CAPTURE(place.profile);
    Json profile = sound_profile();
    profile[Json::json_pointer(place.profile + "/zzz")] = 1;
    const InputProblem problem = problem_of_profile(profile);
    CHECK(problem.pointer == place.profile + "/zzz");
    const std::string read = ", " + problem.allowed + ",";
    const Json object = profile_schema().at(Json::json_pointer(place.schema));
    std::size_t known = 0;
    for (const auto& [key, member] : object.at("properties").items()) {
      CAPTURE(key);
      CHECK(read.find(", " + key + ",") != std::string::npos);
      known += key.size() + 2;
    }
    CHECK(read.size() == known + 1);
  }
}

TEST_CASE("profile schema: of points it says what their readers declare, word for word") {
  const Json declared = profile_points_schema().at("properties");
  CHECK(declared.size() == 4);
  for (const auto& [kind, points] : declared.items()) {
    test::check_same_schema(kind, points, profile_schema().at("properties").at(kind));
  }
}

TEST_CASE("profile schema: what it requires, the reader requires") {
  int required = 0;
  for (const ProfilePlace& place : profile_places()) {
    const Json object = profile_schema().at(Json::json_pointer(place.schema));
    for (const Json& key : object.at("required")) {
      CAPTURE(place.profile);
      CAPTURE(key);
      Json profile = sound_profile();
      profile.at(Json::json_pointer(place.profile)).erase(key.get<std::string>());
      CHECK(problem_of_profile(profile).found.starts_with("an object without " +
                                                          in_quotes(key.get<std::string>())));
      ++required;
    }
  }
  CHECK(required >= 17);
}

TEST_CASE("profile schema: its operations, kernels and formats are the reader's") {
  const Json schema = profile_schema();
  for (const auto& [array, key] : {std::pair{"collectives", "op"}, std::pair{"attention", "kernel"},
                                   std::pair{"gemm", "precision"}}) {
    CAPTURE(array);
    Json profile = sound_profile();
    profile[array][0][key] = "zzz";
    std::string listed;
    for (const Json& name : schema["properties"][array]["items"]["properties"][key]["enum"]) {
      listed += (listed.empty() ? "" : ", ") + name.get<std::string>();
    }
    CHECK(problem_of_profile(profile).allowed == listed);
  }
}

TEST_CASE("read_profile: collectives and their network") {
  Json json = sound_profile();
  json["collectives"].push_back({{"op", "alltoall"},
                                 {"nodes", 4},
                                 {"gpus_per_node", 8},
                                 {"size", 4096},
                                 {"time", 1e-4},
                                 {"spread", 0.1}});
  const Profile profile = read_profile("p.json", json.dump(), presets());
  REQUIRE(profile.collectives.size() == 2);
  CHECK(profile.points() == 5);
  CHECK(profile.collectives[0].op == CollectiveOp::all_reduce);
  CHECK(profile.collectives[0].nodes == 1);
  CHECK(profile.collectives[0].size == Bytes{1048576});
  CHECK(profile.collectives[1].op == CollectiveOp::all_to_all);
  CHECK(profile.collectives[1].call().ranks == 32);
  REQUIRE(profile.network);
  CHECK(profile.network->transport.name == "infiniband");
  json["network"] = {{"node", "dgx_h100"}};
  const Profile by_node = read_profile("p.json", json.dump(), presets());
  CHECK(by_node.network->nic_bandwidth == gigabits_per_second(400));
}

TEST_CASE("read_profile: a mistake is one line that says where and what instead") {
  Json json = sound_profile();
  json["collectives"][0]["op"] = "allreduce";
  CHECK(problem_text(json) ==
        "p.json#/collectives/0/op: found \"allreduce\"; allowed: all_reduce, all_gather, "
        "reduce_scatter, alltoall, broadcast, sendrecv, reduce. Did you mean \"all_reduce\"?");
  json = sound_profile();
  json["collectives"][0]["gpus_per_node"] = 1;
  CHECK(problem_text(json) ==
        "p.json#/collectives/0/gpus_per_node: found 1; allowed: at least two GPUs in all");
  json = sound_profile();
  json["network"] = {{"node", "dgx_a100_80gb"}};
  CHECK(problem_text(json) ==
        "p.json#/network/node: found \"dgx_a100_80gb\"; allowed: a node with "
        "h100_sxm5_80gb");
  json = sound_profile();
  json["network"] = {{"transport", "infiniband"}};
  CHECK(problem_text(json).starts_with("p.json#/network: found an object without"));
  json = {{"gpu", "h100_sxm5_80gb"}};
  CHECK(problem_text(json) ==
        "p.json: found no points; allowed: at least one in gemm, attention, "
        "memory or collectives");
}

TEST_CASE("read_profile: every card takes points of every collective") {
  for (const std::string& gpu : presets().names("gpus")) {
    CAPTURE(gpu);
    Json json{{"gpu", gpu}};
    for (const std::string_view op : kNcclTestsNames) {
      for (const int nodes : {1, 2}) {
        json["collectives"].push_back(
            {{"op", op}, {"nodes", nodes}, {"gpus_per_node", 2}, {"size", 1}, {"time", "50 us"}});
      }
    }
    const Profile profile = read_profile("p.json", json.dump(), presets());
    const NodeNetwork network{presets().transport("infiniband"), gigabits_per_second(400)};
    const KernelProfile measured(std::span(&profile, 1), std::span(&presets().gpu(gpu), 1),
                                 network);
    for (const CollectivePoint& p : profile.collectives) {
      CHECK(measured.collective(p.call()) > 0);
      CHECK(measured.collective(p.call()) < 1000);
    }
  }
}

TEST_CASE("lay_card: the card has to be the scenario's, and so does a network over nodes") {
  Json json = sound_profile();
  json["collectives"][0]["nodes"] = 2;
  const std::vector<Profile> profiles{read_profile("p.json", json.dump(), presets())};
  NodeSpec node = presets().node("dgx_h100");
  lay_card(node, presets().transport(node.transport), profiles, std::nullopt);
  REQUIRE(node.gpu.profile);
  CHECK(node.gpu.profile->collective(profiles[0].collectives[0].call()) != 1);

  NodeSpec slower = presets().node("dgx_h100");
  slower.nic_bandwidth = gigabits_per_second(200);
  CHECK_THROWS_WITH_AS(
      lay_card(slower, presets().transport("infiniband"), profiles, std::nullopt),
      "p.json#/network: found infiniband with 400 Gb/s for each GPU; allowed: the network of the "
      "scenario, infiniband with 200 Gb/s for each GPU",
      InputError);
  NodeSpec other = presets().node("dgx_a100_80gb");
  CHECK_THROWS_WITH_AS(lay_card(other, presets().transport("infiniband"), profiles, std::nullopt),
                       "p.json#/gpu: found \"h100_sxm5_80gb\"; allowed: the card of the scenario, "
                       "a100_sxm4_80gb",
                       InputError);
}

TEST_CASE("lay_card: a profile takes nothing away from what slower NVLinks cost") {
  const std::vector<Profile> measured{read_profile("p.json", sound_profile().dump(), presets())};
  const TransportSpec& transport = presets().transport("infiniband");
  const auto time_at = [&](std::span<const Profile> profiles, double factor) {
    NodeSpec node = presets().node("dgx_h100");
    const BytesPerSecond own = node.gpu.nvlink_bandwidth;
    node.gpu.nvlink_bandwidth = factor * own;
    follow_nvlink(node.gpu, own);
    lay_card(node, transport, profiles, std::nullopt);
    return collective_time(measured[0].collectives[0].call(), node.gpu, transport,
                           node.nic_bandwidth)
        .base_units();
  };
  CHECK(time_at(measured, 1) == test::near(30e-6));
  const double slower = time_at({}, 0.1) / time_at({}, 1);
  CHECK(slower > 1.5);
  CHECK(time_at(measured, 0.1) / time_at(measured, 1) == test::near(slower));

  NodeSpec none = presets().node("dgx_h100");
  none.gpu.nvlink_scale = 0;
  CHECK_THROWS_WITH_AS(lay_card(none, transport, measured, std::nullopt),
                       "p.json#/collectives: found times over NVLink; allowed: none, as the "
                       "scenario takes the card's NVLinks away (nvlink_bandwidth is 0)",
                       InputError);
}

TEST_CASE("lay_card: a cap costs a product the same share with and without a profile") {
  Json json = sound_profile();
  json["gemm"].push_back({{"m", 8192},
                          {"n", 8192},
                          {"k", 8192},
                          {"precision", "bf16"},
                          {"load", "sustained"},
                          {"time", "1750 us"}});
  const std::vector<Profile> measured{read_profile("p.json", json.dump(), presets())};
  const GemmShape product{8192, 8192, 8192, 1};
  const AttentionShape core{1, 2048, 32, 32, 128};
  const auto card = [&](std::span<const Profile> profiles, std::optional<Watts> cap) {
    NodeSpec node = presets().node("dgx_h100");
    lay_card(node, presets().transport("infiniband"), profiles, cap);
    return node.gpu;
  };
  const auto product_time = [&](const GpuSpec& gpu) {
    return gemm_time(product, Precision::bf16, gpu, Load::sustained);
  };
  const auto memory_time = [](const GpuSpec& gpu) { return memory_bound_time(Bytes{1e9}, gpu); };
  const GpuSpec law = card({}, {}), uncapped = card(measured, {});
  CHECK(product_time(uncapped).base_units() == test::near(1750e-6));
  for (const double watts : {650.0, 600.0, 500.0, 400.0, 300.0}) {
    CAPTURE(watts);
    const GpuSpec capped_law = card({}, Watts{watts}), capped_card = card(measured, Watts{watts});
    CHECK(product_time(capped_card) / product_time(uncapped) ==
          test::near(product_time(capped_law) / product_time(law)).epsilon(1e-12));
    CHECK(memory_time(capped_card) / memory_time(uncapped) ==
          test::near(memory_time(capped_law) / memory_time(law)).epsilon(1e-12));
    CHECK(product_time(capped_card) > product_time(uncapped));
    CHECK(attention_time(core, AttentionKernel::flash2, capped_card, {}, Load::sustained) >=
          attention_time(core, AttentionKernel::flash2, uncapped, {}, Load::sustained));
  }
}

TEST_CASE("lay_card: a profile that was measured under a limit takes its times at that limit") {
  Json json = sound_profile();
  json["gemm"] = {{{"m", 8192},
                   {"n", 8192},
                   {"k", 8192},
                   {"precision", "bf16"},
                   {"load", "sustained"},
                   {"time", "1900 us"}}};
  json["power_limit"] = "500 W";
  const std::vector<Profile> measured{read_profile("p.json", json.dump(), presets())};
  const auto time_at = [&](std::optional<Watts> cap) {
    NodeSpec node = presets().node("dgx_h100");
    lay_card(node, presets().transport("infiniband"), measured, cap);
    return gemm_time({8192, 8192, 8192, 1}, Precision::bf16, node.gpu, Load::sustained)
        .base_units();
  };
  CHECK(time_at(Watts{500}) == test::near(1900e-6));
  CHECK(time_at(std::nullopt) < 1900e-6);
  CHECK(time_at(Watts{400}) > 1900e-6);

  json["power_limit"] = "900 W";
  CHECK(problem_text(json).find("p.json#/power_limit: found \"900 W\"; allowed: from ") == 0);
}

}  // namespace lockstep
