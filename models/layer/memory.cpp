#include "models/layer/memory.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

#include "models/layer/offload.hpp"
#include "models/pipeline/schedule.hpp"
#include "models/spec/blocks.hpp"
#include "models/spec/layer.hpp"
#include "models/spec/partition.hpp"

namespace lockstep {
namespace {

constexpr double kHalf = 2;       ///< bytes of a 16-bit element
constexpr double kQuantised = 1;  ///< of an 8-bit one; assumed of 4-bit ones, kept in two layouts

double tokens_of(const TrainingJob& job) {
  return static_cast<double>(job.batch.micro_sequences) * job.batch.tokens /
         job.parallelism.context;
}

/// The same of a layer.
double tokens_of(const TrainingJob& job, const Layer& layer) {
  return lengths_of(layer, job.batch).own / job.batch.tokens * tokens_of(job);
}

/// The replicated part of a layer is cut too where norms and residuals are split over the group.
double sequence_ways(const Parallelism& par) { return par.sequence ? par.tensor : 1; }

/// Whether the input of a product is kept: for the gradient of its weights, or of its adapter's.
bool keeps_input(const TrainingJob& job, LayerKind kind, AdapterModule module) {
  return job.adapters.any() ? job.adapters.on(module) : kind.gradients == Gradients::all;
}

/// Whether selective recomputation makes a tensor again. A fused kernel saves what it gives unless
/// its forward pass is repeated too; an activation alone is not what goes into it.
bool is_made_again(const TrainingJob& job, Recomputed what) {
  if (job.recompute != Recompute::selective) return false;
  if (what == Recomputed::core) return job.modules.fused_attention;
  if (what == Recomputed::activation) return job.modules.activation;
  return recomputes(job.modules, what);
}

bool of_scores(const Saved& s) { return s.keep == Keep::scores || s.keep == Keep::source_scores; }

/// Scores are in no kernel's output: they go wherever the core is repeated, and nowhere else.
bool is_made_again(const TrainingJob& job, const Saved& s) {
  if (!of_scores(s)) return s.recomputed && is_made_again(job, *s.recomputed);
  return job.recompute == Recompute::selective && recomputes(job.modules, Recomputed::core);
}

/// Bytes per token of a layer of what it saves, by who has which part of it.
class SavedBytes {
 public:
  SavedBytes(const TrainingJob& job, const StackSpec& stack, LayerKind kind, const Layer& layer)
      : job_(job),
        stack_(stack),
        kind_(kind),
        gated_(layer.gated),
        lengths_(lengths_of(layer, job.batch)),
        load_(expert_load(job)) {
    if (job.recompute == Recompute::selective) kept_ = 1 - job.modules.products;
  }

  /// On one rank.
  [[nodiscard]] double of(const Saved& s) const {
    return is_made_again(job_, s) ? 0 : once_made(s);
  }
  /// The same, also of what is made again.
  [[nodiscard]] double once_made(const Saved& s) const {
    const Parallelism& par = job_.parallelism;
    const double bytes = rows(s.rows) * s.columns * of_each(s);
    switch (s.by) {
      // Per-operation checkpointing keeps of the products what it does not run again.
      case SavedBy::tensor:
        return kept_ * bytes / (s.rows == Rows::repeated ? 1 : par.tensor);
      case SavedBy::sequence:
        return kept_ * bytes / sequence_ways(par);
      case SavedBy::stream:
        return bytes / sequence_ways(par);
    }
    return bytes;
  }

