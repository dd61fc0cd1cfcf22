/// One rank: a card of this process with its stream, buffers and communicator.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "tools/calibrate/cuda/products.hpp"
#include "tools/calibrate/cuda/resources.hpp"
#include "tools/calibrate/nccl/library.hpp"
#include "tools/calibrate/nvml.hpp"

namespace lockstep {

struct LocalGpu {
  /// Requires that the device is the current one.
  LocalGpu(int its_device, int its_rank, std::string its_name, std::unique_ptr<Nvml> its_nvml);

  /// Numbers that ranks can agree on at once, and what a rank says of itself.
  static constexpr std::size_t kMostAgreed = 64, kLabel = 512;

  int device, rank;
  std::string name;
  std::unique_ptr<Nvml> nvml;
  Stream stream;
  Stream urgent{StreamPriority::highest};
  Event begin, end, other_end;
  DeviceMemory control{kMostAgreed * sizeof(double)};
  PinnedMemory host_control{kMostAgreed * sizeof(double)};
  std::unique_ptr<DeviceMemory> labels, sent, received;
  ncclComm_t comm = nullptr, second_comm = nullptr;

  /// Makes the card the current one.
  void use() const { check(cudaSetDevice(device), "cudaSetDevice"); }
  [[nodiscard]] double* numbers() const { return reinterpret_cast<double*>(control.at(0)); }
  [[nodiscard]] double* host_numbers() const {
    return reinterpret_cast<double*>(host_control.data());
  }
};

/// Products on a stream of their own, beside a rank's collectives.
struct BesideWork {
  explicit BesideWork(const ProductTask& task) : product(task) {}
  ProductLoop product;
  Stream stream;
  Event go, begin, end;

  void enqueue(int count) const {
    for (int i = 0; i < count; ++i) product.enqueue(stream);
  }
};

}  // namespace lockstep
