/// Traces of made-up training steps, as the PyTorch profiler writes them: one host thread, one
/// launch after another, each kernel 10 us behind its launch.
#pragma once

#include <fmt/format.h>
#include <string>

namespace lockstep::test {

class RecordedTraining {
 public:
  /// A kernel that the host launches `gap_us` after the call before it.
  RecordedTraining& kernel(const std::string& name, double gap_us = 20, double took_us = 5,
                           const std::string& args = "", int stream = 7) {
    now_ += gap_us;
    ++correlation_;
    call("cudaLaunchKernel", now_);
    event(R"("cat": "kernel", "name": ")" + name + '"', now_ + 10, took_us,
          fmt::format(R"("stream": {}, "correlation": {}{})", stream, correlation_, args));
    return *this;
  }
  /// The host waits for the GPU.
  RecordedTraining& wait(double took_us) {
    ++correlation_;
    call("cudaStreamSynchronize", now_ + 1);
    now_ += took_us;
    return *this;
  }
  RecordedTraining& operation(const std::string& name, double at_us, double took_us) {
    event(R"("cat": "cpu_op", "tid": 1, "name": ")" + name + '"', at_us, took_us, "");
    return *this;
  }
  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] std::string text() const {
    return R"({"traceEvents": [{"ph": "M"})" + events_ + "]}";
  }

 private:
  void call(const std::string& name, double at_us) {
    event(R"("cat": "cuda_runtime", "tid": 1, "name": ")" + name + '"', at_us, 1,
          fmt::format(R"("correlation": {})", correlation_));
  }
  void event(const std::string& what, double at_us, double took_us, const std::string& args) {
    events_ += fmt::format(R"(, {{"ph": "X", {}, "ts": {}, "dur": {}, "args": {{{}}}}})", what,
                           at_us, took_us, args);
  }

  double now_ = 1000;
  int correlation_ = 0;
  std::string events_;
};

constexpr int kRecordedLayers = 8;

/// Fused as Transformer Engine does it; the host waits before each backward pass of a layer.
template <class Training>
void record_fused(Training& out) {
  for (int layer = 0; layer < kRecordedLayers; ++layer) {
    for (const char* name :
         {"rmsnorm_fwd_tuned_kernel", "nvjet_tst_64x8", "fused_rope_forward_kernel",
          "cudnn_generated_fort_native_sdpa_sm90_flash_fprop", "nvjet_tst_64x8",
          "rmsnorm_fwd_tuned_kernel", "nvjet_tst_64x8", "swiglu_kernel", "nvjet_tst_64x8"}) {
      out.kernel(name);
    }
  }
  out.kernel("cross_entropy_kernel");
  for (int layer = 0; layer < kRecordedLayers; ++layer) {
    out.wait(500);
    for (int product = 0; product < 8; ++product) out.kernel("nvjet_tst_64x8");
    out.kernel("cudnn_generated_fort_native_sdpa_sm90_flash_bprop");
    out.kernel("rmsnorm_bwd_tuned_kernel");
  }
  out.kernel("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>");
}
inline RecordedTraining fused_training() {
  RecordedTraining out;
  record_fused(out);
  return out;
}

/// Operator by operator, as Hugging Face's layers are.
inline RecordedTraining eager_training() {
  RecordedTraining out;
  const auto norm = [&] {
    out.kernel("at::native::elementwise_kernel<pow_tensor_scalar_kernel_impl<float>>");
    out.kernel("at::native::elementwise_kernel<rsqrt_kernel_cuda>");
  };
  const auto rotary = [&] {  // of queries and keys
    for (int i = 0; i < 2; ++i) {
      out.kernel("at::native::elementwise_kernel<neg_kernel_cuda>");
      out.kernel("at::native::CatArrayBatchedCopy<float>");
    }
  };
  const auto products = [&](int count) {
    for (int i = 0; i < count; ++i) out.kernel("ampere_bf16_s16816gemm_bf16_128x64");
  };
  for (int layer = 0; layer < kRecordedLayers; ++layer) {
    norm();
    products(7);
    rotary();
    out.kernel("pytorch_flash::flash_fwd_kernel<64>");
    norm();
    out.kernel("at::native::elementwise_kernel<silu_kernel>");
  }
  products(1);
  out.kernel("at::native::nll_loss_forward_reduce_cuda_kernel_2d");
  products(2);
  for (int layer = 0; layer < kRecordedLayers; ++layer) {
    out.kernel("pytorch_flash::flash_bwd_dot_do_o_kernel");
    out.kernel("pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<64>");
    products(14);
    rotary();
  }
  out.kernel("at::native::multi_tensor_apply_kernel<PointwiseOpListFunctor<float>>");
  return out;
}

}  // namespace lockstep::test
