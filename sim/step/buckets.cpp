#include <array>
#include <fmt/format.h>

#include "sim/step/step_report.hpp"

namespace lockstep {
namespace {

constexpr std::array<BucketInfo, kBuckets> kTable{{
    {Bucket::model_flops, "model_flops", "Useful model FLOPs at peak", ""},
    {Bucket::kernel_inefficiency, "kernel_inefficiency", "Kernels below peak",
     "larger products (bigger micro batch, less tensor parallelism), a newer GPU or attention "
     "kernel"},
    {Bucket::memory_bound, "memory_bound", "Memory-bound kernels",
     "fused norms, activations and loss, or sequence parallelism"},
    {Bucket::recompute, "recompute", "Recomputation",
     "selective or no recomputation where memory allows it"},
    {Bucket::launch, "launch", "Launch gaps and host time", "CUDA graphs or a bigger micro batch"},
    {Bucket::tensor_exposed, "tensor_exposed", "Exposed tensor-parallel communication",
     "less tensor parallelism, or overlapping its collectives with the products"},
    {Bucket::context_exposed, "context_exposed", "Exposed context-parallel exchange",
     "less context parallelism, keeping its ranks in one NVLink domain, or a ring beside "
     "attention"},
    {Bucket::expert_exposed, "expert_exposed", "Exposed expert-parallel communication",
     "dispatch beside another micro batch, one copy per NVLink domain (DeepEP), or less expert "
     "parallelism"},
    {Bucket::expert_imbalance, "expert_imbalance", "Waiting for the fullest experts",
     "a stronger balancing loss, capacity limits, or fewer experts on a GPU"},
    {Bucket::pipeline_exposed, "pipeline_exposed", "Exposed pipeline messages",
     "overlapped sends, fewer virtual stages, or faster NICs"},
    {Bucket::pipeline_bubble, "pipeline_bubble", "Pipeline bubble",
     "more micro batches per replica, more virtual stages, or fewer pipeline stages"},
    {Bucket::data_exposed, "data_exposed", "Exposed data-parallel communication",
     "overlapped gradient reduction, 16-bit gradients, more micro batches, or faster NICs"},
    {Bucket::host_exposed, "host_exposed", "Exposed copies to and from the host",
     "a bigger micro batch, fewer layers' activations on the host, or a faster link to it (C2C)"},
    {Bucket::variation, "variation", "Waiting for the slowest of equal GPUs",
     "evicting slow GPUs after a burn-in test"},
    {Bucket::straggler, "straggler", "Waiting for slower ranks",
     "replacing slow GPUs; where none is slow, replicas whose ways through the fabric are equal"},
    {Bucket::optimiser, "optimiser", "Optimiser", "sharding the optimiser over the replicas"},
}};

constexpr std::array<SliceKind, 10> kSlices{{
    {"forward", "thread_state_running"},
    {"backward", "thread_state_iowait"},
    {"input gradients", "thread_state_runnable"},
    {"weight gradients", "thread_state_unknown"},
    {"optimiser", "rail_response"},
    {"forward message", "rail_animation"},
    {"backward message", "rail_idle"},
    {"gather parameters", "rail_load"},
    {"reduce gradients", "startup"},
    {"copy to or from the host", "good"},
}};

}  // namespace

std::span<const BucketInfo> buckets() { return kTable; }
std::span<const SliceKind> slice_kinds() { return kSlices; }

std::string method_words(StepMethod method, const std::optional<StepBand>& band) {
  switch (method) {
    case StepMethod::exact:
      return {};
    case StepMethod::sampled:
      return fmt::format(
          "a sample of the replicas was simulated, with those on the most crowded links; every "
          "replica on its own (--unfold) takes {:.4g} to {:.4g} s",
          band->low_s, band->high_s);
    case StepMethod::folded:
      return "folded as asked (--fold): replicas stand for each other although hashed paths tell "
             "them apart; every replica on its own may take up to 2.5 times as long, or less";
  }
  return {};
}

std::string_view name_of(StepMethod method) {
  constexpr std::array<std::string_view, 3> kNames{"exact", "sampled", "folded"};
  return kNames[static_cast<std::size_t>(method)];
}

}  // namespace lockstep
