// Traffic on fabrics: closed forms, conservation, grains that have to agree, determinism.
#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <map>
#include <string>

#include "sim/scenario/read_traffic.hpp"
#include "sim/traffic/simulate_traffic.hpp"
#include "tests/support/near.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

constexpr double kNic = 50e9;  // bytes per second: the 400 Gb/s of dgx_h100
constexpr double kMebibyte = 1048576;
// Ends are rounded to picoseconds, rates to 1e-12.
constexpr double kRounding = 1e-9;

/// One GPU and one NIC a node.
std::string hosts(int nodes, const std::string& fabric) {
  return fmt::format(
      R"("cluster": {{"node": {{"preset": "dgx_h100", "gpus": 1, "nvlink_domain": 1, "nics": 1}},
      "nodes": {}, "fabric": {{{}}}}}, "efficiency": 1)",
      nodes, fabric);
}
/// Eight GPUs and eight NICs a node.
std::string nodes_of_eight(int nodes, const std::string& fabric) {
  return fmt::format(
      R"("cluster": {{"node": "dgx_h100", "nodes": {}, "fabric": {{{}}}}}, "efficiency": 1)", nodes,
      fabric);
}
const std::string kIdeal = R"("kind": "ideal")";
const std::string kTree =
    R"("kind": "fat_tree", "routing": "ecmp", "levels": 3, "leaf_ports_down": 4, "pod_leaves": 4,
    "leaf_oversubscription": 2)";
const std::string kSprayedTree = R"("kind": "fat_tree", "routing": "spray", "leaf_ports_down": 8)";
const std::string kRails =
    R"("kind": "rail_optimised", "routing": "ecmp", "leaf_ports_down": 4, "pxn": true)";

TrafficScenario scenario(const std::string& cluster, const std::string& traffic) {
  static const PresetStore presets;
  return read_traffic("test.json", "{" + cluster + R"(, "traffic": [)" + traffic + "]}", presets);
}
TrafficReport run(const std::string& cluster, const std::string& traffic) {
  return simulate_traffic(scenario(cluster, traffic));
}
test::Near nearly(double value, double within = kRounding) {
  return test::near(value).epsilon(within);
}

}  // namespace

TEST_CASE("incast: k senders get a k-th of the receiver's NIC each, and end together") {
  for (const int senders : {1, 2, 7, 31}) {
    const TrafficReport report =
        run(hosts(senders + 1, kIdeal), R"({"kind": "incast", "size": "8 MiB"})");
    const double expected = senders * 8 * kMebibyte / kNic;
    CHECK(report.end_s == nearly(expected));
    CHECK(report.entries[0].mean_s == nearly(expected));
    CHECK(report.entries[0].line_rate_share == nearly(1.0 / senders));
    CHECK(report.links[0].utilisation == nearly(1));
    if (senders > 1) CHECK(report.links[0].name == "node 0 nic 0 down");
  }
}

TEST_CASE("outcast: the sender's NIC is shared alike") {
  const TrafficReport report =
      run(hosts(9, kIdeal), R"({"kind": "outcast", "root": 3, "size": "8 MiB"})");
  CHECK(report.end_s == nearly(8 * 8 * kMebibyte / kNic));
  CHECK(report.entries[0].line_rate_share == nearly(1));
}

TEST_CASE("permutation and shift: line rate where the fabric sprays and is not oversubscribed") {
  for (const char* traffic : {R"({"kind": "permutation", "size": "64 MiB"})",
                              R"({"kind": "shift", "by": 9, "size": "64 MiB"})"}) {
    const TrafficReport report = run(hosts(64, kSprayedTree), traffic);
    CHECK(report.end_s == nearly(64 * kMebibyte / kNic));
    CHECK(report.entries[0].line_rate_share == nearly(1));
    CHECK(report.entries[0].messages == 64);
  }
}

TEST_CASE("ring collectives: what crosses each edge over the NIC's rate") {
  const double n = 12, size = 256 * kMebibyte;
  const std::map<std::string, double> factors{{"all_reduce", 2 * (n - 1) / n},
                                              {"all_gather", (n - 1) / n},
                                              {"reduce_scatter", (n - 1) / n},
                                              {"broadcast", 1},
                                              {"reduce", 1}};
  for (const auto& [kind, factor] : factors) {
    const bool chain = kind == "broadcast" || kind == "reduce";
    for (const char* grain : {"coupled", "flows", "messages"}) {
      if (chain && std::string(grain) == "messages") continue;
      CAPTURE(kind);
      CAPTURE(grain);
      const TrafficReport report =
          run(hosts(12, kIdeal),
              fmt::format(R"({{"kind": "{}", "size": "256 MiB", "as": "{}"}})", kind, grain));
      CHECK(report.end_s == nearly(factor * size / kNic));
      const double edges = chain ? n - 1 : n;
      CHECK(report.entries[0].bytes == nearly(edges * factor * size));
    }
  }
}

