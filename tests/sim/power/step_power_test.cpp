// The power of simulated steps: books that balance, limits, caps, smoothing.
#include "sim/power/step_power.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <tuple>
#include <utility>

#include "models/base/input_error.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/random_scenarios.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

using test::presets;

std::string small_job(const std::string& power, const std::string& more = "") {
  return R"({"model": "llama2_7b", "cluster": {"node": "dgx_h100", "nodes": 4},
    "parallelism": {"tensor": 2, "pipeline": 4, "virtual_stages": 2, "schedule": "interleaved",
      "sharding": "zero1"},
    "batch": {"sequences": 32, "micro": 1, "tokens": 4096}, "recompute": "none",
    "power": )" +
         power + more + "}";
}

Scenario scenario(const std::string& power, const std::string& more = "") {
  return read_scenario("small.json", small_job(power, more), presets());
}

StepPower run(const Scenario& s, bool unfold = false) {
  return step_power(s, simulate_step(s, {.folding = unfold ? Folding::unfolded : Folding::automatic,
                                         .record_timeline = true,
                                         .keep_actors = true}));
}

void check_balance(const Scenario& s, const StepPower& power) {
  Joules parts;
  for (const PowerShare& share : power.shares) {
    CHECK(share.energy >= Joules{});
    parts += share.energy;
  }
  const double all = power.energy().base_units();
  CHECK(parts.base_units() == doctest::Approx(all).epsilon(1e-9));
  CHECK(power.facility.end.base_units() == doctest::Approx(power.step_s).epsilon(1e-9));
  CHECK(mean_power(power.node).base_units() ==
        doctest::Approx(power.node_parts.ac().base_units()).epsilon(1e-9));
  CHECK(power.gpu_peak <= s.node.gpu.power_limit * (1 + 1e-12));
  CHECK(power.gpu_trough >= s.node.gpu.power->active * (1 - 1e-12));
  CHECK(power.gpu_mean <= power.gpu_peak);
  CHECK(power.gpu_trough <= power.gpu_mean);
  CHECK(power.node_meter.high.base_units() <= peak_power(power.node).base_units() * (1 + 1e-9));
  CHECK(power.node_meter.low.base_units() >= trough_power(power.node).base_units() * (1 - 1e-9));
}

double first_share(const StepPower& power, std::string_view name) {
  for (const PowerShare& share : power.shares) {
    if (share.name == name) return share.energy.base_units();
  }
  return -1;
}

