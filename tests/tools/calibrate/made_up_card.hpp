/// A card that the models make up, for tests of everything around the measuring.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/kernels/memory_bound.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/calibrate/calibrate.hpp"

namespace lockstep::test {

inline CardFacts h100_facts() {
  return {.name = "NVIDIA H100 80GB HBM3",
          .major = 9,
          .minor = 0,
          .inputs = gibibytes(6),
          .outputs = gibibytes(4),
          .no_attention = {},
          .conditions = {{"driver", "made up"}}};
}

/// Takes 10 % longer than the laws say, with a spread, and moves the clock of the test.
class MadeUpCard : public Card {
 public:
  MadeUpCard(CardFacts facts, const GpuSpec& gpu, std::atomic<double>& clock)
      : facts_(std::move(facts)), gpu_(gpu), clock_(clock) {}
  [[nodiscard]] const CardFacts& facts() const override { return facts_; }

  Samples measure(const Task& task, const Pace& pace) override {
    tasks.push_back(task);
    clock_ += seconds_a_task;
    if (before_each) before_each(tasks.size());
    const double t = 1.1 * law(task).base_units();
    if (const auto* product = std::get_if<ProductTask>(&task)) {
      if (product->load == Load::sustained) warm_seconds.push_back(pace.warm.base_units());
    }
    const double x = quartiles_apart ? quartiles_apart(tasks.size()) : 0.02;
    return {.seconds = {t, (1 + x) * t, (1 - x) * t, (1 + x / 2) * t, (1 - x / 2) * t},
            .state = {.sm_mhz = 1755, .watts = 600, .celsius = 60}};
  }

  double seconds_a_task = 0.1;
  std::function<void(std::size_t nth)> before_each;
  std::function<double(std::size_t nth)> quartiles_apart;  ///< over the median; empty: 2 %
  std::vector<Task> tasks;
  std::vector<double> warm_seconds;

 private:
  [[nodiscard]] Seconds law(const Task& task) const {
    if (const auto* p = std::get_if<ProductTask>(&task)) {
      return gemm_time(p->shape, p->precision, gpu_, p->load);
    }
    if (const auto* m = std::get_if<MemoryTask>(&task)) {
      return memory_bound_time(Bytes{info(m->kernel).traffic(m->elements)}, gpu_);
    }
    if (const auto* a = std::get_if<AttentionTask>(&task)) {
      return attention_time(a->shape, AttentionKernel::cudnn, gpu_, ElementwiseTraffic{});
    }
    return microseconds(2);
  }

  CardFacts facts_;
  const GpuSpec& gpu_;
  std::atomic<double>& clock_;
};

}  // namespace lockstep::test
