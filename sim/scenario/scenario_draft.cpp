#include "sim/scenario/scenario_draft.hpp"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <tuple>
#include <utility>
#include <vector>

#include "models/base/letter_case.hpp"
#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "models/kernels/attention.hpp"
#include "models/layer/memory.hpp"
#include "models/pipeline/schedule.hpp"
#include "models/power/gpu_power.hpp"
#include "sim/scenario/balance.hpp"
#include "sim/scenario/capabilities.hpp"
#include "sim/scenario/fabric_assumptions.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/scenario_rules.hpp"
#include "sim/scenario/stack_choice.hpp"
#include "sim/scenario/stagger.hpp"
#include "sim/scenario/unequal_rules.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

/// "tensor 8 x context 2 x pipeline 4"
std::string widths(const ScenarioDraft& draft) {
  const std::string context =
      draft.context > 1 ? " x context " + std::to_string(draft.context) : std::string();
  return "tensor " + std::to_string(draft.tensor) + context + " x pipeline " +
         std::to_string(draft.pipeline);
}

/// Fills in replicas and nodes from each other.
void complete_gpus(const ScenarioDraft& draft, Scenario& out) {
  const int per_node = draft.node.gpus;
  // Each is at most kMaxGpus or the layers of a model: below 2^63 together.
  const std::int64_t lanes = std::int64_t{draft.tensor} * draft.context;
  const std::int64_t replica = lanes > kMaxGpus ? lanes : lanes * draft.pipeline;
  const std::string parts = std::string("tensor") + (draft.context > 1 ? " x context" : "");
  if (replica > kMaxGpus) {
    refuse(draft, "/parallelism", parts + " x pipeline of " + std::to_string(replica),
           "at most " + std::to_string(kMaxGpus));
  }
  if (!draft.data && !draft.nodes) {
    out.job.parallelism.data = 1;
    out.assumptions.emplace_back("data: 1 (neither data nor nodes given)");
  } else if (!draft.data) {
    const std::int64_t gpus = std::int64_t{*draft.nodes} * per_node;
    if (gpus % replica != 0) {
      refuse(draft, draft.pools.empty() ? "/cluster/nodes" : "/cluster/pools",
             std::to_string(*draft.nodes) + " (" + std::to_string(gpus) + " GPUs)",
             "a multiple of " + std::to_string(replica) + " GPUs (" + widths(draft) + ")");
    }
    out.job.parallelism.data = static_cast<int>(std::min<std::int64_t>(gpus / replica, kMaxGpus));
    out.assumptions.push_back("data: " + std::to_string(out.job.parallelism.data) +
                              " (all GPUs of the cluster)");
  } else {
    out.job.parallelism.data = *draft.data;
  }

  const std::int64_t gpus = replica * out.job.parallelism.data;
  if (gpus > kMaxGpus) {
    refuse(draft, "/parallelism", std::to_string(gpus) + " GPUs",
           "at most " + std::to_string(kMaxGpus));
  }
  const std::int64_t needed = (gpus + per_node - 1) / per_node;
  out.nodes = draft.nodes.value_or(static_cast<int>(needed));
  if (!draft.nodes)
    out.assumptions.push_back("nodes: " + std::to_string(needed) + " (as many as needed)");
  // A single node may be used in part.
  const std::int64_t available = std::int64_t{out.nodes} * per_node;
  const bool partly = out.nodes == 1 && gpus < available;
  if (draft.nodes && gpus != available && !partly) {
    refuse(draft, "/parallelism",
           widths(draft) + " x data " + std::to_string(out.job.parallelism.data) + " = " +
               std::to_string(gpus) + " GPUs",
           std::to_string(available) + " (" + std::to_string(out.nodes) + " nodes of " +
               std::to_string(per_node) + ")");
  }
}

/// Whether p * v stages hold the layers evenly, embedding and output taking a layer's place or not,
/// and the micro batches come in groups of p where the schedule needs that.
bool interleaves_well(const ScenarioDraft& draft, int data, int virtual_stages) {
  const std::int64_t stages = std::int64_t{draft.pipeline} * virtual_stages;
  const int layers = draft.model.layers;
  const bool even =
      layers % stages == 0 || (layers + 1) % stages == 0 || (layers + 2) % stages == 0;
  const Schedule schedule = draft.schedule.value_or(Schedule::interleaved);
  const int multiple = info(schedule).micro_batches(draft.pipeline).multiple;
  const std::int64_t group = std::int64_t{draft.batch.micro_sequences} * data * multiple;
  return even && stages <= layers && draft.batch.sequences % group == 0;
}

