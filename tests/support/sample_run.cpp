#include "tests/support/sample_run.hpp"

#include <fstream>
#include <iterator>

#include "models/base/json_cursor.hpp"
#include "models/layer/flops.hpp"
#include "models/power/cost.hpp"
#include "sim/power/run_power.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/run_spec.hpp"
#include "sim/step/step.hpp"
#include "tests/support/presets.hpp"

namespace lockstep::test {
namespace {

RunBill bill_of_typical(const CampaignResult& result) {
  const CostSpec& prices = result.scenario.power->cost;
  const double steps = result.steps();
  const Usage usage =
      run_usage(*result.typical, result.power->levels, prices, steps * result.tokens_per_step(),
                steps * step_flops(result.scenario.job).full);
  return {.usage = usage, .cost = cost_of(prices, result.power->holdings, usage)};
}

}  // namespace

SampleRun sample_run(const std::vector<std::string>& set) {
  const std::string file = "scenarios/llama3-405b-54days.json";
  std::ifstream in(std::string(LOCKSTEP_SOURCE_DIR) + "/" + file);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  ScenarioOptions options{.set = {"cost.usd_per_gpu=25000", "cost.usd_per_node=90000",
                                  "cost.usd_per_100g_port=250", "cost.usd_per_facility_w=10",
                                  "cost.usd_per_kwh=0.07", "cost.grams_per_kwh=380",
                                  "cost.people_usd_per_hour=3000"}};
  options.set.insert(options.set.end(), set.begin(), set.end());
  const JsonCursor root = JsonCursor::parse(file, text);
  return {.scenario = read_scenario(file, text, presets(), options),
          .run = read_run_spec(root.at("run"), presets())};
}

CampaignResult simulate_sample(const SampleRun& sample, std::uint32_t trajectories) {
  const Scenario& scenario = sample.scenario;
  CampaignResult result{
      .scenario = scenario, .plan = plan_campaign(scenario, sample.run), .summary = {}};
  const Campaign& campaign = result.plan.campaign;
  const std::vector<TrajectoryResult> results =
      lockstep::sample(campaign, {.trajectories = trajectories, .progress = {}});
  result.summary = summarise(campaign, results);
  result.step = simulate_step(scenario, {.record_timeline = true, .keep_actors = true});
  result.mfu = result.step.mfu_full;
  for (const int gpus : {1024, 8192, 131'072}) {
    result.projections.push_back(
        {.gpus = gpus,
         .mttf = Seconds{result.summary.mttf.mean_s.value() * scenario.gpus() / gpus}});
  }
  result.typical_number = median_trajectory(results);
  result.typical = run_trajectory(campaign, result.typical_number, RunDetail::timeline);
  result.power = step_power(scenario, result.step);
  result.bill = bill_of_typical(result);
  return result;
}

void add_optimum(CampaignResult& result, std::uint32_t trajectories) {
  result.optimum =
      optimise_interval(result.plan.campaign, {.trajectories = trajectories, .progress = {}});
}

}  // namespace lockstep::test
