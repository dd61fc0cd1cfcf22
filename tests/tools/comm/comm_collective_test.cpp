#include "sim/answer/comm_collective.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "models/collectives/candidate.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/source_tree.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"
#include "tools/views/comm/comm_collective_output.hpp"

namespace lockstep {
namespace {

using test::presets;

CollectiveStudy study(const std::string& collective, const std::string& node = "dgx_h100",
                      int nodes = 16) {
  const std::string text = R"({"cluster": {"node": ")" + node + R"(", "nodes": )" +
                           std::to_string(nodes) + R"(}, "collective": )" + collective + "}";
  return run_collective_study(JsonCursor::parse("comm.json", text), presets());
}

TEST_CASE("comm: every scenario with collectives that ships can be run") {
  int run = 0;
  for (const std::string& file : test::source_files({"scenarios/comm"})) {
    if (!file.ends_with(".json")) continue;
    const std::string text = read_text_file(std::string(LOCKSTEP_SOURCE_DIR) + "/" + file);
    const JsonCursor root = JsonCursor::parse(file, text);
    if (!root.find("collective")) continue;
    CAPTURE(file);
    CHECK_FALSE(run_collective_study(root, presets()).rows.empty());
    ++run;
  }
  CHECK(run >= 5);
}

TEST_CASE("comm: a collective on a machine is asked about without a file") {
  const auto answer = [](std::vector<std::string> args) {
    args.insert(args.begin(), "comm");
    return test::lockstep_with(args);
  };
  const test::Ran ran = answer({"--op", "all_reduce,all_gather", "--node", "dgx_h100", "--nodes",
                                "16", "--sizes", "1 MiB,1GiB", "--format", "json"});
  const CollectiveStudy same =
      study(R"({"op": ["all_reduce", "all_gather"], "sizes": ["1 MiB", "1 GiB"]})");
  const nlohmann::json rows = nlohmann::json::parse(ran.out)["rows"];
  REQUIRE(rows.size() == same.rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i]["time_s"].get<double>() == test::near(same.rows[i].time.base_units()));
  }
  CHECK(answer({"--op", "all_reduce", "--node", "dgx_h100", "--gpus", "4", "--sizes", "1 GiB"})
            .exit == Exit::ok);
  CHECK(answer({"--op", "all_reduce"}).err ==
        "command line: found no machine; allowed: --node NAME --nodes N, or --cluster NAME\n");
  CHECK(answer({"--op", "all_reduce", "--node", "h100"}).err.find("Did you mean \"dgx_h100\"?") !=
        std::string::npos);
  CHECK(answer({"--sizes", "1 MiB"}).err ==
        "--sizes: found it without --op; allowed: beside --op\n");
  CHECK(answer({"--op", "all_red", "--node", "dgx_h100"}).exit == Exit::bad_input);
}

TEST_CASE("comm: sizes from a range and from a list, bandwidths follow from size and time") {
  const CollectiveStudy range =
      study(R"({"op": "all_reduce", "sizes": {"from": "8 B", "to": "1 KiB", "factor": 2}})");
  REQUIRE(range.rows.size() == 8);
  CHECK(range.rows.back().size == Bytes{1024});
  const CollectiveStudy list =
      study(R"({"op": ["all_gather", "all_to_all"], "sizes": ["1 MiB", "3 MiB"]})");
  REQUIRE(list.rows.size() == 4);
  for (const CollectiveRow& row : list.rows) {
    const double algbw = (row.size / row.choice.time).base_units();
    CHECK(row.algbw_bytes_per_s == doctest::Approx(algbw));
    CHECK(row.busbw_bytes_per_s == doctest::Approx(algbw * 127 / 128));
  }
}

