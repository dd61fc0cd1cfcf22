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
    CHECK(answer.number("step_s").value() == each.step_s);
    CHECK(answer.number("tokens_per_s_per_gpu").value() / advice.tokens_per_s_per_gpu - 1 ==
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

TEST_CASE("advice: it is about a single step") {
  const std::string weeks = kPipelined.substr(0, kPipelined.size() - 1) +
                            R"(, "run": {"duration": "1 d", "reliability": "llama3_54_days",
          "checkpoint": {"to": "storage", "interval": "30 min", "storage": "minio_nvme"}}})";
  CHECK_THROWS_AS(advice_of(weeks), InputError);
}

TEST_CASE("advice: a card is followed by the next of its maker that falls behind in nothing") {
  const Advice advice = advice_of(kPipelined);
  const auto card = std::ranges::find_if(
      advice.changes, [](const AdvisedChange& each) { return each.change.other_gpu; });
  REQUIRE(card != advice.changes.end());
  CHECK(card->change.words.starts_with("h100_sxm5_80gb -> b200"));
  CHECK(card->gain > 0.2);
}

TEST_CASE("advice: its JSON has every change once") {
  const Advice advice = advice_of(kPipelined);
  const nlohmann::ordered_json json = advice_json(advice);
  CHECK(json["changes"].size() == advice.changes.size());
  CHECK(json["refused"].size() == advice.refused.size());
  CHECK(json["changes"][0]["change"] == advice.changes.front().change.words);
}

}  // namespace lockstep::test
