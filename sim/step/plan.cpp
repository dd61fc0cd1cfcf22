#include "sim/step/plan.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <map>
#include <set>

#include "models/base/input_error.hpp"
#include "models/collectives/algorithms.hpp"
#include "models/pipeline/schedule_extension.hpp"
#include "models/spec/partition.hpp"
#include "sim/fabric/summed_streams.hpp"
#include "sim/scenario/replica_variants.hpp"
#include "sim/step/layer_groups.hpp"
#include "sim/step/pieces.hpp"
#include "sim/step/stage_builder.hpp"
#include "sim/step/stage_collectives.hpp"

namespace lockstep {
namespace {

/// The ways in which the axis' bytes leave NICs, or NVLink ports, by operation and algorithm.
std::vector<LayerPattern> layer_patterns(const WorkloadContext& context, Axis axis, bool nics) {
  std::vector<LayerPattern> patterns;
  std::set<std::size_t> seen;
  double all = 0;
  for (int i = 0; i < context.job.model.layers; ++i) {
    const LayerKind kind = context.job.kind(i);
    if (!seen.insert(Pieces::piece_of(kind)).second) continue;
    for (const Operation& o : layer_operations(context, kind)) {
      const double bytes =
          (nics ? o.network + o.hidden.network : o.nvlink + o.hidden.nvlink).base_units();
      if (o.kind != OperationKind::collective || o.axis != axis || bytes <= 0) continue;
      all += bytes;
      const auto same = std::ranges::find_if(patterns, [&o](const LayerPattern& p) {
        return p.op == o.op && p.algorithm == o.algorithm && p.skew == o.skew &&
               p.channels == o.channels;
      });
      if (same == patterns.end()) {
        patterns.push_back({o.op, o.algorithm, bytes, o.skew, o.channels});
      } else {
        same->share += bytes;
      }
    }
  }
  for (LayerPattern& pattern : patterns) pattern.share /= all;
  return patterns;
}

/// Connections that a rank opens to another one of its group on a different node.
int peer_channels_of(CollectiveOp op, int ranks, const DomainSpread& spread, const NodeSpec& node,
                     const TransportSpec& transport) {
  const CollectiveOptions options;
  return peer_channels(unpack(placed({.op = op, .payload = Bytes{1}, .ranks = ranks}, spread),
                              node.gpu, transport, nic_share(node), options));
}

/// Of ranks that exchange inside layers: the fewest where groups lie in several ways.
int peer_channels_of(const WorkloadContext& context, Axis axis) {
  const Parallelism& par = context.job.parallelism;
  const auto fewest = [&](int ranks, const DomainSpreads& spreads) {
    int least = 0;
    for (const DomainSpread& spread : spreads.ways()) {
      if (spread.per_domain >= ranks) continue;
      const int channels = peer_channels_of(CollectiveOp::all_to_all, ranks, spread, context.node,
                                            context.transport);
      least = least == 0 ? channels : std::min(least, channels);
    }
    return std::max(least, 1);
  };
  switch (axis) {
    case Axis::tensor:
      return fewest(par.tensor, context.tensor_groups);
    case Axis::context:
      return fewest(par.context, context.context_groups);
    case Axis::expert:
    case Axis::expert_return:
      return fewest(par.expert, context.expert_groups);
  }
  assert(false && "no such axis");
  return 1;
}

/// How transfers inside layers load links when they run as flows.
void plan_layer_transfers(const Pieces& pieces, const WorkloadContext& context, NodeCosts& out) {
  for (std::size_t a = 0; a < kAxes; ++a) {
    ExchangeCost cost;
    for (const Piece& layer : pieces.layers) {
      cost += layer.cost(Pass::forward).exchanges[a];
      cost += layer.cost(Pass::backward).exchanges[a];
    }
    const Seconds transfer = cost.transfer + cost.hidden.transfer;
    if (transfer <= Seconds{}) continue;
    const Bytes nvlink = cost.nvlink + cost.hidden.nvlink,
                network = cost.network + cost.hidden.network;
    const bool leaves = network > Bytes{};
    const Bytes unit = leaves ? network : nvlink;
    out.layers[a] = {.rate = (unit / transfer).base_units(),
                     .nvlink_share = nvlink / unit,
                     .network_share = network / unit,
                     .patterns = {},
                     .peer_channels = 1};
    const auto axis = static_cast<Axis>(a);
    // Inside NVLink domains members differ where experts do, and nowhere else.
    if (leaves || (is_of_experts(axis) && expert_load(context.job).fullest > 1)) {
      out.layers[a].patterns = layer_patterns(context, axis, leaves);
    }
    if (leaves) out.layers[a].peer_channels = peer_channels_of(context, axis);
  }
}

/// Layouts that a search tries have not been read: they are held to the rules here.
void check_added_schedule(const TrainingJob& job) {
  const Parallelism& cut = job.parallelism;
  if (!is_extension(cut.schedule) || cut.pipeline == 1) return;
  auto problem =
      problem_of(cut.schedule, cut.pipeline, pipeline_shape(cut).chunks, job.micro_batches());
  if (!problem) return;
  throw InputError({.file = extension_text("schedule", info(cut.schedule).name),
                    .pointer = {},
                    .found = std::move(problem->found),
                    .allowed = std::move(problem->allowed),
                    .nearest = {}});
}

void plan_messages(const Scenario& s, StepPlan& plan) {
  const Parallelism& par = s.job.parallelism;
  const CommunicationPolicy& policy = s.stack.communication;
  const double tokens =
      static_cast<double>(s.job.batch.micro_sequences) * s.job.batch.tokens / par.context;
  const bool split = par.sequence || policy.scatter_gather_pipeline;
  plan.message = Bytes{2 * tokens * s.job.model.hidden / (split ? par.tensor : 1)};
  check_added_schedule(s.job);
  const bool waits = !par.order && info(par.schedule).blocking_sends;
  plan.blocking_sends = waits || !policy.overlap_pipeline;
  plan.connections = {
      .ring = kChannelsPerRail,
      .message = peer_channels_of(CollectiveOp::send_receive, 2, {1, 2}, s.node, s.transport)};
}

NodeCosts node_costs(const Scenario& s, const WorkloadContext& context, Bytes message,
                     const Pieces& pieces) {
  const NodeSpec& node = context.node;
  NodeCosts costs;
  const NicShare nic = nic_share(node);
  const CollectiveCall call{CollectiveOp::send_receive, message, 2, 1};
  costs.message_cost = collective_cost(call, node.gpu, s.transport, nic);
  costs.local_message_cost =
      collective_cost({call.op, call.payload, 2, 2}, node.gpu, s.transport, nic);
  plan_layer_transfers(pieces, context, costs);
  return costs;
}

/// How many ranks of a pair of stages are near each other: one if any pair, of whatever lane and
/// replica, lies on two nodes and two NVLink domains.
int near_in_pairs(const Placement& placement, const std::array<std::uint32_t, 2>& stages) {
  const auto rank_of = [&](std::uint32_t stage) {
    return placement.rank({.tensor = 0, .data = 0, .pipeline = static_cast<int>(stage)});
  };
  // Of a list, so that the two are values: of two arguments they would refer to what is gone.
  const auto [first, last] = std::minmax({rank_of(stages[0]), rank_of(stages[1])});
  const RankGroup lanes = placement.group(ParallelAxis::tensor, {});
  const RankGroup replicas = placement.group(ParallelAxis::data, {});
  const std::vector<GroupSpread> ways = placement.spreads(
      {.first = first,
       .members = {0, last - first},
       .repeats = {{lanes.count, lanes.stride}, {replicas.count, replicas.stride}}});
  const auto is_near = [](const GroupSpread& way) { return way.nodes == 1 || way.domains == 1; };
  return std::ranges::all_of(ways, is_near) ? 2 : 1;
}

void add_exchange(const Scenario& s, const std::vector<std::uint32_t>& pools,
                  const std::array<std::uint32_t, 2>& stages, double parameters,
                  std::string_view what, StepPlan& plan) {
  const Bytes payload{s.stack.communication.gradient_bytes * parameters};
  const int together = near_in_pairs(Placement{plan.placement}, stages);
  const CollectiveCost cost =
      cost_among(s, pools, {CollectiveOp::all_reduce, payload, 2}, together);
  plan.exchanges.push_back({stages, payload, cost, what});
}

/// A tied embedding whose two copies lie on two ranks; both copies of a model that runs two ways,
/// of which each replica reduces its own part where they are sharded.
void plan_exchanges(const Scenario& s, const std::vector<std::uint32_t>& pools, StepPlan& plan) {
  const Parallelism& par = s.job.parallelism;
  const auto ranks = static_cast<std::uint32_t>(par.pipeline);
  if (plan.shape.layout == ChunkLayout::two_way) {
    for (std::uint32_t r = 0; r < ranks / 2; ++r) {
      add_exchange(s, pools, {r, ranks - 1 - r}, plan.stages[r].parameters / par.shards(),
                   "gradients of both copies", plan);
    }
  } else if (s.job.model.tied && !ends_meet(plan.shape) && !s.job.adapters.any() &&
             !s.job.frozen.embedding) {
    add_exchange(s, pools, {0, ranks - 1}, table_parameters(s.job.model) / par.tensor,
                 "embedding gradients", plan);
  }
}

}  // namespace

WorkloadContext workload_context(const Scenario& s, const Placement& placement, std::size_t pool) {
  LayerGroups groups = layer_groups(s.job.parallelism, placement);
  return {.job = s.job,
          .node = s.node_of(pool),
          .stack = s.stack,
          .transport = s.transport,
          .tensor_groups = std::move(groups.tensor),
          .context_groups = std::move(groups.context),
          .expert_groups = std::move(groups.expert),
          .expert_shard_groups = std::move(groups.expert_shard)};
}

void connect(const PipelineShape& shape, StagePlan& stage, ProgramItem& item, int last_backward) {
  if (item.work.pass == Pass::backward_weight) return;
  const ChunkPlace at{stage.stage, item.work.chunk};
  const bool forward = is_forward(item.work.pass);
  const int number = shape.stage_of(at);
  if (!forward && number < last_backward) return;
  const auto from = forward ? shape.before(at) : shape.after(at);
  const auto to = forward ? shape.after(at) : shape.before(at);
  item.needs_message = from && from->rank != at.rank;
  const bool goes_on = forward || number > last_backward;
  item.sends_message = goes_on && to && to->rank != at.rank;
  if (!item.sends_message) return;
  item.direction = forward == shape.rising(at.chunk) ? 0 : 1;
  stage.message_targets[item.direction].push_back({static_cast<std::uint16_t>(to->chunk), forward});
}

namespace {

/// Pools that hold a rank of a stage, of any replica; all of them where `stage` is -1.
std::vector<std::uint32_t> pools_of(const ReplicaVariants& variants, int stage) {
  std::set<std::uint32_t> pools;
  for (const ReplicaVariant& variant : variants.list) {
    if (stage < 0) {
      pools.insert(variant.pools.begin(), variant.pools.end());
    } else {
      pools.insert(variant.pools[static_cast<std::size_t>(stage)]);
    }
  }
  return {pools.begin(), pools.end()};
}

/// Replicas wait for each other in every collective, so all have to post the same ones.
void check_collectives(const Scenario& s, const StepPlan& plan) {
  const auto same = [](const DataCollective& a, const DataCollective& b) {
    return a.op == b.op && a.payload == b.payload && a.channel == b.channel;
  };
  for (const std::vector<StagePlan>& stages : plan.further_variants) {
    for (std::size_t i = 0; i < stages.size(); ++i) {
      if (std::ranges::equal(stages[i].collectives, plan.stages[i].collectives, same)) continue;
      throw InputError({.file = s.file,
                        .pointer = "/batch/micro_batches",
                        .found = "replicas that reduce their gradients in different orders",
                        .allowed = "equal ones, or another schedule",
                        .nearest = {}});
    }
  }
}

/// The groups of each stage, found once for all stages that lie on nodes and NVLink domains in the
/// same way.
class GroupsOfStages {
 public:
  /// Both outlive this.
  GroupsOfStages(const Parallelism& cut, const Placement& placement)
      : cut_(cut), placement_(placement) {}

