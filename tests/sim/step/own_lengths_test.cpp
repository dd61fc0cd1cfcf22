// Steps of models whose layers have tokens and widths of their own: convolutional UNets, towers
// beside each other, encoders with a decoder behind them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/layer/flops.hpp"
#include "models/layer/memory.hpp"
#include "models/layer/operations.hpp"
#include "models/spec/blocks.hpp"
#include "models/spec/layer.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"
#include "tests/sim/core/test_seed.hpp"

namespace lockstep {
namespace {

const PresetStore& length_presets() {
  static const PresetStore store;
  return store;
}

/// On eight GPUs.
Scenario length_scenario(std::string_view model, int tokens,
                         const std::vector<std::string>& set = {}) {
  const std::string text = fmt::format(
      R"({{"model": "{}", "cluster": {{"node": "dgx_h100", "nodes": 1}},
          "parallelism": {{"tensor": 1, "pipeline": 1, "data": 8}},
          "batch": {{"sequences": 16, "micro": 2, "tokens": {}}}, "recompute": "none",
          "stack": "neutral"}})",
      model, tokens);
  return read_scenario("lengths.json", text, length_presets(), {.set = set});
}
std::string length_complaint(std::string_view model, int tokens,
                             const std::vector<std::string>& set) {
  try {
    (void)length_scenario(model, tokens, set);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

struct LengthCase {
  std::string_view model;
  int tokens;
  std::vector<std::string> set{};
};
const std::vector<LengthCase>& length_cases() {
  static const std::vector<LengthCase> cases{
      {"sd_1_5", 4096},
      {"sd_2_1", 9216},
      {"sdxl", 16384},
      {"t5_v1_1_xxl", 128, {"batch.source_tokens=512"}},
      {"gemma4_26b_a4b", 4096, {"batch.images=2"}},
  };
  return cases;
}
std::vector<std::string> with_more(std::vector<std::string> set, std::vector<std::string> more) {
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

}  // namespace

TEST_CASE("own lengths: a step folded is the step unfolded, replicated and sharded") {
  for (const LengthCase& one : length_cases()) {
    CAPTURE(one.model);
    for (const char* way :
         {"parallelism.sharding=zero1", "parallelism.sharding=zero3", "recompute=full",
          R"(lora={"rank": 8, "modules": ["qkv", "projection"]})"}) {
      CAPTURE(way);
      const Scenario s = length_scenario(one.model, one.tokens, with_more(one.set, {way}));
      const double folded = simulate_step(s).step_s;
      CHECK(folded > 0);
      CHECK(simulate_step(s, {.folding = Folding::unfolded}).step_s ==
            doctest::Approx(folded).epsilon(1e-9));
    }
  }
}

TEST_CASE("own lengths: useful FLOP of all GPUs are the model FLOP of the step") {
  for (const LengthCase& one : length_cases()) {
    CAPTURE(one.model);
    const Scenario s = length_scenario(one.model, one.tokens, one.set);
    const WorkloadContext c{s.job, s.node, s.stack, s.transport, 1, 1, 1};
    const TransformerShape& m = s.job.model;
    Flops gpu;
    const auto add = [&](const std::vector<Operation>& operations) {
      for (const Operation& o : operations) gpu += o.useful;
    };
    add(head_operations(c));
    for (int i = 0; i < m.layers; ++i) add(layer_operations(c, m.kind(i)));
    // A replica's micro batch is an eighth of the step.
    CHECK(8.0 * gpu / step_flops(s.job).causal == doctest::Approx(1).epsilon(1e-9));
  }
}

TEST_CASE(
    "own lengths: what all layers save is the peak's activations, and adds up by resolution") {
  const Scenario s = length_scenario("sdxl", 16384);
  const TransformerShape& m = s.job.model;
  Bytes all;
  for (int i = 0; i < m.layers; ++i) all += saved_per_layer(s.job, s.stack, m.kind(i));
  CHECK(peak_memory(s.job, s.stack, 0).activations.base_units() ==
        doctest::Approx(all.base_units()).epsilon(1e-12));
  // A quarter of the places, twice the channels: a block of the second resolution saves half.
  TrainingJob smaller = s.job;
  smaller.batch.tokens /= 4;
  const LayerKind convolution = m.kind(1);
  REQUIRE(info(convolution.mixer).name == "residual_convolutions");
  CHECK(saved_per_layer(s.job, s.stack, convolution) ==
        4.0 * saved_per_layer(smaller, s.stack, convolution));
  // Two norms, two activations and two convolutions keep what they read, in 16 bit.
  CHECK(saved_per_layer(s.job, s.stack, convolution) == Bytes{2.0 * 16384 * 6 * 320 * 2});
  // With all recomputed, a block keeps its input.
  TrainingJob again = s.job;
  again.recompute = Recompute::full;
  CHECK(saved_per_layer(again, s.stack, convolution) == Bytes{2.0 * 16384 * 320 * 2});
}

TEST_CASE("convolutions: a product as long as its window says, whose input moves once") {
  const Scenario s = length_scenario("sd_1_5", 4096);
  const WorkloadContext c{s.job, s.node, s.stack, s.transport, 1, 1, 1};
  const TransformerShape& m = s.job.model;
  // 320 channels to 320, by windows of 3 x 3.
  const double rows = 2 * 4096, in = 320, out = 320;
  const Bytes moved{2 * (rows * in + 9 * in * out + rows * out)};
  int seen = 0;
  for (const Operation& o : layer_operations(c, m.kind(1))) {
    if (!o.name.starts_with("convolution")) continue;
    ++seen;
    CHECK(o.arithmetic == Flops{2 * rows * 9 * in * out});
    CHECK(o.traffic == moved);
  }
  CHECK(seen == 6);
  // One that halves the image reads four places for each that it writes.
  const auto down = [&](int layer) { return shape_of(m, m.kind(layer)).convolution.halves; };
  int layer = 0;
  while (!down(layer)) ++layer;
  for (const Operation& o : layer_operations(c, m.kind(layer))) {
    if (!o.name.starts_with("convolution")) continue;
    CHECK(o.arithmetic == Flops{2 * (rows / 4) * 9 * in * out});
    if (o.name == "convolution.input_gradient") continue;  // a quarter of the window at a time
    CHECK(o.traffic == Bytes{2 * (rows * in + 9 * in * out + rows / 4 * out)});
  }
}

TEST_CASE("convolutions: weights and FLOP are the closed count, whatever the shape") {
  RandomStream random{{.seed = test::test_seed()}};
  for (int trial = 0; trial < 40; ++trial) {
    const auto draw = [&](int low, int most) {
      return low + static_cast<int>(random.below(static_cast<std::uint32_t>(most - low + 1)));
    };
    ConvolutionShape c{.in = 8 * draw(1, 40), .out = 8 * draw(1, 40), .kernel = 2 * draw(0, 2) + 1};
    const bool residual = draw(0, 1) == 1;
    c.norm = draw(0, 1) == 1;
    (draw(0, 1) == 1 ? c.halves : c.doubles) = !residual && draw(0, 1) == 1;
    c.moment = residual ? draw(0, 64) : 0;
    TrainingJob job;
    TransformerShape& m = job.model;
    m.layers = m.hidden = m.heads = m.kv_heads = m.head_dim = m.ffn = m.vocabulary = 1;
    m.pattern = "x";
    KindShape kind{.letter = "x", .halvings = draw(0, 3), .convolution = c};
    for (const MixerKind* one : mixer_kinds()) {
      if (one->name == (residual ? "residual_convolutions" : "convolution")) {
        kind.mixer = one->mixer;
      }
    }
    m.kinds = {kind};
    job.batch = {.sequences = 2, .micro_sequences = 1, .tokens = 64 * draw(1, 9)};
    CAPTURE(trial);
    const double in = c.in, out = c.out, window = c.kernel * c.kernel;
    const double products = window * in * out + (residual ? window * out * out : 0) +
                            (residual && in != out ? in * out : 0);
    double small = out + (c.norm && !residual ? 2 * in : 0);
    if (residual) {
      small += out + 2 * in + 2 * out + (c.moment > 0 ? (c.moment + 1) * out : 0) +
               (in != out ? out : 0);
    }
    CHECK(layer_parameters(m, m.kind(0)) == products + small);
    const double places = job.batch.tokens / std::pow(4.0, kind.halvings);
    CHECK(step_flops(job).full.base_units() ==
          doctest::Approx(2 * 6 * (places * products + job.batch.tokens)).epsilon(1e-12));
  }
}

TEST_CASE("UNets: what cannot cut one says why in one line") {
  const auto starts = [](const std::string& text, std::string_view with) {
    CAPTURE(text);
    CHECK(text.starts_with(with));
    CHECK(text.find('\n') == std::string::npos);
  };
  starts(length_complaint("sd_1_5", 4096, {"parallelism.tensor=2", "parallelism.data=4"}),
         "lengths.json#/parallelism/tensor: found 2 (--set parallelism.tensor=2); allowed: 1, as "
         "convolutions and norms over groups of channels");
  starts(length_complaint("sdxl", 4096, {"parallelism.tensor=2", "parallelism.data=4"}),
         "lengths.json#/parallelism/tensor: found 2 (--set parallelism.tensor=2); allowed: 1, as "
         "convolutions and norms over groups of channels");
  starts(length_complaint("sd_1_5", 4096, {"parallelism.pipeline=2", "parallelism.data=4"}),
         "lengths.json#/parallelism/pipeline: found 2 (--set parallelism.pipeline=2); allowed: 1, "
         "as the layers of several resolutions of an image are on one stage");
  starts(length_complaint("sd_1_5", 4096, {"parallelism.context=2", "parallelism.data=4"}),
         "lengths.json#/parallelism/context: found 2 (--set parallelism.context=2); allowed: 1, as "
         "convolutions and norms of an image read it");
  starts(length_complaint("sd_1_5", 4000, {}),
         "lengths.json#/batch/tokens: found 4000; allowed: a multiple of 64, as the sides of an "
         "image are halved 3 times");
  starts(length_complaint("sd_1_5", 4096, {"batch.sample_tokens=64"}),
         "lengths.json#/batch/sample_tokens: found packed samples");
  starts(length_complaint("sd_1_5", 4096, {"stack=torchtitan"}), "lengths.json#/model: found a ");
}

TEST_CASE("UNets: an answer says that its convolutions were never held against a run") {
  const auto says = [](const Scenario& s) {
    return std::ranges::any_of(s.assumptions, [](const std::string& one) {
      return one.starts_with("convolutions: at the pace of products of their size");
    });
  };
  CHECK(says(length_scenario("sd_1_5", 4096)));
  CHECK_FALSE(says(length_scenario("dit_xl_2", 256)));
}

TEST_CASE("own lengths: a source is asked for where there is an encoder, images where a tower is") {
  CHECK(length_complaint("llama3_8b", 4096, {"batch.source_tokens=512"})
            .starts_with("lengths.json#/batch/source_tokens: found 512"));
  CHECK(length_complaint("llama3_8b", 4096, {"batch.images=1"})
            .starts_with("lengths.json#/batch/images: found 1"));
  CHECK(length_complaint("qwen3_5_27b", 4096,
                         {"batch.images=1", "parallelism.pipeline=2", "parallelism.data=4"})
            .find("allowed: 1, as the model has layers with tokens or a width of their own") !=
        std::string::npos);
  const double as_long = simulate_step(length_scenario("t5_v1_1_xxl", 512)).step_s;
  CHECK(simulate_step(length_scenario("t5_v1_1_xxl", 512, {"batch.source_tokens=512"})).step_s ==
        as_long);
  CHECK(simulate_step(length_scenario("t5_v1_1_xxl", 512, {"batch.source_tokens=1024"})).step_s >
        as_long);
}

}  // namespace lockstep
