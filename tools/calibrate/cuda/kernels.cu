#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "tools/calibrate/cuda/check.hpp"
#include "tools/calibrate/cuda/kernels.hpp"

namespace lockstep {
namespace {

/// A thread moves 16 bytes at a time.
constexpr int kWide = 8;
constexpr int kRowThreads = kRowElements / kWide;
constexpr int kThreads = 256;
constexpr unsigned kFillBlocks = 4096;
constexpr int kWarp = 32;
constexpr unsigned kWholeWarp = 0xFFFFFFFFU;
static_assert(kRowThreads % kWarp == 0 && kRowThreads <= 1024);

struct alignas(16) Wide {
  __nv_bfloat16 x[kWide];
};

/// The finaliser of MurmurHash3: every bit of the result hangs on every bit of the counter.
__device__ std::uint32_t hashed(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDULL;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53ULL;
  x ^= x >> 33;
  return static_cast<std::uint32_t>(x >> 16);
}

/// Box and Muller: a standard normal number for each counter.
__device__ float normal(std::uint64_t counter) {
  constexpr float kStep = 1.0F / 4294967808.0F;  // so that 0 < u < 1 in single precision too
  const float u = (static_cast<float>(hashed(2 * counter)) + 0.5F) * kStep;
  const float v = (static_cast<float>(hashed(2 * counter + 1)) + 0.5F) * kStep;
  return sqrtf(-2.0F * logf(u)) * cospif(2.0F * v);
}

__device__ void store(float value, __half& out) { out = __float2half_rn(value); }
__device__ void store(float value, __nv_bfloat16& out) { out = __float2bfloat16_rn(value); }
__device__ void store(float value, __nv_fp8_e4m3& out) { out = __nv_fp8_e4m3(value); }
__device__ void store(float value, float& out) { out = value; }

/// The nearest number of E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
__device__ unsigned e2m1_of(float value) {
  const float size = fabsf(value);
  const unsigned code = (size > 0.25F) + (size > 0.75F) + (size > 1.25F) + (size > 1.75F) +
                        (size > 2.5F) + (size > 3.5F) + (size > 5.0F);
  return code | (value < 0 ? 8U : 0U);
}
__device__ float from_e2m1(unsigned code) {
  const unsigned exponent = (code >> 1) & 3U, fraction = code & 1U;
  const float size = exponent == 0 ? 0.5F * static_cast<float>(fraction)
                                   : ldexpf(1.0F + 0.5F * static_cast<float>(fraction),
                                            static_cast<int>(exponent) - 1);
  return (code & 8U) != 0 ? -size : size;
}
/// Two elements of E2M1.
struct PairOfFour {
  unsigned char bits;
};

template <class Element>
__global__ void fill_kernel(Element* out, std::size_t elements) {
  const std::size_t step = std::size_t{blockDim.x} * gridDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < elements;
       i += step) {
    store(normal(i), out[i]);
  }
}

__global__ void fill_pairs_kernel(PairOfFour* out, std::size_t pairs) {
  const std::size_t step = std::size_t{blockDim.x} * gridDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < pairs; i += step) {
    const unsigned low = e2m1_of(normal(2 * i)), high = e2m1_of(normal(2 * i + 1));
    out[i].bits = static_cast<unsigned char>(low | (high << 4));
  }
}

/// Sum or maximum over a block of kRowThreads threads, the same in each of them.
template <class Combine>
__device__ float over_block(float value, Combine combine) {
  __shared__ float of_warp[kRowThreads / kWarp];
  for (int apart = kWarp / 2; apart > 0; apart /= 2) {
    value = combine(value, __shfl_xor_sync(kWholeWarp, value, apart));
  }
  __syncthreads();  // what an earlier call left has been read
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
  __syncthreads();
  float all = of_warp[0];
  for (int warp = 1; warp < kRowThreads / kWarp; ++warp) all = combine(all, of_warp[warp]);
  return all;
}
struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Maximum {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

__global__ void copy_kernel(const Wide* x, Wide* y) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  y[i] = x[i];
}