std::string problem(const std::string& power, const std::string& more = "") {
  try {
    (void)scenario(power, more);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("step_power: the series' integral is the sum by component") {
  check_balance(scenario("{}"), run(scenario("{}")));
  const auto check = [](const Scenario& s, const std::string&) { check_balance(s, run(s)); };
  test::hold("power of a step", test::test_seed(), 30, {.power = true, .most_nodes = 16}, check);
  test::hold("power of a step", test::test_seed(), 30,
             {.straggler = true, .power = true, .most_nodes = 16}, check);
}

TEST_CASE("step_power: a GPU is on from the first moment, and each stage has a peak of its own") {
  // Later stages wait for their first message, with nothing but what is always drawn: without
  // sharding no weights are gathered before it.
  std::string text = small_job("{}");
  text.replace(text.find("zero1"), 5, "none");
  const Scenario s = read_scenario("small.json", text, presets());
  const StepPower power = run(s);
  CHECK(first_share(power, "gpu_fixed") ==
        doctest::Approx(s.node.gpu.power->active.base_units() * s.gpus() * power.step_s)
            .epsilon(1e-9));
  REQUIRE(power.stages.size() == 4);
  Watts most;
  for (const StagePower& stage : power.stages) {
    CHECK(stage.peak >= stage.mean);
    CHECK(stage.mean > s.node.gpu.power->active);
    most = std::max(most, stage.peak);
  }
  CHECK(most == power.gpu_peak);
}

TEST_CASE("step_power: folded and unfolded say the same") {
  const Scenario s = scenario("{}");
  const StepPower folded = run(s), whole = run(s, true);
  CHECK(folded.energy().base_units() == doctest::Approx(whole.energy().base_units()).epsilon(1e-9));
  CHECK(folded.gpu_peak.base_units() == doctest::Approx(whole.gpu_peak.base_units()));
  CHECK(folded.node_meter.low.base_units() ==
        doctest::Approx(whole.node_meter.low.base_units()).epsilon(1e-9));
}

TEST_CASE("step_power: a cap that binds slows the step and saves more than it costs") {
  const Scenario free = scenario("{}");
  const auto step = [](const Scenario& s) { return simulate_step(s).step_s; };
  CHECK(step(scenario(R"({"cap": "700 W"})")) == step(free));
  double before = step(free), watts = run(free).gpu_mean.base_units();
  for (const char* cap : {"600 W", "450 W", "300 W"}) {
    CAPTURE(cap);
    const Scenario s = scenario(std::string(R"({"cap": ")") + cap + "\"}");
    const StepPower power = run(s);
    check_balance(s, power);
    CHECK(power.step_s > before);
    CHECK(power.gpu_mean.base_units() < watts);
    before = power.step_s;
    watts = power.gpu_mean.base_units();
  }
  // Clocks go as the cube root: a seventh less power costs a twentieth of the speed or so.
  CHECK(step(scenario(R"({"cap": "600 W"})")) < 1.1 * step(free));
}

TEST_CASE("step_power: a floor keeps the trough up, by burning, a store takes the swing away") {
  const StepPower plain = run(scenario("{}"));
  CHECK(first_share(plain, "gpu_ballast") == 0);
  const Scenario with_floor = scenario(R"({"smoothing": {"floor": "400 W"}})");
  const StepPower floor = run(with_floor);
  check_balance(with_floor, floor);
  CHECK(floor.gpu_trough.base_units() == doctest::Approx(400));
  CHECK(first_share(floor, "gpu_ballast") > 0);
  CHECK(floor.energy() > plain.energy());
  const Scenario with_store = scenario(R"({"smoothing": {"capacitor_joules": 1e6}})");
  const StepPower store = run(with_store);
  check_balance(with_store, store);
  CHECK(store.energy().base_units() == doctest::Approx(plain.energy().base_units()).epsilon(1e-9));
  CHECK(peak_power(store.facility).base_units() ==
        doctest::Approx(trough_power(store.facility).base_units()).epsilon(1e-9));
  CHECK(store.ramp_w_per_s < 1e-3 * plain.ramp_w_per_s);
}

TEST_CASE("step_power: levels go down from training to idle, and the site fits what it is for") {
  const StepPower power = run(scenario("{}"));
  CHECK(power.levels.training.facility > power.levels.waiting.facility);
  CHECK(power.levels.waiting.facility > power.levels.starting.facility);
  CHECK(power.levels.starting.facility > power.levels.idle.facility);
  CHECK(power.levels.idle.facility > Watts{});
  const double high = power.facility_meter.high.base_units();
  const auto under = [](double watts) {
    return run(scenario(R"({"site_limit": )" + std::to_string(watts) + "}"));
  };
  CHECK(under(std::ceil(high)).site_nodes == 4);
  // Too much for the limit means that fewer nodes fit than there are.
  const StepPower exceeded = under(high - 2);
  CHECK(exceeded.above(Watts{high - 2}) > Watts{});
  CHECK(exceeded.site_nodes == 3);
  CHECK(run(scenario(R"({"site_limit": "1 kW"})")).site_nodes == 0);
}

TEST_CASE("step_power: unused GPUs of a lone node idle") {
  const Scenario s = read_scenario("one.json", R"({"model": "llama2_7b",
    "cluster": {"node": "dgx_h100", "nodes": 1}, "parallelism": {"tensor": 2, "data": 1},
    "batch": {"sequences": 4, "tokens": 2048}, "power": {}})",
                                   presets());
  const StepPower power = run(s);
  check_balance(s, power);
  CHECK(first_share(power, "gpu_unused") == doctest::Approx(6 * 70 * power.step_s));
  CHECK(power.fabric.total() == Watts{});
}

TEST_CASE("power in a scenario: tariffs come from files beside it") {
  const test::TemporaryFolder folder;
  (void)folder.write("day.csv", "hour,usd_per_kwh\n0,0.05\n1,0.15\n");
  const std::string file =
      folder.write("job.json", small_job("{}", R"(, "cost": {"usd_per_kwh": "day.csv",
                                                              "grams_per_kwh": 300})"));
  const CostSpec cost = load_scenario(file, presets()).power->cost;
  CHECK(cost.usd_per_kwh.values == std::vector<double>{0.05, 0.15});
  CHECK(cost.grams_per_kwh.value().values == std::vector<double>{300});
}