TEST_CASE("comm: a consecutive group fills nodes, a strided one takes one GPU of each") {
  const CollectiveStudy block = study(R"({"op": "all_gather", "ranks": 16})");
  CHECK(block.group.nodes == 2);
  CHECK(block.group.least == 8);
  const CollectiveStudy thin =
      study(R"({"op": "all_gather", "ranks": 16, "placement": "strided"})");
  CHECK(thin.group.nodes == 16);
  CHECK(thin.group.most == 1);
  CHECK(thin.group.gpus[3] == 24);
  const CollectiveStudy two = study(R"({"op": "all_gather", "ranks": 16, "ranks_per_node": 2})");
  CHECK(two.group.nodes == 8);
  CHECK(two.group.gpus[3] == 9);
}

TEST_CASE("comm: a random group has every GPU once, and its seed decides which") {
  const auto gpus = [](const char* seed) {
    return study(R"({"op": "all_reduce", "sizes": ["1 MiB"], "ranks": 100, "placement": "random",
                     "seed": )" +
                 std::string(seed) + "}")
        .group.gpus;
  };
  const std::vector<int> first = gpus("1");
  CHECK(std::set<int>(first.begin(), first.end()).size() == 100);
  CHECK(*std::ranges::max_element(first) < 128);
  CHECK(first == gpus("1"));
  CHECK(first != gpus("2"));
}

TEST_CASE("comm: an NVLink domain that spans nodes is one node to a collective") {
  const CollectiveStudy racks = study(R"({"op": "all_reduce"})", "gb200_nvl72", 36);
  CHECK(racks.group.nodes == 2);
  CHECK(racks.group.least == 72);
}

TEST_CASE("comm: of groups that lie in several ways the time is that of those that end last") {
  // Nine groups of 16 over two racks of 72: the fifth has half its members in each.
  const std::string group = R"({"op": "all_to_all", "sizes": ["128 MiB"], "ranks": 16)";
  const CollectiveStudy nine = study(group + R"(, "groups": 9})", "gb200_nvl72", 36);
  CHECK(nine.group.ways.size() == 2);
  CHECK(nine.group.nodes == 1);  // of the first
  CHECK(nine.notes.size() == 1);
  // Its members beside others take what they would if all groups lay as it does.
  const CollectiveStudy alike =
      study(R"({"op": "all_to_all", "sizes": ["128 MiB"], "ranks": 16, "placement": "strided"})",
            "gb200_nvl72", 36);
  CHECK(alike.group.least == 8);
  CHECK(nine.rows.front().time == alike.rows.front().time);
  // JSON has every way, how many groups lie so, and of which each row is.
  const nlohmann::ordered_json json = collective_json(nine);
  CHECK(json["ranks_per_node_min"] == 16);  // of the first
  CHECK(json["shapes"] == nlohmann::ordered_json::parse(R"([
      {"groups": 8, "nodes": 1, "ranks_per_node_min": 16, "ranks_per_node_max": 16},
      {"groups": 1, "nodes": 2, "ranks_per_node_min": 8, "ranks_per_node_max": 8}])"));
  CHECK(json["rows"][0]["shape"] == 1);
  CHECK(collective_group_text(nine).starts_with(
      "16 GPUs: 16 in each of 1 NVLink domain (8 groups), 8 in each of 2 (1 group), "));
  CHECK_FALSE(collective_json(alike).contains("shapes"));
  const CollectiveStudy four = study(group + R"(, "groups": 4})", "gb200_nvl72", 36);
  CHECK(four.notes.empty());
  CHECK(nine.rows.front().time > 3 * four.rows.front().time);
}

/// Of one call among all GPUs of 16 nodes on a fat tree of leaves of four nodes.
CollectiveRow on_fabric(const std::string& op, const std::string& routing, int oversubscription,
                        const std::string& more = "") {
  const std::string text =
      R"({"cluster": {"node": "dgx_h100", "nodes": 16, "fabric": {"kind": "fat_tree", "levels": 2,
          "leaf_ports_down": 32, "routing": ")" +
      routing + R"(", "leaf_oversubscription": )" + std::to_string(oversubscription) +
      R"(}}, "collective": {"op": ")" + op + R"(", "sizes": ["1 GiB"])" + more + "}}";
  return run_collective_study(JsonCursor::parse("comm.json", text), presets()).rows.front();
}

