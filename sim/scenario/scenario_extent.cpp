// Bounds on the whole: a job may have any sensible numbers one by one, and still be one that runs
// for years or needs more memory to simulate than there is.
#include <algorithm>
#include <cstdint>

#include "models/base/number_text.hpp"
#include "models/kernels/attention.hpp"
#include "models/spec/blocks.hpp"
#include "sim/scenario/scenario_rules.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

/// What the estimates below share. They are meant to be too high rather than too low.
struct Sizes {
  explicit Sizes(const Scenario& scenario)
      : model(scenario.job.model), cut(scenario.job.parallelism) {
    micro_batches = scenario.job.micro_batches();
    for (const int count : scenario.micro_batches) {
      micro_batches = std::max<double>(micro_batches, count);
    }
    sequence_tokens = std::max(scenario.job.batch.tokens, scenario.job.batch.source());
    for (const KindShape& own : model.kinds) {
      const int longest = std::max(own.tokens, own.source_tokens);
      sequence_tokens = std::max<double>(sequence_tokens, longest);
    }
    micro_tokens = scenario.job.batch.micro_sequences * sequence_tokens;
    stage_layers = std::max(1.0, static_cast<double>(model.layers) / cut.pipeline);
    if (!cut.layers_per_stage.empty()) stage_layers = model.layers;
    stage_layers += model.predicted_tokens;
    // Of experts, copies of a token stand for further tokens; a recurrent mixer's columns stand for
    // those of an MLP.
    ffn = std::max<double>(model.ffn,
                           static_cast<double>(model.experts.per_token) * model.experts.ffn +
                               model.experts.shared_ffn);
    hidden = model.hidden;
    for (const KindShape& own : model.kinds) {
      const ConvolutionShape& c = own.convolution;
      const double channels = std::max(c.inputs() * c.in, static_cast<double>(c.out));
      ffn = std::max({ffn, static_cast<double>(own.ffn), channels});
      hidden = std::max({hidden, static_cast<double>(own.hidden), channels});
    }
    ffn *= std::max(1.0, model.activation_traffic);
    ffn = std::max(ffn, mixer_columns(model));
    add_layers();
    const ExpertLoad load = expert_load(scenario.job);
    imbalance = load.fullest * std::max(1.0, load.rows);
    const double here = static_cast<double>(cut.expert) * cut.expert_tensor;
    stage_parameters =
        (layer_weights * stage_layers + 2 * embedding_parameters(model)) / cut.tensor;
    if (model.experts.count > 0) stage_parameters += expert_parameters(model) * stage_layers / here;
  }

  /// The most that any kind of layer has of everything.
  void add_layers() {
    PerKind<bool> known;
    for (int i = 0; i < model.layers; ++i) {
      known.at(model.kind(i), [&](LayerKind kind) {
        add(declare_layer(model, kind));
        layer_weights = std::max(layer_weights, layer_parameters(model, kind));
        met_weights = std::max(met_weights, layer_matrix_parameters(model, kind));
        return true;
      });
    }
  }
  void add(const Layer& layer) {
    double per_key = 0;
    for (const Row& row : layer.rows) {
      if (const auto* core = std::get_if<Core>(&row)) {
        per_key += core->flops_per_key() * static_cast<double>(core->keys.size());
      }
      if (const auto* index = std::get_if<IndexScores>(&row)) {
        per_key += cut.tensor * index->flops_per_key();  // on each rank
      }
      if (const auto* one = std::get_if<Scan>(&row)) {
        scan.flops = std::max(scan.flops, one->flops);
        scan.bytes = std::max(scan.bytes, one->bytes);
      }
    }
    attention_flops = std::max(attention_flops, per_key);
  }

  const TransformerShape& model;
  const Parallelism& cut;
  double micro_batches = 1;    ///< per replica
  double sequence_tokens = 1;  ///< the most that any layer has
  double micro_tokens = 1;     ///< T
  double stage_layers = 1;
  double stage_parameters = 1;  ///< of one GPU
  // Of one layer and token.
  double layer_weights = 0, met_weights = 0;
  double hidden = 1;           ///< of the widest stream
  double ffn = 1;              ///< of the MLPs that a token meets
  double attention_flops = 0;  ///< of a query and a key
  Scan scan{};
  double imbalance = 1;
};

