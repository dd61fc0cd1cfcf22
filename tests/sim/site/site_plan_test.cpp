#include "sim/site/site_plan.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/power/site_power.hpp"
#include "sim/power/run_power.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "sim/site/site_availability.hpp"
#include "sim/site/site_books.hpp"
#include "sim/site/site_clock.hpp"
#include "sim/site/standby_figures.hpp"
#include "sim/step/step.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using test::presets;

ScenarioFile sited_file(
    const std::string& run,
    const std::string& power = R"("power": {}, "cost": {"usd_per_kwh": 0.1},)") {
  const std::string text =
      R"({"cluster": {"node": "dgx_h100", "nodes": 8},
    "model": "llama3_8b", "parallelism": {"data": 64, "sharding": "zero1"},
    "batch": {"sequences": 64, "micro": 1, "tokens": 2048}, "recompute": "full",
    "stack": "megatron_core", )" +
      power +
      R"("run": {"duration": "5 d", "reliability": {"modes": [{"name": "node", "component": "node",
      "mean_time": "20 d"}]}, "checkpoint": {"to": "storage", "interval": "30 min",
      "storage": "minio_nvme"}, )" +
      run + "}}";
  return read_scenario_file(parse_scenario("t.json", text), presets(), {});
}

}  // namespace

TEST_CASE("site plan: spot nodes are taken away neither before they come nor after they are gone") {
  const ScenarioFile file = sited_file(R"("purchase": {"lots": [
      {"name": "own", "terms": "buy", "nodes": 8, "usd_per_node": 1, "ordered": "1 d"},
      {"name": "cloud", "terms": "spot", "nodes": 8, "usd_per_gpu_hour": 1, "taken_away": "1 d",
       "ordered": "2 d", "until": "4 d"},
      {"name": "past", "terms": "spot", "nodes": 8, "usd_per_gpu_hour": 1, "taken_away": "1 d",
       "until": "1 d"}]}, "data": {"bytes_per_token": 4, "dataset": "1 TB", "storage": {
       "read": "20 GB/s", "write": "20 GB/s"}, "tiers": [{"name": "archive", "read": "20 GB/s",
       "first_byte": "1 d"}]})");
  const SitedCampaign sited = plan_sited(*file.job, *file.run);
  const double begins = sited.fleet->begins.base_units();
  CHECK(begins >= 86'400);
  const std::vector<FailureMode>& modes = sited.plan.campaign.modes;
  REQUIRE(modes.size() == 2);  // of the lot that is gone before the run begins there is none
  REQUIRE(modes[1].there.size() == 1);
  const Presence& there = modes[1].there.front();
  CHECK(there.components == 8);
  CHECK(to_seconds(there.from).base_units() == doctest::Approx(2 * 86'400 - begins));
  CHECK(to_seconds(there.until).base_units() == doctest::Approx(4 * 86'400 - begins));
}

TEST_CASE("site plan: nodes that wait for the run take energy at the mean of the site's tariff") {
  const auto sited = [](const std::string& power) {
    const ScenarioFile file =
        sited_file(R"("site": {"hours": ")" + std::string(LOCKSTEP_SOURCE_DIR) +
                       R"(/scenarios/site/example-hours.csv"}, "purchase": {"lots": [
            {"name": "own", "terms": "buy", "nodes": 8, "usd_per_node": 1}]})",
                   power);
    return plan_sited(*file.job, *file.run);
  };
  const SitedCampaign priced = sited(R"("power": {}, "cost": {"usd_per_kwh": 0.3},)");
  double sum = 0;
  for (const SiteHour& hour : priced.site->spec.hours) sum += hour.usd_per_kwh;
  const double mean = sum / static_cast<double>(priced.site->spec.hours.size());
  CHECK(mean > 0.01);
  CHECK(priced.fleet->usd_per_kwh == doctest::Approx(mean));
  CHECK(sited(R"("power": {},)").fleet->usd_per_kwh == doctest::Approx(mean));
}

TEST_CASE("site plan: where nothing binds, books are those of the run's phases at their levels") {
  const ScenarioFile file = sited_file(R"("site": {})");
  const SitedCampaign sited = plan_sited(*file.job, *file.run);
  const TrajectoryResult run = run_trajectory(sited.plan.campaign, 2, RunDetail::timeline);
  const CampaignPlan plain = plan_campaign(*file.job, *file.run);
  const TrajectoryResult same = run_trajectory(plain.campaign, 2, RunDetail::timeline);
  CHECK(run.wall == same.wall);
  CHECK(run.buckets == same.buckets);
  const SiteBooks books = site_books(*sited.site, run, 2);
  const StepReport step = simulate_step(*file.job, {.record_timeline = true, .keep_actors = true});
  const Joules whole = run_energy(same, step_power(*file.job, step).levels);
  CHECK(books.sum.facility / whole == doctest::Approx(1.0).epsilon(1e-9));
  CHECK(books.sum.energy_usd == doctest::Approx(whole.base_units() / 3.6e6 * 0.1).epsilon(1e-9));
}

TEST_CASE("site plan: lots are there from the plan's start, the job once its data is staged") {
  const ScenarioFile file = sited_file(R"("purchase": {"lots": [
      {"name": "a", "terms": "on_demand", "nodes": 4, "usd_per_gpu_hour": 1},
      {"name": "b", "terms": "on_demand", "nodes": 4, "ordered": "2 d", "usd_per_gpu_hour": 1}]},
      "data": {"bytes_per_token": 4, "dataset": "1 TB", "storage": {"read": "20 GB/s",
      "write": "20 GB/s"}, "tiers": [{"name": "archive", "read": "20 GB/s",
      "first_byte": "3 d"}]})");
  const SitedCampaign sited = plan_sited(*file.job, *file.run);
  REQUIRE(sited.plan.data);
  CHECK(sited.fleet->begins == sited.plan.data->begins);
  CHECK(sited.plan.data->begins.base_units() == doctest::Approx(3 * 86'400 + 50));
  CHECK(sited.plan.campaign.pace(0)(0, {}).speed == 1);
  const Seconds day{86'400};
  const SitedCampaign moved = plan_sited(*file.job, *file.run, LotSpares::exactly, day);
  CHECK(moved.fleet->begins == day + moved.plan.data->begins);
}

TEST_CASE("site plan: held below their limit, cards draw less and do less, step by step") {
  const ScenarioFile file = sited_file(R"("site": {})");
  const PaceTable table = pace_table(*file.job);
  const std::vector<PacePoint>& points = table.points();
  REQUIRE(points.size() >= 3);
  CHECK(table.full().speed == 1);
  for (std::size_t i = 1; i < points.size(); ++i) {
    CHECK(points[i].it <= points[i - 1].it);
    CHECK(points[i].speed <= points[i - 1].speed);
    const auto same = table.under(points[i].it);
    REQUIRE(same);
    CHECK(same->it == points[i].it);
  }
  // At the lowest clock, a fifth, products are slow; what is bound by memory is not.
  CHECK(table.lowest().speed < 0.5);
  CHECK_FALSE(table.under(0.99 * table.lowest().it));
}

TEST_CASE("site plan: a site without power, and a path that feeds too few nodes, are one line") {
  const auto problem = [](const std::string& run, const std::string& power) {
    try {
      const ScenarioFile file = sited_file(run, power);
      (void)plan_sited(*file.job, *file.run);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(problem(R"("site": {})", "") ==
        "t.json#/run/site: found a site; allowed: one beside \"power\"");
  CHECK(problem(R"("site": {"path": [{"name": "row", "nodes": 7}]})", R"("power": {},)") ==
        "t.json#/run/site/path: found parts that feed 7 nodes; allowed: at least the 8 of the job "
        "and its hot spares");
  CHECK(problem(R"("site": {"path": [{"name": "row", "nodes": 8}]}, "purchase": {"lots": [
        {"name": "a", "terms": "on_demand", "nodes": 8, "usd_per_gpu_hour": 1},
        {"name": "b", "terms": "on_demand", "nodes": 2, "usd_per_gpu_hour": 1,
         "lead_time": "1 d"}]})",
                R"("power": {},)") ==
        "t.json#/run/site/path: found parts that feed 8 nodes; allowed: at least the 10 of "
        "run.purchase.lots that are there at once");
}

TEST_CASE("site plan: a path that feeds more nodes than there are brings what these draw") {
  const auto planned = [](int rows) {
    const ScenarioFile file = sited_file(fmt::format(
        R"("site": {{"path": [{{"name": "line", "capacity": "200 kW", "carries": "machines"}},
            {{"name": "row", "units": {}, "nodes": 2, "from": ["line"]}}]}})",
        rows));
    return plan_sited(*file.job, *file.run).site;
  };
  const auto exact = planned(4), twice = planned(8);
  CHECK(8 * exact->path_demand(RunTime{0}).per_place == exact->levels.training);
  CHECK(double{16 * twice->path_demand(RunTime{0}).per_place / twice->levels.training} ==
        doctest::Approx(1));
  CHECK(exact->path_demand(RunTime{0}).needed == 8);
  CHECK(twice->path_demand(RunTime{0}).needed == 16);
}

