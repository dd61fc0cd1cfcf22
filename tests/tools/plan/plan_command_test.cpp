// `lockstep plan` against `lockstep run`, its mistakes, its schema and its examples; what it prints
// is in tests/golden/plan.test.
#include <algorithm>
#include <doctest/doctest.h>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/accuracy/prediction_interval.hpp"
#include "models/base/text_file.hpp"
#include "sim/search/compute_optimal.hpp"
#include "sim/search/plan_model.hpp"
#include "sim/search/plan_spec.hpp"
#include "sim/search/read_plan.hpp"
#include "sim/search/serving_plan.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/same_schema.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
using test::lockstep_with;

/// Two sizes of an own cluster, one that is rented with a tuned layout, one that is too small.
constexpr const char* kSmallPlan = R"({
  "training": {"tokens": 2e11},
  "limits": {"time": "60 d", "power": "100 kW", "usd": 400000},
  "samples": 20,
  "spares": "10 %",
  "uncertain": {"efficiency": {"low": 0.8, "high": 1.25}},
  "scenario": {
    "model": "llama3_8b",
    "batch": {"sequences": 128, "micro": 1, "tokens": 8192},
    "cost": {"usd_per_gpu": 25000, "usd_per_node": 60000, "usd_per_kwh": 0.1},
    "run": {
      "reliability": "llama3_54_days",
      "checkpoint": {"to": "storage", "interval": "30 min",
                     "storage": {"write": "10 GB/s", "read": "10 GB/s"}},
      "recovery": {"detects_crash": "1 min", "restarts": "5 min"},
      "spares": {"repair": "1 d"}
    }
  },
  "candidates": [
    {"name": "own", "pay": "own", "nodes": [2, 4],
     "scenario": {"cluster": {"node": "dgx_h100"},
                  "parallelism": {"tensor": 4, "sharding": "zero1"}}},
    {"name": "rented_|b|", "pay": "rent", "layout": "tuned", "nodes": [4],
     "scenario": {"cluster": {"node": "coreweave_hgx_h100"}, "price": {"usd_per_gpu_hour": 2.5}}},
    {"name": "too small", "pay": "own", "nodes": [1],
     "scenario": {"cluster": {"node": "dgx_a100_40gb"}, "parallelism": {"tensor": 1}}}
  ]
})";

std::string small_plan_with(const std::string& pointer, const Json& value) {
  Json plan = Json::parse(kSmallPlan);
  if (!pointer.empty()) plan[Json::json_pointer(pointer)] = value;
  return plan.dump();
}

