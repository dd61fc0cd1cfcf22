// What would help: each standard change is what --set would make of the scenario.
#include "sim/answer/advice.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "tests/support/near.hpp"
#include "tests/support/presets.hpp"

namespace lockstep::test {
namespace {

const std::string kPipelined = R"({"model": "llama3_8b", "stack": "megatron_core",
    "cluster": {"node": "dgx_h100", "nodes": 8, "fabric": {"kind": "fat_tree",
        "leaf_ports_down": 16, "leaf_oversubscription": 4}},
    "parallelism": {"tensor": 4, "pipeline": 4, "data": 4},
    "batch": {"sequences": 64, "micro": 1, "tokens": 4096}})";

Advice advice_of(const std::string& text, const Question& question = {}) {
  return advise("s.json", text, presets(), question, [](std::size_t, std::size_t) {});
}

const AdvisedChange* find(const Advice& advice, const std::string& words) {
  const auto at = std::ranges::find(advice.changes, words,
                                    [](const AdvisedChange& each) { return each.change.words; });
  return at == advice.changes.end() ? nullptr : &*at;
}

}  // namespace

TEST_CASE("advice: every change is simulated, and its gain is that of tokens per GPU") {
  const Advice advice = advice_of(kPipelined);
  REQUIRE(advice.changes.size() >= 8);
  for (const AdvisedChange& each : advice.changes) {
    CAPTURE(each.change.words);
    const ScenarioAnswer answer =
        answer_text("s.json", kPipelined, presets(), {.set = each.change.sets});
    CHECK(answer.number("step_s") == number_named(each.numbers, "step_s"));
    CHECK(answer.number("tokens_per_s_per_gpu").value() /
                  number_named(advice.numbers, "tokens_per_s_per_gpu").value() -
              1 ==
          Near(each.gain).epsilon(1e-12));
    REQUIRE(each.gain_low);
    CHECK(*each.gain_low < each.gain);
    CHECK(*each.gain_high > each.gain);
  }
  CHECK(std::ranges::is_sorted(advice.changes, std::greater{}, &AdvisedChange::gain));
}

TEST_CASE("advice: the largest gain comes first, and it is that of trying each by hand") {
  const Advice advice = advice_of(kPipelined);
  double best = 0;
  std::string which;
  const ScenarioAnswer own = answer_text("s.json", kPipelined, presets());
  // A few of the same single changes, written out by hand.
  const std::vector<std::pair<std::string, std::vector<std::string>>> by_hand{
      {"micro batch 1 -> 2", {"batch.micro=2"}},
      {"sequences of a step 64 -> 128", {"batch.sequences=128"}},
      {"tensor-parallel width 4 -> 2", {"parallelism.tensor=2", "parallelism.data=8"}},
      {"pipeline stages 4 -> 2", {"parallelism.pipeline=2", "parallelism.data=8"}},
      {"leaf_oversubscription 4 -> 1", {"cluster.fabric.leaf_oversubscription=1"}}};
  for (const auto& [words, sets] : by_hand) {
    const ScenarioAnswer answer = answer_text("s.json", kPipelined, presets(), {.set = sets});
    const double gain =
        answer.number("tokens_per_s_per_gpu").value() / own.number("tokens_per_s_per_gpu").value() -
        1;
    const AdvisedChange* const advised = find(advice, words);
    CAPTURE(words);
    REQUIRE(advised != nullptr);
    CHECK(advised->gain == Near(gain).epsilon(1e-12));
    if (gain > best) {
      best = gain;
      which = words;
    }
  }
  CHECK(advice.changes.front().gain >= best);
}

TEST_CASE("advice: what cannot be is refused with its reason, and nothing is in both lists") {
  const Advice advice = advice_of(kPipelined);
  REQUIRE_FALSE(advice.refused.empty());
  for (const RefusedChange& each : advice.refused) {
    CAPTURE(each.change.words);
    CHECK(each.why.starts_with("s.json#/"));
    CHECK(find(advice, each.change.words) == nullptr);
  }
  // Zero-bubble schedules are nothing that Megatron-Core runs.
  const auto zero_bubble =
      std::ranges::find(advice.refused, std::string("schedule 1f1b -> zb_h1"),
                        [](const RefusedChange& each) { return each.change.words; });
  CHECK(zero_bubble != advice.refused.end());
}

