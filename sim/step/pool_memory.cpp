#include "sim/step/pool_memory.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/scenario/replica_variants.hpp"
#include "sim/step/plan.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

/// The job as a replica with the most micro batches sees it: it holds the most activations.
TrainingJob fullest_job(const Scenario& s) {
  if (s.micro_batches.empty()) return s.job;
  return job_of_replica(s.job, *std::ranges::max_element(s.micro_batches));
}

}  // namespace

std::vector<MemoryBreakdown> stage_memories(const Scenario& s) {
  if (s.micro_batches.empty()) return peak_memories(s.job, s.stack);
  return peak_memories(fullest_job(s), s.stack);
}

std::vector<PoolMemory> pool_memory(const Scenario& s) {
  std::vector<PoolMemory> out(s.pool_count());
  const ReplicaVariants variants = replica_variants(s, Placement{placement_spec(s)});
  std::set<std::pair<std::uint32_t, int>> places;  // pool and stage
  for (const ReplicaVariant& variant : variants.list) {
    for (std::size_t stage = 0; stage < variant.pools.size(); ++stage) {
      places.emplace(variant.pools[stage], static_cast<int>(stage));
    }
  }
  const std::vector<MemoryBreakdown> stages = stage_memories(s);
  for (const auto& [pool, stage] : places) {
    const MemoryBreakdown& peak = stages[static_cast<std::size_t>(stage)];
    if (peak.needed() > out[pool].peak.needed()) {
      out[pool] = {stage, peak, usable_memory(s.node_of(pool).gpu, s.stack)};
    }
  }
  for (PoolMemory& pool : out) {
    const Bytes left = std::max(Bytes{}, pool.usable - pool.peak.needed());
    pool.peak.cached = std::min(pool.peak.cached, left);
  }
  return out;
}

std::size_t tightest_pool(const std::vector<PoolMemory>& pools) {
  const auto filled = [](const PoolMemory& p) { return p.peak.needed() / p.usable; };
  const auto tightest = std::ranges::max_element(
      pools, [&](const PoolMemory& a, const PoolMemory& b) { return filled(a) < filled(b); });
  return static_cast<std::size_t>(tightest - pools.begin());
}

MemoryVerdict check_memory(const Scenario& s) {
  if (!s.unequal()) return check_memory(s.job, s.stack, s.node.gpu);
  const std::vector<PoolMemory> pools = pool_memory(s);
  const std::size_t tightest = tightest_pool(pools);
  const PoolMemory& pool = pools[tightest];
  MemoryVerdict verdict{.fullest_stage = pool.stage,
                        .peak = pool.peak,
                        .usable = pool.usable,
                        .fits = pool.fits(),
                        .nearest_fit = {},
                        .band = memory_band(fullest_job(s), s.stack, s.node_of(tightest).gpu)};
  if (!verdict.fits && s.micro_batches.empty()) {
    verdict.nearest_fit = check_memory(s.job, s.stack, s.node_of(tightest).gpu).nearest_fit;
  }
  return verdict;
}

}  // namespace lockstep
