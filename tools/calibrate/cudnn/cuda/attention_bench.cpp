#include "tools/calibrate/cudnn/cuda/attention_bench.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "tools/calibrate/cudnn/attention_plan.hpp"
#include "tools/calibrate/cudnn/cuda/attention_rows.hpp"

namespace lockstep {
namespace {

constexpr std::array kForwardTensors{AttentionTensor::query, AttentionTensor::key,
                                     AttentionTensor::value, AttentionTensor::output,
                                     AttentionTensor::statistics};
/// The rest of what the backward pass has.
constexpr std::array kBackwardTensors{
    AttentionTensor::output_gradient, AttentionTensor::query_gradient,
    AttentionTensor::key_gradient,    AttentionTensor::value_gradient,
    AttentionTensor::row_sums,        AttentionTensor::query_sums};

/// What the card's buffer of random numbers holds; the others are results.
bool is_random(AttentionTensor tensor) {
  return tensor <= AttentionTensor::value || tensor == AttentionTensor::output_gradient;
}

/// Where each set's tensors lie.
class AttentionLayout {
 public:
  AttentionLayout(Bench& bench, const AttentionShape& shape)
      : operands_(bench.operands(ElementFormat::bf16)), results_(bench.results()) {
    for (const AttentionTensor t : kForwardTensors) place(t, shape);
    if (shape.direction == Direction::backward) {
      for (const AttentionTensor t : kBackwardTensors) place(t, shape);
    }
    sets_ = bench.sets(in_, out_);
  }

  [[nodiscard]] std::byte* of(AttentionTensor tensor, int set) const {
    const auto nth = static_cast<std::size_t>(set);
    const std::size_t offset = offsets_.at(tensor);
    return is_random(tensor) ? operands_ + nth * in_ + offset : results_ + nth * out_ + offset;
  }
  [[nodiscard]] int sets() const { return sets_; }
  [[nodiscard]] std::size_t result_bytes() const { return static_cast<std::size_t>(sets_) * out_; }

 private:
  void place(AttentionTensor tensor, const AttentionShape& shape) {
    std::size_t& end = is_random(tensor) ? in_ : out_;
    offsets_[tensor] = end;
    end += aligned(static_cast<std::size_t>(attention_elements(tensor, shape) *
                                            attention_element_bytes(tensor)));
  }

  std::byte* operands_;
  std::byte* results_;
  std::map<AttentionTensor, std::size_t> offsets_;
  std::size_t in_ = 0, out_ = 0;
  int sets_ = 1;
};

AttentionRows rows_of(const AttentionLayout& layout, const AttentionShape& shape) {
  const auto at = [&](AttentionTensor tensor) { return layout.of(tensor, 0); };
  const bool backward = shape.direction == Direction::backward;
  return {.query = at(AttentionTensor::query),
          .key = at(AttentionTensor::key),
          .value = at(AttentionTensor::value),
          .output = at(AttentionTensor::output),
          .output_gradient = backward ? at(AttentionTensor::output_gradient) : nullptr,
          .statistics = reinterpret_cast<const float*>(at(AttentionTensor::statistics)),
          .tokens = static_cast<std::int64_t>(shape.tokens),
          .heads = static_cast<std::int64_t>(shape.heads),
          .kv_heads = static_cast<std::int64_t>(shape.kv_heads),
          .head_dim = static_cast<std::int64_t>(shape.head_dim),
          .causal = shape.causal};
}

/// Compares single rows of set 0 with sums in double. cuDNN rounds shares and gradients of scores
/// to 16 bit before it sums them, each by up to 2^-9 and in either direction: far less than 5 % of
/// a row's root mean square, where a wrong mask, head or scale is off by all of it.
class RowCheck {
 public:
  RowCheck(const AttentionLayout& layout, const AttentionShape& shape, DeviceMemory& expected,
           const Stream& stream)
      : layout_(layout), rows_(rows_of(layout, shape)), expected_(expected), stream_(stream) {}

