// "model" of an imported job: by an option, a config.json, a name, a recipe or sizes.
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_text.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "models/spec/hugging_face.hpp"
#include "sim/launch/complete_model.hpp"
#include "sim/launch/import_parts.hpp"
#include "sim/launch/model_names.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// Chooses what describes the model, and notes where its config.json lies.
class ModelChoice {
 public:
  explicit ModelChoice(ImportedJob& imported)
      : imported_(imported),
        files_(imported.files),
        options_(imported.options),
        presets_(imported.presets),
        job_(imported.job) {}

  /// "model" of the scenario; null where nothing says it.
  Json choose() {
    if (options_.model.starts_with('{')) return written_out(options_.model);
    if (!options_.model.empty()) {
      if (options_.model.ends_with(".json")) {
        imported_.config = options_.model;
        return {{"huggingface", from_scenario(options_.model)}};
      }
      const std::string meant = presets_.meant("models", options_.model);
      std::string named = meant.empty() ? preset_of_model_name(options_.model, presets_) : meant;
      if (!named.empty()) return named;
      const std::vector<std::string> all = presets_.names("models");
      throw InputError({.file = "--model",
                        .pointer = {},
                        .found = in_quotes(options_.model),
                        .allowed = "a model (lockstep list models), or the path of a config.json",
                        .nearest = nearest_name(options_.model, all)});
    }
    if (!job_.model.config.empty()) {
      if (job_.model.config == kStandardInput) return written_out(standard_input());
      imported_.config = job_.model.config;
      return {{"huggingface", from_scenario(imported_.config)}};
    }
    take_recipe_name();
    return complete_model(job_.model, imported_.kind, job_.tensor.value_or(1), files_.front(),
                          presets_, imported_.out.assumptions);
  }

 private:
  /// The path of a config.json from the folder that the scenario goes to.
  [[nodiscard]] std::string from_scenario(const std::string& path) const {
    const fs::path folder = fs::path(options_.scenario_file).parent_path();
    std::error_code error;
    const fs::path out = fs::relative(path, folder.empty() ? "." : folder, error);
    return error || out.empty() ? fs::absolute(path).string() : out.string();
  }

  /// A config.json that can be read only once.
  static Json written_out(const std::string& config) {
    return {{"huggingface", JsonCursor::parse("config.json", quote_non_finite(config)).json()}};
  }

  /// What standard input held, which is read already.
  [[nodiscard]] std::string standard_input() const {
    if (files_.size() == 1) return imported_.launch.texts;
    throw InputError({.file = kStandardInput,
                      .pointer = {},
                      .found = "a config.json beside other files",
                      .allowed = "its path, or --model -",
                      .nearest = {}});
  }

  /// Takes the model from a recipe's name. What else the recipe sets is not read.
  void take_recipe_name() {
    if (job_.recipe.empty()) return;
    std::vector<std::string> open;
    const auto note = [&](bool said, const char* name) {
      if (!said) open.emplace_back(name);
    };
    note(job_.tensor.has_value(), "parallelism.tensor");
    note(job_.pipeline.has_value(), "parallelism.pipeline");
    note(job_.context.has_value(), "parallelism.context");
    note(job_.sequences || job_.local, "batch.sequences");
    note(job_.micro || job_.local, "batch.micro");
    note(options_.tokens || job_.tokens, "batch.tokens");
    note(!job_.precision.empty(), "precision");
    note(!job_.recompute.empty(), "recompute");
    if (!open.empty()) {
      job_.remarks.push_back(
          fmt::format("recipe {}: what it sets itself is not read, here {} (--set PATH=VALUE)",
                      job_.recipe, fmt::join(open, ", ")));
    }
    if (!job_.model.name.empty() || job_.model.layers) return;
    const std::string named = preset_of_model_name(job_.recipe, presets_);
    (named.empty() ? job_.model.hint : job_.model.name) = named.empty() ? job_.recipe : named;
  }

  ImportedJob& imported_;
  const std::vector<std::string>& files_;
  const JobImportOptions& options_;
  const PresetStore& presets_;
  JobSketch& job_;
};

}  // namespace

Json import_model(ImportedJob& imported) { return ModelChoice(imported).choose(); }

int layers_of_model(const ImportedJob& imported, const Json& model) {
  if (model.is_string()) return imported.presets.model(model.get<std::string>()).layers;
  if (!imported.config.empty()) {
    const JsonCursor config = JsonCursor::parse(imported.config, read_text_file(imported.config));
    return read_hugging_face(config, "model").shape.layers;
  }
  if (!model.is_object()) return 0;
  if (model.contains("huggingface")) {
    const std::string text = write_json(model["huggingface"]);
    return read_hugging_face(JsonCursor::parse("config.json", text), "model").shape.layers;
  }
  if (model.contains("preset")) {
    return imported.presets.model(model["preset"].get<std::string>()).layers;
  }
  return model.value("layers", 0);
}

void require_model(const ImportedJob& imported, const Json& model) {
  if (!model.is_null()) return;
  const JobSketch& job = imported.job;
  std::string hint = preset_of_model_name(job.model.hint, imported.presets);
  if (hint.empty())
    hint = preset_of_model_name(fs::path(imported.files.front()).stem().string(), imported.presets);
  std::string found = "no model";
  if (!job.model.name.empty()) {
    found = fmt::format(
        "the model {}, which is no preset",
        in_quotes(job.model.name + (job.model.flavor.empty() ? "" : " " + job.model.flavor)));
  }
  std::string allowed = fmt::format("--model {} (lockstep list models), or --model config.json",
                                    hint.empty() ? "NAME" : hint);
  if (!imported.open.empty()) {
    allowed += fmt::format("; open: {} (--set NAME=VALUE)", fmt::join(imported.open, ", "));
  }
  throw InputError(
      {.file = imported.file, .pointer = {}, .found = found, .allowed = allowed, .nearest = {}});
}

}  // namespace lockstep