TEST_CASE("nothing comes into the root of a broadcast, nothing leaves that of a reduce") {
  constexpr int kRoot = 21;  // on node 2 of four
  const double buffer = 64 * kMebibyte;
  for (const bool reduces : {false, true}) {
    CAPTURE(reduces);
    const auto read = [&](const char* as) {
      return scenario(nodes_of_eight(4, kSprayedTree),
                      fmt::format(R"({{"kind": "{}", "size": "64 MiB", "root": {}, "as": "{}"}})",
                                  reduces ? "reduce" : "broadcast", kRoot, as));
    };
    const TrafficScenario nccl = read("nccl"), rings = read("flows");
    TrafficSimulation simulation(nccl);
    simulation.run();
    std::map<std::string, double> into, out;  // by node
    const FlowNetwork& flows = simulation.network().flows();
    for (LinkIndex link = 0; link < flows.links(); ++link) {
      const std::string name = simulation.network().link_name(link);
      if (name.find(" nic ") == std::string::npos) continue;
      (name.ends_with("up") ? out : into)[name.substr(0, 6)] += flows.carried(link).base_units();
    }
    CHECK((reduces ? into : out)["node 2"] == nearly(buffer, 1e-6));
    CHECK((reduces ? out : into)["node 2"] == 0);
    for (const char* node : {"node 0", "node 1", "node 3"}) {
      CHECK(into[node] == nearly(node == std::string(reduces ? "node 3" : "") ? 0 : buffer, 1e-6));
      CHECK(out[node] == nearly(node == std::string(reduces ? "" : "node 1") ? 0 : buffer, 1e-6));
    }
    CHECK(simulation.report(0).entries[0].bytes == nearly(31 * buffer));
    TrafficSimulation plain(rings);
    CHECK(plain.plan().demands().size() == 31);
    for (const Demand& demand : plain.plan().demands()) {
      CHECK((reduces ? demand.from : demand.to) != kRoot);
    }
  }
}

TEST_CASE("rings on a shared tree: coupled, edge by edge and message by message end alike") {
  // Coupled, a ring is as fast as its slowest edge from its first byte on; message by message it
  // needs a few steps until everybody waits for that edge.
  std::map<std::string, double> end;
  for (const char* grain : {"coupled", "flows", "messages"}) {
    end[grain] =
        run(hosts(64, kTree), fmt::format(R"({{"kind": "all_reduce", "size": "64 MiB", "as": "{}",
                                 "groups": {{"count": 4, "spread": "strided"}}}})",
                                          grain))
            .end_s;
  }
  CHECK(end["flows"] <= end["coupled"] * (1 + kRounding));
  CHECK(end["messages"] == nearly(end["coupled"], 0.1));
}

TEST_CASE("eight rails: a ring for each rail makes all NICs carry the same") {
  const std::string traffic = R"({{"kind": "all_reduce", "size": "1 GiB", "channels": {}}})";
  const double n = 64, bytes = 2 * (n - 1) / n * 1024 * kMebibyte;
  const TrafficReport one = run(nodes_of_eight(8, kIdeal), fmt::format(fmt::runtime(traffic), 1));
  CHECK(one.end_s == nearly(bytes / kNic));
  const TrafficReport eight = run(nodes_of_eight(8, kIdeal), fmt::format(fmt::runtime(traffic), 8));
  CHECK(eight.end_s == nearly(bytes / 8 / kNic));
  CHECK(eight.entries[0].line_rate_share == nearly(1));
}

