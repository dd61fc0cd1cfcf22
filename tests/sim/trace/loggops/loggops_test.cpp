// GOAL schedules by LogGOPS: against LogGOPSim's own ends, recorded in tests/reference/loggops, and
// against the model's formulas.
#include "sim/trace/loggops/loggops.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "models/collectives/algorithms.hpp"
#include "tests/sim/trace/sample_traces.hpp"

using namespace lockstep;

namespace {

using Nanoseconds = std::vector<std::uint64_t>;

const std::string kLogGopsFolder = LOCKSTEP_SOURCE_DIR "/tests/reference/loggops/";

StepTime of_ns(std::uint64_t ns) { return {ns * 1000}; }

Nanoseconds ends_of(const std::string& text, const LogGopsParameters& parameters) {
  Nanoseconds out;
  for (const StepTime end :
       replay_loggops("plan.goal", read_goal_ranks("plan.goal", text), parameters).ends) {
    CHECK(end.ps % 1000 == 0);
    out.push_back(end.ps / 1000);
  }
  return out;
}

/// As a run of ends.json has them.
LogGopsParameters recorded_parameters(const nlohmann::json& run) {
  const nlohmann::json& given = run["parameters"];
  const auto ns = [&](const char* name) { return given[name].get<std::uint64_t>(); };
  return {.latency = of_ns(ns("L")),
          .overhead = of_ns(ns("o")),
          .gap = of_ns(ns("g")),
          .gap_per_byte_ps = 1000.0 * given["G"].get<double>(),
          .overhead_per_byte_ps = 1000.0 * given["O"].get<double>(),
          .largest_eager = ns("S")};
}

nlohmann::json recorded_runs() {
  return nlohmann::json::parse(read_text_file(kLogGopsFolder + "ends.json"))["runs"];
}

}  // namespace

TEST_CASE("replay_loggops: every rank ends to the nanosecond when it does in LogGOPSim") {
  std::size_t ranks = 0;
  for (const nlohmann::json& run : recorded_runs()) {
    const auto schedule = run["schedule"].get<std::string>();
    if (schedule == "two_cpus.goal") continue;
    CAPTURE(schedule);
    CAPTURE(run["parameters"].dump());
    const auto peer = run["ends_ns"].get<Nanoseconds>();
    CHECK(ends_of(read_text_file(kLogGopsFolder + schedule), recorded_parameters(run)) == peer);
    ranks += peer.size();
  }
  CHECK(ranks == 3 * (2 + 8 + 16 + 6 + 3 + 2 + 5 + 8));
}

