/// The kernels that are ours, as functions that enqueue them. Pointers are to the card's memory,
/// aligned to 16 bytes; elements are counted in whole rows of kRowElements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>

#include "tools/calibrate/memory_kernels.hpp"

namespace lockstep {

/// What lies in memory: fp8 is E4M3, fp4 E2M1 with two elements in a byte, the first in its low
/// half.
enum class ElementFormat : std::uint8_t { fp16, bf16, fp8, fp4, fp32 };
constexpr std::size_t bits_of(ElementFormat format) {
  switch (format) {
    case ElementFormat::fp4:
      return 4;
    case ElementFormat::fp8:
      return 8;
    case ElementFormat::fp32:
      return 32;
    default:
      return 16;
  }
}

/// Fills with standard normal numbers: random bits switch as many transistors as training does,
/// zeros do not. Requires a number of elements that 16 divides.
void fill_normal(void* out, std::size_t elements, ElementFormat format, cudaStream_t stream);

/// Operands and results of a memory-bound kernel: all 16 bit but for Adam's state.
struct MemoryBuffers {
  const void* first;   ///< x, gate, or the gradient
  const void* second;  ///< the gain (a row) or up
  void* result;        ///< y, or the parameters in 16 bit
  float* state;        ///< Adam: parameters, first and second moments, `elements` of each
};
void launch_memory_kernel(MemoryKernelKind kernel, const MemoryBuffers& buffers,
                          std::size_t elements, cudaStream_t stream);

/// One thread that does nothing.
void launch_empty(cudaStream_t stream);
/// One thread that waits for so many of its multiprocessor's cycles.
void launch_spin(std::int64_t cycles, cudaStream_t stream);

/// Single elements of a product, summed plainly in double: A(i, l) at a[i a_row + l a_column], and
/// so on; `c` as `c_format` says. Scales of blocks are one.
struct ProductCheck {
  const void* a;
  const void* b;
  const void* c;
  ElementFormat operands, c_format;
  std::int64_t m, n, k;
  std::int64_t a_row, a_column, b_row, b_column;  ///< C is m rows of n
};
struct CheckedElement {
  double expected, got;
};
/// Writes `count` of them, at places spread over C.
void launch_product_check(const ProductCheck& product, CheckedElement* out, int count,
                          cudaStream_t stream);

/// Throws CardError where the last launch was refused.
void check_launch(const char* kernel);

}  // namespace lockstep
