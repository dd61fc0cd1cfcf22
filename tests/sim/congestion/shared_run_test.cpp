#include "sim/congestion/shared_run.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/random_scenarios.hpp"
#include "tests/support/source_tree.hpp"

namespace lockstep {
namespace {

constexpr const char* kJob = R"("model": "llama3_8b",
  "parallelism": {"data": 32, "sharding": "zero1"},
  "batch": {"sequences": 32, "micro": 1, "tokens": 8192},
  "recompute": "full", "stack": "megatron_core")";

std::string fabric(int oversubscription, const char* routing) {
  return fmt::format(R"({{"kind": "fat_tree", "routing": "{}", "leaf_ports_down": 16,
                          "leaf_oversubscription": {}}})",
                     routing, oversubscription);
}

std::string job(const std::string& name, const std::string& nodes) {
  return fmt::format(R"({{"name": "{}", "nodes": {}, {}}})", name, nodes, kJob);
}

std::string shared(const std::string& fabric_text, const std::string& jobs,
                   const std::string& more = {}) {
  return fmt::format(R"({{"cluster": {{"node": "dgx_h100", "nodes": 8, "fabric": {}}},
                          "steps": 2, "jobs": [{}]{}}})",
                     fabric_text, jobs, more);
}

SharedScenario read(const std::string& text) {
  return read_shared_scenario(JsonCursor::parse("t.json", text), PresetStore{});
}
SharedResult simulate(const std::string& text) { return simulate_shared(read(text)); }

constexpr const char* kEvenNodes = R"({"first": 0, "count": 4, "stride": 2})";
constexpr const char* kOddNodes = R"({"first": 1, "count": 4, "stride": 2})";

TEST_CASE("shared: a job alone takes the step that run predicts for it") {
  const SharedResult result = simulate(shared(fabric(1, "spray"), job("a", R"({"count": 4})")));
  const Scenario scenario = read_scenario(
      "t.json",
      fmt::format(R"({{"cluster": {{"node": "dgx_h100", "nodes": 4, "fabric": {}}}, {}}})",
                  fabric(1, "spray"), kJob),
      PresetStore{});
  const double step = simulate_step(scenario, {.folding = Folding::unfolded}).step_s;
  REQUIRE(result.jobs[0].steps_s.size() == 2);
  CHECK(result.jobs[0].steps_s[0] == step);
  CHECK(result.jobs[0].steps_s[1] == step);
  CHECK(result.congestion.jobs[0].slowdown() == 1);
}

TEST_CASE("shared: a tensor-parallel job sends over all its NICs, of which one is simulated") {
  std::string wide = job("a", R"({"count": 4})");
  const std::string data = R"("data": 32)";
  wide.replace(wide.find(data), data.size(), R"("tensor": 8, "data": 4)");
  const CongestionReport report = simulate(shared(fabric(1, "spray"), wide)).congestion;
  const auto carried = [&](const std::string& name) {
    const auto link = std::ranges::find(report.carried, name, &CarriedLink::name);
    REQUIRE(link != report.carried.end());
    return link->bytes.base_units();
  };
  // Four replicas, each on the eight cards of a node: all cards send the same, at the same times.
  const auto row = [&](const std::string& name) -> const LinkCongestion& {
    const auto link = std::ranges::find(report.links, name, &LinkCongestion::name);
    REQUIRE(link != report.links.end());
    return *link;
  };
  const double first = carried("node 0 nic 0 up");
  CHECK(first > 0);
  for (int node = 0; node < 4; ++node) {
    for (int nic = 0; nic < 8; ++nic) {
      for (const char* way : {"up", "down"}) {
        const std::string name = fmt::format("node {} nic {} {}", node, nic, way);
        CAPTURE(name);
        CHECK(carried(name) == doctest::Approx(first).epsilon(1e-9));
        CHECK(row(name).utilisation == row(fmt::format("node {} nic 0 {}", node, way)).utilisation);
      }
    }
  }
  CHECK(report.jobs[0].bytes == doctest::Approx(4 * 8 * first).epsilon(1e-9));
}

