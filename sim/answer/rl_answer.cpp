#include "sim/answer/rl_answer.hpp"

#include <fmt/format.h>
#include <string>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/layer/memory.hpp"

namespace lockstep {

void require_memory(const RlScenario& s) {
  const Scenario& t = s.training;
  const MemoryVerdict memory = check_memory(t.job, t.stack, t.node.gpu);
  if (memory.fits) return;
  const auto gib = [](Bytes bytes) { return significant(bytes / gibibytes(1)) + " GiB"; };
  throw InputError(
      {.file = t.file,
       .pointer = "",
       .found = fmt::format("training that needs {} on a GPU of stage {}",
                            gib(memory.peak.needed()), memory.fullest_stage),
       .allowed = fmt::format("at most {}{} (--allow-oom predicts anyway)", gib(memory.usable),
                              memory.nearest_fit.empty() ? "" : ", as with " + memory.nearest_fit),
       .nearest = {}});
}

std::vector<double> rl_shares(const RlReport& report) {
  const double all = report.step.base_units() * report.gpus();
  std::vector<double> shares;
  shares.reserve(report.gpu_seconds.size());
  for (const double seconds : report.gpu_seconds) shares.push_back(seconds / all);
  return shares;
}

}  // namespace lockstep
