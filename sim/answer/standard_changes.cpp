#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/write_json.hpp"
#include "sim/answer/advice.hpp"
#include "sim/answer/exact_rate.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/parallelism_json.hpp"

namespace lockstep {
namespace {

using Changes = std::vector<StandardChange>;

void add(Changes& out, std::string words, std::vector<std::string> sets) {
  out.push_back({.words = std::move(words), .sets = std::move(sets)});
}

void add_batch(const Scenario& s, Changes& out) {
  const Batch& batch = s.job.batch;
  const auto micro = [&](int to) {
    add(out, fmt::format("micro batch {} -> {}", batch.micro_sequences, to),
        {fmt::format("batch.micro={}", to)});
  };
  micro(2 * batch.micro_sequences);
  if (batch.micro_sequences % 2 == 0) micro(batch.micro_sequences / 2);
  add(out, fmt::format("sequences of a step {} -> {}", batch.sequences, 2 * batch.sequences),
      {fmt::format("batch.sequences={}", 2 * batch.sequences)});
}

/// All powers of two that divide experts and ranks: what leaves the node may be a few steps away.
void add_expert_widths(const Scenario& s, Changes& out) {
  const Parallelism& layout = s.job.parallelism;
  const int experts = s.job.model.experts.count;
  const int ranks = layout.tensor * layout.context * layout.data / layout.expert_tensor;
  for (int to = 1; to <= experts; to *= 2) {
    if (to == layout.expert || experts % to != 0 || ranks % to != 0) continue;
    add(out, fmt::format("expert-parallel width {} -> {}", layout.expert, to),
        {fmt::format("parallelism.expert={}", to)});
  }
}

/// Twice and half of each width, at as many GPUs.
void add_widths(const Scenario& s, Changes& out) {
  const Parallelism& layout = s.job.parallelism;
  struct Width {
    std::string_view words, key;
    int Parallelism::* member;
  };
  constexpr std::array kWidths{Width{"tensor-parallel width", "tensor", &Parallelism::tensor},
                               Width{"pipeline stages", "pipeline", &Parallelism::pipeline},
                               Width{"context-parallel width", "context", &Parallelism::context}};
  for (const Width& width : kWidths) {
    const int now = layout.*width.member;
    const auto change = [&](int to, int data) {
      add(out, fmt::format("{} {} -> {}", width.words, now, to),
          {fmt::format("parallelism.{}={}", width.key, to),
           fmt::format("parallelism.data={}", data)});
    };
    if (layout.data % 2 == 0) change(2 * now, layout.data / 2);
    if (now % 2 == 0) change(now / 2, 2 * layout.data);
  }
  add_expert_widths(s, out);
  if (layout.pipeline == 1) return;
  const int now = layout.virtual_stages;
  if (now > 1) {
    add(out, fmt::format("virtual stages {} -> {}", now, 2 * now),
        {fmt::format("parallelism.virtual_stages={}", 2 * now)});
  } else {
    add(out, "interleaved schedule with 2 virtual stages",
        {"parallelism.schedule=interleaved", "parallelism.virtual_stages=2"});
  }
  if (layout.schedule != Schedule::zb_h1) {
    add(out, fmt::format("schedule {} -> zb_h1", name_of(layout.schedule)),
        {"parallelism.schedule=zb_h1", "parallelism.virtual_stages=1"});
  }
}

/// What sends less between nodes, or beside computation; software that cannot says so.
void add_exchanges(const Scenario& s, Changes& out) {
  const Parallelism& layout = s.job.parallelism;
  if (layout.expert > 1) {
    if (layout.expert_dispatch != ExpertDispatch::two_level) {
      add(out, fmt::format("dispatch to experts {} -> two_level", name_of(layout.expert_dispatch)),
          {"parallelism.expert_dispatch=two_level"});
    }
    if (!layout.expert_overlap) {
      add(out, "dispatch to experts beside another micro batch",
          {"parallelism.expert_overlap=true"});
    }
  }
  if (layout.tensor > 1 && !layout.sequence) {
    add(out, "sequence parallelism", {"parallelism.sequence=true"});
  } else if (layout.tensor > 1 && layout.tensor_overlap != TensorOverlap::pieces) {
    add(out, "tensor-parallel exchanges in pieces, beside products",
        {"parallelism.tensor_overlap=pieces"});
  }
  if (layout.sharding == Sharding::zero3 && layout.reshard && layout.data > 1) {
    add(out, "gathered weights kept for the backward pass", {"parallelism.reshard=false"});
  }
}

/// Other exchanges of context, and weights gathered within a node, or from everywhere.
void add_groups(const Scenario& s, Changes& out) {
  const Parallelism& layout = s.job.parallelism;
  for (const std::string_view name : kContextExchangeNames) {
    if (layout.context == 1 || name == name_of(layout.context_exchange)) continue;
    add(out, fmt::format("exchange of context {} -> {}", name_of(layout.context_exchange), name),
        {fmt::format("parallelism.context_exchange={}", name)});
  }
  if (layout.sharding != Sharding::zero3) return;
  const int replicas = layout.replicas();
  const int now = layout.shard_group > 0 ? layout.shard_group : replicas;
  const int in_node = s.node.gpus / layout.tensor;
  for (const int to : {in_node, replicas}) {
    if (to == now || to <= 1 || replicas % to != 0) continue;
    add(out, fmt::format("weights sharded over groups of {} -> {}", now, to),
        {fmt::format("parallelism.shard_group={}", to)});
  }
}

void add_memory_choices(const Scenario& s, Changes& out) {
  for (std::size_t i = 0; i < kShardingNames.size(); ++i) {
    Parallelism other = s.job.parallelism;
    other.sharding = static_cast<Sharding>(i);
    if (other.sharding == s.job.parallelism.sharding || other.data == 1) continue;
    // No other sharding has groups: the layout is written anew without them.
    other.shard_group = 0;
    add(out,
        fmt::format("sharding {} -> {}", name_of(s.job.parallelism.sharding), kShardingNames[i]),
        {s.job.parallelism.shard_group > 0
             ? "parallelism=" + write_json(written_parallelism(other))
             : fmt::format("parallelism.sharding={}", kShardingNames[i])});
  }
  for (const std::string_view name : kRecomputeNames) {
    if (name == name_of(s.job.recompute)) continue;
    add(out, fmt::format("recomputation {} -> {}", name_of(s.job.recompute), name),
        {fmt::format("recompute={}", name)});
  }
}

void add_software(const Scenario& s, Changes& out) {
  const Precision precision = s.job.precision;
  const bool wide = precision == Precision::bf16 || precision == Precision::fp16;
  if (wide && s.node.gpu.peak_fp8 > FlopsPerSecond{}) {
    add(out, fmt::format("precision {} -> fp8", name_of(precision)), {"precision=fp8"});
  }
  if (precision != Precision::nvfp4 && s.node.gpu.peak_fp4 > FlopsPerSecond{}) {
    add(out, fmt::format("precision {} -> nvfp4", name_of(precision)), {"precision=nvfp4"});
  }
  // A fitted stack with another switch would be compared with what it is composed from.
  if (!s.stack.composed || !s.stack.switches) return;
  struct Switch {
    std::string_view key;
    bool StackSwitches::* member;
  };
  constexpr std::array kSwitches{
      Switch{"torch_compile", &StackSwitches::torch_compile},
      Switch{"fused_norm", &StackSwitches::fused_norm},
      Switch{"fused_rope", &StackSwitches::fused_rope},
      Switch{"fused_swiglu", &StackSwitches::fused_swiglu},
      Switch{"fused_cross_entropy", &StackSwitches::fused_cross_entropy}};
  for (const Switch& each : kSwitches) {
    if ((*s.stack.switches).*each.member) continue;
    add(out, fmt::format("{}", each.key), {fmt::format("stack.{}=true", each.key)});
  }
  if (s.stack.switches->optimiser_states == StateFormat::fp32) {
    add(out, "moments of the optimiser in bf16", {"stack.optimiser_states=bf16"});
    add(out, "moments of the optimiser in int8", {"stack.optimiser_states=int8"});
  }
  if (s.stack.switches->master_weights) {
    add(out, "no 32-bit copy of the weights", {"stack.master_weights=false"});
  }
  if (s.stack.switches->cuda_graphs == CudaGraphs::none) {
    add(out, "CUDA graphs of whole steps", {"stack.cuda_graphs=full"});
  }
}

void add_network(const Scenario& s, Changes& out) {
  if (s.nodes > 1 && s.node.nics > 0) {
    std::vector<std::string> sets{"cluster.node.nic_bandwidth=" +
                                  exact_rate(2 * s.node.nic_bandwidth.base_units())};
    if (s.fabric.link_bandwidth > BytesPerSecond{}) {
      sets.push_back("cluster.fabric.link_bandwidth=" +
                     exact_rate(2 * s.fabric.link_bandwidth.base_units()));
    }
    add(out, "NICs of twice the bandwidth", std::move(sets));
  }
  const auto full = [&](std::string_view what, std::string_view key, double now) {
    if (now > 1) {
      add(out, fmt::format("{} {:g} -> 1", what, now), {fmt::format("cluster.fabric.{}=1", key)});
    }
  };
  full("oversubscription of leaves", "leaf_oversubscription", s.fabric.leaf_oversubscription);
  if (s.fabric.levels == 3) {
    full("oversubscription of spines", "spine_oversubscription", s.fabric.spine_oversubscription);
  }
  if (s.fabric.routing == Routing::ecmp) {
    add(out, "routing ecmp -> adaptive", {"cluster.fabric.routing=adaptive"});
  }
}

void add_machine(const Scenario& s, const PresetStore& presets, Changes& out) {
  add_newer_cards(s.node.gpu, presets, out);
  if (s.power && s.power->cap) {
    add(out, "power cap lifted",
        {fmt::format("power.cap={} W", s.power->gpu_nameplate / Watts{1})});
  }
  if (!s.stragglers.empty()) add(out, "stragglers replaced", {"stragglers=[]"});
}

}  // namespace

std::vector<StandardChange> standard_changes(const Scenario& scenario, const PresetStore& presets) {
  Changes out;
  add_batch(scenario, out);
  add_widths(scenario, out);
  add_exchanges(scenario, out);
  add_groups(scenario, out);
  add_memory_choices(scenario, out);
  add_software(scenario, out);
  if (scenario.pools.empty()) {
    add_network(scenario, out);
    add_machine(scenario, presets, out);
  }
  return out;
}

std::vector<StandardChange> stack_changes(const Scenario& scenario, const PresetStore& presets) {
  Changes out;
  const StackSpec& own = scenario.stack;
  if (!own.changed.empty() || !own.learnt.empty()) return out;
  for (const std::string& name : presets.names("stacks")) {
    if (name == own.name || presets.stack(name).spec.composed) continue;
    add(out, fmt::format("software {} -> {}", own.name, name), {"stack=" + name});
    out.back().other_stack = true;
  }
  return out;
}

}  // namespace lockstep
