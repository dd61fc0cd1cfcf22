/// The operations of a transformer layer, of the embedding and of the output projection, for one
/// micro batch on one GPU of a tensor-parallel group, each with its time when nothing disturbs it.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "models/collectives/collectives.hpp"
#include "models/collectives/group_spread.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/software.hpp"
#include "models/spec/transformer.hpp"

namespace lockstep {

enum class OperationKind : std::uint8_t { product, attention, memory, collective };
enum class Phase : std::uint8_t { forward, recompute, backward };
/// Among whom a collective inside a layer is. Where some experts are sent more tokens than others,
/// the way back from them is an axis of its own: links that are full on the way there are not full
/// on the way back, and the two do not overlap. Even exchanges are both of `expert`.
enum class Axis : std::uint8_t { tensor, context, expert, expert_return };
constexpr std::size_t kAxes = 4;

constexpr bool is_of_experts(Axis axis) {
  return axis == Axis::expert || axis == Axis::expert_return;
}

/// The part of a collective's transfer that compute covers. A fabric that slows the collective
/// makes compute wait for what then reaches beyond the cover.
struct HiddenTransfer {
  Seconds transfer;       ///< when alone on its links
  Bytes nvlink, network;  ///< out of this GPU in that time
  Seconds spare;          ///< compute that could cover more

  HiddenTransfer& operator+=(const HiddenTransfer& other);
};

struct Operation {
  std::string_view name;  ///< "qkv", "attention", "mlp_up.weight_gradient", ...
  OperationKind kind;
  Phase phase;
  Seconds time;        ///< alone; of a collective: what compute waits for
  Flops useful;        ///< model FLOP on this GPU, attention causal; 0 for repeated work
  Seconds latency;     ///< of a collective: the part of `time` that congestion cannot change
  Bytes nvlink;        ///< of a collective: bytes out of this GPU over NVLink in `time - latency`
  Bytes network;       ///< of a collective: bytes out of this GPU's NIC in `time - latency`
  Flops arithmetic{};  ///< of products and attention: what is computed, repeated work too
  Bytes traffic{};     ///< through HBM, of everything but collectives
  Precision format = Precision::fp16;  ///< of the operands of `arithmetic`
  Axis axis = Axis::tensor;            ///< of a collective
  Seconds imbalance{};  ///< in `time`: what the fullest expert-parallel rank takes beyond the mean
  CollectiveOp op = CollectiveOp::all_reduce;  ///< of a collective,
  std::string_view algorithm{};                ///< and how it is run: CollectiveCost::algorithm
  int channels = 0;                            ///< on how many channels: CollectiveCost::channels,
  ExchangeSkew skew{};                         ///< with what each member gets of it
  HiddenTransfer hidden{};                     ///< and what of it goes on beside compute
  Bytes payload{};                             ///< of a collective: of each call
};

/// Everything that the cost of an operation depends on.
struct WorkloadContext {
  const TrainingJob& job;
  const NodeSpec& node;
  const StackSpec& stack;
  const TransportSpec& transport;
  DomainSpreads tensor_groups;          ///< how tensor-parallel groups lie over NVLink domains
  DomainSpreads context_groups{};       ///< the same of context-parallel groups,
  DomainSpreads expert_groups{};        ///< of expert-parallel ones,
  DomainSpreads expert_shard_groups{};  ///< and of the ranks that split an expert between them
  /// Weights' gradients are a pass of their own: the collective of the inputs' gradients has no
  /// product to hide behind.
  bool split_backward = false;
};

/// Operations of one layer: forward, backward, and what is recomputed in between.
std::vector<Operation> layer_operations(const WorkloadContext& context, LayerKind kind = {});
/// What predicts a further token beside its layer and the output projection (DeepSeek-AI 2024,
/// arXiv:2412.19437, section 2.2): two norms and a product over both hidden states.
std::vector<Operation> prediction_operations(const WorkloadContext& context);
/// Input embedding (first stage).
std::vector<Operation> embedding_operations(const WorkloadContext& context);
/// Final norm, output projection and loss (last stage).
std::vector<Operation> head_operations(const WorkloadContext& context);

/// Whether it makes gradients of weights, for which no other stage waits.
bool is_weight_gradient(const Operation& operation);

/// Collectives inside layers that compute waits for.
struct ExchangeCost {
  Seconds latency;        ///< that congestion cannot change
  Seconds transfer;       ///< when alone on its links
  Bytes nvlink, network;  ///< of the transfer, out of this GPU
  HiddenTransfer hidden{};

  [[nodiscard]] Seconds total() const { return latency + transfer; }
  ExchangeCost& operator+=(const ExchangeCost& other);
};

/// Sums of operations: what one GPU does in one phase.
struct PhaseCost {
  Seconds useful;        ///< model FLOP at the datasheet peak of the job's precision
  Seconds inefficiency;  ///< products and attention: time beyond `useful`
  Seconds memory;        ///< memory-bound kernels
  Seconds recompute;     ///< repeated forward work, its collectives apart
  Seconds launch;        ///< host: what launching takes beyond all of the above
  Seconds imbalance;     ///< waiting for the expert-parallel rank that got most tokens
  Seconds copies;        ///< to and from the host: what they take beyond all else of the pass
  std::array<ExchangeCost, kAxes> exchanges;  ///< by Axis

  [[nodiscard]] Seconds compute() const {
    return useful + inefficiency + memory + recompute + launch + imbalance;
  }
  /// Of all axes.
  [[nodiscard]] ExchangeCost exchange() const;
  [[nodiscard]] Seconds total() const { return compute() + exchange().total() + copies; }
  PhaseCost& operator+=(const PhaseCost& other);
};

/// Sums the operations of a pass: `backward` takes in what is recomputed. A pass takes at least
/// `host`, in which the host launches its kernels.
PhaseCost phase_cost(const std::vector<Operation>& operations, bool backward, Seconds host,
                     const WorkloadContext& context);

}  // namespace lockstep
