#include "sim/answer/rl_answer.hpp"

#include <fmt/format.h>
#include <string>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/rl/rl_account.hpp"

namespace lockstep {

void require_memory(const RlScenario& s) {
  const Scenario& t = s.training;
  const MemoryVerdict memory = rl_memory(s);
  if (memory.fits) return;
  const bool beside = !frozen_models(s).empty();
  const auto gib = [](Bytes bytes) { return significant(bytes / gibibytes(1)) + " GiB"; };
  throw InputError(
      {.file = t.file,
       .pointer = "",
       .found = fmt::format("training{} that needs {} on a GPU of stage {}",
                            beside ? " with a frozen model beside it" : "",
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