/// Products and attention of one layer, forward, backward and recomputed.
double arithmetic_seconds(const Scenario& scenario, const Sizes& s) {
  constexpr double kPasses = 4;  // forward, twice as much backward, forward again
  const GpuSpec& gpu = scenario.node.gpu;
  const double slowest_tile = std::min({1.0, gpu.gemm.efficiency_128x128, gpu.gemm.efficiency_x64});
  const double quantised = std::min({1.0, gpu.gemm.fp8_efficiency, gpu.gemm.fp4_efficiency});
  const double products =
      kPasses * 2 * s.micro_tokens * (s.met_weights + table_parameters(s.model)) / s.cut.tensor;
  const double peak = gpu.peak(scenario.job.precision).base_units() * gpu.gemm.efficiency *
                      gpu.gemm.sustained * gpu.gemm.quantised_sustained * slowest_tile * quantised;
  const double peak_16_bit =
      std::min(gpu.peak_fp16, gpu.peak_bf16 > FlopsPerSecond{} ? gpu.peak_bf16 : gpu.peak_fp16)
          .base_units();
  double attention_peak = peak_16_bit * gpu.gemm.efficiency * gpu.gemm.sustained;
  double backward_ratio = 3;
  double ramp_tokens = 0;
  if (const AttentionConstants* fused = attention_constants(scenario.stack.attention, gpu)) {
    attention_peak = peak_16_bit * fused->efficiency * gpu.gemm.sustained;
    backward_ratio = fused->backward_ratio;
    ramp_tokens = fused->ramp_tokens;
  }
  const double attention = (2 + backward_ratio) * s.micro_tokens *
                           (s.sequence_tokens + ramp_tokens) * s.attention_flops / s.cut.tensor;
  const double scan = 5 * s.micro_tokens * s.scan.flops;
  return s.imbalance * scenario.stack.grouped_slowdown * products / peak +
         attention / attention_peak + scan / (scenario.stack.scan_efficiency * peak_16_bit);
}

/// Elementwise work and launches of one layer.
double elementwise_seconds(const Scenario& scenario, const Sizes& s) {
  const ElementwiseTraffic& e = scenario.stack.elementwise;
  const TransformerShape& m = s.model;
  const GpuSpec& gpu = scenario.node.gpu;
  const double width = static_cast<double>(m.heads) * m.head_dim;
  const double per_token =
      e.norm_residual_bytes * m.residual_streams * s.hidden * (1 + e.norm_backward_ratio) +
      e.activation_bytes * 3.0 * s.ffn * (1 + e.activation_backward_ratio) +
      (2 * e.permute_bytes + e.expert_bias_bytes * (1 + e.expert_bias_backward_ratio)) *
          m.experts.per_token * m.hidden +
      e.rotary_bytes * 4 * width +
      e.score_bytes * m.heads * s.sequence_tokens * (1 + e.score_backward_ratio) +
      (e.quantise_bytes + e.quantise_backward_bytes) * (4.0 * s.hidden + 3.0 * s.ffn + width) +
      e.loss_bytes * m.vocabulary + 5 * s.scan.bytes + 16 * mixer_columns(m);
  const double bandwidth =
      std::min(gpu.hbm_bandwidth * gpu.memory.efficiency, gpu.gemm.bandwidth).base_units();
  const double weights =
      scenario.stack.weight_gradient_traffic * (s.layer_weights + expert_parameters(m));
  const double kernels = scenario.stack.kernels_forward + scenario.stack.kernels_backward + 100;
  Seconds launch =
      scenario.stack.launch_interval + gpu.gemm.launch + gpu.gemm.split_k * 10 + gpu.memory.launch;
  if (const AttentionConstants* fused = attention_constants(scenario.stack.attention, gpu)) {
    launch += fused->launch * fused->backward_ratio;
  }
  const Seconds host =
      scenario.stack.expert_host_layer + scenario.stack.expert_host_expert * m.experts.count;
  return (s.imbalance * s.micro_tokens * per_token + weights) * e.slowdown / bandwidth +
         kernels * launch.base_units() + host.base_units();
}