/// A block a row: it stays in registers, so that it is read once.
__global__ void rms_norm_kernel(const Wide* x, const Wide* gain, Wide* y) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const Wide in = x[i], g = gain[threadIdx.x];
  float squares = 0;
  for (int j = 0; j < kWide; ++j) {
    const float value = __bfloat162float(in.x[j]);
    squares += value * value;
  }
  const float scale = rsqrtf(over_block(squares, Sum{}) / kRowElements + 1e-5F);
  Wide out;
  for (int j = 0; j < kWide; ++j) {
    out.x[j] = __float2bfloat16_rn(__bfloat162float(in.x[j]) * scale * __bfloat162float(g.x[j]));
  }
  y[i] = out;
}

__global__ void silu_gate_kernel(const Wide* gate, const Wide* up, Wide* y) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const Wide g = gate[i], u = up[i];
  Wide out;
  for (int j = 0; j < kWide; ++j) {
    const float value = __bfloat162float(g.x[j]);
    out.x[j] = __float2bfloat16_rn(value / (1 + __expf(-value)) * __bfloat162float(u.x[j]));
  }
  y[i] = out;
}

__global__ void softmax_kernel(const Wide* x, Wide* y) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const Wide in = x[i];
  float value[kWide];
  float top = __bfloat162float(in.x[0]);
  for (int j = 0; j < kWide; ++j) {
    value[j] = __bfloat162float(in.x[j]);
    top = fmaxf(top, value[j]);
  }
  top = over_block(top, Maximum{});
  float sum = 0;
  for (int j = 0; j < kWide; ++j) {
    value[j] = __expf(value[j] - top);
    sum += value[j];
  }
  const float share = 1 / over_block(sum, Sum{});
  Wide out;
  for (int j = 0; j < kWide; ++j) out.x[j] = __float2bfloat16_rn(value[j] * share);
  y[i] = out;
}

/// Four elements a thread: 16 bytes of each array of 32 bit.
struct alignas(8) FourNarrow {
  __nv_bfloat16 x[4];
};
__device__ void adam_update(float& p, float& m, float& v, float g, const AdamConstants& c) {
  m = c.beta1 * m + (1 - c.beta1) * g;
  v = c.beta2 * v + (1 - c.beta2) * g * g;
  const float m_hat = m / (1 - c.beta1), v_hat = v / (1 - c.beta2);
  p -= c.rate * (m_hat / (sqrtf(v_hat) + c.epsilon) + c.decay * p);
}
__global__ void adam_kernel(float4* p, float4* m, float4* v, const FourNarrow* gradient,
                            FourNarrow* copy, AdamConstants c) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  float4 pi = p[i], mi = m[i], vi = v[i];
  const FourNarrow g = gradient[i];
  adam_update(pi.x, mi.x, vi.x, __bfloat162float(g.x[0]), c);
  adam_update(pi.y, mi.y, vi.y, __bfloat162float(g.x[1]), c);
  adam_update(pi.z, mi.z, vi.z, __bfloat162float(g.x[2]), c);
  adam_update(pi.w, mi.w, vi.w, __bfloat162float(g.x[3]), c);
  p[i] = pi;
  m[i] = mi;
  v[i] = vi;
  FourNarrow out;
  out.x[0] = __float2bfloat16_rn(pi.x);
  out.x[1] = __float2bfloat16_rn(pi.y);
  out.x[2] = __float2bfloat16_rn(pi.z);
  out.x[3] = __float2bfloat16_rn(pi.w);
  copy[i] = out;
}

__global__ void empty_kernel() {}
__global__ void spin_kernel(std::int64_t cycles) {
  const std::int64_t start = clock64();
  while (clock64() - start < cycles) {
  }
}

__device__ double element(const void* from, ElementFormat format, std::int64_t i) {
  switch (format) {
    case ElementFormat::fp16:
      return __half2float(static_cast<const __half*>(from)[i]);
    case ElementFormat::bf16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(from)[i]);
    case ElementFormat::fp8:
      return static_cast<float>(static_cast<const __nv_fp8_e4m3*>(from)[i]);
    case ElementFormat::fp4: {
      const unsigned pair = static_cast<const PairOfFour*>(from)[i / 2].bits;
      return from_e2m1(i % 2 == 0 ? pair & 15U : pair >> 4);
    }
    case ElementFormat::fp32:
      return static_cast<const float*>(from)[i];
  }
  return 0;
}

