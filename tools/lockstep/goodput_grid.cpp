#include "tools/lockstep/goodput_grid.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "models/base/input_error.hpp"
#include "sim/run/plan_campaign.hpp"
#include "tools/console/progress.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostGridAxes = 2;
constexpr std::size_t kMostGridPoints = 400;

/// "PATH=V1,V2": an axis.
GoodputGrid::Axis parse_axis(const std::string& option) {
  const std::size_t equals = option.find('=');
  if (equals == 0 || equals == std::string::npos) {
    throw UsageError(fmt::format(
        "--vary: found {}; allowed: path=value,value,..., such as run.checkpoint.interval=\"5 "
        "min,10 min\"",
        in_quotes(option)));
  }
  GoodputGrid::Axis axis{.path = option.substr(0, equals), .values = {}};
  for (std::size_t begin = equals + 1; begin <= option.size();) {
    const std::size_t end = std::min(option.find(',', begin), option.size());
    const std::string value = option.substr(begin, end - begin);
    if (value.empty()) {
      throw UsageError(fmt::format("--vary: found {}; allowed: no empty value", in_quotes(option)));
    }
    axis.values.push_back(value);
    begin = end + 1;
  }
  return axis;
}

}  // namespace

GridPlan::GridPlan(const CampaignInput& input, const std::vector<std::string>& options,
                   const PlannedWork& work) {
  if (options.size() > kMostGridAxes) {
    throw UsageError(fmt::format("--vary: found {} of them; allowed: one or two", options.size()));
  }
  std::size_t count = options.empty() ? 0 : 1;
  for (const std::string& option : options) {
    axes_.push_back(parse_axis(option));
    count *= axes_.back().values.size();
  }
  if (count > kMostGridPoints) {
    throw UsageError(
        fmt::format("--vary: found {} points; allowed: at most {}", count, kMostGridPoints));
  }
  for (std::size_t i = 0; i < count; ++i) campaigns_.push_back(plan_of(input, i, work));
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
  std::vector<std::string> sets = input.parsed.set;
  for (std::size_t a = axes_.size(); a-- > 0;) {
    const std::vector<std::string>& values = axes_[a].values;
    sets.push_back(axes_[a].path + "=" + values[point % values.size()]);
    point /= values.size();
  }
  const ParsedScenario parsed = parse_scenario(input.parsed.root.file(), input.parsed.text, sets);
  const ScenarioFile file = read_scenario_file(parsed, input.presets, input.options);
  Campaign campaign = plan_campaign(*file.job, *file.run).campaign;
  check_work(campaign, *file.run, {.trajectories = work.trajectories}, file.job->file);
  return campaign;
}

}  // namespace lockstep