int default_virtual_stages(const ScenarioDraft& draft, int data) {
  // Which are balanced over ranks, not over chunks, and a batch that need not divide.
  const bool unequal = !draft.micro_batches.empty() || draft.balanced_batch;
  if ((draft.balanced_layers || unequal) && !draft.schedule) return 1;
  if (!draft.layers_per_stage.empty()) {
    // As many as the layers are written out for; what does not divide is refused later.
    const auto stages = static_cast<int>(draft.layers_per_stage.size());
    return std::max(1, stages / draft.pipeline);
  }
  const ScheduleKind& kind = info(draft.schedule.value_or(Schedule::interleaved));
  if (kind.virtual_min == kind.virtual_max) return kind.virtual_min;
  int most = draft.stack.default_virtual_stages;
  if (draft.schedule) most = std::max(most, 2);
  for (int v = most; v > 1; --v) {
    if (interleaves_well(draft, data, v)) return v;
  }
  return 1;
}

/// A schedule that is written out says how many ranks and chunks there are.
void complete_order(const ScenarioDraft& draft, Parallelism& cut) {
  const PipelineShape& shape = draft.order->shape;
  const int chunks = shape.layout == ChunkLayout::two_way ? 1 : shape.chunks;
  if (shape.ranks != draft.pipeline) {
    refuse(draft, "/parallelism/pipeline", std::to_string(draft.pipeline),
           std::to_string(shape.ranks) + " (ranks of " + draft.order->file + ")");
  }
  if (draft.virtual_stages.value_or(chunks) != chunks) {
    refuse(draft, "/parallelism/virtual_stages", std::to_string(*draft.virtual_stages),
           std::to_string(chunks) + " (chunks of " + draft.order->file + ")");
  }
  cut.virtual_stages = chunks;
  cut.schedule = Schedule::fixed;
  cut.order = draft.order;
}

void complete_schedule(const ScenarioDraft& draft, Scenario& out) {
  Parallelism& cut = out.job.parallelism;
  if (draft.order) return complete_order(draft, cut);
  if (draft.pipeline == 1) {
    if (draft.virtual_stages.value_or(1) != 1) {
      refuse(draft, "/parallelism/virtual_stages", std::to_string(*draft.virtual_stages),
             "1, where pipeline is 1");
    }
  } else if (draft.virtual_stages) {
    cut.virtual_stages = *draft.virtual_stages;
  } else {
    cut.virtual_stages = default_virtual_stages(draft, cut.data);
    if (draft.layers_per_stage.empty() && !draft.schedule) {
      const bool as_stack = cut.virtual_stages == draft.stack.default_virtual_stages;
      out.assumptions.push_back("virtual_stages: " + std::to_string(cut.virtual_stages) + " (" +
                                draft.stack.name + " default" +
                                (as_stack
                                     ? ")"
                                     : " is " + std::to_string(draft.stack.default_virtual_stages) +
                                           "; the most that divides layers and micro batches)"));
    }
  }
  const bool interleaved = cut.virtual_stages > 1;
  cut.schedule =
      draft.schedule.value_or(interleaved ? Schedule::interleaved : Schedule::one_f_one_b);
  check_schedule(draft, cut);
}

/// Whether tensor-parallel ranks share experts as they share the rest, where nobody says, is the
/// software's to decide.
void complete_expert_tensor(const ScenarioDraft& draft, Scenario& out) {
  Parallelism& cut = out.job.parallelism;
  const bool has_experts = draft.model.experts.count > 0;
  const Capability otherwise = capability(CapabilityList::layouts, LayoutFeature::expert_tensor);
  const bool can_differ = !draft.stack.capabilities || draft.stack.capabilities->has(otherwise);
  const bool shared =
      has_experts && (draft.stack.communication.experts_share_tensor || !can_differ);
  cut.expert_tensor = draft.expert_tensor.value_or(shared ? cut.tensor : 1);
  if (!has_experts || draft.expert_tensor || cut.tensor == 1) return;
  out.assumptions.push_back("expert_tensor: " + std::to_string(cut.expert_tensor) + " (" +
                            draft.stack.name + " default)");
}

