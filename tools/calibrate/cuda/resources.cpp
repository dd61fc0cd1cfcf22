#include "tools/calibrate/cuda/resources.hpp"

namespace lockstep {
namespace {

std::byte* allocate(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  return static_cast<std::byte*>(memory);
}
std::byte* allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
  return static_cast<std::byte*>(memory);
}
cudaStream_t create_stream(StreamPriority priority) {
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                     priority == StreamPriority::highest ? greatest : least),
        "cudaStreamCreateWithPriority");
  return stream;
}
cudaEvent_t create_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "cudaEventCreate");
  return event;
}

/// The graph before it is made executable.
struct DestroyGraph {
  void operator()(cudaGraph_t graph) const { (void)cudaGraphDestroy(graph); }
};
using Template = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

Template captured(const Stream& stream, const std::function<void()>& enqueue) {
  check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    // The stream has to leave its capture, whatever that gives.
    (void)cudaStreamEndCapture(stream.get(), &graph);
    (void)Template(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
  return Template(graph);
}

cudaGraphExec_t instantiate(const Stream& stream, const std::function<void()>& enqueue) {
  const Template graph = captured(stream, enqueue);
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiateWithFlags(&executable, graph.get(), 0),
        "cudaGraphInstantiateWithFlags");
  return executable;
}

}  // namespace

DeviceMemory::DeviceMemory(std::size_t bytes) : memory_(allocate(bytes)), size_(bytes) {}
PinnedMemory::PinnedMemory(std::size_t bytes) : memory_(allocate_pinned(bytes)) {}
Stream::Stream(StreamPriority priority) : stream_(create_stream(priority)) {}
Event::Event() : event_(create_event()) {}

double Event::seconds_since(const Event& earlier) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, earlier.event_.get(), event_.get()),
        "cudaEventElapsedTime");
  return double{milliseconds} * 1e-3;
}

Graph::Graph(const Stream& stream, const std::function<void()>& enqueue)
    : graph_(instantiate(stream, enqueue)) {}

}  // namespace lockstep
