// Services in several places: where requests go, what the way there takes, and what adds up.
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <numeric>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/read_serving.hpp"
#include "sim/serving/region_router.hpp"
#include "sim/serving/simulate_serving.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// A second for each prompt.
class RegionClock final : public PassClock {
 public:
  ServingPass pass(const PassLoad& load) override {
    ServingPass out;
    out.prompts = Seconds{1.0 * load.prompts};
    return out;
  }
};

constexpr RunTime kAwaySecond = to_run_time(Seconds{1});

/// Two regions of a replica each, and users who are 2 s away from the first and 6 s from the other.
ServePlan plan_of_regions(PassClock& clock, std::uint32_t spill) {
  ServePlan plan;
  plan.serving.clock = &clock;
  plan.serving.replicas = 2;
  plan.serving.rules = {.pass_tokens = 1 << 30, .most_sequences = 1, .cache_tokens = 1e9};
  plan.regions = {.first = {0, 1, 2},
                  .users = {{{0, 1}, {2 * kAwaySecond, 6 * kAwaySecond}},
                            {{0}, {2 * kAwaySecond, std::nullopt}}},
                  .spill = spill};
  return plan;
}

std::vector<ServedRequest> at_once(int count, std::int32_t population) {
  return std::vector<ServedRequest>(static_cast<std::size_t>(count),
                                    ServedRequest{.input = 10, .population = population});
}

double whole_s(const ServedRequest& r) { return to_seconds(r.end_to_end()).base_units(); }

/// Users of two continents and replicas in two regions.
Json two_regions() {
  return Json::parse(R"({
    "model": "llama3_8b",
    "cluster": {"node": "dgx_h100", "nodes": 3, "fabric": "rail_optimised"},
    "serving": {
      "load": {"rate": 30, "requests": 3000, "input": {"mean": 800, "sigma": 0.5},
               "output": {"mean": 100, "sigma": 0.5},
               "populations": [
                 {"name": "Europe", "share": 1, "latency": {"Frankfurt": "20 ms"},
                  "objectives": {"ttft": "1 s"}},
                 {"name": "America", "share": 2,
                  "latency": {"Virginia": "40 ms", "Frankfurt": "100 ms"}}]},
      "pools": {"both": {}},
      "regions": [{"name": "Frankfurt", "replicas": 8, "usd_per_kwh": 0.2, "grams_per_kwh": 400},
                  {"name": "Virginia", "replicas": 16, "usd_per_gpu_hour": 2}],
      "region_spill": 1
    },
    "power": {}, "cost": {"usd_per_kwh": 0.1, "grams_per_kwh": 300, "usd_per_gpu": 25000},
    "price": {"usd_per_gpu_hour": 3}
  })");
}

ServingSpec regions_spec(const Json& scenario) {
  return read_serving(JsonCursor::parse("r.json", scenario.dump()), test::presets());
}

