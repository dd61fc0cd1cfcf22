// Jobs that share a fabric slow each other as their packets do.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/near.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using test::lockstep_with;
using test::near;
using test::Ran;

const std::string kScenario =
    LOCKSTEP_SOURCE_DIR "/scenarios/congestion/two-expert-jobs-one-spine.json";
/// Of the two jobs of that scenario.
constexpr std::string_view kEven = "nodes 0, 2, 4, 6", kOdd = "nodes 1, 3, 5, 7";

nlohmann::json json_of(const std::vector<std::string>& args) {
  const Ran ran = lockstep_with(args);
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  return nlohmann::json::parse(ran.out);
}

struct Thin {
  std::string_view routing, layer;
  int oversubscription;
  std::string_view size = "8 MiB";  ///< that each GPU sends
};

/// By job, how much longer its experts' exchange takes packet by packet beside the other's than
/// alone: on the scenario's fabric, in two levels as NCCL runs it.
std::map<std::string, double> slowed_packets(const Thin& fabric) {
  const auto exchange = [&](std::string_view nodes) {
    return fmt::format(
        R"({{"pattern": "collective", "op": "all_to_all", "algorithm": "two_level",
            "size": "{}", "nodes": [{}]}})",
        fabric.size, nodes.substr(nodes.find(' ')));
  };
  const auto with = [&](std::string_view name, const std::string& traffic) {
    return fmt::format(
        R"({{"name": "{}", "fabric": {{"kind": "fat_tree", "nodes": 8, "nics": 8,
            "leaf_ports_down": 16, "leaf_oversubscription": {}, "routing": "{}"}},
            "traffic": [{}]}})",
        name, fabric.oversubscription, fabric.routing, traffic);
  };
  const test::TemporaryFolder folder;
  const std::string file = folder.write(
      "cases.json", fmt::format(R"({{"cable_latency": "100 ns", "switch_latency": "300 ns",
                                     "link": "400 Gb/s", "cases": [{}, {}, {}]}})",
                                with("even", exchange(kEven)), with("odd", exchange(kOdd)),
                                with("both", exchange(kEven) + "," + exchange(kOdd))));
  std::map<std::string, double> alone, together, slowed;
  for (const auto& row : json_of({"referee", file, "--layer", std::string(fabric.layer),
                                  "--messages", "--format", "json"})) {
    auto& ends = row.at("case") == "both" ? together : alone;
    ends[row.at("from") == kEven ? "even" : "odd"] = row.at("packet_level_end_s");
  }
  for (const auto& [job, end] : together) slowed[job] = end / alone.at(job);
  return slowed;
}

}  // namespace
}  // namespace lockstep

using namespace lockstep;

TEST_CASE("two jobs of experts on one spine slow each other as their packets do, within 3 %") {
  // Hashed onto too few spines, and sprayed. Credits under hashing are left out: their buffers fill
  // with what waits for a full link, and block what does not (sim/packet/README.md, "victims").
  for (const Thin& fabric : {Thin{"spray", "credit", 4}, Thin{"spray", "pfc", 2},
                             Thin{"ecmp", "pfc", 2}, Thin{"ecmp", "pfc", 4}}) {
    CAPTURE(fabric.routing);
    CAPTURE(fabric.layer);
    CAPTURE(fabric.oversubscription);
    const std::map<std::string, double> packets = slowed_packets(fabric);
    const nlohmann::json run =
        json_of({"run", kScenario, "--format", "json", "--set",
                 fmt::format("cluster.fabric.routing={}", fabric.routing), "--set",
                 fmt::format("cluster.fabric.leaf_oversubscription={}", fabric.oversubscription)});
    int seen = 0;
    for (const auto& transfer : run.at("transfers")) {
      if (!transfer.at("name").get<std::string>().starts_with("expert parallel")) continue;
      const std::string job = transfer.at("job");
      CAPTURE(job);
      CHECK(transfer.at("slowdown").get<double>() == near(packets.at(job)).epsilon(0.03));
      ++seen;
      // The job: what it takes alone, and its exchanges, which nothing hides, as the packets say.
      for (const auto& of : run.at("jobs")) {
        if (of.at("name") != job) continue;
        const auto steps = static_cast<double>(of.at("steps_s").size());
        const double exchanges =
            transfer.at("runs").get<double>() / steps * transfer.at("alone_s").get<double>();
        const double alone = of.at("alone_s");
        CHECK(of.at("slowdown").get<double>() ==
              near(1 + exchanges * (packets.at(job) - 1) / alone).epsilon(0.03));
        CHECK(of.at("slowdown") > 1.3);
      }
    }
    CHECK(seen == 2);
  }
}

