#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/rl_spec.hpp"
#include "sim/scenario/serving_replica_spec.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr std::array kAlgorithms{
    RlAlgorithm{"ppo", "PPO", true, true, true, false,
                "Ouyang et al. 2022, arXiv:2203.02155, section 3.5"},
    RlAlgorithm{"grpo", "GRPO", true, false, false, true,
                "Shao et al. 2024, arXiv:2402.03300, figure 4"},
    RlAlgorithm{"rloo", "RLOO", true, false, false, true, "Ahmadian et al. 2024, arXiv:2402.14740"},
    RlAlgorithm{"dapo", "DAPO", false, false, false, true,
                "Yu et al. 2025, arXiv:2503.14476, section 3"},
    RlAlgorithm{"dpo", "DPO", true, false, false, false,
                "Rafailov et al. 2023, arXiv:2305.18290, equation 7", true, 2},
    RlAlgorithm{"ipo", "IPO", true, false, false, false,
                "Azar et al. 2023, arXiv:2310.12036, section 5.2", true, 2},
    RlAlgorithm{"kto", "KTO", true, false, false, false,
                "Ethayarajh et al. 2024, arXiv:2402.01306, section 4.1", true, 1, false, true},
    RlAlgorithm{"simpo", "SimPO", false, false, false, false,
                "Meng et al. 2024, arXiv:2405.14734, section 2.3", true, 2},
    RlAlgorithm{"orpo", "ORPO", false, false, false, false,
                "Hong et al. 2024, arXiv:2403.07691, section 4", true, 2},
    RlAlgorithm{"distillation", "Distillation", false, false, false, false,
                "Hinton et al. 2015, arXiv:1503.02531, section 2", true, 1, true},
};
constexpr std::array<std::string_view, kAlgorithms.size()> kAlgorithmNames{
    kAlgorithms[0].name, kAlgorithms[1].name, kAlgorithms[2].name, kAlgorithms[3].name,
    kAlgorithms[4].name, kAlgorithms[5].name, kAlgorithms[6].name, kAlgorithms[7].name,
    kAlgorithms[8].name, kAlgorithms[9].name};
constexpr std::string_view kDefaultEngine = "vllm";
constexpr std::array<std::string_view, 2> kCacheNames{"bf16", "fp8"};
constexpr int kMostInBatch = 1 << 20;
constexpr double kDefaultSigma = 0.6;
constexpr Interval kMeanTokens{1, kMaxTokens};

EngineSpec read_engine_choice(const std::optional<JsonCursor>& from, const PresetStore& presets,
                              std::vector<std::string>& assumptions) {
  const bool refines = from && from->is_object();
  std::string name(kDefaultEngine);
  if (!from || (refines && !from->find("preset"))) {
    assumptions.push_back("engine: " + name + " (not given)");
  } else {
    name = read_preset_name(*from, "engines", presets);
  }
  EngineSpec engine = engine_preset(presets, name);
  if (!engine.serving) {
    from->fail("an engine with \"serving\", which says what its passes take");
  }
  if (!refines) return engine;
  declare_engine({*from, Extent::changes}, engine);
  from->finish();
  return engine;
}

/// What is left open is assumed.
void complete_responses(const JsonCursor& from, ResponseLengths& out,
                        std::vector<std::string>& assumptions) {
  if (!out.listed.empty()) {
    for (const std::string_view key : {"mean", "most", "sigma"}) {
      if (const auto given = from.find(key)) given->fail("nothing beside \"lengths\"");
    }
    double sum = 0;
    for (const int length : out.listed) sum += length;
    out.mean = sum / static_cast<double>(out.listed.size());
    out.most = *std::ranges::max_element(out.listed);
    return;
  }
  if (out.mean == 0) out.mean = from.at("mean").number(kMeanTokens);
  const auto most = from.find("most");
  if (!most) out.most = static_cast<int>(4 * out.mean);
  if (out.most < out.mean) most->fail(fmt::format("at least the mean, {}", plain_number(out.mean)));
  const bool spread = from.find("sigma").has_value();
  if (!spread) out.sigma = kDefaultSigma;
  if (!most) assumptions.push_back(fmt::format("responses: {} tokens at most (4 means)", out.most));
  if (!spread && out.most > out.mean) {
    assumptions.push_back(fmt::format("responses: log-normal with sigma {:g}", out.sigma));
  }
}

