// `lockstep plan`: what it prints and writes, its mistakes, its schema and its examples.
#include <algorithm>
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
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

TEST_CASE("lockstep plan: at a site with a limit it says which power is held and which is told") {
  const auto ran =
      lockstep_with({"plan", LOCKSTEP_SOURCE_DIR "/scenarios/plans/train-70b-demand-charge.json",
                     "--samples", "10", "--format", "json"});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  int said = 0;
  const Json answer = Json::parse(ran.out);
  for (const Json& assumed : answer.at("assumptions")) {
    said += assumed.get<std::string>().starts_with("run.site.limit: 1.3 MW or more");
  }
  CHECK(said == 1);
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

TEST_CASE("lockstep plan: machines that draw more lose pace where the grid's limit binds") {
  Json plan = Json::parse(kSmallPlan);
  plan["candidates"] = Json::array({plan["candidates"][0]});
  plan["candidates"][0]["nodes"] = {2};
  plan["samples"] = 10;
  plan["uncertain"] = {{"efficiency", 1}, {"power", {{"low", 0.9}, {"high", 1.2}}}};
  const test::TemporaryFolder folder;
  const auto power_bar = [&](const char* limit) {
    plan["scenario"]["run"]["site"] = {{"limit", limit}};
    const std::string file = folder.write("plan.json", plan.dump());
    const Json answer = Json::parse(lockstep_with({"plan", file, "--format", "json"}).out);
    for (const Json& bar : answer.at("candidates")[0].at("sensitivity")) {
      if (bar.at("input") == "power") return Json(bar);
    }
    return Json{};
  };
  const auto time = [](const Json& bar, const char* end) {
    return bar.at(end).at("time_s").get<double>();
  };
  const Json wide = power_bar("1 MW"), tight = power_bar("46 kW");
  CHECK(time(wide, "at_high") == time(wide, "at_low"));
  CHECK(time(tight, "at_high") > 1.01 * time(tight, "at_low"));
}

TEST_CASE("lockstep plan: storage and egress stand among the money, whose parts add up") {
  const Json data = Json::parse(R"({"bytes_per_token": 4, "dataset": "100 TB",
    "storage": {"read": "20 GB/s", "write": "20 GB/s"}, "usd_per_gb_month": 0.1})");
  const test::TemporaryFolder folder;
  const std::string file = folder.write("plan.json", small_plan_with("/scenario/run/data", data));
  const Json json = Json::parse(lockstep_with({"plan", file, "--format", "json"}).out);
  const Json& expected = json.at("candidates")[0].at("expected");
  double sum = 0;
  for (const char* part :
       {"write_off_usd", "running_usd", "rent_usd", "egress_usd", "storage_usd"}) {
    sum += expected.at(part).get<double>();
  }
  CHECK(expected.at("storage_usd").get<double>() > 0);
  CHECK(sum == doctest::Approx(expected.at("usd").get<double>()).epsilon(1e-9));
  const std::string table = lockstep_with({"plan", file}).out;
  CHECK(table.find(" storage\n") != std::string::npos);
  CHECK(table.find(" egress ") == std::string::npos);
  CHECK(lockstep_with({"plan", file, "-o", folder.path() + "/plan.md"}).exit == Exit::ok);
  CHECK(read_text_file(folder.path() + "/plan.md").find("| rent | storage |") != std::string::npos);
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

TEST_CASE("lockstep plan: without spares the wait for repairs is said beside the recommendation") {
  const test::TemporaryFolder folder;
  Json plan = Json::parse(kSmallPlan);
  const auto notes = [&] {
    const auto ran =
        lockstep_with({"plan", folder.write("plan.json", plan.dump()), "--format", "json"});
    CAPTURE(ran.err);
    return Json::parse(ran.out).at("notes").dump();
  };
  const std::string words = "of its time until there are enough healthy nodes, with none in";
  plan["scenario"]["run"]["reliability"] = {
      {"modes", {{{"name", "node"}, {"component", "node"}, {"mean_time", "20 d"}}}}};
  CHECK(notes().find(words) == std::string::npos);
  plan.erase("spares");  // those of "run" then: none, and each repair takes a day
  CHECK(notes().find(words) != std::string::npos);
}

TEST_CASE("lockstep plan: the limit of the candidates' own sites stands among the limits") {
  const test::TemporaryFolder folder;
  Json plan = Json::parse(kSmallPlan);
  plan["scenario"]["power"] = {{"site_limit", "90 kW"}};
  const auto limits = [&] {
    const std::string out =
        lockstep_with({"plan", folder.write("plan.json", plan.dump()), "--quiet"}).out;
    const std::size_t from = out.find("Limits");
    REQUIRE(from != std::string::npos);
    return out.substr(from, 150);
  };
  // 100 kW are the plan's, of own clusters; below that the site's own limit holds.
  CHECK(limits().find("90.0 kW of the site") != std::string::npos);
  plan.erase("limits");
  CHECK(limits().find("at most 90.0 kW of the site, in 90 % of all cases") != std::string::npos);
  plan["scenario"].erase("power");
  CHECK(limits().find("none") != std::string::npos);
}

TEST_CASE("lockstep plan --model: a plan in a line, written as a file that gives the same answer") {
  const test::TemporaryFolder folder;
  const std::string file = folder.path() + "/asked.json";
  const std::vector<std::string> question{
      "plan",   "--model", "llama3_8b", "--training", "200 B tokens", "--node", "dgx_h100",
      "--gpus", "64,128",  "--price",   "2",          "--usd",        "1000000"};
  const auto asked = [&](std::vector<std::string> more) {
    std::vector<std::string> words = question;
    words.insert(words.end(), {"--set", "samples=20"});
    words.insert(words.end(), more.begin(), more.end());
    return lockstep_with(words);
  };
  const test::Ran ran = asked({"--format", "json", "-o", file});
  REQUIRE_MESSAGE(ran.exit == Exit::ok, ran.err);
  const Json answer = Json::parse(ran.out);
  CHECK(answer.at("candidates").size() == 2);
  const Json written = Json::parse(read_text_file(file));
  CHECK(written.at("samples") == 20);
  CHECK(written.at("limits").at("usd") == 1000000);
  const test::Ran again = lockstep_with({"plan", file, "--format", "json"});
  REQUIRE_MESSAGE(again.exit == Exit::ok, again.err);
  for (std::size_t i = 0; i < 2; ++i) {
    CAPTURE(i);
    const Json& one = answer.at("candidates")[i];
    const Json same = Json::parse(again.out).at("candidates")[i];
    for (const char* member : {"name", "step_s", "time_s", "usd"}) {
      CHECK(same.at(member) == one.at(member));
    }
  }
  const test::Ran table = asked({});
  CHECK(table.out.find("Recommendation  Take dgx_h100, ") != std::string::npos);

  const std::string none = folder.path() + "/none.json";
  const test::Ran wrong = asked({"--set", "bogus=1", "-o", none});
  CHECK(wrong.exit == Exit::bad_input);
  CHECK(wrong.err.starts_with("command line#/bogus: found the unknown key"));
  CHECK_FALSE(std::filesystem::exists(none));
  const std::string page = folder.path() + "/plan.md";
  const test::Ran markdown = asked({"-o", page});
  CHECK(markdown.exit == Exit::bad_input);
  CHECK(markdown.err.find("beside --model; allowed: a .json file") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(page));
}

TEST_CASE("lockstep plan --model: its options stand neither without it nor beside a file") {
  CHECK(lockstep_with({"plan", "--time", "90 d"}).err ==
        "--time: found it without --model; allowed: beside --model\n");
  CHECK(lockstep_with({"plan", "my.json", "--node", "dgx_h100"}).err ==
        "--node: found it beside the plan my.json; allowed: beside --model, or --set\n");
  const test::Ran both = lockstep_with({"plan", "my.json", "--model", "llama3_8b"});
  CHECK(both.exit == Exit::bad_input);
  CHECK(both.err == "--model: found it beside the plan my.json; allowed: one of them\n");
}

TEST_CASE("lockstep plan --stack: every candidate runs it, whatever the plan says") {
  const test::TemporaryFolder folder;
  const auto days = [&](const Json& plan, std::vector<std::string> options = {}) {
    std::vector<std::string> words{"plan", folder.write("plan.json", plan.dump()), "--format",
                                   "json", "--quiet"};
    words.insert(words.end(), options.begin(), options.end());
    const test::Ran ran = lockstep_with(words);
    REQUIRE(ran.err == "");
    std::vector<double> out;
    const Json answer = Json::parse(ran.out);
    for (const Json& one : answer.at("candidates")) {
      if (one.contains("step_s")) out.push_back(one.at("step_s").get<double>());
    }
    REQUIRE(out.size() == 3);
    return out;
  };
  Json plan = Json::parse(kSmallPlan);
  const std::vector<double> plain = days(plan);
  plan["scenario"]["stack"] = "nemo";
  const std::vector<double> written = days(plan);
  CHECK(written != plain);
  // One candidate says another.
  plan["scenario"]["stack"] = "megatron_bridge";
  plan["candidates"][0]["scenario"]["stack"] = "megatron_core";
  CHECK(days(plan) != written);
  CHECK(days(plan, {"--stack", "nemo"}) == written);
  const std::string own = folder.write("own.json", R"({"preset": "nemo", "level": 1.5})");
  CHECK(days(plan, {"--stack", own}) != written);
}

TEST_CASE("lockstep plan: the answer adds up, and is the same for any number of threads") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("plan.json", kSmallPlan);
  const auto one = lockstep_with({"plan", file, "--format", "json", "-j", "1"});
  REQUIRE(one.exit == Exit::ok);
  CHECK(one.err.empty());
  CHECK(one.out == lockstep_with({"plan", file, "--format", "json", "-j", "3"}).out);
  const Json json = Json::parse(one.out);
  const Json& candidates = json.at("candidates");
  REQUIRE(candidates.size() == 4);
  CHECK(candidates[0].at("name") == "own, 16 GPUs");
  CHECK(candidates[2].at("tuned") == true);
  CHECK(candidates[3].at("possible") == false);
  CHECK(
      candidates[3].at("verdict").get<std::string>().starts_with("is impossible: it does not fit"));
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    const Json& expected = candidates[i].at("expected");
    const auto usd = [&](const char* part) { return expected.at(part).get<double>(); };
    CHECK(usd("write_off_usd") + usd("running_usd") + usd("rent_usd") ==
          doctest::Approx(usd("usd")));
    CHECK(usd("energy_usd") <= usd("running_usd"));
    CHECK((usd("capital_usd") > usd("write_off_usd")) == (candidates[i].at("pay") == "own"));
    CHECK((usd("rent_usd") > 0) == (candidates[i].at("pay") == "rent"));
    const Json& time = candidates[i].at("time_s");
    CHECK(time.at("p05") < time.at("p50"));
    CHECK(time.at("p50") < time.at("p95"));
    // Without failures it would take as long as its steps.
    const double work = 2e11 / (128.0 * 8192) * candidates[i].at("step_s").get<double>();
    CHECK(expected.at("time_s").get<double>() > work);
    CHECK(expected.at("time_s").get<double>() * expected.at("usd").get<double>() > 0);
    CHECK(work / expected.at("time_s").get<double>() ==
          doctest::Approx(candidates[i].at("goodput").get<double>()).epsilon(0.01));
  }
  // What one owns draws more power than its limit with twice the nodes.
  CHECK(candidates[0].at("chances").at("power") == 1);
  CHECK(candidates[2].at("power_limit_w").is_null());
}

