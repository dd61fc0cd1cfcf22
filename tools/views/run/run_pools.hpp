/// What `lockstep run` says of a job on several kinds of node.
#pragma once

#include <string>
#include <vector>

#include "tools/views/run/run_result.hpp"

namespace lockstep {

/// "(4 x dgx_h100 + 4 x dgx_a100_80gb)", with the GPU where there is one kind.
std::string nodes_text(const Scenario& scenario);

/// "12 micro batches of 2", "1 micro batch of 2", "6 to 18 micro batches of 2".
std::string micro_batches_text(const Scenario& scenario);

/// What is told of each kind of node, a row each, and the sentence about the pace; no rows where
/// there is one kind.
struct KindsOfNode {
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> rows{};
  std::string pace{};
};
KindsOfNode kinds_of_node(const RunResult& result);

/// A row for each pool, and which of them sets the pace; empty where there is one kind of node.
std::string pools_table(const RunResult& result, const TextStyle& style);

}  // namespace lockstep
