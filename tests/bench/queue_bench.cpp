// Queues of 100,000 jobs of given durations on 10,000 GPUs, at 95 % load: jobs per second.
#include <benchmark/benchmark.h>

#include "sim/cluster/simulate_queue.hpp"
#include "sim/scenario/queue_trace.hpp"

namespace lockstep {
namespace {

QueueSpec queue_under(QueueOrder order, QueueAdmission admission, PreemptionMode preemption) {
  QueueSpec spec;
  spec.file = "bench";
  spec.cluster.nodes = 1250;
  spec.cluster.node.gpus = 8;
  spec.order = order;
  spec.admission = admission;
  spec.preemption.mode = preemption;
  DrawnJobs drawn;
  drawn.count = 100'000;
  drawn.every = Seconds{1.5};
  drawn.gpus = {{1, 0.5}, {2, 0.15}, {4, 0.15}, {8, 0.15}, {16, 0.03}, {64, 0.02}};
  drawn.mean = Seconds{3255};
  drawn.sigma = 1.6;
  drawn.limit_factor = 2;
  draw_jobs(drawn, 0, spec);
  return spec;
}

void simulate_queue_under(benchmark::State& state, QueueOrder order, QueueAdmission admission,
                          PreemptionMode preemption) {
  const QueueSpec spec = queue_under(order, admission, preemption);
  for (auto _ : state) benchmark::DoNotOptimize(simulate_queue(spec).end);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(spec.jobs.size()));
}

BENCHMARK_CAPTURE(simulate_queue_under, srtf, QueueOrder::srtf, QueueAdmission::best_effort,
                  PreemptionMode::none)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_queue_under, srtf_evicting, QueueOrder::srtf,
                  QueueAdmission::best_effort, PreemptionMode::evict)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_queue_under, easy, QueueOrder::fifo, QueueAdmission::easy,
                  PreemptionMode::none)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lockstep