TEST_CASE("lockstep plan: without prices no money, and the fewest GPUs in time decide") {
  const test::TemporaryFolder folder;
  Json plan = Json::parse(small_plan_with("", {}));
  plan["scenario"].erase("cost");
  plan["limits"].erase("usd");
  plan["candidates"].erase(1);  // the one that is rented
  const std::string file = folder.write("plan.json", plan.dump());
  const Json json = Json::parse(lockstep_with({"plan", file, "--format", "json"}).out);
  CHECK(json.at("prefer") == "gpus");
  const std::string recommended = json.at("recommendation");
  CHECK(recommended.find("USD") == std::string::npos);
  CHECK(recommended.find("is the one with the fewest GPUs that does") != std::string::npos);
  CHECK_FALSE(json.at("candidates")[0].contains("usd"));
  CHECK_FALSE(json.at("candidates")[0].at("expected").contains("usd"));
  const std::string report = folder.path() + "/plan.html", markdown = folder.path() + "/plan.md";
  const std::string table = lockstep_with({"plan", file, "--report", report}).out;
  CHECK(lockstep_with({"plan", file, "-o", markdown}).exit == Exit::ok);
  for (const std::string& text : {table, read_text_file(markdown)}) {
    CHECK(text.find("USD") == std::string::npos);
    CHECK(text.find("cheapest") == std::string::npos);
    CHECK(text.find("fewest") != std::string::npos);
  }
  bool named = false;
  for (const Json& assumed : json.at("assumptions")) {
    named = named || assumed.get<std::string>().starts_with(
                         "money: left out of the choice, as own, 16 GPUs has no prices "
                         "(cost.usd_per_gpu, ");
  }
  CHECK(named);

  plan["prefer"] = "money";
  const auto refused = lockstep_with({"plan", folder.write("money.json", plan.dump())});
  CHECK(refused.exit == Exit::bad_input);
  CHECK(refused.err.find("#/prefer: found \"money\"; allowed: time, energy or gpus") !=
        std::string::npos);
}

