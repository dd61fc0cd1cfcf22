#include "tools/calibrate/cuda/products.hpp"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <vector>

namespace lockstep {
namespace {

/// What cuBLAS itself takes on Hopper and later is 32 MiB; algorithms that split K want more.
constexpr std::size_t kWorkspace = std::size_t{64} << 20;
constexpr std::size_t kCheckedElements = 64;
/// Algorithms of the heuristic that are tried: the first may want what this card or driver lacks.
constexpr int kTriedAlgorithms = 8;

struct DestroyHandle {
  void operator()(cublasLtHandle_t handle) const { (void)cublasLtDestroy(handle); }
};
struct DestroyDescription {
  void operator()(cublasLtMatmulDesc_t desc) const { (void)cublasLtMatmulDescDestroy(desc); }
};
struct DestroyLayout {
  void operator()(cublasLtMatrixLayout_t layout) const {
    (void)cublasLtMatrixLayoutDestroy(layout);
  }
};
struct DestroyPreference {
  void operator()(cublasLtMatmulPreference_t p) const { (void)cublasLtMatmulPreferenceDestroy(p); }
};
using Handle = std::unique_ptr<std::remove_pointer_t<cublasLtHandle_t>, DestroyHandle>;
using Description =
    std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>, DestroyDescription>;
using Layout = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>, DestroyLayout>;
using Preference =
    std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>, DestroyPreference>;

Handle create_handle() {
  cublasLtHandle_t handle = nullptr;
  check(cublasLtCreate(&handle), "cublasLtCreate");
  return Handle(handle);
}

/// Elements that share a scale, and the scale of one in its own format. 0 elements: no scales.
struct BlockScaling {
  std::uint64_t elements = 0;
  int one = 0;
};
/// MXFP8 has scales of E8M0, NVFP4 of E4M3 without a sign.
BlockScaling scaling_of(Precision precision) {
  if (precision == Precision::mxfp8) return {.elements = 32, .one = 0x7F};
  if (precision == Precision::nvfp4) return {.elements = 16, .one = 0x38};
  return {};
}

ElementFormat format_of(Precision precision) {
  switch (precision) {
    case Precision::fp16:
      return ElementFormat::fp16;
    case Precision::bf16:
      return ElementFormat::bf16;
    case Precision::fp8:
    case Precision::mxfp8:
      return ElementFormat::fp8;
    case Precision::nvfp4:
      return ElementFormat::fp4;
    case Precision::tf32:
      return ElementFormat::fp32;
  }
  throw TaskFailed("this format is not timed");
}
cudaDataType_t data_type(ElementFormat format) {
  switch (format) {
    case ElementFormat::fp16:
      return CUDA_R_16F;
    case ElementFormat::bf16:
      return CUDA_R_16BF;
    case ElementFormat::fp8:
      return CUDA_R_8F_E4M3;
    case ElementFormat::fp4:
#ifdef LOCKSTEP_BLOCK_SCALING
      return CUDA_R_4F_E2M1;
#else
      throw TaskFailed("this cuBLASLt has no format of four bits");
#endif
    case ElementFormat::fp32:
      return CUDA_R_32F;
  }
  return CUDA_R_16BF;
}

/// An operand as cuBLASLt sees it: columns of `rows` contiguous elements.
struct Operand {
  bool transposed;
  std::uint64_t rows, columns;
};

/// C[m x n] = A B lies row by row, as frameworks have it, and is to cuBLASLt, which counts by
/// columns, C^T = B^T A^T: its first operand is our B. Of `count` such products, one lies behind
/// the other.
struct Problem {
  std::uint64_t m, n, k, count;
  ElementFormat operands, result;
  Operand first, second;  ///< B and A
  BlockScaling scaling;
  bool quick_sums = false;

  [[nodiscard]] std::size_t a_bytes() const { return bytes_of(m * k, operands); }
  [[nodiscard]] std::size_t b_bytes() const { return bytes_of(k * n, operands); }
  [[nodiscard]] std::size_t c_bytes() const { return bytes_of(m * n, result); }
  /// From the first of the products to the last, in elements of one and in bytes.
  [[nodiscard]] std::size_t to_last(std::uint64_t elements, ElementFormat format) const {
    return (count - 1) * elements * bits_of(format) / 8;
  }
  /// cuBLASLt keeps scales in tiles of 128 rows by 4 blocks, whole ones (cuBLAS documentation,
  /// "1D block scaling").
  [[nodiscard]] std::size_t scale_bytes(std::uint64_t rows) const {
    if (scaling.elements == 0) return 0;
    const auto whole = [](std::uint64_t x, std::uint64_t of) { return (x + of - 1) / of * of; };
    return aligned(whole(rows, 128) * whole(k / scaling.elements, 4));
  }
  [[nodiscard]] std::size_t a_scale_bytes() const { return scale_bytes(m); }
  [[nodiscard]] std::size_t b_scale_bytes() const { return scale_bytes(n); }

