// Trajectories of long runs: 54 days on 16,384 GPUs, a year on 131,072 with every component failing
// on its own.
#include <benchmark/benchmark.h>
#include <cstdint>
#include <string>

#include "models/base/text_file.hpp"
#include "sim/run/plan_campaign.hpp"
#include "sim/run/trajectory.hpp"
#include "sim/scenario/read_scenario.hpp"

namespace lockstep {
namespace {

Campaign campaign_of(const std::string& scenario) {
  const PresetStore presets;
  const std::string path = LOCKSTEP_SOURCE_DIR "/scenarios/" + scenario;
  const JsonCursor root = JsonCursor::parse(path, read_text_file(path));
  return plan_campaign(load_scenario(path, presets), read_run_spec(root.at("run"), presets))
      .campaign;
}

void trajectory(benchmark::State& state, const char* scenario) {
  const Campaign campaign = campaign_of(scenario);
  std::uint32_t number = 0;
  std::uint64_t failures = 0;
  for ([[maybe_unused]] const auto _ : state) {
    for (const std::uint32_t of_mode : run_trajectory(campaign, number).failures) {
      failures += of_mode;
    }
    ++number;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(failures));
}

BENCHMARK_CAPTURE(trajectory, days_54, "llama3-405b-54days.json")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(trajectory, year_131072, "one-year-131072-gpus.json")
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lockstep
