/// Fused attention as cuDNN plans it: the documented pattern of matrix products, softmax and mask,
/// handed to cuDNN as one graph, and the engine that its heuristic puts first.
/// Source of the pattern: NVIDIA cuDNN backend API, "Supported graph patterns", fused attention
/// forward and backward; github.com/NVIDIA/cudnn-frontend builds the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/kernels/attention.hpp"
#include "tools/calibrate/cudnn/attention_graph.hpp"
#include "tools/calibrate/cudnn/descriptor.hpp"

namespace lockstep {

/// For whom plans are made: a handle of the current card, or a card that need not be there.
class AttentionTarget {
 public:
  explicit AttentionTarget(cudnnHandle_t handle) : handle_(handle) {}
  /// `properties`: the JSON that cuDNN itself writes of a card
  /// (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION). Throws TaskFailed where it cannot be read.
  explicit AttentionTarget(const std::string& properties);

 private:
  friend class AttentionPattern;
  friend class AttentionPlan;
  cudnnHandle_t handle_ = nullptr;
  std::optional<CudnnDescriptor> card_;
};

/// The pattern for one shape, and the engines that cuDNN's heuristic has for it.
class AttentionPattern {
 public:
  /// Throws TaskFailed where cuDNN refuses the pattern. A window is not asked for.
  AttentionPattern(const AttentionShape& shape, const AttentionTarget& target);
  /// How many engines there are; without a driver (libcuda) none.
  [[nodiscard]] std::size_t engines() const { return engines_.size(); }

 private:
  friend class AttentionPlan;
  AttentionGraph graph_;
  CudnnDescriptor operations_;
  std::vector<CudnnDescriptor> engines_;  ///< best first
};

class AttentionPlan {
 public:
  /// Compiles the first engine that can be. Throws TaskFailed where none can.
  AttentionPlan(AttentionPattern pattern, const AttentionTarget& target);

  /// Of the card's memory.
  [[nodiscard]] std::size_t workspace() const { return workspace_; }
  /// Which tensors need memory.
  [[nodiscard]] const std::vector<AttentionTensor>& tensors() const {
    return pattern_.graph_.tensors;
  }

  struct Pointer {
    AttentionTensor tensor;
    void* memory;
  };
  /// The arguments of an execution, ready to be used again and again: every tensor needs a pointer,
  /// aligned to 16 bytes.
  [[nodiscard]] CudnnDescriptor arguments(const std::vector<Pointer>& pointers,
                                          void* workspace) const;
  /// Enqueues it. Throws TaskFailed.
  void enqueue(cudnnHandle_t handle, const CudnnDescriptor& arguments) const;

 private:
  AttentionPattern pattern_;
  std::optional<CudnnDescriptor> plan_;
  std::size_t workspace_ = 0;
};

}  // namespace lockstep
