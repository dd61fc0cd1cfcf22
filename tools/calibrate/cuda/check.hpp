/// Every call to CUDA and cuBLASLt goes through these: what fails, fails with the call's name.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <string>

#include "tools/calibrate/card.hpp"

namespace lockstep {

/// Throws TaskFailed where memory ran out ("cudaMalloc: out of memory"), which leaves the card as
/// it was, else CardError.
inline void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  const std::string text = std::string(call) + ": " + cudaGetErrorString(status);
  if (status != cudaErrorMemoryAllocation) throw CardError(text);
  (void)cudaGetLastError();  // it is no error of the next launch
  throw TaskFailed(text);
}

/// True where cuBLASLt will not have a product, or has no memory for it, and is well otherwise.
constexpr bool is_refusal(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE ||
         status == CUBLAS_STATUS_ALLOC_FAILED || status == CUBLAS_STATUS_ARCH_MISMATCH;
}
/// Throws TaskFailed for a refusal, else CardError.
inline void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string text = std::string(call) + ": " + cublasLtGetStatusString(status);
  if (is_refusal(status)) throw TaskFailed(text);
  throw CardError(text);
}

}  // namespace lockstep
