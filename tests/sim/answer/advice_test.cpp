// What would help: each standard change is what --set would make of the scenario.
#include "sim/answer/advice.hpp"

#include <algorithm>
#include <cmath>
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
    if (each.change.other_stack) continue;
    REQUIRE(each.gain_low);
    const bool nothing_changed = each.gain == 0;
    CHECK((*each.gain_low < each.gain) != nothing_changed);
    CHECK((*each.gain_high > each.gain) != nothing_changed);
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
      {"oversubscription of leaves 4 -> 1", {"cluster.fabric.leaf_oversubscription=1"}}};
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

TEST_CASE("advice: of weights sharded in groups, another sharding is simulated without groups") {
  const std::string text = R"({"model": "llama3_8b", "stack": "neutral",
      "cluster": {"node": "dgx_h100", "nodes": 8},
      "parallelism": {"data": 64, "sharding": "zero3", "shard_group": 8},
      "batch": {"sequences": 64, "micro": 1, "tokens": 4096}})";
  const Advice advice = advice_of(text);
  for (const RefusedChange& each : advice.refused) {
    CHECK_MESSAGE(each.why.find("shard_group") == std::string::npos, each.why);
  }
  const AdvisedChange* const change = find(advice, "sharding zero3 -> zero2");
  REQUIRE(change != nullptr);
  std::string by_hand = text;
  const std::string was = R"("sharding": "zero3", "shard_group": 8)";
  by_hand.replace(by_hand.find(was), was.size(), R"("sharding": "zero2")");
  const auto rate = [](const ScenarioAnswer& answer) {
    return answer.number("tokens_per_s_per_gpu").value();
  };
  CHECK(rate(answer_text("s.json", by_hand, presets())) /
                rate(answer_text("s.json", text, presets())) -
            1 ==
        Near(change->gain).epsilon(1e-9));
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

namespace {

const std::string kJobsOnOneFabric = R"({"cluster": {"node": "dgx_h100", "nodes": 8,
        "fabric": {"kind": "fat_tree", "routing": "spray", "levels": 2, "leaf_ports_down": 16,
                   "leaf_oversubscription": 4}},
    "steps": 1,
    "jobs": [{"name": "even", "nodes": {"first": 0, "count": 2, "stride": 2}, "model": "llama3_8b",
              "recompute": "full",
              "parallelism": {"tensor": 4, "data": 4, "sharding": "zero1"},
              "batch": {"sequences": 16, "micro": 1, "tokens": 4096}},
             {"name": "odd", "nodes": {"first": 1, "count": 2, "stride": 2}, "model": "llama3_8b",
              "recompute": "full",
              "parallelism": {"tensor": 2, "data": 8, "sharding": "zero1"},
              "batch": {"sequences": 16, "micro": 1, "tokens": 4096}}],
    "background": [{"name": "copies", "from": [6], "to": [7], "size": "40 GB", "every": "2 s"}],
    "events": [{"at": "10 ms", "fault": {"switch": "spine 0"}, "lasts": "2 s",
                "reroute_after": "1 s"}]})";

const std::string kAdvisedIteration = R"({"model": "llama3_8b",
    "cluster": {"node": "dgx_h100", "nodes": 1},
    "parallelism": {"tensor": 2, "data": 4, "sharding": "zero1"},
    "batch": {"sequences": 64, "micro": 1, "tokens": 2048},
    "rl": {"algorithm": "grpo", "prompts": 16, "generations": 8, "updates": 2,
           "prompt_tokens": 100, "responses": {"mean": 500, "most": 1500},
           "generation": {"nodes": 1, "tensor": 2, "engine": {"preset": "vllm",
                                                              "memory_fraction": 0.8}}}})";

double pace_of_trainings(const ScenarioAnswer& answer) {
  return 1 /
         std::sqrt(answer.number("jobs.0.step_s").value() * answer.number("jobs.1.step_s").value());
}

}  // namespace

TEST_CASE("advice: of several jobs, nodes, traffic, failures, fabric and each step are changed") {
  holds_by_hand(kJobsOnOneFabric, pace_of_trainings,
                {"each job on nodes side by side", "copies every 2.00 s -> 4.00 s",
                 "half of the bytes of copies", "no other traffic", "no failures",
                 "event 0 routed around after 1.00 s -> 500 ms",
                 "oversubscription of leaves 4 -> 1", "NICs of twice the bandwidth",
                 "even: tensor-parallel width 4 -> 2", "odd: tensor-parallel width 2 -> 4"});
  const Advice advice = advice_of(kJobsOnOneFabric);
  CHECK(advice.goal->name == "steps_per_s");
  const AdvisedChange* const packed = find(advice, "each job on nodes side by side");
  REQUIRE(packed != nullptr);
  CHECK(packed->change.sets ==
        std::vector<std::string>{R"(jobs.0.nodes={"first":0,"count":2,"stride":1})",
                                 R"(jobs.1.nodes={"first":2,"count":2,"stride":1})",
                                 "background.0.from=[6]", "background.0.to=[7]"});
  const auto doubled = [](const StandardChange& change) {
    return change.words.find("sequences of a step") != std::string::npos;
  };
  for (const AdvisedChange& each : advice.changes) CHECK_FALSE(doubled(each.change));
}

