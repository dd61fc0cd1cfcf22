// Every two parts of a scenario are simulated together, or refused by one rule with its reason.
#include <array>
#include <doctest/doctest.h>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/answer/answer.hpp"
#include "sim/scenario/feature_rules.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kParts{Feature::pools,    Feature::uneven_batch, Feature::run,  Feature::jobs,
                            Feature::rl,       Feature::power,        Feature::cost, Feature::price,
                            Feature::training, Feature::stragglers};

Json part_of(Feature feature) {
  switch (feature) {
    case Feature::run:
      return {{"duration", "2 d"},
              {"reliability", "llama3_54_days"},
              {"checkpoint", {{"interval", "30 min"}, {"storage", "tectonic_llama3"}}},
              {"trajectories", 2}};
    case Feature::rl:
      return Json::parse(R"({"algorithm": "grpo", "prompts": 4, "generations": 4,
        "prompt_tokens": 100, "responses": {"mean": 200, "most": 400},
        "generation": {"tensor": 1}})");
    case Feature::jobs:
      return Json::parse(R"([{"name": "one", "nodes": [0], "model": "llama3_8b",
        "stack": "megatron_core", "parallelism": {"tensor": 8},
        "batch": {"sequences": 8, "tokens": 4096}}])");
    case Feature::cost:
      return {{"usd_per_gpu", 30000}};
    case Feature::price:
      return {{"usd_per_gpu_hour", 2}};
    case Feature::training:
      return {{"tokens", 1e9}};
    case Feature::stragglers:
      return Json::parse(R"([{"gpu": 3, "slowdown": 1.5}])");
    default:
      return Json::object();
  }
}

/// A small scenario with both parts, and with what either cannot do without.
Json with_both_parts(Feature one, Feature other) {
  const auto has = [&](Feature feature) { return one == feature || other == feature; };
  Json cluster = {{"node", "dgx_h100"}, {"nodes", 2}};
  if (has(Feature::pools)) {
    cluster = Json::parse(R"({"pools": [{"node": "dgx_h100", "nodes": 1},
      {"node": "dgx_a100_80gb", "nodes": 1}], "across": "data", "fabric": "rail_optimised"})");
  }
  Json out = {{"cluster", cluster}};
  if (!has(Feature::jobs)) {
    out["model"] = "llama3_8b";
    out["stack"] = "megatron_core";
    out["parallelism"] = {{"tensor", 4}, {"sharding", "zero1"}};
    out["batch"] = {{"sequences", 16}, {"tokens", 2048}};
    out["recompute"] = "full";
  }
  if (has(Feature::cost)) out["power"] = Json::object();
  for (const Feature feature : {one, other}) {
    if (feature == Feature::pools) continue;
    if (feature == Feature::uneven_batch) {
      Json& job = has(Feature::jobs) ? out["jobs"][0] : out;
      if (has(Feature::jobs)) job = part_of(Feature::jobs)[0];
      if (has(Feature::jobs)) job["parallelism"]["tensor"] = 4;
      job["batch"]["micro_batches"] = has(Feature::jobs) ? Json{5, 3} : Json{5, 5, 3, 3};
    } else if (!out.contains(std::string(name_of(feature)))) {
      out[std::string(name_of(feature))] = part_of(feature);
    }
  }
  return out;
}

std::optional<FeatureConflict> conflict_of(Feature one, Feature other) {
  for (const FeatureConflict& conflict : feature_conflicts()) {
    if (conflict.with) continue;
    if (std::pair(conflict.key, conflict.beside) == std::pair(one, other)) return conflict;
    if (std::pair(conflict.key, conflict.beside) == std::pair(other, one)) return conflict;
  }
  return std::nullopt;
}

/// Stragglers are ranks of a job: among several jobs they stand in one of them.
bool inside_a_job(Feature one, Feature other) {
  return (one == Feature::jobs && other == Feature::stragglers) ||
         (one == Feature::stragglers && other == Feature::jobs);
}

}  // namespace

