#include "sim/step/slice_energy.hpp"

#include <algorithm>
#include <utility>

#include "models/power/operation_work.hpp"

namespace lockstep {
namespace {

using SliceJoules = ByGpuPart<Joules>;

constexpr auto part_at(GpuPart part) { return static_cast<std::size_t>(part); }

void add_parts(SliceJoules& sum, double count, const SliceJoules& one) {
  for (std::size_t i = 0; i < kGpuParts; ++i) sum[i] += count * one[i];
}

PieceEnergy piece_energy(const std::vector<Operation>& operations, const GpuSpec& gpu) {
  PieceEnergy out;
  for (const Operation& o : operations) {
    SliceJoules spent = gpu_energy(engine_work(o), o.time, gpu);
    spent[part_at(GpuPart::fixed)] = {};
    SliceJoules& part = o.phase == Phase::forward ? out.forward
                        : is_weight_gradient(o)   ? out.weight
                                                  : out.input;
    add_parts(part, 1, spent);
  }
  return out;
}

/// Of the data-parallel stream: gathers and reductions.
bool is_collective(const TimelineSlice& s) { return s.stream == 3; }

constexpr std::uint8_t kHostStream = 4;  // whose copies' energy is left out

}  // namespace

SliceEnergy::SliceEnergy(const Scenario& scenario, const StepPlan& plan,
                         std::span<const TimelineSlice> timeline, std::size_t actors,
                         std::size_t pool)
    : plan_(plan), gpu_(scenario.node_of(pool).gpu), offloaded_(scenario.job.offload.optimiser) {
  const WorkloadContext context = workload_context(scenario, Placement{plan.placement}, pool);
  layer_ = mean_layer(context);
  embedding_ = piece_energy(embedding_operations(context), gpu_);
  head_ = piece_energy(head_operations(context), gpu_);
  collective_time_.resize(actors);
  for (const TimelineSlice& s : timeline) {
    if (is_collective(s)) collective_time_[s.actor] += length(s);
  }
}

SliceJoules SliceEnergy::of(const TimelineSlice& s, const StagePlan& stage) const {
  const std::string_view name = slice_kinds()[s.kind].name;
  if (is_pass(s)) return pass(static_cast<Pass>(s.kind), s.chunk, stage);
  if (name == "optimiser") return optimiser(s);
  if (is_collective(s)) return collective(s, stage);
  if (s.stream == kHostStream) return {};
  return transfer(plan_.message);
}

SliceJoules SliceEnergy::forward(const StagePlan& stage) const {
  SliceJoules sum{};
  for (std::size_t chunk = 0; chunk < stage.layers.size(); ++chunk) {
    add_parts(sum, 1, pass(Pass::forward, static_cast<int>(chunk), stage));
  }
  return sum;
}

SliceJoules SliceEnergy::transfer(Bytes out) const {
  SliceJoules sum{};
  sum[part_at(GpuPart::link)] = gpu_.power->link * out;
  sum[part_at(GpuPart::hbm)] = gpu_.power->hbm * (2 * out);
  return sum;
}

/// Over all layers of the model: which of them a chunk has is not told apart.
PieceEnergy SliceEnergy::mean_layer(const WorkloadContext& context) const {
  const TrainingJob& job = context.job;
  const TransformerShape& m = job.model;
  PieceEnergy mean;
  std::vector<std::pair<LayerKind, int>> kinds;
  for (int i = 0; i < m.layers; ++i) {
    const LayerKind kind = job.kind(i);
    const auto known = std::ranges::find(kinds, kind, &std::pair<LayerKind, int>::first);
    if (known == kinds.end())
      kinds.emplace_back(kind, 1);
    else
      ++known->second;
  }
  for (const auto& [kind, count] : kinds) {
    const PieceEnergy piece = piece_energy(layer_operations(context, kind), gpu_);
    const double share = static_cast<double>(count) / m.layers;
    add_parts(mean.forward, share, piece.forward);
    add_parts(mean.input, share, piece.input);
    add_parts(mean.weight, share, piece.weight);
  }
  return mean;
}

SliceJoules SliceEnergy::pass(Pass done, int chunk, const StagePlan& stage) const {
  const ChunkPlace place{stage.stage, chunk};
  SliceJoules sum{};
  const auto add = [&](const PieceEnergy& piece, double count) {
    if (is_forward(done)) return add_parts(sum, count, piece.forward);
    if (done != Pass::backward_weight) add_parts(sum, count, piece.input);
    if (ends_micro_batch(done)) add_parts(sum, count, piece.weight);
  };
  add(layer_, stage.layers[static_cast<std::size_t>(chunk)]);
  if (plan_.shape.is_first(place)) add(embedding_, 1);
  if (plan_.shape.is_last(place)) add(head_, 1);
  return sum;
}

/// Streams at what memory-bound kernels reach, but for what the host does.
SliceJoules SliceEnergy::optimiser(const TimelineSlice& s) const {
  SliceJoules sum{};
  const Bytes traffic = Seconds{length(s)} * (gpu_.memory.efficiency * gpu_.hbm_bandwidth);
  sum[part_at(GpuPart::hbm)] = (1 - offloaded_) * (gpu_.power->hbm * traffic);
  return sum;
}

/// All collectives of the stage, in proportion to their time.
SliceJoules SliceEnergy::collective(const TimelineSlice& s, const StagePlan& stage) const {
  const double all = collective_time_[s.actor];
  if (all <= 0) return {};
  Bytes sum;
  for (const DataCollective& c : stage.collectives) {
    const CollectiveCost& cost = stage.channels[c.channel].cost;
    sum += (cost.nvlink_coefficient + cost.network_coefficient) * c.payload;
  }
  return transfer(length(s) / all * sum);
}

}  // namespace lockstep
