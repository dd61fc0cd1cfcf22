// Which operator of the model a recorded kernel is of: by names, by sizes, by its place.
#include "sim/measured/recorded_operators.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "models/layer/operations.hpp"
#include "models/spec/blocks.hpp"
#include "models/spec/layer.hpp"
#include "sim/measured/operator_words.hpp"
#include "sim/trace/pytorch/launching_operators.hpp"
#include "tests/support/presets.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

using HostCode = std::function<void()>;

/// A host thread's operators, each around what it calls, and the kernels that they launch one
/// behind the other.
class HostTrace {
 public:
  void operation(const std::string& name, const std::string& dims, int sequence,
                 const HostCode& inside) {
    const double start = now_++;
    inside();
    std::string args;
    if (!dims.empty()) args = fmt::format(R"("Input Dims": {})", dims);
    if (sequence >= 0) {
      args += fmt::format(R"({}"Sequence number": {})", args.empty() ? "" : ", ", sequence);
    }
    event("cpu_op", name, start, ++now_ - start, args);
  }
  void kernel(const std::string& name) {
    const std::string correlation = fmt::format(R"("correlation": {})", ++launches_);
    event("cuda_runtime", "cudaLaunchKernel", now_++, 1, correlation);
    now_ += 2;
    event("kernel", name, kFirstKernel + 10 * launches_, 10, R"("stream": 7, )" + correlation);
  }
  /// y = x W of `rows` tokens, under autograd's number.
  void linear(int rows, int in, int out, int sequence) {
    operation("aten::linear", fmt::format("[[{}, {}], [{}, {}]]", rows, in, out, in), sequence,
              [&] { product(rows, in, out, sequence); });
  }
  void product(int m, int k, int n, int sequence) {
    operation("aten::mm", fmt::format("[[{}, {}], [{}, {}]]", m, k, k, n), sequence,
              [&] { kernel("nvjet_tst_64x8"); });
  }
  /// Both gradients of it.
  void gradients(int rows, int in, int out, int sequence) {
    operation("MmBackward0", "", sequence, [&] {
      product(out, rows, in, -1);
      product(rows, out, in, -1);
    });
  }
  void elementwise(const std::string& name, int sequence = -1) {
    operation(name, "", sequence, [&] { kernel("vectorized_elementwise_kernel"); });
  }
  [[nodiscard]] std::string text() const {
    return R"({"traceEvents": [{"ph": "M"})" + events_ + "]}";
  }

 private:
  static constexpr double kFirstKernel = 1e6;

  void event(const std::string& category, const std::string& name, double start, double took,
             const std::string& args) {
    events_ +=
        fmt::format(R"(, {{"ph": "X", "cat": "{}", "name": "{}", "tid": 1, "ts": {}, "dur": {}, )"
                    R"("args": {{{}}}}})",
                    category, name, start, took, args);
  }

  double now_ = 1000;
  int launches_ = 0;
  std::string events_;
};

constexpr int kLlamaTokens = 2048;

/// Llama 2 7B: 4096 wide, an MLP of 11008, 32 heads without groups, so that the four products of
/// attention have the same sizes.
TrainingJob llama_job() {
  TrainingJob job;
  job.model = presets().model("llama2_7b");
  job.batch = {.sequences = 8, .micro_sequences = 1, .tokens = kLlamaTokens};
  return job;
}

/// By kernel: "qkv", "norm (place)", "none".
std::vector<std::string> operators_in(const HostTrace& trace, const TrainingJob& job) {
  KinetoRecording recording = read_kineto_recording("rank0.json", trace.text(), true);
  find_launchers(recording);
  std::vector<std::string> out;
  for (const RecordedOperator& own : recorded_operators(recording, JobProducts(job))) {
    out.push_back(!own.of
                      ? own.of_several ? "several" : "none"
                      : fmt::format("{}{}", info(*own.of).name, own.by_place ? " (place)" : ""));
  }
  return out;
}

using Told = std::vector<std::string>;

}  // namespace

TEST_CASE("recorded operators: a product of sizes that the job has none of is of another job") {
  const auto of_other_job = [](int hidden, int ffn) {
    HostTrace trace;
    trace.linear(kLlamaTokens, hidden, ffn, 1);
    trace.linear(kLlamaTokens, ffn, hidden, 2);
    trace.elementwise("aten::silu", 3);
    KinetoRecording recording = read_kineto_recording("rank0.json", trace.text(), true);
    find_launchers(recording);
    std::vector<bool> out;
    for (const RecordedOperator& own : recorded_operators(recording, JobProducts(llama_job()))) {
      out.push_back(own.of_other_job);
    }
    return out;
  };
  CHECK(of_other_job(4096, 11008) == std::vector{false, false, false});
  CHECK(of_other_job(1536, 8960) == std::vector{true, true, false});  // Qwen2.5 1.5B
}

