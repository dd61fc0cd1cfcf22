#include "sim/answer/scaling.hpp"

#include <array>
#include <doctest/doctest.h>
#include <numeric>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/answer/answer.hpp"
#include "sim/scenario/read_scenario.hpp"
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

TEST_CASE("scaling: a run of weeks has its goodput, days and money at each size, both ways") {
  const std::string weeks = kScaledJob.substr(0, kScaledJob.rfind('}')) + R"(,
    "training": {"tokens": 4e10}, "run": {"trajectories": 2, "checkpoint": {"interval": "1 h",
    "storage": {"write": "10 GB/s", "read": "10 GB/s"}},
    "reliability": {"modes": [{"name": "node", "component": "node", "mean_time": "200 d"}]}}})";
  const std::array gpus{32, 64};
  const Scaling scaling = scale("t.json", weeks, presets(), {.allow_oom = true}, gpus);
  for (const auto* series : {&scaling.strong, &scaling.weak}) {
    for (const ScalingPoint& point : *series) {
      CAPTURE(point.gpus);
      REQUIRE(point.problem.empty());
      REQUIRE(point.goodput);
      CHECK(*point.goodput > 0.9);
      CHECK(*point.goodput < 1);
      CHECK(*point.tokens_done == doctest::Approx(4e10).epsilon(1e-3));
      CHECK(*point.done_s * *point.goodput ==
            doctest::Approx(4e10 / point.tokens_per_s).epsilon(0.01));
      CHECK(*point.usd == doctest::Approx(2 * point.gpus * *point.done_s / 3600).epsilon(1e-9));
    }
    CHECK(*series->back().done_s < *series->front().done_s);
  }
  CHECK_FALSE(scale("t.json", kScaledJob, presets(), {.allow_oom = true}, gpus).weak[0].goodput);
}

TEST_CASE("scaling: of a run energy, money and what they are for each token are those of the run") {
  const auto with = [](const std::string& more) {
    return kScaledJob.substr(0, kScaledJob.rfind(", \"price\"")) + more + R"(,
    "training": {"tokens": 4e10}, "power": {},
    "run": {"trajectories": 2, "checkpoint": {"interval": "1 h",
    "storage": {"write": "10 GB/s", "read": "10 GB/s"}},
    "reliability": {"modes": [{"name": "node", "component": "node", "mean_time": "3 d"}]}}})";
  };
  const std::array gpus{64};
  const auto scaled = [&](const std::string& text) {
    return scale("t.json", text, presets(), {.allow_oom = true}, gpus);
  };
  const auto answered = [&](const std::string& text) {
    return answer_text("t.json", text, presets(), {.allow_oom = true});
  };
  const std::string energy = with(R"(, "cost": {"usd_per_kwh": 0.1})");
  const ScalingPoint weak = scaled(energy).weak[0];
  const ScenarioAnswer run = answered(energy);
  REQUIRE(weak.problem.empty());
  CHECK(*weak.joules_per_token == doctest::Approx(*run.number("joules_per_token")).epsilon(1e-9));
  CHECK(weak.usd_of == "energy only");
  CHECK(*weak.usd == doctest::Approx(*run.number("energy_usd")).epsilon(1e-9));
  CHECK(*weak.usd_per_trillion_tokens ==
        doctest::Approx(*weak.usd / *weak.tokens_done * 1e12).epsilon(1e-12));
  // Failures, restarts and what they do again are in it: more than in a healthy step.
  const std::string step = kScaledJob.substr(0, kScaledJob.rfind('}')) + R"(, "power": {}})";
  CHECK(*weak.joules_per_token > *scaled(step).weak[0].joules_per_token);
  const ScalingPoint rented = scaled(with(R"(, "price": {"usd_per_gpu_hour": 2})")).weak[0];
  CHECK(rented.usd_of == "rented");
  CHECK(*rented.usd > 50 * *weak.usd / 10);
}

TEST_CASE("scaling: lots stay as they are, and a size that they never bring is refused") {
  const std::string weeks = kScaledJob.substr(0, kScaledJob.rfind(", \"price\"")) + R"(,
    "training": {"tokens": 4e10}, "run": {"trajectories": 1, "reliability": {"modes": []},
    "purchase": {"lots": [
      {"name": "first", "terms": "on_demand", "nodes": 8, "usd_per_gpu_hour": 2, "until": "1 d"},
      {"name": "own", "terms": "on_demand", "nodes": 8, "lead_time": "2 d",
       "usd_per_gpu_hour": 1}]}}})";
  const std::array gpus{32, 64, 128};
  const Scaling scaling = scale("t.json", weeks, presets(), {.allow_oom = true}, gpus);
  for (const auto* series : {&scaling.strong, &scaling.weak}) {
    CHECK((*series)[0].problem.empty());
    CHECK((*series)[1].problem.empty());
    // Sixteen nodes are of lots that are never there together.
    CHECK((*series)[2].problem ==
          "run/purchase/lots: found lots that bring 8 nodes at once; allowed: at least the 16 "
          "nodes of 128 GPUs");
    CHECK((*series)[1].usd_of == "machines of lots");
  }
  REQUIRE(scaling.assumptions.size() == 1);
  CHECK(scaling.assumptions[0].starts_with("run.purchase: lots stay as they are given"));
  CHECK(scaling_json(scaling)["assumptions"].size() == 1);
  CHECK(scale("t.json", kScaledJob, presets(), {.allow_oom = true}, gpus).assumptions.empty());
  const std::array only{128};
  CHECK_THROWS_AS(scale("t.json", weeks, presets(), {.allow_oom = true}, only), InputError);
}

TEST_CASE("h100 equivalents: by the dense 16-bit peak, of cards without BF16 by FP16") {
  const auto of = [](const char* node) {
    const std::string text = std::string(R"({"cluster": {"node": ")") + node + R"(", "nodes": 1},
        "model": "llama3_8b", "parallelism": {"data": 8, "sharding": "zero3"},
        "batch": {"sequences": 8, "micro": 1, "tokens": 512}, "precision": "fp16"})";
    return h100_equivalents(read_scenario("t.json", text, presets()), 8);
  };
  CHECK(of("dgx_h100") == doctest::Approx(8).epsilon(1e-3));
  // 312 and 125 TFLOP/s by their datasheets, of 989.4.
  CHECK(of("dgx_a100_80gb") == doctest::Approx(8 * 312 / 989.4).epsilon(1e-3));
  CHECK(of("dgx_v100") == doctest::Approx(8 * 125 / 989.4).epsilon(0.02));
}

}  // namespace lockstep
