// "campaigns" of a queue: what is read, what is refused and how.
#include <cstdint>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/cluster/job_speeds.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json searching_queue() {
  return Json::parse(R"({
    "cluster": {"node": "dgx_h100", "nodes": 4},
    "queue": {
      "order": "fifo", "admission": "best_effort",
      "campaigns": [{"name": "rate", "trials": 9, "most_at_once": 4,
                     "stopping": {"kind": "asha", "eta": 3, "least": "20 min"},
                     "job": {"runs": "9 h", "gpus": 8, "user": "ann", "limit": "10 h"}}]
    }
  })");
}

Json searching_with(const std::string& pointer, const Json& value) {
  Json out = searching_queue();
  out[Json::json_pointer(pointer)] = value;
  return out;
}

QueueSpec campaign_spec(const Json& scenario) {
  return read_queue(JsonCursor::parse("t.json", scenario.dump()), test::presets());
}

std::string campaign_error(const Json& scenario) {
  try {
    (void)campaign_spec(scenario);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("campaigns: a trial has a job for each rung, and that of the first is submitted") {
  const QueueSpec spec = campaign_spec(searching_queue());
  REQUIRE(spec.campaigns.size() == 1);
  REQUIRE(spec.brackets.size() == 1);
  CHECK(spec.campaigns[0].stopping == StoppingKind::asha);
  CHECK(spec.campaigns[0].whole == to_run_time(Seconds{9 * 3600}));
  CHECK(spec.brackets[0].ends.size() == 4);  // at 1/27, 1/9, 1/3 and 1
  CHECK(spec.arrays[0].most_running == 4);
  REQUIRE(spec.jobs.size() == 36);
  RunTime of_trial = 0;
  for (std::size_t j = 0; j < spec.jobs.size(); ++j) {
    const TrialPlace& place = *spec.place_of(j);
    CHECK(spec.jobs[j].submit == (place.rung == 0 ? 0 : kNotSubmitted));
    CHECK(spec.jobs[j].limit == to_run_time(Seconds{10 * 3600}));
    CHECK_FALSE(spec.jobs[j].cut);
    CHECK(spec.users[spec.jobs[j].user] == "ann");
    if (place.trial == 4) of_trial += spec.jobs[j].runs;
  }
  CHECK(of_trial == spec.campaigns[0].whole);
  CHECK(spec.jobs[0].runs == to_run_time(Seconds{1200}));
  CHECK(spec.job_name(4) == "rate_4");
  CHECK(spec.assumptions.back().find("which trial of rate is better is drawn") !=
        std::string::npos);
  const std::string share = "/queue/campaigns/0/stopping/least";
  CHECK(campaign_spec(searching_with(share, 0.1)).jobs[0].runs == to_run_time(Seconds{3240}));
}

TEST_CASE("campaigns: rungs end where they are said to, and none in the last tenth") {
  CHECK(rung_ends(0.25, 2) == std::vector<double>{0.25, 0.5, 1});
  CHECK(rung_ends(0.25, 4) == std::vector<double>{0.25, 1});
  CHECK(rung_ends(0.31, 3) == std::vector<double>{0.31, 1});
  CHECK(rung_ends(0.5, 3) == std::vector<double>{0.5, 1});
  CHECK(rung_ends(1e-6, 2).size() == kMostRungs);
}

TEST_CASE("campaigns: hyperband's brackets share the trials, and the last one has one rung") {
  Json scenario = searching_with("/queue/campaigns/0/stopping",
                                 {{"kind", "hyperband"}, {"eta", 10}, {"least", 1e-6}});
  scenario["queue"]["campaigns"][0]["trials"] = 100;
  const QueueSpec spec = campaign_spec(scenario);
  REQUIRE(spec.brackets.size() == 7);
  std::uint32_t next = 0;
  for (std::size_t b = 0; b < spec.brackets.size(); ++b) {
    CHECK(spec.brackets[b].ends.size() == 7 - b);
    CHECK(spec.brackets[b].first == next);
    next += spec.brackets[b].trials;
  }
  CHECK(next == 100);
}

TEST_CASE("campaigns: a training's rungs are shares of its steps") {
  Json scenario = searching_queue();
  Json& campaign = scenario["queue"]["campaigns"][0];
  campaign.erase("job");
  campaign["stopping"]["least"] = 0.1;
  campaign["training"] = Json::parse(R"({
    "name": "small", "nodes": 1, "steps": 1000, "model": "llama3_8b",
    "parallelism": {"tensor": 8, "data": 1},
    "batch": {"sequences": 8, "micro": 1, "tokens": 4096}, "recompute": "full",
    "stack": "megatron_core"})");
  QueueSpec spec = campaign_spec(scenario);
  REQUIRE(spec.trainings.size() == 1);
  REQUIRE(spec.jobs.size() == 27);  // rungs at 0.1, 0.3 and 1
  time_trainings(spec, true);
  const double step_s = spec.trainings[0].reference_step.base_units();
  CHECK(step_s > 0);
  CHECK(to_seconds(spec.campaigns[0].whole).base_units() == doctest::Approx(1000 * step_s));
  CHECK(to_seconds(spec.jobs[0].runs).base_units() == doctest::Approx(100 * step_s));
  Json timed = scenario;
  timed["queue"]["campaigns"][0]["stopping"]["least"] = "1 min";
  CHECK(campaign_error(timed).find("t.json#/queue/campaigns/0/stopping/least: found \"1 min\"; "
                                   "allowed: a share of a trial") == 0);
  Json counted = scenario;
  counted["queue"]["campaigns"][0]["training"]["count"] = 3;
  CHECK(campaign_error(counted).find("/queue/campaigns/0/training/count") != std::string::npos);
}

TEST_CASE("campaigns: mistakes are told with their place and what is allowed") {
  const auto says = [](const Json& scenario, const std::string& text) {
    const std::string message = campaign_error(scenario);
    CHECK_MESSAGE(message.find(text) != std::string::npos, message);
  };
  const std::string at = "/queue/campaigns/0";
  says(searching_with(at + "/stopping/kind", "ahsa"),
       "t.json#/queue/campaigns/0/stopping/kind: found \"ahsa\"");
  says(searching_with(at + "/stopping/kind", "ahsa"), "Did you mean \"asha\"?");
  says(searching_with(at + "/stopping/leest", 0.1), "Did you mean \"least\"?");
  says(searching_with(at + "/stopping/eta", 1), "t.json#/queue/campaigns/0/stopping/eta: found 1");
  says(searching_with(at + "/stopping/least", 0.95), "/stopping/least: found 0.95");
  says(searching_with(at + "/stopping/least", "9 h"), "/stopping/least: found \"9 h\"");
  says(searching_with(at + "/stopping", {{"kind", "asha"}}), "without \"least\"");
  says(searching_with(at + "/trials", 0), "t.json#/queue/campaigns/0/trials: found 0");
  says(searching_with(at + "/training", Json::object()), "either \"job\" or \"training\"");
  says(searching_with(at + "/job/name", "x"), "t.json#/queue/campaigns/0/job");
  says(searching_with(at + "/job/gpus", 64),
       "t.json#/queue/campaigns: found job rate_0 of 64 GPUs");
  says(searching_with("/queue/snapshot", "1 h"), "t.json#/queue/snapshot");
  Json twice = searching_queue();
  twice["queue"]["campaigns"].push_back(twice["queue"]["campaigns"][0]);
  says(twice, "t.json#/queue/campaigns/1/name: found \"rate\"; allowed: a name that no other");
  Json few = searching_with(at + "/stopping", {{"kind", "hyperband"}, {"least", 1e-3}});
  few["queue"]["campaigns"][0]["trials"] = 4;
  says(few, "t.json#/queue/campaigns/0/trials: found 4; allowed: at least 7");
  Json without = searching_queue();
  without["queue"].erase("campaigns");
  says(without, "found an object without \"jobs\"");
  Json later = searching_queue();
  later["queue"]["jobs"] =
      Json::parse(R"([{"job": {"name": "final", "runs": "1 h", "dependency": "afterok:raet"}}])");
  says(later, "Did you mean \"rate\"?");
}

TEST_CASE(
    "campaigns: without stopping its other keys say nothing, so that the kind can be varied") {
  Json scenario = searching_with("/queue/campaigns/0/stopping/kind", "none");
  const QueueSpec spec = campaign_spec(scenario);
  CHECK(spec.jobs.size() == 9);
  CHECK(spec.jobs[0].runs == to_run_time(Seconds{9 * 3600}));
}

}  // namespace lockstep