TEST_CASE("shared: any job alone takes its step, and puts its bytes on links that carry them") {
  const auto check = [](const Scenario& scenario, const std::string& text) {
    nlohmann::ordered_json document = nlohmann::ordered_json::parse(text);
    nlohmann::ordered_json whole{{"cluster", document.at("cluster")}, {"steps", 2}};
    document.erase("cluster");
    document["name"] = "a";
    document["nodes"] = nlohmann::ordered_json::object({{"count", scenario.nodes}});
    whole["jobs"] = nlohmann::ordered_json::array();
    whole["jobs"].push_back(document);
    const SharedResult result = simulate(write_json(whole));
    const double step = simulate_step(scenario, {.folding = Folding::unfolded}).step_s;
    for (const double seconds : result.jobs[0].steps_s) {
      CHECK(seconds == doctest::Approx(step).epsilon(1e-9));  // as folding: ends move by a tick
    }
    CHECK(result.jobs[0].mfu_full == doctest::Approx(result.jobs[0].alone_mfu_full).epsilon(1e-9));
    for (const LinkCongestion& link : result.congestion.links) {
      CHECK(link.peak_utilisation <= 1 + 1e-6);
      CHECK(link.bytes_by_job[0] ==
            doctest::Approx(link.mean_utilisation * link.capacity_bytes_per_s *
                            result.congestion.end_s)
                .epsilon(1e-6));
    }
  };
  test::hold("alone", test::test_seed() + 51, 40,
             {.fabrics = test::RandomFabrics::every, .most_nodes = 6}, check);
}

TEST_CASE("shared: jobs that share no link do not slow each other") {
  // Two nodes fill a leaf: each job has two leaves of its own.
  const SharedResult result =
      simulate(shared(fabric(4, "spray"),
                      job("a", R"({"count": 4})") + "," + job("b", R"({"first": 4, "count": 4})")));
  for (const JobCongestion& j : result.congestion.jobs) CHECK(j.slowdown() == 1);
}

TEST_CASE("shared: two equal jobs on every other node halve each other's way between leaves") {
  const SharedResult result =
      simulate(shared(fabric(4, "spray"), job("a", kEvenNodes) + "," + job("b", kOddNodes)));
  const CongestionReport& report = result.congestion;
  CHECK(report.jobs[0].slowdown() > 1.001);
  CHECK(report.jobs[0].step_s == report.jobs[1].step_s);
  CHECK(result.jobs[0].mfu_full < result.jobs[0].alone_mfu_full);
  // 16 NICs of both jobs over uplinks of 4 NICs; alone 8 of them.
  REQUIRE_FALSE(report.transfers.empty());
  CHECK(report.transfers[0].slowdown() == doctest::Approx(2).epsilon(0.001));
  CHECK(report.transfers[0].cause_share == doctest::Approx(0.5));
  for (const LinkCongestion& link : report.links) CHECK(link.peak_utilisation <= 1 + 1e-6);
}

TEST_CASE("shared: the same bytes again") {
  const std::string text =
      shared(fabric(4, "ecmp"), job("a", kEvenNodes) + "," + job("b", kOddNodes));
  const SharedResult one = simulate(text), two = simulate(text);
  REQUIRE(one.congestion.transfers.size() == two.congestion.transfers.size());
  for (std::size_t t = 0; t < one.congestion.transfers.size(); ++t) {
    CHECK(one.congestion.transfers[t].name == two.congestion.transfers[t].name);
    CHECK(one.congestion.transfers[t].mean_s == two.congestion.transfers[t].mean_s);
  }
}

TEST_CASE("shared: a spine that dies holds its traffic up until routes avoid it") {
  const std::string one_job = job("a", R"({"count": 4})");
  const auto steps = [&](const std::string& event) {
    return simulate(shared(fabric(4, "adaptive"), one_job, event)).jobs[0].steps_s;
  };
  const auto event = [](const char* more) {
    return fmt::format(R"(, "events": [{{"at": "0 s", "fault": {{"switch": "spine 0"}}{}}}])",
                       more);
  };
  const std::vector<double> whole = steps("");
  const std::vector<double> rerouted = steps(event(""));
  const std::vector<double> slow = steps(event(R"(, "reroute_after": "100 s")"));
  const std::vector<double> brief = steps(event(R"(, "lasts": "10 s", "reroute_after": "5 s")"));
  CHECK(rerouted[0] > whole[0]);  // three of four spines are left
  CHECK(rerouted[0] < 1.05 * whole[0]);
  CHECK(slow[0] > 100);
  CHECK(slow[1] == doctest::Approx(rerouted[1]));
  CHECK(brief[0] > 5);
  CHECK(brief[0] < 5 + 1.1 * whole[0]);
  // Repaired 10 s after it broke: the second step began before that.
  CHECK(brief[1] >= whole[1]);
}

