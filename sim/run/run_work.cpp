#include "sim/run/run_work.hpp"

#include <utility>

#include "models/layer/flops.hpp"
#include "sim/rl/rl_account.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

RepeatedStep training_step(const Scenario& scenario) {
  const StepReport step = simulate_step(scenario, {});
  return {.step_s = step.step_s,
          .tokens = step.tokens_per_step,
          .flops = step_flops(scenario.job).full,
          .words = method_words(step.method, step.band),
          .update = scenario,
          .update_s = step.step_s,
          .training_share = 1,
          .iteration = {}};
}

RepeatedStep iteration_of(const RlScenario& rl) {
  const RlReport report = simulate_rl_step(rl, {.power = rl.training.power.has_value()});
  Scenario update = rl.training;
  update.job.batch = report.training_batch;
  const RlFlops flops = rl_flops(rl, report.training_batch);
  return {.step_s = report.step.base_units(),
          .tokens = report.tokens,
          .flops = flops.training + flops.critic,
          .words = method_words(report.update.method, report.band),
          .update = std::move(update),
          .update_s = report.update.step_s,
          .training_share = report.training / report.step,
          .iteration = report};
}

}  // namespace

RunWork repeated_work(const ScenarioFile& file) {
  if (file.rl) return {*file.rl};
  return {*file.job};
}

RepeatedStep repeated_step(const RunWork& work) {
  return work.rl == nullptr ? training_step(work.scenario) : iteration_of(*work.rl);
}

double step_time_on(const RunWork& work, const FabricSpec& fabric) {
  if (work.rl != nullptr) return simulate_rl_step(on_fabric(*work.rl, fabric)).step.base_units();
  Scenario scenario = work.scenario;
  scenario.fabric = fabric;
  return simulate_step(scenario, {.only_time = true}).step_s;
}

CheckpointBytes state_of(const RunWork& work) {
  CheckpointBytes state = checkpoint_bytes(work.scenario.job);
  if (work.rl == nullptr || !work.rl->rl.critic) return state;
  const RlSpec& rl = work.rl->rl;
  const CheckpointBytes critic =
      checkpoint_bytes(with_input_table(rl.critic->job, rl.critic_words));
  state.all += critic.all;
  state.per_gpu += critic.per_gpu;
  return state;
}

}  // namespace lockstep