TEST_CASE("lockstep plan: without checkpoints, which is said beside the recommendation") {
  const test::TemporaryFolder folder;
  Json plan = Json::parse(kSmallPlan);
  const auto json_of = [&] {
    const auto ran =
        lockstep_with({"plan", folder.write("plan.json", plan.dump()), "--format", "json"});
    CAPTURE(ran.err);
    REQUIRE(ran.exit == Exit::ok);
    return Json::parse(ran.out);
  };
  CHECK(json_of().at("notes") == Json::array());
  plan["candidates"][0]["scenario"]["run"]["checkpoint"] = nullptr;  // as a merge patch: none
  const std::string some = json_of().at("notes")[0];
  CHECK(
      some.starts_with("No checkpoint is taken by own, 16 GPUs and own, 32 GPUs: every failure "
                       "starts the training again. "));
  const std::string file = folder.path() + "/plan.json", markdown = folder.path() + "/plan.md";
  const std::string table = lockstep_with({"plan", file}).out;
  const std::size_t note = table.find("\n  Note            No checkpoint is taken by own, 16 ");
  CHECK(note > table.find("\n  Recommendation"));
  CHECK(note < table.find("\n  Limits"));
  CHECK(lockstep_with({"plan", file, "-o", markdown}).exit == Exit::ok);
  CHECK(read_text_file(markdown).find("\n\nNo checkpoint is taken by") != std::string::npos);

  // Neither the failures nor the candidate that is impossible are a reason where nothing fails.
  plan["scenario"]["run"]["reliability"] = {{"modes", Json::array()}};
  CHECK(json_of().at("notes") == Json::array());
}

