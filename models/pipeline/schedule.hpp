/// Pipeline schedules: in which order a rank runs the forward and backward passes of its micro
/// batches.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/pipeline/layout.hpp"
#include "models/spec/transformer.hpp"

namespace lockstep {

enum class Pass : std::uint8_t {
  forward,
  backward,         ///< gradients of inputs and of weights
  backward_input,   ///< gradients of inputs alone: all that the stage before waits for
  backward_weight,  ///< gradients of weights, at any time after that
};
constexpr bool is_forward(Pass pass) { return pass == Pass::forward; }
/// Whether gradients of weights are there after it, and activations are no longer needed.
constexpr bool ends_micro_batch(Pass pass) {
  return pass == Pass::backward || pass == Pass::backward_weight;
}

/// One pass of one micro batch through one chunk (virtual stage) of a pipeline rank.
struct WorkItem {
  Pass pass;
  /// Runs as one with the item behind it, a backward pass: both inputs are there before it starts,
  /// both outputs leave at the end of the pair (DualPipe's overlapped forward and backward chunks).
  bool pairs = false;
  std::uint16_t chunk;
  std::uint32_t micro_batch;  ///< of its chunk
  friend bool operator==(const WorkItem&, const WorkItem&) = default;
};

/// What a schedule is asked for: p ranks, v chunks each, m micro batches in all, this rank.
struct ScheduleCall {
  int ranks = 1;
  int chunks = 1;
  int micro_batches = 1;
  int rank = 0;
};

/// Micro batches that a schedule takes.
struct MicroBatchRule {
  int multiple = 1;
  int least = 1;
};

/// To add a schedule: extend the Schedule enumeration, write its order, and give it one row in
/// schedule.cpp; from outside the tree, as schedule_extension.hpp says. Every order runs each
/// (pass, chunk, micro batch) once, a forward before its backward, micro batches of a chunk in
/// rising order.
struct ScheduleKind {
  Schedule schedule{};
  std::string_view name{};  ///< as scenarios say it
  std::string_view summary{};
  std::string_view source{};
  ChunkLayout layout = ChunkLayout::loop;
  int virtual_min = 1, virtual_max = 1;  ///< Parallelism::virtual_stages that it takes
  bool splits_backward = false;          ///< has passes for gradients of weights alone
  bool blocking_sends = false;  ///< published implementations wait until a message has landed
  bool even_ranks = false;      ///< takes no odd number of ranks
  MicroBatchRule (*micro_batches)(int ranks) = nullptr;
  std::vector<WorkItem> (*order)(const ScheduleCall& call) = nullptr;
  /// Chunks whose activations a rank holds at most, from a forward pass to the pass that ends its
  /// micro batch. The closed form of its source, which the tests hold against `order`.
  double (*chunks_in_flight)(const ScheduleCall& call) = nullptr;
};
/// Every schedule that has a name, in the order of the enumeration: those of schedule.cpp, then
/// those that code outside the tree added (schedule_extension.hpp).
std::span<const ScheduleKind> schedules();
/// Those of schedule.cpp alone.
std::span<const ScheduleKind> own_schedules();
/// Requires a schedule that has a name.
const ScheduleKind& info(Schedule schedule);
std::vector<WorkItem> stage_order(Schedule schedule, const ScheduleCall& call);

/// Orders that a person wrote (Schedule::fixed).
struct FixedOrder {
  std::string file;
  PipelineShape shape;
  int micro_batches = 1;
  std::vector<std::vector<WorkItem>> ranks;
};

/// Chunks and layout of a job's pipeline.
PipelineShape pipeline_shape(const Parallelism& parallelism);
/// The order of one rank of a job.
std::vector<WorkItem> rank_order(const Parallelism& parallelism, int micro_batches, int rank);
/// Whether some backward pass leaves gradients of weights for later.
bool splits_backward(const Parallelism& parallelism);
/// Chunks whose activations an order holds at most.
int chunks_in_flight(std::span<const WorkItem> order);
/// Chunks whose activations a rank of the job holds at most, from the closed form where there is
/// one.
double chunks_in_flight(const Parallelism& parallelism, int micro_batches, int rank);
/// Whether its schedule runs that many micro batches on that many ranks and chunks.
bool schedule_takes(const Parallelism& parallelism, int micro_batches);

}  // namespace lockstep
