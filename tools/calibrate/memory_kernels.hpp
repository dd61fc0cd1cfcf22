/// The memory-bound kernels that are timed: what they move, and what their results have to be.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep {

enum class MemoryKernelKind : std::uint8_t { copy, rms_norm, silu_gate, softmax, adam };

/// Elements of a row: a norm and a softmax work along it, the rest is cut into such rows.
constexpr int kRowElements = 4096;

struct MemoryKernelInfo {
  std::string_view name;  ///< as profiles say it
  std::string_view about;
  double read;     ///< bytes an element, from buffers that are only read
  double written;  ///< bytes an element, to buffers that are only written
  double updated;  ///< bytes an element that are read and written back
  /// Bytes that cross HBM for so many elements: none of the buffers stays in L2.
  [[nodiscard]] constexpr double traffic(double elements) const {
    return elements * (read + written + 2 * updated);
  }
};
/// Every kernel, in the order of the enumeration.
std::span<const MemoryKernelInfo> memory_kernels();
const MemoryKernelInfo& info(MemoryKernelKind kernel);

/// Constants of the update; the first step, so that both bias corrections are at work.
struct AdamConstants {
  float rate = 1e-3F, beta1 = 0.9F, beta2 = 0.95F, epsilon = 1e-8F, decay = 0.1F;
};

/// Results of one row of `kernel`, computed plainly in double. `first` and `second` are the row's
/// inputs as the kernel has them: x and the gain (rms_norm), gate and up (silu_gate), x alone
/// (copy, softmax), the gradient alone (adam: the new parameters after one step from 0).
std::vector<double> reference_row(MemoryKernelKind kernel, std::span<const float> first,
                                  std::span<const float> second);

/// The number that 16 bits of bfloat16 mean.
float from_bf16(std::uint16_t bits);

/// True where `got` is `expected` but for the rounding to 16 bit (2^-8) and for `slack`, which the
/// order of a sum may cost.
bool agrees(double got, double expected, double slack);

}  // namespace lockstep