TEST_CASE("site plan: lines and generators carry the site at its highest PUE, rows the machines") {
  const auto path = [](const std::string& line) {
    const ScenarioFile file = sited_file(
        R"("site": {"weather": {"mean_celsius": 25}, "path": [
            {"name": "line", "capacity": "200 kW")" +
        line + R"(}, {"name": "diesel", "units": 2, "capacity": "100 kW", "generator": {}},
            {"name": "row", "nodes": 8, "capacity": "150 kW", "from": ["line", "diesel"]}]})");
    return plan_sited(*file.job, *file.run);
  };
  const SitedCampaign sited = path("");
  const std::vector<PowerPart>& parts = sited.site->spec.path;
  double pue = 1;
  for (std::int64_t h = 0; h < 8760; ++h) {
    const double outside = sited.site->outside(sited.site->hour(h));
    pue = std::max(pue, power_usage_effectiveness(sited.site->facility, outside));
  }
  CHECK(pue > 1.2);
  CHECK(double{parts[0].capacity / Watts{200e3}} == doctest::Approx(1 / pue));
  CHECK(double{parts[1].capacity / Watts{100e3}} == doctest::Approx(1 / pue));
  CHECK(parts[2].capacity == Watts{150e3});
  CHECK(std::ranges::find(sited.plan.assumptions,
                          "run.site.path: \"line\", \"diesel\" carry what cools the machines, too "
                          "(carries not given)") != sited.plan.assumptions.end());
  CHECK(path(R"(, "carries": "machines")").site->spec.path[0].capacity == Watts{200e3});
  // What a generator gives is told as its nameplate says.
  CHECK(standby_figures(*sited.site)->generators == Watts{200e3});
}

