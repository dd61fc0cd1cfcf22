// lockstep explain: what stands behind a number.
#include "tools/lockstep/explain/explanation.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "sim/answer/formulas.hpp"
#include "tests/support/presets.hpp"
#include "tests/tools/ran.hpp"

namespace lockstep::test {
namespace {

using Json = nlohmann::ordered_json;

ScenarioAnswer explained_answer(const std::string& name, std::vector<std::string> set = {}) {
  return answer_scenario(LOCKSTEP_SOURCE_DIR "/scenarios/" + name, presets(),
                         {.set = std::move(set), .allow_oom = true, .trajectories = 20});
}

/// The number at the path of an input of a formula.
std::optional<double> explained_input(const ScenarioAnswer& answer, const Formula& formula,
                                      std::string_view name) {
  for (const FormulaInput& input : inputs_of(formula)) {
    if (input.name == name) return answer.number(input.path);
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("formulas: every number of the first level of every answer has one") {
  for (const AnswerKind kind : kAnswerKinds) {
    for (const std::string& field : explained_fields(kind)) {
      CAPTURE(field);
      const Formula* const formula = formula_of(kind, field);
      REQUIRE(formula != nullptr);
      CHECK_FALSE(formula->text.empty());
    }
  }
}

TEST_CASE("formulas: an expression of the inputs is the value, wherever all of them are there") {
  std::set<std::string> tried;
  for (const ScenarioAnswer& answer :
       {explained_answer("gpt3-175b-selene.json"), explained_answer("llama3-405b-54days.json"),
        explained_answer("power/llama3-405b-16k-power.json", {"power.site_limit=30 MW"}),
        explained_answer("gpt3-175b-selective.json", {"batch.sequences=128", "batch.tokens=4096"}),
        explained_answer("power/llama3-405b-16k-power.json",
                         {R"(run={"duration": "2 d", "reliability": "llama3_54_days",
                                   "checkpoint": {"to": "storage", "interval": "30 min",
                                                  "storage": "tectonic_llama3"},
                                   "recovery": {"detects_crash": "1 min", "detects_hang": "10 min",
                                                "diagnoses": "2 min", "restarts": "5 min"}})"}),
        explained_answer("rl/grpo-llama3-8b-colocated.json"),
        explained_answer("queue/slurm-recorded.json"),
        explained_answer("serving/llama3-70b-h100-chat.json", {"serving.load.requests=500"})}) {
    for (const std::string& field : explained_fields(answer.kind())) {
      const Formula& formula = *formula_of(answer.kind(), field);
      const std::optional<double> shown = answer.number(field);
      if (!formula.arithmetic || !shown) continue;
      const std::optional<double> worked_out = evaluate(formula.text, [&](std::string_view name) {
        return explained_input(answer, formula, name);
      });
      CAPTURE(field);
      CAPTURE(name_of(answer.kind()));
      REQUIRE(worked_out.has_value());
      CHECK(std::abs(*worked_out - *shown) <= 1e-9 * std::abs(*shown));
      tried.insert(field);
    }
  }
  for (const Formula& formula : formulas()) {
    CAPTURE(formula.field);
    CHECK((!formula.arithmetic || tried.contains(std::string(formula.field))));
  }
}

TEST_CASE("formulas: an expression without one of its values has none") {
  const auto of = [](std::string_view name) {
    return name == "a" ? std::optional(6.0) : std::nullopt;
  };
  CHECK(evaluate("2 * (a - 1) / 4 + a", of) == 8.5);
  CHECK(evaluate("a - 1 - 1", of) == 4);
  CHECK_FALSE(evaluate("a + b", of).has_value());
}

TEST_CASE("lockstep explain: an input is from its preset with its source, or from the scenario") {
  const ScenarioAnswer answer = explained_answer("gpt3-175b-selene.json");
  const FieldExplanation mfu = explain_field("f", answer, "mfu", presets());
  REQUIRE(mfu.inputs.size() == 2);
  CHECK(mfu.inputs[1].from.starts_with("gpus/a100_sxm4_80gb.json: peak_fp16 312 TFLOP/s, "));
  CHECK(mfu.low.value() < mfu.value);
  CHECK(mfu.high.value() > mfu.value);
  const FieldExplanation tokens = explain_field("f", answer, "tokens_per_step", presets());
  CHECK(tokens.inputs[0].from == "scenario: batch.sequences");
  CHECK(tokens.nearest.empty());
  CHECK_FALSE(tokens.low.has_value());
}

TEST_CASE("lockstep explain: the nearest published run of a published job is that run") {
  const FieldExplanation step =
      explain_field("f", explained_answer("gpt3-175b-selene.json"), "step_s", presets());
  REQUIRE(step.nearest.size() == 5);
  CHECK(step.nearest.front().gpu == "a100_sxm4_80gb");
  CHECK(step.nearest.front().gpus == 1536);
  CHECK(step.nearest.front().distance <= step.nearest.back().distance);
}

TEST_CASE("lockstep explain: names that are none, with the nearest") {
  const Ran ran = lockstep_with({"explain", "gpt3-175b-selective", "mfu_casual"});
  CHECK(ran.exit == Exit::bad_input);
  CHECK(ran.err.find("found \"mfu_casual\"; allowed: a number of the first level of its answer") !=
        std::string::npos);
  CHECK(ran.err.ends_with("Did you mean \"mfu_causal\"?\n"));
  CHECK(lockstep_with({"explain", "gpt3-175b-selective"}).exit == Exit::bad_input);
  const Ran good = lockstep_with({"explain", "gpt3-175b-selective", "mfu"});
  CHECK(good.exit == Exit::ok);
  CHECK(good.out.find("mfu = tflops_per_gpu * 1e12 / peak") != std::string::npos);
  CHECK(good.out.find("Nearest published runs") != std::string::npos);
}

}  // namespace lockstep::test