 private:
  [[nodiscard]] double of_each(const Saved& s) const {
    const double operand = is_quantised(job_.precision) ? kQuantised : kHalf;
    const auto needs = [&](std::optional<AdapterModule> product) {
      return product && keeps_input(job_, kind_, *product);
    };
    const bool keeps = !s.product || needs(s.product) || needs(s.or_product);
    switch (s.keep) {
      case Keep::half:
        return kHalf;
      case Keep::word:
        return 2 * kHalf;
      case Keep::residual:
        return kHalf + (job_.model.biases && !gated_ ? 1 : 0);
      case Keep::operand:
        return keeps ? operand : 0;
      case Keep::attention:
        // A quantised product keeps its own operand beside the output that attention keeps.
        return kHalf + (is_quantised(job_.precision) && keeps ? kQuantised : 0);
      case Keep::rotary_copy:
        return stack_.memory.rotary_copies ? kHalf : 0;
      case Keep::scores:
        return score_bytes(lengths_.own);
      case Keep::source_scores:
        return score_bytes(lengths_.source);
      case Keep::trained_operand:
        return job_.adapters.any() || kind_.gradients != Gradients::all ? 0 : kHalf;
      case Keep::activation_input:
        return (gated_ ? stack_.memory.gated_mlp_bytes : 2 * kHalf) - kHalf;
      case Keep::activation_output:
        return keeps && !is_made_again(job_, Recomputed::activation) ? operand : 0;
    }
    return kHalf;
  }

  /// Softmax, its dropout mask and the dropped-out softmax (arXiv:2205.05198).
  [[nodiscard]] double score_bytes(double keys) const {
    return stack_.attention == AttentionKernel::unfused ? 5.0 * keys : 0;
  }

  /// Of each token: on the rank that gets most of the copies.
  [[nodiscard]] double rows(Rows which) const {
    if (which == Rows::source) return lengths_.source / lengths_.own;
    return which == Rows::copies ? load_.rows * job_.model.experts.per_token * load_.fullest : 1;
  }

  const TrainingJob& job_;
  const StackSpec& stack_;
  LayerKind kind_;
  bool gated_;
  Lengths lengths_;
  ExpertLoad load_;
  double kept_ = 1;
};

/// As saved_per_layer() when nothing is recomputed but single modules.
double whole_layer_bytes(const TrainingJob& job, const StackSpec& stack, LayerKind kind,
                         const Layer& layer) {
  if (kind.gradients == Gradients::none) return 0;
  const SavedBytes bytes{job, stack, kind, layer};
  double sum = 0;
  for (const Saved& saved : layer.saved) sum += bytes.of(saved);
  return tokens_of(job, layer) * sum;
}

/// saved_per_layer() of a kind of layer.
Bytes saved_bytes(const TrainingJob& job, const StackSpec& stack, LayerKind kind,
                  const Layer& layer) {
  if (job.recompute != Recompute::full || kind.gradients == Gradients::none) {
    return Bytes{whole_layer_bytes(job, stack, kind, layer)};
  }
  return Bytes{kHalf * tokens_of(job, layer) * layer.input / sequence_ways(job.parallelism)};
}

/// What the layer at work makes again for its backward pass: all that it saves, or its scores.
double remade_bytes(const TrainingJob& job, const StackSpec& stack, LayerKind kind,
                    const Layer& layer) {
  if (job.recompute == Recompute::full) return whole_layer_bytes(job, stack, kind, layer);
  if (kind.gradients == Gradients::none) return 0;
  const SavedBytes bytes{job, stack, kind, layer};
  double sum = 0;
  for (const Saved& saved : layer.saved) {
    if (of_scores(saved) && is_made_again(job, saved)) sum += bytes.once_made(saved);
  }
  return tokens_of(job, layer) * sum;
}

/// Weights on one GPU, before sharding: those that all its replicas have, and those of experts.
struct WeightCounts {
  double all = 0, experts = 0;

