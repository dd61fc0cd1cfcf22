// Steps of reinforcement learning: lengths, rollouts, accounting, the reader and its schema.
#include <algorithm>
#include <doctest/doctest.h>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
#include "sim/rl/rl_step.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

const PresetStore& rl_presets() {
  static const PresetStore presets;
  return presets;
}

const std::string& small_rl() {
  static const std::string text = R"({
    "model": "llama3_8b",
    "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "ideal"},
    "parallelism": {"data": 8, "sharding": "zero1"},
    "batch": {"sequences": 64, "tokens": 2048},
    "recompute": "full",
    "rl": {"algorithm": "grpo", "prompts": 8, "generations": 16, "updates": 2,
      "prompt_tokens": 100, "responses": {"mean": 400, "most": 1500, "sigma": 0.8},
      "generation": {"engine": {"preset": "vllm", "memory_fraction": 0.7}}}
  })";
  return text;
}
RlReport rl_step(std::vector<std::string> sets = {}) {
  return simulate_rl_step(
      read_rl_scenario("rl.json", small_rl(), rl_presets(), {.set = std::move(sets)}));
}
InputProblem rl_problem(const std::string& text, std::vector<std::string> sets = {}) {
  try {
    (void)simulate_rl_step(
        read_rl_scenario("rl.json", text, rl_presets(), {.set = std::move(sets)}));
  } catch (const InputError& error) {
    return error.problem();
  }
  return {};
}
double share(const RlReport& r, RlBucket b) {
  return r.gpu_seconds[static_cast<std::size_t>(b)] / r.step.base_units() / r.gpus();
}
void check_accounts(const RlReport& r) {
  const double sum = std::accumulate(r.gpu_seconds.begin(), r.gpu_seconds.end(), 0.0);
  CHECK(sum == doctest::Approx(r.step.base_units() * r.gpus()));
  for (const double seconds : r.gpu_seconds) CHECK(seconds >= 0);
}

ServingReplica small_replica() {
  ServingReplicaSpec spec;
  spec.model = rl_presets().model("llama3_2_1b");
  spec.node = rl_presets().node("dgx_h100");
  spec.transport = rl_presets().transport("infiniband");
  spec.engine = engine_preset(rl_presets(), "vllm").rollout();
  return ServingReplica(spec);
}

}  // namespace

TEST_CASE("response lengths: of the mean that was asked for, never beyond the most") {
  for (const double sigma : {0.0, 0.6, 2.0}) {
    CAPTURE(sigma);
    const ResponseLengths spec{.mean = 800, .most = 4000, .sigma = sigma};
    const std::vector<int> lengths = response_lengths(spec, 2000, 1);
    const double sum = std::accumulate(lengths.begin(), lengths.end(), 0.0);
    CHECK(sum / 2000 == doctest::Approx(800).epsilon(0.005));
    CHECK(*std::max_element(lengths.begin(), lengths.end()) <= 4000);
    CHECK(lengths == response_lengths(spec, 2000, 1));
  }
  const ResponseLengths listed{.listed = {3, 5}};
  std::vector<int> four = response_lengths(listed, 4, 1);
  std::sort(four.begin(), four.end());
  CHECK(four == std::vector<int>{3, 3, 5, 5});
}

TEST_CASE("rollout: one response is a prefill and a step for each further token") {
  ServingReplica replica = small_replica();
  const std::vector<int> one{101};
  const Rollout rollout = roll_out(
      replica, {.prompt_tokens = 50, .responses = one, .cache_tokens = 1e6, .most_sequences = 8});
  // The n-th token of a prompt sees n tokens.
  Seconds sum =
      replica.pass({.prompts = 1, .prompt_tokens = 50, .prompt_pairs = 50 * 51 / 2}).total();
  for (int i = 0; i < 100; ++i) sum += replica.pass({.sequences = 1, .context = 51.0 + i}).total();
  CHECK(rollout.time.base_units() == doctest::Approx(sum.base_units()));
  CHECK(rollout.steps == 100);
}

