/// The answer to "what does one training step cost?": times, buckets, rates, memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "models/layer/memory.hpp"
#include "sim/core/clock.hpp"
#include "sim/fabric/fabric_use.hpp"

namespace lockstep {

/// Where a GPU-second can go. Every GPU-second of a step lands in exactly one.
enum class Bucket : std::uint8_t {
  model_flops,          ///< useful model FLOP (attention causal) at the datasheet peak of the job's
                        ///< precision
  kernel_inefficiency,  ///< matrix products and attention: what they take beyond that
  memory_bound,         ///< norms, activations, residuals, casts, loss
  recompute,
  launch,            ///< launch gaps and per-step host time
  tensor_exposed,    ///< waiting for tensor-parallel collectives
  context_exposed,   ///< waiting for keys and values of context-parallel ranks
  expert_exposed,    ///< waiting for tokens on their way to experts and back
  expert_imbalance,  ///< waiting for the expert-parallel rank that got most tokens
  pipeline_exposed,  ///< waiting for a pipeline message in flight
  pipeline_bubble,   ///< waiting for another stage to compute
  data_exposed,      ///< waiting for gradients or parameters between replicas
  host_exposed,      ///< waiting for copies to and from the host, the optimiser's step apart
  variation,         ///< expected wait for the slowest of equal GPUs
  straggler,         ///< waiting for a GPU or replica that is slower by name
  optimiser,
};
constexpr std::size_t kBuckets = 16;

struct BucketInfo {
  Bucket bucket;
  std::string_view name;    ///< as JSON says it: "pipeline_bubble"
  std::string_view title;   ///< as a person reads it: "Pipeline bubble"
  std::string_view remedy;  ///< the change that attacks it
};
std::span<const BucketInfo> buckets();

using BucketTimes = std::array<double, kBuckets>;  ///< seconds, of one GPU or a mean over GPUs

/// One slice of the timeline: what an actor did, or waited for.
struct TimelineSlice {
  std::uint32_t actor;  ///< index into StepReport::actors
  std::uint8_t stream;  ///< 0 compute, 1 send to the next rank, 2 to the previous, 3 data parallel,
                        ///< 4 copies to and from the host
  std::uint8_t kind;    ///< index into slice_kinds()
  bool critical = false;     ///< a pass or the optimiser, on the path that the end waited for
  std::int32_t micro_batch;  ///< -1: none; a message has those of the pass that takes it
  std::int32_t chunk;        ///< virtual stage of the rank; -1: none
  StepTime start, end;
};
struct SliceKind {
  std::string_view name;    ///< "forward", "backward", "wait for message", ...
  std::string_view colour;  ///< Chrome trace colour name
};
std::span<const SliceKind> slice_kinds();

/// A tensor-parallel group of one pipeline stage (and of `copies` replicas that do the same).
struct ActorReport {
  int stage = 0;
  int replica = 0;        ///< the first that it stands for
  int copies = 1;         ///< replicas that it stands for
  BucketTimes seconds{};  ///< adds up to the step time
  StepTime finished;      ///< end of its last work
};

struct StageReport {
  int stage = 0;
  int layers = 0;
  double forward_s = 0, backward_s = 0;  ///< compute of one micro batch, all chunks
  BucketTimes seconds{};                 ///< mean over the replicas
  MemoryBreakdown memory;
};

/// A pool of nodes of one kind, where a job runs on several.
struct PoolReport {
  int gpus = 0;
  int first_stage = 0, last_stage = 0;                   ///< pipeline stages on it
  int replicas = 0;                                      ///< that have a stage there
  int fewest_micro_batches = 0, most_micro_batches = 0;  ///< of these replicas
  BucketTimes seconds{};  ///< mean over its GPUs; adds up to the step time
  double waiting_s = 0;   ///< of the step its GPUs wait for others and transfers
  double peak_flops_per_gpu = 0;
};

/// A link of the critical path: what the end of the step waited for, last to first merged by kind.
struct CriticalPathPart {
  std::string what;  ///< "backward of stage 3", "data-parallel reduce-scatter", ...
  double seconds = 0;
  double share = 0;  ///< of the step
};

/// What held one kind of a step's traffic between nodes to its rate.
struct TrafficHold {
  struct Part {
    std::string links;  ///< a class of links: "leaf to spines"; or the transfers' own pace
    double share = 0;   ///< of the time in which such transfers moved
  };
  std::string traffic;     ///< "expert exchange", "pipeline message", ...
  std::vector<Part> by{};  ///< longest first; shares add up to 1
};

/// What one kind of a step's traffic moved over the fabric's links.
struct TrafficBytes {
  struct Part {
    std::string links;  ///< a class of links: "leaf to spines"
    Bytes bytes;        ///< over all of them; of simulated replicas alone
  };
  std::string traffic;       ///< as in TrafficHold
  std::vector<Part> over{};  ///< most first
};

/// What all links of a class that the step's traffic crosses carry: each value from its time until
/// the next one's.
struct LinkRates {
  std::string links;        ///< a class of links: "leaf to spines"
  BytesPerSecond capacity;  ///< of those of them that are simulated, together, for payload
  std::vector<StepTime> at;
  std::vector<double> bytes_per_s;
};

/// How the answer comes about.
enum class StepMethod : std::uint8_t {
  exact,    ///< every replica on its own, or those that do the same once
  sampled,  ///< some replicas, and a band that holds the exact answer
  folded,   ///< replicas that look alike once, as asked, though hashed paths tell them apart
};
std::string_view name_of(StepMethod method);

/// Times between which the exact answer lies.
struct StepBand {
  double low_s = 0, high_s = 0;
};

/// How sure a step's time is, in a sentence; empty where it is exact.
std::string method_words(StepMethod method, const std::optional<StepBand>& band);

/// A step whose cards' power changes at a bounded rate.
struct RampReport {
  double asked_s = 0;                ///< its time if power followed at once
  std::vector<TimelineSlice> asked;  ///< timeline of that step; only when recording
};

struct StepReport {
  double step_s = 0;
  StepMethod method = StepMethod::exact;
  /// step_s twice where exact, but for slow ramps, which may be hidden; none where folded as asked.
  std::optional<StepBand> band;
  bool folded = true;  ///< not every replica is on its own, or there is but one
  std::uint64_t replicas = 0, replicas_simulated = 0;
  std::uint64_t actors_simulated = 0, items = 0, flows = 0, events = 0;

