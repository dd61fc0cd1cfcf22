#include "sim/scenario/spec_readers.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/names.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

// Bounds that no real value leaves, and within which no product overflows.
constexpr Interval kLatency{0, 0.1};                      // seconds
constexpr Interval kRate{1e7, 1e16};                      // bytes per second
constexpr Interval kHbmRate{1e9, 1e16};                   // bytes per second
constexpr Interval kPeak{1e11, 1e20};                     // FLOP per second
constexpr Interval kPeakOrNone{1e11, 1e20, false, true};  // the same; 0: not supported
constexpr Interval kEfficiency{0.01, 1};
constexpr Interval kRatio{0.01, 100};
constexpr Interval kPerElement{0, 1000};  // bytes, tokens, kernels per something
constexpr Interval kMemory{1e6, 1e15};    // bytes
constexpr Interval kPower{1, 1e5};        // watts
constexpr Interval kSpread{0, 0.5};       // relative standard deviation
constexpr Interval kPrice{0, 1e6};

void read_gemm(const JsonCursor& from, Extent extent, GemmConstants& out) {
  const MemberReader member(from, extent);
  member.required("launch", out.launch, kLatency);
  member.required("efficiency", out.efficiency, kEfficiency);
  member.required("k_ramp", out.k_ramp, kPerElement);
  member.required("efficiency_128x128", out.efficiency_128x128, kRatio);
  member.required("efficiency_x64", out.efficiency_x64, kRatio);
  member.required("split_k", out.split_k, kLatency);
  member.required("bandwidth", out.bandwidth, kHbmRate);
  member.optional("fp8_efficiency", out.fp8_efficiency, kRatio);
  member.optional("fp4_efficiency", out.fp4_efficiency, kRatio);
  member.required("sustained", out.sustained, kEfficiency);
  member.optional("quantised_sustained", out.quantised_sustained, kEfficiency);
  from.finish();
}

void read_attention(const JsonCursor& from, Extent extent, AttentionConstants& out) {
  const MemberReader member(from, extent);
  member.required("launch", out.launch, kLatency);
  member.required("efficiency", out.efficiency, kEfficiency);
  member.required("ramp_tokens", out.ramp_tokens, Interval{0, 1e6});
  member.optional("softmax_width", out.softmax_width, Interval{0, 1e4});
  member.required("backward_ratio", out.backward_ratio, Interval{0.1, 100});
  from.finish();
}

void read_attention_kernels(const JsonCursor& from, Extent extent, GpuSpec& out) {
  const std::vector<std::string_view> names = attention_names();
  for (std::size_t i = 0; i < kAttentionKernels; ++i) {
    const std::optional<JsonCursor> kernel = from.find(names[i]);
    if (!kernel) continue;
    const bool known = out.attention[i].has_value();
    AttentionConstants constants = out.attention[i].value_or(AttentionConstants{});
    read_attention(*kernel, known ? extent : Extent::whole, constants);
    out.attention[i] = constants;
  }
  from.finish();
}

void read_memory(const JsonCursor& from, Extent extent, MemoryConstants& out) {
  const MemberReader member(from, extent);
  member.required("launch", out.launch, kLatency);
  member.required("efficiency", out.efficiency, kEfficiency);
  from.finish();
}

std::vector<CollectiveRegime> read_regimes(const JsonCursor& from) {
  constexpr std::size_t kMostRegimes = 32;
  std::vector<CollectiveRegime> regimes;
  for (const JsonCursor& element : from.elements(kMostRegimes)) {
    CollectiveRegime& regime = regimes.emplace_back();
    const MemberReader member(element, Extent::whole);
    member.required("name", regime.name);
    member.required("base", regime.base, kLatency);
    member.required("per_step", regime.per_step, kLatency);
    member.required("bus_bandwidth", regime.bus_bandwidth, kRate);
    member.optional("min_ranks", regime.min_ranks, 2, kMaxGpusPerNode);
    element.finish();
  }
  if (regimes.empty()) from.fail("an array of at least one regime");
  return regimes;
}