TEST_CASE("advice: several jobs on one fabric have no pace that it could raise") {
  const std::string jobs = R"({"cluster": {"node": "dgx_h100", "nodes": 2, "fabric": "fat_tree"},
      "jobs": [{"name": "a", "nodes": [0, 1], "model": "llama3_8b",
                "parallelism": {"tensor": 8},
                "batch": {"sequences": 16, "micro": 1, "tokens": 2048}}]})";
  CHECK_THROWS_WITH_AS(advice_of(jobs),
                       "s.json: found a scenario with \"jobs\"; allowed: what has a pace: a single "
                       "step, weeks of them, a queue whose jobs end or a service",
                       InputError);
}

namespace {

const std::string kWeeksOfSteps = R"({"model": "llama3_8b", "stack": "megatron_core",
    "cluster": {"node": "dgx_h100", "nodes": 16},
    "parallelism": {"tensor": 4, "data": 32},
    "batch": {"sequences": 128, "micro": 1, "tokens": 4096},
    "run": {"duration": "20 d", "trajectories": 8,
            "reliability": {"modes": [{"name": "node", "component": "node", "mean_time": "16 d"}]},
            "checkpoint": {"interval": "6 h", "mode": "synchronous",
                           "storage": {"write": "2 GB/s", "read": "2 GB/s"}},
            "recovery": {"detects_crash": "20 min", "restarts": "10 min"},
            "spares": {"hot": 2, "repair": "1 d"}}})";

const std::string kAdvisedQueue = R"({"cluster": {"node": "dgx_h100", "nodes": 2},
    "queue": {"order": "fifo", "admission": "strict", "quotas": [{"user": "a", "gpus": 8}],
      "jobs": [{"job": {"name": "wide", "gpus": 16, "runs": "4 h", "tasks": 2}},
               {"job": {"name": "short", "gpus": 1, "runs": "10 min", "tasks": 12}},
               {"job": {"name": "of a", "user": "a", "gpus": 8, "runs": "1 h", "tasks": 3}}]}})";

const std::string kAdvisedService = R"({"model": "llama3_8b",
    "cluster": {"node": "dgx_h100", "nodes": 1},
    "serving": {"load": {"rate": 20, "requests": 150, "input": {"mean": 900, "sigma": 0.5},
                         "output": {"mean": 200, "sigma": 0.5}},
                "pools": {"both": {"replicas": 4, "tensor": 2, "engine": "vllm"}}}})";

/// Every change is what --set makes of the scenario, and none that is left out would be better.
void holds_by_hand(const std::string& text, double (*measure)(const ScenarioAnswer&),
                   const std::vector<std::string>& expected) {
  const Advice advice = advice_of(text);
  const double own = measure(answer_text("s.json", text, presets()));
  REQUIRE_FALSE(advice.changes.empty());
  for (const AdvisedChange& each : advice.changes) {
    CAPTURE(each.change.words);
    const ScenarioAnswer answer = answer_text("s.json", text, presets(), {.set = each.change.sets});
    CHECK(measure(answer) / own - 1 == Near(each.gain).epsilon(1e-9));
  }
  CHECK(std::ranges::is_sorted(advice.changes, std::greater{}, &AdvisedChange::gain));
  for (const std::string& words : expected) CHECK_MESSAGE(find(advice, words) != nullptr, words);
}

}  // namespace

TEST_CASE("advice: of weeks, failures, checkpoints and steps are changed, each by itself") {
  holds_by_hand(kWeeksOfSteps,
                [](const ScenarioAnswer& a) {
                  return a.number("tokens_done").value() / a.number("held_gpu_hours").value();
                },
                {"checkpoint interval 6.00 h -> 3.00 h", "checkpoints written while it trains",
                 "storage of twice the rate", "crashes noticed after 20.0 min -> 10.0 min",
                 "hot spares 2 -> 1", "hot spares 2 -> 4", "micro batch 1 -> 2"});
}

TEST_CASE("advice: of weeks, a gain has the spread of drawing, and of steps that of pairs too") {
  const Advice advice = advice_of(kWeeksOfSteps);
  const auto width = [&advice](const std::string& words) {
    const AdvisedChange* const change = find(advice, words);
    REQUIRE_MESSAGE(change != nullptr, words);
    REQUIRE(change->gain_low);
    CHECK(*change->gain_low < change->gain);
    CHECK(*change->gain_high > change->gain);
    return (1 + *change->gain_high) / (1 + *change->gain_low);
  };
  CHECK(width("micro batch 1 -> 2") > width("checkpoint interval 6.00 h -> 3.00 h"));
}