TEST_CASE("site plan: a path feeds the lots that are there, spread evenly over its rows") {
  const auto sited = [](const std::string& run) {
    const ScenarioFile file = sited_file(run);
    return plan_sited(*file.job, *file.run);
  };
  const std::string lots = R"(, "purchase": {"lots": [
      {"name": "a", "terms": "on_demand", "nodes": 4, "usd_per_gpu_hour": 1},
      {"name": "b", "terms": "on_demand", "nodes": 4, "usd_per_gpu_hour": 1,
       "lead_time": "2 d"}]})";
  const auto pace_at = [](const SitedCampaign& of, double days) {
    SiteClock clock(*of.site, 0);
    return clock.at(to_run_time(Seconds{days * 86'400}));
  };
  // All lots at once, and none: the same demand.
  const std::string whole = R"(, "purchase": {"lots": [
      {"name": "a", "terms": "on_demand", "nodes": 8, "usd_per_gpu_hour": 1}]})";
  const std::string rows = R"("site": {"path": [{"name": "row", "units": 4, "nodes": 2}]})";
  const SitedCampaign all = sited(rows + whole);
  const SitedCampaign none = sited(rows + R"(, "spares": {"hot": 0})");
  const PathDemand there = all.site->path_demand(RunTime{0}),
                   alone = none.site->path_demand(RunTime{0});
  CHECK(there.per_place / alone.per_place == doctest::Approx(1));
  CHECK(there.needed == 8);
  CHECK(alone.needed == 8);
  // Half of the nodes: each place takes half, and the job still needs every one of them.
  const SitedCampaign half = sited(rows + lots);
  CHECK(half.site->path_demand(RunTime{0}).per_place / alone.per_place == doctest::Approx(0.5));
  CHECK(half.site->path_demand(RunTime{0}).needed == 8);
  CHECK(half.site->path_demand(to_run_time(Seconds{3 * 86'400.0})).per_place / alone.per_place ==
        doctest::Approx(1));
  CHECK(half.site->highest_path_demand().per_place / alone.per_place == doctest::Approx(1));
  // A feed for six tenths of all machines holds only those that come later.
  const double watts = 0.6 * none.site->levels.training.base_units();
  const std::string narrow = fmt::format(
      R"("site": {{"path": [{{"name": "UPS", "capacity": "{} W",
                             "carries": "machines"}},
                            {{"name": "row", "units": 4, "nodes": 2, "from": ["UPS"]}}]}})",
      watts);
  const SitedCampaign held = sited(narrow + lots);
  CHECK(pace_at(held, 1).bound == SiteBound::none);
  CHECK(pace_at(held, 1).speed == doctest::Approx(1));
  CHECK(pace_at(held, 3).bound == SiteBound::path);
  CHECK(pace_at(held, 3).speed < 1);
  // Shares of what nodes want are found within a watt.
  CHECK(pace_at(held, 3).training.base_units() <= watts + 2);
  // As often as a row of four fails, whatever stands on it: closed forms of both halves are alike.
  const std::string failing =
      R"("site": {"path": [{"name": "row", "units": 4, "nodes": 2, "mean_time": "10 d",
                            "repair": "1 d"}]})";
  const SiteAvailability of = site_availability(*sited(failing + lots).site, 120);
  REQUIRE(of.path);
  CHECK(*of.path == doctest::Approx(std::pow(10.0 / 11.0, 4)).epsilon(1e-9));
}

