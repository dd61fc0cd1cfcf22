#include "models/generation/served_adapters.hpp"

#include <cassert>

#include "models/spec/layer.hpp"

namespace lockstep {
namespace {

constexpr double kAdapterBytes = 2;      // of a weight and of an activation
constexpr double kThinBytes = 8;         // of x A, written and read in 32 bits
constexpr double kAdapterKernels = 2;    // of a product: down to the rank, and up from it
constexpr double kAdapterRowRate = 0.8;  // share of HBM's rate at which rows come and go (assumed)

/// What adapters of all layers have and do, on a GPU.
struct AdapterSum {
  double weights = 0, kernels = 0, row_bytes = 0;
};

AdapterSum sum_of(const ServingReplicaSpec& spec, const Adapters& adapters) {
  AdapterSum out;
  for (const auto& [kind, count] : layer_kinds(spec.model)) {
    const double layers = 1.0 * count / layers_together(spec.model, kind);
    for_each_product(declare_layer(spec.model, kind), [&](const Product& p) {
      if (p.of_experts() || !p.adapter || !adapters.on(*p.adapter)) return;
      const double ranks = p.ways == Ways::tensor ? spec.tensor : 1;
      const double in = p.adapters * p.in.on(ranks), out_columns = p.out.on(ranks);
      out.weights += layers * adapters.rank * (in + out_columns);
      out.kernels += layers * kAdapterKernels;
      out.row_bytes += layers * (kAdapterBytes * p.in.on(ranks) + kThinBytes * adapters.rank +
                                 2 * kAdapterBytes * out_columns);
    });
  }
  return out;
}

}  // namespace

ServedAdapterCost served_adapter_cost(const ServingReplica& replica, const Adapters& adapters) {
  const ServingReplicaSpec& spec = replica.spec();
  assert(spec.attention_data == 1);
  const KernelLaws& laws = replica.laws();
  const GpuSpec& gpu = spec.node.gpu;
  const ProductLaw& law = laws.products[static_cast<std::size_t>(WeightFormat::bf16)];
  const AdapterSum sum = sum_of(spec, adapters);
  const Bytes weights{kAdapterBytes * sum.weights};
  const Flops flops{2 * sum.weights};
  const double stages = spec.pipeline;
  ServedAdapterCost out;
  out.bytes = weights / stages;
  out.all_bytes = spec.tensor * weights;
  out.pass = sum.kernels * laws.launch * law.launch;
  out.adapter = weights / (law.bandwidth * gpu.hbm_bandwidth);
  // The stages of a pipeline have different rows at a time.
  out.row = (Bytes{sum.row_bytes} / (kAdapterRowRate * gpu.hbm_bandwidth) +
             flops / (law.efficiency * peak_of(gpu, WeightFormat::bf16))) /
            stages;
  return out;
}

}  // namespace lockstep
