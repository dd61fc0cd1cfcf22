// Memory and FLOP of steps that generate nothing: what lies frozen beside the actor is counted.
#include "sim/rl/rl_account.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/layer/flops.hpp"
#include "models/layer/frozen_models.hpp"
#include "models/layer/operations.hpp"
#include "sim/answer/rl_answer.hpp"
#include "sim/core/random.hpp"
#include "sim/rl/rl_step.hpp"
#include "tests/sim/core/test_seed.hpp"

namespace lockstep {
namespace {

const PresetStore& account_presets() {
  static const PresetStore store;
  return store;
}

/// DPO of 128 samples of 2,048 tokens in two updates, or what `sets` make of it.
RlScenario account_scenario(const std::vector<std::string>& sets = {},
                            const std::string& model = "\"llama3_8b\"") {
  const std::string text = fmt::format(R"({{
    "model": {},
    "cluster": {{"node": "dgx_h100", "nodes": 1, "fabric": "ideal"}},
    "parallelism": {{"data": 8, "sharding": "zero1"}},
    "batch": {{"sequences": 64, "tokens": 2048}},
    "recompute": "full",
    "stack": {{"preset": "megatron_core", "allow": ["lora.bf16"]}},
    "rl": {{"algorithm": "dpo", "prompts": 64, "updates": 2, "prompt_tokens": 1024,
      "responses": {{"mean": 1024, "most": 1024, "sigma": 0}}}}
  }})",
                                       model);
  return read_rl_scenario("dpo.json", text, account_presets(), {.set = sets});
}

/// Weights on a GPU of the fullest stage, with the frozen models and without.
double frozen_bytes_of(const RlScenario& s) {
  const Scenario& t = s.training;
  const MemoryVerdict with = rl_memory(s), without = check_memory(t.job, t.stack, t.node.gpu);
  CHECK(with.fullest_stage == without.fullest_stage);
  return (with.peak.weights - without.peak.weights).base_units();
}

const std::vector<std::string> kDistilsBeside{R"(rl.algorithm="distillation")", "rl.prompts=128",
                                              R"(rl.teacher="llama3_70b")", "cluster.nodes=2"};
std::vector<std::string> distils_with(const std::vector<std::string>& more) {
  std::vector<std::string> sets = kDistilsBeside;
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

}  // namespace

TEST_CASE("rl account: a reference takes two bytes a weight, over what splits the actor") {
  const double weights = total_parameters(account_presets().model("llama3_8b"));
  struct Cut {
    std::vector<std::string> sets;
    double ways;
  };
  for (const Cut& cut :
       {Cut{{}, 1}, Cut{{"parallelism.sharding=zero2"}, 1}, Cut{{"parallelism.sharding=zero3"}, 8},
        Cut{{"parallelism.tensor=4", "parallelism.data=2"}, 4},
        Cut{{"parallelism.tensor=2", "parallelism.data=4", "parallelism.sharding=zero3"}, 8}}) {
    CAPTURE(cut.ways);
    const RlScenario s = account_scenario(cut.sets);
    // Norms behind the last layer, of one row, are the stage's and not counted.
    CHECK(frozen_bytes_of(s) == doctest::Approx(2 * weights / cut.ways).epsilon(1e-6));
    CHECK(frozen_weights(s).base_units() == doctest::Approx(2 * weights / cut.ways).epsilon(1e-6));
  }
}

TEST_CASE("rl account: pipeline stages hold the teacher's weights together") {
  const double weights = total_parameters(account_presets().model("llama3_70b"));
  for (const int stages : {1, 2, 4}) {
    CAPTURE(stages);
    const RlScenario s = account_scenario(
        distils_with({"parallelism.tensor=4", fmt::format("parallelism.pipeline={}", stages),
                      fmt::format("parallelism.data={}", 4 / stages)}));
    REQUIRE(frozen_models(s).size() == 1);
    double all = 0;
    for (int stage = 0; stage < stages; ++stage) {
      all +=
          frozen_weights(s.training.job, frozen_models(s)[0], s.training.stack, stage).base_units();
    }
    CHECK(4 * all == doctest::Approx(2 * weights).epsilon(1e-6));
  }
}