TEST_CASE("advice: of a queue, its rules are changed, and what leaves jobs undone is no gain") {
  holds_by_hand(kAdvisedQueue,
                [](const ScenarioAnswer& a) { return 1 / a.number("completion_mean_s").value(); },
                {"order fifo -> sjf", "admission strict -> easy", "preemption none -> replan",
                 "quotas lifted", "nodes 2 -> 3 (8 more GPUs)", "whole nodes first_fit -> packed"});
  const Advice advice = advice_of(kAdvisedQueue);
  for (const AdvisedChange& each : advice.changes) {
    CHECK_FALSE(each.gain_low);
    CHECK(each.change.words.find("las") == std::string::npos);  // it needs levels
  }
}

TEST_CASE("advice: of a service, widths, passes, formats and the card are changed") {
  holds_by_hand(kAdvisedService,
                [](const ScenarioAnswer& a) { return 1 / a.number("e2e_s.mean").value(); },
                {"tensor-parallel width 2 -> 4, replicas 4 -> 2",
                 "tensor-parallel width 2 -> 1, replicas 4 -> 8", "replicas 4 -> 5 (2 more GPUs)",
                 "cache bf16 -> fp8", "weights bf16 -> fp8", "router least_loaded -> round_robin"});
  const Advice advice = advice_of(kAdvisedService);
  const auto card = std::ranges::find_if(
      advice.changes, [](const AdvisedChange& each) { return each.change.other_gpu; });
  REQUIRE(card != advice.changes.end());
  CHECK(card->gain > 0);
}

TEST_CASE("advice: a card is followed by the next of its maker that falls behind in nothing") {
  const Advice advice = advice_of(kPipelined);
  const auto card = std::ranges::find_if(
      advice.changes, [](const AdvisedChange& each) { return each.change.other_gpu; });
  REQUIRE(card != advice.changes.end());
  CHECK(card->change.words.starts_with("h100_sxm5_80gb -> b200"));
  CHECK(card->gain > 0.2);
}

TEST_CASE("advice: another engine keeps what the scenario changes of its engine") {
  std::string text = kAdvisedService;
  const std::string name = R"("engine": "vllm")";
  text.replace(text.find(name), name.size(),
               R"("engine": {"preset": "vllm", "most_sequences": 4})");
  const Advice advice = advice_of(text);
  const AdvisedChange* const change = find(advice, "engine vllm -> sglang");
  REQUIRE(change != nullptr);
  const ScenarioAnswer answer =
      answer_text("s.json", text, presets(), {.set = change->change.sets});
  const nlohmann::ordered_json& engine =
      answer.json()["scenario"]["serving"]["pools"]["both"]["engine"];
  CHECK(engine["preset"] == "sglang");
  CHECK(engine["most_sequences"] == 4);
}

TEST_CASE("advice: its JSON has every change once") {
  const Advice advice = advice_of(kPipelined);
  const nlohmann::ordered_json json = advice_json(advice);
  CHECK(json["changes"].size() == advice.changes.size());
  CHECK(json["refused"].size() == advice.refused.size());
  CHECK(json["changes"][0]["change"] == advice.changes.front().change.words);
  CHECK(json["answer_kind"] == "step");
  CHECK(json["goal"] == "tokens_per_s_per_gpu");
  CHECK_FALSE(json.contains("site_limit_w"));
  CHECK(json["step_s"].get<double>() ==
        Near(number_named(advice.numbers, "step_s").value()).epsilon(1e-11));
}

TEST_CASE("advice: its JSON says what is above the site's limit, as it is and with each change") {
  const Advice advice = advice_of(kPipelined, {.set = {"power.site_limit=90 kW"}});
  const nlohmann::ordered_json json = advice_json(advice);
  CHECK(json["site_limit_w"] == 90e3);
  CHECK(json["site_excess_w"].get<double>() == Near(*advice.site_excess_w).epsilon(1e-11));
  for (const auto& change : json["changes"]) CHECK(change.contains("site_excess_w"));
}

}  // namespace lockstep::test
