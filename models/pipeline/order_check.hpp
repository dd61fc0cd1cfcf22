/// Whether the orders of a pipeline's ranks do a step's work, and come to its end.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/pipeline/schedule.hpp"

namespace lockstep {

struct OrderProblem {
  int rank = 0;
  std::size_t place = 0;  ///< index in the rank's order; its length: something is missing there
  std::string rule;       ///< what is allowed: "forward passes of chunk 0 in rising order"
};

/// The first problem of the first rank that has one; nothing where every rank runs each pass of its
/// chunks once, forward passes and backward passes of a chunk in rising order of their micro
/// batches, a forward pass before its backward pass, gradients of inputs before those of weights,
/// and no rank waits for ever. `micro_batches` are those of all chunks together.
std::optional<OrderProblem> check_orders(const PipelineShape& shape, int micro_batches,
                                         std::span<const std::vector<WorkItem>> ranks);

/// A pass as order files write it: "F3", "B3@1", "W0"; a pass of a pair without its partner.
std::string pass_text(const WorkItem& item);

}  // namespace lockstep
