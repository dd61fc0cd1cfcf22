// What ranks exchange inside layers crosses the switches between them, in every command alike.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/near.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

std::string thin_tree(int oversubscription, int nodes = 8) {
  return fmt::format(R"({{"node": "dgx_h100", "nodes": {}, "fabric": {{"kind": "fat_tree",
      "leaf_ports_down": 16, "routing": "adaptive", "leaf_oversubscription": {}}}}})",
                     nodes, oversubscription);
}

std::string experts_on(int oversubscription, int expert) {
  return fmt::format(R"({{"model": "qwen3_30b_a3b", "stack": "megatron_core", "cluster": {},
      "parallelism": {{"data": 64, "expert": {}}},
      "batch": {{"sequences": 64, "tokens": 4096, "micro": 1}}, "recompute": "full"}})",
                     thin_tree(oversubscription), expert);
}

std::string run_of(const std::string& scenario, const std::string& format) {
  const TemporaryFolder folder;
  const Ran ran =
      lockstep_with({"run", folder.write("s.json", scenario), "--allow-oom", "--format", format});
  CAPTURE(ran.err);
  REQUIRE(ran.exit == Exit::ok);
  return ran.out;
}

/// A step's answer for experts among 64 GPUs, or among those of a node.
Json step_of(int oversubscription, int expert, const char* stack = R"("megatron_core")") {
  Json scenario = Json::parse(experts_on(oversubscription, expert));
  scenario["stack"] = Json::parse(stack);
  return Json::parse(run_of(scenario.dump(), "json"));
}
double exposed(const Json& step, const std::string& bucket) {
  for (const Json& row : step.at("waterfall")) {
    if (row.at("bucket") == bucket) return row.at("seconds").get<double>();
  }
  FAIL("no bucket ", bucket);
  return 0;
}

TEST_CASE("traffic inside layers: exchanges between experts feel thin uplinks") {
  const Json full = step_of(1, 64), thin = step_of(8, 64);
  // 48 of 64 parts leave a leaf of two nodes over an eighth of its NICs; on a full fabric 56 of 64
  // leave the node. What a message takes beside its bytes is the same.
  CHECK(exposed(thin, "expert_exposed") / exposed(full, "expert_exposed") ==
        near(8 * 48.0 / 56).epsilon(0.05));
  // Inside the node they take NVLink alone, where no gradients share it with them.
  const char* const alone = R"({"preset": "megatron_core",
      "communication": {"overlap_gradients": false, "overlap_parameters": false}})";
  CHECK(exposed(step_of(8, 8, alone), "expert_exposed") ==
        near(exposed(step_of(1, 8, alone), "expert_exposed")).epsilon(1e-9));
}

TEST_CASE("run says what the fabric costs, which links do it, and what relieves it") {
  const TemporaryFolder folder;
  const std::string file = folder.write("s.json", experts_on(8, 64));
  const auto answer = [&](std::vector<std::string> more) {
    std::vector<std::string> args{"run", file, "--allow-oom", "--format", "json"};
    args.insert(args.end(), more.begin(), more.end());
    const Ran ran = lockstep_with(args);
    CAPTURE(ran.err);
    REQUIRE(ran.exit == Exit::ok);
    return Json::parse(ran.out);
  };
  const Json thin = answer({"--explain-fabric"});
  const Json& fabric = thin.at("fabric");
  const double full = answer({"--set", "cluster.fabric=ideal"}).at("step_s");
  CHECK(fabric.at("full_fabric").at("step_s").get<double>() == near(full).epsilon(1e-3));
  for (const Json& hold : fabric.at("held_back_by")) {
    if (hold.at("traffic") != "expert exchange") continue;
    CHECK(std::string(hold.at("by").at(0).at("links")).find("spines") != std::string::npos);
    CHECK(hold.at("by").at(0).at("share").get<double>() > 0.9);
  }
  const std::map<std::string, std::string> sets{
      {"oversubscription of leaves 8 -> 4", "cluster.fabric.leaf_oversubscription=4"},
      {"NICs of a node 8 -> 16", "cluster.node.nics=16"}};
  std::size_t found = 0;
  for (const Json& change : fabric.at("relief")) {
    const auto set = sets.find(change.at("change"));
    if (set == sets.end()) continue;
    ++found;
    CHECK(change.at("step_s") == answer({"--set", set->second}).at("step_s"));
  }
  CHECK(found == sets.size());
  // Without being asked only the full fabric is simulated; where switches cannot limit, nothing is.
  CHECK(answer({}).at("fabric").at("relief").empty());
  CHECK_FALSE(answer({"--set", "cluster.fabric.leaf_oversubscription=1"}).contains("fabric"));
}

