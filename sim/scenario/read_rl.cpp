#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>

#include <nlohmann/json.hpp>

#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/rl_spec.hpp"
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
};
constexpr std::string_view kDefaultEngine = "vllm";
constexpr std::array<std::string_view, 2> kCacheNames{"bf16", "fp8"};
constexpr int kMostInBatch = 1 << 20;
constexpr double kDefaultSigma = 0.6;

void read_engine(const JsonCursor& from, Extent extent, EngineSpec& out) {
  const MemberReader member(from, extent);
  constexpr Interval kSome{0, 1, true}, kTime{0, 10}, kBytes{0, 1e12}, kRate{1e6, 1e14};
  if (extent == Extent::whole) member.required("about", out.about);
  member.required("memory_fraction", out.memory_fraction, kSome);
  member.required("workspace", out.workspace, kBytes);
  member.required("most_sequences", out.most_sequences, 1, kMostInBatch);
  member.required("prefill_tokens", out.prefill_tokens, 1, kMaxTokens);
  member.optional("graphs", out.graphs);
  member.optional("reserves", out.reserves);
  member.optional("shared_prompts", out.shared_prompts);
  member.required("step_host", out.step_host, kTime);
  member.required("sequence_host", out.sequence_host, kTime);
  member.required("launch_interval", out.launch_interval, kTime);
  member.required("kernels_per_layer", out.kernels_per_layer, Interval{0, 1000});
  member.required("cache_bandwidth", out.cache_bandwidth, kSome);
  member.required("cache_arithmetic", out.cache_arithmetic, kSome);
  member.required("refit_rate", out.refit_rate, kRate);
  member.required("refit_overhead", out.refit_overhead, Interval{0, 1e4});
  member.required("host_copy", out.host_copy, kSome);
}

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
  if (!refines) return engine;
  read_engine(*from, Extent::changes, engine);
  from->finish();
  return engine;
}

ResponseLengths read_responses(const JsonCursor& from, std::vector<std::string>& assumptions) {
  ResponseLengths out;
  if (const auto listed = from.find("lengths")) {
    for (const JsonCursor& length : listed->elements(kMostInBatch)) {
      out.listed.push_back(length.integer(1, kMaxTokens));
    }
    if (out.listed.empty()) listed->fail("the tokens of at least one response");
    double sum = 0;
    for (const int length : out.listed) sum += length;
    out.mean = sum / static_cast<double>(out.listed.size());
    out.most = *std::ranges::max_element(out.listed);
    from.finish();
    return out;
  }
  out.mean = from.at("mean").number(Interval{1, kMaxTokens});
  const auto most = from.find("most");
  out.most = most ? most->integer(1, kMaxTokens) : static_cast<int>(4 * out.mean);
  if (out.most < out.mean) most->fail(fmt::format("at least the mean, {:g}", out.mean));
  const auto sigma = from.find("sigma");
  out.sigma = sigma ? sigma->number(Interval{0, 4}) : kDefaultSigma;
  if (!most) assumptions.push_back(fmt::format("responses: {} tokens at most (4 means)", out.most));
  if (!sigma && out.most > out.mean) {
    assumptions.push_back(fmt::format("responses: log-normal with sigma {:g}", out.sigma));
  }
  from.finish();
  return out;
}

