// Hybrid models: Mamba-2 mixers, attention, MLPs and experts as layers of one block each.
#include "models/mamba.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "models/input/input_error.hpp"
#include "models/memory.hpp"
#include "models/workload/flops.hpp"
#include "models/workload/operations.hpp"
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
}

TEST_CASE("mamba: useful FLOP of all GPUs add up to the model FLOP of the step") {
  for (const int tensor : {1, 2, 8}) {
    CAPTURE(tensor);
    const Scenario s = hybrid({"parallelism.tensor=" + std::to_string(tensor),
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
}

}  // namespace lockstep
