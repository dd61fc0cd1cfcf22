#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "models/layer/memory.hpp"

namespace lockstep {
namespace {

/// fp32 weights with both moments in 16 bit, as DeepSeek-V3 was trained. Source: arXiv:2412.19437,
/// section 3.3.2; Megatron-Core's --exp-avg-dtype.
constexpr double kShortMoments = 8;
/// fp32 weights and moments.
constexpr double kLongMoments = 12;
/// PyTorch's allocator, reserved over allocated: nothing is lost with expandable segments, and
/// without them what is free in pieces. Assumed: 6 % in the worst of jobs that run.
constexpr double kNoFragments = 1, kManyFragments = 1.06;
/// A loss fused with its gradient in place of the 16-bit logits, and an eager one on fp32 logits
/// with its softmax. Source: github:NVIDIA/TransformerEngine:transformer_engine/pytorch/triton/
/// cross_entropy.py; 2 + 4 + 4 + 4 bytes of PyTorch's cross_entropy.
constexpr double kFusedLoss = 2, kEagerLoss = 14;
/// Outside of the allocator: CUDA context, modules and channels of few communicators, or of many.
/// Assumed: 0.7 GiB is a context without NCCL; each further communicator takes some 0.3 GiB.
constexpr Bytes kFewCommunicators = gibibytes(1), kManyCommunicators = gibibytes(4);

/// An assumption and what else it could be; `less` and `more` change the policy towards it.
struct MemoryAssumption {
  std::string_view less_words, more_words;
  void (*less)(MemoryPolicy& policy);
  void (*more)(MemoryPolicy& policy);
};

constexpr std::array kMemoryAssumptions{
    MemoryAssumption{"optimiser precision (16-bit moments)", "optimiser precision (fp32 moments)",
                     [](MemoryPolicy& p) {
                       p.optimiser_state_bytes = std::min(p.optimiser_state_bytes, kShortMoments);
                     },
                     [](MemoryPolicy& p) {
                       p.optimiser_state_bytes = std::max(p.optimiser_state_bytes, kLongMoments);
                     }},
    MemoryAssumption{
        "fragmentation (none)", "fragmentation (6 %)",
        [](MemoryPolicy& p) { p.fragmentation = std::min(p.fragmentation, kNoFragments); },
        [](MemoryPolicy& p) { p.fragmentation = std::max(p.fragmentation, kManyFragments); }},
    MemoryAssumption{"the loss (fused, in place)", "the loss (eager, on fp32 logits)",
                     [](MemoryPolicy& p) { p.logit_bytes = std::min(p.logit_bytes, kFusedLoss); },
                     [](MemoryPolicy& p) { p.logit_bytes = std::max(p.logit_bytes, kEagerLoss); }},
    MemoryAssumption{"the allocator (1 GiB outside of it)", "the allocator (4 GiB outside of it)",
                     [](MemoryPolicy& p) { p.outside = std::min(p.outside, kFewCommunicators); },
                     [](MemoryPolicy& p) { p.outside = std::max(p.outside, kManyCommunicators); }},
};

}  // namespace

MemoryBand memory_band(const TrainingJob& job, const StackSpec& stack, const GpuSpec& gpu) {
  constexpr std::size_t kCount = kMemoryAssumptions.size();
  // The stack's own policy, all that needs less, all that needs more, then less and more one by
  // one.
  constexpr std::size_t kLeast = 1, kMost = 2, kLess = 3, kMore = kLess + kCount;
  std::vector<MemoryPolicy> policies(kMore + kCount, stack.memory);
  for (std::size_t i = 0; i < kCount; ++i) {
    const MemoryAssumption& assumption = kMemoryAssumptions[i];
    assumption.less(policies[kLeast]);
    assumption.more(policies[kMost]);
    assumption.less(policies[kLess + i]);
    assumption.more(policies[kMore + i]);
  }
  const std::vector<Bytes> needed = needed_memory(job, stack, policies);
  // What is needed beyond what may be used: the job fits where this is not above zero.
  const auto beyond = [&](std::size_t i) { return needed[i] - usable_memory(gpu, policies[i]); };
  const Bytes usable = usable_memory(gpu, stack);
  const Bytes here = beyond(0);
  const bool fits = here <= Bytes{};
  std::string_view alone, widest;
  Bytes longest{-1};
  for (std::size_t i = 0; i < kCount; ++i) {
    const MemoryAssumption& assumption = kMemoryAssumptions[i];
    const Bytes there = beyond((fits ? kMore : kLess) + i);
    const std::string_view words = fits ? assumption.more_words : assumption.less_words;
    if (alone.empty() && (there <= Bytes{}) != fits) alone = words;
    const Bytes moved = fits ? there - here : here - there;
    if (moved > longest) longest = moved, widest = words;
  }
  // Memory outside of the allocator is counted as needed, so that one band holds all.
  MemoryBand band{.least = usable + beyond(kLeast), .most = usable + beyond(kMost), .decides = {}};
  const bool inside = band.least <= usable && usable <= band.most;
  const double share = std::abs(here.base_units()) / std::max(1.0, usable.base_units());
  if (inside && share <= kCloseMargin) band.decides = alone.empty() ? widest : alone;
  return band;
}

}  // namespace lockstep
