#include "tools/calibrate/memory_kernels.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <numeric>

namespace lockstep {
namespace {

constexpr std::array kMemoryKernels{
    MemoryKernelInfo{"copy", "y = x, 16 bit", 2, 2, 0},
    MemoryKernelInfo{"rms_norm", "y = x / rms(x) gain, 16 bit, rows of 4,096", 2, 2, 0},
    MemoryKernelInfo{"silu_gate", "y = silu(gate) up, 16 bit", 4, 2, 0},
    MemoryKernelInfo{"softmax", "y = softmax(x), 16 bit, rows of 4,096", 2, 2, 0},
    MemoryKernelInfo{"adam", "AdamW: 16-bit gradient and copy, 32-bit parameter and moments", 2, 2,
                     12},
};

double adam_from_zero(double gradient) {
  const AdamConstants c;
  const double m = (1 - double{c.beta1}) * gradient;
  const double v = (1 - double{c.beta2}) * gradient * gradient;
  const double m_hat = m / (1 - double{c.beta1}), v_hat = v / (1 - double{c.beta2});
  return -double{c.rate} * m_hat / (std::sqrt(v_hat) + double{c.epsilon});
}

}  // namespace

std::span<const MemoryKernelInfo> memory_kernels() { return kMemoryKernels; }
const MemoryKernelInfo& info(MemoryKernelKind kernel) {
  return kMemoryKernels[static_cast<std::size_t>(kernel)];
}

std::vector<double> reference_row(MemoryKernelKind kernel, std::span<const float> first,
                                  std::span<const float> second) {
  std::vector<double> out(first.begin(), first.end());
  switch (kernel) {
    case MemoryKernelKind::copy:
      break;
    case MemoryKernelKind::rms_norm: {
      assert(second.size() == first.size());
      const double squares = std::inner_product(out.begin(), out.end(), out.begin(), 0.0);
      const double scale = 1 / std::sqrt(squares / static_cast<double>(out.size()) + 1e-5);
      for (std::size_t i = 0; i < out.size(); ++i) out[i] *= scale * double{second[i]};
      break;
    }
    case MemoryKernelKind::silu_gate:
      assert(second.size() == first.size());
      for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = out[i] / (1 + std::exp(-out[i])) * double{second[i]};
      }
      break;
    case MemoryKernelKind::softmax: {
      const double top = *std::ranges::max_element(out);
      for (double& x : out) x = std::exp(x - top);
      const double sum = std::accumulate(out.begin(), out.end(), 0.0);
      for (double& x : out) x /= sum;
      break;
    }
    case MemoryKernelKind::adam:
      std::ranges::transform(out, out.begin(), adam_from_zero);
      break;
  }
  return out;
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

bool agrees(double got, double expected, double slack) {
  constexpr double kRounding = 1.0 / 256;
  // A NaN agrees with nothing.
  return std::abs(got - expected) <= kRounding * std::abs(expected) + slack;
}

}  // namespace lockstep