void check_pool(const JsonCursor& from, const Scenario& training, const GenerationPool& pool) {
  const auto at = [&](std::string_view key) { return from.find(key).value_or(from); };
  const int most_nodes = kMaxGpus / training.node.gpus;
  if (pool.nodes > most_nodes) at("nodes").fail(fmt::format("at most {}", most_nodes));
  if (training.node.gpu.peak(pool.precision) <= FlopsPerSecond{}) {
    at("precision").fail("a format that " + training.node.gpu.name + " has");
  }
  if (pool.nodes > 0) {
    if (const auto offload = from.find("offload")) {
      offload->fail("no such key beside \"nodes\": nothing shares these GPUs");
    }
  }
  const TransformerShape& model = training.job.model;
  if (const std::optional<std::string> problem = tensor_problem(model, pool.tensor)) {
    at("tensor").fail(*problem);
  }
  if (pool.expert_parallel && (model.experts.count == 0 || model.experts.count % pool.tensor)) {
    at("expert_parallel").fail("false, unless \"tensor\" divides the experts of the model");
  }
  if (model.experts.count > 0 && !pool.expert_parallel && model.experts.ffn % pool.tensor != 0) {
    at("tensor").fail(fmt::format(
        "a divisor of the {} columns of an expert, or \"expert_parallel\"", model.experts.ffn));
  }
  const int gpus = pool.nodes > 0 ? pool.nodes * training.node.gpus : training.gpus();
  if (gpus % pool.tensor != 0) {
    at("tensor").fail(fmt::format("a divisor of the {} GPUs that generate", gpus));
  }
}

/// The scenario with another model in the actor's place, on the same GPUs in the same layout.
Scenario with_model(const JsonCursor& from, const std::string& file, std::string_view text,
                    const PresetStore& presets, ScenarioOptions options) {
  options.set.push_back("model=" + write_json(from.json()));
  try {
    return read_scenario(file, text, presets, options);
  } catch (const InputError& error) {
    throw retold(error, [&](InputProblem& problem) {
      const std::string key = "/model";
      const bool inside = problem.pointer.starts_with(key);
      // Nobody gave this option.
      problem.found.erase(std::min(problem.found.find(" (--set model="), problem.found.size()));
      problem.pointer = from.pointer() + (inside ? problem.pointer.substr(key.size()) : "");
    });
  }
}

/// Nothing is generated: what belongs to a rollout has no place.
void complete_offline(const JsonCursor& from, RlSpec& out) {
  for (const std::string_view key : {"generations", "generation", "schedule", "log_probabilities",
                                     "critic", "reward_model", "reward_time"}) {
    if (const auto given = from.find(key)) {
      given->fail(fmt::format("no such key beside {}, which learns from text that is there",
                              out.algorithm->name));
    }
  }
  out.generations = out.algorithm->responses;
  out.log_probabilities = false;
  const int most = kMostInBatch / out.generations;
  if (out.prompts > most) (void)from.at("prompts").integer(1, most);
  if (out.updates > out.samples()) (void)from.at("updates").integer(1, out.samples());
}

/// The model whose logits the actor learns, of the actor's words.
std::optional<Scenario> read_teacher(const JsonCursor& from, const Scenario& actor,
                                     const RlAlgorithm& algorithm, const JsonCursor& root,
                                     std::string_view text, const PresetStore& presets,
                                     const ScenarioOptions& options) {
  const std::optional<JsonCursor> given = from.find("teacher");
  if (!algorithm.teacher) {
    if (given) given->fail(fmt::format("no such key beside {}", algorithm.name));
    return std::nullopt;
  }
  const JsonCursor at = from.at("teacher");
  Scenario teacher = with_model(at, root.file(), text, presets, options);
  if (teacher.job.model.vocabulary != actor.job.model.vocabulary) {
    at.fail(fmt::format("a model of {} words, those of {}", actor.job.model.vocabulary,
                        actor.job.model.name));
  }
  return teacher;
}

void complete_counts(const JsonCursor& from, RlSpec& out) {
  if (out.algorithm->offline) return complete_offline(from, out);
  const int most = kMostInBatch / out.prompts;
  const auto given =
      out.algorithm->groups ? std::optional(from.at("generations")) : from.find("generations");
  if (given) out.generations = given->integer(out.algorithm->groups ? 2 : 1, most);
  if (out.updates > out.samples()) (void)from.at("updates").integer(1, out.samples());
}

