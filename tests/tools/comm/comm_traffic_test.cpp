// What `lockstep comm` prints of traffic.
#include "tools/views/comm/comm_traffic.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "sim/scenario/read_traffic.hpp"

namespace lockstep {
namespace {

TrafficScenario shipped(const std::string& name) {
  static const PresetStore presets;
  const std::string file = "scenarios/comm/" + name + ".json";
  return read_traffic(file, read_text_file(std::string(LOCKSTEP_SOURCE_DIR) + "/" + file), presets);
}

int widest_line(const std::string& text) {
  int widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, text_width(line));
  return widest;
}

}  // namespace

TEST_CASE("comm: tables of traffic fit in 100 columns, with times alone and long names too") {
  for (const char* name : {"incast-32", "checkpoint-beside-rings", "all-to-all-256"}) {
    CAPTURE(name);
    TrafficScenario scenario = shipped(name);
    for (TrafficEntry& entry : scenario.entries) entry.name += " of the second training job";
    const std::string text = traffic_table(scenario, simulate_traffic(scenario), TextStyle{});
    CHECK(widest_line(text) <= kTextColumns);
    CHECK(text.find("...  ") != std::string::npos);
  }
}

TEST_CASE("comm: what members send each other is not what their NICs put on the fabric") {
  const TrafficScenario scenario = shipped("checkpoint-beside-rings");
  const TrafficReport report = simulate_traffic(scenario);
  const EntryReport &rings = report.entries.at(0), &storage = report.entries.at(1);
  // Eight rings through 32 nodes of eight GPUs: each sends on one of eight edges over a NIC.
  CHECK(rings.bytes / rings.nic_bytes == doctest::Approx(8));
  // 20 rounds on 256 GPUs of 2 x 255 / 256 of a buffer of 4 GiB.
  CHECK(rings.bytes / 1e12 == doctest::Approx(20 * 510 * 4294967296e-12));
  CHECK(storage.nic_bytes == doctest::Approx(storage.bytes));
  const auto json = traffic_json(scenario, report, {});
  CHECK(json["traffic"][0]["nic_bytes"].get<double>() == doctest::Approx(rings.nic_bytes));
  CHECK(traffic_table(scenario, report, {}).find("  payload  ") != std::string::npos);
}

TEST_CASE("comm: the table says whether the expected time was met") {
  TrafficScenario scenario = shipped("incast-32");
  const TrafficReport report = simulate_traffic(scenario);
  CHECK(traffic_table(scenario, report, {}).find("(within ") != std::string::npos);
  *scenario.expect->time *= 2;
  CHECK(traffic_table(scenario, report, {}).find("(NOT within ") != std::string::npos);
}

TEST_CASE("comm: links that are printed alike share a row, and it says of how many") {
  const TrafficScenario scenario = shipped("incast-32");
  const auto table = [&](std::size_t links) {
    return traffic_table(scenario, simulate_traffic(scenario, links), {});
  };
  // Each of 31 sends on a NIC of its own to one.
  const std::string ten = table(10), two = table(2);
  CHECK(ten.find("node 1 nic 0 up (at least 9 alike) ") != std::string::npos);
  CHECK(two.find("node 1 nic 0 up ") != std::string::npos);
  CHECK(two.find("alike") == std::string::npos);
  for (const std::string& text : {ten, two}) {
    CHECK(text.find("node 0 nic 0 down ") != std::string::npos);
    CHECK(text.find("node 2 nic 0 up") == std::string::npos);
  }
}

TEST_CASE("comm --flows: a line for each message, in the order of their ends") {
  const TrafficScenario scenario = shipped("incast-32");
  TrafficSimulation simulation(scenario);
  simulation.run();
  std::istringstream lines(flows_csv(simulation).str());
  std::string line;
  REQUIRE(std::getline(lines, line));
  CHECK(line == "entry,group,round,from,to,bytes,start_s,end_s");
  int messages = 0;
  for (; std::getline(lines, line); ++messages) {
    CHECK(line.starts_with("incast,0,0,node "));
    CHECK(line.ends_with(",67108864,0.000000000000,0.041607495680"));
  }
  CHECK(messages == 31);
}

TEST_CASE("comm --paths: every message with its links, as many as the header says") {
  const TrafficScenario scenario = shipped("incast-32");
  TrafficSimulation simulation(scenario);
  simulation.run();
  std::istringstream file(paths_text(simulation));
  std::string line, word;
  std::getline(file, line);
  CHECK(line == "lockstep-paths 1");
  std::size_t links = 0, messages = 0;
  file >> word >> links;
  CHECK(word == "links");
  for (std::size_t i = 0; i < links; ++i) {
    double capacity = 0;
    file >> capacity;
    CHECK(capacity > 0);
  }
  file >> word >> messages;
  CHECK(word == "messages");
  CHECK(messages == 31);
  std::getline(file, line);
  std::size_t seen = 0;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    double skipped = 0;
    for (int i = 0; i < 5; ++i) fields >> skipped;
    std::size_t crossed = 0;
    for (std::size_t link = 0; fields >> link; ++crossed) CHECK(link < links);
    CHECK(crossed >= 2);
    ++seen;
  }
  CHECK(seen == messages);
}

}  // namespace lockstep
