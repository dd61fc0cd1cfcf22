#include "tools/lockstep/trace_what_if.hpp"

#include <cmath>
#include <vector>

#include "tools/lockstep/kernel_kinds.hpp"

namespace lockstep {

void scale_to_gpu(Trace& trace, const GpuSpec& recorded, const GpuSpec& wanted) {
  const double products = recorded.peak_bf16 / wanted.peak_bf16;
  const double memory = recorded.hbm_bandwidth / wanted.hbm_bandwidth;
  const double copies = recorded.pcie_bandwidth / wanted.pcie_bandwidth;
  std::vector<double> of_name;
  of_name.reserve(trace.strings.size());
  for (const std::string& name : trace.strings) {
    const KernelKind kind = kernel_kind(name);
    const bool moves = kind == KernelKind::memory || kind == KernelKind::copy;
    of_name.push_back(moves ? memory : products);
  }
  for (std::uint32_t n = 0; n < trace.size(); ++n) {
    TraceNode& node = trace.nodes[n];
    if (node.kind != TraceNodeKind::compute && node.kind != TraceNodeKind::memory) continue;
    const double factor = node.kind == TraceNodeKind::memory ? copies : of_name[trace.names[n]];
    node.duration = {
        static_cast<std::uint64_t>(std::llround(static_cast<double>(node.duration.ps) * factor))};
  }
}

}  // namespace lockstep
