/// cuDNN's backend functions, loaded when attention is to be timed: the library is large and may be
/// missing where the program runs.
#pragma once

#include <cudnn_graph.h>
#include <string>

namespace lockstep {

struct CudnnLibrary {
  decltype(&cudnnGetVersion) get_version;
  decltype(&cudnnGetErrorString) get_error_string;
  decltype(&cudnnGetLastErrorString) get_last_error;
  decltype(&cudnnCreate) create;
  decltype(&cudnnDestroy) destroy;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&cudnnBackendSetAttribute) set_attribute;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendExecute) execute;

  /// "cudnnBackendFinalize: CUDNN_STATUS_BAD_PARAM (...)", in one line.
  [[nodiscard]] std::string failure(cudnnStatus_t status, const char* call) const;
  /// "9.19.0".
  [[nodiscard]] std::string version() const;
};

/// Loads libcudnn.so.9 as the system finds it, else from where it was when the program was built;
/// never unloaded. Throws CardUnavailable, also where it is older than 9.8.
const CudnnLibrary& cudnn_library();

}  // namespace lockstep
