// Power and money of several jobs on one fabric: a job alone is the scenario by itself, and the
// parts add up to the whole.
#include "sim/power/shared_power.hpp"

#include <doctest/doctest.h>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/answer.hpp"
#include "sim/scenario/feature_rules.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

Json drawing_job() {
  return Json::parse(R"({"model": "llama3_8b", "stack": "megatron_core",
    "parallelism": {"data": 32, "sharding": "zero1"}, "recompute": "full",
    "batch": {"sequences": 32, "micro": 1, "tokens": 8192}})");
}
Json drawing_cluster(int nodes) {
  return {{"node", "dgx_h100"},
          {"nodes", nodes},
          {"fabric",
           {{"kind", "fat_tree"},
            {"routing", "spray"},
            {"leaf_ports_down", 16},
            {"leaf_oversubscription", 4}}}};
}
Json priced() {
  return {{"usd_per_gpu", 30000},
          {"usd_per_node", 100000},
          {"usd_per_kwh", 0.1},
          {"people_usd_per_hour", 50},
          {"years", 4}};
}
/// A job on every other node of a cluster, from each of `firsts`.
Json shared_drawing(int nodes, std::initializer_list<int> firsts, int stride) {
  Json out = {{"cluster", drawing_cluster(nodes)}, {"steps", 2}, {"power", Json::object()}};
  out["cost"] = priced();
  out["price"] = {{"usd_per_gpu_hour", 2}};
  for (const int first : firsts) {
    Json job = drawing_job();
    job["name"] = "job" + std::to_string(first);
    job["nodes"] = {{"first", first}, {"count", 4}, {"stride", stride}};
    out["jobs"].push_back(job);
  }
  return out;
}
ScenarioAnswer answer_of_drawing(const Json& scenario) {
  return answer_text("t.json", write_json(scenario), test::presets());
}
double drawn(const ScenarioAnswer& answer, const std::string& name) {
  CAPTURE(name);
  const std::optional<double> number = answer.number(name);
  REQUIRE(number);
  return *number;
}

}  // namespace