/// Phases of an iteration follow one another; none waits for replicas that begin later.
void refuse_stagger(const JsonCursor& root, const Scenario& training) {
  if (!training.power) return;
  const SmoothingSpec& smoothing = training.power->smoothing;
  const auto refuse = [&](bool given, const std::string& key) {
    if (given) root.at("power").at("smoothing").at(key).fail("no " + key + " beside \"rl\"");
  };
  refuse(smoothing.stagger.over > Seconds{}, "stagger");
  refuse(smoothing.ramp_w_per_s > 0, "ramp_w_per_s");
}

void check_counts(const JsonCursor& from, const Scenario& training, const RlSpec& out) {
  if (out.samples() != static_cast<std::int64_t>(out.updates) * training.job.batch.sequences) {
    from.at("prompts").fail(
        fmt::format("prompts x generations = updates x batch.sequences, which are {} x {} and {} "
                    "x {}",
                    out.prompts, out.generations, out.updates, training.job.batch.sequences));
  }
}

/// A model that scores responses: true (the actor's shape), false, or a model. `words` are those
/// of its input table. Scores are one number a token: no projection on the vocabulary.
std::optional<Scenario> read_scorer(const std::optional<JsonCursor>& from, bool by_default,
                                    const JsonCursor& root, std::string_view text,
                                    const PresetStore& presets, const ScenarioOptions& options,
                                    int& words) {
  const bool given = from && (from->is_object() || from->is_string());
  const bool wanted = given || (from ? from->boolean() : by_default);
  if (!wanted) return std::nullopt;
  Scenario scorer =
      with_model(given ? *from : root.at("model"), root.file(), text, presets, options);
  words = std::exchange(scorer.job.model.vocabulary, scorer.job.parallelism.tensor);
  return scorer;
}

/// Which models are not on the GPUs all along. Where nothing is generated the frozen ones stay.
void tell_turns(const RlSpec& rl, bool adapters, std::vector<std::string>& assumptions) {
  if (rl.algorithm->offline) return;
  std::vector<std::string_view> frozen;
  if (rl.reward_model) frozen.emplace_back("reward model");
  if (rl.reference && !adapters) frozen.emplace_back("reference");
  if (!frozen.empty()) {
    assumptions.push_back(fmt::format(
        "{}: on the GPUs only while scoring; the time to load and unload its weights is left out",
        fmt::join(frozen, ", ")));
  }
  if (rl.critic && !rl.training_stays()) {
    assumptions.emplace_back("critic: on the host while the actor trains, and the other way round");
  }
}

}  // namespace

void declare_engine(const DeclaredMembers& member, EngineSpec& out) {
  constexpr Interval kSome{0, 1, true}, kTime{0, 10};
  member.required("memory_fraction", out.memory_fraction, Dimension::share, kSome,
                  "Of the card: weights, workspaces and the cache");
  member.required("workspace", out.workspace, Interval{0, 1e12}, "Of that fraction: activations");
  member.required("most_sequences", out.most_sequences, 1, kMostInBatch,
                  "That a replica decodes at once");
  member.required("prefill_tokens", out.prefill_tokens, 1, kMaxTokens,
                  "Of prompts that one pass takes");
  member.optional("graphs", out.graphs, "Decoding is captured in CUDA graphs");
  member.optional("reserves", out.reserves, "A sequence joins when its longest response would fit");
  member.optional("shared_prompts", out.shared_prompts,
                  "Responses to one prompt share its prefill");
  member.optional("step_host", out.step_host, kTime,
                  "GPU idle between passes of a rollout; default: as where the engine serves");
  member.optional("sequence_host", out.sequence_host, kTime,
                  "The same, more for every sequence; default: as where the engine serves");
  member.required("refit_rate", out.refit_rate, Interval{1e6, 1e14},
                  "Of the model's bytes, to all replicas");
  member.required("refit_overhead", out.refit_overhead, Interval{0, 1e4},
                  "Of every change of weights");
  member.required("host_copy", out.host_copy, kSome,
                  "Share of PCIe's rate at which training state leaves and comes back");
}