TEST_CASE("rings side by side take a NIC each, where GPUs share NICs too") {
  // Sixteen V100 on eight ports of 12.5 GB/s; four racks of two GB200 trays, two GPUs a port.
  const double bytes = 8 * 1024 * kMebibyte;
  const auto time = [&](const char* node, int nodes, int channels) {
    return run(fmt::format(R"("cluster": {{"node": {}, "nodes": {}, "fabric": {{{}}}}},
                               "efficiency": 1)",
                           node, nodes, kIdeal),
               fmt::format(R"({{"kind": "all_gather", "size": "8 GiB", "channels": {}}})",
                           channels))
        .end_s;
  };
  for (const int channels : {1, 4, 8, 16}) {
    CAPTURE(channels);
    CHECK(time(R"("dgx2_v100")", 4, channels) ==
          nearly(63.0 / 64 * bytes / std::min(channels, 8) / 12.5e9));
    CHECK(time(R"({"preset": "gb200_nvl72", "nvlink_domain": 8, "nics": 2,
                   "nic_bandwidth": "100 Gb/s"})",
               8, channels) == nearly(31.0 / 32 * bytes / std::min(channels, 4) / 12.5e9));
  }
}

TEST_CASE("all-to-all: one variable, one for each source and one for each pair end alike") {
  for (const std::string& fabric : {kIdeal, kRails}) {
    std::map<std::string, double> end;
    for (const char* grain : {"coupled", "sources", "flows"}) {
      const TrafficReport report =
          run(nodes_of_eight(8, fabric),
              fmt::format(R"({{"kind": "all_to_all", "size": "64 MiB", "as": "{}"}})", grain));
      end[grain] = report.end_s;
      CHECK(report.entries[0].pairs == 64 * 63);
      CHECK(report.entries[0].bytes == nearly(63 * 64 * kMebibyte));
    }
    CHECK(end["coupled"] == nearly(end["flows"]));
    CHECK(end["sources"] == nearly(end["flows"]));
  }
}

TEST_CASE("conservation: links carry what was sent, and none more than its capacity") {
  const std::string kinds[] = {R"({"kind": "permutation", "size": {"from": "1 MiB", "to": "9 MiB"},
                                   "repeat": 3, "gap": "20 us"})",
                               R"({"kind": "incast", "size": "3 MiB"})",
                               R"({"kind": "all_to_all", "size": "64 MiB"})",
                               R"({"kind": "all_reduce", "size": "16 MiB", "as": "messages"})"};
  for (const std::string& traffic : kinds) {
    CAPTURE(traffic);
    const TrafficScenario read = scenario(hosts(32, kTree), traffic);
    TrafficSimulation simulation(read);
    simulation.run();
    double into = 0, out = 0;
    const FlowNetwork& flows = simulation.network().flows();
    const double end = simulation.report(0).end_s;
    for (LinkIndex link = 0; link < flows.links(); ++link) {
      const std::string name = simulation.network().link_name(link);
      const double bytes = flows.carried(link).base_units();
      if (name.starts_with("node") && name.ends_with("up")) into += bytes;
      if (name.starts_with("node") && name.ends_with("down")) out += bytes;
      CHECK(bytes <= flows.capacity(link).base_units() * end * (1 + kRounding));
    }
    const double sent = simulation.report(0).entries[0].bytes;
    CHECK(into == nearly(sent, 1e-6));
    CHECK(out == nearly(sent, 1e-6));
  }
}

TEST_CASE("repeat and start: messages follow one another, and begin when they are told") {
  const TrafficReport report = run(
      hosts(4, kIdeal),
      R"({"kind": "pairs", "pairs": [[0, 1], [2, 3]], "size": "50 MB", "repeat": 5, "gap": "1 ms",
          "start": "2 ms"})");
  CHECK(report.entries[0].start_s == nearly(2e-3));
  CHECK(report.end_s == nearly(2e-3 + 5 * 1e-3 + 4 * 1e-3));
  CHECK(report.entries[0].messages == 10);
  CHECK(report.entries[0].max_s == nearly(1e-3));
}

TEST_CASE("switches delay a message, and a ring once for each of its steps") {
  const std::string fabric =
      R"("kind": "fat_tree", "leaf_ports_down": 8, "switch_latency": "1 us")";
  const double message = 8 * kMebibyte / kNic;
  CHECK(run(hosts(16, fabric), R"({"kind": "pairs", "pairs": [[0, 1]], "size": "8 MiB"})").end_s ==
        nearly(message + 1e-6));
  CHECK(run(hosts(16, fabric), R"({"kind": "pairs", "pairs": [[0, 9]], "size": "8 MiB"})").end_s ==
        nearly(message + 3e-6));
  const double ring = 2.0 * 15 / 16 * message;
  CHECK(
      run(hosts(16, fabric), R"({"kind": "all_reduce", "size": "8 MiB", "as": "coupled"})").end_s ==
      nearly(ring + 30 * 3e-6));
}

