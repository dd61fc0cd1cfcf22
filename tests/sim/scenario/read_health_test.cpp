// "health" of a queue: what is read, and what is refused how.
#include "sim/scenario/read_health.hpp"

#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json queue_with_health() {
  return Json::parse(R"({
    "cluster": {"node": "dgx_h100", "nodes": 20},
    "queue": {
      "order": "fifo", "admission": "strict", "reliability": "meta_rsc1",
      "health": {
        "drains": [{"hosts": "n[2,5]", "at": "1 h", "lasts": "2 h", "deadline": "30 min"},
                   {"first": 7, "nodes": 2, "at": "1 d", "lasts": "1 h"}],
        "lemons": {"share": 0.05, "times": 20},
        "detection": {"failures": 3, "within": "7 d", "repair": "3 d"},
        "burn_in": "6 h"
      },
      "jobs": [{"job": {"name": "a", "runs": "1 h", "gpus": 8}}]
    }
  })");
}

QueueSpec health_spec_of(const Json& scenario) {
  return read_queue(JsonCursor::parse("t.json", scenario.dump()), test::presets());
}

}  // namespace

TEST_CASE("health: what a scenario says is what the simulation gets") {
  const QueueHealth health = health_spec_of(queue_with_health()).health;
  REQUIRE(health.drains.size() == 2);
  CHECK(health.drains[0].nodes == std::vector{1, 4});
  CHECK(health.drains[0].deadline == to_run_time(Seconds{1800}));
  CHECK(health.drains[1].nodes == std::vector{7, 8});
  CHECK(!health.drains[1].deadline);
  CHECK(health.lemons.times == 20);
  CHECK(health.detection.failures == 3);
  CHECK(health.detection.repair == to_run_time(Seconds{3 * 86'400}));
  CHECK(health.burn_in == to_run_time(Seconds{6 * 3600}));
}

TEST_CASE("health: mistakes are told by place, with what is allowed") {
  const auto says = [](const auto& change, const std::string& text) {
    Json scenario = queue_with_health();
    change(scenario["queue"]);
    std::string message = "nothing";
    try {
      (void)health_spec_of(scenario);
    } catch (const InputError& error) {
      message = error.what();
    }
    CHECK_MESSAGE(message.find(text) != std::string::npos, message);
  };
  says([](Json& q) { q["health"]["drains"][0]["hosts"] = "n21"; },
       "t.json#/queue/health/drains/0/hosts");
  says([](Json& q) { q["health"]["drains"][1]["nodes"] = 20; }, "the cluster, which has 20");
  says([](Json& q) { q["health"]["drains"][0].erase("lasts"); }, "lasts");
  says([](Json& q) { q["health"]["lemons"]["share"] = 0.02; }, "a node at least of 20");
  says([](Json& q) { q.erase("reliability"); }, "t.json#/queue/health/lemons");
  says(
      [](Json& q) {
        q.erase("reliability");
        q["health"].erase("lemons");
      },
      "t.json#/queue/health/detection");
  says(
      [](Json& q) {
        q.erase("reliability");
        q["health"] = {{"burn_in", "1 h"}};
      },
      "0 s where no node breaks and none is drained");
  says([](Json& q) { q["health"]["detection"].erase("within"); }, "within");
  says([](Json& q) { q["health"]["burnin"] = "1 h"; }, "burn_in");
  says(
      [](Json& q) {
        q["elastic"] = {{"policy", "goodput"}};
        q["admission"] = "best_effort";
        q["jobs"][0]["job"]["widths"] = {{{"gpus", 8}, {"speed", 1}}};
      },
      "fixed or shrink beside");
}

}  // namespace lockstep