TEST_CASE("site plan: with more nodes than the job has a place for, a row may fail") {
  // Six nodes of which the job runs on four, over six rows: two may be without power.
  const ScenarioFile file = sited_file(
      R"("site": {"path": [{"name": "row", "units": 6, "nodes": 2, "mean_time": "10 d",
                            "repair": "1 d"}]},
         "purchase": {"lots": [{"name": "a", "terms": "on_demand", "nodes": 6,
                                "usd_per_gpu_hour": 1}]})");
  const SitedCampaign of = plan_sited(*file.job, *file.run);
  REQUIRE(of.fleet->steps.front().used == 4);
  const PathDemand demand = of.site->path_demand(RunTime{0});
  CHECK(demand.needed == 8);  // of twelve places
  const double p = 10.0 / 11.0, q = 1 - p;
  const double enough = std::pow(p, 6) + 6 * std::pow(p, 5) * q + 15 * std::pow(p, 4) * q * q;
  const SiteAvailability shares = site_availability(*of.site, 24);
  REQUIRE(shares.path);
  CHECK(*shares.path == doctest::Approx(enough).epsilon(1e-9));
}

TEST_CASE(
    "site plan: nodes of lots that the job has no place for stand by, unless it says how many") {
  const auto planned = [](const std::string& spares, LotSpares mode) {
    const ScenarioFile file = sited_file(
        R"("purchase": {"lots": [{"name": "a", "terms": "on_demand", "nodes": 10,
        "usd_per_gpu_hour": 1}, {"name": "b", "terms": "on_demand", "nodes": 2, "ordered": "1 d",
        "usd_per_gpu_hour": 1}]}, "spares": )" +
        spares);
    return plan_sited(*file.job, *file.run, mode).plan;
  };
  const auto hot = [&](const std::string& spares) {
    return planned(spares, LotSpares::exactly).campaign.spares.hot;
  };
  // Eight of ten train; later there are twelve.
  CHECK(hot(R"({"repair": "1 d"})") == 2);
  CHECK(hot(R"({"hot": 1, "repair": "1 d"})") == 1);
  // More than that are nobody's: an error, or fewer where a plan says a share.
  const std::string three = R"({"hot": 3, "repair": "1 d"})";
  CHECK_THROWS_WITH_AS((void)hot(three),
                       "t.json#/run/spares/hot: found 3; allowed: at most 2, the nodes of "
                       "run.purchase.lots that the "
                       "job has no place for: of 10 that are there on day 0 it runs on 8",
                       InputError);
  const CampaignPlan fewer = planned(three, LotSpares::up_to);
  CHECK(fewer.campaign.spares.hot == 2);
  CHECK(std::ranges::count(fewer.assumptions,
                           "run.spares.hot: 2 in place of 3, the fewest nodes of the lots that the "
                           "job ever has no place for") == 1);
}

