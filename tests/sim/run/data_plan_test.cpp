// The dataset of a run: staged, read over and over, and paid for by the month.
#include "sim/run/data_plan.hpp"

#include <doctest/doctest.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/site/finance.hpp"
#include "sim/run/plan_campaign.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/search/evaluate_plan.hpp"
#include "sim/search/read_plan.hpp"
#include "tests/support/presets.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kDatasetTokens = 64 * 2048;  // of a step

/// A job of 1,000 steps that reads 1e15 bytes; its dataset is a quarter of that.
Json fed_scenario() {
  Json out = Json::parse(R"({
    "model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 8},
    "parallelism": {"data": 64, "sharding": "zero1"},
    "batch": {"sequences": 64, "micro": 1, "tokens": 2048},
    "recompute": "full", "stack": "megatron_core",
    "run": {"reliability": "llama3_54_days",
            "data": {"dataset": 2.5e14,
                     "storage": {"read": "10000 GB/s", "write": "20 GB/s"},
                     "tiers": [
                       {"name": "archive", "read": "5 GB/s", "first_byte": "2 h",
                        "usd_per_gb_month": 0.001, "usd_per_gb_read": 0.01},
                       {"name": "objects", "read": "50 GB/s", "write": "10 GB/s",
                        "first_byte": "1 s", "usd_per_gb_month": 0.02}],
                     "usd_per_gb_month": 0.1}}
  })");
  out["training"] = {{"tokens", 1000 * kDatasetTokens}};
  out["run"]["data"]["bytes_per_token"] = 1e15 / (1000 * kDatasetTokens);
  return out;
}