 private:
  [[nodiscard]] std::size_t bytes_of(std::uint64_t elements, ElementFormat format) const {
    return aligned(count * elements * bits_of(format) / 8);
  }
};

ElementFormat result_format(Precision precision) {
  if (precision == Precision::tf32) return ElementFormat::fp32;
  return precision == Precision::fp16 ? ElementFormat::fp16 : ElementFormat::bf16;
}

/// y = x W^T with W as [out x in]: k runs along the rows of both operands. The input gradient
/// dx = dy W has n along those of W, and the weight gradient dW = dy^T x has m and n along the
/// rows.
Problem problem_of(const ProductTask& task) {
  Problem p{.m = static_cast<std::uint64_t>(task.shape.m),
            .n = static_cast<std::uint64_t>(task.shape.n),
            .k = static_cast<std::uint64_t>(task.shape.k),
            .count = static_cast<std::uint64_t>(task.shape.count),
            .operands = format_of(task.precision),
            .result = result_format(task.precision),
            .first = {},
            .second = {},
            .scaling = scaling_of(task.precision)};
  const bool narrow = bits_of(p.operands) <= 8;
  const bool n_along = !narrow && task.role != ProductRole::forward;
  const bool m_along = !narrow && task.role == ProductRole::weight_gradient;
  p.first = n_along ? Operand{false, p.n, p.k} : Operand{true, p.k, p.n};
  p.second = m_along ? Operand{true, p.m, p.k} : Operand{false, p.k, p.m};
  p.quick_sums = task.precision == Precision::fp8 && task.role == ProductRole::forward;
  return p;
}

template <class Value>
void set(const Layout& layout, cublasLtMatrixLayoutAttribute_t attribute, Value value) {
  check(cublasLtMatrixLayoutSetAttribute(layout.get(), attribute, static_cast<const void*>(&value),
                                         sizeof(value)),
        "cublasLtMatrixLayoutSetAttribute");
}

Layout layout_of(const Operand& operand, ElementFormat format, std::uint64_t count) {
  cublasLtMatrixLayout_t raw = nullptr;
  check(cublasLtMatrixLayoutCreate(&raw, data_type(format), operand.rows, operand.columns,
                                   static_cast<std::int64_t>(operand.rows)),
        "cublasLtMatrixLayoutCreate");
  Layout layout(raw);
  if (count > 1) {
    set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(count));
    set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
        static_cast<std::int64_t>(operand.rows * operand.columns));
  }
  return layout;
}

