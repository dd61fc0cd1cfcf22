#include "tools/calibrate/nccl/ranks.hpp"

#include <cassert>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <thread>

namespace lockstep {

double steady_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
void pause_for(Seconds time) {
  std::this_thread::sleep_for(std::chrono::duration<double>(time.base_units()));
}

NcclRanks::NcclRanks(const NcclLibrary& nccl, std::vector<std::unique_ptr<LocalGpu>> gpus,
                     const CommunicatorStart& start)
    : nccl_(nccl),
      gpus_(std::move(gpus)),
      count_(start.launch.ranks > 1 ? start.launch.ranks : static_cast<int>(gpus_.size())),
      guard_([give_up = start.give_up](const char* call) {
        give_up(fmt::format("{} did not come back within {:.0f} s; is every rank still there?",
                            call, kPatience.base_units()));
      }) {}

void NcclRanks::join(const ncclUniqueId& id, ncclComm_t LocalGpu::* communicator) {
  together("ncclCommInitRank", [&](LocalGpu& gpu) {
    return nccl_.comm_init_rank(&(gpu.*communicator), count_, id, gpu.rank);
  });
}

void NcclRanks::join_second() {
  if (first().second_comm != nullptr) return;
  ncclUniqueId id{};
  if (first().rank == 0) nccl_.check(nccl_.get_unique_id(&id), "ncclGetUniqueId");
  // Who has none has zeros, so that the largest of each byte is rank 0's.
  std::vector<double> bytes;
  for (std::size_t at = 0; at < sizeof(id.internal); at += LocalGpu::kMostAgreed) {
    std::vector<double> part(LocalGpu::kMostAgreed);
    for (std::size_t i = 0; i < part.size(); ++i) {
      part[i] = static_cast<unsigned char>(id.internal[at + i]);
    }
    for (const double byte : largest(part)) bytes.push_back(byte);
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    id.internal[i] = static_cast<char>(static_cast<unsigned char>(bytes[i]));
  }
  join(id, &LocalGpu::second_comm);
}
static_assert(sizeof(ncclUniqueId) % LocalGpu::kMostAgreed == 0);

void NcclRanks::leave(bool failed) {
  const HangGuard::Watched watched(guard_, failed ? "ncclCommAbort" : "ncclCommDestroy", kPatience);
  for (const auto& gpu : gpus_) {
    (void)cudaSetDevice(gpu->device);
    for (ncclComm_t* comm : {&gpu->second_comm, &gpu->comm}) {
      if (*comm == nullptr) continue;
      (void)(failed ? nccl_.comm_abort(*comm) : nccl_.comm_destroy(*comm));
      *comm = nullptr;
    }
  }
}

void NcclRanks::wait() const {
  const double start = steady_now();
  each([&](const LocalGpu& gpu) {
    wait_for(gpu, gpu.stream, start);
    wait_for(gpu, gpu.urgent, start);
  });
}

void NcclRanks::wait_for(const LocalGpu& gpu, const Stream& stream, double start) const {
  constexpr Seconds kBetweenLooks{50e-6};
  for (;;) {
    const cudaError_t status = cudaStreamQuery(stream.get());
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) check(status, "cudaStreamQuery");
    (void)cudaGetLastError();  // "not ready" is no error of the next launch
    for (ncclComm_t comm : {gpu.comm, gpu.second_comm}) {
      if (comm == nullptr) continue;
      ncclResult_t state = ncclSuccess;
      nccl_.check(nccl_.comm_get_async_error(comm, &state), "ncclCommGetAsyncError");
      if (state != ncclInProgress) nccl_.check(state, "a collective");
    }
    if (steady_now() - start > kPatience.base_units()) {
      throw CardError(
          fmt::format("a collective did not end within {:.0f} s", kPatience.base_units()));
    }
    pause_for(kBetweenLooks);
  }
}

std::vector<double> NcclRanks::largest(std::vector<double> values) {
  assert(!values.empty() && values.size() <= LocalGpu::kMostAgreed);
  const std::size_t bytes = values.size() * sizeof(double);
  each([&](const LocalGpu& gpu) {
    std::memcpy(gpu.host_numbers(), values.data(), bytes);
    check(cudaMemcpyAsync(gpu.numbers(), gpu.host_numbers(), bytes, cudaMemcpyHostToDevice,
                          gpu.stream.get()),
          "cudaMemcpyAsync");
  });
  together("ncclAllReduce", [&](const LocalGpu& gpu) {
    return nccl_.all_reduce(gpu.numbers(), gpu.numbers(), values.size(), ncclDouble, ncclMax,
                            gpu.comm, gpu.stream.get());
  });
  each([&](const LocalGpu& gpu) {
    check(cudaMemcpyAsync(gpu.host_numbers(), gpu.numbers(), bytes, cudaMemcpyDeviceToHost,
                          gpu.stream.get()),
          "cudaMemcpyAsync");
  });
  wait();
  std::memcpy(values.data(), first().host_numbers(), bytes);
  return values;
}

}  // namespace lockstep
