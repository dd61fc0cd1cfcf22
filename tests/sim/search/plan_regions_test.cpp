// Regions of a plan: what moving data takes, where it may go, and that money adds up by month.
#include "sim/search/plan_regions.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "models/site/finance.hpp"
#include "sim/search/evaluate_plan.hpp"
#include "sim/search/read_plan.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kRegionDay = 86'400;

/// A job of some twenty days, with its data in one of three regions.
Json regional_plan() {
  return Json::parse(R"({
    "training": {"tokens": 2e11},
    "samples": 10,
    "regions": [
      {"name": "home", "latency": "10 ms", "bandwidth": "10 Gb/s", "egress_usd_per_gb": 0.05,
       "scenario": {"cost": {"usd_per_kwh": 0.2, "grams_per_kwh": 400}}},
      {"name": "north", "latency": "20 ms", "bandwidth": "100 Gb/s", "egress_usd_per_gb": 0.02,
       "scenario": {"cost": {"usd_per_kwh": 0.05, "grams_per_kwh": 20}}},
      {"name": "south", "latency": "30 ms", "bandwidth": "1 Gb/s", "egress_usd_per_gb": 0.02,
       "price_factor": 0.5, "scenario": {"cost": {"usd_per_kwh": 0.1, "grams_per_kwh": 700}}}
    ],
    "data": {"bytes": "100 TB", "regions": ["home"]},
    "scenario": {
      "model": "llama3_8b",
      "cluster": {"node": "dgx_h100", "nodes": 4},
      "parallelism": {"tensor": 4, "sharding": "zero1"},
      "batch": {"sequences": 128, "micro": 1, "tokens": 8192},
      "cost": {"usd_per_gpu": 25000, "usd_per_node": 60000},
      "run": {
        "reliability": "llama3_54_days",
        "checkpoint": {"to": "storage", "interval": "30 min",
                       "storage": {"write": "10 GB/s", "read": "10 GB/s"}}
      }
    },
    "candidates": [{"name": "own", "pay": "own"}]
  })");
}

