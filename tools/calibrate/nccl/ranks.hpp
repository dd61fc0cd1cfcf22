/// The GPUs of this process as ranks of a communicator: calls on all of them at once, and waiting
/// for what was called.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tools/calibrate/communicator.hpp"
#include "tools/calibrate/hang_guard.hpp"
#include "tools/calibrate/nccl/library.hpp"
#include "tools/calibrate/nccl/local_gpu.hpp"

namespace lockstep {

/// For ranks to come, for a call of NCCL, for work to end: what is not there by then never comes.
/// Long enough for a network file system to show new files, a minute by default (nfs(5), acdirmax).
constexpr Seconds kPatience{120};

/// Functions throw CardError, and those of CUDA TaskFailed, on this process alone.
class NcclRanks {
 public:
  NcclRanks(const NcclLibrary& nccl, std::vector<std::unique_ptr<LocalGpu>> gpus,
            const CommunicatorStart& start);

  [[nodiscard]] const NcclLibrary& nccl() const { return nccl_; }
  /// In the whole communicator.
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] LocalGpu& first() const { return *gpus_.front(); }

  /// Opens the communicator that all ranks know by its id.
  void join(const ncclUniqueId& id, ncclComm_t LocalGpu::* communicator);
  /// Opens each GPU's second communicator, where there is none yet; rank 0 makes its id.
  void join_second();
  /// Ends the communicators; afterwards there are none.
  void leave(bool failed);

  /// Calls once for each GPU of this process, as one to NCCL.
  template <class Call>
  void together(const char* name, const Call& call) {
    const HangGuard::Watched watched(guard_, name, kPatience);
    nccl_.check(nccl_.group_start(), "ncclGroupStart");
    ncclResult_t status = ncclSuccess;
    for (const auto& gpu : gpus_) {
      // A group that was begun has to be ended, whatever a call gives.
      if (cudaSetDevice(gpu->device) != cudaSuccess) status = ncclUnhandledCudaError;
      if (status == ncclSuccess) status = call(*gpu);
    }
    const ncclResult_t end = nccl_.group_end();
    nccl_.check(status, name);
    nccl_.check(end, name);
  }
  template <class Call>
  void each(const Call& call) const {
    for (const auto& gpu : gpus_) {
      gpu->use();
      call(*gpu);
    }
  }

  /// Waits for all streams of all GPUs, and looks meanwhile whether a rank is gone.
  void wait() const;
  /// The same for another stream of one of them. `start`: of the waiting, by steady_now().
  void wait_for(const LocalGpu& gpu, const Stream& stream, double start) const;
  /// Of each number the largest over all ranks; LocalGpu::kMostAgreed at most.
  std::vector<double> largest(std::vector<double> values);

 private:
  const NcclLibrary& nccl_;
  std::vector<std::unique_ptr<LocalGpu>> gpus_;
  int count_;
  HangGuard guard_;
};

double steady_now();
void pause_for(Seconds time);

}  // namespace lockstep