TEST_CASE("advice: of more jobs than four, what they share is changed and no step of its own") {
  nlohmann::ordered_json many = nlohmann::ordered_json::parse(kJobsOnOneFabric);
  many.erase("events");
  nlohmann::ordered_json job = many["jobs"][0];
  for (int j = 0; j < 5; ++j) {
    job["name"] = "job " + std::to_string(j);
    job["nodes"] = {j};
    job["parallelism"] = {{"tensor", 8}};
    many["jobs"][static_cast<std::size_t>(j)] = job;
  }
  const Advice advice = advice_of(many.dump());
  CHECK(find(advice, "no other traffic") != nullptr);
  for (const AdvisedChange& each : advice.changes) {
    CHECK_FALSE(each.change.words.starts_with("job "));
  }
}

TEST_CASE("advice: of an iteration of reinforcement learning, both pools are changed") {
  holds_by_hand(
      kAdvisedIteration,
      [](const ScenarioAnswer& a) { return a.number("tokens_per_s_per_gpu").value(); },
      {"GPUs of a replica 2 -> 4", "GPUs of a replica 2 -> 1", "nodes that generate 1 -> 2",
       "schedule synchronous -> one_step_off", "engine vllm -> sglang", "cache bf16 -> fp8",
       "updates of a rollout 2 -> 1", "updates of a rollout 2 -> 4", "micro batch 1 -> 2",
       "log-probabilities of the engine, not computed anew"});
  const Advice advice = advice_of(kAdvisedIteration);
  CHECK(advice.goal->as_it_is == "an iteration takes");
  const AdvisedChange* const change = find(advice, "engine vllm -> sglang");
  REQUIRE(change != nullptr);
  const ScenarioAnswer answer =
      answer_text("s.json", kAdvisedIteration, presets(), {.set = change->change.sets});
  CHECK(answer.json()["scenario"]["rl"]["generation"]["engine"]["memory_fraction"] == 0.8);
}

TEST_CASE("advice: a card is followed by each that is newer or refreshed, behind in nothing") {
  const auto after = [](const char* name) { return newer_cards(presets().gpu(name), presets()); };
  using Names = std::vector<std::string>;
  CHECK(after("h100_sxm5_80gb") == Names{"gh200_96gb", "h200_sxm_141gb", "b200_sxm_180gb",
                                         "b300_sxm_288gb", "gb200_186gb", "gb300_288gb"});
  CHECK(after("b200_sxm_180gb") == Names{"b300_sxm_288gb", "gb200_186gb", "gb300_288gb"});
  CHECK(after("gb300_288gb").empty());
  CHECK(after("mi300x") == Names{"mi325x", "mi350x", "mi355x"});
  // Cards without links between them stay so; what is three generations ahead is no next step.
  for (const std::string& name : after("a100_pcie_80gb")) {
    CHECK(presets().gpu(name).nvlink_bandwidth == BytesPerSecond{});
  }
  for (const std::string& name : after("v100_sxm2_32gb")) {
    CHECK(presets().gpu(name).architecture != "blackwell");
  }
  const Advice advice = advice_of(kPipelined);
  const AdvisedChange* const next =
      find(advice, "h100_sxm5_80gb -> b200_sxm_180gb, nodes as they are");
  const AdvisedChange* const refresh =
      find(advice, "h100_sxm5_80gb -> b300_sxm_288gb, nodes as they are");
  REQUIRE(next != nullptr);
  REQUIRE(refresh != nullptr);
  CHECK(next->gain > 0.2);
  CHECK(refresh->gain > next->gain);
  CHECK(refresh->change.other_gpu);
  // Pairs are not of cards alone: those are of the best of them.
  REQUIRE_FALSE(advice.pairs.empty());
  for (const AdvisedChange& pair : advice.pairs) {
    if (pair.change.other_gpu) CHECK(pair.change.words.find("gb300_288gb") != std::string::npos);
  }
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

TEST_CASE("advice: two of the first changes together are simulated, not added up") {
  const Advice advice = advice_of(kPipelined);
  REQUIRE_FALSE(advice.pairs.empty());
  for (const AdvisedChange& pair : advice.pairs) {
    CAPTURE(pair.change.words);
    const ScenarioAnswer answer =
        answer_text("s.json", kPipelined, presets(), {.set = pair.change.sets});
    CHECK(answer.number("step_s") == number_named(pair.numbers, "step_s"));
    CHECK(pair.gain > advice.changes.front().gain);
  }
  CHECK(advice_json(advice)["pairs"].size() == advice.pairs.size());
}

TEST_CASE("advice: of other software the best alone is there, without an interval") {
  const Advice advice = advice_of(kPipelined);
  const auto is_stack = [](const AdvisedChange& each) { return each.change.other_stack; };
  CHECK(std::ranges::count_if(advice.changes, is_stack) == 1);
  const auto best = std::ranges::find_if(advice.changes, is_stack);
  CHECK(best->change.words.starts_with("software megatron_core -> "));
  CHECK_FALSE(best->gain_low);
  for (const RefusedChange& each : advice.refused) CHECK_FALSE(each.change.other_stack);
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
