// A card is made of its layers in one order: datasheet, law, measured times, power cap.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/shared_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

using test::presets;

constexpr const char* kMeasured = R"({"gpu": "h100_sxm5_80gb", "gemm": [
  {"m": 8192, "n": 8192, "k": 8192, "precision": "bf16", "load": "burst", "time": "1500 us"},
  {"m": 8192, "n": 8192, "k": 8192, "precision": "bf16", "load": "sustained", "time": "1750 us"},
  {"m": 8192, "n": 4096, "k": 4096, "precision": "bf16", "load": "sustained", "time": "460 us"}]})";

constexpr const char* kCappedJob = R"("model": "llama3_8b", "stack": "megatron_core",
  "parallelism": {"tensor": 2, "data": 16, "sharding": "zero1"},
  "batch": {"sequences": 64, "micro": 1, "tokens": 8192}, "recompute": "full")";

double step_s(const std::string& power, const std::vector<std::string>& profiles) {
  const std::string text =
      fmt::format(R"({{{}, "cluster": {{"node": "dgx_h100", "nodes": 4, "fabric": "fat_tree"}},
                      "power": {{{}}}}})",
                  kCappedJob, power);
  return simulate_step(read_scenario("t.json", text, presets(), {.set = {}, .profiles = profiles}),
                       {})
      .step_s;
}

}  // namespace

TEST_CASE("power cap: lowering it never shortens a step, with a profile and without") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("p.json", kMeasured);
  for (const std::vector<std::string>& profiles : {std::vector<std::string>{}, {file}}) {
    CAPTURE(profiles.size());
    double before = step_s("", profiles);
    for (const int watts : {700, 650, 600, 550, 500, 450, 400, 350, 300}) {
      CAPTURE(watts);
      const double now = step_s(fmt::format(R"("cap": "{} W")", watts), profiles);
      CHECK(now >= before);
      if (watts <= 600) CHECK(now > before);
      before = now;
    }
  }
}

TEST_CASE("power cap: a profile takes nothing away from what a cap costs") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("p.json", kMeasured);
  const double laws = step_s(R"("cap": "450 W")", {}) / step_s("", {});
  const double measured = step_s(R"("cap": "450 W")", {file}) / step_s("", {file});
  CHECK(laws > 1.1);
  // Products are not all of a step, and the profile makes them a little longer.
  CHECK(measured == doctest::Approx(laws).epsilon(0.01));
}

TEST_CASE("card: a lower power limit costs what a cap at it costs, and has the same lowest value") {
  const auto limited = [](const std::string& watts) {
    const std::string text =
        fmt::format(R"({{{}, "cluster": {{"node": {{"preset": "dgx_h100", "gpu": {{
            "power_limit": "{}"}}}}, "nodes": 4, "fabric": "fat_tree"}}, "power": {{}}}})",
                    kCappedJob, watts);
    return simulate_step(read_scenario("t.json", text, presets(), {}), {}).step_s;
  };
  CHECK(limited("700 W") == step_s("", {}));
  CHECK(limited("400 W") == step_s(R"("cap": "400 W")", {}));
  CHECK_THROWS_WITH_AS(
      limited("100 W"),
      doctest::Contains("#/cluster/node/gpu/power_limit: found \"100 W\"; allowed: from "),
      InputError);
}

TEST_CASE("profiles: what was measured says nothing of a card that the scenario changes") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> profiles{folder.write("p.json", kMeasured)};
  const auto with = [&](const std::string& change) {
    const std::string text =
        fmt::format(R"({{{}, "cluster": {{"node": {{"preset": "dgx_h100", "gpu": {{{}}}}},
            "nodes": 4, "fabric": "fat_tree"}}}})",
                    kCappedJob, change);
    return read_scenario("t.json", text, presets(), {.set = {}, .profiles = profiles});
  };
  CHECK_NOTHROW(with(R"("speed_spread": 0.02)"));
  for (const std::string change :
       {R"("peak_bf16": "100 TFLOP/s")", R"("hbm_bandwidth": "1 TB/s")"}) {
    CHECK_THROWS_WITH_AS(
        with(change),
        "t.json#/cluster/node/gpu: found another card than h100_sxm5_80gb of the presets; allowed: "
        "that card as it is beside --profile; power.cap lowers its clock",
        InputError);
  }
}

TEST_CASE("profiles: a job of several reads its card as a job by itself does") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> profiles{folder.write("p.json", kMeasured)};
  const std::string text = fmt::format(
      R"({{"cluster": {{"node": "dgx_h100", "nodes": 4, "fabric": "fat_tree"}},
           "jobs": [{{"name": "a", "nodes": {{"count": 4}}, {}}}]}})",
      kCappedJob);
  const JsonCursor root = JsonCursor::parse("s.json", text);
  const SharedScenario shared = read_shared_scenario(root, presets(), profiles);
  CHECK(simulate_step(shared.jobs[0].scenario, {}).step_s ==
        doctest::Approx(step_s("", profiles)).epsilon(1e-9));
}

}  // namespace lockstep
