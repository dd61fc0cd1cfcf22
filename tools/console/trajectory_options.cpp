#include "tools/console/trajectory_options.hpp"

#include <algorithm>
#include <thread>

#include "tools/console/shared_options.hpp"

namespace lockstep {

namespace {

constexpr int kMostTrajectories = 1'000'000;

}  // namespace

int trajectories_of(const ParsedOptions& options, int otherwise) {
  return whole_number(options, "trajectories", otherwise, kMostTrajectories);
}

int trajectory_jobs_of(const ParsedOptions& options) {
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return whole_number(options, "jobs", cores, kMostJobs);
}

}  // namespace lockstep