TEST_CASE("lockstep plan: the example of a missing \"run\" takes checkpoints") {
  const test::TemporaryFolder folder;
  Json plan = Json::parse(kSmallPlan);
  plan["scenario"].erase("run");
  const std::string line = lockstep_with({"plan", folder.write("a.json", plan.dump())}).err;
  const std::size_t example = line.find("such as {");
  REQUIRE(example != std::string::npos);
  plan["scenario"].update(Json::parse(line.substr(example + 8)));
  const auto ran = lockstep_with({"plan", folder.write("b.json", plan.dump()), "--format", "json"});
  CAPTURE(ran.err);
  REQUIRE(ran.exit == Exit::ok);
  const Json answer = Json::parse(ran.out);
  CHECK(answer.at("notes") == Json::array());
  CHECK(answer.at("candidates")[0].at("goodput") > 0.99);
}

TEST_CASE("lockstep plan: capital to be spent stands beside what is written off") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("plan.json", kSmallPlan);
  const Json json = Json::parse(lockstep_with({"plan", file, "--format", "json"}).out);
  const Json& expected = json.at("candidates")[0].at("expected");
  // 16 GPUs on two nodes, and one of two in reserve (10 %, rounded up).
  CHECK(expected.at("capital_usd").get<double>() == doctest::Approx(3 * (8 * 25'000 + 60'000)));
  CHECK(json.at("candidates")[0].at("gpu_nameplate_w") == 24 * 700);
  const std::string table = lockstep_with({"plan", file}).out;
  CHECK(table.find("capital to be spent") != std::string::npos);
  CHECK(table.find("nameplate") != std::string::npos);
}

