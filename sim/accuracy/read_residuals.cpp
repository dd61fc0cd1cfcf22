#include "sim/accuracy/read_residuals.hpp"

#include "models/input/input_error.hpp"
#include "models/input/json_cursor.hpp"
#include "models/input/text_file.hpp"

namespace lockstep {
namespace {

constexpr Interval kLogError{-20, 20};
constexpr std::size_t kMostResiduals = 1'000'000;

Residual read_residual(const JsonCursor& at) {
  Residual r;
  r.row = at.at("row").string();
  r.source = at.at("source").string();
  r.traits.stack = at.at("stack").string();
  r.traits.release = at.at("release").string();
  r.traits.gpu = at.at("gpu").string();
  r.traits.architecture = at.at("architecture").string();
  r.traits.experts = at.at("experts").boolean();
  r.traits.sharded_weights = at.at("sharded_weights").boolean();
  r.traits.context = at.at("context").boolean();
  r.fitted = at.at("fitted").number(kLogError);
  r.left_out = at.at("left_out").number(kLogError);
  at.finish();
  return r;
}

}  // namespace

ResidualTable read_residuals(const std::string& file, std::string_view text) {
  const JsonCursor root = JsonCursor::parse(file, text);
  (void)root.find("about");
  ResidualTable table;
  const JsonCursor rows = root.at("rows");
  for (const JsonCursor& at : rows.elements(kMostResiduals)) table.push_back(read_residual(at));
  root.finish();
  if (table.empty()) rows.fail("at least one row");
  classify(table);
  return table;
}

ResidualTable load_residuals(const PresetStore& presets) {
  constexpr std::string_view kFolder = "accuracy", kName = "published";
  if (!presets.has(kFolder, kName)) {
    throw InputError({.file = "presets",
                      .pointer = {},
                      .found = "no accuracy/published.json",
                      .allowed = "one beside the presets that ship",
                      .nearest = {}});
  }
  const std::string file = presets.path(kFolder, kName);
  return read_residuals(file, read_text_file(file));
}

PredictionTraits traits_of(const Scenario& scenario) {
  const TrainingJob& job = scenario.job;
  return {.stack = scenario.stack.name,
          .release = scenario.stack.release,
          .release_stands_in = scenario.stack.release_stands_in,
          .gpu = scenario.node.gpu.name,
          .architecture = scenario.node.gpu.architecture,
          .experts = job.model.experts.count > 0,
          .sharded_weights = job.parallelism.sharding == Sharding::zero3,
          .context = job.parallelism.context > 1};
}

PredictionInterval interval_of(const Scenario& scenario, const PresetStore& presets) {
  const ResidualTable table = load_residuals(presets);
  const PredictionTraits traits = traits_of(scenario);
  // No published run that was held against its prediction kept its optimiser on the host, or did
  // what its software is not known to do.
  const bool as_published = scenario.job.offload.optimiser == 0 && scenario.beyond_stack.empty();
  return predict_interval(table, traits,
                          as_published ? software_known(table, traits) : SoftwareKnown::none);
}

}  // namespace lockstep
