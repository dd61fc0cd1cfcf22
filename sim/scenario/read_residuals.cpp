#include "sim/scenario/read_residuals.hpp"

#include <cassert>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/built_in_residuals.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

constexpr Interval kLogError{-20, 20};
constexpr std::size_t kMostResiduals = 1'000'000;

/// [row, fitted, left_out, vendor_left_out, as_default, composed]
constexpr std::size_t kRowMembers = 6;

/// What sets apart the errors of one row, where they are sound as those that ship are: every run
/// reads hundreds, and a cursor for each would take longer than the step. False for any other row,
/// which the cursor then reads, or says what is wrong with.
bool read_sound_errors(const nlohmann::ordered_json& row, Residual& r) {
  if (!row.is_array() || row.size() != kRowMembers || !row[0].is_string()) return false;
  const auto number = [&](std::size_t at, double& out) {
    if (!row[at].is_number()) return false;
    out = row[at].get<double>();
    return out >= kLogError.low && out <= kLogError.high;
  };
  r.row = row[0].get_ref<const std::string&>();
  r.as_default.reset();
  r.composed.reset();
  return number(1, r.fitted) && number(2, r.left_out) && number(3, r.vendor_left_out) &&
         (row[4].is_null() || number(4, r.as_default.emplace())) &&
         (row[5].is_null() || number(5, r.composed.emplace()));
}

void read_errors(const JsonCursor& at, Residual& r) {
  if (read_sound_errors(at.json(), r)) return;
  const std::vector<JsonCursor> members = at.elements(kRowMembers);
  if (members.size() < kRowMembers) {
    at.fail("[row, fitted, left_out, vendor_left_out, as_default, composed]");
  }
  r.row = members[0].string();
  r.fitted = members[1].number(kLogError);
  r.left_out = members[2].number(kLogError);
  r.vendor_left_out = members[3].number(kLogError);
  r.as_default.reset();
  if (!members[4].is_null()) r.as_default = members[4].number(kLogError);
  r.composed.reset();
  if (!members[5].is_null()) r.composed = members[5].number(kLogError);
}

/// Rows that were run alike.
void read_group(const JsonCursor& at, ResidualTable& table) {
  Residual r;
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
  for (const JsonCursor& row : at.at("rows").elements(kMostResiduals)) {
    read_errors(row, r);
    table.push_back(r);
  }
  at.finish();
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
  const JsonCursor groups = root.at("groups");
  for (const JsonCursor& at : groups.elements(kMostResiduals)) read_group(at, table);
  root.finish();
  if (table.empty()) groups.fail("at least one row");
  classify(table);
  return table;
}

}  // namespace

ResidualTable read_residuals(const std::string& file, std::string_view text) {
  const JsonCursor root = JsonCursor::parse(file, text);
  return root.read_whole([&] { return residuals_of(root); });
}

namespace {

/// The table of a text. Read anew only where the text is not the last one: a program that answers
/// question after question, such as an interpreter, would spend 3 ms of each on the same rows.
std::shared_ptr<const ResidualTable> table_of(const std::string& file, std::string text) {
  static std::mutex mutex;
  static std::string last_file, last_text;
  static std::shared_ptr<const ResidualTable> last;
  const std::lock_guard lock(mutex);
  if (last && file == last_file && text == last_text) return last;
  last = std::make_shared<const ResidualTable>(read_residuals(file, text));
  last_file = file;
  last_text = std::move(text);
  return last;
}

std::shared_ptr<const ResidualTable> shipped_residuals(const PresetStore& presets) {
  constexpr std::string_view kFolder = "accuracy", kName = "published";
  if (!presets.has(kFolder, kName)) {
    throw InputError({.file = "presets",
                      .pointer = {},
                      .found = "no accuracy/published.json",
                      .allowed = "one beside the presets that ship",
                      .nearest = {}});
  }
  const std::string file = presets.path(kFolder, kName);
  if (!has_built_in_residuals(file)) return table_of(file, read_text_file(file));
  static const auto built_in = std::make_shared<const ResidualTable>(built_in_residuals());
  return built_in;
}

}  // namespace

ResidualTable load_residuals(const PresetStore& presets) { return *shipped_residuals(presets); }

