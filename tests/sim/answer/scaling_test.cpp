#include "sim/answer/scaling.hpp"

#include <array>
#include <doctest/doctest.h>
#include <numeric>
#include <string>

#include "models/base/input_error.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using test::presets;

const std::string kScaledJob = R"({"cluster": {"node": "dgx_h100", "nodes": 8},
    "model": "llama3_8b", "parallelism": {"data": 64, "sharding": "zero1"},
    "batch": {"sequences": 256, "micro": 1, "tokens": 2048},
    "recompute": "full", "stack": "megatron_core", "price": {"usd_per_gpu_hour": 2}})";

}  // namespace

TEST_CASE("scaling: losses by bucket add up to what is missing, at every size, both ways") {
  const std::array gpus{8, 16, 64, 128};
  const Scaling scaling = scale("t.json", kScaledJob, presets(), {.allow_oom = true}, gpus);
  for (const auto* series : {&scaling.strong, &scaling.weak}) {
    REQUIRE(series->size() == gpus.size());
    for (const ScalingPoint& point : *series) {
      CAPTURE(point.gpus);
      CHECK(point.problem.empty());
      const double lost = std::accumulate(point.lost.begin(), point.lost.end(), 0.0);
      CHECK(lost == doctest::Approx(1 - point.efficiency).epsilon(1e-9));
      CHECK(point.h100_equivalents == doctest::Approx(point.gpus).epsilon(0.001));
      CHECK(*point.usd_per_trillion_tokens ==
            doctest::Approx(2.0 * point.gpus / 3600 / point.tokens_per_s * 1e12));
    }
    CHECK(series->front().efficiency == 1);
  }
  // The same batch on more GPUs leaves less to do between exchanges.
  CHECK(scaling.strong.back().efficiency < scaling.weak.back().efficiency);
  CHECK(scaling.strong.back().sequences == 256);
  CHECK(scaling.weak.back().sequences == 512);
}

TEST_CASE("scaling: a size that cannot be says why, and none at all is an error") {
  const std::array some{12, 64};
  const Scaling scaling = scale("t.json", kScaledJob, presets(), {.allow_oom = true}, some);
  CHECK(scaling.weak[0].problem == "not whole replicas of 1 GPU on nodes of 8");
  CHECK(scaling.weak[1].efficiency == 1);
  const std::array none{12};
  CHECK_THROWS_AS(scale("t.json", kScaledJob, presets(), {.allow_oom = true}, none), InputError);
}

}  // namespace lockstep