TEST_CASE("rollout: one at a time takes as long as one after the other, together it is faster") {
  ServingReplica replica = small_replica();
  const std::vector<int> many(32, 64);
  const auto time = [&](const std::vector<int>& responses, int at_once, double cache) {
    return roll_out(replica, {.prompt_tokens = 50,
                              .responses = responses,
                              .cache_tokens = cache,
                              .most_sequences = at_once});
  };
  const Rollout single = time({64}, 1, 1e6), serial = time(many, 1, 1e6), all = time(many, 32, 1e6);
  CHECK(serial.time.base_units() == doctest::Approx(32 * single.time.base_units()));
  CHECK(all.time < 0.15 * serial.time);
  CHECK(all.preempted == 0);
  // Less room: some have to wait or leave, all are answered.
  const Rollout narrow = time(many, 32, 500);
  CHECK(narrow.preempted > 0);
  CHECK(narrow.tokens == all.tokens);
  CHECK(narrow.time > all.time);
  CHECK(narrow.most_sequences < 32);
}

TEST_CASE("packed rows: every sample whole, no more rows than samples or fewer than tokens need") {
  CHECK(packed_rows({5, 5, 5}, 10) == 2);
  CHECK(packed_rows({7, 3, 6, 4}, 10) == 2);
  CHECK(packed_rows({6, 6, 6}, 10) == 3);
}

TEST_CASE("rl: colocated, every GPU-second is in one bucket, phases follow each other") {
  const RlReport r = rl_step();
  check_accounts(r);
  CHECK((r.generation + r.scores + r.training + r.offload + r.weight_sync).base_units() ==
        doctest::Approx(r.step.base_units()));
  CHECK(share(r, RlBucket::drain) > 0);
  CHECK(r.training.base_units() == doctest::Approx(2 * r.update.step_s));
  CHECK(rl_step().step == r.step);
  // The same tokens in rows of one response and padding: longer.
  const RlReport padded = rl_step({"rl.packing=false"});
  CHECK(padded.training_batch.tokens == 2048);
  CHECK(padded.training > 2 * r.training);
}

TEST_CASE("rl: scores come and go with their models") {
  const RlReport grpo = rl_step(), dapo = rl_step({"rl.algorithm=dapo"});
  CHECK(share(dapo, RlBucket::reference) == 0);
  CHECK((grpo.scores - dapo.scores).base_units() ==
        doctest::Approx(dapo.scores.base_units()));  // reference and log-probabilities alike
  CHECK(rl_step({"rl.log_probabilities=false", "rl.reference=false"}).scores == Seconds{});
  const RlReport ppo = rl_step({"rl.algorithm=ppo", "rl.reward_model=llama3_2_1b"});
  check_accounts(ppo);
  CHECK(share(ppo, RlBucket::critic_training) > 0.8 * share(ppo, RlBucket::training));
  CHECK(share(ppo, RlBucket::reward_model) < 0.4 * share(ppo, RlBucket::values));
  const RlReport slow = rl_step({"rl.reward_time=3 s"});
  CHECK((slow.step - grpo.step).base_units() == doctest::Approx(3));
}

TEST_CASE("rl: pools of their own take turns, or run beside each other at the slower one's pace") {
  const std::string own = "rl.generation.nodes=1";
  const RlReport turns = rl_step({own});
  const RlReport beside = rl_step({own, "rl.schedule=one_step_off"});
  const RlReport flight = rl_step({own, "rl.schedule=in_flight"});
  const Seconds trained = turns.scores + turns.training;
  CHECK(turns.step == turns.generation + trained + turns.weight_sync);
  CHECK(beside.step == std::max(beside.generation, trained) + beside.weight_sync);
  for (const RlReport& r : {turns, beside, flight}) {
    check_accounts(r);
    CHECK(r.gpus() == 16);
    CHECK(r.offload == Seconds{});
  }
  CHECK(turns.training_idle + turns.generation_idle ==
        doctest::Approx(1 - turns.weight_sync / turns.step));
  CHECK(std::min(beside.training_idle, beside.generation_idle) == 0);
  CHECK(flight.generation < beside.generation);  // no batch drains
}

