#include "sim/measured/trace_what_if.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "sim/measured/kernel_kinds.hpp"

namespace lockstep {
namespace {

/// What large products reach of the card under a lasting load, by its measured law: cards of other
/// vendors differ more in that than in their datasheets. Volta has FP16 only.
FlopsPerSecond product_rate(const GpuSpec& gpu) {
  return gpu.gemm.efficiency * gpu.gemm.sustained * std::max(gpu.peak_bf16, gpu.peak_fp16);
}
/// The same of kernels that move data.
BytesPerSecond memory_rate(const GpuSpec& gpu) { return gpu.memory.efficiency * gpu.hbm_bandwidth; }

/// What a kernel of that work takes where nothing else holds it back.
Seconds roofline(const TraceWork& work, const GpuSpec& gpu) {
  return std::max(work.flops / product_rate(gpu), work.bytes / memory_rate(gpu));
}

/// What the shortest kernel of a kind takes. A kernel that no name tells is as short as any.
Seconds shortest(KernelKind kind, const GpuSpec& gpu) {
  switch (kind) {
    case KernelKind::product:
      return gpu.gemm.launch;
    case KernelKind::attention: {
      std::optional<Seconds> least;
      for (const auto& constants : gpu.attention) {
        if (constants && (!least || constants->launch < *least)) least = constants->launch;
      }
      return least.value_or(gpu.gemm.launch);
    }
    case KernelKind::memory:
    case KernelKind::copy:
    case KernelKind::collective:
    case KernelKind::other:
      break;
  }
  return gpu.memory.launch;
}

/// Of a name, on the recorded card and the wanted one.
struct Floors {
  Seconds recorded, wanted;
};

}  // namespace

WhatIf scale_to_gpu(Trace& trace, const GpuSpec& recorded, const GpuSpec& wanted) {
  const double products = product_rate(recorded) / product_rate(wanted);
  const double memory = memory_rate(recorded) / memory_rate(wanted);
  const double copies = recorded.pcie_bandwidth / wanted.pcie_bandwidth;
  std::vector<double> of_name;
  std::vector<Floors> floors;
  std::vector<bool> named;  // the name says what the kernel does
  for (const std::string& name : trace.strings) {
    const KernelKind kind = kernel_kind(name);
    const bool moves = kind == KernelKind::memory || kind == KernelKind::copy;
    of_name.push_back(moves ? memory : products);
    named.push_back(kind != KernelKind::other);
    floors.push_back({shortest(kind, recorded), shortest(kind, wanted)});
  }
  WhatIf out;
  const auto factor_of = [&](std::uint32_t n) -> double {
    const TraceNode& node = trace.nodes[n];
    if (node.kind == TraceNodeKind::memory) return copies;
    const bool known = node.subject < trace.works.size();
    const TraceWork work = known ? trace.works[node.subject] : TraceWork{};
    const bool counts = work.flops > Flops{} || (work.bytes > Bytes{} && !named[trace.names[n]]);
    if (counts) return roofline(work, wanted) / roofline(work, recorded);
    if (!named[trace.names[n]]) out.untold += to_seconds(node.duration);
    return of_name[trace.names[n]];
  };
  for (std::uint32_t n = 0; n < trace.size(); ++n) {
    TraceNode& node = trace.nodes[n];
    if (node.kind != TraceNodeKind::compute && node.kind != TraceNodeKind::memory) continue;
    const Seconds took = to_seconds(node.duration);
    const Floors floor = node.kind == TraceNodeKind::compute ? floors[trace.names[n]] : Floors{};
    const Seconds launch = std::min(took, floor.recorded);
    const bool has_floor = floor.recorded > Seconds{} && floor.wanted > Seconds{};
    const KernelBounds before{launch, took - launch};
    const KernelBounds after{has_floor ? launch / floor.recorded * floor.wanted : launch,
                             factor_of(n) * before.gpu};
    out.recorded.launch += before.launch;
    out.recorded.gpu += before.gpu;
    out.wanted.launch += after.launch;
    out.wanted.gpu += after.gpu;
    node.duration = to_step_time(after.launch + after.gpu);
  }
  return out;
}

}  // namespace lockstep