std::string regions_message(const Json& scenario) {
  try {
    (void)regions_spec(scenario);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE(
    "regions: a request is on its way there and back, and the next region takes what spills") {
  RegionClock clock;
  std::vector<ServedRequest> requests = at_once(3, 0);
  const ServeResult result = serve(plan_of_regions(clock, 1), requests);
  // The nearest, the next one, and then the one with the fewest: of equal ones the nearest.
  CHECK(whole_s(requests[0]) == 3);
  CHECK(whole_s(requests[1]) == 7);
  CHECK(whole_s(requests[2]) == 4);
  CHECK(requests[0].scheduled == kAwaySecond);
  REQUIRE(result.regions.size() == 2);
  CHECK(result.regions[0].passes == 2);
  CHECK(result.regions[1].passes == 1);
}

TEST_CASE("regions: requests of users with one region wait there, whatever others have free") {
  RegionClock clock;
  std::vector<ServedRequest> requests = at_once(5, 1);
  (void)serve(plan_of_regions(clock, 1), requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    CHECK(requests[i].replica == 0);
    CHECK(whole_s(requests[i]) == 3 + static_cast<double>(i));
  }
}

TEST_CASE("regions: a replica that dies while a request is on its way has it sent on") {
  RegionClock clock;
  ServePlan plan = plan_of_regions(clock, 1);
  plan.serving.life.planned = {{.at = kAwaySecond / 2, .replica = 0}};
  plan.serving.life.down = 1000 * kAwaySecond;
  plan.detect = 4 * kAwaySecond;
  std::vector<ServedRequest> requests = at_once(1, 0);
  const ServeResult result = serve(plan, requests);
  CHECK(result.retried == 1);
  CHECK(requests[0].replica == 1);
  // There in vain, noticed, there and back of the other.
  CHECK(whole_s(requests[0]) == 1 + 4 + 7);
}

TEST_CASE("regions: one region at no distance is the service in one place") {
  Json placed = two_regions();
  Json& serving = placed["serving"];
  serving["regions"] = Json::parse(R"([{"name": "Frankfurt", "replicas": 24}])");
  for (Json& users : serving["load"]["populations"]) {
    users["latency"] = Json::parse(R"({"Frankfurt": 0})");
  }
  Json alone = placed;
  alone["serving"].erase("regions");
  alone["serving"].erase("region_spill");
  alone["serving"]["pools"]["both"]["replicas"] = 24;
  for (Json& users : alone["serving"]["load"]["populations"]) users.erase("latency");
  ServingSpec a = regions_spec(placed), b = regions_spec(alone);
  const ServingReport there = simulate_serving(a), here = simulate_serving(b);
  CHECK(there.figures.ttft_s.p99 == here.figures.ttft_s.p99);
  CHECK(there.figures.e2e_s.mean == here.figures.e2e_s.mean);
  CHECK(there.attained == here.attained);
  CHECK(there.power->joules_per_token == test::near(here.power->joules_per_token).epsilon(1e-12));
  CHECK(there.power->cost.total_usd() == test::near(here.power->cost.total_usd()).epsilon(1e-12));
  CHECK(there.rent->usd == test::near(here.rent->usd).epsilon(1e-12));
}

TEST_CASE("regions: requests, time, energy, carbon and money of all add up") {
  ServingSpec spec = regions_spec(two_regions());
  const ServingReport report = simulate_serving(spec);
  REQUIRE(report.regions.size() == 2);
  REQUIRE(report.populations.size() == 2);
  double served = 0, energy_j = 0, energy_usd = 0, carbon = 0, rent = 0, busy = 0, tokens = 0;
  for (const ServingRegionReport& r : report.regions) {
    served += r.requests;
    tokens += r.output_tokens;
    energy_j += *r.energy_j;
    energy_usd += *r.energy_usd;
    carbon += *r.tonnes_co2;
    rent += *r.rent_usd;
    busy += r.busy * r.replicas * report.figures.span_s;
  }
  CHECK(served == static_cast<double>(report.figures.served));
  CHECK(tokens == report.figures.output_tokens);
  const double all_j = energy(report.power->facility).base_units();
  CHECK(energy_j == test::near(all_j).epsilon(1e-9));
  CHECK(energy_usd == test::near(report.power->cost.energy_usd).epsilon(1e-9));
  CHECK(carbon == test::near(*report.power->cost.tonnes_co2).epsilon(1e-9));
  CHECK(rent == test::near(report.rent->usd).epsilon(1e-9));
  CHECK(busy == test::near(report.pools[0].busy_s).epsilon(1e-9));
  // Prices of its own, and the scenario's.
  const ServingRegionReport &frankfurt = report.regions[0], &virginia = report.regions[1];
  CHECK(*frankfurt.energy_usd == test::near(*frankfurt.energy_j / 3.6e6 * 0.2).epsilon(1e-9));
  CHECK(*virginia.energy_usd == test::near(*virginia.energy_j / 3.6e6 * 0.1).epsilon(1e-9));
  CHECK(*virginia.tonnes_co2 == test::near(*virginia.energy_j / 3.6e6 * 300e-6).epsilon(1e-9));
  CHECK(*frankfurt.rent_usd / 8 * 16 * 2 / 3 == test::near(*virginia.rent_usd).epsilon(1e-9));
  // Of users.
  const ServingPopulationReport &europe = report.populations[0], &america = report.populations[1];
  CHECK(europe.requests + america.requests == 3000);
  CHECK(europe.regions[0].second == test::near(1).epsilon(1e-9));
  CHECK(europe.regions[1].second == 0);
  CHECK(europe.away_s == test::near(0.02).epsilon(1e-9));
  CHECK(america.regions[0].second > 0);
  CHECK(
      america.away_s ==
      test::near(0.04 * america.regions[1].second + 0.1 * america.regions[0].second).epsilon(1e-9));
  // Its users' limits alone are Europe's own.
  REQUIRE(report.objectives.size() == 1);
  CHECK(report.objectives[0].name == "Europe.attained");
  CHECK(report.objectives[0].value == europe.attained);
}

TEST_CASE("regions: the cheapest and the cleanest come before the nearest") {
  Json scenario = two_regions();
  const auto first_of_america = [&](const char* order) {
    scenario["serving"]["region_order"] = order;
    const ServingSpec spec = regions_spec(scenario);
    return region_order(spec, spec.populations[1]).front();
  };
  CHECK(first_of_america("nearest") == 1);
  CHECK(first_of_america("cheapest") == 1);
  CHECK(first_of_america("cleanest") == 1);
  scenario["serving"]["regions"][0]["usd_per_gpu_hour"] = 1;
  scenario["serving"]["regions"][0]["grams_per_kwh"] = 20;
  CHECK(first_of_america("nearest") == 1);
  CHECK(first_of_america("cheapest") == 0);
  CHECK(first_of_america("cleanest") == 0);
}

TEST_CASE("populations: requests come in proportion to shares and hours") {
  Json scenario = two_regions();
  Json& load = scenario["serving"]["load"];
  load["rate"] = 0.5;
  load["requests"] = 43200;  // a day
  load["start_hour"] = 6;
  std::array<double, 24> hours{};
  std::iota(hours.begin(), hours.end(), 0.0);
  load["populations"][0]["hours"] = hours;
  const ServingSpec spec = regions_spec(scenario);
  std::array<double, 24> europe{}, america{};
  RunTime last = 0;
  for (const ServedRequest& r : spec.requests) {
    CHECK_MESSAGE(r.arrival >= last, "in the order of time");
    last = r.arrival;
    const double hour = 6 + to_seconds(r.arrival).base_units() / 3600;
    (r.population == 0 ? europe : america)[static_cast<std::size_t>(hour) % 24] += 1;
  }
  for (std::size_t h = 0; h < 24; ++h) {
    CAPTURE(h);
    const double of_europe = 43200 / 3.0 * hours[h] / 276, of_america = 43200 * 2 / 3.0 / 24;
    // The day ends with the 43,200th request, a little before six or behind it.
    const double slack = h == 5 || h == 6 ? 900 : 0;
    CHECK(std::abs(europe[h] - of_europe) <= 4.5 * std::sqrt(of_europe) + slack);
    CHECK(std::abs(america[h] - of_america) <= 4.5 * std::sqrt(of_america) + slack);
  }
}

TEST_CASE("populations: evenly spaced requests are closer together in the hours that have more") {
  Json scenario = two_regions();
  scenario["serving"].erase("regions");
  scenario["serving"].erase("region_spill");
  Json& load = scenario["serving"]["load"];
  load["burstiness"] = 0;
  load["rate"] = 0.01;
  load["requests"] = 860;  // half a day
  std::vector<double> hours(24, 0.0);
  std::fill_n(hours.begin(), 12, 2.0);
  load["populations"] = Json::array({Json{{"name", "all"}, {"hours", hours}}});
  const ServingSpec spec = regions_spec(scenario);
  for (std::size_t i = 0; i < spec.requests.size(); ++i) {
    CHECK(to_seconds(spec.requests[i].arrival).base_units() ==
          test::near(50.0 * static_cast<double>(i + 1)).epsilon(1e-9));
  }
}

TEST_CASE("regions: what does not fit together is one line") {
  const auto says = [](const Json& scenario, const std::string& part) {
    const std::string message = regions_message(scenario);
    CAPTURE(message);
    CHECK(message.find(part) != std::string::npos);
  };
  const auto with = [](const std::string& pointer, const Json& value) {
    Json out = two_regions();
    out[Json::json_pointer("/serving" + pointer)] = value;
    return out;
  };
  says(two_regions(), "nothing");
  says(with("/load/populations/0/latency", Json{{"Frankfrut", "20 ms"}}),
       "Did you mean \"Frankfurt\"");
  says(with("/pools/both/replicas", 20), "24: so many have the regions together");
  says(with("/regions/0/replicas", 3), "a multiple of 8");
  says(with("/regions/1/name", "Frankfurt"), "a name that no other one has");
  says(with("/load/populations/0/hours", Json::array({1, 2})), "24 numbers");
  says(with("/load/populations/0/hours", Json(std::vector<int>(24, 0))), "not all of them 0");
  says(with("/region_order", "clean"), "cleanest");
  Json none = two_regions();
  none["serving"]["load"].erase("populations");
  says(none, "populations");
  none = two_regions();
  none["serving"].erase("regions");
  says(none, "no such key without \"regions\"");
  none = two_regions();
  none["serving"]["load"].erase("rate");
  says(none, "no such key without \"rate\"");
  none = two_regions();
  none["serving"]["load"]["populations"][1].erase("latency");
  says(none, "latency");
}

}  // namespace lockstep