TEST_CASE("several entries: each knows how much slower it is than alone") {
  const std::string two =
      R"({"name": "training", "kind": "pairs", "pairs": [[0, 1]], "size": "1 GiB"},
         {"name": "checkpoint", "kind": "storage", "size": "1 GiB",
          "members": {"nodes": {"count": 1}}, "servers": {"nodes": {"first": 2}}})";
  const TrafficReport report = run(hosts(4, kIdeal), two);
  CHECK(report.entries[0].slowdown() == nearly(2));
  CHECK(report.entries[1].slowdown() == nearly(2));
}

TEST_CASE("storage: hosts take the servers in turn, and reading goes the other way") {
  const std::string traffic =
      R"({{"kind": "storage", "size": "10 MB", "members": {{"nodes": {{"count": 12}}}},
          "servers": {{"nodes": {{"first": 12}}}}, "direction": "{}"}})";
  for (const char* direction : {"write", "read"}) {
    const TrafficReport report =
        run(hosts(16, kIdeal), fmt::format(fmt::runtime(traffic), direction));
    CHECK(report.end_s == nearly(3 * 10e6 / kNic));
    const bool writes = std::string(direction) == "write";
    CHECK((report.links[0].name.find("down") != std::string::npos) == writes);
  }
}

TEST_CASE("traffic: a seed decides, and the same seed gives the same bits") {
  const auto end = [](int seed) {
    return run(hosts(64, kTree),
               fmt::format(R"({{"kind": "permutation", "size": {{"from": "1 MiB", "to": "64 MiB"}},
                               "repeat": 2, "seed": {}}})",
                           seed))
        .end_s;
  };
  CHECK(end(1) == end(1));
  CHECK(end(1) != end(2));
}

TEST_CASE("GPUs of a node reach each other over NVLink, and leave the fabric alone") {
  const TrafficScenario read = scenario(nodes_of_eight(2, kRails),
                                        R"({"kind": "pairs", "pairs": [[0, 7]], "size": "1 GiB"})");
  const TrafficReport report = simulate_traffic(read);
  CHECK(report.end_s ==
        nearly(1024 * kMebibyte / read.cluster.node.gpu.nvlink_bandwidth.base_units()));
  CHECK(report.entries[0].nic_bytes_per_s == 0);
}

TEST_CASE("rings on a 2:1 tree: hops that all cross the spines get half a NIC each") {
  // Rings of two, one end under each leaf of eight hosts: eight hops share four NICs' uplinks.
  const TrafficReport report =
      run(hosts(16, R"("kind": "fat_tree", "routing": "spray", "leaf_ports_down": 8,
                       "leaf_oversubscription": 2)"),
          R"({"kind": "all_reduce", "size": "64 MiB", "as": "coupled",
          "groups": {"count": 8, "spread": "strided"}})");
  CHECK(report.end_s == nearly(64 * kMebibyte / (kNic / 2)));
}

TEST_CASE("all-to-all: the bisection is the limit where it is narrower than the NICs") {
  // Of each host's n messages half cross 2:1 uplinks; (n - 1) / n of its NIC would be less.
  for (const char* grain : {"flows", "sources", "coupled"}) {
    CAPTURE(grain);
    const TrafficReport report =
        run(hosts(16, R"("kind": "fat_tree", "routing": "spray", "leaf_ports_down": 8,
                         "leaf_oversubscription": 2)"),
            fmt::format(R"({{"kind": "all_to_all", "size": "64 MiB", "as": "{}"}})", grain));
    CHECK(report.end_s >= 64 * kMebibyte / kNic * (1 - kRounding));
    if (std::string(grain) != "sources") CHECK(report.end_s == nearly(64 * kMebibyte / kNic));
  }
}

