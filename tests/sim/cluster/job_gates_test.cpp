// What jobs wait for beside GPUs: dependencies, arrays, begin times, holds, advance reservations.
// Schedules by hand.
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using test::end_s;
using test::start_s;

/// A queue on nodes of 8 GPUs.
Json queue_on(int nodes, const std::string& admission, const Json& jobs) {
  Json list = Json::array();
  for (const Json& job : jobs) list.push_back({{"job", job}});
  return {{"cluster", {{"node", "dgx_h100"}, {"nodes", nodes}}},
          {"queue", {{"order", "fifo"}, {"admission", admission}, {"jobs", list}}}};
}

QueueSpec spec_of(const Json& scenario) {
  return read_queue(JsonCursor::parse("t.json", scenario.dump()), test::presets());
}

/// By name.
double start_of(const QueueSpec& spec, const QueueResult& result, const std::string& name) {
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    if (spec.job_name(j) == name) return result.jobs[j].start < 0 ? -1 : start_s(result, j);
  }
  return -2;
}

double wait_for(const QueueSpec& spec, const std::string& name, WaitReason reason) {
  for (std::uint32_t j = 0; j < spec.jobs.size(); ++j) {
    if (spec.job_name(j) != name) continue;
    RunTime sum = 0;
    for (const WaitSpan& span : simulate_queue(spec, {.watch = j}).waits) {
      if (span.reason == reason) sum += span.end - span.begin;
    }
    return to_seconds(sum).base_units();
  }
  return -1;
}

const Json kChain = Json::parse(R"([
  {"name": "ok", "runs": "4 s"},
  {"name": "bad", "runs": "5 s", "fails": true},
  {"name": "array", "runs": "3 s", "tasks": 5, "at_once": 2},
  {"name": "after_ok", "runs": "2 s", "dependency": "afterok:ok"},
  {"name": "after_bad", "runs": "2 s", "dependency": "afterok:bad"},
  {"name": "not_ok", "runs": "2 s", "dependency": "afternotok:bad"},
  {"name": "both", "runs": "2 s", "dependency": "afterany:ok:bad"},
  {"name": "either", "runs": "2 s", "dependency": "afterok:bad?afterok:ok"},
  {"name": "later", "runs": "2 s", "dependency": "after:ok+2"},
  {"name": "behind", "runs": "2 s", "dependency": "afterok:array"},
  {"name": "pair", "runs": "2 s", "tasks": 5, "dependency": "aftercorr:array"},
  {"name": "one", "runs": "3 s"},
  {"name": "two", "runs": "3 s", "dependency": "afterany:one"},
  {"name": "begins", "runs": "2 s", "begin": "6 s"},
  {"name": "held", "runs": "2 s", "held": true}])");

}  // namespace

TEST_CASE("gates: each kind of dependency opens when it has come true, in every scheduler") {
  for (const char* const admission : {"strict", "best_effort", "easy", "conservative"}) {
    CAPTURE(admission);
    const QueueSpec spec = spec_of(queue_on(4, admission, kChain));
    const QueueResult result = simulate_queue(spec);
    const std::vector<std::pair<const char*, double>> expected{
        {"ok", 0},      {"array_0", 0},  {"array_1", 0},    {"array_2", 3}, {"array_3", 3},
        {"array_4", 6}, {"after_ok", 4}, {"after_bad", -1}, {"not_ok", 5},  {"both", 5},
        {"either", 4},  {"later", 120},  {"behind", 9},     {"pair_0", 3},  {"pair_1", 3},
        {"pair_3", 6},  {"pair_4", 9},   {"two", 3},        {"begins", 6},  {"held", -1}};
    for (const auto& [name, at] : expected) {
      CAPTURE(name);
      CHECK(start_of(spec, result, name) == at);
    }
  }
}

TEST_CASE("gates: each wait has its reason, and the seconds add up") {
  const QueueSpec spec = spec_of(queue_on(4, "best_effort", kChain));
  CHECK(wait_for(spec, "after_ok", WaitReason::dependency) == 4);
  CHECK(wait_for(spec, "array_4", WaitReason::array_limit) == 6);
  CHECK(wait_for(spec, "begins", WaitReason::begin_time) == 6);
  CHECK(wait_for(spec, "later", WaitReason::begin_time) == 120);
  const QueueResult result = simulate_queue(spec);
  CHECK(wait_for(spec, "held", WaitReason::held) == to_seconds(result.end).base_units());
  for (std::uint32_t j = 0; j < spec.jobs.size(); ++j) {
    CAPTURE(spec.job_name(j));
    const QueueResult watched = simulate_queue(spec, {.watch = j});
    RunTime sum = 0;
    for (const WaitSpan& span : watched.waits) sum += span.end - span.begin;
    CHECK(sum == watched.jobs[j].waited);
  }
}