TEST_CASE("site plan: machines that are not there yet draw nothing, with a site as without one") {
  const std::string lots = R"("purchase": {"lots": [{"name": "a", "terms": "on_demand", "nodes": 2,
      "usd_per_gpu_hour": 1}, {"name": "b", "terms": "on_demand", "nodes": 6, "ordered": "2 d",
      "usd_per_gpu_hour": 1}]}, "spares": {"repair": "1 h"})";
  const auto run_of = [](const SitedCampaign& sited) {
    return run_trajectory(sited.plan.campaign, 2, RunDetail::timeline);
  };
  const ScenarioFile file = sited_file(R"("site": {}, )" + lots);
  const SitedCampaign sited = plan_sited(*file.job, *file.run);
  const TrajectoryResult run = run_of(sited);
  const ScenarioFile bare = sited_file(lots);
  CHECK(run.wall == run_of(plan_sited(*bare.job, *bare.run)).wall);
  const SiteBooks books = site_books(*sited.site, run, 2);
  const MachineLevels& levels = sited.site->levels;
  // A quarter of the machines for two days, in which the whole would draw up to levels.training.
  Watts first;
  for (std::size_t h = 0; h < 48; ++h) {
    first = std::max(first, books.hours[h].of.machines / books.hours[h].length);
  }
  // Two checkpoints an hour hold the job for less than two seconds each.
  for (const auto& [highest, level] : {std::pair{first, 0.25 * levels.training},
                                       std::pair{books.power.machines, levels.training}}) {
    CHECK(highest <= level);
    CHECK(highest > 0.999 * level);
  }
  // Lots that come later are none of the site's limits.
  CHECK(run.site_slowed == 0);
}

TEST_CASE("smoothing: each way keeps to the ramp, and costs what it has to") {
  const ScenarioFile file = sited_file(R"("site": {"ramp_mw_per_s": 0.1})");
  const SitedCampaign sited = plan_sited(*file.job, *file.run);
  const std::vector<SmoothingWay>& ways = sited.site->ramp.ways;
  REQUIRE(ways.size() == 5);
  const SmoothingWay& now = ways[0];
  CHECK(now.ramp_w_per_s == sited.site->ramp.step_w_per_s);
  CHECK_FALSE(now.keeps);
  for (const SmoothingWay& way : ways) {
    CAPTURE(way.name);
    CHECK(way.keeps == (way.ramp_w_per_s <= 0.1e6));
    CHECK(way.step >= now.step * (1 - 1e-12));
    CHECK(way.energy >= now.energy * (1 - 1e-9));
  }
  const auto same = [](auto a, auto b) { return a / b == doctest::Approx(1).epsilon(1e-9); };
  CHECK(ways[1].name == "store");
  CHECK(same(ways[1].energy, now.energy));
  CHECK(same(ways[1].step, now.step));
  CHECK(ways[2].name == "floor");
  CHECK(same(ways[2].step, now.step));
  CHECK(ways[2].energy > now.energy);
  CHECK(ways[3].name == "slower_ramps");
  CHECK(ways[3].step > now.step);
  CHECK(ways[4].name == "stagger");
  CHECK(same(ways[4].step, now.step + ways[4].over.value()));
  // The step as it is takes what the run's power says, hot spares included.
  const ScenarioFile spare = sited_file(R"("spares": {"hot": 2}, "site": {"ramp_mw_per_s": 0.1})");
  const SitedCampaign with = plan_sited(*spare.job, *spare.run);
  const StepReport step = simulate_step(*spare.job, {.record_timeline = true, .keep_actors = true});
  const StepPower held = with_reserve(step_power(*spare.job, step), 2.0 / 8);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    CAPTURE(ways[i].name);
    // Two idle nodes more, all the time that the step takes.
    const Joules idle = 2.0 / 10 * held.levels.idle.facility * ways[i].step;
    CHECK(same(with.site->ramp.ways[i].energy, ways[i].energy + idle));
  }
  CHECK(same(with.site->ramp.ways[0].energy, held.energy()));
  // Nothing to do where the step keeps to it; nothing to tell without a limit.
  const ScenarioFile wide = sited_file(R"("site": {"ramp_mw_per_s": 1000})");
  CHECK(plan_sited(*wide.job, *wide.run).site->ramp.ways.size() == 1);
  const ScenarioFile none = sited_file(R"("site": {})");
  CHECK(plan_sited(*none.job, *none.run).site->ramp.ways.empty());
}