/// A node of its own, whose gradients never leave it: it holds the clock only.
constexpr const char* kClock = R"({"name": "clock", "nodes": {"first": 7, "count": 1},
  "start": "20 s", "model": "llama3_8b", "parallelism": {"data": 8, "sharding": "zero1"},
  "batch": {"sequences": 8, "micro": 1, "tokens": 2048}, "recompute": "full",
  "stack": "megatron_core"})";

TEST_CASE("shared: each event says what it touched, even if that is nothing") {
  // Nodes 0 and 1 of leaf 0 send 193 GB each to node 2 of leaf 1. Its eight NICs take 400 GB/s, of
  // which 386 are payload, so both are under way in the first second of every four. Leaves have 16
  // spines above them, 50 GB/s each: without one, 750 GB/s are left, more than that.
  const std::string traffic = R"(, "background": [{"name": "copy", "from": [0, 1], "to": [2],
    "size": "193 GB", "every": "4 s"}])";
  // The run ends with two steps that begin after 20 s, of a few seconds.
  const std::string events = R"(, "events": [
    {"at": "0.5 s", "lasts": "1 ms", "every": "16 s", "fault": {"switch": "spine 1"}},
    {"at": "0.999 s", "lasts": "1 us", "fault": {"cable": "leaf 0 to spine 0"}},
    {"at": "1.001 s", "lasts": "1 us", "fault": {"cable": "leaf 0 to spine 0"}},
    {"at": "2.5 s", "lasts": "1 ms", "every": "16 s", "fault": {"cable": "leaf 1 to spine 3"}},
    {"at": "4.5 s", "lasts": "1 ms", "fault": {"cable": "leaf 2 to spine 0"}},
    {"at": "1000 s", "fault": {"switch": "spine 2"}}])";
  const CongestionReport report =
      simulate(shared(fabric(1, "spray"), kClock, traffic + events)).congestion;
  CHECK(report.jobs[1].step_s == doctest::Approx(1));  // a round of the copy
  REQUIRE(report.end_s > 20);
  REQUIRE(report.end_s < 32.5);  // when spine 1 would break for the third time
  struct Touched {
    std::uint32_t times, links, transfers;
  };
  const std::vector<Touched> expected{
      {2, 8, 4},  // at 0.5 and 16.5 s, to and from four leaves, both senders each time
      {1, 2, 2},  // a millisecond before they are done
      {1, 2, 0},  // a millisecond after
      {2, 2, 0},  // at 2.5 and 18.5 s, between two rounds
      {1, 2, 0},  // in a round, where nobody sends
      {0, 0, 0},  // after the end
  };
  REQUIRE(report.events.size() == expected.size());
  for (std::size_t e = 0; e < expected.size(); ++e) {
    CAPTURE(e);
    const EventOutcome& event = report.events[e];
    CHECK(event.times == expected[e].times);
    CHECK(event.links == expected[e].links);
    CHECK(event.transfers == expected[e].transfers);
    const std::vector<std::string> copy{"copy"};
    CHECK(event.jobs == (expected[e].transfers > 0 ? copy : std::vector<std::string>{}));
  }
  CHECK(report.events[0].what == "switch spine 1 goes down");
}

TEST_CASE("shared: a link that flaps costs something each time") {
  const std::string flapping = R"(, "events": [{"at": "0.1 s",
      "fault": {"cable": "leaf 0 to spine 0"}, "lasts": "0.05 s", "every": "0.1 s",
      "reroute_after": "0.05 s"}])";
  const std::string once = R"(, "events": [{"at": "0.1 s",
      "fault": {"cable": "leaf 0 to spine 0"}, "lasts": "0.05 s", "reroute_after": "0.05 s"}])";
  const std::string one_job = job("a", R"({"count": 4})");
  const double often = simulate(shared(fabric(2, "spray"), one_job, flapping)).congestion.end_s;
  const double rarely = simulate(shared(fabric(2, "spray"), one_job, once)).congestion.end_s;
  CHECK(often > rarely);
}

TEST_CASE("shared: when nodes are cut off for good, the error says when it stopped") {
  CHECK_THROWS_AS(simulate(shared(fabric(1, "spray"), job("a", R"({"count": 4})"),
                                  R"(, "events": [{"at": "0 s", "fault": {"switch": "leaf 0"}}])")),
                  InputError);
}