TEST_CASE("rl account: who has no frozen model beside it needs what training needs") {
  for (const char* set :
       {"rl.reference=false", R"(rl.algorithm="simpo")", R"(lora={"rank": 16})"}) {
    CAPTURE(set);
    const RlScenario s = account_scenario({set});
    CHECK(frozen_models(s).empty());
    CHECK(frozen_bytes_of(s) == 0);
  }
  CHECK(rl_memory(account_scenario()).peak.needed() >
        rl_memory(account_scenario({"rl.reference=false"})).peak.needed());
}

TEST_CASE("rl account: a teacher that does not fit beside the student is refused") {
  const auto problem = [](const RlScenario& s) -> std::string {
    try {
      require_memory(s);
    } catch (const InputError& error) {
      return error.problem().found;
    }
    return {};
  };
  // 141 GB in 16 bit on each GPU, or an eighth of them.
  CHECK(problem(account_scenario(distils_with({"parallelism.data=16"})))
            .starts_with("training with a frozen model beside it that needs "));
  CHECK(problem(account_scenario(distils_with({"parallelism.tensor=8", "parallelism.data=2"})))
            .empty());
}

namespace {

/// A dense decoder, drawn, with the closed count of the weights that a token meets.
struct DrawnActor {
  explicit DrawnActor(RandomStream& random) {
    const auto times = [&](int unit, std::uint32_t most) {
      return unit * static_cast<int>(1 + random.below(most));
    };
    layers = times(1, 6);
    hidden = times(256, 6);
    kv_heads = times(2, 4);
    heads = times(kv_heads, 4);
    head_dim = times(32, 4);
    ffn = times(128, 12);
  }
  int layers, hidden, heads, kv_heads, head_dim, ffn;
  static constexpr double kWords = 4096;

  [[nodiscard]] std::string json() const {
    return fmt::format(
        R"({{"layers": {}, "hidden": {}, "heads": {}, "kv_heads": {}, "head_dim": {}, "ffn": {},
             "vocabulary": 4096, "gated": true, "rotary": true}})",
        layers, hidden, heads, kv_heads, head_dim, ffn);
  }
  [[nodiscard]] double met() const {
    const double h = hidden, q = static_cast<double>(heads) * head_dim;
    const double kv = 2.0 * kv_heads * head_dim;
    return layers * (h * (q + kv) + q * h + 3.0 * h * ffn) + kWords * h;
  }
  /// FLOP of one forward pass over a token at the whole square of its sequence.
  [[nodiscard]] double forward(double tokens) const {
    return 2 * met() + 4.0 * layers * heads * head_dim * tokens;
  }
};

}  // namespace

TEST_CASE(
    "rl account: FLOP are those of two passes over both responses, and one of what is frozen") {
  constexpr double kLength = 2048, kTokens = 128 * kLength;
  RandomStream random{{.seed = test::test_seed()}};
  for (int i = 0; i < 8; ++i) {
    const DrawnActor actor{random}, teacher{random};
    CAPTURE(actor.json());
    CAPTURE(teacher.json());
    const auto flops = [&](const std::vector<std::string>& sets) {
      const RlScenario s = account_scenario(sets, actor.json());
      return rl_flops(s, simulate_rl_step(s).training_batch);
    };
    const double forward = kTokens * actor.forward(kLength);
    const RlFlops dpo = flops({}), simpo = flops({R"(rl.algorithm="simpo")"});
    CHECK(dpo.training.base_units() == doctest::Approx(3 * forward).epsilon(1e-12));
    CHECK(dpo.scores.base_units() == doctest::Approx(forward).epsilon(1e-12));
    CHECK(simpo.training == dpo.training);
    CHECK(simpo.scores == Flops{});
    const RlFlops kto = flops({R"(rl.algorithm="kto")", "rl.prompts=128"});
    CHECK(kto.training == dpo.training);
    CHECK(kto.scores.base_units() == doctest::Approx(3 * forward).epsilon(1e-12));
    CHECK(flops({"rl.epochs=3"}).training.base_units() ==
          doctest::Approx(9 * forward).epsilon(1e-12));
    const RlFlops distilled =
        flops({R"(rl.algorithm="distillation")", "rl.prompts=128", "rl.teacher=" + teacher.json()});
    CHECK(distilled.training == dpo.training);
    CHECK(distilled.scores.base_units() ==
          doctest::Approx(kTokens * teacher.forward(kLength)).epsilon(1e-12));
    // With adapters 4 for each frozen weight, and 6 for their own.
    const RlFlops adapted = flops({R"(lora={"rank": 8, "modules": ["qkv"]})"});
    const double q = static_cast<double>(actor.heads) * actor.head_dim;
    const double own =
        actor.layers * 8.0 * (actor.hidden + q + 2.0 * actor.kv_heads * actor.head_dim);
    CHECK(adapted.training.base_units() ==
          doctest::Approx(3 * forward - 2 * kTokens * actor.met() + 6 * kTokens * own)
              .epsilon(1e-12));
    CHECK(adapted.scores == dpo.scores);
  }
}