PlanSpec read_regional(const Json& plan) { return read_plan("plan.json", plan.dump(), presets()); }
std::string region_mistake(const Json& plan) {
  try {
    (void)read_regional(plan);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

/// Sums over months of one part.
double sum_over(const std::vector<PlanMonth>& months, double PlanMonth::* part) {
  double sum = 0;
  for (const PlanMonth& month : months) sum += month.*part;
  return sum;
}
void check_months(const PlanResult& result) {
  const auto near = [](double a, double b) { CHECK(a == doctest::Approx(b).epsilon(1e-9)); };
  const PlanOutcome& expected = result.expected;
  near(sum_over(result.months, &PlanMonth::write_off_usd), expected.write_off_usd);
  near(sum_over(result.months, &PlanMonth::running_usd), expected.running_usd);
  near(sum_over(result.months, &PlanMonth::rent_usd), expected.rent_usd);
  near(sum_over(result.months, &PlanMonth::egress_usd), expected.egress_usd);
  double all = 0;
  for (const PlanMonth& month : result.months) all += month.usd();
  near(all, expected.usd);
}

}  // namespace

TEST_CASE("regions: a transfer takes latency and bytes over bandwidth, and bytes times the price") {
  const WideAreaLink way{
      .latency = Seconds{0.25}, .bandwidth = gigabits_per_second(8), .usd_per_gb = 0.02};
  CHECK(transfer_time(way, Bytes{5e12}) == Seconds{5000.25});
  CHECK(transfer_usd(way, Bytes{5e12}) == doctest::Approx(100));
  CHECK(transfer_time(way, Bytes{}) == Seconds{});
}

TEST_CASE("regions: data comes from where it is soonest, over the narrower end") {
  const auto region = [](const char* name, double latency, double gigabits, double usd) {
    PlanRegion out;
    out.name = name;
    out.latency = Seconds{latency};
    out.bandwidth = gigabits_per_second(gigabits);
    out.egress_usd_per_gb = usd;
    return out;
  };
  const std::vector<PlanRegion> regions{region("slow", 0.01, 1, 0), region("quick", 0.02, 40, 0.09),
                                        region("far", 0.5, 10, 0.05)};
  PlanData data;
  data.bytes = Bytes{1e13};
  data.in = {0, 1};
  const PlanPlace far = place_in(regions, data, 2);
  CHECK(far.data_from == "quick");
  CHECK(far.data_takes.base_units() == doctest::Approx(0.52 + 8000));
  CHECK(far.data_usd == doctest::Approx(900));
  CHECK(place_in(regions, data, 0).data_from.empty());
  CHECK(place_in(regions, data, 0).data_takes == Seconds{});
  data.in = {0};
  CHECK(place_in(regions, data, 2).data_takes.base_units() == doctest::Approx(0.51 + 80'000));
}

TEST_CASE("regions: checkpoints are copied on the way, no faster than one after the other") {
  PlanPlace place;
  place.copies_to = "home";
  place.copies_way = {.latency = {}, .bandwidth = gigabits_per_second(8), .usd_per_gb = 0.1};
  const Bytes checkpoint{1e12};  // 1,000 s each, for 100 USD
  const auto moves = [&] { return moves_of(place, checkpoint, Seconds{10 * kRegionDay}); };
  CHECK(moves().copies == 1);
  CHECK(moves().after == Seconds{1000});
  place.copies_every = Seconds{kRegionDay};
  CHECK(moves().copies == 11);
  CHECK(moves().copies_usd == doctest::Approx(1100));
  place.copies_every = Seconds{100};
  CHECK(moves().copies == 865);
  place.copies_to.clear();
  CHECK(moves().copies_usd == 0);
  CHECK(moves().after == Seconds{});
}

TEST_CASE("plan with regions: each differs by its transfer, tariff, carbon and prices alone") {
  const PlanSpec spec = read_regional(regional_plan());
  REQUIRE(spec.candidates.size() == 3);
  CHECK(spec.candidates[1].name == "own in north");
  const PlanReport report = evaluate_plan(spec, {});
  const PlanOutcome& home = report.results[0].expected;
  const PlanOutcome& north = report.results[1].expected;
  const PlanOutcome& south = report.results[2].expected;
  // 1e14 bytes at 1.25 and 0.125 GB/s; they leave home at 0.05 USD a GB.
  CHECK(north.time_s - home.time_s == doctest::Approx(0.03 + 80'000));
  CHECK(south.time_s - home.time_s == doctest::Approx(0.04 + 800'000));
  CHECK(home.egress_usd == 0);
  CHECK(north.egress_usd == doctest::Approx(5000));
  CHECK(south.egress_usd == doctest::Approx(5000));
  CHECK(north.energy_j == doctest::Approx(home.energy_j));
  // Carbon and money of energy: energy times what a kilowatt-hour has.
  for (const auto& [outcome, usd, grams] :
       {std::tuple{home, 0.2, 400.0}, std::tuple{north, 0.05, 20.0},
        std::tuple{south, 0.1, 700.0}}) {
    CHECK(outcome.energy_usd == doctest::Approx(outcome.energy_j / 3.6e6 * usd));
    CHECK(outcome.tonnes_co2.value() == doctest::Approx(outcome.energy_j / 3.6e6 * grams * 1e-6));
    CHECK(outcome.usd == doctest::Approx(outcome.write_off_usd + outcome.running_usd +
                                         outcome.rent_usd + outcome.egress_usd));
  }
  CHECK(south.write_off_usd == doctest::Approx(home.write_off_usd / 2));
  for (const PlanResult& result : report.results) check_months(result);
}

TEST_CASE("plan with regions: carbon follows the hours of the region's file") {
  const TemporaryFolder folder;
  std::string hours;
  double sum = 0;
  for (int h = 0; h < 24; ++h) {
    hours += std::to_string(100 + 10 * h) + "\n";
    sum += 100 + 10 * h;
  }
  const std::string file = folder.write("grams.csv", hours);
  Json plan = regional_plan();
  plan["regions"][1]["scenario"]["cost"]["grams_per_kwh"] = file;
  plan["candidates"][0]["regions"] = {"north"};
  const PlanSpec spec = read_regional(plan);
  REQUIRE(spec.candidates.size() == 1);
  const PlanOutcome outcome = evaluate_plan(spec, {}).results[0].expected;
  // Over weeks the mean of a day, but for the last one that is not whole.
  const double days = outcome.time_s / kRegionDay;
  CHECK(outcome.tonnes_co2.value() ==
        doctest::Approx(outcome.energy_j / 3.6e6 * sum / 24 * 1e-6).epsilon(1 / days));
}

TEST_CASE("plan with regions: machines that come late leave time to move the data") {
  Json plan = regional_plan();
  plan["scenario"].erase("cost");  // the lots have prices
  plan["candidates"][0]["scenario"]["run"]["purchase"] = Json::parse(
      R"({"interest": "8 %", "loses": "35 %", "lots": [
        {"name": "all", "terms": "buy", "nodes": 4, "lead_time": "5 d",
         "usd_per_node": 300000}]})");
  const PlanSpec spec = read_regional(plan);
  const PlanReport report = evaluate_plan(spec, {});
  const PlanOutcome& home = report.results[0].expected;
  const PlanOutcome& south = report.results[2].expected;
  CHECK(home.before_s == doctest::Approx(5 * kRegionDay));
  CHECK(report.results[1].expected.time_s == doctest::Approx(home.time_s));
  CHECK(south.time_s - home.time_s == doctest::Approx(800'000.04 - 5 * kRegionDay));
  for (const PlanResult& result : report.results) check_months(result);
}

TEST_CASE("plan with regions: where the data may not go is refused, with its reason") {
  Json plan = regional_plan();
  plan["data"]["may_leave"] = {"north"};
  plan["candidates"][0]["layout"] = "tuned";
  const PlanSpec spec = read_regional(plan);
  CHECK(spec.candidates[1].refused.empty());
  CHECK(spec.candidates[2].refused ==
        "its data may be in home, north alone (data.may_leave), not in south");
  const PlanModel model =
      model_candidate(spec.candidates[2], tune_candidate(spec.candidates[2], 1, {}));
  CHECK(model.impossible == spec.candidates[2].refused);
  plan["data"]["may_leave"] = false;
  CHECK(read_regional(plan).candidates[1].refused ==
        "its data may be in home alone (data.may_leave), not in north");
  plan["data"]["may_leave"] = true;
  CHECK(read_regional(plan).candidates[2].refused.empty());
}

TEST_CASE("plan with regions: mistakes name the place") {
  const auto with = [](const char* pointer, const Json& value) {
    Json plan = regional_plan();
    plan[Json::json_pointer(pointer)] = value;
    return region_mistake(plan);
  };
  CHECK(with("/data/regions/0", "hom") ==
        "plan.json#/data/regions/0: found \"hom\"; allowed: home, north, south. Did you mean "
        "\"home\"?");
  CHECK(with("/data/regions", Json::array()) ==
        "plan.json#/data/regions: found an array; allowed: at least one region");
  CHECK(with("/candidates/0/regions", {"nort"}) ==
        "plan.json#/candidates/0/regions/0: found \"nort\"; allowed: home, north, south. Did you "
        "mean \"north\"?");
  CHECK(with("/data/checkpoints_to", "nowhere")
            .starts_with("plan.json#/data/checkpoints_to: found \"nowhere\"; allowed: home, "));
  CHECK(
      with("/regions/1/name", "home")
          .starts_with("plan.json#/regions/1/name: found \"home\"; allowed: a name that no other"));
  // Told once: who asks for the name that it should have is not told that there is none.
  Json doubled = regional_plan();
  doubled["regions"][1]["name"] = "home";
  doubled["data"]["may_leave"] = {"north"};
  doubled["data"]["checkpoints_to"] = "north";
  doubled["candidates"][0]["regions"] = {"home", "north"};
  CHECK(region_mistake(doubled) ==
        "plan.json#/regions/1/name: found \"home\"; allowed: a name that no other region has");
  // Tariffs may be below 0, and not as far as that.
  CHECK(with("/regions/1/scenario/cost/usd_per_kwh", -2000)
            .starts_with("plan.json#/regions/1/scenario/cost/usd_per_kwh: found -2000"));
  Json unknown = regional_plan();
  unknown["scenario"]["bach"] = 1;
  unknown["candidates"][0]["scenario"] = {{"pwer", 1}};
  CHECK_MESSAGE(region_mistake(unknown).starts_with(
                    "plan.json#/scenario/bach: found the unknown key \"bach\", and also "
                    "/candidates/0/scenario/pwer (\"power\"?); allowed: "),
                region_mistake(unknown));
  CHECK(with("/start", "soon") ==
        "plan.json#/start: found \"soon\"; allowed: a time like 2027-01-04T00:00");
  CHECK(with("/regions", Json::array()) ==
        "plan.json#/regions: found an array; allowed: at least one region");

  Json unpriced = regional_plan();
  unpriced["regions"][1].erase("egress_usd_per_gb");
  CHECK(region_mistake(unpriced).starts_with(
      "plan.json#/regions/1: found an object without \"egress_usd_per_gb\""));
  Json untaxed = regional_plan();
  untaxed["regions"][2]["scenario"]["cost"].erase("usd_per_kwh");
  CHECK(region_mistake(untaxed) ==
        "plan.json#/regions/2: found no price of energy for own in south; allowed: \"scenario\": "
        "{\"cost\": {\"usd_per_kwh\": ...}}, as others have one");
  Json locked = regional_plan();
  locked["data"]["may_leave"] = false;
  locked["candidates"][0]["regions"] = {"north", "south"};
  CHECK(region_mistake(locked) ==
        "plan.json#/data/may_leave: found false, and no candidate trains in home; allowed: a "
        "region that one trains in (north, south), or a candidate where the data may be");
  Json other = regional_plan();
  other["scenario"]["run"]["data"] = {{"bytes_per_token", 4}, {"dataset", "90 TB"}};
  CHECK(region_mistake(other) ==
        "plan.json#/data/bytes: found \"100 TB\"; allowed: the 9e+13 bytes of run.data.dataset of "
        "own in home");
  Json placeless = regional_plan();
  placeless.erase("regions");
  CHECK(region_mistake(placeless).find(
            "#/data: found an object; allowed: only beside \"regions\"") != std::string::npos);
  Json named = regional_plan();
  named.erase("regions");
  named.erase("data");
  named["candidates"][0]["regions"] = {"north"};
  CHECK(region_mistake(named).find("only beside the plan's \"regions\"") != std::string::npos);
}

TEST_CASE("plan with regions: the example that ships is read, and refuses one") {
  const std::string path =
      std::string(LOCKSTEP_SOURCE_DIR "/scenarios/plans/train-70b-three-regions.json");
  const PlanSpec spec = read_plan(path, read_text_file(path), presets());
  REQUIRE(spec.candidates.size() == 8);
  CHECK(spec.start.has_value());
  std::size_t refused = 0;
  for (const PlanCandidate& candidate : spec.candidates)
    refused += candidate.refused.empty() ? 0 : 1;
  CHECK(refused == 2);
}

namespace {

/// Trained at home, refined in the north on half of the nodes.
Json phased_plan() {
  Json plan = regional_plan();
  plan["candidates"] = Json::parse(R"([{"name": "two places", "pay": "own", "regions": ["home"],
    "then": [{"name": "refine", "tokens": 2e10, "region": "north",
              "scenario": {"cluster": {"nodes": 2}}}]}])");
  return plan;
}

std::string phase_mistake(const char* pointer, const Json& value) {
  Json plan = phased_plan();
  plan[Json::json_pointer(pointer)] = value;
  return region_mistake(plan);
}

}  // namespace

TEST_CASE("phases: each begins when the one before is done and its weights are there") {
  const PlanSpec spec = read_regional(phased_plan());
  const PlanReport report = evaluate_plan(spec, {});
  const PlanResult& result = report.results.front();
  REQUIRE(result.later.size() == 1);
  const PhaseResult& refine = result.later.front();
  CHECK(refine.model.scenario.nodes == 2);
  // 30 ms and the narrower end, 10 Gb/s; 0.05 USD a gigabyte that leaves home.
  const double weights = result.model.plan.checkpoint.all.base_units();
  CHECK(weights > 0);
  CHECK(refine.moves.base_units() == doctest::Approx(0.03 + weights * 8 / 10e9));
  CHECK(refine.egress_usd == doctest::Approx(weights / 1e9 * 0.05));
  const PlanOutcome &all = result.expected, &first = result.first, &next = refine.expected;
  CHECK(all.time_s == doctest::Approx(first.time_s + refine.moves.base_units() + next.time_s));
  CHECK(all.usd == doctest::Approx(first.usd + refine.egress_usd + next.usd).epsilon(1e-12));
  CHECK(all.energy_j == doctest::Approx(first.energy_j + next.energy_j).epsilon(1e-12));
  CHECK(all.egress_usd == doctest::Approx(first.egress_usd + refine.egress_usd));
  CHECK(all.goodput == doctest::Approx((first.goodput * first.run_s + next.goodput * next.run_s) /
                                       (first.run_s + next.run_s)));
  CHECK(all.peak_w == std::max(first.peak_w, next.peak_w));
  check_months(result);
  // The first phase is the plan without the second, and each has its region's tariff.
  Json alone = phased_plan();
  alone["candidates"][0].erase("then");
  const PlanReport without = evaluate_plan(read_regional(alone), {});
  CHECK(without.results.front().expected.usd == doctest::Approx(first.usd).epsilon(1e-12));
  CHECK(first.energy_usd / first.energy_j == doctest::Approx(0.2 / 3.6e6));
  CHECK(next.energy_usd / next.energy_j == doctest::Approx(0.05 / 3.6e6));
  // Samples are of both, and the same on any number of threads.
  CHECK(result.time_s.low > without.results.front().time_s.low);
  const PlanReport on_three = evaluate_plan(spec, {.jobs = 3});
  CHECK(on_three.results.front().usd.low == result.usd.low);
  CHECK(on_three.results.front().expected.time_s == all.time_s);
}

TEST_CASE("phases: a later one's layout is searched where it says so") {
  Json given = phased_plan();
  // A layout that works, and is not good.
  given["candidates"][0]["then"][0]["scenario"]["parallelism"] = {{"tensor", 8}};
  Json tuned = given;
  tuned["candidates"][0]["then"][0]["layout"] = "tuned";
  const PlanSpec spec = read_regional(tuned);
  CHECK_FALSE(spec.candidates.front().tuned);
  CHECK(spec.candidates.front().then.front()->of.tuned);
  const PlanReport searched = evaluate_plan(spec, {});
  const PhaseResult& found = searched.results.front().later.front();
  const PlanReport as_given = evaluate_plan(read_regional(given), {});
  CHECK(found.model.layout.starts_with("layout: the fastest of "));
  CHECK(as_given.results.front().later.front().model.layout.empty());
  CHECK(found.model.step_s < as_given.results.front().later.front().model.step_s);
  CHECK(found.expected.time_s < as_given.results.front().later.front().expected.time_s);
  CHECK(searched.results.front().first.time_s == as_given.results.front().first.time_s);
  // The search is that of a candidate with the same machines.
  Json alone = regional_plan();
  alone["candidates"] = Json::array({{{"name", "alone"},
                                      {"pay", "own"},
                                      {"regions", {"north"}},
                                      {"layout", "tuned"},
                                      {"nodes", {2}}}});
  const PlanReport by_itself = evaluate_plan(read_regional(alone), {});
  CHECK(by_itself.results.front().model.step_s == found.model.step_s);
  CHECK(by_itself.results.front().model.layout == found.model.layout);
  tuned["candidates"][0]["then"][0]["layout"] = "tune";
  CHECK(
      region_mistake(tuned) ==
      "plan.json#/candidates/0/then/0/layout: found \"tune\"; allowed: given, tuned. Did you mean "
      "\"tuned\"?");
}

TEST_CASE("phases: money falls due in the months in which a phase trains") {
  Json plan = phased_plan();
  plan["candidates"][0]["then"][0]["tokens"] = 6e11;
  plan["candidates"][0]["then"][0].erase("scenario");
  plan["scenario"]["run"]["trajectories"] = 1;
  const PlanSpec spec = read_regional(plan);
  CHECK(spec.candidates.front().name == "two places: home, then north");
  const PlanReport report = evaluate_plan(spec, {});
  const PlanResult& result = report.results.front();
  check_months(result);
  // All of it is owned: written off evenly over the first phase, and then over the second.
  const PhaseResult& refine = result.later.front();
  const double first = result.first.time_s, done = result.expected.time_s;
  const double begins = first + refine.moves.base_units();
  CHECK(first > 0.25 * kMonthSeconds);
  CHECK(done > kMonthSeconds);
  REQUIRE(result.months.size() == static_cast<std::size_t>(std::ceil(done / kMonthSeconds)));
  for (std::size_t m = 0; m < result.months.size(); ++m) {
    const double from = static_cast<double>(m) * kMonthSeconds, until = from + kMonthSeconds;
    const auto share = [&](double begin, double end) {
      return std::max(0.0, std::min(end, until) - std::max(begin, from)) / (end - begin);
    };
    CAPTURE(m);
    CHECK(result.months[m].write_off_usd ==
          doctest::Approx(result.first.write_off_usd * share(0, first) +
                          refine.expected.write_off_usd * share(begins, done))
              .epsilon(1e-9));
    CHECK(result.months[m].egress_usd ==
          doctest::Approx(refine.egress_usd * share(first, begins)).epsilon(1e-9));
  }
}

TEST_CASE("phases: in the same region weights are there at once, and so without regions") {
  Json plan = phased_plan();
  plan["candidates"][0]["then"][0].erase("region");
  const PlanReport here = evaluate_plan(read_regional(plan), {});
  CHECK(here.results.front().later.front().moves == Seconds{});
  CHECK(here.results.front().later.front().egress_usd == 0);
  CHECK(here.results.front().later.front().expected.energy_usd > 0);
}

TEST_CASE("phases: what cannot be is one line") {
  CHECK(phase_mistake("/candidates/0/then/0/region", "nort").find("Did you mean \"north\"?") !=
        std::string::npos);
  CHECK(phase_mistake("/candidates/0/then", Json::array()).find("at least one phase") !=
        std::string::npos);
  CHECK(phase_mistake("/candidates/0/then/0/tokens", "none").find("/then/0/tokens") !=
        std::string::npos);
  CHECK(phase_mistake("/candidates/0/then/0/zzz", 1).find("/candidates/0/then/0/zzz") !=
        std::string::npos);
  CHECK(phase_mistake("/candidates/0/then/0/scenario/cluster/nodes", 0)
            .find("plan.json#/candidates/0/then/0/scenario/cluster/nodes") != std::string::npos);
  // Machines stay where they are.
  const Json lots = Json::parse(R"({"lots": [{"name": "a", "terms": "buy", "nodes": 4,
                                              "usd_per_node": 1}]})");
  Json bought = phased_plan();
  bought["scenario"].erase("cost");  // lots have their own prices
  bought["candidates"][0]["scenario"]["run"]["purchase"] = lots;
  bought["candidates"][0]["then"][0]["machines"] = "kept";
  CHECK(region_mistake(bought).find("no such key in another region") != std::string::npos);
  Json without = phased_plan();
  without.erase("regions");
  without.erase("data");
  without["candidates"][0].erase("regions");
  CHECK(region_mistake(without).find("only beside the plan's") != std::string::npos);
}

}  // namespace lockstep::test