/// Where nobody says, software that leaves no share of these collectives to be waited for cuts the
/// products beside them into pieces, and waits for what does not fit beside a piece.
void complete_tensor_overlap(const ScenarioDraft& draft, Scenario& out) {
  Parallelism& cut = out.job.parallelism;
  cut.tensor_overlap = draft.tensor_overlap;
  const Capability pieces = capability(CapabilityList::layouts, LayoutFeature::tensor_overlap);
  const bool can = !draft.stack.capabilities || draft.stack.capabilities->has(pieces);
  if (draft.tensor_overlap || !cut.sequence || !can) return;
  if (draft.stack.communication.tensor_exposed > 0) return;
  cut.tensor_overlap = TensorOverlap::pieces;
  out.assumptions.push_back("tensor_overlap: pieces (" + draft.stack.name + " default)");
}

void complete_policies(const ScenarioDraft& draft, Scenario& out) {
  Parallelism& cut = out.job.parallelism;
  const CommunicationPolicy& policy = draft.stack.communication;
  cut.sequence = cut.tensor > 1 && draft.sequence.value_or(policy.sequence_parallel_default);
  if (cut.tensor > 1 && !draft.sequence) {
    out.assumptions.push_back(std::string("sequence: ") + (cut.sequence ? "true" : "false") + " (" +
                              draft.stack.name + " default)");
  }
  complete_tensor_overlap(draft, out);
  cut.sharding = draft.sharding.value_or(Sharding::none);
  if (!draft.sharding && cut.replicas() > 1) {
    out.assumptions.emplace_back("sharding: none (not given)");
  }
  cut.shard_group = draft.shard_group;
  cut.reshard = draft.reshard.value_or(cut.pipeline == 1);
  cut.prefetch = draft.prefetch.value_or(1);
  cut.expert_dispatch = draft.expert_dispatch.value_or(policy.expert_dispatch);
  if (cut.expert > 1 && !draft.expert_dispatch) {
    out.assumptions.push_back("expert_dispatch: " + std::string(name_of(cut.expert_dispatch)) +
                              " (" + draft.stack.name + " default)");
  }
  if (cut.expert > 1 && expert_load(out.job).fullest > 1) {
    out.assumptions.emplace_back(
        "routing: the first rank of each expert-parallel group has the experts in demand, in every "
        "layer (not given)");
  }
  complete_expert_tensor(draft, out);
  cut.context_exchange = draft.context_exchange.value_or(policy.context_exchange);
  if (cut.context > 1 && !draft.context_exchange) {
    out.assumptions.push_back("context_exchange: " + std::string(name_of(cut.context_exchange)) +
                              " (" + draft.stack.name + " default)");
  }
  out.job.recompute = draft.recompute.value_or(Recompute::none);
  out.job.modules = draft.modules;
  out.job.adapters = draft.adapters;
  out.job.offload = draft.offload;
  out.job.frozen = draft.frozen;
  if (!draft.recompute) out.assumptions.emplace_back("recompute: none (not given)");
  const TransformerShape& model = draft.model;
  if (model.max_positions > 0 && out.job.batch.tokens > model.max_positions) {
    out.assumptions.push_back(fmt::format("tokens: {}, beyond the {} positions that {} knows",
                                          grouped(out.job.batch.tokens),
                                          grouped(model.max_positions), model.name));
  }
  if (std::ranges::any_of(model.kinds,
                          [](const KindShape& kind) { return kind.convolution.kernel > 0; })) {
    out.assumptions.emplace_back("convolutions: at the pace of products of their size");
  }
  bool has_bf16 = true;
  for (std::size_t pool = 0; pool < out.pool_count(); ++pool) {
    has_bf16 = has_bf16 && out.node_of(pool).gpu.peak_bf16 > FlopsPerSecond{};
  }
  out.job.precision = draft.precision.value_or(has_bf16 ? Precision::bf16 : Precision::fp16);
  if (!draft.precision) {
    out.assumptions.push_back("precision: " + std::string(name_of(out.job.precision)) +
                              " (not given)");
  }
}

