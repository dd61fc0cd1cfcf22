// Hybrid models: Mamba-2 mixers, attention, MLPs and experts as layers of one block each.
#include "models/spec/mamba.hpp"

#include <doctest/doctest.h>
#include <string>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/layer/flops.hpp"
#include "models/layer/memory.hpp"
#include "models/layer/operations.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kHybrid = R"({
  "model": "nemotron_h_8b", "cluster": {"node": "dgx_h100", "nodes": 1},
  "parallelism": {"tensor": 2, "data": 4}, "batch": {"sequences": 8, "tokens": 8192},
  "recompute": "none", "stack": "megatron_core"})";

Scenario hybrid(const std::vector<std::string>& set = {}) {
  static const PresetStore presets;
  return read_scenario("hybrid.json", kHybrid, presets, {set});
}
std::string refusal(const std::vector<std::string>& set) {
  try {
    (void)hybrid(set);
  } catch (const InputError& error) {
    return error.what();
  }
  return "fine";
}

}  // namespace

// Billions of weights in the models' names.
TEST_CASE("mamba: hybrid models have as many weights as their names say") {
  const PresetStore presets;
  CHECK(total_parameters(presets.model("nemotron_h_8b")) == doctest::Approx(8.1e9).epsilon(0.02));
  CHECK(total_parameters(presets.model("nemotron_h_47b")) == doctest::Approx(47e9).epsilon(0.02));
  CHECK(total_parameters(presets.model("nemotron_h_56b")) == doctest::Approx(56e9).epsilon(0.02));
  CHECK(total_parameters(presets.model("nemotron_nano_9b_v2")) ==
        doctest::Approx(8.9e9).epsilon(0.02));
  CHECK(total_parameters(presets.model("nemotron_nano_12b_v2")) ==
        doctest::Approx(12.3e9).epsilon(0.02));
  CHECK(total_parameters(presets.model("nemotron3_nano_30b_a3b")) ==
        doctest::Approx(31.6e9).epsilon(0.02));
  // Jamba: 52 and 398 billion, 12 and 94 of them at work (arXiv:2403.19887, arXiv:2408.12570).
  const TransformerShape mini = presets.model("jamba_52b"), large = presets.model("jamba_398b");
  CHECK(total_parameters(mini) == doctest::Approx(52e9).epsilon(0.02));
  CHECK(total_parameters(large) == doctest::Approx(398e9).epsilon(0.02));
  const auto at_work = [](const TransformerShape& m) {
    double sum = 0;
    for (int i = 0; i < m.layers; ++i) sum += layer_matrix_parameters(m, m.kind(i));
    return sum;
  };
  CHECK(at_work(mini) == doctest::Approx(12e9).epsilon(0.04));
  CHECK(at_work(large) == doctest::Approx(94e9).epsilon(0.02));
}

TEST_CASE("mamba: of the first generation, a scan moves its columns and works on each state") {
  const MambaShape s{.heads = 8192, .head_dim = 1, .state = 16, .step_rank = 256};
  CHECK(s.in() == 2 * 8192);
  CHECK(s.mixed() == 8192);
  CHECK(scan_flops(s) == 9.0 * 8192 * 16);
  CHECK(scan_bytes(s) == 2 * (4.0 * 8192 + 2 * 16));
  TransformerShape m = PresetStore{}.model("jamba_52b");
  CHECK(layer_matrix_parameters(m, {.mixer = Mixer::mamba, .feed_forward = false}) ==
        4096.0 * 3 * 8192 + 8192.0 * (256 + 2 * 16) + 256.0 * 8192);
  // Memory of a layer: the product in, what was selected, and the recurrence's result, in 16 bit.
  const Scenario job = hybrid({R"(model="jamba_52b")", "parallelism.tensor=1"});
  const LayerKind mixer = job.job.model.kind(0);
  const double norm = 2 * 2 * 4096;  // its input and its output
  CHECK(saved_per_layer(job.job, job.stack, mixer).base_units() ==
        doctest::Approx(8192 * (norm + 2 * (2 * 8192.0 + 256 + 32 + 8192))));
}

