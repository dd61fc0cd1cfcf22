#include "sim/measured/kernel_catalogue.hpp"

#include <array>

namespace lockstep {
namespace {

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

GpuNames::GpuNames(const PresetStore& presets) {
  for (const std::string& preset : presets.names("gpus")) {
    for (const std::string& name : presets.gpu(preset).device_names) {
      names_.push_back({name, preset});
    }
  }
}

std::string GpuNames::preset_of(std::string_view printed) const {
  constexpr std::string_view kMaker = "NVIDIA ";
  if (printed.starts_with(kMaker)) printed.remove_prefix(kMaker.size());
  const Name* found = nullptr;
  for (const Name& name : names_) {
    if (!printed.starts_with(name.printed)) continue;
    if (found == nullptr || name.printed.size() > found->printed.size()) found = &name;
  }
  return found == nullptr ? std::string() : found->preset;
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
