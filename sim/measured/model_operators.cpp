#include "sim/measured/model_operators.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "models/layer/operations.hpp"
#include "models/spec/blocks.hpp"
#include "models/spec/layer.hpp"
#include "models/spec/partition.hpp"
#include "sim/step/plan.hpp"

namespace lockstep {
namespace {

/// In the order of ModelOperator.
constexpr std::array<ModelOperatorInfo, kModelOperators> kOperatorInfos{{
    {"embedding", "embedding"},
    {"norm", "norms and residual sums"},
    {"qkv", "query, key and value products"},
    {"rotary", "rotary embedding"},
    {"attention", "attention"},
    {"projection", "output product of attention"},
    {"recurrence", "recurrences and convolutions"},
    {"router", "router"},
    {"permute", "tokens sorted by expert"},
    {"experts", "products of experts"},
    {"mlp_up", "MLP up and gate products"},
    {"activation", "activation"},
    {"mlp_down", "MLP down product"},
    {"head", "output projection"},
    {"loss", "loss"},
    {"quantise", "quantisation"},
    {"gradients", "sums of weight gradients"},
    {"adapters", "adapters"},
    {"optimiser", "optimiser"},
    {"other", "other operators of the model"},
}};

struct OperationRow {
  std::string_view operation;  ///< the first part of its name, or how that begins
  ModelOperator of;
  bool begins = false;
};

/// What layers of any mixer have, and parts of attention; the rest says a mixer's own row
/// (MixerKind::operations).
constexpr std::array kOperationRows{
    OperationRow{"embedding", ModelOperator::embedding},
    OperationRow{"layer_", ModelOperator::embedding, true},
    OperationRow{"norm_residual", ModelOperator::norm},
    OperationRow{"final_norm", ModelOperator::norm},
    OperationRow{"latent_norm", ModelOperator::norm},
    OperationRow{"prediction_norm", ModelOperator::norm},
    OperationRow{"streams", ModelOperator::norm},
    OperationRow{"qkv", ModelOperator::qkv},
    OperationRow{"query_up", ModelOperator::qkv},
    OperationRow{"key_value_up", ModelOperator::qkv},
    OperationRow{"cross_query", ModelOperator::qkv},
    OperationRow{"cross_key_value", ModelOperator::qkv},
    OperationRow{"compressor", ModelOperator::qkv},
    OperationRow{"rotary", ModelOperator::rotary},
    OperationRow{"attention", ModelOperator::attention},
    OperationRow{"index", ModelOperator::attention, true},
    OperationRow{"compression", ModelOperator::attention},
    OperationRow{"summaries", ModelOperator::attention},
    OperationRow{"use_mlp_", ModelOperator::mlp_up, true},
    OperationRow{"use_", ModelOperator::qkv, true},
    OperationRow{"taken", ModelOperator::projection},
    OperationRow{"output_gate", ModelOperator::projection},
    OperationRow{"side_", ModelOperator::projection, true},
    OperationRow{"output_groups", ModelOperator::projection},
    OperationRow{"projection", ModelOperator::projection},
    OperationRow{"cross_projection", ModelOperator::projection},
    OperationRow{"scan", ModelOperator::recurrence},
    OperationRow{"gated_norm", ModelOperator::recurrence},
    OperationRow{"router", ModelOperator::router},
    OperationRow{"routing", ModelOperator::router},
    OperationRow{"expert_bias", ModelOperator::permute},
    OperationRow{"permute", ModelOperator::permute},
    OperationRow{"expert_up", ModelOperator::experts},
    OperationRow{"expert_down", ModelOperator::experts},
    OperationRow{"latent_down", ModelOperator::experts},
    OperationRow{"latent_up", ModelOperator::experts},
    OperationRow{"mlp_up", ModelOperator::mlp_up},
    OperationRow{"activation", ModelOperator::activation},
    OperationRow{"mlp_down", ModelOperator::mlp_down},
    OperationRow{"head", ModelOperator::head},
    OperationRow{"loss", ModelOperator::loss},
    OperationRow{"quantise", ModelOperator::quantise},
    OperationRow{"dequantise", ModelOperator::quantise},
    OperationRow{"weight_gradient_accumulation", ModelOperator::gradients},
    OperationRow{"adapter_", ModelOperator::adapters, true},
};

/// Seconds of the operators of one micro batch on one stage, both ways.
class StageOperators {
 public:
  StageOperators(const Scenario& scenario, const StepPlan& plan)
      : scenario_(scenario),
        plan_(plan),
        placement_(plan.placement),
        layers_(layers_per_virtual_stage(scenario.job.model, scenario.job.parallelism)) {}

