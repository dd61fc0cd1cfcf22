/// The CUDA runtime, as far as lockstep-calibrate calls it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime_api.h>
#include <utility>

#include "tests/fake-driver/fake_card.hpp"
#include "tests/fake-driver/kernels.hpp"
#include "tests/fake-driver/times.hpp"

namespace {

using namespace lockstep;

fake::Stream& of(cudaStream_t stream) { return *reinterpret_cast<fake::Stream*>(stream); }
fake::Event& of(cudaEvent_t event) { return *reinterpret_cast<fake::Event*>(event); }

/// What cudaGetLastError() gives next.
cudaError_t last = cudaSuccess;

cudaError_t answer(const char* call) {
  const auto status = static_cast<cudaError_t>(fake::fault(call));
  if (status != cudaSuccess) last = status;
  return status;
}

/// A graph is nothing but the time that it takes.
struct FakeGraph {
  double seconds;
};

struct LaunchConfiguration {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};
LaunchConfiguration pushed;

cudaError_t launch(const void* function, dim3 grid, void** args, cudaStream_t stream) {
  const cudaError_t status = answer("cudaLaunchKernel");
  if (status != cudaSuccess) return status;
  const fake::KernelCall call{function, static_cast<std::size_t>(grid.x), args};
  if (!of(stream).captures) fake::take_effect(call);
  fake::work(of(stream), fake::seconds_of(call));
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = fake::cards();
  if (*count == 0) return cudaErrorNoDevice;
  return answer("cudaGetDeviceCount");
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out, int) {
  *out = {};
  const bool blackwell = fake::is_blackwell();
  std::strncpy(out->name, blackwell ? "NVIDIA B200" : "NVIDIA H100 80GB HBM3",
               sizeof(out->name) - 1);
  out->major = blackwell ? 10 : 9;
  out->minor = 0;
  out->multiProcessorCount = 132;
  out->l2CacheSize = (blackwell ? 126 : 50) << 20;
  out->totalGlobalMem = fake::kCardMemory;
  return answer("cudaGetDeviceProperties");
}
cudaError_t cudaDeviceGetPCIBusId(char* out, int length, int device) {
  std::snprintf(out, static_cast<std::size_t>(length), "0000:%02X:00.0", device + 1);
  return answer("cudaDeviceGetPCIBusId");
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= fake::cards()) return cudaErrorInvalidDevice;
  fake::choose_card(device);
  return answer("cudaSetDevice");
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return answer("cudaDeviceGetStreamPriorityRange");
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return answer("cudaRuntimeGetVersion");
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return answer("cudaDriverGetVersion");
}
cudaError_t cudaGetLastError() { return std::exchange(last, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    default:
      return "made-up error";
  }
}

cudaError_t cudaMalloc(void** out, std::size_t bytes) {
  const cudaError_t status = answer("cudaMalloc");
  if (status != cudaSuccess) return status;
  *out = fake::allocate(bytes);
  return *out == nullptr ? (last = cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  fake::release(memory);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** out, std::size_t bytes) {
  *out = std::malloc(bytes);
  return answer("cudaMallocHost");
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = fake::kCardMemory;
  *free = fake::kCardMemory - fake::kReserved - fake::used_memory();
  return answer("cudaMemGetInfo");
}
/// Large copies take their time, but only their beginning is moved.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  constexpr std::size_t kMoved = std::size_t{1} << 20;
  const cudaError_t status = answer("cudaMemcpyAsync");
  if (status != cudaSuccess) return status;
  std::memcpy(to, from, std::min(bytes, kMoved));
  fake::work(of(stream),
             fake::kKernelSeconds + static_cast<double>(bytes) / fake::kHostBytesPerSecond);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  const cudaError_t status = answer("cudaMemsetAsync");
  if (status != cudaSuccess) return status;
  fake::set_bytes(memory, value, bytes);
  fake::work(of(stream), fake::kernel_seconds(0, 1, static_cast<double>(bytes)));
  return cudaSuccess;
}
/// Scales of blocks: no result here depends on them.
cudaError_t cudaMemset2DAsync(void*, std::size_t, int, std::size_t width, std::size_t height,
                              cudaStream_t stream) {
  fake::work(of(stream), fake::kernel_seconds(0, 1, static_cast<double>(width * height)));
  return answer("cudaMemset2DAsync");
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned, int) {
  *out = reinterpret_cast<cudaStream_t>(new fake::Stream);
  return answer("cudaStreamCreateWithPriority");
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete &of(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const cudaError_t status = answer("cudaStreamSynchronize");
  fake::wait_until(of(stream).free_at);
  return status;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const cudaError_t status = answer("cudaStreamQuery");
  if (status != cudaSuccess) return status;
  return of(stream).free_at > fake::now() ? (last = cudaErrorNotReady) : cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  of(stream).free_at = std::max(of(stream).free_at, of(event).at);
  return answer("cudaStreamWaitEvent");
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const cudaError_t status = answer("cudaStreamBeginCapture");
  if (status != cudaSuccess) return status;
  of(stream).captures = true;
  of(stream).captured = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  of(stream).captures = false;
  *graph = reinterpret_cast<cudaGraph_t>(new FakeGraph{of(stream).captured});
  return answer("cudaStreamEndCapture");
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t graph,
                                          unsigned long long) {
  const cudaError_t status = answer("cudaGraphInstantiateWithFlags");
  if (status != cudaSuccess) return status;
  *out = reinterpret_cast<cudaGraphExec_t>(new FakeGraph(*reinterpret_cast<FakeGraph*>(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<FakeGraph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete reinterpret_cast<FakeGraph*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  const cudaError_t status = answer("cudaGraphLaunch");
  if (status != cudaSuccess) return status;
  fake::work(of(stream), reinterpret_cast<FakeGraph*>(graph)->seconds);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* out) {
  *out = reinterpret_cast<cudaEvent_t>(new fake::Event);
  return answer("cudaEventCreate");
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &of(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const cudaError_t status = answer("cudaEventRecord");
  of(event).at = fake::done_at(of(stream));
  return status;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const cudaError_t status = answer("cudaEventSynchronize");
  fake::wait_until(of(event).at);
  return status;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = static_cast<float>((of(end).at - of(begin).at) * 1e3);
  return answer("cudaEventElapsedTime");
}

// What nvcc writes into an object: its kernels are registered before main() and launched by these.
void** __cudaRegisterFatBinary(void*) {
  static void* none = nullptr;
  return &none;
}
void __cudaRegisterFatBinaryEnd(void**) {}
char __cudaInitModule(void**) { return 1; }  // objects made without -O call it
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  fake::register_kernel(function, name);
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                     cudaStream_t stream) {
  pushed = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  *grid = pushed.grid;
  *block = pushed.block;
  *shared = pushed.shared;
  *static_cast<cudaStream_t*>(stream) = pushed.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3, void** args, std::size_t,
                               cudaStream_t stream) {
  return launch(reinterpret_cast<const void*>(kernel), grid, args, stream);
}
/// Before CUDA 13.
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3, void** args, std::size_t,
                             cudaStream_t stream) {
  return launch(function, grid, args, stream);
}
}
