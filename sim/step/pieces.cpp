#include "sim/step/pieces.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

#include "models/kernels/order_statistics.hpp"
#include "models/layer/memory.hpp"
#include "models/layer/offload.hpp"

namespace lockstep {
namespace {

/// Of an adapter, forward: two products, scaling, adding.
constexpr double kAdapterKernels = 4;

/// Host time of the passes of a layer, at the least.
struct HostTimes {
  Seconds forward, backward;
};

/// Kernels that the host launches: each operation but collectives is one (assumed).
double launches(const std::vector<Operation>& operations) {
  return static_cast<double>(std::ranges::count_if(operations, [](const Operation& o) {
    return o.phase != Phase::forward && o.kind != OperationKind::collective;
  }));
}

/// The two parts of a backward pass that is split. The host launches the kernels of each as fast as
/// it launches those of the whole pass, however long they run: hardware that is faster shortens
/// neither part's launches nor lengthens them.
template <class MakeOperations>
void add_split_backward(const MakeOperations& make, const WorkloadContext& c, Seconds host,
                        Piece& piece) {
  WorkloadContext split = c;
  split.split_backward = true;
  std::vector<Operation> input = make(split);
  std::vector<Operation> weight;
  std::ranges::copy_if(input, std::back_inserter(weight), is_weight_gradient);
  std::erase_if(input, is_weight_gradient);
  const double all = std::max(1.0, launches(input) + launches(weight));
  piece.cost(Pass::backward_input) = phase_cost(input, true, launches(input) / all * host, c);
  piece.cost(Pass::backward_weight) = phase_cost(weight, true, launches(weight) / all * host, c);
}

template <class MakeOperations>
Piece make_piece(const MakeOperations& make, const WorkloadContext& c, const HostTimes& host) {
  const std::vector<Operation> operations = make(c);
  Piece piece;
  piece.cost(Pass::forward) = phase_cost(operations, false, host.forward, c);
  piece.cost(Pass::backward) = phase_cost(operations, true, host.backward, c);
  if (splits_backward(c.job.parallelism)) add_split_backward(make, c, host.backward, piece);
  return piece;
}

/// Of weights that ranks share out.
double shard_of(const Weights& w, const Parallelism& par) {
  const int experts = par.sharding == Sharding::none ? 1 : std::max(1, par.expert_replicas());
  return w.all / par.shards() + w.experts / experts;
}

/// Copies to and from the host beside each pass: a pass waits for what is left of them at its end.
/// `saved`: of a layer, for a micro batch.
void add_copies(const WorkloadContext& c, Bytes saved, Piece& piece) {
  const TrainingJob& job = c.job;
  if (!job.offload.any()) return;
  const double weights = piece.stored * shard_of(piece.weights, job.parallelism);
  const double trained = shard_of(piece.trained, job.parallelism);
  const double again = job.parallelism.reshard && !piece.root ? weights : 0;
  const auto beside = [&](Pass pass, HostCopies copies) {
    PhaseCost& cost = piece.cost(pass);
    piece.copies[static_cast<std::size_t>(pass)] = copy_time(copies, c.node);
    cost.copies = std::max(Seconds{}, copy_time(copies, c.node) - cost.total());
  };
  HostCopies forward = activation_copies(job, saved, false);
  forward += weight_copies(job, c.stack, weights, 0);
  const HostCopies activations = activation_copies(job, saved, true);
  HostCopies inputs = activations, all = activations;
  inputs += weight_copies(job, c.stack, again, 0);
  all += weight_copies(job, c.stack, again, trained);
  beside(Pass::forward, forward);
  beside(Pass::backward, all);
  if (!splits_backward(job.parallelism)) return;
  beside(Pass::backward_input, inputs);
  beside(Pass::backward_weight, weight_copies(job, c.stack, 0, trained));
}

Piece make_root(std::vector<Operation> (*make)(const WorkloadContext&), const WorkloadContext& c,
                double parameters, bool frozen = false) {
  Piece piece = make_piece(make, c, {});
  piece.weights.all = parameters / c.job.parallelism.tensor;
  if (!c.job.adapters.any() && !frozen) piece.trained = piece.weights;
  piece.root = true;
  add_copies(c, {}, piece);
  return piece;
}

/// What a layer with experts takes its host, which waits for the counts of tokens per expert. Where
/// experts are padded to their capacity it knows them (drop_and_pad: "no_sync" in
/// github:NVIDIA/Megatron-LM:megatron/core/transformer/moe/token_dispatcher.py).
Seconds host_of_experts(const WorkloadContext& c) {
  if (c.job.routing.padded) return {};
  const double here = static_cast<double>(c.job.model.experts.count) / c.job.parallelism.expert;
  return c.stack.expert_host_layer + here * c.stack.expert_host_expert;
}

/// A layer with experts takes at least a third of its host time forward, the rest backward.
Piece make_layer(const WorkloadContext& c, LayerKind kind) {
  const StackSpec& s = c.stack;
  const Parallelism& par = c.job.parallelism;
  const double again = c.job.recompute == Recompute::full ? s.kernels_forward : 0;
  const double share = kind.blocks() / 2.0;
  HostTimes host{.forward = share * s.kernels_forward * s.launch_interval,
                 .backward = share * (s.kernels_backward + again) * s.launch_interval};
  const Adapters& adapters = c.job.adapters;
  if (adapters.any()) {
    const double kernels = kAdapterKernels * adapters_of(adapters, c.job.model, kind);
    host.forward += kernels * s.launch_interval;
    host.backward += 2 * kernels * s.launch_interval;
  }
  Weights weights{.all = layer_parameters(c.job.model, kind) / par.tensor};
  if (kind.experts) {
    const Seconds experts = host_of_experts(c);
    host.forward = std::max(host.forward, 1.0 / 3 * experts);
    host.backward = std::max(host.backward, 2.0 / 3 * experts);
    weights.experts = expert_parameters(c.job.model) / (par.expert * par.expert_tensor);
  }
  const bool goes_back = kind.gradients != Gradients::none;
  if (!goes_back) host.backward = {};
  Piece piece = make_piece(
      [&](const WorkloadContext& context) { return layer_operations(context, kind); }, c, host);
  piece.weights = weights;
  if (kind.gradients == Gradients::all) piece.trained = weights;
  piece.goes_back = goes_back;
  if (adapters.any()) {
    piece.trained = {.all = adapter_parameters(adapters, c.job.model, kind) / par.tensor,
                     .experts = expert_adapter_parameters(c.job, kind)};
    piece.stored = frozen_weight_bytes(adapters) / 2;
  }
  add_copies(c, saved_per_layer(c.job, c.stack, kind), piece);
  return piece;
}

}  // namespace

bool ends_meet(const PipelineShape& shape) {
  return shape.ranks == 1 || shape.layout == ChunkLayout::two_way ||
         (shape.layout == ChunkLayout::v_shape && shape.chunks % 2 == 0);
}

Pieces make_pieces(const WorkloadContext& c) {
  const TransformerShape& m = c.job.model;
  const double head = table_parameters(m);
  const bool shared = m.tied && ends_meet(pipeline_shape(c.job.parallelism));
  Pieces out;
  std::vector<bool> made;
  for (int i = 0; i < m.layers; ++i) {
    const LayerKind kind = c.job.kind(i);
    const std::size_t number = Pieces::piece_of(kind);
    if (number >= made.size()) {
      made.resize(number + 1);
      out.layers.resize(number + 1);
    }
    if (!made[number]) out.layers[number] = make_layer(c, kind);
    made[number] = true;
  }
  const FrozenParts& frozen = c.job.frozen;
  out.embedding = make_root(embedding_operations, c, embedding_parameters(m), frozen.embedding);
  out.head = make_root(head_operations, c, shared ? 0 : head, frozen.output);
  if (m.predicted_tokens > 0) {
    // It shares embedding and output projection with the model.
    out.prediction = make_root(prediction_operations, c, prediction_parameters(m));
    for (const Piece* part : {&out.layers[Pieces::piece_of(m.kind(m.layers - 1))], &out.head}) {
      for (std::size_t i = 0; i < part->passes.size(); ++i) {
        out.prediction.passes[i] += part->passes[i];
        out.prediction.copies[i] += part->copies[i];
      }
      if (part->root) continue;
      out.prediction.weights += part->weights;
      out.prediction.trained += part->trained;
    }
  }
  return out;
}

double kernel_variation(const TrainingJob& job, const GpuSpec& gpu) {
  const Parallelism& par = job.parallelism;
  const double gpus = static_cast<double>(par.tensor) * par.context * par.pipeline * par.data;
  return gpu.speed_spread * expected_maximum_of_normals(gpus) +
         gpu.kernel_jitter * expected_maximum_of_normals(std::max(par.tensor * par.context,
                                                                  par.expert * par.expert_tensor));
}

}  // namespace lockstep
