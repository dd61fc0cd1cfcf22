// ClusterQueues of a scenario: what is read, and what is refused how.
#include "sim/scenario/read_cluster_queues.hpp"

#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/scenario/read_queue.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json two_cluster_queues() {
  return Json::parse(R"({
    "cluster": {"node": "dgx_h100", "nodes": 4},
    "queue": {
      "order": "priority", "admission": "kueue", "preemption": {"mode": "kueue"},
      "cluster_queues": [
        {"name": "vision", "accounts": ["seg", "depth"], "nominal_gpus": 16, "cohort": "all",
         "borrowing_limit": 8, "lending_limit": 4, "strategy": "strict",
         "within_cluster_queue": "lower_or_newer_equal_priority", "reclaim_within_cohort": "any"},
        {"name": "language", "nominal_gpus": 16, "cohort": "all"}],
      "jobs": [{"job": {"name": "x", "runs": "1 h", "gpus": 8, "account": "language"}},
               {"job": {"name": "y", "runs": "1 h", "gpus": 8, "account": "depth"}}]
    }
  })");
}

QueueSpec kueue_from(const Json& scenario) {
  return read_queue(JsonCursor::parse("t.json", scenario.dump()), test::presets());
}

}  // namespace

TEST_CASE("cluster_queues: what a scenario says is what the simulation gets") {
  const QueueSpec spec = kueue_from(two_cluster_queues());
  REQUIRE(spec.cluster_queues.size() == 2);
  const ClusterQueue& vision = spec.cluster_queues[0];
  CHECK(vision.name == "vision");
  CHECK(vision.cohort == "all");
  CHECK(vision.accounts.size() == 2);
  CHECK(vision.nominal == 16);
  CHECK(vision.borrowing_limit == 8);
  CHECK(vision.lending_limit == 4);
  CHECK(vision.strategy == QueueingStrategy::strict);
  CHECK(vision.within == WithinClusterQueue::lower_or_newer_equal_priority);
  CHECK(vision.reclaim == ReclaimWithinCohort::any);
  const ClusterQueue& language = spec.cluster_queues[1];
  REQUIRE(language.accounts.size() == 1);
  CHECK(spec.accounts[language.accounts[0]] == "language");
  CHECK(language.borrowing_limit == -1);
  CHECK(language.lending_limit == -1);
  CHECK(language.strategy == QueueingStrategy::best_effort);
  CHECK_FALSE(language.preempts());
  CHECK(spec.jobs[0].account == language.accounts[0]);
}

TEST_CASE("cluster_queues: cohorts and fair sharing are read, and mistakes are told") {
  Json tree = two_cluster_queues();
  Json& queue = tree["queue"];
  queue["cohorts"] = Json::parse(R"([
    {"name": "all", "parent": "top", "nominal_gpus": 8, "borrowing_limit": 4, "lending_limit": 2,
     "weight": 0.5}, {"name": "top"}])");
  queue["fair_sharing"] = Json::object();
  queue["cluster_queues"][1]["weight"] = 3;
  const QueueSpec spec = kueue_from(tree);
  REQUIRE(spec.cohorts.size() == 2);
  CHECK(spec.cohorts[0].parent == "top");
  CHECK(spec.cohorts[0].nominal == 8);
  CHECK(spec.cohorts[0].borrowing_limit == 4);
  CHECK(spec.cohorts[0].lending_limit == 2);
  CHECK(spec.cohorts[0].weight == 0.5);
  CHECK(spec.cohorts[1].borrowing_limit == -1);
  CHECK(spec.cluster_queues[1].weight == 3);
  CHECK(spec.fair_sharing == std::vector{FairStrategy::less_than_or_equal_to_final_share,
                                         FairStrategy::less_than_initial_share});
  const auto says = [&](const std::string& pointer, const Json& value, const std::string& text) {
    Json scenario = tree;
    scenario[Json::json_pointer(pointer)] = value;
    std::string message = "nothing";
    try {
      (void)kueue_from(scenario);
    } catch (const InputError& error) {
      message = error.what();
    }
    CHECK_MESSAGE(message.find(text) != std::string::npos, message);
  };
  says("/queue/cohorts/1/parent", "all", "t.json#/queue/cohorts/0/parent");
  says("/queue/cohorts/1/name", "all", "t.json#/queue/cohorts/1/name");
  says("/queue/cohorts/0/parent", "", "no such key without a \"parent\"");
  says("/queue/cohorts/2", Json({{"name", "al"}}), "Did you mean \"all\"?");
  says("/queue/cohorts/0/weight", -1, "t.json#/queue/cohorts/0/weight");
  says("/queue/fair_sharing/strategies", Json::array(), "strategies");
  says("/queue/fair_sharing/strategies", {"less_than_initial_shar"}, "less_than_initial_share");
  says("/queue/fair_sharing/strategies",
       {"less_than_initial_share", "less_than_or_equal_to_final_share"},
       "both with less_than_initial_share last");
  tree["queue"].erase("fair_sharing");
  says("/queue/seed", 1, "no such key without \"fair_sharing\"");
}