namespace {

void declare_responses(const DeclaredMembers& member, ResponseLengths& out) {
  member.optional("mean", out.mean, kMeanTokens, "Tokens, with what was cut");
  member.optional("most", out.most, 1, kMaxTokens,
                  "Tokens at which the engine stops; default: 4 means");
  member.optional("sigma", out.sigma, Interval{0, 4},
                  "Of the logarithm of a length; 0: all of mean length; default: 0.6");
  member.optional("lengths", written_type(R"({"type": "array", "minItems": 1,
                    "items": {"type": "integer", "minimum": 1, "maximum": 16777216}})"),
                  "Measured lengths in place of all else, given out in turn",
                  [&](const JsonCursor& at) {
                    for (const JsonCursor& length : at.elements(kMostInBatch)) {
                      out.listed.push_back(length.integer(1, kMaxTokens));
                    }
                    if (out.listed.empty()) at.fail("the tokens of at least one response");
                  });
}

void declare_generation(const DeclaredMembers& member, GenerationPool& out) {
  member.optional(
      "engine", "engines", "The inference engine; default: vllm", "A preset with changes",
      [](const DeclaredMembers& engine) {
        EngineSpec spec;
        declare_engine(engine, spec);
      },
      [](const JsonCursor&) {});  // read_engine_choice(), also where none is given
  member.optional("nodes", out.nodes, 1, kMaxGpus,
                  "Nodes of its own, beside the cluster's; default: the trainers' GPUs take turns");
  member.optional("tensor", out.tensor, 1, kMaxGpus, "GPUs of a replica; default: 1");
  member.optional("expert_parallel", out.expert_parallel,
                  "Whole experts on each GPU of a replica, instead of a part of every expert; "
                  "default: false");
  member.optional("precision", out.precision, precision_names(),
                  "Of the layers' products; default: that of training");
  member.optional(
      "cache", choice_type(kCacheNames), "Format of keys and values; default: bf16",
      [&](const JsonCursor& at) { out.cache_bytes = at.choice(kCacheNames) == 0 ? 2 : 1; });
  member.optional("offload", out.offload,
                  "Sharing GPUs: training state leaves for the host during a rollout; default: "
                  "true");
}

}  // namespace

void declare_rl(const DeclaredMembers& member, RlSpec& out) {
  constexpr ValueType kScorer = written_type(R"({"type": ["boolean", "string", "object"]})");
  const auto later = [](const JsonCursor&) {};  // read_scorer(): with the whole scenario
  member.required("algorithm", choice_type(kAlgorithmNames),
                  "Which models there are beside the actor: ppo has all, dapo none, grpo and rloo "
                  "a reference. dpo, ipo and kto (with a reference), simpo and orpo (without) and "
                  "distillation (with a teacher) learn from text that is there",
                  [&](const JsonCursor& at) {
                    out.algorithm = &kAlgorithms[at.choice(kAlgorithmNames)];
                    out.reference = out.algorithm->reference;
                  });
  member.required("prompts", out.prompts, 1, kMostInBatch, "Prompts of a rollout");
  member.optional(
      "generations", out.generations, 1, kMostInBatch,
      "Responses to each prompt; default: 1, and to be given where a group is compared");
  member.optional("updates", out.updates, 1, kMostInBatch,
                  "Optimiser steps on a rollout, each on its part of it; default: 1");
  member.optional("epochs", out.epochs, 1, 100,
                  "Times that training goes over a rollout; default: 1");
  member.required("prompt_tokens", out.prompt_tokens, 1, kMaxTokens, "Mean length of a prompt");
  member.required("responses", out.responses,
                  "How long responses get: log-normal and cut at most, or a list",
                  declare_responses);
  member.optional("generation", out.generation,
                  "The engine and its replicas, where responses are generated", declare_generation);
  member.optional("schedule", out.schedule, kRlScheduleNames,
                  "Whether rollouts wait for training; the last two need nodes of their own; "
                  "default: synchronous");
  member.optional("packing", out.packing, "A training row holds several responses; default: true");
  member.optional("log_probabilities", out.log_probabilities,
                  "The trainer computes those of the old policy anew; default: true");
  member.optional(
      "reference", out.reference,
      "A frozen copy of the actor scores responses; default: as the algorithm says; false "
      "where its log-probabilities were computed before");
  member.optional("critic", kScorer,
                  "A value model that is trained along: true (of the actor's shape), false or a "
                  "model; default: as the algorithm says",
                  later);
  member.optional("reward_model", kScorer,
                  "A model that scores responses: true (of the actor's shape), false or a model; "
                  "default: as the algorithm says",
                  later);
  member.optional("teacher", written_type(R"({"type": ["string", "object"]})"),
                  "Of distillation: the model whose logits the actor learns", later);
  member.optional("reward_time", out.reward, Interval{0, 1e6},
                  "Of a reward that no GPU computes, while all wait; default: 0");
}