GenerationPool read_pool(const JsonCursor& from, const Scenario& training,
                         const PresetStore& presets, std::vector<std::string>& assumptions) {
  GenerationPool pool;
  pool.precision = training.job.precision;
  const MemberReader member(from, Extent::changes);
  pool.engine = read_engine_choice(from.find("engine"), presets, assumptions);
  member.optional("nodes", pool.nodes, 1, kMaxGpus / training.node.gpus);
  member.optional("tensor", pool.tensor, 1, kMaxGpus);
  member.optional("expert_parallel", pool.expert_parallel);
  member.optional("precision", [&](const JsonCursor& at) {
    pool.precision = read_choice<Precision>(at, precision_names());
    if (training.node.gpu.peak(pool.precision) <= FlopsPerSecond{}) {
      at.fail("a format that " + training.node.gpu.name + " has");
    }
  });
  member.optional("cache", [&](const JsonCursor& at) {
    pool.cache_bytes = at.choice(kCacheNames) == 0 ? 2 : 1;
  });
  if (const auto offload = from.find("offload")) {
    if (pool.nodes > 0) offload->fail("no such key beside \"nodes\": nothing shares these GPUs");
    pool.offload = offload->boolean();
  }
  const TransformerShape& model = training.job.model;
  const auto at = [&](std::string_view key) { return from.find(key).value_or(from); };
  if (model.heads % pool.tensor != 0) {
    at("tensor").fail(fmt::format("a divisor of the {} heads of {}", model.heads, model.name));
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
  from.finish();
  return pool;
}

/// The scenario with another model in the actor's place, on the same GPUs in the same layout.
/// Scores are one number a token: no projection on the vocabulary.
Scenario with_model(const JsonCursor& from, const std::string& file, std::string_view text,
                    const PresetStore& presets, ScenarioOptions options) {
  options.set.push_back("model=" + write_json(from.json()));
  try {
    Scenario scenario = read_scenario(file, text, presets, options);
    scenario.job.model.vocabulary = scenario.job.parallelism.tensor;
    return scenario;
  } catch (const InputError& error) {
    InputProblem problem = error.problem();
    const std::string key = "/model";
    const bool inside = problem.pointer.starts_with(key);
    // Nobody gave this option.
    problem.found.erase(std::min(problem.found.find(" (--set model="), problem.found.size()));
    problem.pointer = from.pointer() + (inside ? problem.pointer.substr(key.size()) : "");
    throw InputError(problem);
  }
}

void read_counts(const JsonCursor& from, RlSpec& out) {
  const MemberReader member(from, Extent::whole);
  member.required("prompts", out.prompts, 1, kMostInBatch);
  out.generations = 1;
  const bool groups = out.algorithm->groups;
  const auto generations =
      groups ? std::optional(from.at("generations")) : from.find("generations");
  if (generations) {
    out.generations = generations->integer(groups ? 2 : 1, kMostInBatch / out.prompts);
  }
  member.optional("updates", out.updates, 1, out.samples());
  member.optional("epochs", out.epochs, 1, 100);
  member.required("prompt_tokens", out.prompt_tokens, 1, kMaxTokens);
}

void check_counts(const JsonCursor& from, const Scenario& training, const RlSpec& out) {
  if (out.samples() != static_cast<std::int64_t>(out.updates) * training.job.batch.sequences) {
    from.at("prompts").fail(
        fmt::format("prompts x generations = updates x batch.sequences, which are {} x {} and {} "
                    "x {}",
                    out.prompts, out.generations, out.updates, training.job.batch.sequences));
  }
}

/// A model that scores responses: true (the actor's shape), false, or a model.
std::optional<Scenario> read_scorer(const std::optional<JsonCursor>& from, bool by_default,
                                    const JsonCursor& root, const std::string& file,
                                    std::string_view text, const PresetStore& presets,
                                    const ScenarioOptions& options) {
  const bool given = from && (from->is_object() || from->is_string());
  const bool wanted = given || (from ? from->boolean() : by_default);
  if (!wanted) return std::nullopt;
  return with_model(given ? *from : root.at("model"), file, text, presets, options);
}

void read_scores(const JsonCursor& from, const JsonCursor& root, const std::string& file,
                 std::string_view text, const PresetStore& presets, const ScenarioOptions& options,
                 RlSpec& out) {
  const MemberReader member(from, Extent::changes);
  out.reference = out.algorithm->reference;
  member.optional("reference", out.reference);
  member.optional("log_probabilities", out.log_probabilities);
  out.critic =
      read_scorer(from.find("critic"), out.algorithm->critic, root, file, text, presets, options);
  out.reward_model = read_scorer(from.find("reward_model"), out.algorithm->reward_model, root, file,
                                 text, presets, options);
  member.optional("reward_time", out.reward, Interval{0, 1e6});
}

}  // namespace

std::span<const RlAlgorithm> rl_algorithms() { return kAlgorithms; }

bool has_rl(const JsonCursor& root) { return root.is_object() && root.find("rl").has_value(); }

EngineSpec engine_preset(const PresetStore& presets, std::string_view name) {
  const std::string path = presets.path("engines", name);
  const JsonCursor root = JsonCursor::parse(path, read_text_file(path), JsonStyle::sourced);
  return root.read_whole([&] {
    EngineSpec engine;
    read_engine(root, Extent::whole, engine);
    engine.name = name;
    root.finish();
    return engine;
  });
}

namespace {

RlScenario rl_scenario_of(const JsonCursor& root, std::string_view text, const PresetStore& presets,
                          const ScenarioOptions& options) {
  const std::string& file = root.file();
  RlScenario out{.training = complete_measured(read_draft(root, presets), presets, options),
                 .rl = {}};
  out.training.folding = options.folding;
  for (const char* other : {"run", "power", "training", "price", "stragglers"}) {
    if (const auto key = root.find(other)) key->fail("no such key beside \"rl\"");
  }
  if (out.training.expect && out.training.expect->mfu) {
    root.at("expect").at("mfu").fail(R"(no such key beside "rl": "step_time" is that of the step)");
  }
  if (const auto samples = root.at("batch").find("sample_tokens")) {
    samples->fail(R"(no such key beside "rl", whose "responses" are packed)");
  }
  const JsonCursor from = root.at("rl");
  std::vector<std::string_view> names;
  names.reserve(kAlgorithms.size());
  for (const RlAlgorithm& a : kAlgorithms) names.push_back(a.name);
  RlSpec& rl = out.rl;
  std::vector<std::string>& assumptions = out.training.assumptions;
  rl.algorithm = &kAlgorithms[from.at("algorithm").choice(names)];
  read_counts(from, rl);
  rl.responses = read_responses(from.at("responses"), assumptions);
  rl.generation = read_pool(from.at("generation"), out.training, presets, assumptions);
  if (const auto schedule = from.find("schedule")) {
    rl.schedule = read_choice<RlSchedule>(*schedule, kRlScheduleNames);
    if (rl.schedule != RlSchedule::synchronous && rl.generation.nodes == 0) {
      schedule->fail(R"("synchronous", or nodes of its own for "generation")");
    }
  }
  MemberReader(from, Extent::changes).optional("packing", rl.packing);
  read_scores(from, root, file, text, presets, options, rl);
  from.finish();
  check_counts(from, out.training, rl);
  root.tell_unitless_sets(assumptions);
  if (rl.prompt_tokens + rl.responses.most > out.training.job.batch.tokens) {
    from.at("responses")
        .fail(fmt::format("a prompt and the longest response within batch.tokens, {}",
                          out.training.job.batch.tokens));
  }
  return out;
}

}  // namespace

RlScenario read_rl_scenario(const std::string& file, std::string_view text,
                            const PresetStore& presets, const ScenarioOptions& options) {
  const JsonCursor root = JsonCursor::parse(file, text, JsonStyle::plain, options.set);
  return root.read_whole([&] { return rl_scenario_of(root, text, presets, options); });
}

}  // namespace lockstep