TEST_CASE("recorded operators: products of one size are told by what ran before, both ways") {
  HostTrace trace;
  const int h = 4096, f = 11008;
  for (int i = 0; i < 3; ++i) trace.linear(kLlamaTokens, h, h, i);
  trace.operation("aten::scaled_dot_product_attention", "", 3,
                  [&] { trace.kernel("flash_fwd_kernel"); });
  trace.linear(kLlamaTokens, h, h, 4);
  trace.linear(kLlamaTokens, h, f, 5);
  trace.linear(kLlamaTokens, h, f, 6);
  trace.linear(kLlamaTokens, f, h, 7);
  trace.gradients(kLlamaTokens, f, h, 7);
  trace.gradients(kLlamaTokens, h, f, 6);
  trace.gradients(kLlamaTokens, h, h, 4);
  trace.operation("FlashAttentionBackward", "", 3, [&] { trace.kernel("flash_bwd_dq_dk_dv"); });
  trace.gradients(kLlamaTokens, h, h, 2);
  CHECK(operators_in(trace, llama_job()) ==
        Told{"qkv", "qkv", "qkv", "attention", "projection", "mlp_up", "mlp_up", "mlp_down",
             // A weight's gradient is as large for the MLP's way up as for its way down: the
             // number of the call tells.
             "mlp_down", "mlp_down", "mlp_up", "mlp_up", "projection", "projection", "attention",
             "qkv", "qkv"});
}

TEST_CASE("recorded operators: what no number and no order tells is of none") {
  HostTrace trace;
  trace.operation("CompiledFunctionBackward", "", -1, [&] {
    trace.product(11008, kLlamaTokens, 4096,
                  -1);  // up's weight gradient, or down's the other way round
    trace.product(kLlamaTokens, 11008, 4096, -1);  // of up's input
  });
  trace.linear(kLlamaTokens, 4096, 5000, 1);
  trace.kernel("nvjet_tst_64x8");
  CHECK(operators_in(trace, llama_job()) == Told{"none", "mlp_up", "none", "none"});
}

TEST_CASE("recorded operators: behind a product of any operator none is told by its order") {
  HostTrace trace;
  trace.kernel("flash_fwd_kernel");
  trace.kernel("nvjet_tst_64x8");
  trace.linear(kLlamaTokens, 4096, 4096, 1);
  trace.linear(kLlamaTokens, 11008, 4096, 2);
  trace.linear(kLlamaTokens, 4096, 4096, 3);
  CHECK(operators_in(trace, llama_job()) == Told{"attention", "none", "none", "mlp_down", "qkv"});
}

TEST_CASE("recorded operators: names tell, from the kernel outwards, and of several none") {
  HostTrace trace;
  trace.operation("aten::embedding", "", 0, [&] { trace.kernel("indexSelectLargeIndex"); });
  trace.kernel("rmsnorm_fwd_tuned_kernel");
  trace.operation("autograd::engine::evaluate_function: SiluBackward0", "", 9,
                  [&] { trace.elementwise("aten::silu_backward"); });
  trace.operation("Optimizer.step#AdamW.step", "", -1,
                  [&] { trace.kernel("multi_tensor_apply_kernel"); });
  trace.operation("torch::autograd::AccumulateGrad", "", -1,
                  [&] { trace.elementwise("aten::add_"); });
  trace.kernel("triton_red_fused_embedding_mean_rsqrt_0");
  trace.kernel("triton_poi_fused_mul_silu_1");
  trace.operation("aten::_log_softmax", "", -1, [&] { trace.kernel("cunn_SoftMaxForward"); });
  CHECK(operators_in(trace, llama_job()) == Told{"embedding", "norm", "activation", "optimiser",
                                                 "gradients", "several", "activation", "loss"});
}

TEST_CASE("recorded operators: a kernel without a name is what the model has between products") {
  HostTrace trace;
  trace.elementwise("aten::add");  // before any product
  trace.linear(kLlamaTokens, 4096, 11008, 1);
  trace.elementwise("aten::mul", 2);
  trace.linear(kLlamaTokens, 11008, 4096, 3);
  trace.elementwise("aten::mul");
  trace.linear(kLlamaTokens, 4096, 3 * 4096, 4);  // merged
  trace.operation("aten::linear", "", -1, [&] { trace.elementwise("aten::copy_"); });
  trace.elementwise("aten::mul");
  trace.kernel("flash_fwd_kernel");
  // Its call tells, though nothing is around it.
  trace.operation("MulBackward0", "", 2, [&] { trace.elementwise("aten::mul"); });
  CHECK(operators_in(trace, llama_job()) == Told{"none", "mlp_up", "activation (place)", "mlp_down",
                                                 "norm (place)", "qkv", "none", "rotary (place)",
                                                 "attention", "activation (place)"});
}

