#include "tools/lockstep/goodput_grid.hpp"

#include "sim/site/site_plan.hpp"
#include "tools/console/progress.hpp"
#include "tools/lockstep/vary/axes.hpp"

namespace lockstep {
GridPlan::GridPlan(const CampaignInput& input, const std::vector<std::string>& options,
                   const PlannedWork& work)
    : axes_(parse_axes(options)) {
  for (std::size_t i = 0; i < points_of(axes_); ++i) campaigns_.push_back(plan_of(input, i, work));
}

GoodputGrid GridPlan::simulate(const SampleOptions& sampling, Console& console) const {
  Progress progress(console.err, "points", campaigns_.size(), console.err_is_terminal);
  GoodputGrid grid{.axes = axes_, .goodput = {}};
  for (const Campaign& campaign : campaigns_) {
    grid.goodput.push_back(summarise(campaign, sample(campaign, sampling)).goodput);
    progress.one_done();
  }
  return grid;
}

Campaign GridPlan::plan_of(const CampaignInput& input, std::size_t point,
                           const PlannedWork& work) const {
  const std::vector<std::string> changes = sets_at(axes_, point);
  std::vector<std::string> sets = input.parsed.set;
  sets.insert(sets.end(), changes.begin(), changes.end());
  try {
    const ParsedScenario parsed = parse_scenario(input.parsed.root.file(), input.parsed.text, sets);
    const ScenarioFile file = read_scenario_file(parsed, input.presets, input.options);
    Campaign campaign = plan_sited(*file.job, *file.run).plan.campaign;
    check_work(campaign, *file.run, {.trajectories = work.trajectories}, file.job->file);
    return campaign;
  } catch (const InputError& error) {
    throw told_of_vary(error, changes);
  }
}

}  // namespace lockstep