void read_elementwise(const JsonCursor& from, ElementwiseTraffic& out) {
  const MemberReader member(from, Extent::changes);
  member.optional("norm_residual_bytes", out.norm_residual_bytes, kPerElement);
  member.optional("activation_bytes", out.activation_bytes, kPerElement);
  member.optional("rotary_bytes", out.rotary_bytes, kPerElement);
  member.optional("score_bytes", out.score_bytes, kPerElement);
  member.optional("permute_bytes", out.permute_bytes, kPerElement);
  member.optional("norm_backward_ratio", out.norm_backward_ratio, kRatio);
  member.optional("activation_backward_ratio", out.activation_backward_ratio, kRatio);
  member.optional("score_backward_ratio", out.score_backward_ratio, kRatio);
  member.optional("loss_bytes", out.loss_bytes, kPerElement);
  member.optional("quantise_bytes", out.quantise_bytes, kPerElement);
  member.optional("quantise_backward_bytes", out.quantise_backward_bytes, kPerElement);
  member.optional("slowdown", out.slowdown, kRatio);
  from.finish();
}

void read_communication(const JsonCursor& from, CommunicationPolicy& out) {
  const MemberReader member(from, Extent::changes);
  member.optional("sequence_parallel_default", out.sequence_parallel_default);
  member.optional("async_tensor_backward", out.async_tensor_backward);
  member.optional("tensor_exposed", out.tensor_exposed, kShare);
  member.optional("tensor_slowdown", out.tensor_slowdown, kRatio);
  member.optional("data_slowdown", out.data_slowdown, kRatio);
  member.optional("expert_overlapped", out.expert_overlapped, kShare);
  member.optional("expert_dispatch", [&](const JsonCursor& at) {
    out.expert_dispatch = read_choice<ExpertDispatch>(at, kExpertDispatchNames);
  });
  member.optional("overlap_gradients", out.overlap_gradients);
  member.optional("overlap_parameters", out.overlap_parameters);
  member.optional("gradient_bytes", out.gradient_bytes, Interval{0.5, 16});
  member.optional("bucket_parameters", out.bucket_parameters, Interval{1e4, 1e15, false, true});
  member.optional("overlap_pipeline", out.overlap_pipeline);
  member.optional("half_duplex_pipeline", out.half_duplex_pipeline);
  member.optional("scatter_gather_pipeline", out.scatter_gather_pipeline);
  member.optional("experts_share_tensor", out.experts_share_tensor);
  member.optional("sm_share", out.sm_share, Interval{0, 0.9});
  member.optional("context_exchange", [&](const JsonCursor& at) {
    out.context_exchange = read_choice<ContextExchange>(at, kContextExchangeNames);
  });
  from.finish();
}

void read_memory_policy(const JsonCursor& from, MemoryPolicy& out) {
  const MemberReader member(from, Extent::changes);
  member.optional("optimiser_state_bytes", out.optimiser_state_bytes, Interval{0, 64});
  member.optional("replica_bytes", out.replica_bytes, Interval{0, 64});
  member.optional("gather_bytes", out.gather_bytes, Interval{0, 64});
  member.optional("gated_mlp_bytes", out.gated_mlp_bytes, Interval{0, 64});
  member.optional("rotary_copies", out.rotary_copies);
  member.optional("logit_bytes", out.logit_bytes, Interval{0, 64});
  member.optional("run_ahead_layers", out.run_ahead_layers, Interval{0, 1000});
  member.optional("fragmentation", out.fragmentation, Interval{1, 10});
  member.optional("workspace", out.workspace, Interval{0, 1e12});
  member.optional("outside", out.outside, Interval{0, 1e12});
  member.optional("split", [&](const JsonCursor& at) {
    out.split = static_cast<LayerSplit>(at.choice(kLayerSplitNames));
  });
  from.finish();
}

std::vector<RecomputeModules> read_ladder(const JsonCursor& from) {
  constexpr std::size_t kRungs = 10;
  std::vector<RecomputeModules> out;
  for (const JsonCursor& rung : from.elements(kRungs)) out.push_back(read_recompute_modules(rung));
  return out;
}