/// Accumulation in fp32 came with bf16: fp16 training scales the loss, and accumulates and reduces
/// in fp16 unless it is told otherwise (github:NVIDIA/Megatron-LM:megatron/training/arguments.py:
/// --accumulate-allreduce-grads-in-fp32).
void complete_gradients(Scenario& out) {
  if (out.job.precision != Precision::fp16) return;
  StackSpec& stack = out.stack;
  constexpr double kHalfBytes = 2;
  double& reduced = stack.communication.gradient_bytes;
  if (!stack.gradients_said) {
    stack.main_gradient_bytes = std::min(kHalfBytes, stack.main_gradient_bytes);
  }
  if (!stack.reduction_said) reduced = std::min(kHalfBytes, reduced);
}

/// A GPU whose constants are those of another kernel generation than the stack's.
void note_attention(std::size_t pool, Scenario& out) {
  const AttentionKernel wanted = out.stack.attention;
  const GpuSpec& gpu = out.node_of(pool).gpu;
  const AttentionConstants* used = attention_constants(wanted, gpu);
  if (wanted == AttentionKernel::unfused || used == nullptr) return;
  for (const AttentionKernelKind& row : attention_kernels()) {
    const auto& constants = gpu.attention[static_cast<std::size_t>(row.kernel)];
    if (row.kernel == wanted || !constants || &*constants != used) continue;
    out.assumptions.push_back("attention: " + std::string(row.name) + " instead of " +
                              std::string(name_of(wanted)) + ", which " + gpu.name +
                              " has no constants for");
  }
}

/// A fused kernel makes the scores again by itself, so that the core alone is nothing to repeat.
void note_selective(Scenario& out) {
  const RecomputeModules& m = out.job.modules;
  const bool core_alone = m.core_attention && !m.layer_norm && !m.activation && !m.latent_up &&
                          !m.mlp && !m.mlp_up && !m.projection && !m.fused_attention &&
                          m.products == 0;
  const AttentionKernel kernel = out.stack.attention;
  if (out.job.recompute != Recompute::selective || !core_alone ||
      kernel == AttentionKernel::unfused) {
    return;
  }
  out.assumptions.push_back(
      fmt::format("recompute: \"selective\" repeats attention's core, which the fused kernel ({}) "
                  "does by itself: it changes nothing here (modules \"fused_attention\" runs the "
                  "kernel again)",
                  name_of(kernel)));
}

/// A network by another name than its preset's, as "tcp", where the job needs it.
void note_transport(const ScenarioDraft& draft, Scenario& out) {
  const std::string& asked =
      out.fabric.transport.empty() ? draft.node.transport : out.fabric.transport;
  std::string plain = lowered(asked);
  std::ranges::replace(plain, '-', '_');
  if (plain == out.transport.name || out.gpus() <= draft.node.nvlink_domain) return;
  out.assumptions.push_back("transport: " + out.transport.name + " (stands for " + asked + ")");
}

/// What was measured on a card says nothing of one that the scenario makes faster or slower.
void check_measured_cards(const ScenarioDraft& draft, const PresetStore& presets,
                          const Scenario& out) {
  for (std::size_t pool = 0; pool < out.pool_count(); ++pool) {
    const GpuSpec& gpu = out.node_of(pool).gpu;
    if (!presets.has("gpus", gpu.name)) continue;
    const GpuSpec& own = presets.gpu(gpu.name);
    const bool same = gpu.sm_count == own.sm_count && gpu.peak_fp16 == own.peak_fp16 &&
                      gpu.peak_bf16 == own.peak_bf16 && gpu.peak_fp8 == own.peak_fp8 &&
                      gpu.peak_fp4 == own.peak_fp4 && gpu.hbm_bandwidth == own.hbm_bandwidth;
    if (same) continue;
    refuse(draft, "/cluster/node/gpu", "another card than " + gpu.name + " of the presets",
           "that card as it is beside --profile; power.cap lowers its clock");
  }
}