TEST_CASE("comm: a collective takes what the fabric between its members lets through") {
  for (const char* const op : {"all_to_all", "all_gather", "all_reduce"}) {
    CAPTURE(op);
    const CollectiveRow full = on_fabric(op, "spray", 1), thin = on_fabric(op, "spray", 8);
    CHECK(full.time == full.choice.time);
    CHECK(full.slowest_link.empty());
    CHECK(thin.choice.time == full.choice.time);
    CHECK(thin.time > 1.5 * full.time);
    CHECK(thin.slowest_link.starts_with("leaf "));
    CHECK(on_fabric(op, "ecmp", 1).time >= full.time);
  }
  // 96 of 128 parts leave a leaf of 32 GPUs, over uplinks of 32 / 8 NICs of 50 GB/s.
  const CollectiveRow row = on_fabric("all_to_all", "adaptive", 8);
  const double transfer = 1024.0 * 1024 * 1024 * 96 / 128 / (0.965 * 50e9 / 8);
  CHECK((row.time - row.choice.cost->latency).base_units() ==
        doctest::Approx(transfer).epsilon(1e-9));
}

TEST_CASE("comm: groups that run at once share links") {
  // A group of each GPU's rail crosses the spines; one alone has the uplinks of a leaf to itself.
  const std::string rail = R"(, "ranks": 16, "placement": "strided", "groups": )";
  const CollectiveRow one = on_fabric("all_reduce", "spray", 8, rail + "1"),
                      all = on_fabric("all_reduce", "spray", 8, rail + "8");
  CHECK(one.time == one.choice.time);
  CHECK(all.choice.time == one.choice.time);
  // Eight rings leave a leaf whose uplinks carry what four NICs do.
  REQUIRE(all.choice.cost->algorithm == "ring");
  CHECK((all.time - all.choice.cost->latency).base_units() ==
        doctest::Approx(8.0 / 4 * 2 * 15 / 16 * 1024 * 1024 * 1024 / (0.965 * 50e9)));
  CHECK_THROWS_WITH_AS(on_fabric("all_reduce", "spray", 8, rail + "9"),
                       doctest::Contains("from 1 to 8"), InputError);
}

/// Of 8 GiB among 32 GPUs of four nodes, on a rail-optimised fabric with a fault or without.
CollectiveRow with_fault(const std::string& op, const std::string& fault) {
  const std::string text =
      R"({"cluster": {"node": "dgx_h100", "nodes": 4, "fabric": {"kind": "rail_optimised",
          "levels": 2, "leaf_ports_down": 2, "faults": [)" +
      fault + R"(]}}, "collective": {"op": ")" + op + R"(", "sizes": ["8 GiB"]}})";
  return run_collective_study(JsonCursor::parse("comm.json", text), presets()).rows.front();
}
double moving(const CollectiveRow& row) {
  return (row.time - row.choice.cost->latency).base_units();
}
constexpr double kEightGib = 8.0 * 1024 * 1024 * 1024;