TEST_CASE("lockstep plan: each input moves what it is about, and nothing else") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("plan.json", kSmallPlan);
  const Json json = Json::parse(lockstep_with({"plan", file, "--format", "json"}).out);
  const auto change = [](const Json& swing, const char* what) {
    return swing.at("at_high").at(what).get<double>() / swing.at("at_low").at(what).get<double>();
  };
  for (const Json& swing : json.at("candidates")[0].at("sensitivity")) {
    const std::string input = swing.at("input");
    CAPTURE(input);
    const double factor = swing.at("high").get<double>() / swing.at("low").get<double>();
    if (input == "price" || input == "tariff" || input == "power") {
      CHECK(change(swing, "time_s") == 1);
      CHECK(change(swing, "usd") > 1);
    }
    if (input == "power") CHECK(change(swing, "energy_j") == doctest::Approx(factor));
    if (input == "efficiency")
      CHECK(change(swing, "time_s") == doctest::Approx(1 / factor).epsilon(0.02));
    if (input == "failure_rate" || input == "recovery") CHECK(change(swing, "time_s") > 1);
  }
}

TEST_CASE("lockstep plan: table, CSV and Markdown have every candidate, names stay text") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("plan.json", kSmallPlan);
  const std::string table = lockstep_with({"plan", file}).out;
  const std::string csv = lockstep_with({"plan", file, "--format", "csv"}).out;
  CHECK(lockstep_with({"plan", file, "-o", folder.path() + "/plan.md"}).exit == Exit::ok);
  const std::string markdown = read_text_file(folder.path() + "/plan.md");
  for (const char* name : {"own, 16 GPUs", "own, 32 GPUs", "rented_|b|", "too small"}) {
    CAPTURE(name);
    CHECK(table.find(name) != std::string::npos);
    CHECK(csv.find(name) != std::string::npos);
  }
  CHECK(csv.find("candidate,pay,gpus,possible,mfu") == 0);
  CHECK(markdown.starts_with("# Plan: llama3"));
  CHECK(markdown.find("| rented\\_\\|b\\| | 32 |") != std::string::npos);
  CHECK(markdown.find("## Assumptions") != std::string::npos);
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