/// Four DGX H100 with experts on all 32 GPUs.
Json experts_on_four_nodes(const Json& fabric) {
  Json scenario = Json::parse(experts_on(1, 32));
  scenario["cluster"]["nodes"] = 4;
  scenario["cluster"]["fabric"] = fabric;
  scenario["parallelism"]["data"] = 32;
  return Json::parse(run_of(scenario.dump(), "json"));
}
/// All NICs of four DGX H100 on one switch, at this rate.
Json one_switch(const std::string& rate) {
  Json hosts = Json::array(), cables = Json::array();
  for (int node = 0; node < 4; ++node) {
    Json nics = Json::array();
    for (int nic = 0; nic < 8; ++nic) {
      nics.push_back(fmt::format("n{} p{}", node, nic));
      cables.push_back({{"a", nics.back()}, {"b", "s"}});
    }
    hosts.push_back({{"name", fmt::format("n{}", node)}, {"nics", nics}});
  }
  return {{"rate", rate},
          {"hosts", hosts},
          {"switches", Json::array({{{"name", "s"}}})},
          {"cables", cables}};
}

TEST_CASE("what NICs cost a step is not laid to switches") {
  const Json whole = Json::parse(R"({"kind": "rail_optimised", "leaf_ports_down": 2})");
  Json slow = whole;
  slow["faults"] = Json::parse(R"([{"nic": "node 2 nic 5", "rate": 0.25}])");
  const TemporaryFolder folder;
  const Json drawn{{"kind", "file"},
                   {"file", folder.write("drawn.json", one_switch("100 Gb/s").dump())}};
  const double healthy = experts_on_four_nodes(whole).at("step_s");
  for (const Json& fabric : {slow, drawn}) {
    CAPTURE(fabric.at("kind").dump());
    const Json step = experts_on_four_nodes(fabric);
    const double here = step.at("step_s"), full = step.at("fabric").at("full_fabric").at("step_s");
    CHECK(here > 1.5 * healthy);
    CHECK(full == near(here).epsilon(1e-6));
  }
  // A fault between switches is theirs: the rest of their cables would do, and NICs are whole.
  Json cut = whole;
  cut["faults"] = Json::parse(R"([{"cable": "leaf 0 to spine 0", "rate": 0.1}])");
  const Json step = experts_on_four_nodes(cut);
  CHECK(step.at("fabric").at("full_fabric").at("step_s").get<double>() ==
        near(healthy).epsilon(1e-6));
}

constexpr const char* kOperations[] = {"all_to_all",     "all_gather", "all_reduce",
                                       "reduce_scatter", "broadcast",  "reduce"};