/// Everything that a GPU computes in a step, one thing after another.
double compute_seconds(const Scenario& scenario, const Sizes& s) {
  const GpuSpec& gpu = scenario.node.gpu;
  double slowest = 1;
  for (const Straggler& straggler : scenario.stragglers) {
    slowest = std::max(slowest, straggler.slowdown);
  }
  const double layer = arithmetic_seconds(scenario, s) + elementwise_seconds(scenario, s);
  const double optimiser =
      (scenario.stack.optimiser_bytes + scenario.stack.optimiser_unsharded_bytes) *
      s.stage_parameters / (gpu.hbm_bandwidth * gpu.memory.efficiency).base_units();
  const double sm_left = 1 - scenario.stack.communication.sm_share;
  return slowest / sm_left * (s.micro_batches * s.stage_layers * layer + optimiser);
}

void check_counts(const ScenarioDraft& draft, const Scenario& scenario, const Sizes& s) {
  constexpr double kMaxParameters = 1e14;
  constexpr std::int64_t kMaxMicroBatches = 1 << 16;
  constexpr std::int64_t kMaxPasses = 8'000'000;  // of all stages: half a GiB of programs
  constexpr double kMaxSegments = 32e6;           // of all stages: 1.3 GiB of programs
  constexpr double kMaxBuckets = 1e5;             // of a GPU
  if (total_parameters(s.model) > kMaxParameters) {
    refuse(draft, "/model", compact(total_parameters(s.model)) + " weights",
           "at most " + compact(kMaxParameters));
  }
  const auto micro_batches = static_cast<std::int64_t>(s.micro_batches);
  if (micro_batches > kMaxMicroBatches) {
    refuse(draft, "/batch/sequences", std::to_string(micro_batches) + " micro batches a replica",
           "at most " + std::to_string(kMaxMicroBatches));
  }
  const std::int64_t passes = micro_batches * s.cut.pipeline * s.cut.virtual_stages;
  if (passes > kMaxPasses) {
    refuse(draft, "/batch/sequences",
           std::to_string(passes) + " micro batches x pipeline x virtual_stages",
           "at most " + std::to_string(kMaxPasses));
  }
  // With sharded weights each layer of a pass waits for its own, with sharded gradients it reduces.
  const bool by_layer = s.cut.sharding == Sharding::zero3 || s.cut.reduces_each_micro_batch();
  const double pieces = by_layer ? s.stage_layers / s.cut.virtual_stages + 2 : 1;
  const double segments = 2 * static_cast<double>(passes) * pieces;
  if (segments > kMaxSegments) {
    refuse(
        draft, "/batch/sequences",
        compact(segments) + " events of a replica (micro batches x pipeline x layers of a stage)",
        "at most " + compact(kMaxSegments));
  }
  const double bucket = scenario.stack.communication.bucket_parameters;
  if (bucket > 0 && s.stage_parameters / bucket > kMaxBuckets) {
    refuse(draft, "/stack/communication/bucket_parameters", compact(bucket),
           "at least " + compact(s.stage_parameters / kMaxBuckets) + " (" + compact(kMaxBuckets) +
               " buckets of " + compact(s.stage_parameters) + " weights)");
  }
}

}  // namespace

void check_extent(const ScenarioDraft& draft, const Scenario& scenario) {
  for (const NodePool& pool : scenario.pools) {
    Scenario of_pool = scenario;
    of_pool.pools.clear();
    of_pool.node = pool.node;
    check_extent(draft, of_pool);
  }
  const Sizes sizes(scenario);
  check_counts(draft, scenario, sizes);
  // The clock of a step ends after 213 days. Stages wait for each other, so the sum of what one
  // stage does can pass many times before the last has ended. Transfers are no part of this: what
  // they take where all meet on one link is far above what they do, and the replay watches its
  // clock.
  constexpr double kLongestStep = 1e6;  // seconds
  const double compute = compute_seconds(scenario, sizes);
  if (compute > kLongestStep) {
    refuse(draft, "/batch", "a step of up to " + plain_number(compute, 3) + " s of computing",
           "at most " + plain_number(kLongestStep) + " s");
  }
}

}  // namespace lockstep
