// A card is made of its layers in one order: datasheet, law, measured times, power cap.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

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