std::span<const RlAlgorithm> rl_algorithms() { return kAlgorithms; }

EngineSpec engine_preset(const PresetStore& presets, std::string_view name) {
  const std::string path = presets.path("engines", name);
  const JsonCursor root = JsonCursor::parse(path, read_text_file(path), JsonStyle::sourced);
  return root.read_whole([&] {
    EngineSpec engine;
    engine.about = root.at("about").string();
    const DeclaredMembers member(root, Extent::whole);
    declare_engine(member, engine);
    member.optional("serving", engine.serving, "How it serves requests as they come",
                    declare_serving_engine);
    engine.name = name;
    root.finish();
    return engine;
  });
}

namespace {

RlScenario rl_scenario_of(const JsonCursor& root, std::string_view text, const PresetStore& presets,
                          const ScenarioOptions& options) {
  RlScenario out{.training = complete_measured(read_draft(root, presets), presets, options),
                 .rl = {}};
  out.training.folding = options.folding;
  if (out.training.expect && out.training.expect->mfu) {
    root.at("expect").at("mfu").fail(R"(no such key beside "rl": "step_time" is that of the step)");
  }
  if (const auto samples = root.at("batch").find("sample_tokens")) {
    samples->fail(R"(no such key beside "rl", whose "responses" are packed)");
  }
  const TransformerShape& model = out.training.job.model;
  if (!is_decoder(model) ||
      std::ranges::any_of(model.kinds, [](const KindShape& kind) { return kind.shared_by > 1; })) {
    root.at("model").fail(R"(a decoder alone beside "rl", which generates token by token)");
  }
  const JsonCursor from = root.at("rl");
  RlSpec& rl = out.rl;
  std::vector<std::string>& assumptions = out.training.assumptions;
  rl.generation.precision = out.training.job.precision;
  declare_rl({from, Extent::whole}, rl);
  complete_counts(from, rl);
  complete_responses(from.at("responses"), rl.responses, assumptions);
  rl.teacher = read_teacher(from, out.training, *rl.algorithm, root, text, presets, options);
  if (!rl.algorithm->offline) {
    const JsonCursor generation = from.at("generation");
    rl.generation.engine = read_engine_choice(generation.find("engine"), presets, assumptions);
    check_pool(generation, out.training, rl.generation);
  }
  if (rl.schedule != RlSchedule::synchronous && rl.generation.nodes == 0) {
    from.at("schedule").fail(R"("synchronous", or nodes of its own for "generation")");
  }
  rl.critic = read_scorer(from.find("critic"), rl.algorithm->critic, root, text, presets, options,
                          rl.critic_words);
  rl.reward_model = read_scorer(from.find("reward_model"), rl.algorithm->reward_model, root, text,
                                presets, options, rl.reward_model_words);
  from.finish();
  tell_turns(rl, out.training.job.adapters.any(), assumptions);
  check_counts(from, out.training, rl);
  refuse_stagger(root, out.training);
  root.tell_unitless_sets(assumptions);
  if (rl.prompt_tokens + rl.responses.most > out.training.job.batch.tokens) {
    from.at("responses")
        .fail(fmt::format("a prompt and the longest response within batch.tokens, {}",
                          out.training.job.batch.tokens));
  }
  return out;
}

}  // namespace

RlScenario on_fabric(RlScenario scenario, const FabricSpec& fabric) {
  scenario.training.fabric = fabric;
  for (std::optional<Scenario>* model :
       {&scenario.rl.critic, &scenario.rl.reward_model, &scenario.rl.teacher}) {
    if (*model) (*model)->fabric = fabric;
  }
  return scenario;
}

RlScenario read_rl_scenario(const std::string& file, std::string_view text,
                            const PresetStore& presets, const ScenarioOptions& options) {
  const JsonCursor root = JsonCursor::parse(file, text, JsonStyle::plain, options.set);
  return root.read_whole([&] { return rl_scenario_of(root, text, presets, options); });
}

}  // namespace lockstep