TEST_CASE(
    "lots of another kind: the job runs where it is fastest, and each draws what its kind does") {
  const auto sited = [](const std::string& lots) {
    const ScenarioFile file = sited_file(R"("purchase": {"lots": [)" + lots + "]}");
    return plan_sited(*file.job, *file.run);
  };
  const std::string old =
      R"({"name": "old", "terms": "on_demand", "node": "dgx_a100_80gb", "nodes": 8,
          "usd_per_gpu_hour": 1, "until": "4 d"})";
  const std::string own = R"(, {"name": "own", "terms": "buy", "nodes": 8, "usd_per_node": 1,
                               "lead_time": "2 d"})";
  const SitedCampaign both = sited(old + own);
  const std::vector<FleetStep>& steps = both.fleet->steps;
  REQUIRE(steps.size() == 3);
  REQUIRE(both.fleet->kinds.size() == 2);
  CHECK(both.fleet->kinds[1] == "dgx_a100_80gb");
  // The speed on the old kind is that of the scenario on it.
  const ScenarioFile plain = sited_file(R"("spares": {"hot": 0})");
  Scenario on_old = *plain.job;
  on_old.node = presets().node("dgx_a100_80gb");
  const double ratio =
      simulate_step(on_old, {}).tokens_per_s / simulate_step(*plain.job, {}).tokens_per_s;
  CHECK(ratio < 1);
  CHECK(steps[0].speed == doctest::Approx(ratio).epsilon(1e-12));
  CHECK(steps[0].kind == 1);
  CHECK(steps[0].apart == 0);
  // Then the new ones work and the old ones stand idle, no spares of theirs; then they are gone.
  CHECK(steps[1].speed == 1);
  CHECK(steps[1].kind == 0);
  CHECK(steps[1].nodes == 16);
  CHECK(steps[1].used == 8);
  CHECK(steps[1].apart == 8);
  CHECK(steps[2].nodes == 8);
  CHECK(steps[2].apart == 0);
  CHECK(both.fleet->standing_by() == 0);
  // A node that works draws what its kind does.
  const auto node_of = [](const Scenario& scenario) {
    const StepReport step = simulate_step(scenario, {.record_timeline = true, .keep_actors = true});
    return step_power(scenario, step).levels.training.facility.base_units() / scenario.nodes;
  };
  CHECK(steps[0].working() == doctest::Approx(8 * node_of(on_old) / node_of(*plain.job)));
  CHECK(steps[2].working() == 8);
  CHECK(steps[2].standing() == 0);
  // One kind, named or not, is as before.
  const std::string same = R"({"name": "a", "terms": "buy", "node": "dgx_h100", "nodes": 8,
                               "usd_per_node": 1})";
  CHECK(sited(same).fleet->kinds.size() == 1);
  CHECK(sited(same).fleet->steps.front().working() == 8);
}