/// What the reader says about the small plan with one value put in.
std::string mistake_of(const std::string& pointer, const Json& value) {
  try {
    (void)read_plan("plan.json", small_plan_with(pointer, value), test::presets());
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

Json plan_schema() {
  return Json::parse(read_text_file(LOCKSTEP_SOURCE_DIR "/scenarios/plan.schema.json"));
}

}  // namespace

TEST_CASE("plans: a number that --set gives a candidate without a unit is told, by its place") {
  const auto told = [](const std::vector<std::string>& assumptions, const std::string& note) {
    return std::ranges::find(assumptions, note + " (no unit given)") != assumptions.end();
  };
  const std::vector<std::string> sets{"candidates.0.scenario.run.recovery.restarts=150",
                                      "scenario.run.spares.repair=7200"};
  const PlanSpec plan = read_plan("plan.json", small_plan_with("", {}), test::presets(), sets);
  CHECK(told(plan.assumptions, "candidates.0.scenario.run.recovery.restarts: 150 s"));
  CHECK(told(plan.assumptions, "scenario.run.spares.repair: 2 h"));
  const std::string serving = LOCKSTEP_SOURCE_DIR "/scenarios/plans/serve-70b.json";
  const std::vector<std::string> slow{"scenario.serving.objectives.ttft_p99=2"};
  const ServingPlanSpec served = read_serving_plan(
      JsonCursor::parse(serving, read_text_file(serving), JsonStyle::plain, slow), test::presets());
  CHECK(told(served.assumptions, "scenario.serving.objectives.ttft_p99: 2 s"));
}

TEST_CASE("lockstep plan: a later phase that waits for its lot says so, kept lots begin with it") {
  const std::string plan = LOCKSTEP_SOURCE_DIR "/scenarios/plans/own-lots-then-refine.json";
  const test::Ran ran = test::lockstep_with({"plan", plan, "--set", "samples=10"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const std::string told = std::regex_replace(ran.out, std::regex("\\s+"), " ");
  CHECK(told.find(" of them until refinement has its machines)") != std::string::npos);
  CHECK(told.find("from day days of it waits money") != std::string::npos);
  // Its lot comes on day 60, the training before is done a fortnight earlier.
  CHECK(std::regex_search(told,
                          std::regex("refinement dgx_h100 256 [0-9.]+ % 45\\.. 2.\\.. 14\\..")));
  CHECK(std::regex_search(
      told, std::regex("more for the same machines machines, from day nodes used speed 75\\.")));
  // Machines that a later phase keeps do not come back in between: they lose value there.
  CHECK(told.find("the next phase goes on with these machines, from what they are worth") !=
        std::string::npos);
  CHECK(std::regex_search(told, std::regex("nodes energy staff interest lost value together")));
  CHECK(std::regex_search(told, std::regex("times USD worth at its end")));
  CHECK(std::regex_search(told, std::regex("times USD comes back")));  // of those nobody keeps
  // A node of a lot has its price with the lot.
  CHECK(told.find("own lots, refined on them by lot 0.08 USD") != std::string::npos);
}

TEST_CASE("lockstep plan: its point is what lockstep run says about the same job") {
  Json scenario = Json::parse(R"({
    "model": "llama3_70b", "cluster": {"node": "coreweave_hgx_h100", "nodes": 256},
    "parallelism": {"tensor": 8, "data": 256, "sharding": "zero1"},
    "batch": {"sequences": 2048, "tokens": 8192, "micro": 1}, "recompute": "full",
    "run": {"reliability": "llama3_54_days",
            "checkpoint": {"to": "storage", "interval": "30 min", "storage": "minio_nvme"}}})");
  const auto check = [&] {
    Json plan{{"training", {{"tokens", "15 T tokens"}}},
              {"samples", 10},
              {"scenario", scenario},
              {"candidates", {{{"name", "a"}, {"pay", "own"}}}}};
    Json run = scenario;
    run["training"] = plan["training"];
    const test::TemporaryFolder folder;
    const Json planned =
        Json::parse(
            lockstep_with({"plan", folder.write("plan.json", plan.dump()), "--format", "json"}).out)
            .at("candidates")[0];
    const Json ran = Json::parse(
        lockstep_with({"run", folder.write("run.json", run.dump()), "--format", "json"}).out);
    const auto same = [&](const Json& a, const Json& b) {
      CHECK(a.get<double>() == doctest::Approx(b.get<double>()).epsilon(1e-6));
    };
    same(planned.at("step_s"), ran.at("step_s"));
    same(planned.at("time_s").at("point"), ran.at("wall_s"));
    same(planned.at("interruptions"), ran.at("interruptions"));
    if (scenario.contains("power")) {
      same(planned.at("energy_j").at("point"), ran.at("energy_j"));
      same(planned.at("usd").at("point"), ran.at("owned_usd"));
    }
  };
  check();
  // Failures, recovery, power and prices with their own spread, and machines in reserve.
  scenario["run"]["spares"] = {{"hot", 13}, {"repair", "1 d"}};
  scenario["power"] = Json::object();
  scenario["cost"] = {{"usd_per_gpu", 25000}, {"usd_per_node", 60000}, {"usd_per_kwh", 0.1}};
  check();
}

TEST_CASE("lockstep plan: at a site it pays, emits and peaks as lockstep run does, hour by hour") {
  Json scenario = Json::parse(R"({
    "model": "llama3_8b", "batch": {"sequences": 128, "micro": 1, "tokens": 8192},
    "cluster": {"node": "dgx_h100", "nodes": 2}, "stack": "megatron_core", "recompute": "full",
    "parallelism": {"tensor": 4, "data": 4, "sharding": "zero1"},
    "power": {"site_limit": "1 MW"},
    "cost": {"usd_per_gpu": 25000, "usd_per_facility_w": 10, "usd_per_kwh": 0.1,
             "grams_per_kwh": 300},
    "run": {"reliability": {"modes": []}, "spares": {"hot": 0}, "trajectories": 1,
            "site": {"start": "2026-07-30T00:00", "demand_usd_per_kw_month": 15,
                     "weather": {"mean_celsius": 25, "yearly_kelvin": 0, "daily_kelvin": 10,
                                 "noise_kelvin": 0}}}})");
  const test::TemporaryFolder folder;
  const auto planned = [&] {
    const Json plan{{"training", {{"tokens", 1e11}}},
                    {"samples", 10},
                    {"spares", "0 %"},
                    {"scenario", scenario},
                    {"candidates", {{{"name", "a"}, {"pay", "own"}}}}};
    const std::string file = folder.write("plan.json", plan.dump());
    return Json::parse(lockstep_with({"plan", file, "--format", "json"}).out).at("candidates")[0];
  };
  const auto ran = [&] {
    Json run = scenario;
    run["training"] = {{"tokens", 1e11}};
    return Json::parse(
        lockstep_with({"run", folder.write("run.json", run.dump()), "--format", "json"}).out);
  };
  const auto near = [](const Json& a, const Json& b) {
    CHECK(a.get<double>() == doctest::Approx(b.get<double>()).epsilon(1e-9));
  };
  const auto agree = [&] {
    const Json plan = planned(), run = ran();
    const Json& expected = plan.at("expected");
    near(expected.at("time_s"), run.at("wall_s"));
    near(expected.at("energy_j"), run.at("energy_j"));
    CHECK(expected.at("energy_per_trillion_tokens_j").get<double>() ==
          doctest::Approx(10 * run.at("energy_j").get<double>()).epsilon(1e-9));
    near(expected.at("co2_t"), run.at("tonnes_co2"));
    near(expected.at("energy_usd"), run.at("site").at("grid_usd"));
    near(expected.at("demand_usd"), run.at("site").at("demand_usd"));
    near(expected.at("usd"), run.at("owned_usd"));
    return plan;
  };
  const double free_peak = agree().at("peak_w").at("point").get<double>();
  CHECK(free_peak > 20e3);
  // Two months have begun: each pays for its highest hour.
  CHECK(ran().at("site").at("months").size() == 2);
  Json& site = scenario["run"]["site"];
  site["battery"] = {{"energy_mwh", 0.02}, {"power", "5 kW"}};
  site["solar"] = "4 kW";
  site["latitude"] = 45;
  agree();
  site.erase("battery");
  site.erase("solar");
  site.erase("latitude");
  // What the grid does not give no meter reads, but for the swing within a step.
  site["limit"] = std::to_string(static_cast<int>(0.8 * free_peak)) + " W";
  CHECK(agree().at("peak_w").at("point").get<double>() < 0.9 * free_peak);
}

TEST_CASE("lockstep plan: beside lots a rent and other prices are refused, and spares are theirs") {
  Json plan = Json::parse(kSmallPlan);
  const auto read = [&] { return read_plan("plan.json", plan.dump(), test::presets()); };
  const auto mistake = [&]() -> std::string {
    try {
      (void)read();
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  };
  Json& own = plan["candidates"][0];
  own["nodes"] = Json::array({2});
  own["scenario"]["run"]["purchase"] = Json::parse(
      R"({"lots": [{"name": "a", "terms": "buy", "nodes": 2, "usd_per_node": 300000}]})");
  CHECK(mistake() ==
        "plan.json#/scenario/cost/usd_per_gpu: found 25000; allowed: none beside run.purchase: a "
        "lot's usd_per_node has its GPUs, network and building in it");
  plan["scenario"]["cost"] = {{"usd_per_kwh", 0.1}};
  plan["limits"].erase("usd");  // the other one that is owned has no price
  own["pay"] = "rent";
  CHECK(
      mistake() ==
      R"(plan.json#/candidates/0/pay: found "rent"; allowed: "own" beside "purchase", whose lots )"
      "say what is rented, at what price");
  own["pay"] = "own";
  // A tenth of two nodes is one: the first lot has none to spare.
  for (const int nodes : {2, 3}) {
    CAPTURE(nodes);
    own["scenario"]["run"]["purchase"]["lots"][0]["nodes"] = nodes;
    const PlanModel model = model_candidate(read().candidates[0]);
    CHECK(model.plan.campaign.spares.hot == nodes - 2);
    CHECK(model.power.holdings.nodes == doctest::Approx(nodes));
  }
}

TEST_CASE("lockstep plan: a mistake is told at its place in the plan") {
  const std::vector<std::pair<std::pair<std::string, Json>, std::string>> mistakes{
      {{"/candidates", Json::array()},
       "plan.json#/candidates: found an array; allowed: at least one candidate"},
      {{"/limits/tiem", 3},
       "plan.json#/limits/tiem: found the unknown key \"tiem\"; allowed: time, power, usd, "
       "confidence. Did you mean \"time\"?"},
      {{"/candidates/0/scenario/parallelism/tensor", 3},
       "plan.json#/candidates/0/scenario/parallelism/tensor: found 3; allowed: a divisor of 32 "
       "(attention heads of llama3_8b)"},
      {{"/scenario/batch/sequences", 0},
       "plan.json#/scenario/batch/sequences: found 0; allowed: a whole number from 1 to "
       "100000000"},
      {{"/scenario/run/duration", "3 d"},
       "plan.json#/scenario/run/duration: found a duration; allowed: none: a plan trains its "
       "tokens"},
      {{"/scenario/run/seed", 3},
       "plan.json#/scenario/run/seed: found 3; allowed: no such key: the plan's own \"seed\" is "
       "that of all candidates"},
      {{"/scenario/expect", {{"mfu", 0.4}}},
       "plan.json#/scenario/expect: found an object; allowed: no such key in a plan: \"limits\" "
       "say what its candidates keep"},
      {{"/uncertain", {{"price", {{"low", 2}, {"high", 1}}}}},
       "plan.json#/uncertain/price/high: found 1; allowed: at least \"low\", 2"},
      {{"/training/flops", 1e20},
       "plan.json#/training/flops: found 1e+20; allowed: either \"tokens\" or \"flops\""},
      {{"/candidates/1/name", "too small"},
       "plan.json#/candidates/2/name: found \"too small\"; allowed: a name that no other "
       "candidate has"},
      {{"/candidates/0/pay", "rent"},
       "plan.json#/candidates/0/pay: found \"rent\"; allowed: own, or a price: \"scenario\": "
       "{\"price\": {\"usd_per_gpu_hour\": ...}}"},
  };
  for (const auto& [change, message] : mistakes) {
    CHECK(mistake_of(change.first, change.second) == message);
  }
}

TEST_CASE("plan: the efficiency's interval is that of the layout which was found") {
  Json plan = Json::parse(kSmallPlan);
  plan.erase("uncertain");
  Json& candidate = plan["candidates"][1];
  // Published runs on Blackwell with all weights sharded went otherwise than those without.
  candidate["scenario"] = {{"cluster", {{"node", "gb200_nvl72"}, {"nodes", 1}}},
                           {"parallelism", {{"sharding", "zero3"}}},
                           {"stack", "megatron_core"},
                           {"price", {{"usd_per_gpu_hour", 2.5}}}};
  candidate.erase("nodes");
  plan["scenario"]["batch"]["sequences"] = 144;
  plan["candidates"] = Json::array({candidate});
  const PlanSpec spec = read_plan("plan.json", plan.dump(), test::presets());
  const PlanCandidate& tuned = spec.candidates.front();
  REQUIRE(tuned.intervals);
  const PlanModel model = model_candidate(tuned, tune_candidate(tuned, 1, {}));
  REQUIRE(model.impossible.empty());
  const PredictionInterval start = tuned.intervals->of(tuned.scenario).value();
  const PredictionInterval found = tuned.intervals->of(model.scenario).value();
  REQUIRE(start.high != found.high);
  const Distribution& efficiency = model.inputs[static_cast<std::size_t>(PlanInput::efficiency)];
  CHECK(efficiency.low == 1 / found.high);
  CHECK(efficiency.high == 1 / found.low);
  CHECK(model.accuracy.find(words_of(found)) != std::string::npos);
}

TEST_CASE("plan schema: it says what the reader declares, word for word") {
  std::string written = read_text_file(LOCKSTEP_SOURCE_DIR "/scenarios/plan.schema.json");
  const std::string_view shared = "scenario.schema.json#";
  for (std::size_t at = 0; (at = written.find(shared, at)) != std::string::npos; ++at) {
    written.replace(at, shared.size(), "#");
  }
  const Json properties = Json::parse(written).at("properties");
  const Json declared = plan_members_schema().at("properties");
  CHECK(declared.size() == 8);
  for (const auto& [key, member] : declared.items()) {
    test::check_same_schema(key, member, properties.at(key));
  }
}

TEST_CASE("plan schema: every object has exactly the keys that the reader knows") {
  const std::vector<std::pair<std::string, std::string>> places{
      {"", ""},
      {"/training", "/properties/training"},
      {"/limits", "/properties/limits"},
      {"/candidates/0", "/properties/candidates/items"},
      {"/uncertain", "/$defs/uncertain"},
      {"/uncertain/price", "/$defs/factor/anyOf/1"}};
  for (const auto& [place, schema] : places) {
    CAPTURE(place);
    Json plan = Json::parse(kSmallPlan);
    plan["uncertain"]["price"] = {{"low", 1}, {"likely", 1}, {"high", 2}, {"law", "triangular"}};
    plan[Json::json_pointer(place + "/zzz")] = 1;
    const std::string said = [&] {
      try {
        (void)read_plan("plan.json", plan.dump(), test::presets());
      } catch (const InputError& error) {
        CHECK(error.problem().pointer == place + "/zzz");
        return ", " + error.problem().allowed + ",";
      }
      return std::string{};
    }();
    std::size_t known = 1;
    const Json object = plan_schema().at(Json::json_pointer(schema));
    for (const auto& [key, member] : object.at("properties").items()) {
      CAPTURE(key);
      CHECK(said.find(", " + key + ",") != std::string::npos);
      known += key.size() + 2;
    }
    CHECK(said.size() == known);
  }
}

TEST_CASE("plan schema: names of laws, inputs and goals are those of the tables") {
  const Json schema = plan_schema();
  std::vector<std::string> laws, inputs, goals(kPlanGoals.begin(), kPlanGoals.end());
  for (const ScalingLaw& law : scaling_laws()) laws.emplace_back(law.name);
  for (const auto& [key, member] : schema["$defs"]["uncertain"]["properties"].items()) {
    inputs.push_back(key);
  }
  CHECK(schema["properties"]["training"]["properties"]["law"]["enum"] == Json(laws));
  CHECK(schema["properties"]["prefer"]["enum"] == Json(goals));
  REQUIRE(inputs.size() == kPlanInputs);
  for (std::size_t i = 0; i < kPlanInputs; ++i) CHECK(inputs[i] == plan_inputs()[i].name);
}

TEST_CASE("plan: a law or a budget of compute gives the tokens") {
  const auto tokens_with = [](const Json& training) {
    return read_plan("plan.json", small_plan_with("/training", training), test::presets())
        .training.tokens;
  };
  // 6 FLOP for each of 8.03 billion weights and each token.
  CHECK(tokens_with({{"flops", 1e22}}) == doctest::Approx(1e22 / 6 / 8'030'261'248.0));
  CHECK(tokens_with({{"law", "besiroglu_2024"}}) ==
        doctest::Approx(optimal_tokens(scaling_laws()[0], 8'030'261'248.0)));
}

TEST_CASE("plan: nodes in reserve are a share, or what the run says, or 5 %") {
  const auto reserve_of = [](Json plan, const char* without) {
    if (*without != 0) plan["scenario"]["run"].erase(without);
    return read_plan("plan.json", plan.dump(), test::presets()).candidates[1].run.spares.hot;
  };
  Json plan = Json::parse(kSmallPlan);
  plan["candidates"][0]["nodes"] = {2, 32};
  CHECK(reserve_of(plan, "") == 4);
  plan["candidates"][0]["spares"] = 0.5;
  CHECK(reserve_of(plan, "") == 16);
  plan["candidates"][0].erase("spares");
  plan.erase("spares");
  CHECK(reserve_of(plan, "spares") == 2);
  plan["scenario"]["run"]["spares"]["hot"] = 7;
  CHECK(reserve_of(plan, "") == 7);
}

TEST_CASE("plan: the examples that ship are read") {
  for (const char* name : {"train-70b-15t-tokens", "train-405b"}) {
    CAPTURE(name);
    const std::string path = std::string(LOCKSTEP_SOURCE_DIR "/scenarios/plans/") + name + ".json";
    const PlanSpec spec = read_plan(path, read_text_file(path), test::presets());
    CHECK(spec.candidates.size() >= 5);
    CHECK(spec.training.tokens >= 15e12);
  }
}

}  // namespace lockstep
