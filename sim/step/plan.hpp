/// What every pipeline stage does in a step, before anybody waits for anybody: its passes in order,
/// their compute time, and the collectives with which replicas exchange gradients and parameters.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "models/collectives/group_spread.hpp"
#include "models/layer/operations.hpp"
#include "models/pipeline/schedule.hpp"
#include "sim/core/clock.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/data_groups.hpp"
#include "sim/step/step_report.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {

/// A stretch of a pass that nothing interrupts: compute, then the transfers of collectives inside
/// its layers.
struct Segment {
  StepTime compute;  ///< kernels and launch gaps, on a GPU of nominal speed
  StepTime tensor;   ///< latency inside layers, and transfers that no flow moves,
  /// the same by Axis
  std::array<StepTime, kAxes> closed{};
  /// By Axis: bytes that run as a flow on shared links, one axis after the other; 0: none.
  std::array<double, kAxes> amounts{};
  /// By Axis: of `compute`, what goes on beside the flow, and the least time that the flow and this
  /// take together.
  std::array<StepTime, kAxes> covered{}, least{};
  std::uint32_t needs = 0;  ///< data-parallel collectives of the stage that must be complete before
  std::uint32_t posts = 0;  ///< data-parallel collectives of the stage posted at its end, in all

  /// Ends of flows that the segment waits for.
  [[nodiscard]] int flows() const {
    return static_cast<int>(std::ranges::count_if(amounts, [](double b) { return b > 0; }));
  }
};

struct ProgramItem {
  WorkItem work;
  std::uint32_t first_segment = 0;
  std::uint32_t segments = 0;
  StepTime copies{};           ///< to and from the host beside it
  bool needs_message = false;  ///< from the neighbouring stage
  bool sends_message = false;
  std::uint8_t direction = 0;  ///< of the message sent: 0 to the next rank, 1 to the previous one
};

/// For which of the receiver's passes a message is: a chunk's next forward or backward pass.
struct MessageTarget {
  std::uint16_t chunk = 0;
  bool forward = true;
};

/// A collective among replicas of one stage, all tensor-parallel ranks side by side.
struct DataCollective {
  CollectiveOp op;
  Bytes payload;  ///< of one rank
  StepTime latency;
  std::uint32_t channel;  ///< index into StagePlan::channels
};
/// A flow that data-parallel collectives of one kind and size run on.
struct DataChannel {
  DataGroupKind group;
  CollectiveOp op;
  Bytes payload;
  CollectiveCost cost;
};

struct StagePlan {
  int stage = 0;
  std::uint32_t pool = 0;   ///< of the nodes that it runs on
  int micro_batches = 1;    ///< of a replica
  DataGroups groups;        ///< by DataGroupKind
  std::vector<int> layers;  ///< of each chunk
  std::vector<ProgramItem> items;
  std::vector<Segment> segments;
  /// By direction, for each message that leaves in it, in order.
  std::array<std::vector<MessageTarget>, 2> message_targets;
  std::vector<DataCollective> collectives;  ///< in order of posting
  std::vector<DataChannel> channels;
  std::uint32_t gathers_first = 0;  ///< posted at the start of the step, before any pass
  std::uint32_t reduces_end = 0;    ///< complete before the optimiser may run
  double parameters = 0;            ///< of one rank: those that are trained
  StepTime optimiser;
  StepTime forward, backward;  ///< one micro batch through all chunks, tensor parallel too
  BucketTimes compute{};       ///< seconds of one GPU over all segments, by bucket
  /// Seconds of collectives inside layers, by Axis: latency, and transfers that no flow moves.
  std::array<double, kAxes> exchange{};
};

/// Gradients of weights of which two stages of a replica have a copy each: summed when both have
/// done their passes.
struct StageExchange {
  std::array<std::uint32_t, 2> stages{};
  Bytes payload;
  CollectiveCost cost;
  std::string_view what;  ///< "embedding gradients"
};

/// How part of the bytes that ranks exchange inside layers goes from one to another.
struct LayerPattern {
  CollectiveOp op = CollectiveOp::all_reduce;
  std::string_view algorithm;
  double share = 1;  ///< of the bytes that leave the NICs or, where none do, NVLink ports
  ExchangeSkew skew{};
  int channels = 0;  ///< CollectiveCost::channels
};
/// Transfers inside layers along one axis, as flows. A byte of Segment::amounts is one that leaves
/// a GPU's NIC on average or, where no group of the axis leaves its NVLink domain, its NVLink port.
struct LayerTransfer {
  double rate = 0;                     ///< bytes per second when alone; 0: there are none
  double nvlink_share = 1;             ///< bytes over NVLink,
  double network_share = 0;            ///< and over the NIC, for each byte
  std::vector<LayerPattern> patterns;  ///< where the network has a share, or some rank a larger one
  int peer_channels = 1;               ///< connections between two ranks that send to all

