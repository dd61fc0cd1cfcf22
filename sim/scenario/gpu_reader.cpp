// Reads GPUs and the nodes that hold them.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/quantity.hpp"
#include "models/power/gpu_power.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/preset_changes.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {

void declare_attention_kernel(const DeclaredMembers& member, AttentionConstants& out) {
  member.required("launch", out.launch, kLatency, "Shortest kernel");
  member.required("efficiency", out.efficiency, kEfficiency,
                  "Of the 16-bit peak: head size 128, long sequences");
  member.required("ramp_tokens", out.ramp_tokens, Interval{0, 1e6},
                  "Tokens that prologue and epilogue cost");
  member.optional("softmax_width", out.softmax_width, Interval{0, 1e4},
                  "Elements of head size that the softmax of a score costs");
  member.required("backward_ratio", out.backward_ratio, Interval{0.1, 100},
                  "Time of the backward pass over the forward pass");
}

namespace {

constexpr std::size_t kMostDeviceNames = 16;

void declare_gemm(const DeclaredMembers& member, GemmConstants& out) {
  member.required("launch", out.launch, kLatency, "Shortest product, inside a CUDA graph");
  member.required("efficiency", out.efficiency, kEfficiency,
                  "Of the datasheet peak: best tile, short burst");
  member.required("k_ramp", out.k_ramp, kPerElement,
                  "Elements of K that prologue and epilogue cost");
  member.required("efficiency_128x128", out.efficiency_128x128, kRatio,
                  "Of the efficiency, for 128 x 128 tiles");
  member.required("efficiency_x64", out.efficiency_x64, kRatio,
                  "Of the efficiency, for tiles with a side of 64");
  member.required("split_k", out.split_k, kLatency, "Cost of a split along K, times sqrt(splits)");
  member.required("bandwidth", out.bandwidth, kHbmRate, "Achieved by products bound by HBM");
  member.optional("fp8_efficiency", out.fp8_efficiency, kRatio,
                  "Of the efficiency, for fp8 and mxfp8 products");
  member.optional("fp4_efficiency", out.fp4_efficiency, kRatio,
                  "Of the efficiency, for nvfp4 products");
  member.required("sustained", out.sustained, kEfficiency,
                  "Clock under a lasting load over that of a burst");
  member.optional("quantised_sustained", out.quantised_sustained, kEfficiency,
                  "Times sustained, for fp8 and fp4 products, which draw more power");
}

void declare_attention_kernels(const DeclaredMembers& member, GpuSpec& out) {
  const std::vector<std::string_view> names = attention_names();
  for (std::size_t i = 0; i < kAttentionKernels; ++i) {
    member.optional(names[i], shared_type("attention_kernel"), "", [&](const JsonCursor& at) {
      const bool known = out.attention[i].has_value();
      AttentionConstants constants = out.attention[i].value_or(AttentionConstants{});
      declare_attention_kernel(DeclaredMembers(at, known ? member.extent() : Extent::whole),
                               constants);
      at.finish();
      out.attention[i] = constants;
    });
  }
}

void declare_memory(const DeclaredMembers& member, MemoryConstants& out) {
  member.required("launch", out.launch, kLatency, "Shortest kernel");
  member.required("efficiency", out.efficiency, kEfficiency,
                  "Of the datasheet bandwidth, large tensors");
  member.optional("narrow_bandwidth", out.narrow_bandwidth, kRateOrNone,
                  "Of kernels that move an element at a time (casts, broadcasts, strides, rows by "
                  "index), which the SMs limit; 0: that of large tensors");
}

void declare_host(const DeclaredMembers& member, HostSpec& out) {
  member.required("memory", out.memory, kMemory, "Of a node");
  member.required("bandwidth", out.bandwidth, kHbmRate, "All channels of all sockets");
  member.optional(
      "launch_slowness", out.launch_slowness, kRatio,
      "Host time of a kernel, and of an engine of services, over that of a Xeon of 2023; "
      "default: 1");
}

}  // namespace

