/// A replica of a pool that a scenario serves with, as the models see it.
#pragma once

#include "models/generation/serving_replica.hpp"
#include "sim/scenario/serving_spec.hpp"

namespace lockstep {

ServingReplicaSpec replica_spec(const ServingPool& pool, const ServingSpec& spec);

/// What is wrong with how the ranks of a replica share the model out.
struct LayoutProblem {
  std::string_view key;
  std::string allowed;
};
std::optional<LayoutProblem> layout_problem(const ServingPool& pool, const TransformerShape& model);

}  // namespace lockstep