TEST_CASE("lockstep plan: what the plan and its candidates lack is named at once, at its place") {
  Json plan = Json::parse(kSmallPlan);
  plan.erase("training");
  plan["scenario"].erase("batch");
  plan["scenario"]["run"].erase("reliability");
  plan["candidates"][0].erase("pay");
  plan["candidates"][2]["scenario"].erase("cluster");
  const test::TemporaryFolder folder;
  const std::string file = folder.write("plan.json", plan.dump());
  const test::Ran ran = lockstep_with({"plan", file, "-o", folder.path() + "/answer.md"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.out.empty());
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/answer.md"));
  CHECK(ran.err.starts_with(file + ": found an object without "));
  for (const char* key : {"\"/training\"", "\"/scenario/batch\"", "\"/scenario/run/reliability\"",
                          "\"/candidates/0/pay\"", "\"/candidates/2/scenario/cluster\""}) {
    CAPTURE(ran.err);
    CHECK(ran.err.find(key) != std::string::npos);
  }
}

TEST_CASE("lockstep plan: samples that no memory holds are refused") {
  Json plan = Json::parse(kSmallPlan);
  plan["samples"] = 100'000;
  const test::TemporaryFolder folder;
  const std::string file = folder.write("plan.json", plan.dump());
  ::setenv("LOCKSTEP_MEMORY", "10 MB", 1);
  const test::Ran ran = lockstep_with({"plan", file});
  ::unsetenv("LOCKSTEP_MEMORY");
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.starts_with(file + "#/samples: found 100,000 samples of 4 candidates, which take"));
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

TEST_CASE("lockstep plan: regions side by side, and who is refused, in every form") {
  const std::string file = LOCKSTEP_SOURCE_DIR "/scenarios/plans/train-70b-three-regions.json";
  const auto answer = [&](const std::string& format) {
    return lockstep_with({"plan", file, "--samples", "10", "--format", format}).out;
  };
  const Json json = Json::parse(answer("json"));
  const Json& candidates = json.at("candidates");
  REQUIRE(candidates.size() == 8);
  CHECK(json.at("regions_compared").size() == 3);
  for (const Json& candidate : candidates) {
    const Json& region = candidate.at("region");
    CAPTURE(candidate.at("name"));
    CHECK(candidate.at("possible") == region.at("refused").is_null());
    if (!candidate.at("possible")) continue;
    CHECK(region.at("done").get<std::string>().starts_with("2027-"));
    double usd = 0;
    for (const Json& month : candidate.at("money_by_month")) usd += month.at("usd").get<double>();
    CHECK(usd == doctest::Approx(candidate.at("expected").at("usd").get<double>()).epsilon(1e-9));
  }
  CHECK(candidates[3].at("verdict").get<std::string>().starts_with("is refused: its data may be "));
  for (const std::string& text : {answer("table"), answer("markdown")}) {
    CAPTURE(text);
    CHECK(text.find("of it egress") != std::string::npos);
    CHECK(text.find("decided by energy ") != std::string::npos);
    CHECK(text.find("Mumbai is refused: its data may be in Frankfurt, Stockholm") !=
          std::string::npos);
  }
}

TEST_CASE("lockstep plan: who does not finish in some cases is told so, and has no longest time") {
  const test::TemporaryFolder folder;
  Json plan = Json::parse(kSmallPlan);
  plan["spares"] = 0;
  // One failure in ten days of some seventeen, and nobody comes back in ten times those.
  Json& run = plan["scenario"]["run"];
  run["reliability"] = {
      {"modes", {{{"name", "node"}, {"component", "node"}, {"mean_time", "20 d"}}}}};
  run["spares"]["repair"] = "3000 d";
  const std::string file = folder.write("plan.json", plan.dump());
  const std::string table = lockstep_with({"plan", file}).out;
  CAPTURE(table);
  CHECK(table.find("does not finish in ") != std::string::npos);
  CHECK(table.find(" days and up") != std::string::npos);
  const Json json = Json::parse(lockstep_with({"plan", file, "--format", "json"}).out);
  CHECK(json.at("candidates").at(0).at("unfinished_share") > 0.05);
}

TEST_CASE("lockstep plan: a price of a GPU-hour that no candidate rents at is refused") {
  Json plan = Json::parse(kSmallPlan);
  plan["candidates"].erase(1);
  plan["scenario"]["price"] = {{"usd_per_gpu_hour", 2.5}};
  const test::TemporaryFolder folder;
  const test::Ran ran = lockstep_with({"plan", folder.write("plan.json", plan.dump())});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(
      ran.err.find("#/scenario/price/usd_per_gpu_hour: found 2.5; allowed: no such price where no "
                   "candidate rents: \"pay\": \"rent\", or scenario.cost.usd_per_gpu") !=
      std::string::npos);
}

}  // namespace lockstep
