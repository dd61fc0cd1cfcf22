// Collectives that run beside compute take SMs from it.
#include <doctest/doctest.h>
#include <string>

#include "sim/scenario/read_scenario.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

double step_seconds(const std::string& share, const std::string& overlap) {
  const PresetStore presets;
  const std::string text =
      R"({"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 2},
          "parallelism": {"tensor": 1, "data": 16, "sharding": "zero1"},
          "batch": {"sequences": 64, "micro": 1, "tokens": 4096},
          "stack": {"preset": "megatron_core", "communication": {"sm_share": )" +
      share + R"(, "overlap_gradients": )" + overlap + R"(, "overlap_parameters": )" + overlap +
      "}}}";
  return simulate_step(read_scenario("sm_share.json", text, presets)).step_s;
}

}  // namespace

TEST_CASE("sm_share: slows the passes that collectives run beside, and only those") {
  CHECK(step_seconds("0.2", "true") > step_seconds("0", "true"));
  // A share s of the SMs for the time of the collectives, s / (1 - s) of it: no more than that.
  const double little = step_seconds("0.2", "true") - step_seconds("0", "true");
  const double more = step_seconds("0.5", "true") - step_seconds("0", "true");
  CHECK(more <= 4 * little * (1 + 1e-6));
  CHECK(step_seconds("0.2", "false") == step_seconds("0", "false"));
}

}  // namespace lockstep