TEST_CASE("recorded operators: a bias is its product's, and batches of heads are attention") {
  HostTrace trace;
  trace.operation("aten::addmm", "[[4096], [2048, 11008], [11008, 4096]]", -1, [&] {
    trace.kernel("vectorized_elementwise_kernel");
    trace.kernel("nvjet_tst_64x8");
  });
  trace.operation("aten::bmm", "[[32, 2048, 128], [32, 128, 2048]]", -1,
                  [&] { trace.kernel("nvjet_tst_64x8"); });
  trace.operation("aten::_softmax", "[[1, 32, 2048, 2048]]", -1,
                  [&] { trace.kernel("softmax_warp_forward"); });
  CHECK(operators_in(trace, llama_job()) == Told{"mlp_down", "mlp_down", "attention", "attention"});
}

TEST_CASE("recorded operators: a split product's kernels are all of what the first one is of") {
  HostTrace trace;
  trace.kernel("flash_fwd_kernel");
  trace.operation("aten::mm", "[[2048, 4096], [4096, 4096]]", -1, [&] {
    trace.kernel("nvjet_tst_64x8");
    trace.kernel("splitKreduce_kernel");
  });
  CHECK(operators_in(trace, llama_job()) == Told{"attention", "projection", "projection"});
}

TEST_CASE("recorded operators: tensor-parallel ranks have a part of the columns") {
  TrainingJob job = llama_job();
  job.parallelism.tensor = 2;
  HostTrace trace;
  trace.linear(kLlamaTokens, 4096, 11008 / 2, 1);
  trace.linear(kLlamaTokens, 2048, 4096, 2);
  trace.linear(kLlamaTokens, 4096, 16000, 3);
  CHECK(operators_in(trace, job) == Told{"mlp_up", "projection", "head"});
}

TEST_CASE("recorded operators: the operator around a launch ends when it says") {
  HostTrace trace;
  trace.operation("aten::silu", "", -1, [&] {});
  trace.kernel("vectorized_elementwise_kernel");
  KinetoRecording recording = read_kineto_recording("rank0.json", trace.text(), true);
  find_launchers(recording);
  REQUIRE(recording.gpu.size() == 1);
  CHECK(recording.gpu[0].launcher == KinetoRecording::kNoLauncher);
}

TEST_CASE("every operation that a model declares is of a row, but for further tokens' product") {
  std::set<std::string, std::less<>> others;
  for (const std::string& name : presets().names("models")) {
    const TransformerShape& shape = presets().model(name);
    for (int i = 0; i < shape.layers; ++i) {
      const Layer layer = declare_layer(shape, shape.kind(i));
      for (const Row& row : layer.rows) {
        const auto* const product = std::get_if<Product>(&row);
        const auto* const kernel = std::get_if<Kernel>(&row);
        const std::string_view own = product  ? product->names[0]
                                     : kernel ? kernel->name
                                              : std::string_view("attention");
        if (operator_of(own) == ModelOperator::other) others.emplace(own);
      }
    }
  }
  CHECK_MESSAGE(others.empty(), fmt::format("{}", fmt::join(others, ", ")));
}

TEST_CASE("operators: what a mixer's row names is counted as a recurrence, in every mixer") {
  std::size_t named = 0;
  for (const MixerKind* kind : mixer_kinds()) {
    CAPTURE(kind->name);
    std::istringstream words{std::string(kind->operations)};
    for (std::string word; words >> word; ++named) {
      CAPTURE(word);
      if (word.ends_with('*')) word.back() = 'x';
      CHECK(operator_of(word) == ModelOperator::recurrence);
      CHECK(operator_of(word + ".input_gradient") == ModelOperator::recurrence);
      CHECK(is_among(kind->operations, word));
    }
  }
  CHECK(named > 0);
  CHECK(operator_of("deltas") == ModelOperator::other);
  CHECK_FALSE(is_among("one two", "on"));
  CHECK_FALSE(is_among("one two", "two*"));
  CHECK_FALSE(is_among("", ""));
}

TEST_CASE("named operators: an argument's softmax is no maximum, a rotary embedding no table") {
  CHECK(named_operators("cunn_SoftMaxForward").empty());
  CHECK(named_operators("LlamaRotaryEmbedding") == std::vector{ModelOperator::rotary});
  CHECK(named_operators("aten::embedding_dense_backward") == std::vector{ModelOperator::embedding});
  CHECK(named_operators("aten::mul").empty());
}