TEST_CASE("rl: a gather of weights bounds a forward pass of sharded training") {
  const auto forward = [](const char* sharding) {
    return forward_time(read_scenario(
        "rl.json", small_rl(), rl_presets(),
        {.set = {std::string("parallelism.sharding=") + sharding, "cluster.node=hgx_a100_80gb_4nic",
                 "cluster.nodes=8", "parallelism.data=64", "batch.tokens=64"}}));
  };
  CHECK(forward("zero3") > 2 * forward("zero1"));
}

TEST_CASE("rl: mistakes are said where they are") {
  struct Mistake {
    const char* set;
    const char* pointer;
    const char* allowed;
  };
  for (const auto& [set, pointer, allowed] : {
           Mistake{"rl.algorithm=grop", "/rl/algorithm", "ppo, grpo, rloo, dapo"},
           Mistake{"rl.prompts=9", "/rl/prompts", "9 x 16 and 2 x 64"},
           Mistake{"rl.responses.mean=1600", "/rl/responses/most", "at least the mean"},
           Mistake{"rl.responses.most=2000", "/rl/responses", "within batch.tokens, 2048"},
           Mistake{"rl.generation.tensor=3", "/rl/generation/tensor", "a divisor of the 32 heads"},
           Mistake{"rl.generation.engine=vlm", "/rl/generation/engine", "tensorrt_llm, vllm"},
           Mistake{"rl.generation.precision=nvfp4", "/rl/generation/precision", "has"},
           Mistake{"rl.generation.expert_parallel=true", "/rl/generation/expert_parallel", "false"},
           Mistake{"rl.generation.engine.memory_fraction=0.2", "/rl/generation", "a cache of"},
           Mistake{"rl.schedule=in_flight", "/rl/schedule", "nodes of its own"},
           Mistake{"rl.critic=gpt3_175", "/rl/critic", "gpt3_175b"},
           Mistake{"expect.mfu=0.4", "/expect/mfu", "step_time"},
           Mistake{"rl.packing=1", "/rl/packing", "true or false"},
           Mistake{"batch.sample_tokens=100", "/batch/sample_tokens", "beside \"rl\""},
       }) {
    CAPTURE(set);
    const InputProblem problem = rl_problem(small_rl(), {set});
    CHECK(problem.pointer == pointer);
    CHECK_MESSAGE(problem.allowed.find(allowed) != std::string::npos, problem.allowed);
  }
  const InputProblem sited = rl_problem(small_rl(), {R"(run={"duration": "1 d", "site": {}})"});
  CHECK(sited.pointer == "/run/site");
}

namespace {

const std::string& small_dpo() {
  static const std::string text = R"({
    "model": "llama3_8b",
    "cluster": {"node": "dgx_h100", "nodes": 1, "fabric": "ideal"},
    "parallelism": {"data": 8, "sharding": "zero1"},
    "batch": {"sequences": 64, "tokens": 2048},
    "recompute": "full",
    "rl": {"algorithm": "dpo", "prompts": 64, "updates": 2, "prompt_tokens": 1024,
      "responses": {"mean": 1024, "most": 1024, "sigma": 0}}
  })";
  return text;
}
RlScenario dpo_scenario(std::vector<std::string> sets = {}) {
  return read_rl_scenario("dpo.json", small_dpo(), rl_presets(), {.set = std::move(sets)});
}

}  // namespace