TEST_CASE("composition: two parts of a scenario are answered, or refused by their rule") {
  std::size_t answered = 0, refused = 0;
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    for (std::size_t j = i + 1; j < kParts.size(); ++j) {
      const Feature one = kParts[i], other = kParts[j];
      if (inside_a_job(one, other)) continue;
      const std::string text = write_json(with_both_parts(one, other));
      CAPTURE(text);
      const std::optional<FeatureConflict> conflict = conflict_of(one, other);
      try {
        const ScenarioAnswer answer = answer_text("two.json", text, test::presets());
        CHECK_FALSE(conflict);
        CHECK(answer.number(answer.kind() == AnswerKind::jobs ? "jobs.one.step_s" : "step_s"));
        ++answered;
      } catch (const InputError& error) {
        CAPTURE(error.what());
        REQUIRE(conflict);
        CHECK(error.problem().allowed.find(conflict->reason) != std::string::npos);
        ++refused;
      }
    }
  }
  CHECK(answered > 30);
  CHECK(refused == 7);
}

TEST_CASE("composition: parts of a run that an iteration of rl refuses, at their key") {
  for (const auto& [pointer, feature] :
       {std::pair{"/run/data", Feature::run_data}, std::pair{"/run/site", Feature::run_site},
        std::pair{"/run/purchase", Feature::run_purchase},
        std::pair{"/run/spares/elastic", Feature::run_elastic}}) {
    CAPTURE(pointer);
    Json both = with_both_parts(Feature::run, Feature::rl);
    both[Json::json_pointer(pointer)] = Json::object();
    const std::optional<FeatureConflict> conflict = conflict_of(feature, Feature::rl);
    REQUIRE(conflict);
    try {
      (void)answer_text("two.json", write_json(both), test::presets());
      FAIL_CHECK("was answered");
    } catch (const InputError& error) {
      CHECK(error.problem().pointer == pointer);
      CHECK(error.problem().allowed ==
            std::string("no such key beside \"rl\": ") + std::string(conflict->reason));
    }
  }
}

TEST_CASE("composition: power and failures of a job on two kinds of node") {
  Json both = with_both_parts(Feature::pools, Feature::power);
  const auto answer_to = [](const Json& scenario) {
    return answer_text("pools.json", write_json(scenario), test::presets());
  };
  const ScenarioAnswer mixed = answer_to(both);
  const double h100 = mixed.number("pools.0.gpu_mean_w").value_or(0);
  const double a100 = mixed.number("pools.1.gpu_mean_w").value_or(0);
  CHECK(h100 > a100);
  CHECK(mixed.number("power.gpu.mean_w").value() == doctest::Approx((h100 + a100) / 2));
  CHECK(mixed.number("power.gpu.peak_w").value() > 400);  // more than an A100 may draw

  // Two pools that are alike draw what the job on that kind does.
  both["cluster"]["pools"][1]["node"] = Json{{"preset", "dgx_h100"}};
  Json one = both;
  one["cluster"] = {{"node", "dgx_h100"}, {"nodes", 2}, {"fabric", "rail_optimised"}};
  const ScenarioAnswer alike = answer_to(both), same = answer_to(one);
  for (const char* name : {"power.facility.mean_w", "power.node.mean_w", "power.gpu.peak_w",
                           "power.levels.waiting_w", "step_s"}) {
    CAPTURE(name);
    REQUIRE(same.number(name));
    CHECK(alike.number(name).value_or(0) == doctest::Approx(*same.number(name)).epsilon(1e-9));
  }

  // A run on both kinds loses as much to failures as one on either.
  one["run"] = both["run"] = part_of(Feature::run);
  const double share = answer_to(both).number("goodput").value();
  CHECK(share == doctest::Approx(answer_to(one).number("goodput").value()).epsilon(1e-9));
}

}  // namespace lockstep
