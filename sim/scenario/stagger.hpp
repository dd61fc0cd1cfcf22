/// Where replicas of a job may begin their steps one after the other.
#pragma once

#include <optional>
#include <string>

#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// Groups of replicas that need nothing of each other before gradients are summed.
int most_stagger_groups(const Parallelism& cut);

/// Why the replicas cannot begin one after the other; none: they can.
std::optional<std::string> stagger_problem(const Scenario& scenario);

}  // namespace lockstep