  void forward(const AttentionRow& row) {
    launch_output_row(rows_, row, out(), stream_.get());
    const std::vector<double> due = fetch<double>(out(), width() + 1, stream_);
    compare(AttentionTensor::output, rows_.heads, row, std::span(due).first(width()));
    const auto* const statistics =
        rows_.statistics + (row.sequence * rows_.heads + row.head) * rows_.tokens + row.token;
    require(fetch<float>(statistics, 1, stream_).front(), due.back(), kShare);
  }
  void query_gradient(const AttentionRow& row) {
    launch_query_gradient_row(rows_, row, out(), stream_.get());
    const std::vector<double> due = fetch<double>(out(), width(), stream_);
    compare(AttentionTensor::query_gradient, rows_.heads, row, due);
  }
  void key_gradient(const AttentionRow& row) {
    launch_key_gradient_row(rows_, row, out(), stream_.get());
    const std::vector<double> due = fetch<double>(out(), 2 * width(), stream_);
    compare(AttentionTensor::key_gradient, rows_.kv_heads, row, std::span(due).first(width()));
    compare(AttentionTensor::value_gradient, rows_.kv_heads, row, std::span(due).last(width()));
  }

 private:
  static constexpr double kShare = 0.05;

  [[nodiscard]] std::size_t width() const { return static_cast<std::size_t>(rows_.head_dim); }
  [[nodiscard]] double* out() const { return reinterpret_cast<double*>(expected_.at(0)); }

  void compare(AttentionTensor tensor, std::int64_t heads, const AttentionRow& row,
               std::span<const double> due) {
    const auto nth =
        static_cast<std::size_t>((row.sequence * heads + row.head) * rows_.tokens + row.token);
    const std::byte* const got = layout_.of(tensor, 0) + nth * width() * sizeof(std::uint16_t);
    const std::vector<std::uint16_t> bits = fetch<std::uint16_t>(got, width(), stream_);
    double squares = 0;
    for (const double x : due) squares += x * x;
    const double slack = kShare * std::sqrt(squares / static_cast<double>(width()));
    for (std::size_t i = 0; i < due.size(); ++i) require(from_bf16(bits[i]), due[i], slack);
  }
  static void require(double got, double due, double slack) {
    if (agrees(got, due, slack)) return;
    throw TaskFailed(fmt::format("wrong result: {:.6g} where {:.6g} was due", got, due));
  }

  const AttentionLayout& layout_;
  AttentionRows rows_;
  DeviceMemory& expected_;
  const Stream& stream_;
};

/// Rows in the middle and at the end: there the mask cuts much and nothing, and no gradient is
/// zero.
void check_attention(const AttentionShape& shape, RowCheck check) {
  const auto last = [](double n) { return static_cast<std::int64_t>(n) - 1; };
  const std::int64_t sequence = last(shape.sequences), end = last(shape.tokens);
  for (const std::int64_t head : {std::int64_t{0}, last(shape.heads)}) {
    for (const std::int64_t token : {end / 3, end / 2, end}) {
      const AttentionRow row{sequence, head, token};
      shape.direction == Direction::forward ? check.forward(row) : check.query_gradient(row);
    }
  }
  if (shape.direction == Direction::forward) return;
  for (const std::int64_t head : {std::int64_t{0}, last(shape.kv_heads)}) {
    for (const std::int64_t token : {std::int64_t{0}, end / 3, end / 2}) {
      check.key_gradient({sequence, head, token});
    }
  }
}

cudnnHandle_t created_handle() {
  cudnnHandle_t handle = nullptr;
  const cudnnStatus_t status = cudnn_library().create(&handle);
  if (status != CUDNN_STATUS_SUCCESS) {
    throw CardUnavailable(cudnn_library().failure(status, "cudnnCreate"));
  }
  return handle;
}

struct DestroyCudnn {
  void operator()(cudnnHandle_t handle) const { (void)cudnn_library().destroy(handle); }
};

/// The card's memory, for as long as a task; a large one may not be there.
DeviceMemory workspace_of(std::size_t bytes) {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  if (bytes > free / 2) throw TaskFailed("cuDNN's workspace does not fit into the card's memory");
  return DeviceMemory(std::max<std::size_t>(bytes, kAlignment));
}

/// A plan with its arguments for every set.
class ReadyAttention {
 public:
  ReadyAttention(const AttentionPlan& plan, const AttentionLayout& layout, cudnnHandle_t handle,
                 const DeviceMemory& workspace)
      : plan_(plan), handle_(handle) {
    for (int set = 0; set < layout.sets(); ++set) {
      std::vector<AttentionPlan::Pointer> pointers;
      for (const AttentionTensor t : plan.tensors()) pointers.push_back({t, layout.of(t, set)});
      arguments_.push_back(plan.arguments(pointers, workspace.at(0)));
    }
  }
  void enqueue(int set) const { plan_.enqueue(handle_, arguments_[static_cast<std::size_t>(set)]); }