TEST_CASE("power in a scenario: what is asked of nobody, or cannot be, is a mistake") {
  CHECK(problem(R"({"cap": "900 W"})").starts_with("small.json#/power/cap: found \"900 W\""));
  CHECK(problem(R"({"cap": "150 W"})").find("at its lowest clock") != std::string::npos);
  CHECK(problem(R"({"facility": "liquide"})").ends_with("Did you mean \"liquid\"?"));
  CHECK(problem("{}", R"(, "cost": {"usd_per_kwh": "none.csv"})").starts_with("none.csv: found"));
  const std::string without = R"({"model": "llama2_7b", "cluster": {"node": "dgx_h100"},
    "batch": {"sequences": 8, "tokens": 128}, "cost": {}})";
  CHECK_THROWS_AS((void)read_scenario("x.json", without, presets()), InputError);
}

TEST_CASE("step_power: what leaves a GPU is read from HBM, and written where it arrives") {
  // Replicas of one GPU, which reduce their gradients and share nothing else; a limit that no sum
  // of engines reaches, so that each draws what it asks for.
  const auto of = [](int replicas) {
    const std::string many = std::to_string(replicas);
    const Scenario s = read_scenario("one.json",
                                     R"({"model": {"preset": "llama2_7b", "layers": 4},
        "cluster": {"node": {"preset": "dgx_h100", "gpu": {"power_limit": "3 kW"}}, "nodes": 1},
        "parallelism": {"tensor": 1, "data": )" +
                                         many + R"(, "sharding": "none"},
        "batch": {"sequences": )" + many +
                                         R"(, "tokens": 2048}, "power": {}})",
                                     presets());
    return std::pair{run(s), *s.node.gpu.power};
  };
  const auto [alone, c] = of(1);
  const auto [eight, same] = of(8);
  CHECK(first_share(alone, "gpu_link") == 0);
  const double sent = first_share(eight, "gpu_link") / (c.link * Bytes{1}).base_units();
  CHECK(sent > 0);
  const double moved = first_share(eight, "gpu_hbm") - 8 * first_share(alone, "gpu_hbm");
  CHECK(moved / (c.hbm * Bytes{1}).base_units() == doctest::Approx(2 * sent).epsilon(1e-6));
}

TEST_CASE("step_power: a link between switches has two ports, a NIC's has one") {
  const auto ports = [](const std::string& fabric) {
    const Scenario s = read_scenario("small.json", small_job("{}"), presets(),
                                     {.set = {"cluster.fabric=" + fabric}});
    return run(s).holdings.ports_100g;
  };
  // 32 NICs of 400 Gb/s below a switch; or below two leaves, with half as many cables above these.
  CHECK(ports(R"("ideal")") == doctest::Approx(4 * 32));
  CHECK(ports(R"({"kind": "fat_tree", "leaf_ports_down": 16, "leaf_oversubscription": 2})") ==
        doctest::Approx(4 * (32 + 2 * 16)));
}

TEST_CASE("step_power: nobody buys uplinks that the NICs below a leaf cannot fill") {
  const Scenario s = read_scenario("small.json", small_job("{}"), presets(),
                                   {.set = {"cluster.fabric=rail_optimised"}});
  // 4 nodes of 8 NICs of 400 Gb/s: 8 leaves of 4 NICs, with 4 of 32 uplinks each to the spines.
  CHECK(run(s).holdings.ports_100g == doctest::Approx(4 * (32 + 2 * 8 * 4)));
  CHECK(std::ranges::any_of(s.assumptions, [](const std::string& text) {
    return text.starts_with("power: 224 of 256 cables between switches neither draw nor cost");
  }));
  const Scenario full = read_scenario(
      "small.json", small_job("{}"), presets(),
      {.set = {R"(cluster.fabric={"kind": "rail_optimised", "leaf_ports_down": 4})"}});
  CHECK(run(full).holdings.ports_100g == doctest::Approx(4 * (32 + 2 * 8 * 4)));
  CHECK(std::ranges::none_of(full.assumptions,
                             [](const std::string& text) { return text.starts_with("power: "); }));
}