TEST_CASE("two jobs of experts slow each other as packets under DCQCN do, within 10 %") {
  // Its start depends on how much each GPU sends: 128 MiB as the scenario has it, and 32.
  for (const Thin& fabric :
       {Thin{"spray", "dcqcn", 2, "128 MiB"}, Thin{"spray", "dcqcn", 4, "128 MiB"},
        Thin{"spray", "dcqcn", 2, "32 MiB"}, Thin{"spray", "dcqcn", 4, "32 MiB"}}) {
    CAPTURE(fabric.oversubscription);
    CAPTURE(fabric.size);
    const std::map<std::string, double> packets = slowed_packets(fabric);
    const int tokens = fabric.size == "32 MiB" ? 1024 : 4096;
    std::vector<std::string> args{"run", kScenario, "--format", "json"};
    for (const std::string& set :
         {std::string("cluster.fabric.transport=roce_dcqcn"),
          fmt::format("cluster.fabric.leaf_oversubscription={}", fabric.oversubscription),
          fmt::format("jobs.0.batch.tokens={}", tokens),
          fmt::format("jobs.1.batch.tokens={}", tokens)}) {
      args.insert(args.end(), {"--set", set});
    }
    const nlohmann::json run = json_of(args);
    int seen = 0;
    for (const auto& transfer : run.at("transfers")) {
      if (!transfer.at("name").get<std::string>().starts_with("expert parallel")) continue;
      const std::string job = transfer.at("job");
      CAPTURE(job);
      CHECK(transfer.at("slowdown").get<double>() == near(packets.at(job)).epsilon(0.1));
      ++seen;
    }
    CHECK(seen == 2);
  }
}

TEST_CASE("two jobs of experts: where they are not alike, the answer says how far packets may be") {
  const auto told = [](const std::vector<std::string>& sets) {
    std::vector<std::string> args{"run",   kScenario, "--format", "json",
                                  "--set", "steps=1", "--set",    "jobs.0.batch.tokens=1024"};
    for (const std::string& set : sets) args.insert(args.end(), {"--set", set});
    const nlohmann::json answer = json_of(args);
    std::string out;
    for (const auto& assumed : answer.at("assumptions")) {
      const auto text = assumed.get<std::string>();
      if (text.find("packets") != std::string::npos) out += text;
    }
    return out;
  };
  CHECK(told({"cluster.fabric.routing=ecmp", "jobs.1.batch.tokens=1024"}).empty());
  CHECK(told({"jobs.1.batch.tokens=512"}).empty());  // sprayed, on credits: 1 %
  CHECK(told({"cluster.fabric.routing=ecmp", "jobs.1.batch.tokens=512"}).find("27 %") !=
        std::string::npos);
  CHECK(told({"cluster.fabric.transport=roce_dcqcn", "jobs.1.batch.tokens=512"}).find("10 %") !=
        std::string::npos);
  // Rings beside experts: packets slow these less than flows do.
  const std::vector<std::string> dense{"jobs.1.model=llama3_8b", "jobs.1.parallelism.expert=1"};
  const auto beside = [&](const std::string& routing) {
    std::vector<std::string> sets = dense;
    sets.push_back("cluster.fabric.routing=" + routing);
    return told(sets);
  };
  CHECK(beside("ecmp").find("30 %") != std::string::npos);
  CHECK(beside("spray").empty());
}
