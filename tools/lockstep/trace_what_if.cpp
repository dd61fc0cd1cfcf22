#include "tools/lockstep/trace_what_if.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tools/lockstep/kernel_kinds.hpp"

namespace lockstep {
namespace {

/// Volta has FP16 only.
FlopsPerSecond dense_peak(const GpuSpec& gpu) { return std::max(gpu.peak_bf16, gpu.peak_fp16); }

/// What a kernel must take at least.
Seconds roofline(const TraceWork& work, const GpuSpec& gpu) {
  return std::max(work.flops / dense_peak(gpu), work.bytes / gpu.hbm_bandwidth);
}

}  // namespace

void scale_to_gpu(Trace& trace, const GpuSpec& recorded, const GpuSpec& wanted) {
  const double products = dense_peak(recorded) / dense_peak(wanted);
  const double memory = recorded.hbm_bandwidth / wanted.hbm_bandwidth;
  const double copies = recorded.pcie_bandwidth / wanted.pcie_bandwidth;
  std::vector<double> of_name;
  std::vector<bool> named;  // the name says what the kernel does
  for (const std::string& name : trace.strings) {
    const KernelKind kind = kernel_kind(name);
    const bool moves = kind == KernelKind::memory || kind == KernelKind::copy;
    of_name.push_back(moves ? memory : products);
    named.push_back(kind != KernelKind::other);
  }
  const auto factor_of = [&](std::uint32_t n) {
    const TraceNode& node = trace.nodes[n];
    if (node.kind == TraceNodeKind::memory) return copies;
    const bool known = node.subject < trace.works.size();
    const TraceWork work = known ? trace.works[node.subject] : TraceWork{};
    const bool counts = work.flops > Flops{} || (work.bytes > Bytes{} && !named[trace.names[n]]);
    return counts ? roofline(work, wanted) / roofline(work, recorded) : of_name[trace.names[n]];
  };
  for (std::uint32_t n = 0; n < trace.size(); ++n) {
    TraceNode& node = trace.nodes[n];
    if (node.kind != TraceNodeKind::compute && node.kind != TraceNodeKind::memory) continue;
    const double factor = factor_of(n);
    node.duration = {
        static_cast<std::uint64_t>(std::llround(static_cast<double>(node.duration.ps) * factor))};
  }
}

}  // namespace lockstep