template <class Value>
void set(const Description& description, cublasLtMatmulDescAttributes_t attribute, Value value) {
  check(cublasLtMatmulDescSetAttribute(description.get(), attribute,
                                       static_cast<const void*>(&value), sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
}

Description description_of(const Problem& p) {
  cublasLtMatmulDesc_t raw = nullptr;
  const cublasComputeType_t arithmetic =
      p.operands == ElementFormat::fp32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check(cublasLtMatmulDescCreate(&raw, arithmetic, CUDA_R_32F), "cublasLtMatmulDescCreate");
  Description out(raw);
  const auto operation = [](const Operand& o) { return o.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(out, CUBLASLT_MATMUL_DESC_TRANSA, operation(p.first));
  set(out, CUBLASLT_MATMUL_DESC_TRANSB, operation(p.second));
  if (p.operands == ElementFormat::fp8 && p.scaling.elements == 0) {
    set(out, CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(p.quick_sums ? 1 : 0));
  }
#ifdef LOCKSTEP_BLOCK_SCALING
  if (p.scaling.elements != 0) {
    const std::int32_t mode = p.scaling.elements == 32 ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0
                                                       : CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
    set(out, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode);
    set(out, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode);
  }
#endif
  return out;
}

struct Scales {
  const void* a = nullptr;
  const void* b = nullptr;
};

/// A product that is ready to be enqueued.
class PreparedProduct {
 public:
  PreparedProduct(cublasLtHandle_t handle, const Problem& p, std::byte* workspace)
      : handle_(handle),
        workspace_(workspace),
        description_(description_of(p)),
        first_(layout_of(p.first, p.operands, p.count)),
        second_(layout_of(p.second, p.operands, p.count)),
        result_(layout_of({false, p.n, p.m}, p.result, p.count)),
        scaled_(p.scaling.elements != 0) {
    // The heuristic wants to see that there are scales; which, each launch says.
    if (scaled_) point_to({workspace, workspace});
    ask_heuristic();
  }

  /// Scales where blocks have them, else null.
  void enqueue(const void* a, const void* b, void* c, const Scales& scales,
               const Stream& stream) const {
    check(start(a, b, c, scales, stream), "cublasLtMatmul");
  }
  /// The same by the first algorithm that is not refused, which stays the product's own. Throws
  /// TaskFailed where all are.
  void enqueue_first(const void* a, const void* b, void* c, const Scales& scales,
                     const Stream& stream) {
    for (;; ++chosen_) {
      const cublasStatus_t status = start(a, b, c, scales, stream);
      if (status == CUBLAS_STATUS_SUCCESS) return;
      if (!is_refusal(status) || chosen_ + 1 == algorithms_.size()) check(status, "cublasLtMatmul");
    }
  }

 private:
  cublasStatus_t start(const void* a, const void* b, void* c, const Scales& scales,
                       const Stream& stream) const {
    if (scaled_) point_to(scales);
    const float one = 1, zero = 0;
    return cublasLtMatmul(handle_, description_.get(), &one, b, first_.get(), a, second_.get(),
                          &zero, c, result_.get(), c, result_.get(), &algorithms_[chosen_],
                          workspace_, kWorkspace, stream.get());
  }
  void point_to(const Scales& scales) const {
    set(description_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scales.b);
    set(description_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scales.a);
  }
  void ask_heuristic() {
    cublasLtMatmulPreference_t raw = nullptr;
    check(cublasLtMatmulPreferenceCreate(&raw), "cublasLtMatmulPreferenceCreate");
    const Preference preference(raw);
    const std::uint64_t most = kWorkspace;
    check(cublasLtMatmulPreferenceSetAttribute(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                               sizeof(most)),
          "cublasLtMatmulPreferenceSetAttribute");
    std::array<cublasLtMatmulHeuristicResult_t, kTriedAlgorithms> best{};
    int found = 0;
    check(cublasLtMatmulAlgoGetHeuristic(handle_, description_.get(), first_.get(), second_.get(),
                                         result_.get(), result_.get(), raw, kTriedAlgorithms,
                                         best.data(), &found),
          "cublasLtMatmulAlgoGetHeuristic");
    for (const auto& result : std::span(best).first(static_cast<std::size_t>(found))) {
      if (result.state == CUBLAS_STATUS_SUCCESS) algorithms_.push_back(result.algo);
    }
    if (algorithms_.empty()) {
      throw TaskFailed("cublasLtMatmulAlgoGetHeuristic: no algorithm for it");
    }
  }

  cublasLtHandle_t handle_;
  std::byte* workspace_;
  Description description_;
  Layout first_, second_, result_;
  bool scaled_;
  std::vector<cublasLtMatmulAlgo_t> algorithms_;  ///< best first
  std::size_t chosen_ = 0;
};

/// What a sum of k products of standard normal numbers may be off by beyond its rounding to 16 bit,
/// as a share of sqrt(k), its own standard deviation. Sums are single precision, but algorithms
/// that split k may add their parts in 16 bit: 2^-9 a part. Those of eight-bit tensor cores on
/// Hopper keep 14 bits at each step of 32 elements, and at k = 32,768 lose some 6 % in the worst
/// case. A wrong operand or shape is off by about 140 %.
double slack_of(const Problem& p) {
  const double share = bits_of(p.operands) <= 8 ? 0.15 : 0.05;
  return share * std::sqrt(static_cast<double>(p.k));
}

ProductCheck check_of(const Problem& p, const void* a, const void* b, const void* c) {
  const auto strides = [](const Operand& o, bool row_is_outer) {
    const auto apart = static_cast<std::int64_t>(o.rows);
    return row_is_outer ? std::pair<std::int64_t, std::int64_t>{apart, 1}
                        : std::pair<std::int64_t, std::int64_t>{1, apart};
  };
  const auto [a_row, a_column] = strides(p.second, !p.second.transposed);
  const auto [b_row, b_column] = strides(p.first, !p.first.transposed);
  return {.a = a,
          .b = b,
          .c = c,
          .operands = p.operands,
          .c_format = p.result,
          .m = static_cast<std::int64_t>(p.m),
          .n = static_cast<std::int64_t>(p.n),
          .k = static_cast<std::int64_t>(p.k),
          .a_row = a_row,
          .a_column = a_column,
          .b_row = b_row,
          .b_column = b_column};
}

constexpr std::size_t kCheckBytes = 2 * kCheckedElements * sizeof(CheckedElement);

/// Looks at elements of the first of the products, and of the last; `room`: for kCheckBytes. Throws
/// TaskFailed.
void check_result(const Problem& p, const std::byte* a, const std::byte* b, const std::byte* c,
                  const DeviceMemory& room, const Stream& stream) {
  auto* checked = reinterpret_cast<CheckedElement*>(room.at(0));
  launch_product_check(check_of(p, a, b, c), checked, int{kCheckedElements}, stream.get());
  launch_product_check(
      check_of(p, a + p.to_last(p.m * p.k, p.operands), b + p.to_last(p.k * p.n, p.operands),
               c + p.to_last(p.m * p.n, p.result)),
      checked + kCheckedElements, int{kCheckedElements}, stream.get());
  for (const CheckedElement& e : fetch<CheckedElement>(checked, 2 * kCheckedElements, stream)) {
    if (agrees(e.got, e.expected, slack_of(p))) continue;
    throw TaskFailed(fmt::format("wrong result: {:.6g} where {:.6g} was due", e.got, e.expected));
  }
}

}  // namespace

struct Products::State {
  Handle handle = create_handle();
  DeviceMemory workspace{kWorkspace};
  DeviceMemory checked{kCheckBytes};
};

Products::Products(Bench& bench) : bench_(bench), state_(std::make_unique<State>()) {}
Products::~Products() = default;

Samples Products::measure(const ProductTask& task, const Pace& pace) {
  const Problem p = problem_of(task);
  const std::size_t in = p.a_bytes() + p.b_bytes();
  const Stretch a{bench_.operands(p.operands), in};
  const Stretch b{a.begin + p.a_bytes(), in};
  const std::size_t scales = p.a_scale_bytes() + p.b_scale_bytes();
  const std::size_t out = p.c_bytes() + scales;
  const Stretch c{bench_.results(), out};
  const int sets = bench_.sets(in, out);
  if (scales > 0) {
    check(cudaMemset2DAsync(c.of(0) + p.c_bytes(), out, p.scaling.one, scales,
                            static_cast<std::size_t>(sets), bench_.stream().get()),
          "cudaMemset2DAsync");
  }
  PreparedProduct product(state_->handle.get(), p, state_->workspace.at(0));
  const auto scales_of = [&](int set) {
    const std::byte* const scale = c.of(set) + p.c_bytes();
    return scales > 0 ? Scales{scale, scale + p.a_scale_bytes()} : Scales{};
  };
  // Whatever lies there is no result of this product.
  check(cudaMemsetAsync(c.of(0), 0xFF, p.c_bytes(), bench_.stream().get()), "cudaMemsetAsync");
  product.enqueue_first(a.of(0), b.of(0), c.of(0), scales_of(0), bench_.stream());
  check_result(p, a.of(0), b.of(0), c.of(0), state_->checked, bench_.stream());
  const Bench::Launch launch = [&](int set) {
    product.enqueue(a.of(set), b.of(set), c.of(set), scales_of(set), bench_.stream());
  };
  return task.load == Load::sustained ? bench_.sustained(launch, sets, pace)
                                      : bench_.burst(launch, sets);
}

struct ProductLoop::State {
  explicit State(const Problem& p)
      : a(p.a_bytes()), b(p.b_bytes()), c(p.c_bytes()), product(handle.get(), p, workspace.at(0)) {
    const Stream stream;
    const std::size_t bits = bits_of(p.operands);
    fill_normal(a.at(0), 8 * a.size() / bits, p.operands, stream.get());
    fill_normal(b.at(0), 8 * b.size() / bits, p.operands, stream.get());
    product.enqueue_first(a.at(0), b.at(0), c.at(0), Scales{}, stream);
    stream.wait();
  }
  Handle handle = create_handle();
  DeviceMemory workspace{kWorkspace};
  DeviceMemory a, b, c;
  PreparedProduct product;
};

ProductLoop::ProductLoop(const ProductTask& task)
    : state_(std::make_unique<State>(problem_of(task))) {}
ProductLoop::~ProductLoop() = default;

void ProductLoop::enqueue(const Stream& stream) const {
  state_->product.enqueue(state_->a.at(0), state_->b.at(0), state_->c.at(0), Scales{}, stream);
}

}  // namespace lockstep