  double model_flops_causal = 0, model_flops_full = 0, hardware_flops = 0;  ///< per step, all GPUs
  double peak_flops_per_gpu = 0;                                            ///< mean over the GPUs
  double mfu_causal = 0, mfu_full = 0, hfu = 0;
  double tflops_per_gpu_causal = 0, tflops_per_gpu_full = 0;
  double tokens_per_step = 0, tokens_per_s = 0, tokens_per_s_per_gpu = 0;

  BucketTimes seconds{};  ///< mean over all GPUs; adds up to step_s
  std::vector<StageReport> stages;
  std::vector<PoolReport> pools;    ///< as Scenario::pools
  std::size_t pacing_pool = 0;      ///< the one that waits least: all others wait for it
  std::vector<ActorReport> actors;  ///< only when asked to keep them (or folded)
  std::vector<CriticalPathPart> critical_path;
  std::vector<TimelineSlice> timeline;  ///< only when recording
  std::optional<RampReport> ramps;      ///< where power.smoothing.ramp_w_per_s costs time
  std::vector<TrafficHold> holds;       ///< only when asked for
  std::vector<TrafficBytes> traffic;    ///< with `use`
  std::vector<LinkRates> link_rates;    ///< only when asked for
  std::optional<FabricUse> use;         ///< only when asked for
  MemoryBreakdown peak_memory;          ///< of the fullest stage
  int peak_memory_stage = 0;
  std::vector<std::string> notes;  ///< approximations made, in words
};

}  // namespace lockstep