TEST_CASE("dpo: a step trains on both responses and scores them with the reference, no more") {
  const RlScenario scenario = dpo_scenario();
  CHECK(scenario.rl.samples() == 128);
  const RlReport r = simulate_rl_step(scenario);
  check_accounts(r);
  // Samples fill their rows: an update is the batch as it is written, on 32 pairs.
  CHECK(r.training_batch.sequences == 64);
  CHECK(r.training_batch.tokens == 2048);
  CHECK(r.tokens == 128 * 2048);
  const double update = simulate_step(scenario.training).step_s;
  const Seconds forward = forward_time(scenario.training);
  CHECK(r.training.base_units() == doctest::Approx(2 * update).epsilon(1e-12));
  CHECK(r.scores.base_units() == doctest::Approx(2 * forward.base_units()).epsilon(1e-12));
  CHECK(r.step.base_units() == doctest::Approx((r.training + r.scores).base_units()));
  CHECK(r.generation == Seconds{});
  CHECK(r.weight_sync == Seconds{});
  CHECK(r.generated_per_s() == 0);
  // Products and attention: one forward unit of the reference beside the actor's three, and one
  // that is repeated, at about the same speed.
  CHECK(r.scores / r.training == doctest::Approx(1.0 / 4).epsilon(0.1));
}

TEST_CASE("dpo: log-probabilities that were computed before cost nothing, and SimPO has none") {
  const double training = simulate_rl_step(dpo_scenario()).training.base_units();
  for (const char* set : {"rl.reference=false", R"(rl.algorithm="simpo")"}) {
    CAPTURE(set);
    const RlReport r = simulate_rl_step(dpo_scenario({set}));
    CHECK(r.scores == Seconds{});
    CHECK(r.step.base_units() == doctest::Approx(training));
  }
}

TEST_CASE("preference losses: IPO costs what DPO does, ORPO what SimPO does, KTO two passes more") {
  const auto step = [](std::vector<std::string> sets) {
    return simulate_rl_step(dpo_scenario(std::move(sets)));
  };
  const RlReport dpo = step({}), simpo = step({"rl.algorithm=simpo"});
  CHECK(step({"rl.algorithm=ipo"}).step == dpo.step);
  CHECK(step({"rl.algorithm=orpo"}).step == simpo.step);
  // Single samples, as many as DPO has in pairs; both models score mismatched ones too.
  const std::vector<std::string> unpaired{"rl.algorithm=kto", "rl.prompts=128"};
  CHECK(dpo_scenario(unpaired).rl.samples() == 128);
  const RlReport kto = step(unpaired);
  check_accounts(kto);
  CHECK(kto.training == dpo.training);
  CHECK(kto.scores.base_units() == doctest::Approx(3 * dpo.scores.base_units()).epsilon(1e-12));
  CHECK(share(kto, RlBucket::reference) ==
        doctest::Approx(2 * share(kto, RlBucket::log_probabilities)).epsilon(1e-12));
  // The reference's were computed before, the actor's cannot be.
  const RlReport before = step({unpaired[0], unpaired[1], "rl.reference=false"});
  CHECK(before.scores.base_units() == doctest::Approx(dpo.scores.base_units()).epsilon(1e-12));
}

TEST_CASE("distillation: a teacher runs forward and nothing of it is trained") {
  const auto distil = [](const std::string& teacher) {
    return simulate_rl_step(dpo_scenario(
        {R"(rl.algorithm="distillation")", "rl.prompts=128", "rl.teacher=" + teacher}));
  };
  const RlReport alike = distil(R"("llama3_8b")");
  check_accounts(alike);
  // The student's own forward pass, and a whole projection on the vocabulary in it.
  const RlReport dpo = simulate_rl_step(dpo_scenario());
  CHECK(alike.scores.base_units() == doctest::Approx(dpo.scores.base_units()).epsilon(1e-12));
  CHECK(alike.training.base_units() == doctest::Approx(dpo.training.base_units()).epsilon(1e-12));
  CHECK(share(alike, RlBucket::reference) == 0);
  CHECK(share(alike, RlBucket::teacher) > 0);
  const RlReport large = distil(R"("llama3_70b")");
  CHECK(large.training.base_units() == doctest::Approx(alike.training.base_units()));
  CHECK(large.scores / alike.scores == doctest::Approx(70.0 / 8).epsilon(0.15));
}