TEST_CASE("shared power: cards keep to a cap, and meters and smoothing are those of a step") {
  Json capped = shared_drawing(4, {0}, 1);
  capped["power"] =
      Json::parse(R"({"cap": "500 W", "meter": "100 ms", "smoothing": {"floor": "600 W"},
      "site_limit": "1 MW"})");
  Json alone = drawing_job();
  alone["cluster"] = drawing_cluster(4);
  alone["power"] = capped["power"];
  const ScenarioAnswer shared = answer_of_drawing(capped), step = answer_of_drawing(alone);
  const ScenarioAnswer free = answer_of_drawing(shared_drawing(4, {0}, 1));
  CHECK(drawn(shared, "jobs.job0.step_s") == doctest::Approx(drawn(step, "step_s")).epsilon(1e-6));
  CHECK(drawn(shared, "jobs.job0.power.gpu_mean_w") ==
        doctest::Approx(drawn(step, "power.gpu.mean_w")).epsilon(1e-6));
  CHECK(drawn(shared, "site_peak_w") == doctest::Approx(drawn(step, "site_peak_w")).epsilon(1e-6));
  CHECK(drawn(shared, "jobs.job0.step_s") > 1.02 * drawn(free, "jobs.job0.step_s"));
  const auto problem = [&](const Json& power) -> std::string {
    capped["power"] = power;
    try {
      (void)answer_of_drawing(capped);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(problem(Json::object({{"ramp_window", "10 s"}})).find("whose answer has no ramp") !=
        std::string::npos);
  CHECK(problem(Json::object({{"cap", "900 W"}}))
            .starts_with("t.json#/power/cap: found \"900 W\"; allowed: from "));
  CHECK(problem(Json::object({{"smoothing", {{"floor", "900 W"}}}})) ==
        "t.json#/power/smoothing/floor: found \"900 W\"; allowed: at most 700 W, the limit of "
        "h100_sxm5_80gb");
}

TEST_CASE("shared power: a job alone draws and costs what its scenario by itself does") {
  const ScenarioAnswer shared = answer_of_drawing(shared_drawing(4, {0}, 1));
  Json alone = drawing_job();
  alone["cluster"] = drawing_cluster(4);
  alone["power"] = Json::object();
  alone["cost"] = priced();
  const ScenarioAnswer step = answer_of_drawing(alone);
  const auto same = [&](const char* of_job, double by_itself) {
    CAPTURE(of_job);
    CHECK(drawn(shared, of_job) == doctest::Approx(by_itself).epsilon(1e-6));
  };
  same("jobs.job0.power.energy_per_step_j", drawn(step, "energy_per_step_j"));
  same("jobs.job0.power.facility_mean_w", drawn(step, "facility_mean_w"));
  same("jobs.job0.power.gpu_mean_w", drawn(step, "power.gpu.mean_w"));
  same("jobs.job0.power.joules_per_token", drawn(step, "joules_per_token"));
  same("jobs.job0.power.owned_usd_per_hour",
       drawn(step, "owned_usd") / drawn(step, "step_s") * 3600);
  same("facility_mean_w", drawn(step, "facility_mean_w"));
  CHECK(drawn(shared, "idle_w") == 0);
  CHECK(drawn(shared, "rent_usd_per_hour") == 64);
}

TEST_CASE("shared power: jobs and idle nodes add up, and who waits draws less for longer") {
  const ScenarioAnswer both = answer_of_drawing(shared_drawing(12, {0, 1}, 2));
  const ScenarioAnswer one = answer_of_drawing(shared_drawing(12, {0}, 2));
  const auto sum = [&](const std::string& name) {
    return drawn(both, "jobs.job0." + name) + drawn(both, "jobs.job1." + name);
  };
  CHECK(drawn(both, "idle_w") > 0);
  CHECK(drawn(both, "facility_mean_w") ==
        doctest::Approx(sum("power.facility_mean_w") + drawn(both, "idle_w")));
  // Four of twelve nodes are nobody's, and cost too.
  CHECK(sum("power.owned_usd_per_hour") < drawn(both, "owned_usd_per_hour"));
  CHECK(sum("power.owned_usd_per_hour") > 0.6 * drawn(both, "owned_usd_per_hour"));
  CHECK(sum("rent_usd_per_hour") == 2 * 64);
  CHECK(drawn(both, "rent_usd_per_hour") == 2 * 96);
  REQUIRE(drawn(both, "jobs.job0.step_s") > 1.01 * drawn(one, "jobs.job0.step_s"));
  CHECK(drawn(both, "jobs.job0.power.gpu_mean_w") < drawn(one, "jobs.job0.power.gpu_mean_w"));
  CHECK(drawn(both, "jobs.job0.power.energy_per_step_j") >
        drawn(one, "jobs.job0.power.energy_per_step_j"));
  CHECK(drawn(one, "idle_w") == doctest::Approx(2 * drawn(both, "idle_w")));
}

TEST_CASE("shared power: people and switch ports are paid once, over jobs and idle nodes") {
  // Two jobs of four nodes each, four of nobody.
  Json scenario = shared_drawing(12, {0, 1}, 2);
  const auto of = [&](const char* price, double usd) {
    scenario["cost"][price] = usd;
    return answer_of_drawing(scenario);
  };
  const ScenarioAnswer without = of("people_usd_per_hour", 0), with = of("people_usd_per_hour", 60);
  const auto more = [](const ScenarioAnswer& to, const ScenarioAnswer& from, const char* name) {
    return drawn(to, name) - drawn(from, name);
  };
  CHECK(more(with, without, "owned_usd_per_hour") == doctest::Approx(60));
  CHECK(more(with, without, "jobs.job0.power.owned_usd_per_hour") == doctest::Approx(20));
  const ScenarioAnswer ports = of("usd_per_100g_port", 5000);
  const double job = more(ports, with, "jobs.job0.power.owned_usd_per_hour");
  REQUIRE(job > 0);
  CHECK(more(ports, with, "owned_usd_per_hour") == doctest::Approx(3 * job).epsilon(1e-6));
}

TEST_CASE("shared power: a site's limit is held against all jobs at once") {
  Json scenario = shared_drawing(12, {0, 1}, 2);
  scenario["power"] = {{"site_limit", "10 kW"}};
  const ScenarioAnswer answer = answer_of_drawing(scenario);
  CHECK(drawn(answer, "site_limit_w") == 10e3);
  CHECK(answer.json().at("assumptions").dump().find("highest power of every job at once") !=
        std::string::npos);
  CHECK(drawn(answer, "site_peak_w") >= drawn(answer, "facility_mean_w"));
  CHECK(drawn(answer, "site_excess_w") == doctest::Approx(drawn(answer, "site_peak_w") - 10e3));
}

TEST_CASE("shared power: without power and price a mix has none of it, beside a service neither") {
  Json plain = shared_drawing(4, {0}, 1);
  for (const char* key : {"power", "cost", "price"}) plain.erase(key);
  const ScenarioAnswer answer = answer_of_drawing(plain);
  for (const char* name : {"facility_mean_w", "idle_w", "rent_usd_per_hour", "site_peak_w"}) {
    CAPTURE(name);
    CHECK_FALSE(answer.number(name));
  }
  Json serves = plain;
  serves["serving"] = Json::object();
  serves["power"] = Json::object();
  const JsonCursor root = JsonCursor::parse("t.json", write_json(serves));
  try {
    check_features(root, false, false);
    FAIL_CHECK("was allowed");
  } catch (const InputError& error) {
    CHECK(error.problem().pointer == "/power");
    CHECK(
        error.problem().allowed ==
        "no such key beside \"jobs\": power and money of a service are those of its pools, not of "
        "trainings beside it");
  }
}

namespace {

PowerSeries square_wave(double low_s, double high_s) {
  PowerSeries out;
  out.add(Seconds{high_s}, Watts{200});
  out.add(Seconds{low_s}, Watts{100});
  return out;
}

}  // namespace

TEST_CASE("staggered steps: two square waves half a period apart add up to a constant") {
  const std::vector<PowerSeries> two(2, square_wave(4, 4));
  const StaggeredSteps of = staggered_steps(two, {Watts{50}, Watts{50}});
  CHECK(of.period == Seconds{8});
  CHECK(of.high_together.base_units() == doctest::Approx(400));
  CHECK(of.low_together.base_units() == doctest::Approx(200));
  CHECK(of.high.base_units() == doctest::Approx(300));
  CHECK(of.low.base_units() == doctest::Approx(300));
  CHECK(of.begins[0] == Seconds{});
  CHECK(of.begins[1].base_units() == doctest::Approx(4));
  CHECK(of.longer == std::vector<double>{0, 0});
}

TEST_CASE("staggered steps: M even distances leave multiples of the Mth harmonic alone") {
  // Four of duty 1/4: a square wave of that duty has no fourth harmonic, nor its multiples.
  const std::vector<PowerSeries> four(4, square_wave(6, 2));
  const StaggeredSteps of = staggered_steps(four, std::vector<Watts>(4, Watts{50}));
  CHECK(of.high.base_units() == doctest::Approx(500));
  CHECK(of.low.base_units() == doctest::Approx(500));
  // Three of duty 1/2 keep its third harmonic: one of them swings, whatever the distances.
  const std::vector<PowerSeries> three(3, square_wave(4, 4));
  const StaggeredSteps odd = staggered_steps(three, std::vector<Watts>(3, Watts{50}));
  CHECK((odd.high - odd.low).base_units() == doctest::Approx(100));
  CHECK((odd.high_together - odd.low_together).base_units() == doctest::Approx(300));
}

TEST_CASE("staggered steps: shorter steps wait for the longest, at what waiting draws") {
  const std::vector<PowerSeries> jobs{square_wave(5, 5), square_wave(4, 4)};
  const StaggeredSteps of = staggered_steps(jobs, {Watts{50}, Watts{60}});
  CHECK(of.period == Seconds{10});
  CHECK(of.longer[0] == 0);
  CHECK(of.longer[1] == doctest::Approx(0.25));
  CHECK(of.low_together.base_units() == doctest::Approx(160));  // both low, one of them waiting
  CHECK(of.high.base_units() == doctest::Approx(300));
}

TEST_CASE("shared power: jobs that are alike can be staggered at no cost, and swing less") {
  const ScenarioAnswer two = answer_of_drawing(shared_drawing(8, {0, 1}, 2));
  CHECK(drawn(two, "staggered.high_w") <= drawn(two, "staggered.together_high_w"));
  CHECK(drawn(two, "staggered.low_w") >= drawn(two, "staggered.together_low_w") * (1 - 1e-9));
  CHECK(drawn(two, "staggered.period_s") >= drawn(two, "jobs.0.step_s") * (1 - 1e-9));
  // One job has nobody to take turns with.
  CHECK_FALSE(answer_of_drawing(shared_drawing(8, {0}, 2)).number("staggered.high_w"));
  Json refused = shared_drawing(8, {0, 1}, 2);
  refused["power"] = {{"smoothing", {{"stagger", {{"over", "1 s"}, {"groups", 2}}}}}};
  CHECK_THROWS_AS((void)answer_of_drawing(refused), InputError);
}

}  // namespace lockstep
