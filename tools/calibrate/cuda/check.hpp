/// Every call to CUDA and cuBLASLt goes through these: what fails, fails with the call's name.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <string>

#include "tools/calibrate/card.hpp"

namespace lockstep {

/// Throws CardError: "cudaMalloc: out of memory".
inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw CardError(std::string(call) + ": " + cudaGetErrorString(status));
}
inline void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw CardError(std::string(call) + ": " + cublasLtGetStatusString(status));
}

}  // namespace lockstep