// LogGOPSim gives an operation that has become free the time at which its own CPU is free (its
// `freeop->time = nexto[host][freeop->proc]`), so that one on another CPU begins before what it
// requires has ended: there the send leaves at 0 ns and the calculation ends after its 30,000 ns.
TEST_CASE("replay_loggops: what requires an operation of another CPU waits for its end") {
  std::size_t runs = 0;
  for (const nlohmann::json& run : recorded_runs()) {
    if (run["schedule"] != "two_cpus.goal") continue;
    ++runs;
    CHECK(run["ends_ns"].get<Nanoseconds>() == Nanoseconds{20'000, 30'000});
    const LogGopsParameters p = recorded_parameters(run);
    const auto bytes = [](double ps) { return StepTime{static_cast<std::uint64_t>(999 * ps)}; };
    const StepTime sent = of_ns(20'000) + p.overhead + bytes(p.overhead_per_byte_ps);
    const StepTime received = of_ns(20'000) + p.overhead + p.latency + p.overhead +
                              bytes(std::max(p.gap_per_byte_ps, p.overhead_per_byte_ps));
    CHECK(ends_of(read_text_file(kLogGopsFolder + "two_cpus.goal"), p) ==
          Nanoseconds{sent.ps / 1000, (received + of_ns(30'000)).ps / 1000});
  }
  CHECK(runs == 3);
}

TEST_CASE("replay_loggops: on one CPU a message costs o + L + o + (s - 1) max(O, G)") {
  const std::string text = "num_ranks 2\nrank 0 { send 101b to 1 }\nrank 1 { recv 101b from 0 }";
  CHECK(ends_of(text, {}) == Nanoseconds{1500, 1500 + 2500 + 1500 + 100 * 6});
  CHECK(ends_of(text, {.gap_per_byte_ps = 2000, .overhead_per_byte_ps = 5000}) ==
        Nanoseconds{1500 + 500, 1500 + 2500 + 1500 + 500});
  // Parts of a nanosecond add up, and no bytes cost what one does.
  CHECK(ends_of(text, {.gap_per_byte_ps = 20}) == Nanoseconds{1500, 5502});
  CHECK(ends_of("num_ranks 2\nrank 0 { send 0b to 1 }\nrank 1 { recv 0b from 0 }", {}) ==
        Nanoseconds{1500, 5500});
}

TEST_CASE("replay_loggops: a send above S waits for its receive, one of S does not") {
  const std::string text =
      "num_ranks 2\nrank 0 {\na: send 100b to 1\nb: calc 10\nb requires a\n}\n"
      "rank 1 {\na: calc 50000\nb: recv 100b from 0\nb requires a\n}";
  CHECK(ends_of(text, {.largest_eager = 100}).front() == 1510);
  CHECK(ends_of(text, {.largest_eager = 99}).front() == 50'010);
  const std::vector<GoalRank> ranks = read_goal_ranks("plan.goal", text);
  CHECK(replay_loggops("plan.goal", ranks, {.largest_eager = 99}).rendezvous == 1);
  CHECK(replay_loggops("plan.goal", ranks, {.largest_eager = 100}).rendezvous == 0);
}

TEST_CASE("replay_loggops: schedules that cannot end, and what is in their way") {
  struct Wrong {
    std::string text, error;
  };
  const std::string head = "num_ranks 2\nrank 0 { ";
  const std::array wrong{
      Wrong{head + "recv 1b from 1 tag 3 }\nrank 1 { calc 1 }",
            "plan.goal, rank 0, operation 1: found a receive from rank 1 with tag 3, for which "
            "nothing comes; allowed: a send for each receive, in an order that lets all ranks go "
            "on"},
      Wrong{head + "calc 1; send 1b to 1 }\nrank 1 { calc 1 }",
            "plan.goal, rank 0, operation 2: found a message to rank 1 with tag 0, which it does "
            "not receive; allowed: a receive for each message"},
      Wrong{
          head + "a: send 70000b to 1\nb: recv 70000b from 1\nb requires a }\nrank 1 { a: send "
                 "70000b to 0\nb: recv 70000b from 0\nb requires a }",
          "plan.goal, rank 1, operation 1: found a message to rank 0 with tag 0, whose receive "
          "waits for what never ends; allowed: an order that lets all ranks go on: a send of more "
          "than 65535 bytes (S) ends once its receive has begun"},
      Wrong{head + "a: calc 1\nb: calc 1\na requires b\nb requires a }\nrank 1 { calc 1 }",
            "plan.goal, rank 0, operation 1: found an operation that never begins, as what it "
            "requires waits in a circle; allowed: requires and irequires without circles"},
      Wrong{head + "send 1b to 2 }\nrank 1 { calc 1 }",
            "plan.goal, rank 0, operation 1: found rank 2; allowed: ranks up to 1"},
      Wrong{head + "calc 1 }\nrank 0 { calc 1 }",
            "plan.goal: found rank 0 again; allowed: each rank once"},
      Wrong{head + "calc 1 }\nrank 2 { calc 1 }",
            "plan.goal: found rank 2; allowed: ranks below num_ranks, 2"},
      Wrong{head + "recv 1b from -2 }\nrank 1 { calc 1 }",
            "plan.goal:2: found \"-\"; allowed: the sender, -1 for anybody, a whole number up to "
            "999999"}};
  for (const auto& [text, error] : wrong) {
    CHECK_THROWS_WITH_AS((void)ends_of(text, {}), error.c_str(), InputError);
  }
  CHECK_THROWS_WITH_AS(
      (void)ends_of(head + "send 1000000000000000b to 1 }\nrank 1 { recv 1b from 0 }",
                    {.gap_per_byte_ps = 1e9}),
      "plan.goal: found a schedule that takes more than 100 days; allowed: shorter ones",
      InputError);
}

namespace {

constexpr std::uint64_t kLogGopsMessage = 8'000'000;

/// Fourteen rounds, each of a message to the next rank and a calculation on the one that came.
std::string ring_of_eight() {
  std::string out = "num_ranks 8\n";
  for (int r = 0; r < 8; ++r) {
    out += fmt::format("rank {} {{\n", r);
    for (int k = 0; k < 14; ++k) {
      out += fmt::format("s{0}: send {1}b to {2} tag {0}\nr{0}: recv {1}b from {3} tag {0}\n", k,
                         kLogGopsMessage, (r + 1) % 8, (r + 7) % 8);
      if (k > 0) out += fmt::format("s{0} requires c{1}\nr{0} requires c{1}\n", k, k - 1);
      out += fmt::format("c{0}: calc 1200\nc{0} requires r{0}\n", k);
    }
    out += "}\n";
  }
  return out;
}

/// Between rank 0 and rank 8, ten times there and back.
std::string to_and_fro() {
  std::string ends[2];
  for (int k = 0; k < 20; ++k) {
    const int from = k % 2 == 0 ? 0 : 8, to = 8 - from;
    ends[from / 8] += fmt::format("l{}: send {}b to {}\n", k, kLogGopsMessage, to);
    ends[to / 8] += fmt::format("l{}: recv {}b from {}\n", k, kLogGopsMessage, from);
    if (k > 0) ends[from / 8] += fmt::format("l{} requires l{}\n", k, k - 1);
  }
  std::string out = "num_ranks 9\nrank 0 {\n" + ends[0] + "}\n";
  for (int r = 1; r < 8; ++r) out += fmt::format("rank {} {{ calc 0 }}\n", r);
  return out + "rank 8 {\n" + ends[1] + "}\n";
}

/// The same schedule on a cluster, over LogGOPS with its latency as L and its rate as 1 / G.
double fabric_over_loggops(const std::string& text, int nodes, int ranks_per_node) {
  const Cluster cluster = test::trace_cluster(nodes);
  const CollectiveCost cost =
      collective_cost({.op = CollectiveOp::send_receive,
                       .payload = Bytes{static_cast<double>(kLogGopsMessage)},
                       .ranks = 2,
                       .ranks_per_node = ranks_per_node},
                      cluster.node.gpu, cluster.transport, cluster.node.nic_bandwidth);
  const LogGopsParameters wire{.latency = to_step_time(cost.latency),
                               .overhead = {},
                               .gap = {},
                               .gap_per_byte_ps = 1e12 / cost.payload_rate.base_units(),
                               .overhead_per_byte_ps = 0,
                               .largest_eager = kMostGoalMessage};
  const StepTime loggops =
      replay_loggops("plan.goal", read_goal_ranks("plan.goal", text), wire).end;
  return to_seconds(test::replayed_goal(text, cluster).end) / to_seconds(loggops);
}

}  // namespace

// Where messages meet on no link and nothing waits for a send, max-min fairness on a fabric and
// LogGOPS without o, g and O differ by the one byte that (s - 1) G leaves out, and by rounding.
TEST_CASE("replay_trace: a ring, and messages to and fro, end as LogGOPS has it, to 0.1 %") {
  CHECK(std::abs(fabric_over_loggops(ring_of_eight(), 1, 2) - 1) <= 0.001);
  CHECK(std::abs(fabric_over_loggops(to_and_fro(), 2, 1) - 1) <= 0.001);
}