TEST_CASE("cluster_queues: mistakes are told by place, with what is allowed") {
  const auto says = [](const std::string& pointer, const Json& value, const std::string& text) {
    Json scenario = two_cluster_queues();
    scenario[Json::json_pointer(pointer)] = value;
    std::string message = "nothing";
    try {
      (void)kueue_from(scenario);
    } catch (const InputError& error) {
      message = error.what();
    }
    CHECK_MESSAGE(message.find(text) != std::string::npos, message);
  };
  const std::string first = "/queue/cluster_queues/0/", second = "/queue/cluster_queues/1/";
  says(second + "name", "vision", "t.json#/queue/cluster_queues/1/name");
  says(second + "accounts", Json::array({"depth"}), "\"vision\" does");
  says(second + "accounts", Json::array(), "at least one account");
  says(first + "accounts/1", "seg", "each account once");
  says(first + "accounts/0", "", "the name of an account");
  says(first + "cohort", "", "no such key without a \"cohort\"");
  says(first + "lending_limit", 17, "at most 16");
  says(second + "borrow_within_cohort", true, "no such key without \"reclaim_within_cohort\"");
  says(first + "max_priority_threshold", 3, "no such key without \"borrow_within_cohort\"");
  says(first + "strategy", "strickt", "Did you mean \"strict\"?");
  says(first + "nominal_gpus", -1, "t.json#/queue/cluster_queues/0/nominal_gpus");
  says(first + "nominal", 1, "nominal_gpus");
  says("/queue/order", "fifo", "t.json#/queue/order");
  says("/queue/admission", "strict", "none unless \"admission\" is \"kueue\"");
  says("/queue/preemption/mode", "none", "t.json#/queue/cluster_queues/0/within_cluster_queue");
  says("/queue/preemption/mode", "evict", "none or kueue");
  says("/queue/preemption/exempt", "1 h", "no such key unless \"mode\"");
  says("/queue/cluster_queues", Json::array(), "at least one queue");
  says("/queue/jobs/1/job/account", "dept", "job y of account \"dept\"");
  says("/queue/jobs/1/job/account", "dept", "Did you mean \"depth\"?");

  Json plain = two_cluster_queues();
  plain["queue"]["preemption"] = {{"mode", "none"}};
  plain["queue"]["admission"] = "best_effort";
  CHECK_THROWS_WITH_AS((void)kueue_from(plain),
                       doctest::Contains("no such key unless \"admission\" is \"kueue\""),
                       InputError);
  plain = two_cluster_queues();
  plain["queue"]["cluster_queues"].erase(0);
  plain["queue"]["jobs"].erase(1);
  CHECK_THROWS_WITH_AS((void)kueue_from(plain), doctest::Contains("kueue with a queue that says"),
                       InputError);
  plain = two_cluster_queues();
  plain["queue"].erase("cluster_queues");
  CHECK_THROWS_WITH_AS((void)kueue_from(plain),
                       doctest::Contains(R"({"cluster_queues":[{"name":"team")"), InputError);
}

}  // namespace lockstep
