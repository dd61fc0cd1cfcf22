#include "tools/lockstep/goodput_grid.hpp"

#include <utility>

#include "tools/console/progress.hpp"
#include "tools/lockstep/vary/axes.hpp"

namespace lockstep {
GridPlan::GridPlan(const CampaignInput& input, const std::vector<std::string>& options,
                   const PlannedWork& work)
    : axes_(parse_axes(options)) {
  for (std::size_t i = 0; i < points_of(axes_); ++i) points_.push_back(plan_of(input, i, work));
}

GoodputGrid GridPlan::simulate(const SampleOptions& sampling, const StepIntervals& intervals,
                               Console& console) const {
  Progress progress(console.err, "points", points_.size(), console.err_is_terminal);
  GoodputGrid grid{.axes = axes_, .points = {}};
  for (std::size_t i = 0; i < points_.size(); ++i) {
    CampaignResult result = points_[i].planned;
    try {
      if (!answer_run(*points_[i].file->run, sampling, false, intervals, result)) return grid;
    } catch (const InputError& error) {
      throw told_of_vary(error, sets_at(axes_, i));
    }
    grid.points.push_back({.goodput = result.summary.goodput, .numbers = campaign_numbers(result)});
    progress.one_done();
  }
  return grid;
}

GridPlan::Point GridPlan::plan_of(const CampaignInput& input, std::size_t point,
                                  const PlannedWork& work) const {
  const std::vector<std::string> changes = sets_at(axes_, point);
  std::vector<std::string> sets = input.parsed.set;
  sets.insert(sets.end(), changes.begin(), changes.end());
  try {
    const ParsedScenario parsed = parse_scenario(input.parsed.root.file(), input.parsed.text, sets);
    auto file = std::make_unique<const ScenarioFile>(
        read_scenario_file(parsed, input.presets, input.options));
    CampaignResult planned = planned_run(repeated_work(*file), *file->run, {});
    check_work(planned.plan.campaign, *file->run, {.trajectories = work.trajectories},
               planned.scenario.file);
    return {.file = std::move(file), .planned = std::move(planned)};
  } catch (const InputError& error) {
    throw told_of_vary(error, changes);
  }
}

}  // namespace lockstep
