#include "tools/calibrate/cudnn/descriptor.hpp"

#include <algorithm>

#include "tools/calibrate/card.hpp"

namespace lockstep {
namespace {

void require(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) throw TaskFailed(cudnn_library().failure(status, call));
}

cudnnBackendDescriptor_t created(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t out = nullptr;
  require(cudnn_library().create_descriptor(type, &out), "cudnnBackendCreateDescriptor");
  return out;
}

}  // namespace

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type) : descriptor_(created(type)) {}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          std::int64_t count, const void* values) {
  require(cudnn_library().set_attribute(get(), name, type, count, values),
          "cudnnBackendSetAttribute");
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name,
                          std::span<const CudnnDescriptor> others) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const CudnnDescriptor& other : others) raw.push_back(other.get());
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(raw.size()),
      static_cast<const void*>(raw.data()));
}

void CudnnDescriptor::finalize() {
  require(cudnn_library().finalize(get()), "cudnnBackendFinalize");
}

std::int64_t CudnnDescriptor::number(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0, count = 0;
  require(cudnn_library().get_attribute(get(), name, CUDNN_TYPE_INT64, 1, &count, &value),
          "cudnnBackendGetAttribute");
  return value;
}

std::vector<CudnnDescriptor> CudnnDescriptor::others(cudnnBackendAttributeName_t name,
                                                     cudnnBackendDescriptorType_t kind,
                                                     std::int64_t most) const {
  // cuDNN fills descriptors that are there already.
  std::vector<CudnnDescriptor> out;
  std::vector<cudnnBackendDescriptor_t> raw;
  raw.reserve(static_cast<std::size_t>(most));
  for (std::int64_t i = 0; i < most; ++i) raw.push_back(out.emplace_back(kind).get());
  std::int64_t count = 0;
  require(cudnn_library().get_attribute(get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &count,
                                        static_cast<void*>(raw.data())),
          "cudnnBackendGetAttribute");
  out.erase(out.begin() + std::min(count, most), out.end());
  return out;
}

}  // namespace lockstep