TEST_CASE("step_power: the GPU's part of the optimiser's step streams, the host's does not") {
  // One GPU: passes draw the same wherever the optimiser is.
  const auto of = [](const std::string& share) {
    const Scenario s = read_scenario("one.json", R"({"model": {"preset": "llama2_7b", "layers": 4},
        "cluster": {"node": "dgx_h100", "nodes": 1}, "parallelism": {"tensor": 1, "data": 1},
        "batch": {"sequences": 1, "tokens": 2048}, "power": {}})",
                                     presets(), {.set = {"offload.optimiser=" + share}});
    const StepReport report = simulate_step(s, {.record_timeline = true, .keep_actors = true});
    return std::tuple{s.node.gpu, report.seconds[static_cast<std::size_t>(Bucket::optimiser)],
                      first_share(step_power(s, report), "gpu_hbm")};
  };
  const auto [gpu, on_gpu_s, with_gpu] = of("0");
  const auto [same, on_host_s, with_host] = of("1");
  REQUIRE(on_host_s > on_gpu_s);
  const Joules streamed =
      gpu.power->hbm * (Seconds{on_gpu_s} * (gpu.memory.efficiency * gpu.hbm_bandwidth));
  CHECK(with_gpu - with_host == doctest::Approx(streamed.base_units()).epsilon(1e-6));
}

TEST_CASE("stagger: a step takes as much longer as the last group begins later, and no more") {
  const Scenario plain = scenario("{}");
  const Scenario staggered =
      scenario(R"({"smoothing": {"stagger": {"over": "200 ms", "groups": 4}}})");
  const StepReport before = simulate_step(plain), after = simulate_step(staggered);
  CHECK(after.step_s == doctest::Approx(before.step_s + 0.2).epsilon(1e-12));
  double sum = 0;
  for (const double s : after.seconds) sum += s;
  CHECK(sum == doctest::Approx(after.step_s).epsilon(1e-9));
  double path = 0;
  for (const CriticalPathPart& part : after.critical_path) path += part.seconds;
  CHECK(path == doctest::Approx(after.step_s).epsilon(1e-9));
  const StepPower one = run(plain), four = run(staggered);
  check_balance(staggered, four);
  // The work is the same. Cards that wait for their turn draw what they draw between kernels.
  const double active = plain.node.gpu.power->active.base_units();
  CHECK(first_share(four, "gpu_fixed") ==
        doctest::Approx(first_share(one, "gpu_fixed") + 32 * active * 0.2).epsilon(1e-9));
  CHECK(first_share(four, "gpu_tensor") ==
        doctest::Approx(first_share(one, "gpu_tensor")).epsilon(1e-2));
  CHECK(peak_power(four.facility) <= peak_power(one.facility) * (1 + 1e-9));
  // Far enough apart, a stair is a group: the rise within the window is no more than a half.
  const Scenario far = scenario(R"({"smoothing": {"stagger": {"over": "60 s", "groups": 4}}})");
  CHECK(run(far).ramp_w_per_s <= one.ramp_w_per_s * (1 + 1e-9));
  CHECK(run(staggered, true).energy().base_units() ==
        doctest::Approx(four.energy().base_units()).epsilon(1e-9));
}

TEST_CASE("stagger: who cannot begin one after the other is told why") {
  const std::string four = R"({"smoothing": {"stagger": {"over": "1 s", "groups": 4}}})";
  CHECK(problem(R"({"smoothing": {"stagger": {"over": "1 s", "groups": 5}}})")
            .find("at most 4, the groups of replicas") != std::string::npos);
  CHECK(problem(R"({"smoothing": {"stagger": {"over": "1 s", "groups": 1}}})")
            .starts_with("small.json#/power/smoothing/stagger/groups"));
  CHECK(problem(R"({"smoothing": {"stagger": {"groups": 2}}})").find("over") != std::string::npos);
  CHECK(problem(R"({"smoothing": {"stagger": {"over": "0 s", "groups": 2}}})")
            .starts_with("small.json#/power/smoothing/stagger/over"));
  const auto of = [](const std::string& parallelism) {
    const std::string text = R"({"model": "llama2_7b", "cluster": {"node": "dgx_h100", "nodes": 4},
      "parallelism": )" + parallelism +
                             R"(, "batch": {"sequences": 32, "micro": 1, "tokens": 4096},
      "recompute": "full",
      "power": {"smoothing": {"stagger": {"over": "1 s", "groups": 2}}}})";
    try {
      (void)read_scenario("s.json", text, presets());
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK(of(R"({"tensor": 8, "sharding": "zero3"})").find("zero3") != std::string::npos);
  CHECK(of(R"({"tensor": 8, "pipeline": 4})").find("it needs several") != std::string::npos);
  CHECK(of(R"({"tensor": 8, "sharding": "zero1"})") == "none");
  CHECK(problem(four) == "");
}

}  // namespace lockstep
