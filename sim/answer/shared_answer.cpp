#include "sim/answer/shared_answer.hpp"

#include <fmt/format.h>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/layer/memory.hpp"

namespace lockstep {

void require_memory(const SharedScenario& scenario) {
  for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
    const Scenario& job = scenario.jobs[j].scenario;
    const MemoryVerdict memory = check_memory(job.job, job.stack, job.node.gpu);
    if (memory.fits) continue;
    const auto gib = [](Bytes bytes) { return significant(bytes / gibibytes(1)) + " GiB"; };
    throw InputError(
        {.file = scenario.file,
         .pointer = fmt::format("/jobs/{}", j),
         .found = fmt::format("a job that needs {} on a GPU", gib(memory.peak.needed())),
         .allowed = fmt::format("at most {} (--allow-oom predicts anyway)", gib(memory.usable)),
         .nearest = {}});
  }
}

std::optional<SharedPower> power_of(const SharedScenario& scenario, const SharedResult& result) {
  if (!scenario.power) return std::nullopt;
  return shared_power(scenario, result);
}

JobBands bands_of(const HashAnswer& hash, std::size_t jobs, std::size_t index) {
  return {hash.bands[index], hash.bands[jobs + index]};
}

}  // namespace lockstep