  /// Whether some ranks send or receive more than others.
  [[nodiscard]] bool is_skewed() const {
    return std::ranges::any_of(patterns, [](const LayerPattern& p) { return !p.skew.is_even(); });
  }
};

/// What transfers cost on nodes of one kind.
struct NodeCosts {
  CollectiveCost message_cost;              ///< across the fabric
  CollectiveCost local_message_cost;        ///< inside an NVLink domain
  std::array<LayerTransfer, kAxes> layers;  ///< by Axis

  [[nodiscard]] const LayerTransfer& layer(Axis axis) const {
    return layers[static_cast<std::size_t>(axis)];
  }
  /// Seconds that compute waits for a segment's flows when each is alone on its links.
  [[nodiscard]] double flow_time(const Segment& segment) const {
    double time = 0;
    for (std::size_t a = 0; a < kAxes; ++a) time += flow_time(segment, a);
    return time;
  }
  /// The same of one Axis.
  [[nodiscard]] double flow_time(const Segment& segment, std::size_t a) const {
    if (segment.amounts[a] <= 0) return 0;
    return std::max(segment.amounts[a] / layers[a].rate,
                    to_seconds(segment.least[a]).base_units()) -
           to_seconds(segment.covered[a]).base_units();
  }
};

/// Ranks of a stage that exchange inside layers: a replica's lanes are numbered tensor, context.
struct LayerWidths {
  int tensor = 1, context = 1;
  int expert = 1, expert_tensor = 1;  ///< groups of experts fill lanes and then replicas

  /// Replicas that hold all experts together, and so exchange with one another.
  [[nodiscard]] int expert_replicas() const {
    return std::max(1, expert * expert_tensor / (tensor * context));
  }
};

/// Connections between two ranks on different nodes, which hashes tell apart: NCCL's channels, as
/// the laws of collectives count them.
struct Connections {
  int ring = 1;     ///< of neighbours in the rings of replicas
  int message = 1;  ///< between pipeline stages
};

/// As a NodeCosts it has those of the first pool of nodes.
struct StepPlan : NodeCosts {
  PlacementSpec placement;
  LayerWidths widths;
  int micro_batches = 1;
  PipelineShape shape;
  std::vector<StagePlan> stages;         ///< of replicas of the first variant
  bool blocking_sends = false;           ///< a stage waits until its message is delivered
  Bytes message;                         ///< one lane: what one tensor-parallel rank sends
  bool data_over_nvlink = false;         ///< replicas share an NVLink domain
  bool switches_sum = false;             ///< all-reduces between replicas may go to switches
  std::vector<StageExchange> exchanges;  ///< a stage is in one at most
  Connections connections;
  StepTime synchronisation;  ///< latency of the global gradient-norm all-reduce
  StepTime overhead;         ///< per step, host
  /// For which the first group of replicas waits for the last, which begins so much later.
  StepTime stagger;

  // Of jobs with several kinds of nodes, or with replicas that get unequal parts of the batch.
  std::vector<NodeCosts> further_pools;
  /// Stages of replicas on other nodes, or with other micro batches, than those of the first
  /// variant. A stage posts the same collectives in all of them.
  std::vector<std::vector<StagePlan>> further_variants;
  std::vector<std::uint32_t> variant_of;  ///< by replica; empty: all are of the first

  [[nodiscard]] const NodeCosts& costs(std::size_t pool) const {
    return pool == 0 ? *this : further_pools[pool - 1];
  }
  [[nodiscard]] const StagePlan& stage_of(std::size_t variant, std::size_t stage) const {
    return variant == 0 ? stages[stage] : further_variants[variant - 1][stage];
  }
  [[nodiscard]] std::uint32_t variant(int replica) const {
    return variant_of.empty() ? 0 : variant_of[static_cast<std::size_t>(replica)];
  }
  [[nodiscard]] const StagePlan& place(int replica, int stage) const {
    return stage_of(variant(replica), static_cast<std::size_t>(stage));
  }
};

/// Whether the stack lets switches sum and they can: where faults leave a rail no switch above all
/// leaves of the job, NCCL sums in GPUs (sim/fabric/summed_streams.hpp).
bool switches_sum(const Scenario& scenario);

/// What the operations of a layer cost with these ranks on nodes of that pool. Keeps references
/// into the scenario.
WorkloadContext workload_context(const Scenario& scenario, const Placement& placement,
                                 std::size_t pool = 0);

/// Fills in which messages the item of a stage needs and sends, and adds the one that it sends to
/// those of the stage. Items are connected in the order of their program. Gradients go no further
/// back than to the virtual stage `last_backward`.
void connect(const PipelineShape& shape, StagePlan& stage, ProgramItem& item,
             int last_backward = 0);

/// Throws InputError where a layout cannot be planned. `scenario` has been checked.
StepPlan plan_step(const Scenario& scenario);

}  // namespace lockstep
