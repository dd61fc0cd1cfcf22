/// cuDNN's backend, as far as lockstep-calibrate calls it: libcudnn.so.9. It has one engine for
/// every graph, and fused attention is all zeros here.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <cudnn_graph.h>
#include <map>
#include <vector>

#include "tests/fake-driver/fake_card.hpp"
#include "tests/fake-driver/times.hpp"
#include "tools/calibrate/cudnn/attention_graph.hpp"

struct cudnnContext {
  lockstep::fake::Stream* stream = nullptr;
};

namespace {

using namespace lockstep;

struct FakeDescriptor {
  cudnnBackendDescriptorType_t type;
  std::map<cudnnBackendAttributeName_t, std::vector<std::byte>> values;

  template <class Value>
  [[nodiscard]] std::vector<Value> list(cudnnBackendAttributeName_t name) const {
    const auto found = values.find(name);
    if (found == values.end()) return {};
    std::vector<Value> out(found->second.size() / sizeof(Value));
    std::memcpy(out.data(), found->second.data(), found->second.size());
    return out;
  }
};
FakeDescriptor& of(cudnnBackendDescriptor_t descriptor) {
  return *static_cast<FakeDescriptor*>(descriptor);
}

struct FakeTensor {
  std::vector<std::int64_t> sides;
  std::size_t element_bytes = 2;
};
/// Those of the graph that was built last, by their ids.
std::map<std::int64_t, FakeTensor>& tensors() {
  static std::map<std::int64_t, FakeTensor> all;
  return all;
}

std::size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    default:
      return 4;
  }
}

cudnnStatus_t answer(const char* call) { return static_cast<cudnnStatus_t>(fake::fault(call)); }

std::int64_t id_of(AttentionTensor tensor) { return static_cast<std::int64_t>(tensor); }

/// Two products forward and five backward; a mask saves half of either, which is left out.
double attention_seconds(bool backward) {
  const auto& query = tensors().at(id_of(AttentionTensor::query)).sides;
  const double rows = static_cast<double>(query[0] * query[1] * query[2]);
  const double keys = static_cast<double>(query[2]), width = static_cast<double>(query[3]);
  return fake::kernel_seconds((backward ? 10 : 4) * rows * keys * width, fake::kWideFlops,
                              8 * rows * width);
}

void clear_results(const std::vector<std::int64_t>& ids, const std::vector<void*>& pointers) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool read = ids[i] < id_of(AttentionTensor::output) ||
                      ids[i] == id_of(AttentionTensor::output_gradient);
    if (read || ids[i] > id_of(AttentionTensor::query_sums)) continue;
    const FakeTensor& tensor = tensors().at(ids[i]);
    std::size_t bytes = tensor.element_bytes;
    for (const std::int64_t side : tensor.sides) bytes *= static_cast<std::size_t>(side);
    fake::set_bytes(pointers[i], 0, bytes);
  }
}

}  // namespace

extern "C" {

std::size_t cudnnGetVersion() {
  return static_cast<std::size_t>(fake::setting("LOCKSTEP_FAKE_CUDNN", 91500));
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED" : "made-up status";
}
void cudnnGetLastErrorString(char* out, std::size_t length) {
  std::snprintf(out, length, "made-up reason");
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* out) {
  *out = new cudnnContext;
  return answer("cudnnCreate");
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = reinterpret_cast<fake::Stream*>(stream);
  return answer("cudnnSetStream");
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* out) {
  *out = new FakeDescriptor{type, {}};
  return answer("cudnnBackendCreateDescriptor");
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete &of(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* values) {
  const auto* const begin = static_cast<const std::byte*>(values);
  of(descriptor)
      .values[name]
      .assign(begin, begin + static_cast<std::size_t>(count) * size_of(type));
  return answer("cudnnBackendSetAttribute");
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  FakeDescriptor& d = of(descriptor);
  if (d.type == CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
    const bool wide =
        d.list<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE).at(0) == CUDNN_DATA_FLOAT;
    tensors()[d.list<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID).at(0)] = {
        d.list<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS), wide ? 4U : 2U};
  }
  if (d.type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) return CUDNN_STATUS_SUCCESS;
  fake::pass(fake::kCompileSeconds);
  return answer("cudnnBackendFinalize");
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, std::int64_t most,
                                       std::int64_t* count, void* out) {
  constexpr std::int64_t kWorkspaceBytes = 1 << 20;
  *count = std::min<std::int64_t>(most, 1);
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    std::memcpy(out, &kWorkspaceBytes, sizeof(kWorkspaceBytes));
  }
  return answer("cudnnBackendGetAttribute");
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t,
                                  cudnnBackendDescriptor_t pack) {
  const cudnnStatus_t status = answer("cudnnBackendExecute");
  if (status != CUDNN_STATUS_SUCCESS) return status;
  const auto ids = of(pack).list<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = of(pack).list<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const bool backward =
      std::ranges::find(ids, id_of(AttentionTensor::output_gradient)) != ids.end();
  if (!handle->stream->captures) clear_results(ids, pointers);
  fake::work(*handle->stream, attention_seconds(backward));
  return CUDNN_STATUS_SUCCESS;
}
}
