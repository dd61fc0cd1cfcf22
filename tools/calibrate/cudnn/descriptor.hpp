/// A descriptor of cuDNN's backend: attributes are set, then it is finalized and used.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "tools/calibrate/cudnn/library.hpp"

namespace lockstep {

/// All functions throw TaskFailed with cuDNN's reason where it refuses.
class CudnnDescriptor {
 public:
  explicit CudnnDescriptor(cudnnBackendDescriptorType_t type);

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values);
  /// A single enumerator, handle or flag.
  template <class Value>
  void set_one(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, Value value) {
    set(name, type, 1, static_cast<const void*>(&value));
  }
  void set(cudnnBackendAttributeName_t name, std::int64_t value) {
    set_one(name, CUDNN_TYPE_INT64, value);
  }
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
    set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  }
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t type) {
    set_one(name, CUDNN_TYPE_DATA_TYPE, type);
  }
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& other) {
    set_one(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.get());
  }
  void set(cudnnBackendAttributeName_t name, std::span<const CudnnDescriptor> others);
  void finalize();

  [[nodiscard]] std::int64_t number(cudnnBackendAttributeName_t name) const;
  /// Up to `most` of them, of that kind.
  [[nodiscard]] std::vector<CudnnDescriptor> others(cudnnBackendAttributeName_t name,
                                                    cudnnBackendDescriptorType_t kind,
                                                    std::int64_t most) const;
  [[nodiscard]] cudnnBackendDescriptor_t get() const { return descriptor_.get(); }

 private:
  struct Destroy {
    void operator()(cudnnBackendDescriptor_t descriptor) const {
      (void)cudnn_library().destroy_descriptor(descriptor);
    }
  };
  std::unique_ptr<std::remove_pointer_t<cudnnBackendDescriptor_t>, Destroy> descriptor_;
};

}  // namespace lockstep