void read_offload_policy(const JsonCursor& from, OffloadPolicy& out) {
  const MemberReader member(from, Extent::changes);
  member.optional("gradients_in_backward", out.gradients_in_backward);
  member.optional("bucket_parameters", out.bucket_parameters, Interval{1e4, 1e15});
  member.optional("overlaps_step", out.overlaps_step);
  member.optional("gradient_bytes", out.gradient_bytes, Interval{0.5, 16});
  member.optional("parameter_bytes", out.parameter_bytes, Interval{0.5, 16});
  member.optional("optimiser_bytes", out.optimiser_bytes, kPerElement);
  member.optional("efficiency", out.efficiency, kEfficiency);
  from.finish();
}

std::string read_placement(const JsonCursor& from) {
  std::string order = from.string();
  if (!parse_rank_order(order)) from.fail(std::string(rank_order_rule()));
  return order;
}

std::string read_name(const JsonCursor& from, std::string_view kind, const PresetStore& presets) {
  if (from.is_missing()) {
    const std::vector<std::string> names = presets.names(kind);
    return names[from.choice(std::vector<std::string_view>(names.begin(), names.end()))];
  }
  std::string name = presets.meant(kind, from.string());
  if (name.empty()) from.fail_name(presets.names(kind));
  return name;
}

}  // namespace

std::string read_preset_name(const JsonCursor& from, std::string_view kind,
                             const PresetStore& presets) {
  if (from.is_object()) return read_name(from.at("preset"), kind, presets);
  if (!from.is_string() && !from.is_missing()) {
    from.fail("the name of a preset, or an object with \"preset\"");
  }
  return read_name(from, kind, presets);
}

