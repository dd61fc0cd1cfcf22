/// What `lockstep run` says of a job on several kinds of node.
#pragma once

#include <string>

#include "tools/views/run/run_result.hpp"

namespace lockstep {

/// "(4 x dgx_h100 + 4 x dgx_a100_80gb)", with the GPU where there is one kind.
std::string nodes_text(const Scenario& scenario);

/// "12 micro batches of 2", "1 micro batch of 2", "6 to 18 micro batches of 2".
std::string micro_batches_text(const Scenario& scenario);

/// A row for each pool, and which of them sets the pace; empty where there is one kind of node.
std::string pools_table(const RunResult& result, const TextStyle& style);

}  // namespace lockstep
