// What a recorded training step says of the software that ran it.
#include "sim/measured/recorded_stack.hpp"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "tests/support/presets.hpp"
#include "tests/support/recorded_training.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

RecordedStack stack_of(const RecordedTraining& training,
                       const RecordedStackBase& base = {.stack = "neutral"}) {
  const std::vector<KinetoRecording> recordings{
      read_kineto_recording("traces/rank0.json", training.text(), true)};
  return recorded_stack(recordings, base, presets());
}

/// The value that was read, as JSON; "not told" where it was not.
std::string value_of(const RecordedStack& stack, const std::string& path) {
  const auto found = std::ranges::find(stack.read, path, &StackFinding::path);
  const bool untold =
      std::ranges::find(stack.untold, path, &UntoldValue::path) != stack.untold.end();
  REQUIRE_MESSAGE((found != stack.read.end()) != untold, path);
  return untold ? "not told" : found->value;
}

/// `read` where it is of the features.
struct FeatureRow {
  std::string feature, value;
};
void check_features(const RecordedStack& stack, const std::vector<FeatureRow>& rows) {
  for (const FeatureRow& row : rows) {
    CAPTURE(row.feature);
    CHECK(value_of(stack, "features." + row.feature) == row.value);
  }
}

std::string reduction_args(const std::string& kind, const std::string& type,
                           const std::string& ranks) {
  return fmt::format(R"(, "Collective name": "{}", "In msg nelems": 2097152, )"
                     R"("Out msg nelems": 2097152, "dtype": "{}", "Group size": 2, )"
                     R"("Process Group Name": "{}", "Process Group Ranks": "[{}]")",
                     kind, type, ranks, ranks);
}
constexpr const char* kReduction = "ncclDevKernel_AllReduce_Sum";

}  // namespace

TEST_CASE("recorded stack: kernels of Transformer Engine are fused, and products are merged") {
  const RecordedStack stack = stack_of(fused_training());
  CHECK(value_of(stack, "attention") == "\"cudnn\"");
  check_features(stack, {{"fused_norm", "true"},
                         {"fused_rope", "true"},
                         {"fused_swiglu", "true"},
                         {"fused_cross_entropy", "true"},
                         {"kernels", "\"library\""},
                         // 4 products forward and 8 backward.
                         {"merged_qkv", "true"},
                         {"merged_gate_up", "true"},
                         {"optimiser", "\"multi_tensor\""},
                         {"cuda_graphs", "\"none\""},
                         // No kernel says it.
                         {"torch_compile", "not told"},
                         {"optimiser_states", "not told"},
                         {"reduced_format", "not told"},
                         {"gradients", "not told"}});
}

TEST_CASE("recorded stack: operators one by one are eager") {
  const RecordedStack stack = stack_of(eager_training());
  CHECK(value_of(stack, "attention") == "\"flash2\"");
  check_features(stack, {{"fused_norm", "false"},
                         {"fused_rope", "false"},
                         {"complex_rope", "false"},
                         {"fused_swiglu", "false"},
                         {"fused_cross_entropy", "false"},
                         {"vocab_parallel_loss", "false"},
                         {"torch_compile", "false"},
                         // 7 forward and 14 backward, and 3 of the output in all.
                         {"merged_qkv", "false"},
                         {"merged_gate_up", "false"},
                         {"optimiser", "\"loop\""}});
}

TEST_CASE("recorded stack: the host's time of a launch is without its waits") {
  // Every 20 us, and 8 times 500 us more where the host waited: of 157 launches too many to be the
  // fiftieth that is left out.
  const auto& stack = stack_of(fused_training());
  CHECK(value_of(stack, "launch_interval") == "\"20.00 us\"");
  // On processors that are 2.5 times as slow as those that a stack's time is for.
  const RecordedStackBase slow{.stack = "neutral", .host_slowness = 2.5};
  CHECK(value_of(stack_of(fused_training(), slow), "launch_interval") == "\"8.00 us\"");
}

