// Phases of a plan on machines that come in lots: of their own, or kept from the phase before.
#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/search/evaluate_plan.hpp"
#include "sim/search/read_plan.hpp"
#include "tests/support/presets.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kLotDay = 86'400;

/// A job of some twenty days on four nodes, without a failure.
Json lots_plan() {
  return Json::parse(R"({
    "training": {"tokens": 2e11},
    "samples": 10,
    "uncertain": {"efficiency": 1, "power": 1, "price": 1, "tariff": 1, "value_loss": 1,
                  "recovery": 1, "failure_rate": 1},
    "scenario": {
      "model": "llama3_8b",
      "cluster": {"node": "dgx_h100", "nodes": 4},
      "parallelism": {"tensor": 4, "sharding": "zero1"},
      "batch": {"sequences": 128, "micro": 1, "tokens": 8192},
      "cost": {"usd_per_kwh": 0.1},
      "run": {"reliability": {"modes": []}, "spares": {"hot": 0}, "trajectories": 1}
    },
    "candidates": [{"name": "a", "pay": "own"}]
  })");
}

Json lots_of(const char* lots) {
  Json out = Json::parse(R"({"interest": "8 %", "deposit": "30 %", "loses": "35 %",
                             "staff_usd_per_month": 30000})");
  out["lots"] = Json::parse(lots);
  return out;
}
const char* const kOwn = R"([{"name": "own", "terms": "buy", "nodes": 5, "lead_time": "7 d",
                              "usd_per_node": 300000},
                             {"name": "leased", "terms": "lease", "nodes": 1,
                              "usd_per_node": 300000, "term": "3 d", "lead_time": "20 d"}])";

PlanResult planned(const Json& plan) {
  const PlanSpec spec = read_plan("plan.json", plan.dump(), presets());
  return evaluate_plan(spec, {}).results.front();
}
std::string lots_mistake(const Json& plan) {
  try {
    (void)read_plan("plan.json", plan.dump(), presets());
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}
Json& purchase_in(Json& part) { return part["scenario"]["run"]["purchase"]; }

/// 1e11 tokens, and then as many on the same machines.
Json kept_plan() {
  Json plan = lots_plan();
  plan["training"]["tokens"] = 1e11;
  purchase_in(plan["candidates"][0]) = lots_of(kOwn);
  plan["candidates"][0]["then"] =
      Json::parse(R"([{"name": "more", "tokens": 1e11, "machines": "kept"}])");
  return plan;
}

double usd_of(const std::vector<PlanMonth>& months) {
  double sum = 0;
  for (const PlanMonth& month : months) sum += month.usd();
  return sum;
}

}  // namespace

TEST_CASE("phases on lots: two halves on kept machines pay what one training on them does") {
  Json whole = lots_plan();
  purchase_in(whole["candidates"][0]) = lots_of(kOwn);
  const PlanResult one = planned(whole), two = planned(kept_plan());
  REQUIRE(two.model.impossible.empty());
  REQUIRE(two.later.size() == 1);
  const PlanOutcome &a = one.expected, &b = two.expected;
  // Both halves round their last step up.
  constexpr double kStep = 1e-5;
  CHECK(b.time_s == doctest::Approx(a.time_s).epsilon(kStep));
  CHECK(b.energy_j == doctest::Approx(a.energy_j).epsilon(kStep));
  CHECK(b.usd == doctest::Approx(a.usd).epsilon(kStep));
  CHECK(b.write_off_usd == doctest::Approx(a.write_off_usd).epsilon(kStep));
  CHECK(b.running_usd == doctest::Approx(a.running_usd).epsilon(kStep));
  CHECK(b.rent_usd == doctest::Approx(a.rent_usd).epsilon(kStep));
  CHECK(usd_of(two.months) == doctest::Approx(b.usd).epsilon(1e-9));
  CHECK(two.usd.median == doctest::Approx(b.usd).epsilon(1e-9));
  // The second half buys nothing, and waits for nothing.
  CHECK(two.later.front().expected.capital.total_usd() == 0);
  CHECK(two.later.front().expected.before_s == 0);
  CHECK(two.first.before_s == doctest::Approx(7 * kLotDay));
}

