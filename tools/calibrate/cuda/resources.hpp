/// Owners of what CUDA hands out: freed when they go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "tools/calibrate/cuda/check.hpp"

namespace lockstep {

/// Memory of the card.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes);
  [[nodiscard]] std::byte* at(std::size_t offset) const { return memory_.get() + offset; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { (void)cudaFree(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_;
};

/// Page-locked memory of the host.
class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t bytes);
  [[nodiscard]] std::byte* data() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { (void)cudaFreeHost(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

enum class StreamPriority : std::uint8_t { usual, highest };

class Stream {
 public:
  explicit Stream(StreamPriority priority = StreamPriority::usual);
  [[nodiscard]] cudaStream_t get() const { return stream_.get(); }
  void wait() const { check(cudaStreamSynchronize(get()), "cudaStreamSynchronize"); }
  /// What comes next in it waits for what the event has recorded.
  void wait_behind(cudaEvent_t event) const {
    check(cudaStreamWaitEvent(get(), event, 0), "cudaStreamWaitEvent");
  }

 private:
  struct Destroy {
    void operator()(cudaStream_t stream) const { (void)cudaStreamDestroy(stream); }
  };
  std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy> stream_;
};

class Event {
 public:
  Event();
  [[nodiscard]] cudaEvent_t get() const { return event_.get(); }
  void record(const Stream& stream) const {
    check(cudaEventRecord(event_.get(), stream.get()), "cudaEventRecord");
  }
  void wait() const { check(cudaEventSynchronize(event_.get()), "cudaEventSynchronize"); }
  /// Since the other event; both have happened.
  [[nodiscard]] double seconds_since(const Event& earlier) const;

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const { (void)cudaEventDestroy(event); }
  };
  std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy> event_;
};

/// What `enqueue` put into the stream, ready to be launched as one.
class Graph {
 public:
  Graph(const Stream& stream, const std::function<void()>& enqueue);
  void launch(const Stream& stream) const {
    check(cudaGraphLaunch(graph_.get(), stream.get()), "cudaGraphLaunch");
  }

 private:
  struct Destroy {
    void operator()(cudaGraphExec_t graph) const { (void)cudaGraphExecDestroy(graph); }
  };
  std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy> graph_;
};

/// Copies `count` elements from the card, behind what is in the stream.
template <class Element>
std::vector<Element> fetch(const void* from, std::size_t count, const Stream& stream) {
  std::vector<Element> out(count);
  check(cudaMemcpyAsync(out.data(), from, count * sizeof(Element), cudaMemcpyDeviceToHost,
                        stream.get()),
        "cudaMemcpyAsync");
  stream.wait();
  return out;
}

}  // namespace lockstep
