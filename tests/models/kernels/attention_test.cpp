#include "models/kernels/attention.hpp"

#include <array>
#include <doctest/doctest.h>
#include <string_view>

#include "sim/scenario/preset_store.hpp"
#include "tests/models/kernels/simple_gpu.hpp"

namespace lockstep {
namespace {

constexpr std::array kFused{AttentionKernel::flash1, AttentionKernel::flash2,
                            AttentionKernel::flash3, AttentionKernel::cudnn};

/// simple_gpu() with kernels that lose nothing.
GpuSpec fused_gpu() {
  GpuSpec gpu = simple_gpu();
  for (const AttentionKernel kernel : kFused) {
    gpu.attention[static_cast<std::size_t>(kernel)] = AttentionConstants{{}, 1.0, 0, 0, 2.5};
  }
  return gpu;
}

/// Enough blocks that the last wave does not show.
AttentionShape large() {
  return {.sequences = 8, .tokens = 8192, .heads = 64, .kv_heads = 64, .head_dim = 128};
}

Seconds time_of(const AttentionShape& shape, AttentionKernel kernel, const GpuSpec& gpu,
                Load load = Load::burst) {
  return attention_time(shape, kernel, gpu, ElementwiseTraffic{}, load);
}

}  // namespace

TEST_CASE("attention kernels: rows stand in the order of the enumeration and name their source") {
  std::size_t index = 0;
  for (const AttentionKernelKind& kind : attention_kernels()) {
    CAPTURE(kind.name);
    CHECK(static_cast<std::size_t>(kind.kernel) == index++);
    CHECK_FALSE(kind.source.empty());
    CHECK_FALSE(kind.summary.empty());
    CHECK(kind.wide_head_speed > 0);
  }
  CHECK(index == kAttentionKernels);
}

TEST_CASE("attention_flops: 4 b a s^2 d, half if causal, 2.5 times backward") {
  AttentionShape shape{
      .sequences = 2, .tokens = 1024, .heads = 8, .kv_heads = 8, .head_dim = 128, .causal = false};
  CHECK(attention_flops(shape).base_units() == 4.0 * 2 * 8 * 1024 * 1024 * 128);
  shape.causal = true;
  CHECK(attention_flops(shape).base_units() == 2.0 * 2 * 8 * 1024 * 1024 * 128);
  shape.direction = Direction::backward;
  CHECK(attention_flops(shape).base_units() == 5.0 * 2 * 8 * 1024 * 1024 * 128);
}

TEST_CASE(
    "fused attention: without losses a large call runs at the peak, causal in half the time") {
  const GpuSpec gpu = fused_gpu();
  AttentionShape full = large();
  full.causal = false;
  for (const AttentionKernel kernel : kFused) {
    const Seconds time = time_of(full, kernel, gpu);
    CHECK(attention_flops(full) / time / gpu.peak_fp16 == doctest::Approx(1).epsilon(2e-3));
    CHECK(time_of(large(), kernel, gpu) / time == doctest::Approx(0.5).epsilon(4e-3));
  }
}

TEST_CASE("fused attention: the backward pass takes its ratio of the forward pass, launch aside") {
  GpuSpec gpu = fused_gpu();
  auto& constants = gpu.attention[static_cast<std::size_t>(AttentionKernel::flash2)];
  constants->backward_ratio = 3;
  constants->launch = microseconds(6);
  AttentionShape backward = large();
  backward.direction = Direction::backward;
  const Seconds t0 = microseconds(6);
  CHECK((time_of(backward, AttentionKernel::flash2, gpu) - t0) /
            (time_of(large(), AttentionKernel::flash2, gpu) - t0) ==
        doctest::Approx(3));
}

TEST_CASE("fused attention: one block more than there are SMs costs a second wave") {
  const GpuSpec gpu = fused_gpu();
  AttentionShape shape{
      .sequences = 1, .tokens = 128, .heads = 100, .kv_heads = 100, .head_dim = 128};
  const Seconds one = time_of(shape, AttentionKernel::flash2, gpu);
  shape.heads = 50;
  CHECK(time_of(shape, AttentionKernel::flash2, gpu) / one == doctest::Approx(1));
  shape.heads = 101;
  CHECK(time_of(shape, AttentionKernel::flash2, gpu) / one == doctest::Approx(2));
}

TEST_CASE("fused attention: causal blocks that all run at once end with the longest") {
  const GpuSpec gpu = fused_gpu();
  // 64 blocks on 100 SMs: each has one at most, and the last one meets all keys.
  AttentionShape causal{
      .sequences = 1, .tokens = 8192, .heads = 1, .kv_heads = 1, .head_dim = 128, .causal = true};
  AttentionShape full = causal;
  full.causal = false;
  for (const AttentionKernel kernel : kFused) {
    CHECK(time_of(causal, kernel, gpu) / time_of(full, kernel, gpu) ==
          doctest::Approx(4096.0 / (4096 + 64)));
  }
  // With many blocks for each SM the mask saves half.
  causal.heads = full.heads = 6400;
  CHECK(time_of(causal, kFused[0], gpu) / time_of(full, kFused[0], gpu) ==
        doctest::Approx(0.5).epsilon(1e-3));
}

TEST_CASE("fused attention: a head takes the next width that its kernel is compiled for") {
  const GpuSpec gpu = fused_gpu();
  const auto time = [&](AttentionKernel kernel, double d, Direction direction, double query = 0) {
    AttentionShape shape = large();
    shape.head_dim = d;
    shape.query_dim = query;
    shape.direction = direction;
    return time_of(shape, kernel, gpu).base_units();
  };
  const auto cudnn = [&](double d, Direction direction, double query = 0) {
    return time(AttentionKernel::cudnn, d, direction, query);
  };
  CHECK(cudnn(72, Direction::forward) == cudnn(128, Direction::forward));
  CHECK(cudnn(160, Direction::forward) == cudnn(192, Direction::forward));
  CHECK(cudnn(160, Direction::backward) == cudnn(256, Direction::backward));
  CHECK(cudnn(300, Direction::forward) > cudnn(256, Direction::forward));
  // Latent attention: queries of 192, values of 128.
  CHECK(cudnn(160, Direction::forward, 192) < cudnn(160, Direction::forward));
  CHECK(cudnn(160, Direction::backward, 192) == cudnn(192, Direction::backward, 256));
  CHECK(time(AttentionKernel::flash2, 72, Direction::forward) ==
        time(AttentionKernel::flash2, 96, Direction::forward));
}

TEST_CASE("fused attention: softmax makes small heads slow, and 256 wide ones cost registers") {
  GpuSpec gpu = fused_gpu();
  gpu.attention[static_cast<std::size_t>(AttentionKernel::flash2)]->softmax_width = 64;
  const auto rate = [&](double d) {
    AttentionShape shape = large();
    shape.head_dim = d;
    return attention_flops(shape) / time_of(shape, AttentionKernel::flash2, gpu) / gpu.peak_fp16;
  };
  const double wide =
      attention_kernels()[static_cast<std::size_t>(AttentionKernel::flash2)].wide_head_speed;
  CHECK(rate(128) == doctest::Approx(1).epsilon(2e-3));
  CHECK(rate(64) / rate(128) == doctest::Approx(64.0 / 128 * 192 / 128));
  CHECK(rate(256) / rate(128) == doctest::Approx(256.0 / 320 * 192 / 128 * wide));
}

TEST_CASE("attention_time: a GPU without the generation runs the nearest that it has") {
  GpuSpec gpu = fused_gpu();
  const auto slot = [&](AttentionKernel kernel) -> auto& {
    return gpu.attention[static_cast<std::size_t>(kernel)];
  };
  slot(AttentionKernel::flash1)->efficiency = 0.25;
  slot(AttentionKernel::cudnn)->efficiency = 0.75;
  slot(AttentionKernel::flash2).reset();
  slot(AttentionKernel::flash3).reset();
  CHECK(attention_constants(AttentionKernel::flash3, gpu)->efficiency == 0.25);
  slot(AttentionKernel::flash1).reset();
  CHECK(attention_constants(AttentionKernel::flash3, gpu)->efficiency == 0.75);
  slot(AttentionKernel::cudnn).reset();
  CHECK(attention_constants(AttentionKernel::flash3, gpu) == nullptr);
  CHECK(time_of(large(), AttentionKernel::flash3, gpu) ==
        time_of(large(), AttentionKernel::unfused, gpu));
}

TEST_CASE("unfused attention: the mask saves nothing, and the traffic of the scores counts") {
  const GpuSpec gpu = simple_gpu();
  AttentionShape full = large();
  full.causal = false;
  CHECK(time_of(large(), AttentionKernel::unfused, gpu) ==
        time_of(full, AttentionKernel::unfused, gpu));
  ElementwiseTraffic more;
  more.score_bytes += 10;
  const Seconds added = attention_time(full, AttentionKernel::unfused, gpu, more) -
                        time_of(full, AttentionKernel::unfused, gpu);
  const Bytes ten{10.0 * 8 * 64 * 8192 * 8192};
  CHECK(added / (ten / gpu.hbm_bandwidth) == doctest::Approx(1));
}

TEST_CASE("unfused attention: head sizes that the library has no kernel for are slow") {
  const GpuSpec gpu = simple_gpu();
  ElementwiseTraffic nothing;
  nothing.score_bytes = 0;
  const auto time = [&](double d) {
    AttentionShape shape = large();
    shape.head_dim = d;
    return attention_time(shape, AttentionKernel::unfused, gpu, nothing);
  };
  CHECK(time(128) < time(120));
  CHECK(time(120) < time(116));
}

TEST_CASE("attention_time: a lasting load costs attention less than it costs products") {
  GpuSpec gpu = fused_gpu();
  gpu.gemm.sustained = 0.512;
  CHECK(time_of(large(), AttentionKernel::flash2, gpu, Load::sustained) /
            time_of(large(), AttentionKernel::flash2, gpu) ==
        doctest::Approx(1 / 0.8));
}

namespace {

struct PublishedAttention {
  std::string_view gpu;
  AttentionKernel kernel;
  double tokens, head_dim;
  bool causal;
  double tflops;
};
// Forward passes over 16,384 tokens of hidden size 2,048: figure 5 of arXiv:2407.08608 (H100 SXM5).
constexpr std::array kPublishedAttention{
    PublishedAttention{"h100_sxm5_80gb", AttentionKernel::flash2, 2048, 128, true, 298},
    PublishedAttention{"h100_sxm5_80gb", AttentionKernel::flash2, 16384, 128, false, 370},
    PublishedAttention{"h100_sxm5_80gb", AttentionKernel::flash3, 2048, 128, true, 521},
    PublishedAttention{"h100_sxm5_80gb", AttentionKernel::flash3, 8192, 128, false, 646},
    PublishedAttention{"h100_sxm5_80gb", AttentionKernel::cudnn, 2048, 128, true, 484},
    PublishedAttention{"h100_sxm5_80gb", AttentionKernel::flash3, 8192, 64, false, 496},
    PublishedAttention{"h100_sxm5_80gb", AttentionKernel::flash3, 16384, 256, false, 756},
};
// The 90th percentile of the law over all points of the figures, `lockstep validate --attention`.
constexpr double kWithin = 0.14;

}  // namespace

TEST_CASE("attention_time: the figures of the FlashAttention-3 paper") {
  const PresetStore presets;
  for (const PublishedAttention& row : kPublishedAttention) {
    CAPTURE(row.tflops);
    const double heads = 2048 / row.head_dim;
    const AttentionShape shape{.sequences = 16384 / row.tokens,
                               .tokens = row.tokens,
                               .heads = heads,
                               .kv_heads = heads,
                               .head_dim = row.head_dim,
                               .causal = row.causal};
    const Seconds time = time_of(shape, row.kernel, presets.gpu(row.gpu));
    CHECK((attention_flops(shape) / time).base_units() / 1e12 ==
          doctest::Approx(row.tflops).epsilon(kWithin));
  }
}

TEST_CASE("mean_keys: a window is what each word sees, wherever nothing is masked") {
  AttentionShape shape{
      .sequences = 1, .tokens = 1024, .heads = 1, .kv_heads = 1, .head_dim = 64, .window = 128};
  CHECK(mean_keys(shape) == 128 - 128.0 * 128 / 2048);
  shape.causal = false;
  CHECK(mean_keys(shape) == 128);
  CHECK(longest_keys(shape) == 128);
  shape.window = 4096;
  CHECK(mean_keys(shape) == 1024);
  shape.window = 0;
  CHECK(mean_keys(shape) == 1024);
}

}  // namespace lockstep