TEST_CASE("phases on lots: machines that were ordered at once are waited for, or stand idle") {
  Json plan = lots_plan();
  plan["candidates"][0]["pay"] = "rent";
  plan["candidates"][0]["scenario"]["price"]["usd_per_gpu_hour"] = 2;
  plan["candidates"][0]["then"] = Json::parse(R"([{"name": "own", "tokens": 1e11, "pay": "own"}])");
  const auto with = [&](const char* lead_time) {
    Json changed = plan;
    purchase_in(changed["candidates"][0]["then"][0]) =
        lots_of((std::string(R"([{"name": "own", "terms": "buy", "nodes": 4, "usd_per_node": 300000,
                          "lead_time": ")") +
                 lead_time + "\"}]")
                    .c_str());
    return planned(changed);
  };
  const PlanResult late = with("60 d"), early = with("2 d");
  const double first = late.first.time_s;
  REQUIRE(first > 2 * kLotDay);
  REQUIRE(first < 60 * kLotDay);
  const PlanOutcome &waited = late.later.front().expected, &stood = early.later.front().expected;
  CHECK(waited.before_s == doctest::Approx(60 * kLotDay - first));
  CHECK(late.expected.time_s == doctest::Approx(60 * kLotDay + waited.run_s));
  CHECK(stood.before_s == 0);
  CHECK(early.expected.time_s == doctest::Approx(first + stood.run_s));
  // Nodes that stand before the run take energy and people, and lose value.
  CHECK(stood.energy_usd > waited.energy_usd);
  CHECK(stood.write_off_usd > waited.write_off_usd);
  CHECK(usd_of(late.months) == doctest::Approx(late.expected.usd).epsilon(1e-9));
  CHECK(usd_of(early.months) == doctest::Approx(early.expected.usd).epsilon(1e-9));
}

TEST_CASE("phases on lots: after lots a cloud pays its own, and the lots end with their phase") {
  Json plan = lots_plan();
  purchase_in(plan["candidates"][0]) = lots_of(kOwn);
  const PlanResult alone = planned(plan);
  plan["candidates"][0]["then"] = Json::parse(
      R"([{"name": "cloud", "tokens": 2e10, "pay": "rent",
           "scenario": {"price": {"usd_per_gpu_hour": 3}}}])");
  const PlanResult both = planned(plan);
  CHECK(both.first.usd == doctest::Approx(alone.expected.usd).epsilon(1e-12));
  const PlanOutcome& cloud = both.later.front().expected;
  CHECK(cloud.rent_usd == doctest::Approx(32 * 3 * cloud.run_s / 3600).epsilon(1e-9));
  CHECK(both.expected.usd == doctest::Approx(both.first.usd + cloud.usd).epsilon(1e-12));
}

TEST_CASE("plan on lots: its peak is that of the lots that come before it is done") {
  const auto peak = [](const char* lots) {
    Json plan = lots_plan();
    purchase_in(plan["candidates"][0]) = lots_of(lots);
    const PlanResult result = planned(plan);
    CHECK(result.model.power.site_peak.base_units() == doctest::Approx(result.expected.peak_w));
    CHECK(result.peak_w.high == doctest::Approx(result.expected.peak_w));
    return result.expected.peak_w;
  };
  const double all = peak(R"([{"name": "a", "terms": "buy", "nodes": 4, "usd_per_node": 1}])");
  const double one = peak(R"([{"name": "a", "terms": "buy", "nodes": 1, "usd_per_node": 1}])");
  CHECK(one < all / 3);
  // On four nodes it would be done before day 25, on one of them it is not.
  CHECK(peak(R"([{"name": "a", "terms": "buy", "nodes": 1, "usd_per_node": 1},
                 {"name": "b", "terms": "buy", "nodes": 3, "usd_per_node": 1,
                  "lead_time": "25 d"}])") == doctest::Approx(all));
}

TEST_CASE("plan on lots: a run on few of the job's nodes takes long, and is done") {
  Json plan = lots_plan();
  plan["scenario"]["cluster"]["nodes"] = 64;
  plan["scenario"]["batch"]["sequences"] = 256;
  plan["training"]["tokens"] = 1e10;
  purchase_in(plan["candidates"][0]) =
      lots_of(R"([{"name": "a", "terms": "buy", "nodes": 2, "usd_per_node": 1}])");
  const PlanResult result = planned(plan);
  CHECK(result.unfinished == 0);
  CHECK(result.expected.finished);
  const double work = result.model.plan.campaign.work.base_units();
  CHECK(result.expected.run_s > 10 * work);
  CHECK(result.expected.run_s ==
        doctest::Approx(work / result.model.fleet->steps.front().speed).epsilon(1e-3));
}