/// Holds "power" against a kind of node.
void check_power(const ScenarioDraft& draft, const NodeSpec& node, const PowerSpec& power) {
  const GpuSpec& gpu = node.gpu;
  if (!gpu.power) {
    refuse(draft, "/power", "a GPU without power data",
           "a GPU preset with \"power\", or cluster.node.gpu.power");
  }
  if (!node.chassis) {
    refuse(draft, "/power", "a node without power data",
           "a node preset with \"chassis\", or cluster.node.chassis");
  }
  const auto watts = [](Watts w) { return format_quantity(w.base_units(), Dimension::power); };
  if (power.smoothing.floor > gpu.power_limit) {
    refuse(draft, "/power/smoothing/floor", in_quotes(watts(power.smoothing.floor)),
           "at most " + watts(gpu.power_limit) + ", the limit of " + gpu.name);
  }
  if (!power.cap) return;
  const Watts cap = *power.cap;
  if (cap < lowest_cap(gpu) || cap > gpu.power_limit) {
    refuse(draft, "/power/cap", in_quotes(watts(cap)),
           "from " + watts(lowest_cap(gpu)) + ", at its lowest clock, to " +
               watts(gpu.power_limit) + ", the limit of " + gpu.name);
  }
}

void check_stagger(const ScenarioDraft& draft, Scenario& out) {
  const StaggerSpec& stagger = out.power->smoothing.stagger;
  if (stagger.over <= Seconds{} && stagger.groups < 2) return;
  if (stagger.over <= Seconds{}) {
    refuse(draft, "/power/smoothing/stagger/over", "nothing",
           "a time, from the first group's begin to the last one's");
  }
  if (stagger.groups < 2) {
    refuse(draft, "/power/smoothing/stagger/groups", "nothing", "2 groups or more");
  }
  if (const std::optional<std::string> problem = stagger_problem(out)) {
    refuse(draft, "/power/smoothing/stagger", "a stagger", *problem);
  }
  const int most = most_stagger_groups(out.job.parallelism);
  if (stagger.groups > most) {
    refuse(draft, "/power/smoothing/stagger/groups", std::to_string(stagger.groups),
           "at most " + std::to_string(most) +
               ", the groups of replicas that meet only where gradients are summed");
  }
  out.assumptions.emplace_back(
      "power.smoothing.stagger: a group waits for its turn with its cards awake; sums of gradients "
      "come with the last group, exchanges of weights and the optimiser's step at one time in all");
}

void check_ramp(const ScenarioDraft& draft, Scenario& out) {
  const SmoothingSpec& smoothing = out.power->smoothing;
  if (smoothing.ramp_w_per_s <= 0) return;
  const auto refuse_beside = [&](bool given, const std::string& other) {
    if (!given) return;
    refuse(draft, "/power/smoothing/ramp_w_per_s", "slow ramps beside \"" + other + "\"",
           "one of both");
  };
  refuse_beside(smoothing.stagger.over > Seconds{}, "stagger");
  refuse_beside(smoothing.capacitor > Joules{}, "capacitor_joules");
  out.assumptions.emplace_back(
      "power.smoothing.ramp_w_per_s: all cards go on at the pace of the one whose clock is "
      "furthest behind, which is the most that slow ramps cost");
}

/// Holds "power" against the machines, which may be of several kinds.
void complete_power(const ScenarioDraft& draft, Scenario& out) {
  if (!out.power) return;
  double nodes = 0;
  Watts limits;
  for (std::size_t pool = 0; pool < out.pool_count(); ++pool) {
    check_power(draft, out.node_of(pool), *out.power);
    const double here = out.pools.empty() ? 1 : out.pools[pool].nodes;
    nodes += here;
    limits += here * out.node_of(pool).gpu.power_limit;
  }
  SmoothingSpec& smoothing = out.power->smoothing;
  check_stagger(draft, out);
  check_ramp(draft, out);
  if (out.power->cap && smoothing.floor > *out.power->cap) {
    smoothing.floor = *out.power->cap;
    out.assumptions.emplace_back("power.smoothing.floor: that of power.cap, which is lower");
  }
  out.power->gpu_nameplate = limits / nodes;
  out.power->cost.usd_per_gpu_hour = out.usd_per_gpu_hour;
  const NicPorts ports = fabric_ports(out.node, out.pools);
  if (std::string text = uncounted_cables(out.fabric, out.nodes, ports); !text.empty()) {
    out.assumptions.push_back(std::move(text));
  }
}