/// A warp an element.
__global__ void product_check_kernel(ProductCheck p, CheckedElement* out) {
  // The corners come first: there a wrong shape shows.
  const std::uint64_t s = blockIdx.x;
  const std::int64_t i =
      s < 2 ? 0 : (s < 4 ? p.m - 1 : static_cast<std::int64_t>(hashed(2 * s)) % p.m);
  const std::int64_t j =
      s < 4 ? (s % 2) * (p.n - 1) : static_cast<std::int64_t>(hashed(2 * s + 1)) % p.n;
  double sum = 0;
  for (std::int64_t l = threadIdx.x; l < p.k; l += kWarp) {
    sum += element(p.a, p.operands, i * p.a_row + l * p.a_column) *
           element(p.b, p.operands, l * p.b_row + j * p.b_column);
  }
  for (int apart = kWarp / 2; apart > 0; apart /= 2) {
    sum += __shfl_xor_sync(kWholeWarp, sum, apart);
  }
  if (threadIdx.x == 0) out[blockIdx.x] = {sum, element(p.c, p.c_format, i * p.n + j)};
}

template <class Element>
void fill(void* out, std::size_t elements, cudaStream_t stream) {
  fill_kernel<<<kFillBlocks, kThreads, 0, stream>>>(static_cast<Element*>(out), elements);
}

}  // namespace

void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

void fill_normal(void* out, std::size_t elements, ElementFormat format, cudaStream_t stream) {
  switch (format) {
    case ElementFormat::fp16:
      fill<__half>(out, elements, stream);
      break;
    case ElementFormat::bf16:
      fill<__nv_bfloat16>(out, elements, stream);
      break;
    case ElementFormat::fp8:
      fill<__nv_fp8_e4m3>(out, elements, stream);
      break;
    case ElementFormat::fp4:
      fill_pairs_kernel<<<kFillBlocks, kThreads, 0, stream>>>(static_cast<PairOfFour*>(out),
                                                              elements / 2);
      break;
    case ElementFormat::fp32:
      fill<float>(out, elements, stream);
      break;
  }
  check_launch("fill_kernel");
}

void launch_memory_kernel(MemoryKernelKind kernel, const MemoryBuffers& buffers,
                          std::size_t elements, cudaStream_t stream) {
  const auto rows = static_cast<unsigned>(elements / kRowElements);
  const auto* first = static_cast<const Wide*>(buffers.first);
  const auto* second = static_cast<const Wide*>(buffers.second);
  auto* result = static_cast<Wide*>(buffers.result);
  switch (kernel) {
    case MemoryKernelKind::copy:
      copy_kernel<<<rows, kRowThreads, 0, stream>>>(first, result);
      break;
    case MemoryKernelKind::rms_norm:
      rms_norm_kernel<<<rows, kRowThreads, 0, stream>>>(first, second, result);
      break;
    case MemoryKernelKind::silu_gate:
      silu_gate_kernel<<<rows, kRowThreads, 0, stream>>>(first, second, result);
      break;
    case MemoryKernelKind::softmax:
      softmax_kernel<<<rows, kRowThreads, 0, stream>>>(first, result);
      break;
    case MemoryKernelKind::adam: {
      auto* p = reinterpret_cast<float4*>(buffers.state);
      const std::size_t apart = elements / 4;
      const auto blocks = static_cast<unsigned>(apart / kThreads);
      adam_kernel<<<blocks, kThreads, 0, stream>>>(
          p, p + apart, p + 2 * apart, static_cast<const FourNarrow*>(buffers.first),
          static_cast<FourNarrow*>(buffers.result), AdamConstants{});
      break;
    }
  }
  check_launch("a memory-bound kernel");
}

void launch_empty(cudaStream_t stream) {
  empty_kernel<<<1, 1, 0, stream>>>();
  check_launch("empty_kernel");
}
void launch_spin(std::int64_t cycles, cudaStream_t stream) {
  spin_kernel<<<1, 1, 0, stream>>>(cycles);
  check_launch("spin_kernel");
}

void launch_product_check(const ProductCheck& product, CheckedElement* out, int count,
                          cudaStream_t stream) {
  product_check_kernel<<<static_cast<unsigned>(count), kWarp, 0, stream>>>(product, out);
  check_launch("product_check_kernel");
}

}  // namespace lockstep