TEST_CASE("mamba: useful FLOP of all GPUs add up to the model FLOP of the step") {
  for (const auto& [model, tensor] : {std::pair{"nemotron_h_8b", 1},
                                      {"nemotron_h_8b", 2},
                                      {"nemotron_h_8b", 8},
                                      {"jamba_52b", 1},
                                      {"jamba_52b", 4}}) {
    CAPTURE(model);
    CAPTURE(tensor);
    const Scenario s = hybrid({"model=\"" + std::string(model) + "\"",
                               "parallelism.tensor=" + std::to_string(tensor),
                               "parallelism.data=" + std::to_string(8 / tensor)});
    const WorkloadContext c{s.job, s.node, s.stack, s.transport, tensor};
    Flops gpu;
    for (int i = 0; i < s.job.model.layers; ++i) {
      for (const Operation& o : layer_operations(c, s.job.model.kind(i))) gpu += o.useful;
    }
    for (const Operation& o : head_operations(c)) gpu += o.useful;
    CHECK(8.0 * tensor * gpu / step_flops(s.job).causal == doctest::Approx(1).epsilon(1e-12));
  }
}

TEST_CASE("mamba: an attention and an MLP layer are together a layer of an ordinary model") {
  // Without replicas: their gradients go in buckets, which end with a layer.
  const std::string alone = "parallelism.data=1", wide = "parallelism.tensor=8";
  const Scenario plain = hybrid({alone, wide, R"(model={"layers":1,"hidden":4096,"heads":32,
      "kv_heads":8,"ffn":21504,"vocabulary":131072})"});
  const Scenario split = hybrid({alone, wide, R"(model={"layers":2,"hidden":4096,"heads":32,
      "kv_heads":8,"ffn":21504,"vocabulary":131072,"pattern":"*-"})"});
  CHECK(total_parameters(plain.job.model) == total_parameters(split.job.model));
  CHECK(step_flops(plain.job).full == step_flops(split.job).full);
  CHECK(simulate_step(split).step_s == doctest::Approx(simulate_step(plain).step_s).epsilon(1e-9));
  CHECK(peak_memory(split.job, split.stack, 0).needed().base_units() ==
        doctest::Approx(peak_memory(plain.job, plain.stack, 0).needed().base_units()));
}

TEST_CASE("mamba: work grows with the sequence, attention's with its square") {
  const auto flops = [](int tokens, const char* pattern) {
    const Scenario s = hybrid({"batch.tokens=" + std::to_string(tokens), "model.layers=1",
                               std::string("model.pattern=") + pattern});
    return step_flops(s.job).full.base_units();
  };
  CHECK(flops(32768, "M") == doctest::Approx(4 * flops(8192, "M")));
  CHECK(flops(32768, "*") > 4.5 * flops(8192, "*"));
  // 2 N P for the state and as much for what it gives, of every head.
  MambaShape state = hybrid().job.model.mamba;
  state.chunk = 0;
  CHECK(scan_flops(state) == 4.0 * 128 * 64 * 128);
}

TEST_CASE("mamba: what cannot be is refused in one line") {
  CHECK(refusal({"model.pattern=MMX"}).find("/model/pattern") != std::string::npos);
  CHECK(refusal({"model.pattern=M*-"}).find("52 letters") != std::string::npos);
  CHECK(refusal({"model.layers=51"}).find("/model/layers") != std::string::npos);
  CHECK(refusal({"model.layers=2", "model.pattern=ME"}).find("no E") != std::string::npos);
  CHECK(refusal({"parallelism.context=2", "parallelism.data=2"}).find("/parallelism/context") !=
        std::string::npos);
  CHECK(refusal({"parallelism.tensor=16", "cluster.nodes=2", "parallelism.data=1"})
            .find("/parallelism/tensor") != std::string::npos);
  CHECK(refusal({R"(model={"preset":"jamba_52b","mamba":{"groups":8}})"}).find("Mamba-1") !=
        std::string::npos);
}

}  // namespace lockstep
