#include "models/generation/engine.hpp"

#include <cassert>

namespace lockstep {

ServingEngine EngineSpec::rollout() const {
  assert(serving);
  ServingEngine out = *serving;
  out.memory_fraction = memory_fraction;
  out.workspace = workspace;
  out.graphs = graphs;
  for (KernelLaws& laws : out.kernels) {
    if (step_host) laws.host.step = *step_host;
    if (sequence_host) laws.host.sequence = *sequence_host;
  }
  return out;
}

}  // namespace lockstep