TEST_CASE("dpo and distillation: mistakes are said where they are") {
  struct Mistake {
    const char *set, *pointer, *allowed;
  };
  for (const Mistake& one :
       {Mistake{"rl.generation={}", "/rl/generation",
                "no such key beside dpo, which learns from text that is there"},
        Mistake{"rl.generations=4", "/rl/generations", "no such key beside dpo"},
        Mistake{"rl.schedule=in_flight", "/rl/schedule", "no such key beside dpo"},
        Mistake{"rl.teacher=llama3_70b", "/rl/teacher", "no such key beside dpo"},
        Mistake{"rl.prompts=32", "/rl/prompts", "which are 32 x 2 and 2 x 64"}}) {
    CAPTURE(one.set);
    const InputProblem problem = rl_problem(small_dpo(), {one.set});
    CHECK(problem.pointer == one.pointer);
    CHECK_MESSAGE(problem.allowed.find(one.allowed) != std::string::npos, problem.allowed);
  }
  const std::vector<std::string> distils{R"(rl.algorithm="distillation")", "rl.prompts=128"};
  CHECK(rl_problem(small_dpo(), distils).found.starts_with("an object without \"teacher\""));
  std::vector<std::string> other = distils;
  other.emplace_back(R"(rl.teacher="qwen3_32b")");
  CHECK(rl_problem(small_dpo(), other).allowed == "a model of 128256 words, those of llama3_8b");
  Json online = Json::parse(small_rl());
  online["rl"].erase("generation");
  CHECK(rl_problem(online.dump()).found.starts_with("an object without \"generation\""));
}

TEST_CASE("rl schema: every object has exactly the keys that the reader knows, and requires") {
  const Json schema = Json::parse(
      read_text_file(LOCKSTEP_SOURCE_DIR "/scenarios/scenario.schema.json"))["properties"]["rl"];
  struct Place {
    const char* rl;
    const char* schema;
  };
  for (const Place& place :
       {Place{"", ""}, Place{"/responses", "/properties/responses"},
        Place{"/generation", "/properties/generation"},
        Place{"/generation/engine", "/properties/generation/properties/engine/anyOf/1"}}) {
    CAPTURE(place.rl);
    Json text = Json::parse(small_rl());
    text[Json::json_pointer(std::string("/rl") + place.rl + "/zzz")] = 1;
    const InputProblem problem = rl_problem(text.dump());
    CHECK(problem.pointer == std::string("/rl") + place.rl + "/zzz");
    const std::string read = ", " + problem.allowed + ",";
    std::size_t known = 0;
    const Json object = schema.at(Json::json_pointer(place.schema));
    for (const auto& [key, member] : object["properties"].items()) {
      CAPTURE(key);
      CHECK(read.find(", " + key + ",") != std::string::npos);
      known += key.size() + 2;
    }
    CHECK(read.size() == known + 1);
    for (const Json& key : object.value("required", Json::array())) {
      Json without = Json::parse(small_rl());
      without["rl"].erase(key.get<std::string>());
      CHECK(rl_problem(without.dump()).found.starts_with("an object without"));
    }
  }
}

TEST_CASE("rl: what training keeps leaves for the host before a rollout and comes back after it") {
  // Eight replicas that shard the optimiser: 2 bytes a weight, and an eighth of 12, over PCIe.
  const Scenario training = read_rl_scenario("rl.json", small_rl(), rl_presets(), {}).training;
  const double weights = total_parameters(training.job.model);
  const double state = weights * (2 + 12.0 / 8);
  const RlReport r = rl_step({"rl.generation.offload=true"});
  const double rate =
      engine_preset(rl_presets(), "vllm").host_copy * training.node.gpu.pcie_bandwidth.base_units();
  CHECK(r.offload.base_units() == doctest::Approx(2 * state / rate));
}

}  // namespace lockstep
