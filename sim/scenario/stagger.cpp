#include "sim/scenario/stagger.hpp"

#include <algorithm>

namespace lockstep {

int most_stagger_groups(const Parallelism& cut) {
  // Replicas that share experts send each other tokens in every layer.
  const int ranks = cut.expert * cut.expert_tensor, own = cut.tensor * cut.context;
  return cut.data / std::max(1, (ranks + own - 1) / own);
}

std::optional<std::string> stagger_problem(const Scenario& scenario) {
  const Parallelism& cut = scenario.job.parallelism;
  if (cut.sharding == Sharding::zero3) {
    return "no stagger beside zero3, whose replicas gather each other's weights in every layer";
  }
  if (most_stagger_groups(cut) < 2) {
    return "no stagger of a job whose replicas all work together: it needs several that meet only "
           "where gradients are summed";
  }
  return std::nullopt;
}

}  // namespace lockstep
