// Who slows whom: the slowdown of every demand against its links to itself, with link and cause.
#include "sim/traffic/traffic_congestion.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include "sim/scenario/read_traffic.hpp"
#include "tools/views/report/congestion_page.hpp"

namespace lockstep {
namespace {

constexpr int kWatchedNodes = 12;

TrafficScenario watched(const std::string& traffic) {
  static const PresetStore presets;
  return read_traffic(
      "watched.json",
      fmt::format(
          R"({{"cluster": {{"node": {{"preset": "dgx_h100", "gpus": 1, "nvlink_domain": 1,
          "nics": 1}}, "nodes": {}, "fabric": {{"kind": "ideal"}}}}, "efficiency": 1,
          "traffic": [{}]}})",
          kWatchedNodes, traffic),
      presets);
}

CongestionReport congestion(const std::string& traffic, const CongestionLimits& limits = {}) {
  const TrafficScenario scenario = watched(traffic);
  TrafficSimulation simulation(scenario);
  const TrafficCongestion watch(simulation);
  simulation.run();
  TrafficReport report = simulation.report(0);
  add_alone(scenario, report);
  return watch.report(report, limits);
}

}  // namespace

TEST_CASE("congestion of an incast: each is k times slower, because of the receiver's link") {
  const CongestionReport report = congestion(R"({"kind": "incast", "size": "8 MiB"})");
  constexpr int kSenders = kWatchedNodes - 1;
  REQUIRE(report.transfers.size() == kSenders);
  for (const TransferCongestion& transfer : report.transfers) {
    CHECK(transfer.slowdown() == doctest::Approx(kSenders));
    REQUIRE(transfer.worst_link >= 0);
    CHECK(report.links[static_cast<std::size_t>(transfer.worst_link)].name == "node 0 nic 0 down");
    CHECK(transfer.worst_link_share == doctest::Approx(1));
    CHECK(transfer.cause_share == doctest::Approx(1.0 / kSenders));
    CHECK(transfer.cause.starts_with("incast: node "));
    CHECK(transfer.cause.find(transfer.name) == std::string::npos);
  }
  CHECK(report.jobs.at(0).bytes == doctest::Approx(kSenders * 8.0 * 1048576));
  CHECK(report.title == "watched.json");
}

TEST_CASE("congestion: links that carried traffic are counted before their list is cut short") {
  const std::string shift = R"({"kind": "shift", "size": "8 MiB"})";
  const CongestionReport all = congestion(shift), few = congestion(shift, {.links = 3});
  REQUIRE(all.links.size() > 3);
  CHECK(few.links.size() == 3);
  CHECK(all.links_used == all.links.size());
  CHECK(few.links_used == all.links_used);
  const TrafficScenario scenario = watched(shift);
  CHECK(simulate_traffic(scenario).links_used == all.links_used);  // what the table says
  CHECK(congestion_page(few).find(">" + std::to_string(all.links_used) + "<") != std::string::npos);
}

TEST_CASE("congestion of a ring alone: nobody is slowed, and nobody is the cause") {
  const CongestionReport report =
      congestion(R"({"kind": "all_reduce", "size": "8 MiB", "as": "flows"})");
  REQUIRE(report.transfers.size() == kWatchedNodes);
  for (const TransferCongestion& transfer : report.transfers) {
    CHECK(transfer.slowdown() == doctest::Approx(1));
    CHECK(transfer.cause.empty());
  }
}

TEST_CASE("congestion over rounds: a sender is one transfer, whoever receives") {
  const CongestionReport report =
      congestion(R"({"kind": "permutation", "size": {"from": "1 MiB", "to": "9 MiB"},
                     "repeat": 4})");
  REQUIRE(report.transfers.size() == kWatchedNodes);
  for (const TransferCongestion& transfer : report.transfers) {
    CHECK(transfer.runs == 4);
    CHECK(transfer.name.starts_with("from node "));
    CHECK(transfer.slowdown() > 1 - 1e-9);
  }
  CHECK(report.transfers.front().slowdown() > 1.05);  // receivers do not wait for each other
  CHECK(std::ranges::is_sorted(
      report.transfers, std::ranges::greater{},
      [](const TransferCongestion& transfer) { return transfer.slowdown(); }));
}

TEST_CASE("congestion of two entries: the cause is the other one, and jobs know their time alone") {
  const CongestionReport report = congestion(
      R"({"name": "a", "kind": "pairs", "pairs": [[0, 1]], "size": "40 MB"},
         {"name": "b", "kind": "pairs", "pairs": [[2, 1]], "size": "40 MB"})");
  REQUIRE(report.jobs.size() == 2);
  for (const JobCongestion& job : report.jobs) CHECK(job.slowdown() == doctest::Approx(2));
  REQUIRE(report.transfers.size() == 2);
  for (const TransferCongestion& transfer : report.transfers) {
    const std::string other = transfer.job == "a" ? "b: " : "a: ";
    CHECK(transfer.cause.starts_with(other));
    CHECK(transfer.cause_share == doctest::Approx(0.5));
  }
}

TEST_CASE("congestion: where transfers are too many, the most slowed stay") {
  // Three into node 0, two into node 1; of these five, three are kept.
  const CongestionReport report = congestion(R"({"kind": "pairs", "size": "1 MB",
                     "pairs": [[5, 1], [6, 1], [2, 0], [3, 0], [4, 0]]})",
                                             {.transfers = 3});
  CHECK(report.transfers_run == 5);
  REQUIRE(report.transfers.size() == 3);
  for (const TransferCongestion& transfer : report.transfers) {
    CHECK(transfer.slowdown() == doctest::Approx(3));
    CHECK(transfer.name.ends_with("to node 0 gpu 0"));
    CHECK_FALSE(transfer.cause.empty());
  }
}

}  // namespace lockstep
