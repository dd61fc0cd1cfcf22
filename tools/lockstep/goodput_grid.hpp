/// `lockstep run --vary`: a run over one or two values of its scenario.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "sim/run/campaign_work.hpp"
#include "sim/run/summary.hpp"
#include "tools/console/console.hpp"
#include "tools/lockstep/run/campaign_result.hpp"
#include "tools/lockstep/run_campaign.hpp"

namespace lockstep {

/// The points, each with its scenario read anew, so that any value may change. All of them are
/// read, and so checked, before the first one is simulated.
class GridPlan {
 public:
  /// Of each "PATH=V1,V2,...", with as many trajectories as `work` says. Throws UsageError and
  /// InputError.
  GridPlan(const CampaignInput& input, const std::vector<std::string>& options,
           const PlannedWork& work);

  [[nodiscard]] bool empty() const { return points_.empty(); }
  /// Stopped early by `sampling.progress`, points are missing. Throws InputError.
  [[nodiscard]] GoodputGrid simulate(const SampleOptions& sampling, const StepIntervals& intervals,
                                     Console& console) const;

 private:
  struct Point {
    std::unique_ptr<const ScenarioFile> file;
    CampaignResult planned;  ///< of the file's scenario
  };
  [[nodiscard]] Point plan_of(const CampaignInput& input, std::size_t point,
                              const PlannedWork& work) const;

  std::vector<GoodputGrid::Axis> axes_;
  std::vector<Point> points_;
};

}  // namespace lockstep