void declare_gpu(const DeclaredMembers& member, const PresetStore& presets, GpuSpec& out) {
  member.optional("about", out.about, "What it is");
  member.optional("device_names", list_type(text_type(), kMostDeviceNames),
                  "As drivers and benchmarks print it, without the maker; of several presets the "
                  "one with the longest name counts that a printed one begins with",
                  [&](const JsonCursor& at) {
                    out.device_names.clear();
                    for (const JsonCursor& name : at.elements(kMostDeviceNames)) {
                      out.device_names.push_back(name.string());
                    }
                  });
  member.required("architecture", out.architecture,
                  "volta, ampere, ada, hopper, blackwell, blackwell_rtx, cdna2, cdna3 or cdna4");
  member.required("sm_count", out.sm_count, 1, 100'000,
                  "Streaming multiprocessors (compute units on AMD)");
  member.required("peak_fp16", out.peak_fp16, kPeak, "Dense");
  member.optional("peak_bf16", out.peak_bf16, kPeakOrNone, "Dense; 0: not supported");
  member.optional("peak_fp8", out.peak_fp8, kPeakOrNone, "Dense; 0: not supported");
  member.optional("peak_fp4", out.peak_fp4, kPeakOrNone, "Dense; 0: not supported");
  member.required("hbm_capacity", out.hbm_capacity, kMemory, "Memory of the card");
  member.required("hbm_bandwidth", out.hbm_bandwidth, kHbmRate, "Datasheet");
  member.optional("nvlink_bandwidth", out.nvlink_bandwidth, kRateOrNone,
                  "One direction, all links; collectives change with it; 0: PCIe only");
  member.required("pcie_bandwidth", out.pcie_bandwidth, kRate, "One direction");
  member.required("power_limit", out.power_limit, kPower, "Board power");
  member.required("power_idle", out.power_idle, kPower, "Idle");
  member.required("gemm", out.gemm, "Constants of the matrix-product law", declare_gemm);
  member.required("attention", out, "Fused-attention constants by kernel generation",
                  declare_attention_kernels);
  member.required("memory", out.memory, "Constants of the memory-bound law", declare_memory);
  member.required("collectives", text_type(),
                  "Preset of the collectives inside an NVLink domain: lockstep list nvlinks",
                  [&](const JsonCursor& at) {
                    out.collectives = presets.nvlink(read_bare_preset_name(at, "nvlinks", presets));
                  });
  member.optional("power", out.power,
                  "What the card draws, from what its engines do: models/power/README.md",
                  declare_gpu_power);
  member.optional("speed_spread", out.speed_spread, kSpread,
                  "Relative standard deviation of speed between GPUs of the kind");
  member.optional("kernel_jitter", out.kernel_jitter, kSpread,
                  "The same between repeats of one kernel on one GPU");
}