TEST_CASE("a collective takes as long as the same traffic, on any fabric") {
  const auto answer = [](const std::string& text) {
    const TemporaryFolder folder;
    const Ran ran = lockstep_with({"comm", folder.write("c.json", text), "--format", "json"});
    CAPTURE(ran.err);
    REQUIRE(ran.exit == Exit::ok);
    return Json::parse(ran.out);
  };
  for (const char* const op : kOperations) {
    for (const char* const routing : {"spray", "adaptive", "ecmp"}) {
      for (const int oversubscription : {1, 2, 8}) {
        CAPTURE(op);
        CAPTURE(routing);
        CAPTURE(oversubscription);
        const std::string cluster = fmt::format(
            R"({{"node": "dgx_h100", "nodes": 16, "fabric": {{"kind": "fat_tree", "levels": 2,
            "leaf_ports_down": 32, "routing": "{}", "leaf_oversubscription": {}}}}})",
            routing, oversubscription);
        const Json call = answer(
            fmt::format(R"({{"cluster": {}, "collective": {{"op": "{}", "sizes": ["256 MiB"]}}}})",
                        cluster, op));
        const Json traffic = answer(fmt::format(
            R"({{"cluster": {}, "traffic": [{{"kind": "{}", "size": "256 MiB"}}]}})", cluster, op));
        CHECK(traffic.at("end_s").get<double>() ==
              near(call.at("largest_time_s").get<double>()).epsilon(1e-3));
      }
    }
  }
}

TEST_CASE("a collective takes as long as the same traffic where a NIC is slow, too") {
  // Trees send more over the NIC of one member than of another; the law, and a step, take the mean.
  constexpr const char* kCluster = R"({"node": "dgx_h100", "nodes": 16, "fabric": {
      "kind": "fat_tree", "levels": 2, "leaf_ports_down": 32, "routing": "spray",
      "faults": [{"nic": "node 3 nic 2", "rate": 0.5}]}})";
  const TemporaryFolder folder;
  const auto number = [&folder](const char* name, const std::string& text) {
    const Ran ran = lockstep_with({"comm", folder.write("c.json", text), "--format", "json"});
    CAPTURE(ran.err);
    REQUIRE(ran.exit == Exit::ok);
    return Json::parse(ran.out).at(name).get<double>();
  };
  for (const char* const op : kOperations) {
    CAPTURE(op);
    const double call = number(
        "largest_time_s",
        fmt::format(R"({{"cluster": {}, "collective": {{"op": "{}", "sizes": ["256 MiB"]}}}})",
                    kCluster, op));
    const double traffic =
        number("end_s",
               fmt::format(R"({{"cluster": {}, "traffic": [{{"kind": "{}", "size": "256 MiB"}}]}})",
                           kCluster, op));
    CHECK(traffic == near(call).epsilon(1e-6));
  }
}

TEST_CASE("a broadcast and a reduction of a trace take as long as the same collective") {
  constexpr int kRanks = 32, kReduce = 1, kBroadcast = 5;  // Chakra's CollectiveType
  for (const int type : {kReduce, kBroadcast}) {
    CAPTURE(type);
    const TemporaryFolder folder;
    const Json node{{"id", "1"},
                    {"type", "COMM_COLL_NODE"},
                    {"attr", Json::array({{{"name", "comm_type"}, {"int64Val", type}},
                                          {{"name", "comm_size"}, {"int64Val", "268435456"}}})}};
    const Json trace{{"version", "0.0.4"}, {"nodes", Json::array({node})}};
    for (int rank = 0; rank < kRanks; ++rank) {
      folder.write(fmt::format("traces/t.{}.json", rank), trace.dump());
    }
    Json call = Json::parse(R"({"cluster": {"node": "dgx_h100", "nodes": 4, "fabric": {
        "kind": "fat_tree", "levels": 2, "leaf_ports_down": 8, "routing": "ecmp",
        "leaf_oversubscription": 4}}})");
    const std::string cluster = folder.write("cluster.json", call.dump());
    call["collective"] = {{"op", type == kReduce ? "reduce" : "broadcast"},
                          {"sizes", Json::array({"256 MiB"})}};
    const auto number = [](const char* name, std::vector<std::string> args) {
      args.insert(args.end(), {"--format", "json"});
      const Ran ran = lockstep_with(args);
      CAPTURE(ran.err);
      REQUIRE(ran.exit == Exit::ok);
      return Json::parse(ran.out).at(name).get<double>();
    };
    CHECK(number("step_s", {"replay", folder.path() + "/traces", "--cluster", cluster}) ==
          near(number("largest_time_s", {"comm", folder.write("c.json", call.dump())}))
              .epsilon(1e-6));
  }
}

