#include "sim/accuracy/read_residuals.hpp"

#include <cassert>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/input/input_error.hpp"
#include "models/input/json_cursor.hpp"
#include "models/input/text_file.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

constexpr Interval kLogError{-20, 20};
constexpr std::size_t kMostResiduals = 1'000'000;

/// A row whose members are all there and of their types, which those that ship are: every run
/// reads hundreds, and a cursor for each member would take longer than the step. Nothing for any
/// other row, which the cursor then reads, or says what is wrong with.
std::optional<Residual> sound_residual(const nlohmann::ordered_json& row) {
  constexpr std::size_t kMembers = 16;
  if (!row.is_object() || row.size() != kMembers) return std::nullopt;
  bool sound = true;
  const auto member = [&](const char* key) -> const nlohmann::ordered_json* {
    const auto found = row.find(key);
    sound = sound && found != row.end();
    return found == row.end() ? nullptr : &*found;
  };
  const auto text = [&](const char* key, std::string& out) {
    const nlohmann::ordered_json* value = member(key);
    sound = sound && value->is_string();
    if (sound) out = value->get_ref<const std::string&>();
  };
  const auto truth = [&](const char* key, bool& out) {
    const nlohmann::ordered_json* value = member(key);
    sound = sound && value->is_boolean();
    if (sound) out = value->get<bool>();
  };
  const auto number = [&](const nlohmann::ordered_json* value, double& out) {
    sound = sound && value->is_number();
    if (!sound) return;
    out = value->get<double>();
    sound = out >= kLogError.low && out <= kLogError.high;
  };
  Residual r;
  text("row", r.row);
  text("source", r.source);
  text("vendor", r.vendor);
  text("stack", r.traits.stack);
  text("release", r.traits.release);
  text("gpu", r.traits.gpu);
  text("architecture", r.traits.architecture);
  text("network", r.traits.network);
  text("fabric", r.traits.fabric);
  truth("experts", r.traits.experts);
  truth("sharded_weights", r.traits.sharded_weights);
  truth("context", r.traits.context);
  number(member("fitted"), r.fitted);
  number(member("left_out"), r.left_out);
  number(member("vendor_left_out"), r.vendor_left_out);
  const nlohmann::ordered_json* as_default = member("as_default");
  if (sound && !as_default->is_null()) number(as_default, r.as_default.emplace());
  if (!sound) return std::nullopt;
  return r;
}

Residual read_residual(const JsonCursor& at) {
  if (std::optional<Residual> sound = sound_residual(at.json())) return *std::move(sound);
  Residual r;
  r.row = at.at("row").string();
  r.source = at.at("source").string();
  r.vendor = at.at("vendor").string();
  r.traits.stack = at.at("stack").string();
  r.traits.release = at.at("release").string();
  r.traits.gpu = at.at("gpu").string();
  r.traits.architecture = at.at("architecture").string();
  r.traits.network = at.at("network").string();
  r.traits.fabric = at.at("fabric").string();
  r.traits.experts = at.at("experts").boolean();
  r.traits.sharded_weights = at.at("sharded_weights").boolean();
  r.traits.context = at.at("context").boolean();
  r.fitted = at.at("fitted").number(kLogError);
  r.left_out = at.at("left_out").number(kLogError);
  const JsonCursor as_default = at.at("as_default");
  if (!as_default.is_null()) r.as_default = as_default.number(kLogError);
  r.vendor_left_out = at.at("vendor_left_out").number(kLogError);
  at.finish();
  return r;
}

/// What published rows say of their cabling at most: that it is a tree, whose rails may have
/// switches of their own.
std::string_view family_of(FabricKind kind) {
  switch (kind) {
    case FabricKind::ideal:
    case FabricKind::fat_tree:
    case FabricKind::rail_optimised:
      return name_of(FabricKind::fat_tree);
    default:
      return name_of(kind);
  }
}

ResidualTable residuals_of(const JsonCursor& root) {
  (void)root.find("about");
  ResidualTable table;
  const JsonCursor rows = root.at("rows");
  for (const JsonCursor& at : rows.elements(kMostResiduals)) table.push_back(read_residual(at));
  root.finish();
  if (table.empty()) rows.fail("at least one row");
  classify(table);
  return table;
}

}  // namespace

ResidualTable read_residuals(const std::string& file, std::string_view text) {
  const JsonCursor root = JsonCursor::parse(file, text);
  return root.read_whole([&] { return residuals_of(root); });
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
  const bool networked = scenario.gpus() > scenario.node.nvlink_domain;
  PredictionTraits out{
      .stack = scenario.stack.name,
      .release = scenario.stack.release,
      .release_stands_in = scenario.stack.release_stands_in,
      .stack_stands_in = scenario.stack.stands_in,
      .gpu = scenario.node.gpu.name,
      .architecture = scenario.node.gpu.architecture,
      .network = networked ? scenario.transport.name : std::string(),
      .fabric = networked ? std::string(family_of(scenario.fabric.kind)) : std::string(),
      .experts = job.model.experts.count > 0,
      .sharded_weights = job.parallelism.sharding == Sharding::zero3,
      .context = job.parallelism.context > 1,
      .unknown_software = scenario.unknown_software};
  // No published run that was held against its prediction kept its optimiser on the host, or did
  // what its software is not known to do.
  if (job.offload.optimiser > 0) out.unknown_software.emplace_back("optimiser on the host");
  for (const std::string& capability : scenario.beyond_stack) {
    out.unknown_software.push_back(capability + ", which the stack is not known to do");
  }
  return out;
}

StepIntervals::StepIntervals(const PresetStore& presets) : table_(load_residuals(presets)) {}

std::optional<PredictionInterval> StepIntervals::of(const Scenario& scenario) const {
  if (!scenario.pools.empty()) return std::nullopt;
  const PredictionTraits t = traits_of(scenario);
  const std::string key =
      fmt::format("{}|{}|{}{}{}{}|{}|{}|{}|{}|{}|{}", t.stack, t.release, t.release_stands_in,
                  t.stack_stands_in, t.experts, t.sharded_weights, t.context, t.gpu, t.architecture,
                  t.network, t.fabric, fmt::join(t.unknown_software, "|"));
  const std::lock_guard lock(mutex_);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  return known_.emplace(key, predict_interval(table_, t)).first->second;
}

PredictionInterval interval_of(const Scenario& scenario, const PresetStore& presets) {
  assert(scenario.pools.empty());
  return predict_interval(load_residuals(presets), traits_of(scenario));
}

}  // namespace lockstep
