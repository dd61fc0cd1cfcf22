// Plans without a file: sizes that follow from a deadline, who pays how, and whose mistakes are
// whose.
#include "sim/search/ask_plan.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/search/ask.hpp"
#include "sim/search/read_plan.hpp"
#include "tests/support/presets.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

Json asked_plan(const PlanAsk& ask, const std::vector<std::string>& sets = {}) {
  return Json::parse(ask_plan(ask, sets, presets()));
}

std::string plan_error_of(const PlanAsk& ask) {
  try {
    (void)ask_plan(ask, {}, presets());
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

const PlanAsk kSmallPlanAsk{.model = "Llama3-8B",
                            .training = "1 T tokens",
                            .node = "dgx_h100,coreweave_hgx_h100",
                            .time = "30 d"};

}  // namespace

TEST_CASE("ask_plan: two sizes of each server follow from the deadline") {
  // 6 x 8.03e9 x 1e12 FLOP over 8 x 0.4 x 989e12 FLOP/s and 30 days: 5.9 nodes.
  const Json plan = asked_plan(kSmallPlanAsk);
  CHECK(plan["scenario"]["model"] == "llama3_8b");
  CHECK(plan["training"]["tokens"] == "1 T tokens");
  CHECK(plan["limits"] == Json{{"time", "30 d"}});
  REQUIRE(plan["candidates"].size() == 4);
  CHECK(plan["candidates"][0]["nodes"] == Json::array({8}));
  CHECK(plan["candidates"][0]["name"] == "dgx_h100, 64 GPUs");
  CHECK(plan["candidates"][1]["nodes"] == Json::array({16}));
  CHECK(plan["candidates"][2]["scenario"]["cluster"]["node"] == "coreweave_hgx_h100");
  CHECK(plan["about"].get<std::string>().find("at 40 % of the peak") != std::string::npos);
  // In a hundredth of the time a hundred times as many.
  PlanAsk soon = kSmallPlanAsk;
  soon.time = "0.3d";
  CHECK(asked_plan(soon)["candidates"][0]["nodes"] == Json::array({1024}));
}

TEST_CASE("ask_plan: what a deadline leaves open, memory decides") {
  // 18 B x 406e9 over 8 x 80 GiB: 10.6 nodes.
  const Json plan = asked_plan(
      {.model = "llama3_405b", .training = "1 B tokens", .node = "dgx_h100", .time = "1000 d"});
  CHECK(plan["candidates"][0]["nodes"] == Json::array({16}));
  CHECK(plan["candidates"][1]["nodes"] == Json::array({32}));
}

TEST_CASE("ask_plan: it is a plan, whose candidates pay what is known of their price") {
  const auto read = [](const PlanAsk& ask) {
    return read_plan(std::string(kAskedFile), ask_plan(ask, {}, presets()), presets());
  };
  const PlanSpec listed = read(kSmallPlanAsk);
  REQUIRE(listed.candidates.size() == 4);
  CHECK_FALSE(listed.candidates[0].rented);
  CHECK(listed.candidates[2].rented);
  CHECK(listed.goal == PlanGoal::gpus);  // not all have a price
  for (const PlanCandidate& candidate : listed.candidates) CHECK(candidate.tuned);
  PlanAsk priced = kSmallPlanAsk;
  priced.price = "2.5";
  priced.usd = "1000000";
  const PlanSpec all = read(priced);
  CHECK(all.goal == PlanGoal::money);
  CHECK(all.limits.usd == 1e6);
  for (const PlanCandidate& candidate : all.candidates) {
    CHECK(candidate.rented);
    CHECK(candidate.scenario.usd_per_gpu_hour == 2.5);
  }
}

TEST_CASE("ask_plan: each server may have a price of its own") {
  PlanAsk ask = kSmallPlanAsk;
  ask.price = "2.5,1.25";
  const PlanSpec plan = read_plan(std::string(kAskedFile), ask_plan(ask, {}, presets()), presets());
  REQUIRE(plan.candidates.size() == 4);
  CHECK(plan.candidates[1].scenario.usd_per_gpu_hour == 2.5);
  CHECK(plan.candidates[2].scenario.usd_per_gpu_hour == 1.25);
  CHECK(plan.candidates[3].scenario.usd_per_gpu_hour == 1.25);
}

TEST_CASE("ask_plan: a price that --set gives is one to rent at, as --price is") {
  const std::vector<std::string> sets{"scenario.price.usd_per_gpu_hour=2.5"};
  const PlanSpec plan =
      read_plan(std::string(kAskedFile), ask_plan(kSmallPlanAsk, sets, presets()), presets(), sets);
  CHECK(plan.goal == PlanGoal::money);
  for (const PlanCandidate& candidate : plan.candidates) {
    CHECK(candidate.rented);
    CHECK(candidate.scenario.usd_per_gpu_hour == 2.5);
  }
}

TEST_CASE("ask_plan: sizes that the batch does not divide have one of their own, unless --set") {
  const PlanAsk ask{
      .model = "llama3_8b", .training = "1 T", .node = "gb200_nvl72", .gpus = "72,128"};
  const Json plan = asked_plan(ask);
  CHECK_FALSE(plan.contains("limits"));
  CHECK(plan["scenario"]["batch"]["sequences"] == 1080);  // 15 x 72
  CHECK_FALSE(plan["candidates"][0]["scenario"].contains("batch"));
  CHECK(plan["candidates"][1]["nodes"] == Json::array({32}));
  CHECK(plan["candidates"][1]["scenario"]["batch"]["sequences"] == 1024);
  const Json set = asked_plan(ask, {"scenario.batch.sequences=2304"});
  CHECK_FALSE(set["candidates"][1]["scenario"].contains("batch"));
}

TEST_CASE("ask_plan: a mistake is told of the option that made it") {
  const auto with = [](std::string PlanAsk::* part, const char* text) {
    PlanAsk ask = kSmallPlanAsk;
    ask.*part = text;
    return plan_error_of(ask);
  };
  CHECK(with(&PlanAsk::training, "") ==
        "--model: found \"Llama3-8B\"; allowed: beside it --training TOKENS, as \"15 T tokens\"");
  CHECK(
      with(&PlanAsk::node, "") ==
      "--model: found \"Llama3-8B\"; allowed: beside it --node NAME,NAME: the servers to compare");
  CHECK(
      with(&PlanAsk::time, "") ==
      "--model: found \"Llama3-8B\"; allowed: beside it --time, such as \"90 d\", from which sizes "
      "follow, or --gpus N,N");
  CHECK(with(&PlanAsk::model, "llama3_9b").starts_with("--model: found \"llama3_9b\"; allowed: "));
  CHECK(with(&PlanAsk::node, "dgx_h100,dgx_h1000")
            .starts_with("--node: found \"dgx_h1000\"; allowed: "));
  CHECK(with(&PlanAsk::training, "many")
            .starts_with("--training: found \"many\"; allowed: a number above 0 with one of "));
  CHECK(with(&PlanAsk::time, "-3 d").starts_with("--time: found \"-3 d\"; allowed: "));
  CHECK(with(&PlanAsk::time, "1 us").starts_with("--time: found \"1 us\"; allowed: longer: "));
  CHECK(with(&PlanAsk::gpus, "64,12") ==
        "--gpus: found \"12\"; allowed: whole nodes of 8 GPUs: 8 or 16");
  CHECK(with(&PlanAsk::gpus, "4") == "--gpus: found \"4\"; allowed: whole nodes of 8 GPUs: 8");
  CHECK(with(&PlanAsk::price, "cheap") ==
        "--price: found \"cheap\"; allowed: a number of USD above 0");
  CHECK(with(&PlanAsk::price, "2,") == "--price: found \"\"; allowed: a number of USD above 0");
  CHECK(with(&PlanAsk::price, "2,3,4") ==
        "--price: found \"2,3,4\"; allowed: one price for all servers, or 2, one for each of "
        "--node");
  CHECK(with(&PlanAsk::usd, "1e6") ==
        "--usd: found \"1e6\"; allowed: beside a price of dgx_h100, which has none of its own: "
        "--price USD, of a GPU and hour");
}

}  // namespace lockstep::test