TEST_CASE("plan on lots: a last lot that ends too early is told by its key, and nothing is drawn") {
  Json plan = lots_plan();
  purchase_in(plan["candidates"][0]) =
      lots_of(R"([{"name": "a", "terms": "buy", "nodes": 4, "usd_per_node": 1, "until": "5 d"}])");
  const std::string why = planned(plan).model.impossible;
  CHECK(
      why.starts_with("has 0 nodes left from day 5 on; run.purchase.lots.0.until has to leave "
                      "the 1 node of a replica until all is trained: "));
}

TEST_CASE("plan on lots: of cases that are not done it is known how far they came, and for what") {
  Json plan = lots_plan();
  plan["training"]["tokens"] = 1e11;
  plan["uncertain"]["efficiency"] = Json::parse(R"({"low": 0.8, "high": 1.25})");
  plan["samples"] = 40;
  const auto with = [&](const std::string& until) {
    purchase_in(plan["candidates"][0]) = lots_of(
        (R"([{"name": "a", "terms": "on_demand", "nodes": 4, "usd_per_gpu_hour": 2)" + until + "}]")
            .c_str());
    return planned(plan);
  };
  const PlanResult all = with("");
  CHECK(all.unfinished == 0);
  CHECK_FALSE(all.given_up);
  // They go when the median is just done.
  const double day = 1.01 * all.expected.run_s / kLotDay;
  const PlanResult cut = with(", \"until\": \"" + std::to_string(day) + " d\"");
  CHECK(cut.expected.finished);
  CHECK(cut.expected.times.done == doctest::Approx(1));
  CHECK(cut.unfinished > 0.2);
  CHECK(cut.unfinished < 0.8);
  REQUIRE(cut.given_up);
  const PlanTimes& times = cut.given_up->times;
  CHECK(times.done < 1);
  CHECK(times.done > 0.7);
  // After that they wait for machines that never come, until they are given up.
  CHECK(times.missing_s == doctest::Approx(cut.given_up->run_s - day * kLotDay).epsilon(1e-3));
  double sum = 0;
  for (const double bucket : times.s) sum += bucket;
  CHECK(sum == doctest::Approx(cut.given_up->run_s));
}

TEST_CASE("phases on lots: the example that ships has the three ways") {
  const std::string path = LOCKSTEP_SOURCE_DIR "/scenarios/plans/own-lots-then-refine.json";
  const PlanSpec spec = read_plan(path, read_text_file(path), presets());
  REQUIRE(spec.candidates.size() == 3);
  std::vector<std::string> ways;
  for (const PlanCandidate& candidate : spec.candidates) {
    const PlanPhase& next = *candidate.then.front();
    const bool bought = candidate.run.purchase.has_value();
    ways.push_back(next.kept                  ? "kept"
                   : next.of.run.purchase     ? "bought later"
                   : bought && next.of.rented ? "rented later"
                                              : "");
  }
  CHECK(ways == std::vector<std::string>{"kept", "rented later", "bought later"});
}

TEST_CASE("phases on lots: what cannot be is one line") {
  Json plan = kept_plan();
  plan["candidates"][0]["scenario"]["run"].erase("purchase");
  CHECK(lots_mistake(plan).find("unless machines of the phase before come in lots") !=
        std::string::npos);
  plan = kept_plan();
  purchase_in(plan["candidates"][0]["then"][0]) = lots_of(kOwn);
  CHECK(lots_mistake(plan).find("no purchase beside \"machines\": \"kept\"") != std::string::npos);
  plan = kept_plan();
  plan["candidates"][0]["then"][0]["scenario"]["cluster"]["node"] = "dgx_h200";
  CHECK(lots_mistake(plan).find("the phase before's kind of node, dgx_h100") != std::string::npos);
  plan = kept_plan();
  plan["candidates"][0]["then"][0]["machines"] = "keep";
  CHECK(lots_mistake(plan).find("/then/0/machines: found \"keep\"; allowed: kept") !=
        std::string::npos);
  // The plan's own lots are there for one phase, unless it says otherwise.
  plan = lots_plan();
  purchase_in(plan) = lots_of(kOwn);
  plan["candidates"][0]["then"] = Json::parse(R"([{"name": "more", "tokens": 1e11}])");
  CHECK(lots_mistake(plan).find("\"machines\": \"kept\", or a \"purchase\" of its own") !=
        std::string::npos);
  plan = kept_plan();
  plan["candidates"][0]["then"][0]["pay"] = "rent";
  CHECK(lots_mistake(plan).find("\"own\" beside \"purchase\"") != std::string::npos);
}

}  // namespace lockstep::test
