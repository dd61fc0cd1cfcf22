#include "sim/measured/row_document.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/write_json.hpp"
#include "sim/measured/row_scenario.hpp"
#include "sim/scenario/job_readers.hpp"
#include "sim/scenario/read_scenario.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

/// What the declaration writes of `of`: a copy, as a declaration takes what it may read into.
template <class Of, class Declare>
// NOLINTNEXTLINE(performance-unnecessary-value-param): the same.
Json written(Of of, const Declare& declare) {
  Json out;
  declare(DeclaredMembers::writing(out), of);
  return out;
}

/// The members of an object that `base` has not, or has with another value.
Json beyond(const Json& object, const Json& base) {
  Json out = Json::object();
  for (const auto& [key, value] : object.items()) {
    const auto known = base.find(key);
    const bool is_new = known == base.end();
    if (!is_new && value.is_object() && known->is_object()) {
      Json inner = beyond(value, *known);
      if (!inner.empty()) out[key] = std::move(inner);
    } else if (is_new || value != *known) {
      out[key] = value;
    }
  }
  return out;
}

Json model_document(const TransformerShape& model) {
  const Json whole = written(model, declare_model);
  Json out;
  for (const char* required : {"name", "layers", "hidden", "heads", "ffn", "vocabulary"}) {
    if (whole.contains(required)) out[required] = whole.at(required);
  }
  out.update(beyond(whole, written(TransformerShape{}, declare_model)));
  // Left out they follow from the width, not from the struct.
  for (const char* width : {"kv_heads", "head_dim"}) out[width] = whole.at(width);
  return out;
}

Json node_document(const RowDraft& row, const PresetStore& presets) {
  const auto declare = [&](const DeclaredMembers& member, NodeSpec& node) {
    declare_node(member, presets, node);
  };
  const NodeSpec& node = row.draft.node;
  const Json whole = written(node, declare);
  if (!presets.has("nodes", node.name)) {
    Json out{{"gpu", row.gpu}};
    out.update(whole);
    return out;
  }
  Json out{{"preset", node.name}};
  out.update(beyond(whole, written(presets.node(node.name), declare)));
  return out.size() == 1 ? Json(node.name) : out;
}

/// Null where the software has no preset and the row changes nothing of what stands in for it.
Json stack_document(const ReferenceRow& row, const RowDraft& draft) {
  Json out = Json::object();
  if (!draft.stack_preset.empty()) {
    out[row.composed ? "framework" : "preset"] = draft.stack_preset;
    if (!row.composed && !row.release.empty()) out["release"] = row.release;
  }
  out.update(
      beyond(written(draft.draft.stack, declare_stack), written(draft.stack, declare_stack)));
  if (out.empty()) return nullptr;
  return out.size() == 1 && out.contains("preset") ? Json(draft.stack_preset) : out;
}

/// What `to` says of how the job is laid out and trained.
void add_job(const ScenarioDraft& draft, Json& to) {
  const Json whole = written(draft, declare_job);
  Json out = beyond(whole, written(ScenarioDraft{}, declare_job));
  out["batch"] = whole.at("batch");
  to.update(out);
}

/// A transport whose latency the row's measured collectives say.
void add_transport(const ReferenceRow& row, const PresetStore& presets, Json& cluster) {
  if (!row.all_gather_gb_per_s) return;
  const Scenario scenario = row_scenario(row, presets);
  const TransportSpec& own = scenario.transport;
  const TransportSpec& known = presets.transport(own.name);
  if (own.hop_latency == known.hop_latency) return;
  cluster["fabric"] = {{"preset", scenario.fabric.name},
                       {"transport",
                        {{"preset", own.name},
                         {"hop_latency", own.hop_latency.base_units()},
                         {"ring_hop_latency", own.ring_hop_latency.base_units()}}}};
}

Json expectation(const ReferenceRow& row) {
  Json out = Json::object();
  if (row.measured_step_s) out["step_time"] = *row.measured_step_s;
  if (row.ran_out_of_memory) out["fits"] = false;
  out["source"] = row.published.empty() ? row.id : row.published;
  return out;
}