TEST_CASE("gates: a dependency that cannot be met cancels, and so do those behind it") {
  Json scenario = queue_on(1, "strict", Json::parse(R"([
    {"name": "bad", "runs": "5 s", "fails": true},
    {"name": "never", "runs": "2 s", "dependency": "afterok:bad"},
    {"name": "nor", "runs": "2 s", "dependency": "afterok:never"},
    {"name": "then", "runs": "2 s", "dependency": "afterany:never"}])"));
  scenario["queue"]["cancel_unsatisfiable"] = true;
  const QueueSpec spec = spec_of(scenario);
  const QueueResult result = simulate_queue(spec);
  CHECK(result.jobs[1].cancelled == test::seconds(5));
  CHECK(result.jobs[2].cancelled == test::seconds(5));
  CHECK(start_s(result, 3) == 5);
  CHECK(summary_of(spec, result).cancelled == 2);
}

TEST_CASE("gates: singletons run one after the other, by user and name") {
  const QueueSpec spec = spec_of(queue_on(1, "best_effort", Json::parse(R"([
    {"name": "a", "user": "u", "runs": "3 s"},
    {"name": "a", "user": "u", "runs": "4 s", "dependency": "singleton"},
    {"name": "a", "user": "v", "runs": "4 s", "dependency": "singleton"},
    {"name": "b", "user": "u", "runs": "4 s", "dependency": "singleton"},
    {"name": "a", "user": "u", "runs": "4 s", "dependency": "singleton"}])")));
  const QueueResult result = simulate_queue(spec);
  const std::vector<double> expected{0, 3, 0, 0, 7};
  for (std::size_t j = 0; j < expected.size(); ++j) CHECK(start_s(result, j) == expected[j]);
}

TEST_CASE("reservations: nobody runs into one, its own jobs run in it and are stopped at its end") {
  for (const char* const admission : {"strict", "best_effort", "easy", "conservative"}) {
    CAPTURE(admission);
    Json scenario = queue_on(2, admission, Json::parse(R"([
      {"name": "fits", "gpus": 8, "runs": "9 s", "limit": "10 s"},
      {"name": "own", "gpus": 8, "runs": "5 s", "reservation": "course"},
      {"name": "over", "gpus": 8, "runs": "30 s", "reservation": "course"},
      {"name": "wide", "gpus": 16, "runs": "5 s", "limit": "6 s"}])"));
    scenario["queue"]["reservations"] = Json::parse(R"([
      {"name": "course", "start": "10 s", "duration": "12 s", "nodes": 1}])");
    const QueueSpec spec = spec_of(scenario);
    const QueueResult result = simulate_queue(spec);
    CHECK(start_of(spec, result, "fits") == 0);
    CHECK(start_of(spec, result, "own") == 10);
    CHECK(start_of(spec, result, "over") == 15);
    CHECK(end_s(result, 2) == 22);
    CHECK(result.jobs[2].stopped);
    // Two nodes for 6 s: only behind the reservation.
    CHECK(start_of(spec, result, "wide") == 22);
    CHECK(wait_for(spec, "own", WaitReason::advance_reservation) == 10);
    GpuTime sum;
    for (const GpuTime& of : result.books) sum += of;
    CHECK(sum == GpuTime(16, result.end));
  }
}

TEST_CASE(
    "reservations: what is free in one is booked apart, and one announced late stops nobody") {
  Json scenario =
      queue_on(1, "best_effort", Json::parse(R"([{"name": "long", "gpus": 8, "runs": "8 s"},
                                           {"name": "next", "gpus": 8, "runs": "3 s"}])"));
  scenario["queue"]["reservations"] = Json::parse(R"([
    {"name": "repair", "start": "5 s", "duration": "10 s", "nodes": 1, "announced": "2 s"}])");
  const QueueSpec spec = spec_of(scenario);
  const QueueResult result = simulate_queue(spec);
  CHECK(start_s(result, 0) == 0);
  CHECK(start_s(result, 1) == 15);
  CHECK(result.books[static_cast<std::size_t>(QueueBucket::reserved)] ==
        GpuTime(8, test::seconds(7)));
}

}  // namespace lockstep
