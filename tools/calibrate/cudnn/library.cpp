#include "tools/calibrate/cudnn/library.hpp"

#include <array>
#include <dlfcn.h>
#include <fmt/format.h>

#include "tools/calibrate/card.hpp"

namespace lockstep {
namespace {

constexpr const char* kCudnnName = "libcudnn.so.9";
/// The first whose plans can be made for a card that is not there, which the tests do.
constexpr std::size_t kOldestCudnn = 90800;

template <class Function>
void load_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) {
    throw CardUnavailable(fmt::format("{} has no {}", kCudnnName, name));
  }
}

CudnnLibrary loaded_cudnn() {
  void* library = dlopen(kCudnnName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) library = dlopen(LOCKSTEP_CUDNN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw CardUnavailable(fmt::format("cuDNN could not be loaded: {}", dlerror()));
  }
  CudnnLibrary out{};
  load_function(library, "cudnnGetVersion", out.get_version);
  load_function(library, "cudnnGetErrorString", out.get_error_string);
  load_function(library, "cudnnGetLastErrorString", out.get_last_error);
  load_function(library, "cudnnCreate", out.create);
  load_function(library, "cudnnDestroy", out.destroy);
  load_function(library, "cudnnSetStream", out.set_stream);
  load_function(library, "cudnnBackendCreateDescriptor", out.create_descriptor);
  load_function(library, "cudnnBackendDestroyDescriptor", out.destroy_descriptor);
  load_function(library, "cudnnBackendSetAttribute", out.set_attribute);
  load_function(library, "cudnnBackendGetAttribute", out.get_attribute);
  load_function(library, "cudnnBackendFinalize", out.finalize);
  load_function(library, "cudnnBackendExecute", out.execute);
  if (out.get_version() < kOldestCudnn) {
    throw CardUnavailable(fmt::format("cuDNN is {}; 9.8 or later is needed", out.version()));
  }
  return out;
}

}  // namespace

std::string CudnnLibrary::failure(cudnnStatus_t status, const char* call) const {
  std::array<char, 512> detail{};
  get_last_error(detail.data(), detail.size());
  std::string text = fmt::format("{}: {}", call, get_error_string(status));
  if (detail[0] != '\0') text += fmt::format(" ({})", detail.data());
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

std::string CudnnLibrary::version() const {
  const std::size_t number = get_version();  // CUDNN_VERSION of cudnn_version.h, from 9 on
  return fmt::format("{}.{}.{}", number / 10000, number % 10000 / 100, number % 100);
}

const CudnnLibrary& cudnn_library() {
  static const CudnnLibrary library = loaded_cudnn();
  return library;
}

}  // namespace lockstep
