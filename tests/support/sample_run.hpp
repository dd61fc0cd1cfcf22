/// A long run with everything that its page shows, for tests of the page and for looking at it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "tools/views/run/campaign_result.hpp"

namespace lockstep::test {

/// scenarios/llama3-405b-54days.json with prices; `set` as --set takes it.
struct SampleRun {
  Scenario scenario;
  RunSpec run;
};
SampleRun sample_run(const std::vector<std::string>& set = {});

/// That many trajectories of it, with a bill and the median trajectory's timeline.
CampaignResult simulate_sample(const SampleRun& sample, std::uint32_t trajectories);
/// Adds what takes longer: the best interval.
void add_optimum(CampaignResult& result, std::uint32_t trajectories);

}  // namespace lockstep::test