CampaignPlan planned_feed(const Json& scenario) {
  const JobFile job = read_job_file("t.json", scenario.dump(), presets());
  return plan_campaign(complete_measured(job.draft, presets(), {}), *job.run);
}
std::string data_mistake(const char* pointer, const Json& value) {
  Json scenario = fed_scenario();
  scenario["run"]["data"][Json::json_pointer(pointer)] = value;
  try {
    (void)planned_feed(scenario);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

/// Bytes that the job of fed_scenario() reads at full speed.
double needed_bytes_per_s(const CampaignPlan& plan) { return 1e12 / plan.step_s; }

}  // namespace

TEST_CASE("dataset: staged before, hop after hop, or during, with the first bytes") {
  Json scenario = fed_scenario();
  const CampaignPlan plan = planned_feed(scenario);
  REQUIRE(plan.data);
  const DataPlan& before = *plan.data;
  // 2.5e14 bytes at 5 GB/s, then at 20 GB/s.
  CHECK(before.begins.base_units() == doctest::Approx(7200 + 50'000 + 1 + 12'500));
  CHECK(before.epochs == doctest::Approx(4));
  CHECK(plan.data_speed == 1);
  CHECK(before.limit() == DataLimit::none);

  scenario["run"]["data"]["staging"] = "during";
  const CampaignPlan overlapped = planned_feed(scenario);
  CHECK(overlapped.data->begins.base_units() == doctest::Approx(7201));
  const double first = 5e9 / needed_bytes_per_s(overlapped);
  REQUIRE(first < 1);
  CHECK(overlapped.data->first.speed == doctest::Approx(first));
  CHECK(overlapped.data->first.limit == DataLimit::staging);
  CHECK(overlapped.data->later.limit == DataLimit::none);
  CHECK(overlapped.data_speed == doctest::Approx(4 / (1 / first + 3)));
  // A job that reads more slowly than its data arrives waits for the first bytes alone.
  scenario["run"]["data"]["tiers"][0]["read"] = "10000 GB/s";
  scenario["run"]["data"]["tiers"][1]["read"] = "10000 GB/s";
  scenario["run"]["data"]["tiers"][1]["write"] = "10000 GB/s";
  scenario["run"]["data"]["storage"]["write"] = "10000 GB/s";
  CHECK(planned_feed(scenario).data_speed == 1);
}

TEST_CASE("dataset: a run that reads a part of it makes less than one pass") {
  Json scenario = fed_scenario();
  scenario["run"]["data"]["dataset"] = 1e16;
  CHECK(planned_feed(scenario).data->epochs == doctest::Approx(0.1));
  CHECK(planned_feed(scenario).data_speed == 1);
}

TEST_CASE("dataset: later passes come from the nodes' drives as far as it fits") {
  Json scenario = fed_scenario();
  Json& data = scenario["run"]["data"];
  const double needed = needed_bytes_per_s(planned_feed(scenario));
  data["storage"]["read"] = 0.25 * needed;
  data["cache"] = {{"per_node", 2.5e14 / 16}, {"read", needed}, {"write", needed}};
  const CampaignPlan half = planned_feed(scenario);
  CHECK(half.data->cached == doctest::Approx(0.5));
  CHECK(half.data->first.speed == doctest::Approx(0.25));
  CHECK(half.data->later.speed == doctest::Approx(0.5));
  CHECK(half.data->later.limit == DataLimit::storage);
  CHECK(half.data_speed == doctest::Approx(4 / (1 / 0.25 + 3 / 0.5)));
  // Of 4 passes one and three halves come from storage.
  CHECK(half.data_read_bytes_per_s == doctest::Approx(2.5 / 4 * half.data_speed * needed));
  data["cache"]["per_node"] = 2.5e14;
  const CampaignPlan whole = planned_feed(scenario);
  CHECK(whole.data->cached == 1);
  CHECK(whole.data->later.speed == 1);
  CHECK(whole.data_speed == doctest::Approx(4 / (4.0 + 3)));
  CHECK(whole.data->limit() == DataLimit::storage);
  // One pass finds nothing there.
  data["dataset"] = 2e15;
  CHECK(planned_feed(scenario).data->cached == 0);
}

TEST_CASE("dataset: CPUs that make too few batches hold the job back") {
  Json scenario = fed_scenario();
  const double tokens_per_s = kDatasetTokens / planned_feed(scenario).step_s;
  scenario["run"]["data"]["loader"] = {{"cores_per_node", 10},
                                       {"tokens_per_core_s", tokens_per_s / 80 * 0.75}};
  const CampaignPlan plan = planned_feed(scenario);
  CHECK(plan.data_speed == doctest::Approx(0.75));
  CHECK(plan.data->limit() == DataLimit::loader);
  CHECK(plan.campaign.step.base_units() == doctest::Approx(plan.step_s / 0.75));
}

TEST_CASE("dataset: tiers are paid from when bytes arrive until the end, and add up") {
  const DataPlan data = *planned_feed(fed_scenario()).data;
  REQUIRE(data.tiers.size() == 3);
  const Seconds end{2.5 * kMonthSeconds};
  // 2.5e5 GB for 2.5 months, and read once.
  double archive = 0;
  for (const double usd : tier_months(data.tiers[0], end)) archive += usd;
  CHECK(archive == doctest::Approx(2.5e5 * (2.5 * 0.001 + 0.01)).epsilon(1e-9));
  CHECK(tier_months(data.tiers[0], end)[0] == doctest::Approx(2.5e5 * 0.011));
  CHECK(tier_months(data.tiers[0], end)[2] == doctest::Approx(2.5e5 * 0.0005));
  const auto months = [](double s) { return s / kMonthSeconds; };
  const double expected = archive + 2.5e5 * 0.02 * (2.5 - 0) + 2.5e5 * 0.1 * (2.5 - months(57'200));
  CHECK(storage_usd(data, end) == doctest::Approx(expected).epsilon(1e-9));
}

TEST_CASE("dataset: a plan waits for staging, pays for tiers, and its months add up") {
  Json scenario = fed_scenario();
  scenario.erase("training");
  scenario["cost"] = {{"usd_per_gpu", 25000}, {"usd_per_kwh", 0.1}};
  Json plan{{"training", {{"tokens", 1e11}}},
            {"samples", 10},
            {"scenario", scenario},
            {"candidates", {{{"name", "a"}, {"pay", "own"}}}}};
  const auto outcome = [&] {
    return evaluate_plan(read_plan("p.json", plan.dump(), presets()), {}).results[0];
  };
  const PlanResult staged = outcome();
  double sum = 0, storage = 0;
  for (const PlanMonth& month : staged.months) {
    sum += month.usd();
    storage += month.storage_usd;
  }
  CHECK(sum == doctest::Approx(staged.expected.usd).epsilon(1e-9));
  CHECK(storage == doctest::Approx(staged.expected.storage_usd).epsilon(1e-9));
  CHECK(storage > 0);
  CHECK(staged.expected.before_s == doctest::Approx(69'701));
  Json& data = plan["scenario"]["run"]["data"];
  for (const char* key : {"tiers", "usd_per_gb_month"}) data.erase(key);
  const PlanResult there = outcome();
  CHECK(staged.expected.time_s - there.expected.time_s == doctest::Approx(69'701));
  CHECK(there.expected.storage_usd == 0);
}

TEST_CASE("dataset: mistakes name the place") {
  CHECK(data_mistake("/tiers/1/name", "archive")
            .starts_with("t.json#/run/data/tiers/1/name: found \"archive\"; allowed: a name that "
                         "no other"));
  CHECK(data_mistake("/staging", "after").starts_with("t.json#/run/data/staging: found \"after\""));
  CHECK(data_mistake("/loader", {{"cores_per_node", 0}, {"tokens_per_core_s", 1}})
            .starts_with("t.json#/run/data/loader/cores_per_node: found 0; allowed: "));
  CHECK(data_mistake("/cache", {{"per_node", "1 TB"}, {"read", "1 GB/s"}})
            .starts_with("t.json#/run/data/cache: found an object without \"write\""));
  Json scenario = fed_scenario();
  scenario["run"]["data"].erase("dataset");
  CHECK_THROWS_WITH_AS(planned_feed(scenario), doctest::Contains("an object without \"dataset\""),
                       InputError);
  scenario = fed_scenario();
  scenario["run"]["data"]["tiers"][1].erase("write");
  CHECK_THROWS_WITH_AS(planned_feed(scenario), doctest::Contains("an object without \"write\""),
                       InputError);
}

}  // namespace lockstep::test
