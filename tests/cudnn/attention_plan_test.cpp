// Attention's graphs are handed to cuDNN without a card: it checks them, chooses engines and
// compiles their kernels for a card that is described to it. The toolkit's stub stands for the
// driver.
#include "tools/calibrate/cudnn/attention_plan.hpp"

#include <array>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <utility>

#include "tools/calibrate/card.hpp"

using namespace lockstep;

namespace {

struct Described {
  int capability;  ///< 900: 9.0
  const char* name;
  int multiprocessors;
};
constexpr std::array kCards{Described{800, "NVIDIA A100-SXM4-80GB", 108},
                            Described{900, "NVIDIA H100 80GB HBM3", 132},
                            Described{1000, "NVIDIA B200", 148}};

/// The JSON that cuDNN 9.8 and later write of a card, with the limits of CUDA's programming guide.
std::string properties_of(const Described& card) {
  return fmt::format(
      R"({{"deviceVer":{},"deviceName":"{}","cudaDeviceId":0,"driverVer":13000,)"
      R"("multiProcessorCount":{},"maxGridSize":[2147483647,65535,65535],)"
      R"("maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"smClockRateKHz":1410000,)"
      R"("memClockRateKHz":1593000,"l2CacheSize":41943040,"warpSize":32,)"
      R"("maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":{},)"
      R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"pciDeviceId":0,)"
      R"("maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"isTccDriver":0,)"
      R"("supportCoopLaunch":1,"totalGlobalMem":80000000000}})",
      card.capability, card.name, card.multiprocessors, card.capability < 900 ? 166912 : 232448);
}

AttentionTarget target_of(const Described& card) {
  static void* const driver = dlopen(LOCKSTEP_CUDA_STUB, RTLD_NOW | RTLD_GLOBAL);
  REQUIRE(driver != nullptr);
  return AttentionTarget(properties_of(card));
}

std::size_t engines(const AttentionShape& shape, const AttentionTarget& target) {
  return AttentionPattern(shape, target).engines();
}

}  // namespace

TEST_CASE("AttentionPattern: cuDNN has engines for what models have, on every generation") {
  for (const Described& card : kCards) {
    const AttentionTarget target = target_of(card);
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      for (const bool causal : {true, false}) {
        for (const double kv_heads : {32.0, 8.0, 1.0}) {
          for (const double head_dim : {64.0, 96.0, 128.0}) {
            CAPTURE(card.name);
            CAPTURE(causal);
            CAPTURE(kv_heads);
            CAPTURE(head_dim);
            CHECK(engines({2, 2048, 32, kv_heads, head_dim, causal, 0, direction}, target) > 0);
          }
        }
      }
    }
  }
}

TEST_CASE("AttentionPattern: what cuDNN has no kernel for leaves a reason") {
  const AttentionTarget target = target_of(kCards[1]);
  const auto refused = [&](double head_dim) {
    try {
      AttentionPlan(AttentionPattern({1, 2048, 32, 32, head_dim}, target), target);
    } catch (const TaskFailed& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK_FALSE(refused(7).empty());     // rows that are no whole 16 bytes
  CHECK_FALSE(refused(1024).empty());  // too wide
}

TEST_CASE("AttentionPlan: the kernel is compiled, and refused by the driver that is none") {
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    const AttentionTarget target = target_of(kCards[1]);
    AttentionPattern pattern({1, 1024, 8, 2, 128, true, 0, direction}, target);
    std::string why;
    try {
      const AttentionPlan plan(std::move(pattern), target);
    } catch (const TaskFailed& e) {
      why = e.what();
    }
    CAPTURE(why);
    CHECK(why.find("CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER") != std::string::npos);
  }
}

TEST_CASE("attention_graph: which tensors a pass needs, and what they hold") {
  const AttentionShape shape{2, 1024, 32, 8, 128};
  CHECK(attention_graph(shape).tensors.size() == 5);
  AttentionShape backward = shape;
  backward.direction = Direction::backward;
  CHECK(attention_graph(backward).tensors.size() == 11);
  CHECK(attention_elements(AttentionTensor::query, shape) == 2 * 1024 * 32 * 128);
  CHECK(attention_elements(AttentionTensor::value_gradient, shape) == 2 * 1024 * 8 * 128);
  CHECK(attention_elements(AttentionTensor::statistics, shape) == 2 * 1024 * 32);
  CHECK(attention_element_bytes(AttentionTensor::statistics) == 4);
  CHECK(attention_element_bytes(AttentionTensor::query_gradient) == 2);
}