/// Llama 3 8B on 128 GPUs whose gradients are summed when all passes are done.
std::string replicas_on(const std::string& routing, int oversubscription,
                        const std::string& sharding) {
  return fmt::format(R"({{"model": "llama3_8b", "stack": {{"preset": "megatron_core",
      "communication": {{"overlap_gradients": false, "overlap_parameters": false}}}},
      "cluster": {{"node": "dgx_h100", "nodes": 16, "fabric": {{"kind": "fat_tree", "levels": 2,
        "leaf_ports_down": 16, "routing": "{}", "leaf_oversubscription": {}}}}},
      "parallelism": {{"data": 128, "sharding": "{}"}}, "recompute": "full",
      "batch": {{"sequences": 256, "tokens": 4096, "micro": 1}}}})",
                     routing, oversubscription, sharding);
}

TEST_CASE("a step's gradients take as long as the same collective, on any fabric") {
  // All 8.03 billion gradients of 4 bytes are summed: NVLink switches add up those of a node, trees
  // those of all nodes.
  constexpr const char* kCollective = R"({{"cluster": {}, "collective": {{"op": "all_reduce",
      "sizes": ["{} B"]}}}})";
  for (const char* const routing : {"spray", "adaptive", "ecmp"}) {
    for (const int oversubscription : {1, 2, 8}) {
      CAPTURE(routing);
      CAPTURE(oversubscription);
      const std::string scenario = replicas_on(routing, oversubscription, "none");
      const Json step = Json::parse(run_of(scenario, "json"));
      const auto bytes =
          static_cast<std::int64_t>(4 * step.at("job").at("parameters").get<double>());
      const TemporaryFolder folder;
      const Ran ran = lockstep_with(
          {"comm",
           folder.write("c.json", fmt::format(kCollective,
                                              Json::parse(scenario).at("cluster").dump(), bytes)),
           "--format", "json"});
      CAPTURE(ran.err);
      REQUIRE(ran.exit == Exit::ok);
      const Json call = Json::parse(ran.out).at("rows").at(0);
      CHECK(call.at("algorithm") == "nvls_tree");
      CHECK(exposed(step, "data_exposed") == near(call.at("time_s").get<double>()).epsilon(0.01));
    }
  }
}

TEST_CASE("a step's trace, replayed, loads the links that the step loads") {
  for (const char* const routing : {"adaptive", "ecmp"}) {
    CAPTURE(routing);
    const TemporaryFolder folder;
    const std::string file = folder.write("s.json", replicas_on(routing, 8, "none"));
    const std::string traces = folder.path() + "/traces";
    const auto step_s = [](const std::vector<std::string>& args) {
      const Ran ran = lockstep_with(args);
      CAPTURE(ran.err);
      REQUIRE(ran.exit == Exit::ok);
      return Json::parse(ran.out).at("step_s").get<double>();
    };
    const double step =
        step_s({"run", file, "--allow-oom", "--chakra", traces, "--format", "json"});
    CHECK(step_s({"replay", traces, "--cluster", file, "--format", "json"}) ==
          near(step).epsilon(1e-6));
  }
}

TEST_CASE("a step's trace, replayed, hashes GPUs that share a NIC as the step does") {
  const TemporaryFolder folder;
  const std::string file = folder.write("s.json", R"({"model": "llama3_8b",
      "stack": "megatron_core", "cluster": {"node": "hgx_a100_80gb_4nic", "nodes": 4, "fabric": {
        "kind": "fat_tree", "levels": 2, "leaf_ports_down": 8, "routing": "ecmp",
        "leaf_oversubscription": 4}},
      "parallelism": {"context": 16, "data": 2, "sharding": "zero1"},
      "batch": {"sequences": 4, "tokens": 32768, "micro": 1}})");
  const std::string traces = folder.path() + "/traces";
  const auto step_s = [](const std::vector<std::string>& args) {
    const Ran ran = lockstep_with(args);
    CAPTURE(ran.err);
    REQUIRE(ran.exit == Exit::ok);
    return Json::parse(ran.out).at("step_s").get<double>();
  };
  const double step = step_s({"run", file, "--allow-oom", "--chakra", traces, "--format", "json"});
  CHECK(step_s({"replay", traces, "--cluster", file, "--format", "json"}) ==
        near(step).epsilon(1e-3));
}

