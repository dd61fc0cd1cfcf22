// Weeks of iterations of reinforcement learning: closed forms without failures, and limit cases
// that are plain training.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "models/checkpoint.hpp"
#include "sim/answer/answer.hpp"
#include "sim/run/plan_campaign.hpp"
#include "sim/scenario/scenario_file.hpp"
#include "tests/support/presets.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// Nothing fails, and nothing is saved, unless `run` says more.
Json grpo_weeks(const Json& run = Json::object()) {
  Json out = Json::parse(R"({
    "model": "llama3_8b",
    "cluster": {"node": "dgx_h100", "nodes": 2, "fabric": "rail_optimised"},
    "parallelism": {"data": 16, "sharding": "zero1"},
    "batch": {"sequences": 64, "tokens": 2048},
    "recompute": "full",
    "rl": {"algorithm": "grpo", "prompts": 8, "generations": 16, "updates": 2,
      "prompt_tokens": 100, "responses": {"mean": 400, "most": 1500, "sigma": 0.8},
      "generation": {"engine": {"preset": "vllm", "memory_fraction": 0.7}}},
    "run": {"steps": 100, "reliability": {"modes": []}, "trajectories": 2}
  })");
  out["run"].update(run);
  return out;
}
/// Trains on text that is there, on one update of the batch as it is written.
Json preference_weeks(const char* algorithm, const Json& run = Json::object()) {
  Json out = grpo_weeks(run);
  out["rl"] = {{"algorithm", algorithm},
               {"prompts", 32},
               {"prompt_tokens", 1024},
               {"responses", {{"mean", 1024}, {"most", 1024}, {"sigma", 0}}}};
  return out;
}
ScenarioAnswer answer_of_weeks(const Json& scenario) {
  return answer_text("weeks.json", write_json(scenario), test::presets());
}
CampaignPlan planned(const Json& scenario) {
  const ScenarioFile file =
      read_scenario_file(parse_scenario("weeks.json", write_json(scenario)), test::presets());
  return plan_campaign(repeated_work(file), *file.run);
}

}  // namespace

TEST_CASE("rl run: without failures K iterations take K times one, and cost that") {
  Json scenario = grpo_weeks();
  scenario["price"] = {{"usd_per_gpu_hour", 2}};
  const ScenarioAnswer weeks = answer_of_weeks(scenario);
  CHECK(weeks.kind() == AnswerKind::run);
  scenario.erase("run");
  scenario.erase("price");
  const ScenarioAnswer once = answer_of_weeks(scenario);
  const double iteration = once.number("step_s").value();
  const double wall = weeks.number("wall_s").value();
  CHECK(weeks.number("step_s") == iteration);
  CHECK(weeks.number("goodput") == 1);
  CHECK(wall == doctest::Approx(100 * iteration).epsilon(1e-9));
  CHECK(weeks.number("steps_done").value() == doctest::Approx(100).epsilon(1e-9));
  CHECK(weeks.number("tokens_done").value() ==
        doctest::Approx(100 * once.number("tokens_per_step").value()).epsilon(1e-9));
  CHECK(weeks.number("price_usd").value() == doctest::Approx(2 * 16 * wall / 3600).epsilon(1e-9));
  for (const char* name : {"generation_s", "scores_s", "training_s", "weight_sync_s"}) {
    CAPTURE(name);
    CHECK(weeks.number(std::string("iteration.") + name) == once.number(name));
  }
}