TEST_CASE("rl account: what the simulated forward pass computes is what the reference is charged") {
  RandomStream random{{.seed = test::test_seed()}};
  for (int i = 0; i < 4; ++i) {
    const DrawnActor actor{random};
    CAPTURE(actor.json());
    const Scenario s = account_scenario({}, actor.json()).training;
    const WorkloadContext c{s.job, s.node, s.stack, s.transport, 1, 1, 1};
    Flops gpu;
    const auto add = [&](const std::vector<Operation>& operations) {
      for (const Operation& o : operations) gpu += o.phase == Phase::forward ? o.useful : Flops{};
    };
    add(head_operations(c));
    for (int layer = 0; layer < actor.layers; ++layer) {
      add(layer_operations(c, s.job.model.kind(layer)));
    }
    const double micro_batches = 64;
    CHECK(micro_batches * gpu.base_units() ==
          doctest::Approx(step_flops(s.job).causal.base_units() / 3).epsilon(1e-12));
  }
}

namespace {

/// PPO of 8B on 16 H100 by turns, or what `sets` make of it; every model of the actor's shape.
RlScenario ppo_scenario(const std::vector<std::string>& sets = {}) {
  static const std::string text = R"({
    "model": "llama3_8b",
    "cluster": {"node": "dgx_h100", "nodes": 2, "fabric": "ideal"},
    "parallelism": {"pipeline": 2, "data": 8, "sharding": "zero1"},
    "batch": {"sequences": 64, "tokens": 2048},
    "recompute": "full",
    "rl": {"algorithm": "ppo", "prompts": 128, "updates": 2, "prompt_tokens": 1024,
      "responses": {"mean": 1024, "most": 1024, "sigma": 0}, "generation": {}}
  })";
  return read_rl_scenario("ppo.json", text, account_presets(), {.set = sets});
}

InputProblem memory_problem(const RlScenario& s) {
  try {
    require_memory(s);
  } catch (const InputError& error) {
    return error.problem();
  }
  return {};
}

const RlTurn& turn_of(const std::vector<RlTurn>& turns, std::string_view key) {
  for (const RlTurn& turn : turns) {
    if (turn.key == key) return turn;
  }
  FAIL("no such turn");
  return turns.front();
}

}  // namespace

TEST_CASE("rl account: a critic's state leaves as the actor's does, but for one number a token") {
  const TransformerShape model = account_presets().model("llama3_8b");
  const double words = 1.0 * model.vocabulary * model.hidden;
  const double actor = training_state(ppo_scenario({"rl.critic=false"})).base_units();
  const double both = training_state(ppo_scenario()).base_units();
  // The actor's fullest stage has half the layers and one of the two tables of words, as the
  // critic's first one has: 2 bytes a weight, and an eighth of 12.
  CHECK(actor == doctest::Approx(3.5 * total_parameters(model) / 2).epsilon(1e-4));
  CHECK(both == doctest::Approx(2 * actor).epsilon(1e-3));
  const auto offload = [](const std::vector<std::string>& sets) {
    return simulate_rl_step(ppo_scenario(sets)).offload.base_units();
  };
  CHECK(offload({}) / offload({"rl.critic=false"}) == doctest::Approx(both / actor));
  const double one_stage =
      training_state(ppo_scenario({"parallelism.pipeline=1", "parallelism.data=16"})).base_units();
  const double each = 2 + 12.0 / 16;
  CHECK(one_stage == doctest::Approx(each * (2 * total_parameters(model) - words)).epsilon(1e-4));
}