  const DataGroups& of(int stage) {
    const int way = placement_.rank({.pipeline = stage}) % placement_.period();
    const auto [known, is_new] = known_.try_emplace(way);
    if (is_new) known->second = data_groups(cut_, placement_, stage);
    return known->second;
  }

 private:
  const Parallelism& cut_;
  const Placement& placement_;
  std::map<int, DataGroups> known_;  ///< by the place of the first rank in the pattern of nodes
};

}  // namespace

bool switches_sum(const Scenario& s) {
  if (!s.stack.communication.sharp || s.fabric.faults.empty()) return s.stack.communication.sharp;
  const NicPorts ports = nic_ports(s.node);
  return has_sum_trees({s.fabric, s.nodes, ports.count, ports.bandwidth}, s.nodes);
}

StepPlan plan_step(const Scenario& s) {
  const Parallelism& par = s.job.parallelism;
  StepPlan plan;
  plan.placement = placement_spec(s);
  plan.widths = {.tensor = par.tensor,
                 .context = par.context,
                 .expert = par.expert,
                 .expert_tensor = par.expert_tensor};
  plan.shape = pipeline_shape(par);
  const Placement placement{plan.placement};
  const ReplicaVariants variants = replica_variants(s, placement);
  const std::vector<std::uint32_t> all_pools = pools_of(variants, -1);
  plan.micro_batches = variants.list.front().micro_batches;
  plan.variant_of = variants.of;
  GroupsOfStages groups{par, placement};
  plan.data_over_nvlink = groups.of(0)[0].per_domain > 1;
  plan.switches_sum = switches_sum(s);
  plan_messages(s, plan);

  std::vector<Pieces> pieces;
  for (std::size_t pool = 0; pool < s.pool_count(); ++pool) {
    const WorkloadContext context = workload_context(s, placement, pool);
    pieces.push_back(make_pieces(context));
    NodeCosts& costs = pool == 0 ? plan : plan.further_pools.emplace_back();
    costs = node_costs(s, context, plan.message, pieces.back());
  }
  if (s.gpus() > 1) {
    const int per_domain = std::min(s.gpus(), plan.placement.nvlink_domain);
    plan.synchronisation = to_step_time(
        cost_among(s, all_pools, {CollectiveOp::all_reduce, Bytes{8}, s.gpus()}, per_domain)
            .latency);
  }
  plan.overhead = to_step_time(s.stack.step_overhead);
  if (s.power) plan.stagger = to_step_time(s.power->smoothing.stagger.over);
  const std::vector<int> layers = layers_per_virtual_stage(s.job.model, par);
  plan.further_variants.resize(variants.list.size() - 1);
  for (std::size_t v = 0; v < variants.list.size(); ++v) {
    const ReplicaVariant& variant = variants.list[v];
    std::vector<StagePlan>& stages = v == 0 ? plan.stages : plan.further_variants[v - 1];
    stages.resize(static_cast<std::size_t>(par.pipeline));
    for (int stage = 0; stage < par.pipeline; ++stage) {
      StagePlan& out = stages[static_cast<std::size_t>(stage)];
      out.stage = stage;
      out.pool = variant.pools[static_cast<std::size_t>(stage)];
      out.micro_batches = variant.micro_batches;
      out.groups = groups.of(stage);
      const std::vector<std::uint32_t> pools = pools_of(variants, stage);
      build_stage(s, plan, pieces[out.pool], layers, pools, out);
    }
  }
  check_collectives(s, plan);
  plan_exchanges(s, all_pools, plan);
  return plan;
}

}  // namespace lockstep