TEST_CASE("comm: a slow NIC holds a collective back by the bytes that cross it") {
  // Of 32 parts 24 leave the node; a ring of all rails takes an eighth of what crosses an edge.
  const std::map<std::string, double> sent{{"all_to_all", 24.0 / 32},
                                           {"all_gather", 31.0 / 32 / 8}};
  for (const auto& [op, share] : sent) {
    CAPTURE(op);
    const CollectiveRow whole = with_fault(op, "");
    CHECK(whole.time == whole.choice.time);
    for (const char* const fault : {R"({"nic": "node 2 nic 5", "rate": 0.25})",
                                    R"({"cable": ["node 2 nic 5", "leaf 13"], "rate": 0.25})"}) {
      const CollectiveRow slow = with_fault(op, fault);
      CHECK(moving(slow) == doctest::Approx(share * kEightGib / (0.965 * 12.5e9)).epsilon(1e-9));
      CHECK(slow.slowest_link.starts_with("node 2 nic 5 "));
      CHECK(slow.choice.time == whole.choice.time);
      // Ideal switches would not help.
      CHECK(slow.full_time == slow.time);
      CHECK_FALSE(slow.held_by_switches());
    }
  }
  // Each GPU sends to the next one: over NIC 7 into the next node, and over NIC 5 nothing.
  const std::string half = R"({"nic": "node 2 nic 5", "rate": 0.5})";
  CHECK(with_fault("send_receive", half).time == with_fault("send_receive", "").time);
  CHECK(moving(with_fault("send_receive", R"({"nic": "node 2 nic 7", "rate": 0.1})")) ==
        doctest::Approx(kEightGib / (0.965 * 5e9)).epsilon(1e-9));
}

/// Four DGX H100 on one switch that is drawn cable by cable at 100 Gb/s.
CollectiveStudy drawn_at_100(const std::string& first_cable) {
  std::string hosts, cables;
  for (int node = 0; node < 4; ++node) {
    std::string nics;
    for (int nic = 0; nic < 8; ++nic) {
      const std::string name = fmt::format("n{} p{}", node, nic);
      nics += fmt::format(R"({}"{}")", nic == 0 ? "" : ", ", name);
      cables += fmt::format(R"({}{{"a": "{}", "b": "s"{}}})", cables.empty() ? "" : ", ", name,
                            cables.empty() ? first_cable : "");
    }
    hosts += fmt::format(R"({}{{"name": "n{}", "nics": [{}]}})", node == 0 ? "" : ", ", node, nics);
  }
  const test::TemporaryFolder folder;
  const std::string file = folder.write(
      "drawn.json",
      fmt::format(R"({{"rate": "100 Gb/s", "hosts": [{}], "switches": [{{"name": "s"}}],
                       "cables": [{}]}})",
                  hosts, cables));
  const std::string text = fmt::format(
      R"({{"cluster": {{"node": "dgx_h100", "nodes": 4, "fabric": {{"kind": "file",
           "file": "{}"}}}},
          "collective": {{"op": ["all_to_all", "all_gather"], "sizes": ["8 GiB"]}}}})",
      file);
  return run_collective_study(JsonCursor::parse("comm.json", text), presets());
}

TEST_CASE("comm: NICs of a drawing send at the rate of their cables, as the assumption says") {
  for (const char* const first : {"", R"(, "rate": "200 Gb/s")"}) {
    const CollectiveStudy made = drawn_at_100(first);
    CHECK(made.group.nic_bandwidth == gigabits_per_second(100));
    CHECK(collective_group_text(made).find("100 Gb/s of NIC each") != std::string::npos);
    CHECK(moving(made.rows[0]) ==
          doctest::Approx(0.75 * kEightGib / (0.965 * 12.5e9)).epsilon(1e-9));
    CHECK(made.rows[1].time >= Seconds{31.0 / 32 / 8 * kEightGib / (0.965 * 12.5e9)});
    for (const CollectiveRow& row : made.rows) CHECK(row.full_time == row.time);
  }
}

TEST_CASE("comm: wishes are taken, and what cannot run is refused with the reason") {
  for (const CollectiveRow& row :
       study(R"({"op": "all_reduce", "algorithm": "ring", "protocol": "^LL"})").rows) {
    CHECK(row.choice.cost->algorithm == "ring");
    CHECK(row.choice.cost->protocol != "ll");
  }
  CHECK_THROWS_WITH_AS(
      study(R"({"op": "all_reduce", "sizes": ["1 MiB"], "algorithm": "CollnetDirect"})"),
      doctest::Contains("collnet_direct, collnet_chain: SHARP is off in this fabric"), InputError);
  CHECK_NOTHROW(study(R"({"op": "all_reduce", "sizes": ["1 MiB"], "algorithm": "CollnetDirect",
                          "sharp": {"generation": "quantum2", "busy_trees": 100}})"));
}