TEST_CASE("rl account: what stays takes of the cache, the critic's like the actor's") {
  const auto cache = [](const std::vector<std::string>& more) {
    std::vector<std::string> sets{"parallelism.tensor=2", "parallelism.data=4"};
    sets.insert(sets.end(), more.begin(), more.end());
    return simulate_rl_step(ppo_scenario(sets)).cache_tokens;
  };
  const double away = cache({}), alone = cache({"rl.generation.offload=false", "rl.critic=false"});
  const double both = cache({"rl.generation.offload=false"});
  CHECK(alone < away);
  CHECK(away - both == doctest::Approx(2 * (away - alone)).epsilon(1e-3));
}

TEST_CASE("rl account: each model that scores or is trained has to fit in its turn") {
  const RlScenario ppo = ppo_scenario();
  CHECK(memory_problem(ppo).found.empty());
  const std::vector<RlTurn> alone = rl_turns(ppo);
  REQUIRE(alone.size() == 4);
  CHECK(alone.front().needed == rl_memory(ppo).peak.needed());
  // The last stage of the actor has logits, the critic's has none.
  CHECK(turn_of(alone, "critic").needed <= alone.front().needed);
  CHECK(turn_of(alone, "reward_model").needed < turn_of(alone, "critic").needed);
  CHECK(rl_turns(account_scenario()).empty());  // nothing generated: they lie beside each other

  struct Refused {
    std::string set, key, word;
  };
  for (const Refused& r :
       {Refused{"rl.critic=llama3_70b", "/rl/critic", "the critic's training"},
        Refused{"rl.reward_model=llama3_405b", "/rl/reward_model", "the reward model"}}) {
    const InputProblem problem = memory_problem(ppo_scenario({r.set}));
    CHECK(problem.pointer == r.key);
    CHECK(problem.found.starts_with(r.word + " that needs "));
  }
  // As much as the actor of that size would need, but for the words that it tells apart.
  const double critic = turn_of(rl_turns(ppo_scenario({"rl.critic=llama3_70b"})), "critic").needed /
                        rl_memory(ppo_scenario({"model=llama3_70b"})).peak.needed();
  CHECK(critic > 0.95);
  CHECK(critic <= 1);
}

TEST_CASE("rl account: what does not leave is beside every other model in its turn") {
  const std::string stays = "rl.generation.offload=false";
  const RlScenario ppo = ppo_scenario({stays, "parallelism.tensor=2", "parallelism.data=4"});
  const RlScenario leaves = ppo_scenario({"parallelism.tensor=2", "parallelism.data=4"});
  const Scenario& t = ppo.training;
  const std::vector<RlTurn> beside = rl_turns(ppo), alone = rl_turns(leaves);
  const MemoryBreakdown actor = rl_memory(ppo).peak;
  const Bytes kept = actor.weights + actor.gradients + actor.optimiser;
  const auto more = [&](std::string_view key) {
    return (turn_of(beside, key).needed - turn_of(alone, key).needed) /
           (t.stack.memory.fragmentation * kept);
  };
  CHECK(more("critic") == doctest::Approx(1).epsilon(0.01));
  CHECK(more("reward_model") == doctest::Approx(2).epsilon(0.01));
  // One layer at a time on one GPU: 30 GB of weights and gradients each, and the optimisers.
  const InputProblem both =
      memory_problem(ppo_scenario({stays, "parallelism.pipeline=1", "parallelism.data=16"}));
  CHECK(both.found.find("with what other training keeps there") != std::string::npos);
  CHECK(both.allowed.find("\"offload\"") != std::string::npos);
  CHECK(memory_problem(ppo_scenario({"parallelism.pipeline=1", "parallelism.data=16"}))
            .found.empty());
}

TEST_CASE("rl account: models that come and go are among the assumptions") {
  const auto says = [](const RlScenario& s, std::string_view what) {
    const std::vector<std::string>& all = s.training.assumptions;
    return std::ranges::any_of(all, [&](const std::string& a) { return a.starts_with(what); });
  };
  CHECK(says(ppo_scenario(), "reward model, reference: on the GPUs only while scoring"));
  CHECK(says(ppo_scenario(), "critic: on the host while the actor trains"));
  CHECK_FALSE(says(ppo_scenario({"rl.generation.offload=false"}), "critic: on the host"));
  CHECK_FALSE(says(account_scenario(), "reference: on the GPUs only"));
}

}  // namespace lockstep