TEST_CASE("rl run: checkpoints that the job waits for add their time, and nothing else") {
  const ScenarioAnswer weeks = answer_of_weeks(grpo_weeks(
      {{"checkpoint", Json::parse(R"({"interval": "5 min", "mode": "synchronous", "blocks": "20 s",
                        "restores": "1 min", "finishes": "1 s"})")}}));
  const double checkpoints = weeks.number("checkpoints").value();
  CHECK(checkpoints >= 2);
  CHECK(weeks.number("wall_s").value() ==
        doctest::Approx(100 * weeks.number("step_s").value() + 20 * checkpoints).epsilon(1e-9));
}

TEST_CASE("rl run: what generates and scores nothing is plain training, failures and all") {
  const Json failing = {
      {"steps", 3000},
      {"reliability", "llama3_54_days"},
      {"checkpoint",
       Json::parse(R"({"interval": "10 min", "storage": {"write": "2 GB/s", "read": "2 GB/s"}})")},
      {"trajectories", 5}};
  const Json preference = preference_weeks("simpo", failing);
  Json plain = preference;
  plain.erase("rl");
  const ScenarioAnswer with = answer_of_weeks(preference), without = answer_of_weeks(plain);
  for (const char* name : {"step_s", "goodput", "wall_s", "mfu", "interruptions",
                           "checkpoint_bytes", "tokens_done", "gpu_hours"}) {
    CAPTURE(name);
    REQUIRE(without.number(name));
    CHECK(with.number(name).value_or(0) ==
          doctest::Approx(without.number(name).value()).epsilon(1e-9));
  }
}

TEST_CASE("rl run: a checkpoint holds the critic as well") {
  Json ppo = grpo_weeks();
  ppo["rl"]["algorithm"] = "ppo";
  ppo["rl"]["reward_model"] = false;
  const ScenarioFile file =
      read_scenario_file(parse_scenario("ppo.json", write_json(ppo)), test::presets());
  const CheckpointBytes both = state_of(*file.rl);
  const CheckpointBytes actor = checkpoint_bytes(file.rl->training.job);
  const CheckpointBytes critic =
      checkpoint_bytes(with_input_table(file.rl->rl.critic->job, file.rl->rl.critic_words));
  CHECK(both.all == actor.all + critic.all);
  CHECK(both.per_gpu == actor.per_gpu + critic.per_gpu);
  const double share = critic.all.base_units() / actor.all.base_units();
  CHECK(share > 0.9);  // its shape, without the projection on the vocabulary
  CHECK(planned(ppo).checkpoint.all == both.all);
  CHECK(planned(grpo_weeks()).checkpoint.all == actor.all);
}

TEST_CASE("rl run: nodes that only generate fail with the job") {
  const Json modes = Json::parse(R"({"reliability": {"modes": [
    {"name": "a GPU", "component": "gpu", "mean_time": "100 d", "effect": "crash"},
    {"name": "a NIC", "component": "nic", "mean_time": "100 d", "effect": "crash"}]}})");
  Json own = grpo_weeks(modes);
  const CampaignPlan shared = planned(own);
  own["rl"]["generation"]["nodes"] = 3;
  const CampaignPlan apart = planned(own);
  CHECK(shared.campaign.nodes == 2);
  CHECK(apart.campaign.nodes == 5);
  for (const std::size_t mode : {0U, 1U}) {
    CHECK(shared.campaign.modes[mode].components == 16);
    CHECK(apart.campaign.modes[mode].components == 40);
  }
}

TEST_CASE("rl run: an upload drags on training alone, for the share of the time that it has") {
  const Json over_nics = {{"checkpoint", Json::parse(R"({"interval": "1 h", "storage":
        {"write": "10 TB/s", "read": "1 TB/s", "network": "training"}})")}};
  const CampaignPlan trains = planned(preference_weeks("simpo", over_nics));
  const CampaignPlan scores = planned(preference_weeks("dpo", over_nics));
  const double speed = 1 - trains.campaign.tiers.at(0).drag;
  REQUIRE(speed < 1);
  // The time of an iteration beside the upload: its training at that speed, the rest as ever.
  const double share = trains.step_s / scores.step_s;
  const double longer = share / speed + (1 - share);
  CHECK(scores.campaign.tiers.at(0).drag == doctest::Approx(1 - 1 / longer).epsilon(1e-9));
  CHECK(scores.uploads.at(0).rate >= trains.uploads.at(0).rate);
}

TEST_CASE("rl: the time, GPU hours and price of a training of so many tokens") {
  Json scenario = grpo_weeks();
  scenario.erase("run");
  scenario["training"] = {{"tokens", 1e9}};
  scenario["price"] = {{"usd_per_gpu_hour", 2}};
  const ScenarioAnswer answer = answer_of_weeks(scenario);
  const double steps = 1e9 / answer.number("tokens_per_step").value();
  const double seconds = steps * answer.number("step_s").value();
  CHECK(answer.number("time_to_train_s").value() == doctest::Approx(seconds).epsilon(1e-9));
  CHECK(answer.number("price_usd").value() == doctest::Approx(2 * 16 * seconds / 3600));
}

TEST_CASE("run: so many steps, of training as of rl, and no duration beside them") {
  Json plain = grpo_weeks();
  plain.erase("rl");
  const ScenarioAnswer answer = answer_of_weeks(plain);
  CHECK(answer.number("wall_s").value() ==
        doctest::Approx(100 * answer.number("step_s").value()).epsilon(1e-9));
  plain["run"]["duration"] = "1 d";
  try {
    (void)answer_of_weeks(plain);
    FAIL_CHECK("was answered");
  } catch (const InputError& error) {
    CHECK(error.problem().pointer == "/run/steps");
  }
}

}  // namespace lockstep
