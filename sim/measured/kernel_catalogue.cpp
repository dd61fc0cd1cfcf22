#include "sim/measured/kernel_catalogue.hpp"

#include <array>

namespace lockstep {
namespace {

struct GpuName {
  std::string_view printed;  ///< after "NVIDIA ", the name begins with it
  std::string_view preset;
};
/// Longer names before those that they begin with. A name without memory or socket means the SXM
/// board of the larger memory.
constexpr std::array kGpuNames{
    GpuName{"A100 PCIe", "a100_pcie_80gb"},
    GpuName{"A100-40GB", "a100_sxm4_40gb"},
    GpuName{"A100", "a100_sxm4_80gb"},
    GpuName{"H100 PCIe", "h100_pcie_80gb"},
    GpuName{"H100", "h100_sxm5_80gb"},
    GpuName{"H200", "h200_sxm_141gb"},
    GpuName{"H20", "h20_96gb"},
    GpuName{"H800", "h800_sxm_80gb"},
    GpuName{"GH200", "gh200_96gb"},
    GpuName{"B200", "b200_sxm_180gb"},
    GpuName{"B300", "b300_sxm_288gb"},
    GpuName{"GB200", "gb200_186gb"},
    GpuName{"GB300", "gb300_288gb"},
    GpuName{"V100", "v100_sxm2_32gb"},
    GpuName{"A800", "a800_sxm4_80gb"},
    GpuName{"L40S", "l40s_48gb"},
    GpuName{"GeForce RTX 4090", "rtx4090_24gb"},
    GpuName{"RTX 4090", "rtx4090_24gb"},
    GpuName{"GeForce RTX 5090", "rtx5090_32gb"},
    GpuName{"RTX 5090", "rtx5090_32gb"},
    GpuName{"RTX PRO 6000", "rtx_pro_6000_96gb"},
    GpuName{"MI250X", "mi250x"},
    GpuName{"MI300X", "mi300x"},
    GpuName{"MI325X", "mi325x"},
    GpuName{"MI350X", "mi350x"},
    GpuName{"MI355X", "mi355x"},
};

/// Speeds, extra launches and passes are fitted to attention.json (open rows) over all GPUs at
/// once. The inference engines copy keys and values into their paged cache inside the timed call:
/// about two passes over Q, K and V.
constexpr std::array kAttention{
    AttentionImplementation{"FlashAttention-1", AttentionKernel::flash1, 0.82, 0, 0},
    // GPT-NeoX calls FlashAttention through its first interface and runs at its speed.
    AttentionImplementation{"FlashAttention-2 (GPT-NeoX", AttentionKernel::flash1, 0.82, 0, 0},
    AttentionImplementation{"FlashAttention-2", AttentionKernel::flash2, 1, 0, 0},
    AttentionImplementation{"FlashAttention-3", AttentionKernel::flash3, 1, 0, 0},
    AttentionImplementation{"cuDNN", AttentionKernel::cudnn, 1, 0, 0},
    AttentionImplementation{"cudnn", AttentionKernel::cudnn, 1, 0, 0},
    AttentionImplementation{"vLLM FlashAttention-2", AttentionKernel::flash2, 0.86, 8, 1.6},
    AttentionImplementation{"vLLM FlashAttention-3", AttentionKernel::flash3, 1, 9, 1.8},
    AttentionImplementation{"TRT-LLM FMHA", AttentionKernel::cudnn, 0.85, 10, 1.6},
};

/// Bytes of the tensors that a kernel must read and write, 16 bit; slowdowns are medians over
/// memory_kernels.json, alike on all its GPUs. NeoX's GELU works on four times the named width; its
/// RMS norm is a chain of elementwise kernels.
constexpr std::array kMemory{
    MemoryKernel{"residual add", "", {6, 0.87}, {6, 0.87}},
    MemoryKernel{"res_add", "", {6, 0.94}, {6, 0.94}},
    MemoryKernel{"rms_norm", "cudnn", {4, 0.96}, {6, 1.0, 6}},
    MemoryKernel{"rms_norm", "torch_compile", {4, 1.05}, {6, 2.25, 6}},
    MemoryKernel{"rms_norm", "pytorch", {4, 1.1, 4}, {6, 2.3, 20}},
    MemoryKernel{"rms_norm", "vLLM", {4, 2.4}, {}},
    MemoryKernel{"layer_norm", "cudnn", {4, 0.96}, {6, 3.5, 8}},
    MemoryKernel{"layer_norm", "torch_compile", {4, 1.05}, {6, 2.0, 8}},
    MemoryKernel{"layer_norm", "pytorch", {4, 3.1}, {6, 2.8, 4}},
    MemoryKernel{"layernorm", "GPT-NeoX", {4, 1.5, 2}, {6, 2.4}},
    MemoryKernel{"RMSlayernorm", "GPT-NeoX", {4, 5.5, 20}, {6, 16.5, 20}},
    MemoryKernel{"gelu", "GPT-NeoX", {16, 1.27}, {24, 1.1}},
    MemoryKernel{"ScaledUpperTriangMaskedSoftmax", "GPT-NeoX", {4, 1.1}, {6, 1.1}},
    MemoryKernel{"softmax", "GPT-NeoX", {4, 2.2}, {6, 2.1}},
    MemoryKernel{"silu*mul", "vLLM", {6, 1.4, 2}, {}},
    // On L40S it reads once, from an L2 of 96 MB if it can, where Hopper and Blackwell read twice.
    MemoryKernel{"compute_scale fp8", "TRT-LLM", {2, 2.1, 5.5}, {}, "l40s_48gb"},
};

/// Quantising kernels move 5 bytes an element in two passes; they run at 0.7 of the copy rate.
constexpr double kQuantiseBytes = 7;
constexpr double kQuantiseLaunchHopper = 9;
constexpr double kQuantiseLaunchBlackwell = 12.5;

}  // namespace

std::string gpu_preset_named(std::string_view printed) {
  constexpr std::string_view kMaker = "NVIDIA ";
  if (printed.starts_with(kMaker)) printed.remove_prefix(kMaker.size());
  for (const GpuName& name : kGpuNames) {
    if (printed.starts_with(name.printed)) return std::string(name.preset);
  }
  return {};
}

const AttentionImplementation* attention_implementation(std::string_view printed) {
  const AttentionImplementation* found = nullptr;
  for (const AttentionImplementation& entry : kAttention) {
    if (!printed.starts_with(entry.name)) continue;
    if (found == nullptr || entry.name.size() > found->name.size()) found = &entry;
  }
  return found;
}

const MemoryKernel* memory_kernel(std::string_view kernel, std::string_view implementation) {
  for (const MemoryKernel& entry : kMemory) {
    if (kernel == entry.kernel && implementation.starts_with(entry.implementation)) return &entry;
  }
  return nullptr;
}

double quantise_us(double elements, const GpuSpec& gpu) {
  const Seconds moving =
      Bytes{kQuantiseBytes * elements} / (gpu.hbm_bandwidth * gpu.memory.efficiency);
  const bool blackwell = gpu.architecture == "blackwell";
  return (blackwell ? kQuantiseLaunchBlackwell : kQuantiseLaunchHopper) + moving.base_units() * 1e6;
}

}  // namespace lockstep
