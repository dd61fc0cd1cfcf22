// What a plan says before anything is simulated.
#include "sim/step/plan.hpp"

#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "sim/scenario/read_scenario.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

StepPlan plan_with(const std::vector<std::string>& set) {
  constexpr std::string_view kText = R"({
    "model": "llama2_7b", "cluster": {"node": "dgx_h100", "nodes": 2},
    "parallelism": {"tensor": 4, "pipeline": 2, "data": 2, "sequence": false},
    "batch": {"sequences": 16, "micro": 2, "tokens": 4096}, "recompute": "none",
    "stack": {"preset": "megatron_core"}})";
  return plan_step(read_scenario("plan.json", kText, test::presets(), {.set = set}));
}

}  // namespace

TEST_CASE("plan: a stack's level is the time of all kernels over what is counted for them") {
  const auto compute = [](const char* level) {
    const StepPlan plan =
        plan_with({std::string("stack.level=") + level, "stack.launch_interval=0",
                   "parallelism.tensor=1", "parallelism.data=8", "stack.communication.sm_share=0"});
    double sum = 0;
    for (const Segment& segment : plan.stages[0].segments) {
      sum += to_seconds(segment.compute).base_units();
    }
    double booked = 0;
    for (const double seconds : plan.stages[0].compute) booked += seconds;
    CHECK(booked == test::near(sum).epsilon(1e-9));
    return sum;
  };
  CHECK(compute("1.5") == test::near(1.5 * compute("1")).epsilon(1e-9));
}

TEST_CASE("plan: a pipeline message is the tensor of a micro batch, or each rank's part of it") {
  // Two sequences of 4,096 tokens, 4,096 numbers of 16 bit each.
  const Bytes whole{2.0 * 2 * 4096 * 4096};
  const std::string apart = "stack.communication.scatter_gather_pipeline=";
  CHECK(plan_with({apart + "false"}).message == whole);
  // Four tensor-parallel ranks send a quarter each, where they have no more of it or gather it
  // again behind the message.
  CHECK(plan_with({apart + "true"}).message == 0.25 * whole);
  CHECK(plan_with({apart + "false", "parallelism.sequence=true"}).message == 0.25 * whole);
  // Ranks that share a sequence send what they have of it.
  CHECK(plan_with({apart + "false", "parallelism.context=2", "parallelism.data=1"}).message ==
        0.5 * whole);
}

}  // namespace lockstep