namespace {

/// The name of the card, and what sets it apart from the preset of that name, on which published
/// runs ran: "h100_sxm5_80gb with another hbm_bandwidth", "h100_sxm5_80gb at 300 W".
std::string card_of(const Scenario& scenario) {
  const GpuSpec& gpu = scenario.node.gpu;
  std::string out = gpu.name;
  if (!gpu.changed.empty()) out += fmt::format(" with another {}", fmt::join(gpu.changed, ", "));
  const std::optional<Watts> cap = scenario.power ? scenario.power->cap : std::nullopt;
  if (cap && *cap < scenario.power->gpu_nameplate) {
    out += " at " + format_quantity(cap->base_units(), Dimension::power);
  }
  return out;
}

/// What the job has that no published run did, beside its software.
std::vector<std::string> strange_parts_of(const Scenario& scenario) {
  std::vector<std::string> out;
  if (scenario.job.adapters.any()) {
    out.emplace_back("no run among these with low-rank adapters");
  }
  if (const TransformerShape& model = scenario.job.model; !is_decoder(model)) {
    // What predicts no words has no vocabulary.
    out.emplace_back(model.vocabulary <= 1 ? "no run among these of a diffusion model"
                                           : "no run among these of an encoder");
  }
  if (scenario.gpus() > 2 * kMostPublishedGpus) {
    out.push_back(
        fmt::format("no published run on more than {} GPUs", grouped(kMostPublishedGpus)));
  }
  return out;
}

}  // namespace

PredictionTraits traits_of(const Scenario& scenario) {
  const TrainingJob& job = scenario.job;
  const bool networked = scenario.gpus() > scenario.node.nvlink_domain;
  const StackSpec& stack = scenario.stack;
  PredictionTraits out{
      .stack = stack.starts_from.empty() ? stack.name : stack.starts_from,
      .release = scenario.stack.release,
      .release_stands_in = scenario.stack.release_stands_in,
      .stack_stands_in = scenario.stack.stands_in,
      .gpu = card_of(scenario),
      .architecture = scenario.node.gpu.architecture,
      .network = networked ? scenario.transport.name : std::string(),
      .fabric = networked ? std::string(family_of(scenario.fabric.kind)) : std::string(),
      .experts = job.model.experts.count > 0,
      .sharded_weights = job.parallelism.sharding == Sharding::zero3,
      .context = job.parallelism.context > 1,
      .composed = stack.composed,
      .learnt = stack.in_force,
      .unknown_software = scenario.unknown_software,
      .strange = {}};
  // What own steps had of them, their distance says.
  if (!stack.in_force) out.strange = strange_parts_of(scenario);
  // No published run that was held against its prediction kept its optimiser on the host, or did
  // what its software is not known to do.
  if (job.offload.optimiser > 0) out.unknown_software.emplace_back("optimiser on the host");
  if (!stack.changed.empty()) {
    out.unknown_software.push_back(
        fmt::format("{} changed: no published run of that", fmt::join(stack.changed, ", ")));
  }
  for (const std::string& capability : scenario.beyond_stack) {
    out.unknown_software.push_back(capability + ", which the stack is not known to do");
  }
  return out;
}

StepIntervals::StepIntervals(const PresetStore& presets) : table_(shipped_residuals(presets)) {}

std::optional<PredictionInterval> StepIntervals::of(const Scenario& scenario) const {
  if (!scenario.pools.empty()) return std::nullopt;
  const PredictionTraits t = traits_of(scenario);
  const LevelInForce learnt = t.learnt.value_or(LevelInForce{});
  const std::string key = fmt::format(
      "{}|{}|{}|{}|{}|{}|{}{}{}{}|{}|{}|{}|{}|{}|{}|{}", t.composed, learnt.deviation, learnt.steps,
      learnt.distance, t.stack, t.release, t.release_stands_in, t.stack_stands_in, t.experts,
      t.sharded_weights, t.context, t.gpu, t.architecture, t.network, t.fabric,
      fmt::join(t.unknown_software, "|"), fmt::join(t.strange, "|"));
  const std::lock_guard lock(mutex_);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  return known_.emplace(key, predict_interval(*table_, t)).first->second;
}

double StepIntervals::slow_end(const Scenario& scenario) const {
  const std::optional<PredictionInterval> interval = of(scenario);
  return interval ? interval->high : 1;
}

PredictionInterval interval_of(const Scenario& scenario, const PresetStore& presets) {
  assert(scenario.pools.empty());
  return predict_interval(load_residuals(presets), traits_of(scenario));
}

}  // namespace lockstep