TEST_CASE("a coupled all-to-all loads every link as its pairs do one by one") {
  const std::string pairs_of_queues =
      R"("kind": "fat_tree", "routing": "ecmp", "levels": 3, "leaf_ports_down": 16, "pod_leaves": 2,
      "queue_pairs": 3)";
  const std::string tree =
      R"("kind": "fat_tree", "routing": "ecmp", "levels": 3, "leaf_ports_down": 16, "pod_leaves": 2,
      "leaf_oversubscription": 2)";
  const std::string no_pxn = R"("kind": "rail_optimised", "routing": "ecmp", "leaf_ports_down": 4)";
  const std::string drawn = R"("kind": "dragonfly", "leaf_ports_down": 8, "group_switches": 4)";
  for (const std::string& fabric : {kRails, no_pxn, tree, kSprayedTree, pairs_of_queues, drawn}) {
    CAPTURE(fabric);
    std::map<std::string, double> carried[2];
    for (const int coupled : {0, 1}) {
      const TrafficScenario read =
          scenario(nodes_of_eight(8, fabric),
                   fmt::format(R"({{"kind": "all_to_all", "size": "64 MiB", "as": "{}"}})",
                               coupled == 1 ? "coupled" : "flows"));
      TrafficSimulation simulation(read);
      simulation.run();
      const FlowNetwork& flows = simulation.network().flows();
      for (LinkIndex link = 0; link < flows.links(); ++link) {
        carried[coupled][simulation.network().link_name(link)] = flows.carried(link).base_units();
      }
    }
    REQUIRE(carried[0].size() == carried[1].size());
    for (const auto& [name, bytes] : carried[0]) {
      CAPTURE(name);
      CHECK(carried[1].at(name) == nearly(bytes, 1e-6));
    }
  }
}

TEST_CASE("traffic: thousands of messages that start together end as flow by flow") {
  for (const std::string& fabric : {kRails, kIdeal}) {
    // 5,112 messages; those who watch their flows have them settled one by one.
    const TrafficScenario of =
        scenario(nodes_of_eight(9, fabric),
                 R"({"kind": "all_to_all", "as": "flows", "size": {"from": "8 MiB", "to": "24 MiB"},
            "start": "1 ms"})");
    TrafficSimulation by_links(of), by_flows(of);
    by_flows.when_flow_added([](const Demand&) {});
    by_links.run();
    by_flows.run();
    REQUIRE(by_links.network().flows().links() * 8 <= 72 * 71);  // or it would settle flows, too
    REQUIRE(by_links.completions().size() == 72 * 71);
    std::map<std::uint32_t, Completion> others;
    for (const Completion& c : by_flows.completions()) others.emplace(c.demand, c);
    REQUIRE(others.size() == by_links.completions().size());
    for (const Completion& c : by_links.completions()) {
      const Completion& other = others.at(c.demand);
      REQUIRE(c.start == other.start);
      REQUIRE(c.bytes == other.bytes);
      const auto [least, most] = std::minmax(c.end, other.end);
      REQUIRE((most - least).ps <= 2);
    }
    const TrafficReport one = by_links.report(10), other = by_flows.report(10);
    REQUIRE(one.links.size() == 10);
    for (std::size_t l = 0; l < one.links.size(); ++l) {
      CHECK(one.links[l].bytes == nearly(other.links[l].bytes));
      CHECK(one.links[l].utilisation == nearly(other.links[l].utilisation));
    }
    CHECK(one.entries.front().mean_s == nearly(other.entries.front().mean_s));
    CHECK(one.entries.front().nic_bytes == other.entries.front().nic_bytes);
  }
}

TEST_CASE("queue pairs: a message over many of them meets fewer collisions") {
  const auto end = [](int queue_pairs) {
    return run(hosts(64, fmt::format(R"("kind": "fat_tree", "routing": "ecmp",
                                     "leaf_ports_down": 8, "queue_pairs": {})",
                                     queue_pairs)),
               R"({"kind": "shift", "by": 8, "size": "64 MiB"})")
        .end_s;
  };
  const double free = 64 * kMebibyte / kNic;
  CHECK(end(1) >= 2 * free);  // some two of eight flows share an uplink
  CHECK(end(64) < end(1));
  CHECK(end(64) >= free * (1 - kRounding));
}

TEST_CASE("one variable for a ring agrees with its edges where they are alike") {
  for (const int seed : {1, 2, 3, 4, 5}) {
    const auto ends = [seed](const char* grain) {
      return run(hosts(24, kIdeal),
                 fmt::format(R"({{"kind": "all_gather", "size": "16 MiB", "groups": 3, "as": "{}",
                                 "members": {{"of": "gpus", "shuffle": {}}}}})",
                             grain, seed))
          .end_s;
    };
    CHECK(ends("coupled") == nearly(ends("flows")));
  }
}

}  // namespace lockstep