TEST_CASE(
    "traffic inside layers: a step's trace has the experts' exchanges, which feel thin uplinks") {
  for (const char* const cut : {R"("data": 32, "expert": 32)",
                                R"("tensor": 2, "data": 16, "expert": 16, "expert_tensor": 1)"}) {
    for (const int oversubscription : {1, 8}) {
      CAPTURE(cut);
      CAPTURE(oversubscription);
      const TemporaryFolder folder;
      const std::string file =
          folder.write("s.json", fmt::format(R"({{"model": "qwen3_30b_a3b",
          "cluster": {}, "parallelism": {{{}, "sharding": "zero1"}}, "recompute": "full",
          "batch": {{"sequences": 64, "micro": 1, "tokens": 4096}}}})",
                                             thin_tree(oversubscription, 4), cut));
      const std::string traces = folder.path() + "/traces";
      const auto step_s = [](const std::vector<std::string>& args) {
        const Ran ran = lockstep_with(args);
        CAPTURE(ran.err);
        REQUIRE(ran.exit == Exit::ok);
        return Json::parse(ran.out).at("step_s").get<double>();
      };
      const double step =
          step_s({"run", file, "--allow-oom", "--chakra", traces, "--format", "json"});
      // Messages of gradients beside them find other shares; where experts move, the step is
      // theirs.
      CHECK(step_s({"replay", traces, "--cluster", file, "--format", "json"}) ==
            near(step).epsilon(1e-4));
    }
  }
}

TEST_CASE("traffic inside layers: tensor groups that straddle nodes feel thin uplinks") {
  // Of 8 groups of 6 on nodes of 8 GPUs, ranks 0 to 5 lie on one node and ranks 6 to 11 on two.
  const auto step = [](int oversubscription) {
    return Json::parse(run_of(fmt::format(R"({{"model": "gpt3_175b", "cluster": {},
      "parallelism": {{"tensor": 24, "data": 2, "sequence": false}},
      "batch": {{"sequences": 64, "tokens": 2048, "micro": 1}}}})",
                                          thin_tree(oversubscription, 6)),
                              "json"));
  };
  const double full = exposed(step(1), "tensor_exposed");
  CHECK(exposed(step(2), "tensor_exposed") >= full);
  CHECK(exposed(step(16), "tensor_exposed") > 2 * full);
}

TEST_CASE("traffic inside layers: jobs whose experts share thin uplinks slow each other") {
  const std::string job =
      R"("model": "qwen3_30b_a3b", "parallelism": {"data": 32, "expert": 32, "sharding": "zero1"},
      "batch": {"sequences": 32, "micro": 1, "tokens": 4096}, "recompute": "full")";
  const auto answer = [&](const std::string& jobs) {
    return Json::parse(
        run_of(fmt::format(R"({{"cluster": {}, "jobs": [{}]}})", thin_tree(16), jobs), "json"));
  };
  const auto placed = [&](const std::string& name, int first) {
    return fmt::format(R"({{"name": "{}", "nodes": {{"first": {}, "count": 4, "stride": 2}}, {}}})",
                       name, first, job);
  };
  const Json both = answer(placed("even", 0) + "," + placed("odd", 1));
  for (const Json& one : both.at("jobs")) {
    CHECK(one.at("slowdown").get<double>() > 1.5);
  }
}

}  // namespace
}  // namespace lockstep::test
