// Products in pieces beside the gathers and scatters of tensor-parallel ranks (asynchronous TP).
#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/layer/operations.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

Scenario job_in_pieces(const std::vector<std::string>& set = {}) {
  constexpr std::string_view kText = R"({
    "model": "llama3_70b", "cluster": {"node": "grand_teton_h100_96gb", "nodes": 2},
    "parallelism": {"tensor": 8, "sharding": "zero3", "tensor_overlap": "pieces"},
    "batch": {"sequences": 4, "micro": 2, "tokens": 8192},
    "recompute": "full", "stack": {"preset": "torchtitan"}})";
  static const PresetStore presets;
  return read_scenario("pieces.json", kText, presets, {set});
}
Seconds time_of(const Scenario& s, std::string_view name, Phase phase) {
  Seconds sum;
  const WorkloadContext c{s.job, s.node, s.stack, s.transport, s.job.parallelism.tensor};
  for (const Operation& o : layer_operations(c)) {
    if (o.name == name && o.phase == phase) sum += o.time;
  }
  return sum;
}

}  // namespace

TEST_CASE("tensor overlap: what a transfer takes beyond the product's other pieces is waited for") {
  const std::string whole = "parallelism.tensor_overlap=none";
  for (const std::string_view slowdown : {"0.1", "4", "40"}) {
    CAPTURE(slowdown);
    const std::string slow = "stack.communication.tensor_slowdown=" + std::string(slowdown);
    const Scenario pieces = job_in_pieces({slow}), none = job_in_pieces({slow, whole});
    const std::string_view collectives[] = {"all_gather", "reduce_scatter"};
    const std::string_view products[][2] = {{"qkv", "mlp_up"}, {"projection", "mlp_down"}};
    for (const Phase phase : {Phase::forward, Phase::recompute}) {
      for (int i : {0, 1}) {
        const Seconds alone = 0.5 * time_of(none, collectives[i], phase);
        Seconds waited;
        for (const std::string_view product : products[i]) {
          waited += std::max(Seconds{}, alone - 7.0 / 8 * time_of(pieces, product, phase));
        }
        CHECK(time_of(pieces, collectives[i], phase).base_units() ==
              doctest::Approx(waited.base_units()));
        if (slowdown == "40") CHECK(waited > Seconds{});
        if (slowdown == "0.1") CHECK(waited == Seconds{});
      }
    }
    // The same arithmetic, in kernels that are no faster for being smaller; weights' gradients are
    // one product as before.
    CHECK(time_of(pieces, "mlp_down", Phase::forward) >= time_of(none, "mlp_down", Phase::forward));
    CHECK(time_of(pieces, "qkv.weight_gradient", Phase::backward) ==
          time_of(none, "qkv.weight_gradient", Phase::backward));
  }
}

TEST_CASE("tensor overlap: nothing to cut without tensor-parallel ranks") {
  Scenario one = job_in_pieces({"parallelism.tensor_overlap=none"});
  one.job.parallelism.tensor = 1;
  Scenario cut = one;
  cut.job.parallelism.tensor_overlap = TensorOverlap::pieces;
  CHECK(simulate_step(cut).step_s == simulate_step(one).step_s);
  const auto problem = [](const std::vector<std::string>& set) -> std::string {
    try {
      (void)job_in_pieces(set);
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  };
  CHECK(problem({"parallelism.tensor=1", "batch.sequences=32"})
            .find("no such key, where tensor is 1") != std::string::npos);
  CHECK(problem({"parallelism.sequence=false"}).find("no such key, unless sequence is true") !=
        std::string::npos);
  CHECK(problem({"parallelism.tensor_overlap=piece"}).find("Did you mean \"pieces\"?") !=
        std::string::npos);
}

// TorchTitan published 5 to 9 % (benchmarks/asyncTP_llama3_h100_2025-06_torchtitan.md).
TEST_CASE("tensor overlap: Llama 3 70B gains what asynchronous tensor parallelism does, or more") {
  const double pieces = simulate_step(job_in_pieces()).step_s;
  const double none = simulate_step(job_in_pieces({"parallelism.tensor_overlap=none"})).step_s;
  CHECK(pieces < 0.95 * none);
  CHECK(pieces > 0.84 * none);
}

}  // namespace lockstep