  [[nodiscard]] OperatorSeconds of(const StagePlan& stage) const {
    const WorkloadContext context = workload_context(scenario_, placement_, stage.pool);
    const TrainingJob& job = scenario_.job;
    PerKind<OperatorSeconds> kinds;
    const auto layer = [&](int number) {
      return kinds.at(job.kind(number),
                      [&](LayerKind kind) { return sum_of(layer_operations(context, kind)); });
    };
    OperatorSeconds out{};
    for (int chunk = 0; chunk < plan_.shape.chunks; ++chunk) {
      const ChunkPlace at{stage.stage, chunk};
      const auto number = static_cast<std::size_t>(plan_.shape.stage_of(at));
      const int first = std::accumulate(layers_.begin(),
                                        layers_.begin() + static_cast<std::ptrdiff_t>(number), 0);
      if (plan_.shape.is_first(at)) add(sum_of(embedding_operations(context)), out);
      for (int i = first; i < first + layers_[number]; ++i) add(layer(i), out);
      if (!plan_.shape.is_last(at)) continue;
      const OperatorSeconds head = sum_of(head_operations(context));
      add(head, out);
      for (int i = 0; i < job.model.predicted_tokens; ++i) {
        add(sum_of(prediction_operations(context)), out);
        add(layer(job.model.layers - 1), out);
        add(head, out);
      }
    }
    return out;
  }

 private:
  static void add(const OperatorSeconds& more, OperatorSeconds& out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += more[i];
  }
  static OperatorSeconds sum_of(const std::vector<Operation>& operations) {
    OperatorSeconds out{};
    for (const Operation& each : operations) {
      if (each.kind == OperationKind::collective) continue;
      out[static_cast<std::size_t>(operator_of(each.name))] +=
          (each.time - each.imbalance).base_units();
    }
    return out;
  }

  const Scenario& scenario_;
  const StepPlan& plan_;
  Placement placement_;
  std::vector<int> layers_;  ///< by virtual stage
};

}  // namespace

const ModelOperatorInfo& info(ModelOperator which) {
  return kOperatorInfos[static_cast<std::size_t>(which)];
}

ModelOperator operator_of(std::string_view operation) {
  const std::string_view name = operation.substr(0, operation.find('.'));
  const auto* const row = std::ranges::find_if(kOperationRows, [&](const OperationRow& each) {
    return each.begins ? name.starts_with(each.operation) : name == each.operation;
  });
  if (row != kOperationRows.end()) return row->of;
  const bool mixes = std::ranges::any_of(
      mixer_kinds(), [name](const MixerKind* kind) { return is_among(kind->operations, name); });
  return mixes ? ModelOperator::recurrence : ModelOperator::other;
}

std::vector<OperatorSeconds> predicted_operators(const RunResult& predicted) {
  constexpr std::array kOfKernels{Bucket::model_flops, Bucket::kernel_inefficiency,
                                  Bucket::memory_bound, Bucket::recompute};
  const StepPlan plan = plan_step(predicted.scenario);
  const StageOperators operators(predicted.scenario, plan);
  std::vector<OperatorSeconds> out;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const BucketTimes& seconds = predicted.report.stages[s].seconds;
    double kernels = 0;
    for (const Bucket bucket : kOfKernels) kernels += seconds[static_cast<std::size_t>(bucket)];
    OperatorSeconds stage = operators.of(plan.stages[s]);
    const double alone = std::accumulate(stage.begin(), stage.end(), 0.0);
    if (alone > 0) {
      for (double& each : stage) each *= kernels / alone;
    } else {
      stage[static_cast<std::size_t>(ModelOperator::other)] = kernels;
    }
    stage[static_cast<std::size_t>(ModelOperator::optimiser)] +=
        seconds[static_cast<std::size_t>(Bucket::optimiser)];
    out.push_back(stage);
  }
  return out;
}

}  // namespace lockstep