void read_gpu(const JsonCursor& from, Extent extent, const PresetStore& presets, GpuSpec& out) {
  const MemberReader member(from, extent);
  member.optional("about", out.about);
  member.required("architecture", out.architecture);
  member.required("sm_count", out.sm_count, 1, 100'000);
  member.required("peak_fp16", out.peak_fp16, kPeak);
  member.optional("peak_bf16", out.peak_bf16, kPeakOrNone);
  member.optional("peak_fp8", out.peak_fp8, kPeakOrNone);
  member.optional("peak_fp4", out.peak_fp4, kPeakOrNone);
  member.required("hbm_capacity", out.hbm_capacity, kMemory);
  member.required("hbm_bandwidth", out.hbm_bandwidth, kHbmRate);
  member.optional("nvlink_bandwidth", out.nvlink_bandwidth, kRateOrNone);
  member.required("pcie_bandwidth", out.pcie_bandwidth, kRate);
  member.required("power_limit", out.power_limit, kPower);
  member.required("power_idle", out.power_idle, kPower);
  member.required("gemm", [&](const JsonCursor& at) { read_gemm(at, extent, out.gemm); });
  member.required("attention",
                  [&](const JsonCursor& at) { read_attention_kernels(at, extent, out); });
  member.required("memory", [&](const JsonCursor& at) { read_memory(at, extent, out.memory); });
  member.required("collectives", [&](const JsonCursor& at) {
    out.collectives = presets.nvlink(read_name(at, "nvlinks", presets));
  });
  member.optional("power", [&](const JsonCursor& at) {
    GpuPowerConstants constants = out.power.value_or(GpuPowerConstants{});
    read_gpu_power(at, out.power ? extent : Extent::whole, constants);
    out.power = constants;
  });
  member.optional("speed_spread", out.speed_spread, kSpread);
  member.optional("kernel_jitter", out.kernel_jitter, kSpread);
}

void read_node(const JsonCursor& from, Extent extent, const PresetStore& presets, NodeSpec& out) {
  const MemberReader member(from, extent);
  member.optional("about", out.about);
  member.required("gpu", [&](const JsonCursor& at) {
    // Named, or refined from the preset that it names, else from what the node has.
    const bool refines = at.is_object() && !at.find("preset");
    if (!refines) out.gpu = presets.gpu(read_preset_name(at, "gpus", presets));
    if (!at.is_object()) return;
    read_gpu(at, refines ? extent : Extent::changes, presets, out.gpu);
    at.finish();
  });
  member.required("gpus", out.gpus, 1, kMaxGpusPerNode);
  member.required("nvlink_domain", out.nvlink_domain, 1, kMaxGpusPerNode);
  member.required("nics", out.nics, 1, kMaxGpusPerNode);
  member.required("nic_bandwidth", out.nic_bandwidth, kRate);
  member.required("transport", [&](const JsonCursor& at) {
    read_transport_choice(at, presets, out.transport, out.own_transport);
  });
  member.optional("chassis", [&](const JsonCursor& at) {
    // Named, or refined from the preset that it names, else from what the node has.
    const bool refines = at.is_object() && !at.find("preset");
    ChassisSpec chassis = refines ? out.chassis.value_or(ChassisSpec{})
                                  : presets.chassis(read_preset_name(at, "chassis", presets));
    if (at.is_object()) {
      read_chassis(at, refines && !out.chassis ? Extent::whole : Extent::changes, chassis);
      at.finish();
    }
    out.chassis = chassis;
  });
  member.optional("host", [&](const JsonCursor& at) {
    HostSpec host = out.host.value_or(HostSpec{});
    const MemberReader part(at, out.host ? Extent::changes : Extent::whole);
    part.required("memory", host.memory, kMemory);
    part.required("bandwidth", host.bandwidth, kHbmRate);
    at.finish();
    out.host = host;
  });
  member.optional("usd_per_gpu_hour",
                  [&](const JsonCursor& at) { out.usd_per_gpu_hour = at.number(kPrice); });
}

namespace {

void read_experts(const JsonCursor& from, Extent extent, ExpertShape& out) {
  constexpr int kMostExperts = 65'536;
  const MemberReader member(from, out.count > 0 ? extent : Extent::whole);
  member.required("count", out.count, 1, kMostExperts);
  member.required("per_token", out.per_token, 1, kMostExperts);
  member.required("ffn", out.ffn, 1, kMaxWidth);
  member.optional("shared_ffn", out.shared_ffn, 0, kMaxWidth);
  member.optional("leading_dense", out.leading_dense, 0, kMaxLayers);
  member.optional("interval", out.interval, 1, kMaxLayers);
  if (out.per_token > out.count) {
    from.at("per_token").fail("at most " + std::to_string(out.count) + " (count)");
  }
  from.finish();
}

void read_latent_attention(const JsonCursor& from, Extent extent, TransformerShape& out) {
  LatentAttention& l = out.latent;
  const MemberReader member(from, l.key_value_rank > 0 ? extent : Extent::whole);
  member.optional("query_rank", l.query_rank, 0, kMaxWidth);
  member.required("key_value_rank", l.key_value_rank, 1, kMaxWidth);
  member.required("nope_dim", l.nope_dim, 1, kMaxWidth);
  member.required("rope_dim", l.rope_dim, 0, kMaxWidth);
  member.required("value_dim", l.value_dim, 1, kMaxWidth);
  from.finish();
  out.kv_heads = out.heads;
  out.head_dim = (l.nope_dim + l.rope_dim + l.value_dim) / 2;
}

void read_mamba(const JsonCursor& from, Extent extent, MambaShape& out) {
  const MemberReader member(from, out.heads > 0 ? extent : Extent::whole);
  member.required("heads", out.heads, 1, kMaxHeads);
  member.required("head_dim", out.head_dim, 1, kMaxWidth);
  member.required("groups", out.groups, 1, kMaxHeads);
  member.required("state", out.state, 1, kMaxWidth);
  member.optional("kernel", out.kernel, 1, 64);
  member.optional("chunk", out.chunk, 1, kMaxTokens);
  member.optional("step_rank", out.step_rank, 1, kMaxWidth);
  if (out.first_generation() && (out.head_dim != 1 || out.groups != 1)) {
    from.fail("a head_dim of 1 and 1 group beside \"step_rank\", as Mamba-1 has");
  }
  if (out.heads % out.groups != 0) {
    from.at("groups").fail("a divisor of " + std::to_string(out.heads) + " (heads)");
  }
  from.finish();
}

/// A letter for each layer.
void read_pattern(const JsonCursor& from, TransformerShape& out) {
  const std::string text = from.string();
  const std::size_t wrong = text.find_first_not_of(kPatternLetters);
  if (wrong != std::string::npos) {
    from.fail("M (Mamba), * (attention), - (MLP) and E (experts), one for each layer");
  }
  if (std::ssize(text) != out.layers) {
    from.fail(std::to_string(out.layers) + " letters, one for each of \"layers\"");
  }
  if (text.find('M') != std::string::npos && out.mamba.heads == 0) {
    from.fail("no M, unless the model has \"mamba\"");
  }
  if (text.find('E') != std::string::npos && out.experts.count == 0) {
    from.fail("no E, unless the model has \"experts\"");
  }
  out.pattern = text;
}

}  // namespace

void read_model(const JsonCursor& from, Extent extent, TransformerShape& out) {
  const MemberReader member(from, extent);
  member.optional("name", out.name);
  member.optional("about", [](const JsonCursor& at) { (void)at.string(); });
  member.required("layers", out.layers, 1, kMaxLayers);
  member.required("hidden", out.hidden, 1, kMaxWidth);
  member.required("heads", out.heads, 1, kMaxHeads);
  if (extent == Extent::whole) out.kv_heads = out.heads;
  member.optional("kv_heads", out.kv_heads, 1, kMaxHeads);
  if (extent == Extent::whole) out.head_dim = out.hidden / out.heads;
  member.optional("head_dim", out.head_dim, 1, kMaxWidth);
  if (out.head_dim < 1) {
    from.at("heads").fail("at most \"hidden\", " + std::to_string(out.hidden) +
                          ", where \"head_dim\" is left out");
  }
  member.required("ffn", out.ffn, 1, kMaxWidth);
  member.required("vocabulary", out.vocabulary, 1, kMaxVocabulary);
  member.optional("gated", out.gated);
  member.optional("tied", out.tied);
  member.optional("learned_positions", out.learned_positions);
  member.optional("max_positions", out.max_positions, 0, kMaxTokens);
  member.optional("biases", out.biases);
  member.optional("rotary", out.rotary);
  member.optional("experts", [&](const JsonCursor& at) { read_experts(at, extent, out.experts); });
  member.optional("latent_attention",
                  [&](const JsonCursor& at) { read_latent_attention(at, extent, out); });
  member.optional("activation_traffic", out.activation_traffic, kRatio);
  member.optional("window", out.window, 1, kMaxTokens);
  member.optional("window_interval", out.window_interval, 1, kMaxLayers);
  member.optional("window_layers", out.window_layers, 1, kMaxLayers);
  member.optional("predicted_tokens", out.predicted_tokens, 0, 64);
  member.optional("mamba", [&](const JsonCursor& at) { read_mamba(at, extent, out.mamba); });
  member.optional("pattern", [&](const JsonCursor& at) { read_pattern(at, out); });
  if (!out.pattern.empty() && std::ssize(out.pattern) != out.layers) {
    from.at("layers").fail(std::to_string(out.pattern.size()) + " (letters of its pattern)");
  }
  if (out.heads % out.kv_heads != 0) {
    const std::optional<JsonCursor> kv_heads = from.find("kv_heads");
    const JsonCursor wrong = kv_heads ? *kv_heads : from.at("heads");
    wrong.fail(kv_heads ? "a divisor of " + std::to_string(out.heads) + " (heads)"
                        : "a multiple of " + std::to_string(out.kv_heads) + " (kv_heads)");
  }
}

RecomputeModules read_recompute_modules(const JsonCursor& from) {
  RecomputeModules out{.core_attention = false};
  const std::array<bool*, kRecomputeModuleNames.size()> modules{
      &out.core_attention, &out.layer_norm, &out.activation,     &out.latent_up, &out.mlp,
      &out.mlp_up,         &out.projection, &out.fused_attention};
  read_choices(from, kRecomputeModuleNames, [&](std::size_t module) { *modules[module] = true; });
  return out;
}

void read_stack(const JsonCursor& from, Extent extent, StackSpec& out) {
  const MemberReader member(from, extent);
  member.optional("about", out.about);
  member.required("attention", [&](const JsonCursor& at) {
    out.attention = read_choice<AttentionKernel>(at, attention_names());
  });
  member.optional("elementwise",
                  [&](const JsonCursor& at) { read_elementwise(at, out.elementwise); });
  member.optional("communication",
                  [&](const JsonCursor& at) { read_communication(at, out.communication); });
  member.optional("memory", [&](const JsonCursor& at) { read_memory_policy(at, out.memory); });
  member.optional("offload", [&](const JsonCursor& at) { read_offload_policy(at, out.offload); });
  member.optional("launch_interval", out.launch_interval, kLatency);
  member.optional("expert_host_layer", out.expert_host_layer, kLatency);
  member.optional("expert_host_expert", out.expert_host_expert, kLatency);
  member.optional("expert_partial_graph", out.expert_partial_graph, kShare);
  member.optional("grouped_slowdown", out.grouped_slowdown, kRatio);
  member.optional("scan_efficiency", out.scan_efficiency, Interval{0.01, 1});
  member.optional("kernels_forward", out.kernels_forward, kPerElement);
  member.optional("kernels_backward", out.kernels_backward, kPerElement);
  member.optional("step_overhead", out.step_overhead, Interval{0, 1000});
  member.optional("parameter_bytes", out.parameter_bytes, Interval{0.5, 16});
  member.optional("main_gradient_bytes", out.main_gradient_bytes, Interval{0, 16});
  member.optional("weight_gradient_traffic", out.weight_gradient_traffic, kPerElement);
  member.optional("optimiser_bytes", out.optimiser_bytes, kPerElement);
  member.optional("optimiser_unsharded_bytes", out.optimiser_unsharded_bytes, kPerElement);
  member.optional("placement", [&](const JsonCursor& at) { out.placement = read_placement(at); });
  member.optional("default_virtual_stages", out.default_virtual_stages, 1, 1000);
  member.optional("constants_at_bounds", [&](const JsonCursor& at) {
    constexpr std::size_t kMostConstants = 1000;
    out.constants_at_bounds.clear();
    for (const JsonCursor& path : at.elements(kMostConstants)) {
      out.constants_at_bounds.push_back(path.string());
    }
  });
  member.optional("recompute_ladder",
                  [&](const JsonCursor& at) { out.recompute_ladder = read_ladder(at); });
}

void read_transport(const JsonCursor& from, Extent extent, TransportSpec& out) {
  const MemberReader member(from, extent);
  member.optional("about", [](const JsonCursor& at) { (void)at.string(); });
  member.required("efficiency", out.efficiency, kEfficiency);
  member.required("hop_latency", out.hop_latency, kLatency);
  member.required("ring_hop_latency", out.ring_hop_latency, kLatency);
  member.required("send_receive_efficiency", out.send_receive_efficiency, kEfficiency);
  member.required("ll128_latency", out.ll128_latency, kLatency);
  member.required("simple_latency", out.simple_latency, kLatency);
  member.optional("channels_per_peer", out.channels_per_peer, 1, 64);
}

void read_transport_choice(const JsonCursor& from, const PresetStore& presets, std::string& name,
                           std::optional<TransportSpec>& own) {
  const bool refines = from.is_object() && !from.find("preset");
  if (!refines) {
    // As written: what stands for another word is an assumption of the answer.
    (void)read_preset_name(from, "transports", presets);
    name = from.is_object() ? from.at("preset").string() : from.string();
    own.reset();
  }
  if (!from.is_object()) return;
  if (!own) own = presets.transport(name.empty() ? from.at("preset").string() : name);
  read_transport(from, Extent::changes, *own);
  from.finish();
}

void read_collectives(const JsonCursor& from, Extent extent, IntraNodeCollectives& out) {
  const MemberReader member(from, extent);
  member.optional("about", [](const JsonCursor& at) { (void)at.string(); });
  const auto regimes = [&](std::string_view key, std::vector<CollectiveRegime>& into) {
    member.required(key, [&](const JsonCursor& at) { into = read_regimes(at); });
  };
  regimes("all_reduce", out.all_reduce);
  regimes("all_gather", out.all_gather);
  regimes("reduce_scatter", out.reduce_scatter);
  regimes("all_to_all", out.all_to_all);
  regimes("send_receive", out.send_receive);
}

}  // namespace lockstep
