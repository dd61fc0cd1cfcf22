/// A kind of node of a step on several.
#pragma once

#include <optional>
#include <vector>

#include "sim/answer/answer_fields.hpp"
#include "sim/step/pool_memory.hpp"

namespace lockstep {

/// What is said of a kind of node.
struct PoolAnswer {
  const NodePool* of = nullptr;
  const PoolReport* report = nullptr;
  PoolMemory memory;
  double step_s = 0;
  bool pacing = false;
  std::optional<PoolPower> power;
};

const FieldTable<PoolAnswer>& pool_fields();
std::vector<PoolAnswer> pool_answers(const RunResult& result);

}  // namespace lockstep
