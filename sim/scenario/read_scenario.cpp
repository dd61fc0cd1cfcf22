#include "sim/scenario/read_scenario.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <utility>

#include "models/base/json_cursor.hpp"
#include "models/base/json_text.hpp"
#include "models/base/text_file.hpp"
#include "models/spec/hugging_face.hpp"
#include "sim/scenario/capabilities.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/job_readers.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/read_power.hpp"
#include "sim/scenario/read_profile.hpp"
#include "sim/scenario/spec_readers.hpp"
#include "sim/scenario/stack_choice.hpp"
#include "sim/scenario/unequal_rules.hpp"

namespace lockstep {
namespace {

constexpr int kMaxSequences = 100'000'000;  // of a step

template <class Enum, class Names>
std::optional<Enum> optional_choice(const std::optional<JsonCursor>& from, const Names& names) {
  if (!from) return std::nullopt;
  return static_cast<Enum>(from->choice(names));
}

std::optional<int> optional_integer(const std::optional<JsonCursor>& from, int low, int high) {
  if (!from) return std::nullopt;
  return from->integer(low, high);
}

std::string optional_text(const std::optional<JsonCursor>& from) {
  return from ? from->string() : std::string{};
}

/// The shape in a Hugging Face config.json.
void read_hugging_face_model(const JsonCursor& from, ScenarioDraft& draft) {
  namespace fs = std::filesystem;
  const fs::path file = file_of_scenario(draft.file, from);
  const std::string name = file.has_parent_path() && file.filename() == "config.json"
                               ? file.parent_path().filename().string()
                               : file.stem().string();
  const std::string text = quote_non_finite(read_text_file(file.string()));  // Python wrote it
  const JsonCursor config = JsonCursor::parse(file.string(), text);
  HuggingFaceModel model = read_hugging_face(config, name);
  draft.model = std::move(model.shape);
  for (std::string& assumption : model.assumptions) {
    draft.assumptions.push_back(std::move(assumption));
  }
}

void read_cluster_into(const JsonCursor& from, const PresetStore& presets, ScenarioDraft& draft) {
  ClusterDraft cluster = read_cluster_draft(from, presets);
  draft.node = std::move(cluster.node);
  draft.nodes = cluster.nodes;
  draft.pools = std::move(cluster.pools);
  draft.across = cluster.across;
  draft.fabric = std::move(cluster.fabric);
  draft.site = std::move(cluster.site);
}

/// One of the modes, or the modules that selective recomputation repeats.
void read_recompute(const JsonCursor& from, ScenarioDraft& draft) {
  if (!from.is_object()) {
    draft.recompute = static_cast<Recompute>(from.choice(kRecomputeNames));
    return;
  }
  draft.recompute = Recompute::selective;
  draft.modules = {.core_attention = false};
  if (const auto names = from.find("modules")) draft.modules = read_recompute_modules(*names);
  if (const auto products = from.find("products")) {
    draft.modules.products = products->quantity(Dimension::share, Interval{0, 1});
  }
  from.finish();
}

/// How unevenly tokens fall on experts, and how many of them an expert takes.
void read_routing(const JsonCursor& from, ScenarioDraft& draft) {
  const ExpertShape& experts = draft.model.experts;
  if (experts.count == 0) from.fail("no such key, as the model has no experts");
  const auto imbalance = from.find("imbalance"), zipf = from.find("zipf");
  if (imbalance && zipf) zipf->fail(R"(either "imbalance" or "zipf")");
  ExpertRouting& out = draft.routing;
  if (imbalance) out.imbalance = imbalance->number(Interval{1, 100});
  if (zipf) out.zipf = zipf->number(Interval{0, 10});
  if (const auto capacity = from.find("capacity_factor")) {
    out.capacity = capacity->number(Interval{0.01, 1000});
    const double all = static_cast<double>(experts.count) / experts.per_token;
    if (out.capacity > all) {
      capacity->fail(
          fmt::format("at most {:g} (experts over those of a token), with which an "
                      "expert takes every token",
                      all));
    }
  }
  if (const auto padded = from.find("pad_to_capacity")) {
    out.padded = padded->boolean();
    if (out.padded && out.capacity == 0) padded->fail("false, where there is no capacity_factor");
  }
  from.finish();
}

/// Length of every sample of a packed sequence, or the lengths of some that stand for all.
double read_sample_tokens(const JsonCursor& from, int tokens) {
  if (!from.is_array()) return from.integer(1, tokens);
  constexpr std::size_t kMostSamples = 100'000;
  double sum = 0, squares = 0;
  for (const JsonCursor& sample : from.elements(kMostSamples)) {
    const double length = sample.integer(1, tokens);
    sum += length;
    squares += length * length;
  }
  if (sum == 0) from.fail("the lengths of samples, or no such key");
  return squares / sum;
}

Batch read_batch(const JsonCursor& from, ScenarioDraft& draft) {
  Batch batch;
  batch.sequences = from.at("sequences").integer(1, kMaxSequences);
  const std::optional<JsonCursor> micro = from.find("micro");
  batch.micro_sequences = optional_integer(micro, 1, kMaxSequences).value_or(1);
  batch.tokens = from.at("tokens").integer(1, kMaxTokens);
  if (const auto samples = from.find("sample_tokens")) {
    batch.sample_tokens = read_sample_tokens(*samples, batch.tokens);
  }
  if (const auto counts = from.find("micro_batches")) read_micro_batches(*counts, draft);
  from.finish();
  return batch;
}

/// What of a scenario is worked out for equal nodes and replicas alone.
void require_equal(const ScenarioDraft& draft, const JsonCursor& key) {
  const bool equal = draft.pools.empty() && draft.micro_batches.empty() && !draft.balanced_batch;
  if (!equal) key.fail("no such key beside cluster.pools or batch.micro_batches");
}

void read_stack_choice(const std::optional<JsonCursor>& from, const PresetStore& presets,
                       ScenarioDraft& draft) {
  const bool is_object = from && from->is_object();
  const std::string release = is_object ? optional_text(from->find("release")) : std::string{};
  if (!from || (is_object && !from->find("preset"))) {
    choose_default_stack({}, release, presets, draft);
  } else {
    choose_stack(read_preset_name(*from, "stacks", presets), release, presets, draft);
  }
  if (!is_object) return;
  if (const auto allow = from->find("allow")) draft.stack.allowed = read_allowed(*allow);
  declare_stack({*from, Extent::changes}, draft.stack);
  from->finish();
}

std::vector<Straggler> read_stragglers(const JsonCursor& from) {
  constexpr std::size_t kMostStragglers = 100'000;
  constexpr Interval kSlowdown{1, 100};
  std::vector<Straggler> stragglers;
  std::set<int> known;
  for (const JsonCursor& element : from.elements(kMostStragglers)) {
    const int gpu = element.at("gpu").integer(0, kMaxGpus - 1);
    if (!known.insert(gpu).second) element.at("gpu").fail("each GPU once");
    stragglers.push_back({gpu, element.at("slowdown").number(kSlowdown)});
    element.finish();
  }
  return stragglers;
}

Expectation read_expectation(const JsonCursor& from) {
  constexpr Interval kStepTime{0, 1e7, true};
  constexpr Interval kMfu{0, 1, true};
  constexpr Interval kWithin{0, 10};
  Expectation expect;
  if (const auto time = from.find("step_time")) expect.step_time = time->seconds(kStepTime);
  if (const auto mfu = from.find("mfu")) expect.mfu = mfu->quantity(Dimension::share, kMfu);
  if (const auto within = from.find("within")) {
    expect.within = within->quantity(Dimension::share, kWithin);
  }
  if (const auto fits = from.find("fits")) expect.fits = fits->boolean();
  expect.claim = read_claim(from);
  expect.source = optional_text(from.find("source"));
  from.finish();
  return expect;
}

/// What runs on the cluster for how long and at what price.
void read_run(const JsonCursor& root, ScenarioDraft& draft) {
  constexpr Interval kTrainingTokens{1, 1e18};
  constexpr Interval kPrice{0, 1e6};
  if (const auto training = root.find("training")) {
    draft.training_tokens = training->at("tokens").quantity(Dimension::count, kTrainingTokens);
    training->finish();
  }
  if (const auto price = root.find("price")) {
    draft.usd_per_gpu_hour = price->at("usd_per_gpu_hour").number(kPrice);
    price->finish();
  }
  const auto expect = root.find("expect");
  if (!expect) return;
  const Expectation measured = read_expectation(*expect);
  // What was measured is of the job as the file has it, unless both are changed.
  const bool meant = std::ranges::any_of(root.overrides(), [](const JsonOverride& change) {
    return change.pointer.starts_with("/expect");
  });
  if (!root.overrides().empty() && !meant) {
    draft.assumptions.emplace_back("expect: not compared, as --set changes what was measured");
  } else {
    draft.expect = measured;
  }
}

}  // namespace

void read_model_choice(const JsonCursor& from, const PresetStore& presets, ScenarioDraft& draft) {
  if (!from.is_object() && !from.is_string()) {
    from.fail(R"(the name of a preset, or an object with "preset", "huggingface" or a shape)");
  }
  const bool is_object = from.is_object();
  if (!is_object && from.string().ends_with(".json")) {
    from.fail("the name of a preset; for a config.json of Hugging Face: {\"huggingface\": " +
              in_quotes(from.string()) + "}");
  }
  const std::optional<JsonCursor> preset = is_object ? from.find("preset") : from;
  const std::optional<JsonCursor> config = is_object ? from.find("huggingface") : std::nullopt;
  if (preset && config) config->fail(R"(either "preset" or "huggingface")");
  if (preset) draft.model = presets.model(read_preset_name(from, "models", presets));
  if (config) read_hugging_face_model(*config, draft);
  if (!is_object) return;
  declare_model({from, preset || config ? Extent::changes : Extent::whole}, draft.model);
  from.finish();
}

void read_job_draft(const JsonCursor& from, const PresetStore& presets, ScenarioDraft& draft) {
  const DeclaredMembers member(from, Extent::whole);
  member.optional("parallelism", draft, "How the model is cut over GPUs", declare_parallelism);
  draft.batch = read_batch(from.at("batch"), draft);
  draft.precision = optional_choice<Precision>(from.find("precision"), precision_names());
  if (const auto recompute = from.find("recompute")) read_recompute(*recompute, draft);
  if (const auto routing = from.find("routing")) read_routing(*routing, draft);
  member.optional("lora", draft.adapters,
                  "Low-rank adapters (LoRA, QLoRA): all other weights are frozen; default: all "
                  "weights are trained",
                  declare_lora);
  member.optional("offload", draft.offload,
                  "What lives in the nodes' memory instead of the GPUs'; default: nothing",
                  declare_offload);
  member.optional("frozen", draft.frozen, "Parts that are not trained; default: none",
                  declare_frozen);
  read_stack_choice(from.find("stack"), presets, draft);
  if (const auto stragglers = from.find("stragglers")) {
    draft.stragglers = read_stragglers(*stragglers);
  }
}

namespace {

ScenarioDraft draft_of(const JsonCursor& root, const PresetStore& presets) {
  ScenarioDraft draft;
  draft.file = root.file();
  draft.overrides.assign(root.overrides().begin(), root.overrides().end());
  (void)optional_text(root.find("$schema"));  // for editors
  draft.about = optional_text(root.find("about"));
  read_model_choice(root.at("model"), presets, draft);
  read_cluster_into(root.at("cluster"), presets, draft);
  read_job_draft(root, presets, draft);
  read_run(root, draft);
  // Of days to months: sim/scenario/read_run_spec.cpp.
  if (const auto run = root.find("run")) require_equal(draft, *run);
  // Of reinforcement learning: sim/scenario/read_rl.cpp.
  if (const auto rl = root.find("rl")) require_equal(draft, *rl);
  if (const auto power = root.find("power")) {
    require_equal(draft, *power);
    draft.power = read_power(*power, presets, draft.site, draft.assumptions);
  }
  if (const auto cost = root.find("cost")) {
    if (!draft.power) cost->fail("no such key, unless there is \"power\"");
    read_cost(*cost, draft.file, draft.power->cost, draft.assumptions);
  }
  root.finish();
  root.tell_unitless_sets(draft.assumptions);
  return draft;
}

}  // namespace

ScenarioDraft read_draft(const JsonCursor& root, const PresetStore& presets) {
  return root.read_whole([&] { return draft_of(root, presets); });
}

ScenarioDraft read_draft(const std::string& file, std::string_view text, const PresetStore& presets,
                         const ScenarioOptions& options) {
  return read_draft(JsonCursor::parse(file, text, JsonStyle::plain, options.set), presets);
}

Scenario complete_measured(const ScenarioDraft& draft, const PresetStore& presets,
                           const ScenarioOptions& options) {
  std::vector<std::string> measured;
  const std::vector<Profile> profiles = load_profiles(options.profiles, presets, measured);
  Scenario scenario = complete_scenario(draft, presets, profiles);
  scenario.assumptions.insert(scenario.assumptions.end(), measured.begin(), measured.end());
  return scenario;
}

Scenario read_scenario(const std::string& file, std::string_view text, const PresetStore& presets,
                       const ScenarioOptions& options) {
  Scenario scenario = complete_measured(read_draft(file, text, presets, options), presets, options);
  scenario.folding = options.folding;
  return scenario;
}

Scenario load_scenario(const std::string& path, const PresetStore& presets,
                       const ScenarioOptions& options) {
  return read_scenario(path, read_text_file(path), presets, options);
}

}  // namespace lockstep