namespace {

/// A limit below that of the card lowers its clock, as a cap does. `own`: the card as it was before
/// the changes at `at`.
void apply_lower_limit(const JsonCursor& at, const GpuSpec& own, GpuSpec& out) {
  const Watts limit = out.power_limit;
  const std::optional<JsonCursor> given = at.find("power_limit");
  if (!given || at.find("power") || !out.power || limit >= own.power_limit) return;
  if (limit < lowest_cap(out)) {
    given->fail("from " + format_quantity(lowest_cap(out).base_units(), Dimension::power) +
                ", at the lowest clock of " + own.name +
                "; for another card its own constants in \"power\" too");
  }
  out.power_limit = own.power_limit;
  out = capped(std::move(out), limit);
}

/// The rate of PCIe 5.0 x16, on which the preset of collectives "pcie" was measured.
constexpr BytesPerSecond kMeasuredPcie = gigabytes_per_second(63);

/// Collectives of a card whose NVLinks a scenario takes away. What a card has beyond PCIe 5.0 joins
/// it to its own processor (NVLink-C2C) or is of PCIe 6.0, which nobody timed: no faster than 5.0.
void leave_nvlink(const PresetStore& presets, GpuSpec& gpu) {
  gpu.collectives = presets.nvlink("pcie");
  scale_bandwidth(gpu.collectives, std::min(1.0, double{gpu.pcie_bandwidth / kMeasuredPcie}));
  gpu.nvlink_scale = 0;
}

/// Changes of a card. Its collectives were measured on its NVLinks, and follow them where the
/// changes do not name others.
void refine_gpu(const JsonCursor& from, Extent extent, const PresetStore& presets, GpuSpec& out) {
  const GpuSpec own = out;
  const BytesPerSecond before = own.nvlink_bandwidth;
  declare_gpu({from, extent}, presets, out);
  if (extent == Extent::changes) apply_lower_limit(from, own, out);
  const bool named = from.find("collectives").has_value();
  from.finish();
  if (named) {
    out.nvlink_scale = 1;
  } else if (before > BytesPerSecond{} && out.nvlink_bandwidth == BytesPerSecond{}) {
    leave_nvlink(presets, out);
  } else {
    follow_nvlink(out, before);
  }
  if (extent == Extent::whole) return;
  std::vector<std::string> changed = changed_constants(own, out, presets);
  for (const char* key : {"attention", "collectives"}) {
    if (from.find(key)) changed.emplace_back(key);
  }
  for (std::string& key : changed) {
    if (std::ranges::find(out.changed, key) == out.changed.end()) {
      out.changed.push_back(std::move(key));
    }
  }
}

/// The transport of a node as a file says it.
nlohmann::ordered_json written_transport(NodeSpec& node) {
  nlohmann::ordered_json out;
  if (!node.own_transport) return node.transport;
  if (!node.transport.empty()) out["preset"] = node.transport;
  declare_transport(DeclaredMembers::writing(out), *node.own_transport);
  return out;
}

}  // namespace

void declare_node(const DeclaredMembers& member, const PresetStore& presets, NodeSpec& out) {
  member.optional("about", out.about, "What it is");
  // Named, or refined from the preset that it names, else from what the node has.
  member.required(
      "gpu", "gpus", "The GPU", "A GPU: a preset with changes, or changes to the node's GPU",
      [&](const DeclaredMembers& gpu) { declare_gpu(gpu, presets, out.gpu); },
      [&](const JsonCursor& at) {
        const bool refines = at.is_object() && !at.find("preset");
        if (!refines) out.gpu = presets.gpu(read_preset_name(at, "gpus", presets));
        if (!at.is_object()) return;
        refine_gpu(at, refines ? member.extent() : Extent::changes, presets, out.gpu);
      });
  member.required("gpus", out.gpus, 1, kMaxGpusPerNode, "GPUs of a node");
  member.required("nvlink_domain", out.nvlink_domain, 1, kMaxGpusPerNode,
                  "GPUs that reach each other over NVLink; may span nodes");
  member.required("nics", out.nics, 1, kMaxGpusPerNode, "NICs of a node for the compute fabric");
  member.required("nic_bandwidth", out.nic_bandwidth, kRate, "One direction, each NIC");
  member.required(
      "transport", shared_type("transport"), "Default transport",
      [&](const JsonCursor& at) {
        read_transport_choice(at, presets, out.transport, out.own_transport);
      },
      [&] { return written_transport(out); });
  member.optional(
      "chassis", "chassis", "The server around the GPUs: what it draws",
      "A preset with changes, or a chassis of one's own",
      [&](const DeclaredMembers& chassis) {
        declare_chassis(chassis, *(out.chassis = ChassisSpec{}));
      },
      [&](const JsonCursor& at) {
        const bool refines = at.is_object() && !at.find("preset");
        ChassisSpec chassis = refines ? out.chassis.value_or(ChassisSpec{})
                                      : presets.chassis(read_preset_name(at, "chassis", presets));
        if (at.is_object()) {
          const bool whole = refines && !out.chassis;
          declare_chassis({at, whole ? Extent::whole : Extent::changes}, chassis);
          at.finish();
        }
        out.chassis = chassis;
      });
  member.optional("host", out.host, "Its processors and their memory", declare_host);
  member.optional("usd_per_gpu_hour", out.usd_per_gpu_hour, kPrice, "List price");
  member.optional("spot_usd_per_gpu_hour", out.spot_usd_per_gpu_hour, kPrice,
                  "List price of capacity that the provider may take away");
}

}  // namespace lockstep
