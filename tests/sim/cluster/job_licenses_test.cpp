// Licences: who waits for them, in closed form, and what is no licence.
#include "sim/scenario/job_licenses.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/sim/cluster/sample_queues.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using test::end_s;
using test::seconds;
using test::start_s;

/// Jobs on one node of 8 GPUs, beside licences.
QueueSpec licensed_queue(const std::string& admission, const char* licenses, const char* jobs,
                         const char* rules = "{}") {
  Json scenario{{"cluster", {{"node", "dgx_h100"}, {"nodes", 1}}},
                {"queue", {{"order", "fifo"}, {"admission", admission}}}};
  scenario["queue"].update(Json::parse(rules));
  scenario["queue"]["licenses"] = Json::parse(licenses);
  for (const Json& job : Json::parse(jobs)) scenario["queue"]["jobs"].push_back({{"job", job}});
  return read_queue(JsonCursor::parse("t.json", scenario.dump()), test::presets());
}

std::string complaint_of(const char* licenses, const char* jobs) {
  try {
    (void)licensed_queue("strict", licenses, jobs);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("licences: lists as Slurm writes them") {
  const LicenseAmounts expected{{"matlab", 3}, {"ansys", 1}};
  CHECK(license_amounts("matlab:2,ansys,matlab:1") == expected);
  CHECK(license_amounts("matlab=3, ansys") == expected);
  CHECK(license_amounts("")->empty());
  for (const char* const text : {"a|b", "a:", ":2", "a:-1", "a:x", "a,,b", "a:999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(license_amounts(text));
  }
}

TEST_CASE("licences: a job that lacks some waits, and nobody behind it has to") {
  const char* const jobs = R"([{"name": "a", "runs": "10 s", "licenses": "matlab"},
                               {"name": "b", "runs": "10 s", "licenses": "matlab:2"},
                               {"name": "c", "runs": "10 s"},
                               {"name": "d", "runs": "10 s", "licenses": "matlab:1,other"}])";
  const char* const licenses = R"([{"name": "other", "count": 3}, {"name": "matlab", "count": 2}])";
  for (const char* const admission : {"strict", "best_effort", "easy", "conservative"}) {
    CAPTURE(admission);
    const QueueSpec spec = licensed_queue(admission, licenses, jobs);
    const QueueResult result = simulate_queue(spec, {.watch = 1});
    CHECK(start_s(result, 0) == 0);
    CHECK(start_s(result, 1) == 10);
    CHECK(start_s(result, 2) == 0);
    CHECK(start_s(result, 3) == 0);
    REQUIRE(result.waits.size() == 1);
    CHECK(result.waits[0].reason == WaitReason::licenses);
    CHECK(result.waits[0].end == seconds(10));
    const std::vector<LicenseUse> use = summary_of(spec, result).licenses;
    REQUIRE(use.size() == 2);
    CHECK(use[0].held_mean == 0.5);  // one of "other" for half of the time
    CHECK(use[1].held_mean == 2);
  }
}

TEST_CASE("licences: a reservation whose job lacks one when its time comes holds up nobody") {
  // b is promised 100 s, when a ends; c takes the licence meanwhile, and d must not wait for it.
  const QueueSpec spec = licensed_queue("conservative", R"([{"name": "m", "count": 1}])",
                                        R"([{"name": "a", "runs": "100 s", "gpus": 6},
      {"name": "b", "submit": "1 s", "runs": "1000 s", "gpus": 4, "licenses": "m"},
      {"name": "c", "submit": "2 s", "runs": "10000 s", "gpus": 2, "licenses": "m"},
      {"name": "d", "submit": "50 s", "runs": "500 s", "gpus": 4}])");
  const QueueResult result = simulate_queue(spec);
  CHECK(start_s(result, 2) == 2);
  CHECK(start_s(result, 3) == 100);
  CHECK(start_s(result, 1) == 10'002);
}

TEST_CASE("licences: under EASY nobody takes those that the first job in the queue waits for") {
  // b gets both at 100 s, when a ends: c would keep one of them for longer, d has ended by then,
  // and e asks for none.
  const QueueResult result = simulate_queue(licensed_queue("easy", R"([{"name": "m", "count": 2}])",
                                                           R"([
      {"name": "a", "runs": "100 s", "licenses": "m"},
      {"name": "b", "submit": "1 s", "runs": "10 s", "licenses": "m:2"},
      {"name": "c", "submit": "2 s", "runs": "1000 s", "licenses": "m"},
      {"name": "d", "submit": "3 s", "runs": "50 s", "licenses": "m"},
      {"name": "e", "submit": "4 s", "runs": "1000 s"}])"));
  CHECK(start_s(result, 1) == 100);
  CHECK(start_s(result, 2) == 110);
  CHECK(start_s(result, 3) == 3);
  CHECK(start_s(result, 4) == 4);
}

TEST_CASE("licences: under EASY the first job that waits for GPUs finds its licences too") {
  // b waits for GPUs until 100 s, and its licence is free: c must not have it then.
  const QueueResult result = simulate_queue(licensed_queue("easy", R"([{"name": "m", "count": 1}])",
                                                           R"([
      {"name": "a", "runs": "100 s", "gpus": 6},
      {"name": "b", "submit": "1 s", "runs": "10 s", "gpus": 4, "licenses": "m"},
      {"name": "c", "submit": "2 s", "runs": "1000 s", "licenses": "m"},
      {"name": "d", "submit": "3 s", "runs": "1000 s"}])"));
  CHECK(start_s(result, 1) == 100);
  CHECK(start_s(result, 2) == 110);
  CHECK(start_s(result, 3) == 3);
}

TEST_CASE("licences: as many jobs at a time as there are licences, however many GPUs") {
  const char* const jobs = R"([{"name": "a", "runs": "60 s", "licenses": "l", "tasks": 10}])";
  const char* const licenses = R"([{"name": "l", "count": 3}])";
  CHECK(end_s(simulate_queue(licensed_queue("strict", licenses, jobs)), 9) == 4 * 60);
  // In Slurm's cycles each round begins with a pass after the last one's ends.
  const QueueResult cycles = simulate_queue(licensed_queue("slurm", licenses, jobs));
  for (std::size_t j = 0; j < 10; ++j) {
    std::size_t beside = 0;
    for (const JobOutcome& of : cycles.jobs) {
      beside += of.start <= cycles.jobs[j].start && of.end > cycles.jobs[j].start ? 1U : 0U;
    }
    CHECK(beside <= 3);
  }
}

TEST_CASE("licences: a suspended job keeps its own") {
  const QueueSpec spec = licensed_queue("best_effort", R"([{"name": "l", "count": 1}])", R"([
      {"name": "a", "runs": "100 s", "gpus": 4, "partition": "spare", "licenses": "l"},
      {"name": "b", "runs": "30 s", "gpus": 8, "partition": "prime", "submit": "10 s"},
      {"name": "c", "runs": "5 s", "gpus": 1, "partition": "spare", "submit": "20 s",
       "licenses": "l"}])",
                                        R"({"preemption": {"mode": "partition", "suspends": true},
      "partitions": [{"name": "spare", "hosts": "n1"},
                     {"name": "prime", "hosts": "n1", "tier": 2}]})");
  const QueueResult result = simulate_queue(spec);
  CHECK(end_s(result, 0) == 130);
  CHECK(start_s(result, 2) == 130);
}

TEST_CASE("licences: more than there are, and names that are not declared, are refused") {
  const char* const one = R"([{"name": "matlab", "count": 4}])";
  const auto says = [&](const char* jobs, const char* what) {
    const std::string text = complaint_of(one, jobs);
    CAPTURE(text);
    CHECK(text.find(what) != std::string::npos);
    CHECK(text.find("t.json#/queue/jobs/0/job/licenses") != std::string::npos);
  };
  says(R"([{"name": "a", "runs": "1 s", "licenses": "matlab:5"}])", "there are matlab:4");
  says(R"([{"name": "a", "runs": "1 s", "licenses": "ansys"}])", "\"ansys\"");
  says(R"([{"name": "a", "runs": "1 s", "licenses": "matlab|ansys"}])", "matlab|ansys");
  CHECK(complaint_of(R"([{"name": "a:1", "count": 4}])", R"([{"name": "a", "runs": "1 s"}])")
            .find("/queue/licenses/0/name") != std::string::npos);
  CHECK(complaint_of(R"([{"name": "a", "count": 4}, {"name": "a", "count": 1}])",
                     R"([{"name": "a", "runs": "1 s"}])")
            .find("a name that no other licence has") != std::string::npos);
}

}  // namespace lockstep
