#include "sim/scenario/read_scenario.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/json_text.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "models/spec/checkpoint_format.hpp"
#include "models/spec/hugging_face.hpp"
#include "sim/scenario/capabilities.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/feature_rules.hpp"
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

std::string optional_text(const std::optional<JsonCursor>& from) {
  return from ? from->string() : std::string{};
}

void take_hugging_face_model(const JsonCursor& config, const std::string& name,
                             ScenarioDraft& draft) {
  HuggingFaceModel model = read_hugging_face(config, name);
  draft.model = std::move(model.shape);
  draft.checkpoint = checkpoint_format(config);
  for (std::string& assumption : model.assumptions) {
    draft.assumptions.push_back(std::move(assumption));
  }
}

/// The shape in what a config.json holds. It is a document of its own: its unknown keys are none of
/// the scenario's mistakes.
void read_written_out_config(const JsonCursor& from, ScenarioDraft& draft) try {
  const JsonCursor config = JsonCursor::parse(from.file(), write_json(from.json()));
  const auto said = config.find("_name_or_path");
  const std::string path = said && said->is_string() ? said->string() : std::string{};
  const std::string name = std::filesystem::path(path).filename().string();
  take_hugging_face_model(config, name.empty() ? "model of a config.json" : name, draft);
} catch (const InputError& error) {
  throw retold(error,
               [&](InputProblem& problem) { problem.pointer = from.pointer() + problem.pointer; });
}

/// The shape in a Hugging Face config.json, or in what one holds.
void read_hugging_face_model(const JsonCursor& from, ScenarioDraft& draft) {
  namespace fs = std::filesystem;
  if (from.is_object()) return read_written_out_config(from, draft);
  const fs::path file = file_of_scenario(draft.file, from);
  const std::string name = file.has_parent_path() && file.filename() == "config.json"
                               ? file.parent_path().filename().string()
                               : file.stem().string();
  const std::string text = quote_non_finite(read_text_file(file.string()));  // Python wrote it
  take_hugging_face_model(JsonCursor::parse(file.string(), text), name, draft);
}

void read_cluster_into(const JsonCursor& from, const PresetStore& presets, ScenarioDraft& draft) {
  ClusterDraft cluster = read_cluster_draft(from, presets);
  draft.node = std::move(cluster.node);
  draft.nodes = cluster.nodes;
  draft.pools = std::move(cluster.pools);
  draft.across = cluster.across;
  draft.fabric = std::move(cluster.fabric);
  draft.fabric_assumed = cluster.fabric_assumed;
  draft.site = std::move(cluster.site);
}

/// The preset, or the file of one: beside the scenario, or where the command runs if it was given
/// there.
std::string read_stack_name(const JsonCursor& from, const PresetStore& presets,
                            const ScenarioDraft& draft) {
  const JsonCursor name = from.is_object() ? from.at("preset") : from;
  if (!name.is_string() || !name.string().ends_with(".json")) {
    return read_preset_name(from, "stacks", presets);
  }
  const std::filesystem::path file = name.set_option().empty()
                                         ? file_of_scenario(draft.file, name)
                                         : std::filesystem::path(name.string());
  if (!std::filesystem::is_regular_file(file)) {
    name.fail("the name of a stack, or the file of one (lockstep learn): " + file.string() +
              " is none");
  }
  return file.string();
}

void read_stack_choice(const std::optional<JsonCursor>& from, const PresetStore& presets,
                       ScenarioDraft& draft) {
  const bool is_object = from && from->is_object();
  const std::string release = is_object ? optional_text(from->find("release")) : std::string{};
  const auto framework = is_object ? from->find("framework") : std::nullopt;
  const auto preset = is_object ? from->find("preset") : from;
  if (framework && preset) framework->fail(R"(either "framework" or "preset")");
  if (framework) {
    choose_framework(read_bare_preset_name(*framework, "stacks", presets), presets, draft);
  } else if (!preset) {
    choose_default_stack({}, release, presets, draft);
    take_attention_of_cards(draft);
  } else {
    choose_stack(read_stack_name(*from, presets, draft), release, presets, draft);
  }
  if (!is_object) return;
  if (const auto allow = from->find("allow")) draft.stack.allowed = read_allowed(*allow);
  change_stack(*from, presets, draft);
}

/// What was measured is of the job as the file has it, unless both are changed.
void settle_expectation(const JsonCursor& root, ScenarioDraft& draft) {
  const bool meant = std::ranges::any_of(root.overrides(), [](const JsonOverride& change) {
    return change.pointer.starts_with("/expect");
  });
  if (!draft.expect || root.overrides().empty() || meant) return;
  draft.expect.reset();
  draft.assumptions.emplace_back(
      "expect: not compared, as other keys were set than the measured job has");
}

}  // namespace

void read_model_choice(const JsonCursor& from, const PresetStore& presets, ScenarioDraft& draft) {
  if (!from.is_object() && !from.is_string()) {
    from.fail_type(R"(the name of a preset, or an object with "preset", "huggingface" or a shape)");
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
  if (draft.model.name.empty()) draft.model.name = "model of the scenario";
  from.finish();
}

namespace {

/// Adapters and frozen parts are of a model without modules that predict further tokens, which
/// fine-tuning does without: those of a preset or a config.json, which nobody asked for, are left
/// out.
void leave_out_predictions(const std::optional<JsonCursor>& model, ScenarioDraft& draft) {
  const bool frozen = draft.frozen.any();
  if (draft.model.predicted_tokens == 0 || (!draft.adapters.any() && !frozen)) return;
  if (model && model->is_object() && model->find("predicted_tokens")) return;
  draft.model.predicted_tokens = 0;
  draft.assumptions.push_back(
      "model: its modules that predict further tokens are left out, beside " +
      std::string(frozen ? "frozen parts" : "adapters"));
}

}  // namespace

void read_job_draft(const JsonCursor& from, const PresetStore& presets, ScenarioDraft& draft) {
  const DeclaredMembers member(from, Extent::whole);
  declare_job(member, draft);
  leave_out_predictions(from.find("model"), draft);
  if (draft.batch.images > 0) {
    if (draft.model.tower.layers == 0) {
      from.at("batch").at("images").fail(
          "no such key, unless the model says the layers of its vision tower (\"tower\")");
    }
    draft.model = with_images(draft.model, draft.batch.images);
  }
  read_stack_choice(from.find("stack"), presets, draft);
  declare_stragglers(member, draft);
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
  declare_reckoning({root, Extent::whole}, draft);
  settle_expectation(root, draft);
  (void)root.find("run");  // of days to months: sim/scenario/read_run_spec.cpp
  (void)root.find("rl");   // of reinforcement learning: sim/scenario/read_rl.cpp
  check_features(root, !draft.pools.empty(), !draft.micro_batches.empty() || draft.balanced_batch);
  if (const auto power = root.find("power")) {
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