/// The draft with the least recomputation with which its job fits in memory; full when none does.
ScenarioDraft with_least_recompute(ScenarioDraft draft, const PresetStore& presets) {
  std::vector<std::pair<Recompute, RecomputeModules>> rungs;
  rungs.reserve(draft.stack.recompute_ladder.size());
  for (const RecomputeModules& modules : draft.stack.recompute_ladder) {
    rungs.emplace_back(Recompute::selective, modules);
  }
  if (rungs.empty()) rungs = {{Recompute::none, {}}, {Recompute::selective, {}}};
  const auto fits = [&](const std::pair<Recompute, RecomputeModules>& rung) {
    std::tie(draft.recompute, draft.modules) = rung;
    const Capability asked = capability(CapabilityList::recompute, *draft.recompute);
    if (draft.stack.capabilities && !draft.stack.capabilities->has(asked)) return false;
    const Scenario scenario = complete_scenario(draft, presets);
    return check_memory(scenario.job, scenario.stack, scenario.node.gpu).fits;
  };
  if (std::ranges::none_of(rungs, fits)) draft.recompute = Recompute::full;
  draft.assumptions.push_back(
      fmt::format("recompute: {} (the least that fits in memory)", name_of(*draft.recompute)));
  return draft;
}

}  // namespace

Scenario complete_scenario(const ScenarioDraft& draft, const PresetStore& presets,
                           std::span<const Profile> profiles) {
  if (draft.least_recompute && !draft.recompute) {
    return complete_scenario(with_least_recompute(draft, presets), presets, profiles);
  }
  Scenario out;
  out.file = draft.file;
  out.about = draft.about;
  out.job.model = draft.model;
  out.job.batch = draft.batch;
  out.node = draft.node;
  out.stack = draft.stack;
  out.stragglers = draft.stragglers;
  out.training_tokens = draft.training_tokens;
  out.expect = draft.expect;
  out.power = draft.power;
  out.site = draft.site;
  out.usd_per_gpu_hour =
      draft.usd_per_gpu_hour ? draft.usd_per_gpu_hour : draft.node.usd_per_gpu_hour;
  if (!draft.usd_per_gpu_hour && !draft.pools.empty()) {
    out.usd_per_gpu_hour = pool_price(draft.pools);
  }
  out.unknown_software = draft.unknown_software;
  out.assumptions = draft.assumptions;
  complete_pools(draft, out);

  Parallelism& cut = out.job.parallelism;
  cut.tensor = draft.tensor;
  cut.context = draft.context;
  cut.expert = draft.expert;
  cut.expert_overlap = draft.expert_overlap;
  out.job.routing = draft.routing;
  cut.pipeline = draft.pipeline;
  cut.layers_per_stage = draft.layers_per_stage;
  cut.split = draft.stack.memory.split;
  cut.embedding = draft.embedding;
  cut.output = draft.output;
  check_widths(draft);
  complete_gpus(draft, out);
  complete_schedule(draft, out);
  complete_micro_batches(draft, out);
  complete_policies(draft, out);
  complete_gradients(out);
  apply_learnt(out);

  out.fabric = draft.fabric ? *draft.fabric : default_fabric(draft.node, presets);
  if (out.gpus() > draft.node.nvlink_domain) {
    std::string text = fabric_not_given(out.fabric, draft.fabric.has_value(), draft.fabric_assumed);
    if (!text.empty()) out.assumptions.push_back(std::move(text));
  }
  for (std::string& text : fabric_assumptions(out.fabric, draft.node, out.nodes)) {
    out.assumptions.push_back(std::move(text));
  }
  const int domain = draft.node.nvlink_domain;
  if (const int share = domain_share(out.gpus(), draft.node); share < domain) {
    out.assumptions.push_back("placement: " + std::to_string(share) + " of the " +
                              std::to_string(domain) + " GPUs of each NVLink domain (equal parts)");
  }
  out.transport = transport_of(draft.node, out.fabric, presets);
  note_transport(draft, out);
  for (std::size_t pool = 0; pool < out.pool_count(); ++pool) note_attention(pool, out);
  note_selective(out);
  if (draft.layout_open) {
    check_without_layout(draft, out);
  } else {
    check_rules(draft, out);
  }
  balance(draft, out);
  check_capabilities(draft, presets, out);
  complete_power(draft, out);
  if (!profiles.empty()) check_measured_cards(draft, presets, out);
  lay_cards(profiles, out);
  return out;
}

}  // namespace lockstep
