/// A collective as it is called, in all its variants, and what every rank then has to hold.
#pragma once

#include "tools/calibrate/communicator.hpp"
#include "tools/calibrate/nccl/library.hpp"
#include "tools/calibrate/nccl/local_gpu.hpp"
#include "tools/calibrate/nccl/pattern.hpp"

namespace lockstep {

/// How the collective is called: as nccl-tests does, or otherwise.
struct CallForm {
  bool bf16 = false, in_place = false, uneven = false;
  Stream LocalGpu::* stream = &LocalGpu::stream;
  ncclComm_t LocalGpu::* comm = &LocalGpu::comm;
  std::size_t offset = 0;  ///< of its buffers in those of the GPU, bytes

  [[nodiscard]] PatternFormat format() const {
    return bf16 ? PatternFormat::bf16 : PatternFormat::fp32;
  }
};

class NcclCall {
 public:
  NcclCall(const CollectiveTask& task, const CallForm& form, int ranks)
      : task_(task), form_(form), ranks_(ranks) {}

  /// "ncclAllReduce".
  [[nodiscard]] const char* name() const;
  [[nodiscard]] const CallForm& form() const { return form_; }
  [[nodiscard]] std::size_t bytes() const;
  /// Of the buffer of results, at most.
  [[nodiscard]] std::size_t result_bytes() const { return (form_.uneven ? 2 : 1) * bytes(); }
  /// Where a rank's input and result lie, and how many elements it puts in.
  [[nodiscard]] std::byte* input(const LocalGpu& gpu) const;
  [[nodiscard]] std::byte* result(const LocalGpu& gpu) const;
  [[nodiscard]] std::size_t input_elements() const;
  /// Enqueues it on one GPU, inside a group.
  [[nodiscard]] ncclResult_t start(const NcclLibrary& nccl, const LocalGpu& gpu) const;
  /// What the rank holds afterwards, where each has put in fill_pattern().
  [[nodiscard]] ExpectedPattern expected(int rank) const;

 private:
  [[nodiscard]] std::size_t elements() const;
  [[nodiscard]] std::size_t share() const { return elements() / static_cast<std::size_t>(ranks_); }
  /// Elements that each rank sends to this one.
  [[nodiscard]] std::size_t share_for(int rank) const;
  [[nodiscard]] std::size_t sent_before(int rank) const;
  [[nodiscard]] ncclResult_t all_to_all(const NcclLibrary& nccl, const LocalGpu& gpu) const;
  [[nodiscard]] int after(int rank) const { return (rank + 1) % ranks_; }
  [[nodiscard]] int before(int rank) const { return (rank + ranks_ - 1) % ranks_; }

  CollectiveTask task_;
  CallForm form_;
  int ranks_;
};

}  // namespace lockstep