 private:
  const AttentionPlan& plan_;
  cudnnHandle_t handle_;
  std::vector<CudnnDescriptor> arguments_;
};

bool same(const AttentionShape& a, const AttentionShape& b) {
  return a.sequences == b.sequences && a.tokens == b.tokens && a.heads == b.heads &&
         a.kv_heads == b.kv_heads && a.head_dim == b.head_dim && a.causal == b.causal;
}

}  // namespace

struct AttentionBench::State {
  std::unique_ptr<cudnnContext, DestroyCudnn> handle{created_handle()};
  AttentionTarget target{handle.get()};
  DeviceMemory expected{sizeof(double) * 2 * 256 + kAlignment};
  /// The last forward pass: the backward pass of the same shape comes next.
  AttentionShape forward_shape{0, 0, 0, 0, 0};
  std::optional<AttentionPlan> forward;

  const AttentionPlan& forward_plan(AttentionShape shape) {
    shape.direction = Direction::forward;
    if (!forward || !same(forward_shape, shape)) {
      forward.reset();
      forward.emplace(AttentionPattern(shape, target), target);
      forward_shape = shape;
    }
    return *forward;
  }
};

AttentionBench::AttentionBench(Bench& bench) : bench_(bench), state_(std::make_unique<State>()) {
  const cudnnStatus_t status =
      cudnn_library().set_stream(state_->handle.get(), bench.stream().get());
  if (status != CUDNN_STATUS_SUCCESS) {
    throw CardUnavailable(cudnn_library().failure(status, "cudnnSetStream"));
  }
}
AttentionBench::~AttentionBench() = default;

std::string AttentionBench::version() const { return cudnn_library().version(); }

Samples AttentionBench::measure(const AttentionTask& task) {
  const AttentionShape& shape = task.shape;
  const AttentionPlan& forward_plan = state_->forward_plan(shape);
  std::optional<AttentionPlan> backward_plan;
  if (shape.direction == Direction::backward) {
    backward_plan.emplace(AttentionPattern(shape, state_->target), state_->target);
  }
  const AttentionLayout layout(bench_, shape);
  const DeviceMemory workspace = workspace_of(std::max(
      forward_plan.workspace(), backward_plan ? backward_plan->workspace() : std::size_t{0}));
  cudnnContext* const handle = state_->handle.get();

  // Whatever lies there is no result of this pass.
  check(cudaMemsetAsync(bench_.results(), 0xFF, layout.result_bytes(), bench_.stream().get()),
        "cudaMemsetAsync");
  const ReadyAttention forward(forward_plan, layout, handle, workspace);
  for (int set = 0; set < layout.sets(); ++set) forward.enqueue(set);
  std::optional<ReadyAttention> backward;
  if (backward_plan) backward.emplace(*backward_plan, layout, handle, workspace);
  const ReadyAttention& timed = backward ? *backward : forward;
  timed.enqueue(0);
  check_attention(shape, RowCheck(layout, shape, state_->expected, bench_.stream()));
  return bench_.burst([&](int set) { timed.enqueue(set); }, layout.sets());
}

}  // namespace lockstep