TEST_CASE("recorded stack: graphs launch many kernels") {
  RecordedTraining training;
  training.kernel("layer_norm_backward");
  std::string text = training.text();
  for (int i = 0; i < 99; ++i) {
    text.insert(text.size() - 2, fmt::format(R"(, {{"ph": "X", "cat": "kernel", "name": "gemm", )"
                                             R"("ts": {}, "dur": 5, "args": {{"stream": 7, )"
                                             R"("correlation": 1}}}})",
                                             1100 + 10 * i));
  }
  const std::string launch = "cudaLaunchKernel";
  text.replace(text.find(launch), launch.size(), "cudaGraphLaunch");
  const std::vector<KinetoRecording> recordings{read_kineto_recording("r.json", text, true)};
  const RecordedStack stack = recorded_stack(recordings, {.stack = "neutral"}, presets());
  CHECK(value_of(stack, "features.cuda_graphs") == "\"full\"");
  CHECK(value_of(stack, "launch_interval") == "not told");
}

TEST_CASE("recorded stack: gradients are what a group reduces behind the first backward kernel") {
  RecordedTraining training;
  const double width = 100;
  // A group that reduces in the forward pass is tensor-parallel: alone on the GPU here.
  training.kernel("gemm_forward", 200, width)
      .kernel(kReduction, 200, width, reduction_args("allreduce", "BFloat16", "0, 1"), 20)
      .kernel("gemm_dgrad", 200, width)
      // 60 of 100 us are beside the next kernel.
      .kernel(kReduction, 200, width, reduction_args("allreduce", "Float", "0, 2"), 21)
      .kernel("gemm_wgrad", 40, width);
  const RecordedStack stack = stack_of(training);
  CHECK(value_of(stack, "features.reduced_format") == "\"fp32\"");
  CHECK(value_of(stack, "communication.overlap_gradients") == "true");
  CHECK(value_of(stack, "communication.overlap_parameters") == "not told");
  CHECK(value_of(stack, "features.tp_overlap") == "false");
  const auto found =
      std::ranges::find(stack.read, "communication.overlap_gradients", &StackFinding::path);
  CHECK(found->from.find("hides 60.0 %") != std::string::npos);
}

TEST_CASE("recorded stack: an operator tells where the backward pass begins, too") {
  RecordedTraining training;
  training.kernel("gemm", 200, 100);
  const double backward = training.now() + 100;
  training.operation("autograd::engine::evaluate_function: MmBackward0", backward, 50)
      .kernel("gemm", 200, 100)
      .kernel(kReduction, 200, 100, reduction_args("allreduce", "Float", "0, 1"), 20);
  CHECK(value_of(stack_of(training), "features.reduced_format") == "\"fp32\"");
  // One before it makes the group a tensor-parallel one.
  RecordedTraining early;
  early.kernel(kReduction, 200, 100, reduction_args("allreduce", "Float", "0, 1"), 20)
      .operation("autograd::engine::evaluate_function: MmBackward0", early.now() + 50, 50)
      .kernel(kReduction, 200, 100, reduction_args("allreduce", "Float", "0, 1"), 20);
  const RecordedStack stack = stack_of(early);
  CHECK(value_of(stack, "features.reduced_format") == "not told");
  CHECK(value_of(stack, "features.tp_overlap") == "false");
}

TEST_CASE("recorded stack: reductions of 16 bits that nothing hides") {
  RecordedTraining training;
  training.kernel("gemm_dgrad", 200, 100)
      .kernel(kReduction, 200, 100, reduction_args("_reduce_scatter_base", "BFloat16", "0, 1"), 20);
  const RecordedStack stack = stack_of(training);
  CHECK(value_of(stack, "features.reduced_format") == "\"bf16\"");
  CHECK(value_of(stack, "communication.overlap_gradients") == "false");
}

TEST_CASE("recorded stack: a weight gradient that is added by AccumulateGrad is not fused") {
  RecordedTraining training = fused_training();
  training.operation("torch::autograd::AccumulateGrad", training.now(), 30)
      .operation("aten::add_", training.now() + 5, 10)
      .operation("aten::add_", training.now() + 50, 10);  // of something else
  const RecordedStack stack = stack_of(training);
  CHECK(value_of(stack, "features.gradient_accumulation_fusion") == "false");
  const auto found =
      std::ranges::find(stack.read, "features.gradient_accumulation_fusion", &StackFinding::path);
  CHECK(found->events == 1);
}