TEST_CASE("comm: a wrong value is named with its place") {
  const auto fails = [](const char* collective, const char* message) {
    CHECK_THROWS_WITH_AS(study(collective), doctest::Contains(message), InputError);
  };
  fails(R"({"op": "all_reduce", "algorithm": "rong"})", "comm.json#/collective/algorithm: found");
  fails(R"({"op": "allreduce"})", "Did you mean \"all_reduce\"?");
  fails(R"({"op": "all_reduce", "ranks": 129})", "#/collective/ranks: found 129");
  fails(R"({"op": "all_reduce", "sharp": true})", "#/collective/sharp: found true");
  fails(R"({"op": "all_reduce", "nccl": "two"})", "#/collective/nccl: found \"two\"");
  fails(R"({"op": "all_reduce", "seed": 3})", "#/collective/seed: found 3");
  fails(R"({"op": "all_reduce", "ranks_per_node": 2, "placement": "strided"})",
        "#/collective/ranks_per_node: found 2");
  fails(R"({"op": "all_reduce", "sizes": {"from": "2 MiB", "to": "1 MiB"}})", "#/collective/sizes");
  fails(R"({"op": "all_reduce", "size": "1 MiB"})", "unknown key \"size\"");
}

TEST_CASE("comm: JSON, CSV and the table hold every row") {
  const CollectiveStudy made = study(R"({"op": "reduce_scatter", "sizes": ["1 MiB", "1 GiB"]})");
  const nlohmann::ordered_json json = collective_json(made);
  CHECK(json["rows"].size() == 2);
  CHECK(json["rows"][0]["redop"] == "sum");
  CHECK(json["rows"][0]["count"] == 1048576 / 4 / 128);
  CHECK(json["largest_time_s"].get<double>() ==
        doctest::Approx(made.rows[1].choice.time.base_units()));
  const std::string csv = collective_csv(made).str();
  CHECK(std::ranges::count(csv, '\n') == 3);
  const std::string table = collective_table(made, {});
  CHECK(table.find("1073741824") != std::string::npos);
  CHECK(table.find("over all)\n  reduce_scatter, 1 MiB") != std::string::npos);
}

TEST_CASE("comm: every number of a reason says the size that it is of") {
  const auto reasons = [](const char* sizes) {
    return choice_reasons(run_collective_study(
        JsonCursor::parse("comm.json", R"({"cluster": {"node": "dgx_h100", "nodes": 32,
            "fabric": {"kind": "fat_tree", "leaf_oversubscription": 4}},
            "collective": {"op": "all_to_all", "sizes": )" +
                                           std::string(sizes) + "}}"),
        presets()));
  };
  const auto one = [&](const char* sizes) {
    const std::vector<std::string> lines = reasons(sizes);
    REQUIRE(lines.size() == 1);
    return lines.front();
  };
  const std::string small = one(R"(["64 MiB"])"), large = one(R"(["1 GiB"])");
  const std::string small_start = "all_to_all, 64 MiB: ", large_start = "all_to_all, 1 GiB: ";
  REQUIRE(small.starts_with(small_start));
  REQUIRE(large.starts_with(large_start));
  const std::size_t limit = small.find("; held back by leaf ");
  REQUIRE(limit != std::string::npos);
  const std::string limit_of_large = large.substr(large.find("; held back by leaf "));
  CHECK(limit_of_large.find(" times the ") != std::string::npos);
  CHECK(limit_of_large.ends_with(" of a full fabric"));
  // Of both sizes: why at the first, and what the fabric makes of the last.
  CHECK(one(R"(["64 MiB", "1 GiB"])") ==
        "all_to_all, 64 MiB to 1 GiB: at 64 MiB " +
            small.substr(small_start.size(), limit - small_start.size()) + "; at 1 GiB " +
            limit_of_large.substr(2));
}

}  // namespace
}  // namespace lockstep