  [[nodiscard]] double sum() const { return all + experts; }
};

struct StageShape {
  std::vector<LayerKind> layers;
  WeightCounts weights;        ///< of the model
  WeightCounts trained;        ///< of them, or adapters beside them
  double outside_layers = 0;   ///< of weights.all: embedding and output projection
  double outside_trained = 0;  ///< of trained.all
  double largest_layer = 0;    ///< of both
  double largest_trained = 0;  ///< of layers of which all is trained
  bool has_head = false;
};

/// Weights of layers, on all tensor-parallel ranks.
struct LayerWeights {
  double all = 0, adapters = 0;
};

void add_layer(const TrainingJob& job, LayerKind kind, PerKind<LayerWeights>& known,
               StageShape& out) {
  const Parallelism& par = job.parallelism;
  const LayerWeights weights = known.at(kind, [&](LayerKind k) {
    return LayerWeights{
        .all = layer_parameters(job.model, k),
        .adapters = job.adapters.any() ? adapter_parameters(job.adapters, job.model, k) : 0};
  });
  const double all = weights.all / par.tensor;
  const double experts =
      kind.experts ? expert_parameters(job.model) / (par.expert * par.expert_tensor) : 0;
  out.layers.push_back(kind);
  out.weights.all += all;
  out.weights.experts += experts;
  out.largest_layer = std::max(out.largest_layer, all + experts);
  if (job.adapters.any()) {
    out.trained.all += weights.adapters / par.tensor;
    out.trained.experts += expert_adapter_parameters(job, kind);
  } else if (kind.gradients == Gradients::all) {
    out.trained.all += all;
    out.trained.experts += experts;
    out.largest_trained = std::max(out.largest_trained, all + experts);
  }
}

StageShape stage_shape(const TrainingJob& job, int stage, PerKind<LayerWeights>& known) {
  const TransformerShape& m = job.model;
  const Parallelism& par = job.parallelism;
  const std::vector<int> split = layers_per_virtual_stage(m, par);
  StageShape out;
  const PipelineShape shape = pipeline_shape(par);
  bool has_embedding = false;
  for (int chunk = 0; chunk < shape.chunks; ++chunk) {
    const int number = shape.stage_of({stage, chunk});
    const int first = std::accumulate(split.begin(), split.begin() + number, 0);
    for (int i = first; i < first + split[static_cast<std::size_t>(number)]; ++i) {
      add_layer(job, job.kind(i), known, out);
    }
    has_embedding = has_embedding || shape.is_first({stage, chunk});
    out.has_head = out.has_head || shape.is_last({stage, chunk});
  }
  const auto add_outside = [&](double parameters, bool frozen) {
    out.outside_layers += parameters;
    if (!frozen && !job.adapters.any()) out.outside_trained += parameters;
  };
  if (has_embedding) add_outside(embedding_parameters(m), job.frozen.embedding);
  // A tied output projection is a copy unless the embedding is on the same stage.
  if (out.has_head && !(m.tied && has_embedding)) {
    add_outside(table_parameters(m), job.frozen.output);
  }
  for (int i = 0; out.has_head && i < m.predicted_tokens; ++i) {
    add_layer(job, job.kind(m.layers - 1), known, out);
    add_outside(prediction_parameters(m), false);
  }
  out.outside_layers /= par.tensor;
  out.outside_trained /= par.tensor;
  out.weights.all += out.outside_layers;
  out.trained.all += out.outside_trained;
  return out;
}

/// Takes what lives on the host off the GPU. Gradients that leave in the backward pass wait in two
/// buckets, those of zero3 in the layer that is gathered.
void offload_states(const TrainingJob& job, const StackSpec& stack, double parameters,
                    double shards, MemoryBreakdown& out) {
  const double share = job.offload.optimiser;
  out.optimiser = (1 - share) * out.optimiser;
  out.host = host_states(job, stack, parameters / shards);
  if (share == 0 || !stack.offload.gradients_in_backward || job.parallelism.pipeline > 1) return;
  const double waiting = std::min(parameters, 2 * stack.offload.bucket_parameters);
  const bool gathered = job.parallelism.sharding == Sharding::zero3 && shards > 1;
  const Bytes buckets{gathered ? 0 : stack.offload.gradient_bytes * waiting};
  out.gradients = (1 - share) * out.gradients + share * std::min(buckets, out.gradients);
}

/// Gradients of zero2. One stage reduces every micro batch and keeps its share of the sum (2 Psi of
/// weights, 2 Psi / N of gradients: arXiv:1910.02054, section 5.2), beside it the bucket that is
/// reduced and, where this overlaps, the one that fills (github:deepspeedai/DeepSpeed:
/// deepspeed/runtime/zero/stage_1_and_2.py). Of pipelined stages each model chunk has them whole
/// until its micro batches are through.
Bytes split_gradients(const TrainingJob& job, const StackSpec& stack, double parameters,
                      double shards) {
  const Parallelism& par = job.parallelism;
  const Bytes whole{stack.main_gradient_bytes * parameters};
  if (par.pipeline > 1) return std::min(1.0, 1.0 / shards + 1.0 / par.virtual_stages) * whole;
  const CommunicationPolicy& policy = stack.communication;
  const double buckets = (policy.overlap_gradients ? 2 : 1) * policy.bucket_parameters;
  const double unreduced = buckets > 0 ? std::min(parameters, buckets) : parameters;
  return std::min(whole, 1 / shards * whole + Bytes{policy.gradient_bytes * unreduced});
}

/// Weights, gradients and optimiser states of `parameters` that `shards` ranks split.
MemoryBreakdown states_of(const TrainingJob& job, const StackSpec& stack, double parameters,
                          double shards) {
  const Parallelism& par = job.parallelism;
  MemoryBreakdown out;
  out.weights = Bytes{kHalf * parameters};
  out.gradients = Bytes{stack.main_gradient_bytes * parameters};
  if (par.sharding == Sharding::zero2 && shards > 1) {
    out.gradients = split_gradients(job, stack, parameters, shards);
  }
  if (par.sharding == Sharding::zero3 && shards > 1) {
    // Whole weights are there only while they are gathered.
    const bool kept = stack.memory.half_weight_shards && !job.offload.parameters;
    out.weights = kept ? 1 / shards * out.weights : Bytes{};
    // Pipelined stages scatter their gradients once, after the last micro batch.
    if (par.pipeline == 1) out.gradients = 1 / shards * out.gradients;
  }
  out.optimiser = Bytes{stack.memory.optimiser_state_bytes * parameters / shards};
  offload_states(job, stack, parameters, shards, out);
  return out;
}
/// Frozen weights have no gradients and no optimiser; zero3 splits them as they are.
Bytes frozen_bytes(const TrainingJob& job, const StageShape& shape) {
  const Parallelism& par = job.parallelism;
  const bool split = par.sharding == Sharding::zero3;
  WeightCounts rest = shape.weights;
  double outside = shape.outside_layers;
  if (!job.adapters.any()) {
    rest.all -= shape.trained.all;
    rest.experts -= shape.trained.experts;
    outside -= shape.outside_trained;
  }
  const double bytes = frozen_weight_bytes(job.adapters);
  return Bytes{(bytes * (rest.all - outside) + kHalf * outside) / (split ? par.shards() : 1) +
               bytes * rest.experts / (split ? par.expert_replicas() : 1)};
}
MemoryBreakdown model_states(const TrainingJob& job, const StackSpec& stack,
                             const StageShape& shape) {
  const Parallelism& par = job.parallelism;
  MemoryBreakdown out = states_of(job, stack, shape.trained.all, par.shards());
  Bytes& home = job.offload.parameters ? out.host : out.weights;
  if (job.adapters.any() || job.frozen.any()) home += frozen_bytes(job, shape);
  if (shape.trained.experts == 0) return out;
  const double shards = par.sharding == Sharding::none ? 1 : par.expert_replicas();
  const MemoryBreakdown experts = states_of(job, stack, shape.trained.experts, shards);
  out.weights += experts.weights;
  out.gradients += experts.gradients;
  out.optimiser += experts.optimiser;
  out.host += experts.host;
  return out;
}

/// Gathered input and unscattered output of a product of a tensor-parallel layer, and the tensors
/// that come from and go to the neighbouring stages.
double exchange_bytes(const TrainingJob& job) {
  const Parallelism& par = job.parallelism;
  const double tensor = kHalf * tokens_of(job) * job.model.hidden;
  return (par.tensor > 1 ? 2 * tensor : 0) +
         (par.pipeline > 1 ? 2 * tensor / sequence_ways(par) : 0);
}

/// Weights that zero3 has gathered at a time, and gradients that it has not scattered yet: of the
/// layer at work, of those ahead and of one on its way out; embedding and output projection stay
/// through a micro batch.
double gathered_bytes(const TrainingJob& job, const StackSpec& stack, const StageShape& shape) {
  const Parallelism& par = job.parallelism;
  if (par.sharding != Sharding::zero3 || par.shards() == 1) return 0;
  const double layer = shape.largest_layer;
  const auto count = static_cast<double>(shape.layers.size());
  const double layers = par.reshard ? std::min(count, par.prefetch + 2.0) : count;
  const double gradients = par.pipeline == 1 ? std::min(count, 2.0) * shape.largest_trained : 0;
  const double weights = kHalf * (layers * layer + shape.outside_layers);
  return weights + stack.communication.gradient_bytes * (gradients + shape.outside_trained);
}

/// Moves the activations of layers to the host. On the GPU stay those of the layer at work and of
/// one on its way.
void offload_activations(const TrainingJob& job, Bytes largest, MemoryBreakdown& out) {
  const Bytes moved = activation_share(job) * out.activations;
  const Bytes left = out.activations - moved;
  if (moved == Bytes{}) return;
  out.host += moved;
  out.activations = std::min(out.activations, left + 2.0 * largest);
}

/// Adds workspaces and fragmentation.
MemoryBreakdown in_allocator(MemoryBreakdown m, const MemoryPolicy& policy) {
  m.framework = (policy.fragmentation - 1) * m.needed() + policy.workspace;
  return m;
}

/// A pipelined stage waits for its neighbours and does not run ahead of them. Four gathered or
/// unscattered tensors a layer.
Bytes run_ahead_bytes(const TrainingJob& job, const StackSpec& stack) {
  const Parallelism& par = job.parallelism;
  if (par.tensor == 1 || par.pipeline > 1) return {};
  const double layers = std::min<double>(stack.memory.run_ahead_layers, job.model.layers);
  return Bytes{4 * layers * kHalf * tokens_of(job) * job.model.hidden};
}

/// The stage that needs most.
std::pair<int, MemoryBreakdown> fullest(const TrainingJob& job, const StackSpec& stack) {
  const std::vector<MemoryBreakdown> stages = peak_memories(job, stack);
  const auto most = std::ranges::max_element(stages, {}, &MemoryBreakdown::needed);
  return {static_cast<int>(most - stages.begin()), *most};
}

std::string gib_text(Bytes bytes) {
  const auto tenths = std::lround(10 * double{bytes / gibibytes(1)});
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB";
}

std::string instead(const char* what, int now, int before) {
  return std::string(what) + " " + std::to_string(now) + " instead of " + std::to_string(before);
}

void add_smaller_micro_batches(const TrainingJob& job, std::vector<MemoryRemedy>& out) {
  const int before = job.batch.micro_sequences;
  for (int b = before - 1; b >= 1; --b) {
    if (before % b != 0) continue;
    out.push_back({instead("micro batch", b, before), job});
    out.back().job.batch.micro_sequences = b;
  }
}

void add_recompute(const TrainingJob& job, const std::string& before,
                   std::vector<MemoryRemedy>& out) {
  for (const auto& [recompute, name] : {std::pair{Recompute::selective, "selective recomputation"},
                                        std::pair{Recompute::full, "full recomputation"}}) {
    if (recompute <= job.recompute) continue;
    out.push_back({before + name, job});
    out.back().job.recompute = recompute;
  }
}

/// With `ways` times as many GPUs to a replica, and as many fewer replicas where they divide.
TrainingJob with_fewer_replicas(const TrainingJob& job, int ways, std::string& words) {
  TrainingJob out = job;
  if (job.parallelism.data % ways == 0) {
    out.parallelism.data /= ways;
    words += " and data " + std::to_string(out.parallelism.data);
  } else {
    words += " on " + std::to_string(ways) + " times the GPUs";
  }
  return out;
}

void add_wider_tensor(const TrainingJob& job, const StackSpec& stack, int ways,
                      std::vector<MemoryRemedy>& out) {
  const int tensor = job.parallelism.tensor * ways;
  const TransformerShape& m = job.model;
  if (m.heads % tensor != 0 || uneven_parts(m, tensor)) return;
  if (tensor > m.ffn || tensor > m.vocabulary) return;
  std::string words = instead("tensor", tensor, job.parallelism.tensor);
  TrainingJob wider = with_fewer_replicas(job, ways, words);
  if (job.parallelism.tensor == 1) {
    wider.parallelism.sequence = stack.communication.sequence_parallel_default;
  }
  wider.parallelism.tensor = tensor;
  out.push_back({std::move(words), std::move(wider)});
}

void add_longer_pipeline(const TrainingJob& job, int ways, std::vector<MemoryRemedy>& out) {
  const Parallelism& par = job.parallelism;
  const int pipeline = par.pipeline * ways;
  if (!par.layers_per_stage.empty() || pipeline * par.virtual_stages > job.model.layers) return;
  std::string words = instead("pipeline", pipeline, par.pipeline);
  TrainingJob longer = with_fewer_replicas(job, ways, words);
  longer.parallelism.pipeline = pipeline;
  out.push_back({std::move(words), std::move(longer)});
}

}  // namespace

Bytes saved_per_layer(const TrainingJob& job, const StackSpec& stack, LayerKind kind) {
  return saved_bytes(job, stack, kind, declare_layer(job.model, kind));
}

double micro_batches_in_flight(const TrainingJob& job, int stage) {
  const Parallelism& par = job.parallelism;
  return chunks_in_flight(par, job.micro_batches(), stage) / pipeline_shape(par).chunks;
}

namespace {

/// What a stage holds, before states and allocator: what memory_band() asks for with many policies.
struct StageLoad {
  StageShape shape;
  Bytes kept;        ///< activations of all micro batches in flight
  Bytes largest;     ///< of the layer that saves most, of one micro batch
  double again = 0;  ///< bytes that the layer at work makes again
};

/// What one micro batch saves of a layer, and what of that is made again.
struct LayerSavings {
  Bytes kept;
  double remade = 0;
};

/// Of a job's layers, by kind: the same in every stage.
struct KnownLayers {
  PerKind<LayerWeights> weights;
  PerKind<LayerSavings> savings;
};

StageLoad load_of_stage(const TrainingJob& job, const StackSpec& stack, int stage,
                        KnownLayers& known) {
  assert(stage >= 0 && stage < job.parallelism.pipeline);
  StageLoad load{.shape = stage_shape(job, stage, known.weights), .kept = {}, .largest = {}};
  const double in_flight = micro_batches_in_flight(job, stage);
  for (const LayerKind of : load.shape.layers) {
    const LayerSavings saving = known.savings.at(of, [&](LayerKind kind) {
      const Layer layer = declare_layer(job.model, kind);
      return LayerSavings{.kept = saved_bytes(job, stack, kind, layer),
                          .remade = remade_bytes(job, stack, kind, layer)};
    });
    load.kept += in_flight * saving.kept;
    load.largest = std::max(load.largest, saving.kept);
    load.again = std::max(load.again, saving.remade);
  }
  return load;
}

MemoryBreakdown peak_of(const TrainingJob& job, const StackSpec& stack, const StageLoad& load) {
  const Parallelism& par = job.parallelism;
  const MemoryPolicy& policy = stack.memory;
  const StageShape& shape = load.shape;
  const double parameters = shape.trained.sum();
  const bool whole = par.sharding != Sharding::zero3 || par.shards() == 1;
  const double replicated = par.replicas() > 1 && whole ? policy.replica_bytes * parameters : 0;

  const MemoryBreakdown states = model_states(job, stack, shape);
  MemoryBreakdown backward = states;
  backward.activations = load.kept;
  offload_activations(job, load.largest, backward);
  backward.activations += Bytes{load.again};
  if (shape.has_head) {
    backward.logits =
        (1.0 + job.model.predicted_tokens) *
        Bytes{policy.logit_bytes * tokens_of(job) * job.model.vocabulary / par.tensor};
  }
  backward.communication =
      Bytes{replicated + exchange_bytes(job) + gathered_bytes(job, stack, shape)};

  MemoryBreakdown update = states;
  const bool gathers = par.shards() > 1 && whole;
  update.communication = Bytes{replicated + (gathers ? policy.gather_bytes * parameters : 0)};

  backward = in_allocator(backward, policy);
  update = in_allocator(update, policy);
  backward.cached = run_ahead_bytes(job, stack);
  update.host = backward.host;
  if (backward.needed() >= update.needed()) return backward;
  // What the backward pass had reserved stays reserved until memory is short.
  update.cached = std::max(Bytes{}, backward.total() - update.needed());
  return update;
}

}  // namespace

MemoryBreakdown peak_memory(const TrainingJob& job, const StackSpec& stack, int stage) {
  KnownLayers known;
  return peak_of(job, stack, load_of_stage(job, stack, stage, known));
}

std::vector<MemoryBreakdown> peak_memories(const TrainingJob& job, const StackSpec& stack) {
  KnownLayers known;
  std::vector<MemoryBreakdown> peaks;
  peaks.reserve(static_cast<std::size_t>(job.parallelism.pipeline));
  for (int stage = 0; stage < job.parallelism.pipeline; ++stage) {
    peaks.push_back(peak_of(job, stack, load_of_stage(job, stack, stage, known)));
  }
  return peaks;
}

bool fits(const TrainingJob& job, const StackSpec& stack, Bytes usable) {
  KnownLayers known;
  for (int stage = 0; stage < job.parallelism.pipeline; ++stage) {
    if (peak_of(job, stack, load_of_stage(job, stack, stage, known)).needed() > usable)
      return false;
  }
  return true;
}

std::vector<Bytes> needed_memory(const TrainingJob& job, const StackSpec& stack,
                                 std::span<const MemoryPolicy> policies) {
  StackSpec changed = stack;
  KnownLayers known;
  std::vector<Bytes> most(policies.size());
  for (int stage = 0; stage < job.parallelism.pipeline; ++stage) {
    const StageLoad load = load_of_stage(job, stack, stage, known);
    for (std::size_t i = 0; i < policies.size(); ++i) {
      assert(policies[i].rotary_copies == stack.memory.rotary_copies &&
             policies[i].gated_mlp_bytes == stack.memory.gated_mlp_bytes);
      changed.memory = policies[i];
      most[i] = std::max(most[i], peak_of(job, changed, load).needed());
    }
  }
  return most;
}

Bytes usable_memory(const GpuSpec& gpu, const MemoryPolicy& policy) {
  return std::max(Bytes{}, gpu.hbm_capacity - policy.outside);
}
Bytes usable_memory(const GpuSpec& gpu, const StackSpec& stack) {
  return usable_memory(gpu, stack.memory);
}

std::vector<MemoryRemedy> memory_remedies(const TrainingJob& job, const StackSpec& stack) {
  std::vector<MemoryRemedy> out;
  add_smaller_micro_batches(job, out);
  add_recompute(job, "", out);
  if (job.parallelism.sharding == Sharding::none && job.parallelism.replicas() > 1) {
    TrainingJob sharded = job;
    sharded.parallelism.sharding = Sharding::zero1;
    out.push_back({"a sharded optimiser (zero1)", sharded});
    add_recompute(sharded, "a sharded optimiser (zero1) and ", out);
  }
  const std::vector<KindShape>& kinds = job.model.kinds;
  const bool whole =
      std::ranges::any_of(kinds, [](const KindShape& kind) { return kind.convolution.kernel > 0; });
  const bool one_stage = whole || std::ranges::any_of(kinds, [](const KindShape& kind) {
                           return kind.cross || kind.tokens > 0 || !why_one_stage(kind).empty();
                         });
  for (const int ways : {2, 4, 8}) {
    if (!whole) add_wider_tensor(job, stack, ways, out);
    if (!one_stage) add_longer_pipeline(job, ways, out);
  }
  std::erase_if(out, [](const MemoryRemedy& remedy) {
    return !schedule_takes(remedy.job.parallelism, remedy.job.micro_batches());
  });
  return out;
}

MemoryVerdict check_memory(const TrainingJob& job, const StackSpec& stack, const GpuSpec& gpu) {
  MemoryVerdict verdict;
  std::tie(verdict.fullest_stage, verdict.peak) = fullest(job, stack);
  verdict.usable = usable_memory(gpu, stack);
  verdict.fits = verdict.peak.needed() <= verdict.usable;
  const Bytes left = std::max(Bytes{}, verdict.usable - verdict.peak.needed());
  verdict.peak.cached = std::min(verdict.peak.cached, left);
  verdict.band = memory_band(job, stack, gpu);
  if (verdict.fits) return verdict;
  for (const MemoryRemedy& remedy : memory_remedies(job, stack)) {
    const Bytes needed = fullest(remedy.job, stack).second.needed();
    if (needed > verdict.usable) continue;
    verdict.nearest_fit = remedy.words + " (" + gib_text(needed) + ")";
    break;
  }
  return verdict;
}

}  // namespace lockstep
