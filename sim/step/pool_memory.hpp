/// Memory of a job whose nodes, or whose replicas' batches, are unequal.
#pragma once

#include <cstddef>
#include <vector>

#include "models/layer/memory.hpp"
#include "sim/scenario/scenario.hpp"

namespace lockstep {

/// Peak of each stage, of the replica that needs most there.
std::vector<MemoryBreakdown> stage_memories(const Scenario& scenario);

/// Of the GPUs of a pool, those of the fullest stage.
struct PoolMemory {
  int stage = 0;
  MemoryBreakdown peak;
  Bytes usable;

  [[nodiscard]] bool fits() const { return peak.needed() <= usable; }
};
/// Of each pool, in their order: one for a job on one kind of node.
std::vector<PoolMemory> pool_memory(const Scenario& scenario);

/// The pool whose fullest GPU has least to spare, as a part of what it may use.
std::size_t tightest_pool(const std::vector<PoolMemory>& pools);

/// check_memory() of models/layer/memory.hpp, on the tightest pool. A remedy fits if every stage
/// would fit on that pool's GPUs; none is looked for where replicas have unequal batches.
MemoryVerdict check_memory(const Scenario& scenario);

}  // namespace lockstep