[[noreturn]] void fail_row(const RowPlace& place, std::string found, std::string allowed,
                           std::string nearest = {}) {
  throw InputError({.file = place.file + "#" + place.row,
                    .pointer = {},
                    .found = std::move(found),
                    .allowed = std::move(allowed),
                    .nearest = std::move(nearest)});
}

/// With what was measured as its expectation, unless it says another one.
std::string own_text(const ReferenceRow& row) {
  Json scenario = Json::parse(row.scenario);
  if (scenario.is_object() && !scenario.contains("expect")) scenario["expect"] = expectation(row);
  return write_json(scenario);
}

}  // namespace

Json row_document(const ReferenceRow& row, const PresetStore& presets) {
  const RowDraft draft = row_draft(row, presets);
  Json out;
  out["about"] = row.published.empty() ? row.id : row.id + ": " + row.published;
  out["model"] = model_document(draft.draft.model);
  out["cluster"] = {{"node", node_document(draft, presets)}};
  add_transport(row, presets, out["cluster"]);
  add_job(draft.draft, out);
  if (Json stack = stack_document(row, draft); !stack.is_null()) out["stack"] = std::move(stack);
  out["expect"] = expectation(row);
  return out;
}

Scenario own_row_scenario(const ReferenceRow& row, const PresetStore& presets) {
  try {
    return read_scenario(row.file, row.scenario, presets);
  } catch (const InputError& error) {
    if (error.problem().file != row.file) throw;
    throw retold(error, [&](InputProblem& problem) { problem.pointer.insert(0, row.place); });
  }
}

void read_own_rows(std::vector<ReferenceRow>& rows, const PresetStore& presets) {
  for (ReferenceRow& row : rows) {
    if (row.scenario.empty()) continue;
    const Scenario scenario = own_row_scenario(row, presets);
    const Parallelism& layout = scenario.job.parallelism;
    row.model = scenario.job.model;
    row.batch = scenario.job.batch;
    row.gpu = scenario.node.gpu.name;
    row.gpus = scenario.gpus();
    row.gpus_per_node = scenario.node.gpus;
    row.stack = scenario.stack.name;
    row.release = scenario.stack.release;
    row.tensor = layout.tensor;
    row.context = layout.context;
    row.pipeline = layout.pipeline;
    row.data = layout.data;
    row.expert = layout.expert;
    row.sharding = layout.sharding;
    row.adapters = scenario.job.adapters;
    row.precision = scenario.job.precision;
    row.dense = is_dense(row);
    if (!scenario.expect) continue;
    if (scenario.expect->step_time) {
      row.expected_step_s = scenario.expect->step_time->base_units();
    }
    row.within = scenario.expect->within;
    row.expected_to_fit = scenario.expect->fits;
  }
}

RowPlace row_place(const std::string& path) {
  const std::size_t mark = path.find('#');
  std::error_code none;
  if (mark == std::string::npos || std::filesystem::exists(path, none)) return {path, {}};
  return {path.substr(0, mark), path.substr(mark + 1)};
}

std::string row_scenario_text(const RowPlace& place, std::string_view text,
                              const PresetStore& presets) {
  const std::vector<ReferenceRow> rows = parse_rows(place.file, text);
  const auto row = std::ranges::find(rows, place.row, &ReferenceRow::id);
  if (row == rows.end()) {
    std::vector<std::string> names;
    for (const ReferenceRow& known : rows) names.push_back(known.id);
    fail_row(place, in_quotes(place.row), "the name of a row in " + place.file,
             nearest_name(place.row, names));
  }
  if (!row->scenario.empty()) return own_text(*row);
  if (!row->obstacle.empty()) {
    fail_row(place, "a row of which no scenario can be made: " + row->obstacle,
             "a row that says what its job needs");
  }
  return write_json(row_document(*row, presets));
}

bool is_measured_row(const JsonCursor& scenario) {
  if (row_place(scenario.file()).row.empty()) return false;
  const auto expect = scenario.find("expect");
  return expect && expect->find("step_time");
}

}  // namespace lockstep
