/// A replica of a pool that a scenario serves with, as the models see it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/generation/serving_replica.hpp"
#include "sim/scenario/serving_spec.hpp"

namespace lockstep {

ServingReplicaSpec replica_spec(const ServingPool& pool, const ServingSpec& spec);

/// What `ranks` tensor-parallel ranks of a replica would have to be, where they cannot share out
/// the heads, groups or blocks of every layer.
std::optional<std::string> tensor_problem(const TransformerShape& model, int ranks);

/// What is wrong with how the ranks of a replica share the model out.
struct LayoutProblem {
  std::string_view key;
  std::string allowed;
};
std::optional<LayoutProblem> layout_problem(const ServingPool& pool, const TransformerShape& model);

}  // namespace lockstep