TEST_CASE(
    "recorded stack: a loss's logarithms are no unfused attention, and few halves no rotary") {
  RecordedTraining training;
  for (int i = 0; i < 4; ++i) {
    training.kernel("softmax_warp_backward<float, float, float, 10, true, false>(float*)");
    training.kernel("at::native::elementwise_kernel<neg_kernel_cuda>");
    training.kernel("at::native::CatArrayBatchedCopy<float>");
  }
  const RecordedStack stack = stack_of(training);
  CHECK(value_of(stack, "attention") == "not told");
  CHECK(value_of(stack, "features.fused_rope") == "not told");
  CHECK(value_of(stack, "features.merged_qkv") == "not told");
  for (int i = 0; i < 4; ++i) {
    training.kernel("softmax_warp_forward<float, float, float, 10, false, false>(float*)");
  }
  CHECK(value_of(stack_of(training), "attention") == "\"unfused\"");
}

TEST_CASE("recorded stack: kernels that several ranks have add up, and are not more layers") {
  // Four negated halves of each of four ranks are not the eight that one rank has of two layers.
  const auto rotary_of = [](int ranks, int halves) {
    RecordedTraining training;
    training.kernel("flash_bwd_dq_dk_dv_kernel").kernel("flash_fwd_kernel");
    for (int i = 0; i < halves; ++i) {
      training.kernel("at::native::elementwise_kernel<neg_kernel_cuda>");
      training.kernel("at::native::CatArrayBatchedCopy<float>");
    }
    const std::vector<KinetoRecording> recordings(
        static_cast<std::size_t>(ranks), read_kineto_recording("r.json", training.text(), true));
    return value_of(recorded_stack(recordings, {.stack = "neutral"}, presets()),
                    "features.fused_rope");
  };
  CHECK(rotary_of(4, 4) == "not told");
  CHECK(rotary_of(1, 8) == "false");
  CHECK(rotary_of(4, 8) == "false");
}

TEST_CASE("recorded stack: compiled layers, and compiled pieces of a library's") {
  RecordedTraining layers;
  layers.kernel("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_1")
      .kernel("triton_poi_fused_mul_silu_2")
      .kernel("gemm_dgrad");
  check_features(stack_of(layers), {{"torch_compile", "true"}, {"fused_swiglu", "false"}});
  RecordedTraining pieces = fused_training();
  pieces.kernel("triton_poi_fused_add_native_dropout_1");
  check_features(stack_of(pieces), {{"torch_compile", "false"}, {"fused_norm", "true"}});
}

TEST_CASE("recorded stack: each value of the preset says where it is from") {
  const RecordedStackBase base{.stack = "torchtitan", .named = true};
  const RecordedStack stack = stack_of(fused_training(), base);
  const auto preset = nlohmann::ordered_json::parse(stack.preset);
  CHECK(preset["framework"]["value"] == "torchtitan");
  const auto& norm = preset["features"]["fused_norm"];
  CHECK(norm["value"] == true);
  // 16 forward and 8 backward.
  CHECK(norm["source"] == "read off rank0.json: 24 kernels, such as rmsnorm_fwd_tuned_kernel");
  CHECK(preset["features"]["sharding_unit"]["value"] == "fsdp2");
  CHECK(preset["features"]["sharding_unit"]["source"] == "assumed: as in torchtitan");
  std::size_t values = 0;
  for (const auto& [key, value] : preset["features"].items()) {
    CAPTURE(key);
    const std::string source = value["source"];
    const bool is_read = value_of(stack, "features." + key) != "not told";
    CHECK(source.starts_with(is_read ? "read off rank0.json: " : "assumed: as in torchtitan"));
    ++values;
  }
  CHECK(values == 25);  // of StackSwitches
}

TEST_CASE("recorded stack: inference has no backward pass, and a base has to say what it does") {
  RecordedTraining inference;
  inference.kernel("pytorch_flash::flash_fwd_kernel<64>");
  CHECK_THROWS_WITH_AS((void)stack_of(inference),
                       "traces/rank0.json: found no kernel or operator of a backward pass: "
                       "inference, or a part of a step; allowed: a recorded training step",
                       InputError);
  CHECK_THROWS_AS((void)stack_of(fused_training(), {.stack = "nobodys"}), InputError);
}