TEST_CASE("shared: background traffic runs in rounds, and slows what it meets") {
  const std::string background = R"(, "background": [{"name": "checkpoint", "from": [1, 3, 5],
      "to": [7], "size": "100 GB", "every": "1 s"}])";
  const SharedResult result =
      simulate(shared(fabric(4, "spray"), job("a", kEvenNodes), background));
  const CongestionReport& report = result.congestion;
  REQUIRE(report.jobs.size() == 2);
  // Three senders into the four uplinks of one leaf: 300 GB over 4 x 50 GB/s, of which InfiniBand
  // gives payload 96.5 %.
  CHECK(report.jobs[1].alone_s == doctest::Approx(1.5 / 0.965));
  CHECK(report.jobs[1].step_s > report.jobs[1].alone_s);
  CHECK(report.jobs[0].slowdown() > 1);
}

TEST_CASE("shared: traffic that is not over when the steps are is told so, with what is done") {
  // 8 NICs of 50 GB/s each, 96.5 % of it payload: 4 TB take 10.4 s.
  const std::string copy = R"(, "background": [{"name": "copy", "from": [1], "to": [3],
      "size": "4 TB", "start": "100 ms"}])";
  const SharedResult result = simulate(shared(fabric(1, "spray"), job("a", kEvenNodes), copy));
  const CongestionReport& report = result.congestion;
  const double whole = 4e12 / (0.965 * 8 * 50e9);
  const JobCongestion& sent = report.jobs[1];
  CHECK(sent.alone_s == doctest::Approx(whole));
  CHECK(sent.step_s == doctest::Approx(report.end_s - 0.1));
  CHECK(sent.done_share == doctest::Approx(sent.step_s / whole));
  CHECK(sent.slowdown() == doctest::Approx(1));
  CHECK(sent.bytes == doctest::Approx(4e12 * sent.done_share));
  REQUIRE(!report.links.empty());
  CHECK(report.links.front().name.find("node 1") != std::string::npos);
  CHECK(report.links.front().mean_utilisation == doctest::Approx(sent.step_s / report.end_s));
  const auto transfer = std::ranges::find(report.transfers, "copy", &TransferCongestion::job);
  REQUIRE(transfer != report.transfers.end());
  CHECK(transfer->slowdown() == doctest::Approx(1));
  CHECK(transfer->stalled_s == doctest::Approx(0));
  REQUIRE(!report.notes.empty());
  CHECK(report.notes.back().starts_with("copy is not finished when the jobs' steps are"));
  const std::string later = R"(, "background": [{"name": "copy", "from": [1], "to": [3],
      "size": "4 TB", "start": "1 h"}])";
  const CongestionReport none =
      simulate(shared(fabric(1, "spray"), job("a", kEvenNodes), later)).congestion;
  CHECK(none.jobs[1].done_share == 0);
  CHECK(none.jobs[1].slowdown() == 1);
  REQUIRE(!none.notes.empty());
  CHECK(none.notes.back() == "copy has not begun when the jobs' steps are finished");
}

TEST_CASE("shared: every example runs, and has something to show") {
  int examples = 0;
  for (const std::string& file : test::source_files({"scenarios/congestion"})) {
    CAPTURE(file);
    const std::string text = read_text_file(std::string(LOCKSTEP_SOURCE_DIR "/") + file);
    const SharedScenario scenario =
        read_shared_scenario(JsonCursor::parse(file, text), PresetStore{});
    const CongestionReport report = simulate_shared(scenario).congestion;
    REQUIRE_FALSE(report.transfers.empty());
    CHECK(report.transfers[0].slowdown() > 1.05);
    CHECK(report.jobs[0].slowdown() > 1.001);
    ++examples;
  }
  CHECK(examples >= 3);
}

TEST_CASE("shared: mistakes are named with their place") {
  const auto message = [](const std::string& text) -> std::string {
    try {
      (void)read(text);
    } catch (const InputError& e) {
      return e.what();
    }
    return "";
  };
  const std::string sound = job("a", R"({"count": 4})");
  CHECK(
      message(shared(fabric(1, "spray"), sound + "," + job("b", R"({"first": 3, "count": 4})"))) ==
      "t.json#/jobs/1/nodes: found an object; allowed: nodes that no other job has; node 3 is a's");
  CHECK(message(shared(fabric(1, "spray"), sound,
                       R"(, "events": [{"at": "0 s", "fault": {"switch": "spin 0"}}])"))
            .starts_with("t.json#/events/0/fault: found \"spin 0\""));
  CHECK(message(shared(fabric(1, "spray"), job("a", R"({"count": 3})")))
            .starts_with("t.json#/jobs/0/parallelism: found tensor 1 x"));
  CHECK(message(shared(fabric(1, "spray"), sound,
                       R"(, "background": [{"name": "a", "from": [1], "to": [2], "size": 1}])"))
            .starts_with("t.json#/background/0/name: found \"a\""));
}

}  // namespace
}  // namespace lockstep
