#include "tools/calibrate/program/cuda_card.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "tools/calibrate/cuda/cards.hpp"
#include "tools/calibrate/cuda/passes.hpp"
#include "tools/calibrate/cuda/products.hpp"
#include "tools/console/options.hpp"
#ifdef LOCKSTEP_ATTENTION
#include "tools/calibrate/cudnn/cuda/attention_bench.hpp"
#endif

namespace lockstep {
namespace {

/// Of the memory that is free: the largest operands of the plan are 2.6 GiB together, and a second
/// set is there to rotate. cuBLASLt, contexts and graphs keep the rest.
constexpr double kInputsShare = 0.4, kOutputsShare = 0.3;
constexpr std::size_t kMostInputs = std::size_t{6} << 30, kMostOutputs = std::size_t{4} << 30;

std::size_t share_of(std::size_t bytes, double share, std::size_t most) {
  const double wanted = static_cast<double>(bytes) * share;
  return std::min(most, static_cast<std::size_t>(wanted)) / kAlignment * kAlignment;
}

class CudaCard : public Card {
 public:
  CudaCard(const cudaDeviceProp& properties, std::size_t free, std::unique_ptr<Nvml> nvml)
      : bench_(static_cast<std::size_t>(properties.l2CacheSize),
               share_of(free, kInputsShare, kMostInputs),
               share_of(free, kOutputsShare, kMostOutputs), std::move(nvml)),
        products_(bench_) {
    facts_.name = properties.name;
    facts_.major = properties.major;
    facts_.minor = properties.minor;
#ifdef LOCKSTEP_BLOCK_SCALING
    facts_.block_scaling = true;
#endif
    facts_.inputs = Bytes{static_cast<double>(share_of(free, kInputsShare, kMostInputs))};
    facts_.outputs = Bytes{static_cast<double>(share_of(free, kOutputsShare, kMostOutputs))};
    describe(properties);
    open_attention();
  }

  [[nodiscard]] const CardFacts& facts() const override { return facts_; }

  Samples measure(const Task& task, const Pace& pace) override {
    if (const auto* product = std::get_if<ProductTask>(&task)) {
      return products_.measure(*product, pace);
    }
    if (const auto* memory = std::get_if<MemoryTask>(&task)) return measure_memory(bench_, *memory);
#ifdef LOCKSTEP_ATTENTION
    if (const auto* core = std::get_if<AttentionTask>(&task)) return attention_->measure(*core);
#endif
    if (const auto* copy = std::get_if<CopyTask>(&task)) return measure_copy(bench_, *copy);
    return measure_launch(bench_, std::get<LaunchTask>(task));
  }

 private:
  void open_attention() {
#ifdef LOCKSTEP_ATTENTION
    try {
      attention_ = std::make_unique<AttentionBench>(bench_);
      facts_.conditions.emplace_back("cuDNN", attention_->version());
    } catch (const CardUnavailable& e) {
      facts_.no_attention = e.what();
    }
#else
    facts_.no_attention = "this program was built without cuDNN";
#endif
  }
  void describe(const cudaDeviceProp& properties) {
    auto& c = facts_.conditions;
    c.emplace_back("device", facts_.name);
    c.emplace_back("multiprocessors", fmt::format("{}", properties.multiProcessorCount));
    c.emplace_back("L2 cache", fmt::format("{} MiB", properties.l2CacheSize >> 20));
    c.emplace_back("memory",
                   fmt::format("{:.1f} GiB", static_cast<double>(properties.totalGlobalMem) /
                                                 gibibytes(1).base_units()));
    c.emplace_back("cuBLASLt", fmt::format("{}", cublasLtGetVersion()));
    add_versions(bench_.nvml(), c);
  }

  CardFacts facts_;
  Bench bench_;
  Products products_;
#ifdef LOCKSTEP_ATTENTION
  std::unique_ptr<AttentionBench> attention_;
#endif
};

std::unique_ptr<Card> opened(int device) {
  const cudaDeviceProp properties = properties_of(device);
  std::unique_ptr<Nvml> nvml = nvml_of(device);
  require_idle(device, nvml.get(), properties);
  check(cudaSetDevice(device), "cudaSetDevice");
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return std::make_unique<CudaCard>(properties, free, std::move(nvml));
}

}  // namespace

std::unique_ptr<Card> open_cuda_card(int device) {
  const int count = card_count();
  if (device >= count) {
    throw UsageError(fmt::format("--device: found {}; allowed: 0 to {}", device, count - 1));
  }
  const auto unavailable = [&](const std::runtime_error& e) {
    return CardUnavailable(fmt::format("card {} cannot be used: {}", device, e.what()));
  };
  try {
    return opened(device);
  } catch (const CardError& e) {
    throw unavailable(e);  // in exclusive mode, cut into instances
  } catch (const TaskFailed& e) {
    throw unavailable(e);  // out of memory
  }
}

}  // namespace lockstep
