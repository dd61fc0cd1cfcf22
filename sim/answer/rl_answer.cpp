#include "sim/answer/rl_answer.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "sim/rl/rl_account.hpp"

namespace lockstep {
namespace {

std::string gib_text(Bytes bytes) { return significant(bytes / gibibytes(1)) + " GiB"; }

/// Whether each model has room in its turn; if not, of the one that needs most.
void require_turns(const RlScenario& s, Bytes usable) {
  const std::vector<RlTurn> turns = rl_turns(s);
  const auto most = std::ranges::max_element(turns, {}, &RlTurn::needed);
  if (most == turns.end() || most->needed <= usable) return;
  const bool may_leave = s.rl.generation.nodes == 0 && s.rl.training_stays();
  throw InputError(
      {.file = s.training.file,
       .pointer = most->key.empty() ? "" : fmt::format("/rl/{}", most->key),
       .found = fmt::format("{} that needs {} on a GPU of stage {}{}", most->what,
                            gib_text(most->needed), most->stage,
                            s.rl.training_stays() ? ", with what other training keeps there" : ""),
       .allowed = fmt::format("at most {}{} (--allow-oom predicts anyway)", gib_text(usable),
                              may_leave ? ", or \"offload\"" : ""),
       .nearest = {}});
}

}  // namespace

void require_memory(const RlScenario& s) {
  const Scenario& t = s.training;
  const MemoryVerdict memory = rl_memory(s);
  if (memory.fits) return require_turns(s, memory.usable);
  const bool beside = !frozen_models(s).empty();
  throw InputError(
      {.file = t.file,
       .pointer = "",
       .found = fmt::format("training{} that needs {} on a GPU of stage {}",
                            beside ? " with a frozen model beside it" : "",
                            gib_text(memory.peak.needed()), memory.fullest_stage),
       .allowed = fmt::format("at most {}{} (--allow-oom predicts anyway)", gib_text(memory.usable),
                              memory.nearest_fit.empty() ? "" : ", as with " + memory.nearest_fit),
       .nearest = {}});
}

RlResult answer_rl(const RlScenario& s) {
  const bool powered = s.training.power.has_value();
  RlResult out{.report = simulate_rl_step(s, {.power = powered}), .power = {}};
  if (powered) out.power = rl_power(s, out.report);
  return out;
}

PoweredStep powered_step(const RlScenario& s, const RlReport& r, const RlPower& power) {
  const RlFlops flops = rl_flops(s, r.training_batch);
  return {.scenario = s.training,
          .power = power.site,
          .step_s = r.step.base_units(),
          .tokens = r.tokens,
          .model_flops = flops.training + flops.critic};
}

std::vector<double> rl_shares(const RlReport& report) {
  const double all = report.step.base_units() * report.gpus();
  std::vector<double> shares;
  shares.reserve(report.gpu_seconds.size());
  for (const double seconds : report.gpu_seconds) shares.push_back(seconds / all);
  return shares;
}

}  // namespace lockstep
