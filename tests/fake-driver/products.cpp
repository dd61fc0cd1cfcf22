/// cuBLASLt, as far as lockstep-calibrate calls it. Products take their time and leave no result:
/// the kernel that looks at them is ours too. What does not fit together is refused.
#include <array>
#include <cstring>
#include <cublasLt.h>

#include "tests/fake-driver/fake_card.hpp"
#include "tests/fake-driver/times.hpp"

namespace {

using namespace lockstep;

struct FakeLayout {
  cudaDataType type;
  std::uint64_t rows, columns;
  std::int32_t count = 1;
  std::int64_t apart = 0;
};
struct FakeProduct {
  bool first_transposed = false, second_transposed = false;
};

template <class Type, class Handle>
Type& of(Handle handle) {
  return *reinterpret_cast<Type*>(handle);
}
template <class Type, class Handle>
cublasStatus_t erase(Handle handle) {
  delete reinterpret_cast<Type*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t answer(const char* call) { return static_cast<cublasStatus_t>(fake::fault(call)); }

double bits_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_32F:
      return 32;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 16;
    case CUDA_R_8F_E4M3:
      return 8;
    default:
      return 4;
  }
}

/// The sides of the product, or nothing where its operands do not fit together.
struct Sides {
  std::uint64_t m = 0, n = 0, k = 0;
};
Sides sides_of(const FakeProduct& product, const FakeLayout& first, const FakeLayout& second,
               const FakeLayout& result) {
  Sides s{.m = result.rows, .n = result.columns, .k = 0};
  const auto turned = [](const FakeLayout& l, bool transposed) {
    return transposed ? std::array{l.columns, l.rows} : std::array{l.rows, l.columns};
  };
  const auto a = turned(first, product.first_transposed);
  const auto b = turned(second, product.second_transposed);
  const bool strided = result.count == 1 ||
                       (first.apart >= static_cast<std::int64_t>(first.rows * first.columns) &&
                        second.apart >= static_cast<std::int64_t>(second.rows * second.columns) &&
                        result.apart >= static_cast<std::int64_t>(result.rows * result.columns));
  if (a[0] == s.m && b[1] == s.n && a[1] == b[0] && first.count == result.count &&
      second.count == result.count && strided) {
    s.k = a[1];
  }
  return s;
}

}  // namespace

extern "C" {

std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    default:
      return "made-up status";
  }
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* out) {
  *out = reinterpret_cast<cublasLtHandle_t>(new int);
  return answer("cublasLtCreate");
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return erase<int>(handle); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* out, cublasComputeType_t,
                                        cudaDataType_t) {
  *out = reinterpret_cast<cublasLtMatmulDesc_t>(new FakeProduct);
  return answer("cublasLtMatmulDescCreate");
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  return erase<FakeProduct>(product);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* value, std::size_t bytes) {
  cublasOperation_t operation{};
  std::memcpy(&operation, value, std::min(bytes, sizeof(operation)));
  auto& p = of<FakeProduct>(product);
  if (name == CUBLASLT_MATMUL_DESC_TRANSA) p.first_transposed = operation == CUBLAS_OP_T;
  if (name == CUBLASLT_MATMUL_DESC_TRANSB) p.second_transposed = operation == CUBLAS_OP_T;
  return answer("cublasLtMatmulDescSetAttribute");
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* out, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns, std::int64_t) {
  *out = reinterpret_cast<cublasLtMatrixLayout_t>(new FakeLayout{type, rows, columns});
  return answer("cublasLtMatrixLayoutCreate");
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return erase<FakeLayout>(layout);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t name,
                                                const void* value, std::size_t bytes) {
  auto& l = of<FakeLayout>(layout);
  if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) std::memcpy(&l.count, value, bytes);
  if (name == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) std::memcpy(&l.apart, value, bytes);
  return answer("cublasLtMatrixLayoutSetAttribute");
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* out) {
  *out = reinterpret_cast<cublasLtMatmulPreference_t>(new int);
  return answer("cublasLtMatmulPreferenceCreate");
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return erase<int>(preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, std::size_t) {
  return answer("cublasLtMatmulPreferenceSetAttribute");
}

/// Three algorithms, the second of which cannot be used.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t first,
                                              cublasLtMatrixLayout_t second, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t result,
                                              cublasLtMatmulPreference_t, int most,
                                              cublasLtMatmulHeuristicResult_t* out, int* found) {
  *found = std::min(most, 3);
  for (int i = 0; i < *found; ++i) {
    out[i].state = i == 1 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  }
  const Sides s = sides_of(of<FakeProduct>(product), of<FakeLayout>(first), of<FakeLayout>(second),
                           of<FakeLayout>(result));
  const cublasStatus_t status = answer("cublasLtMatmulAlgoGetHeuristic");
  return s.k == 0 ? CUBLAS_STATUS_INVALID_VALUE : status;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void*,
                              const void*, cublasLtMatrixLayout_t first, const void*,
                              cublasLtMatrixLayout_t second, const void*, const void*,
                              cublasLtMatrixLayout_t, void*, cublasLtMatrixLayout_t result,
                              const cublasLtMatmulAlgo_t*, void*, std::size_t,
                              cudaStream_t stream) {
  const cublasStatus_t status = answer("cublasLtMatmul");
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const auto& layout = of<FakeLayout>(first);
  const Sides s =
      sides_of(of<FakeProduct>(product), layout, of<FakeLayout>(second), of<FakeLayout>(result));
  if (s.k == 0) return CUBLAS_STATUS_INVALID_VALUE;
  const auto side = [](std::uint64_t x) { return static_cast<double>(x); };
  fake::work(
      *reinterpret_cast<fake::Stream*>(stream),
      fake::product_seconds(side(s.m), side(s.n), side(s.k), layout.count, bits_of(layout.type)));
  return CUBLAS_STATUS_SUCCESS;
}
}
