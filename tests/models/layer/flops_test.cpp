#include "models/layer/flops.hpp"

#include <doctest/doctest.h>

#include "sim/scenario/preset_store.hpp"

namespace lockstep {
namespace {

/// A GPT of the papers: MLP 4 h wide, one key and value head a query head, a d = h.
TrainingJob gpt(int layers, int hidden, int vocabulary, int sequences, int tokens) {
  TrainingJob job;
  job.model.layers = layers;
  job.model.hidden = hidden;
  job.model.heads = job.model.kv_heads = hidden / 128;
  job.model.head_dim = 128;
  job.model.ffn = 4 * hidden;
  job.model.vocabulary = vocabulary;
  job.batch = {.sequences = sequences, .tokens = tokens};
  return job;
}

struct Letters {
  double l, h, V, B, s;
};
Letters letters(const TrainingJob& job) {
  return {static_cast<double>(job.model.layers), static_cast<double>(job.model.hidden),
          static_cast<double>(job.model.vocabulary), static_cast<double>(job.batch.sequences),
          static_cast<double>(job.batch.tokens)};
}

// Sums of the same products in another order.
constexpr double kRounding = 1e-13;

}  // namespace

// Narayanan et al. 2021, arXiv:2104.04473, section 5.1, equation 3.
TEST_CASE("step_flops: with full recompute, hardware FLOP are equation 3 of Narayanan 2021") {
  for (TrainingJob job : {gpt(96, 12288, 51200, 1536, 2048), gpt(128, 25600, 51200, 3072, 2048),
                          gpt(24, 2304, 51200, 512, 2048)}) {
    job.recompute = Recompute::full;
    const auto [l, h, V, B, s] = letters(job);
    const double expected = 96 * B * s * l * h * h * (1 + s / (6 * h) + V / (16 * l * h));
    CHECK(step_flops(job).hardware.base_units() == doctest::Approx(expected).epsilon(kRounding));
  }
}

// Korthikanti et al. 2022, arXiv:2205.05198, section 6.3, equation 7.
TEST_CASE("step_flops: model FLOP are equation 7 of Korthikanti 2022, whatever is recomputed") {
  for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    TrainingJob job = gpt(105, 20480, 51200, 280, 2048);
    job.recompute = recompute;
    const auto [l, h, V, B, s] = letters(job);
    const double expected = 72 * B * l * s * h * h * (1 + s / (6 * h) + V / (12 * h * l));
    CHECK(step_flops(job).full.base_units() == doctest::Approx(expected).epsilon(kRounding));
  }
}

TEST_CASE("step_flops: the causal convention leaves out half of the attention square") {
  const TrainingJob job = gpt(48, 8192, 51200, 1, 4096);
  const auto [l, h, V, B, s] = letters(job);
  const StepFlops flops = step_flops(job);
  CHECK((flops.full - flops.causal).base_units() ==
        doctest::Approx(6 * l * h * s * B * s).epsilon(1e-9));
}

TEST_CASE("step_flops: recomputation adds the forward pass of the layers, or their attention") {
  TrainingJob job = gpt(96, 12288, 51200, 1536, 2048);
  CHECK(step_flops(job).hardware == step_flops(job).full);
  const auto [l, h, V, B, s] = letters(job);
  job.recompute = Recompute::selective;
  const double again = (step_flops(job).hardware - step_flops(job).full).base_units();
  CHECK(again == doctest::Approx(4 * B * l * s * s * h).epsilon(1e-9));
  // A flash kernel does that within its backward pass, recomputation or not.
  CHECK(step_flops(job, AttentionKernel::flash2).hardware == step_flops(job).full);
  job.modules.fused_attention = true;
  CHECK(step_flops(job, AttentionKernel::flash2).hardware == step_flops(job).hardware);
  job.recompute = Recompute::full;
  const double forward = (step_flops(job).hardware - step_flops(job).full).base_units();
  CHECK(forward == doctest::Approx(B * s * l * (24 * h * h + 4 * s * h)).epsilon(1e-9));
}

TEST_CASE("step_flops: all modules together repeat the forward pass, but Q, K and V") {
  TrainingJob job = gpt(96, 12288, 51200, 1536, 2048);
  const auto [l, h, V, B, s] = letters(job);
  const auto again = [&](const RecomputeModules& modules) {
    job.recompute = Recompute::selective;
    job.modules = modules;
    return (step_flops(job).hardware - step_flops(job).full).base_units() / (B * s * l);
  };
  const double attention = 4 * s * h;
  CHECK(again({.core_attention = false, .projection = true}) == doctest::Approx(2 * h * h));
  CHECK(again({.core_attention = false, .mlp_up = true}) == doctest::Approx(8 * h * h));
  CHECK(again({.core_attention = false, .mlp = true, .mlp_up = true}) ==
        doctest::Approx(16 * h * h));
  CHECK(again({.core_attention = false, .fused_attention = true}) == doctest::Approx(attention));
  CHECK(again({.mlp = true, .projection = true, .fused_attention = true}) ==
        doctest::Approx(24 * h * h - 6 * h * h + attention));
}

// Llama 3 (arXiv:2407.21783, section 3.2): 3.8e25 FLOP for 405B parameters and 15.6 T tokens, which
// is rounded to two digits and counts 6 FLOP a parameter and token.
TEST_CASE("step_flops: Llama 3 405B takes 3.8e25 FLOP of pre-training") {
  TrainingJob job;
  job.model = PresetStore{}.model("llama3_405b");
  job.batch = {.sequences = 1, .tokens = 8192};
  const double per_token = step_flops(job).causal.base_units() / 8192;
  // Attention at 8,192 tokens adds 4 % that the paper's count leaves out.
  CHECK(per_token * 15.6e12 == doctest::Approx(3.8e25).epsilon(0.05));
}

TEST_CASE("step_flops: adapters leave a forward and one backward pass of the frozen products") {
  TrainingJob job = gpt(24, 2304, 51200, 8, 2048);
  const auto [l, h, V, B, s] = letters(job);
  constexpr double r = 16;
  job.adapters.rank = 16;
  for (const AdapterModule module : {AdapterModule::qkv, AdapterModule::projection,
                                     AdapterModule::mlp_up, AdapterModule::mlp_down}) {
    job.adapters.modules[static_cast<std::size_t>(module)] = true;
  }
  // 12 h^2 weights a layer and V h of the head: 2 FLOP forward and 2 for the gradient of the input.
  // Adapters have r rows for each column into and out of their product, h + 3 h, h + h, h + 4 h and
  // 4 h + h, and are trained: 6. Attention has no weights: 4 s h forward, three times.
  const double token = 4 * (12 * l * h * h + V * h) + 6 * 16 * r * l * h + 3 * 4 * s * h * l;
  CHECK(step_flops(job).full.base_units() == doctest::Approx(B * s * token).epsilon(kRounding));
}

TEST_CASE("step_flops: a window of w keys is seen by all tokens but the first w, who see half") {
  TrainingJob job = gpt(2, 2048, 51200, 1, 4096);
  const auto [l, h, V, B, s] = letters(job);
  job.model.window = 1024;
  REQUIRE(job.kind(0).windowed);
  const double w = 1024;
  // Tokens behind the window meet w keys, those within it w / 2 in the mean.
  const double keys = ((s - w) * w + w * w / 2) / s;
  const double attention = 3 * 4 * h * l * keys, products = 6 * (12 * l * h * h + V * h);
  CHECK(step_flops(job).causal.base_units() ==
        doctest::Approx(B * s * (products + attention)).epsilon(kRounding));
}

}  // namespace lockstep