TEST_CASE("lots of another kind: the job runs on both at once where that is faster") {
  const auto text = [](const std::string& cluster, const std::string& batch,
                       const std::string& run) {
    return R"({"cluster": {)" + cluster + R"(}, "model": "llama3_8b",
      "parallelism": {"data": 64, "sharding": "zero1"},
      "batch": {"sequences": 256, "micro": 1, "tokens": 2048)" +
           batch + R"(}, "recompute": "full", "stack": "megatron_core", "power": {}, "run":
      {"duration": "5 d", "reliability": {"modes": []}, "spares": {"hot": 0})" +
           run + "}}";
  };
  const auto read = [](const std::string& written) {
    return read_scenario_file(parse_scenario("t.json", written), presets(), {});
  };
  const std::string own = R"("node": "dgx_h100", "nodes": 8, "fabric": "rail_optimised")";
  const auto sited = [&](int h100, int a100) {
    const ScenarioFile file = read(text(own, "",
                                        fmt::format(R"(, "purchase": {{"lots": [
            {{"name": "new", "terms": "on_demand", "nodes": {}, "usd_per_gpu_hour": 1}},
            {{"name": "old", "terms": "on_demand", "node": "dgx_a100_80gb", "nodes": {},
              "usd_per_gpu_hour": 1}}]}})",
                                                    h100, a100)));
    return plan_sited(*file.job, *file.run).fleet;
  };
  const std::shared_ptr<const Fleet> both = sited(4, 5);
  const FleetStep& step = both->steps.front();
  CHECK(step.nodes == 9);
  CHECK(step.used == 8);
  CHECK(step.apart == 0);
  CHECK(both->kinds[step.kind] == "4 dgx_h100 + 4 dgx_a100_80gb");
  // It is what the same cluster says in "pools", with a balanced batch.
  const ScenarioFile pools = read(text(R"("pools": [{"node": "dgx_h100", "nodes": 4},
      {"node": "dgx_a100_80gb", "nodes": 4}], "across": "data", "fabric": "rail_optimised")",
                                       R"(, "micro_batches": "balanced")", ""));
  const ScenarioFile plain = read(text(own, "", ""));
  const double ratio =
      simulate_step(*pools.job, {}).tokens_per_s / simulate_step(*plain.job, {}).tokens_per_s;
  CHECK(step.speed == doctest::Approx(ratio).epsilon(1e-12));
  // Faster than the new ones alone, and no other answer where the old ones have no place.
  CHECK(step.speed > sited(4, 1)->steps.front().speed - 1e-12);
  CHECK(sited(8, 4)->steps.front().speed == 1);
  CHECK(sited(8, 4)->steps.front().apart == 4);
  // Four of the old ones draw less than four of the new.
  CHECK(step.working() < 8);
  CHECK(step.working() > 4);
}

TEST_CASE("lots of another kind: a power cap is theirs, too, where it is below their limit") {
  // Tokens a second on eight old nodes.
  const auto speed = [](const std::string& power) {
    const ScenarioFile file = sited_file(
        R"("purchase": {"lots": [{"name": "old", "terms": "on_demand", "node": "dgx_a100_80gb",
            "nodes": 8, "usd_per_gpu_hour": 1}]})",
        power);
    const SitedCampaign of = plan_sited(*file.job, *file.run);
    return of.fleet->steps.front().speed * simulate_step(*file.job, {}).tokens_per_s;
  };
  const double free = speed(R"("power": {},)"), capped = speed(R"("power": {"cap": "300 W"},)");
  CHECK(capped < 0.95 * free);
  // Above the 400 W of theirs it holds only the scenario's.
  CHECK(speed(R"("power": {"cap": "500 W"},)") == doctest::Approx(free).epsilon(1e-12));
  // As the same cards in a scenario of their own.
  const std::string text =
      R"({"cluster": {"node": "dgx_a100_80gb", "nodes": 8}, "model": "llama3_8b",
          "parallelism": {"data": 64, "sharding": "zero1"},
          "batch": {"sequences": 64, "micro": 1, "tokens": 2048}, "recompute": "full",
          "stack": "megatron_core", "power": {"cap": "300 W"}})";
  const ScenarioFile own = read_scenario_file(parse_scenario("t.json", text), presets(), {});
  CHECK(capped == doctest::Approx(simulate_step(*own.job, {}).tokens_per_s).epsilon(1e-12));
}

TEST_CASE("lots of another kind: what cannot be is one line") {
  const auto problem = [](const std::string& lot) {
    try {
      const ScenarioFile file = sited_file(
          R"("purchase": {"lots": [{"name": "a", "terms": "buy", "nodes": 8, "usd_per_node": 1},
             {"name": "b", "nodes": 8, )" +
          lot + "}]}");
      (void)plan_sited(*file.job, *file.run);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const std::string rent = R"("terms": "on_demand", "usd_per_gpu_hour": 1, )";
  CHECK(problem(rent + R"("node": "dgx_b20")").find("Did you mean \"dgx_b200\"?") !=
        std::string::npos);
  CHECK(problem(rent + R"("node": "dgx_b200")").find("let cluster.node be the fastest kind") !=
        std::string::npos);
  CHECK(problem(R"("terms": "spot", "usd_per_gpu_hour": 1, "taken_away": "1 d",
                   "node": "dgx_a100_80gb")")
            .find("only nodes of the scenario's kind are taken away") != std::string::npos);
  CHECK(problem(rent + R"("node": "dgx_a100_80gb")") == "none");
  CHECK(problem(rent + R"("node": "my/node.json")").find("--presets adds a folder") !=
        std::string::npos);
}

}  // namespace lockstep
