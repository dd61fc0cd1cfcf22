#include "sim/measured/row_document.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/text_file.hpp"
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
  StackSpec known = draft.stack;
  if (row.partial_graph) {
    leave_partial_graphs(known);
    out["partial_graphs"] = true;
  }
  out.update(beyond(written(draft.draft.stack, declare_stack), written(known, declare_stack)));
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

/// With its name and source, and what was measured as its expectation, unless it says others.
std::string own_text(const ReferenceRow& row) {
  Json scenario = Json::parse(row.scenario);
  if (!scenario.is_object()) return row.scenario;
  Json out{{"about", row.id + ": " + row.published}};
  out.update(scenario);
  if (!out.contains("expect")) out["expect"] = expectation(row);
  return write_json(out);
}

/// What the scenario of the row says at a pointer; null where it says nothing.
Json said_at(const Json& scenario, const char* pointer) {
  const Json::json_pointer at(pointer);
  return scenario.contains(at) ? scenario.at(at) : Json();
}

/// What a scenario says of its software but for its name: what a run of it changes.
Json changes_of(const Json& stack) {
  Json out = stack.is_object() ? stack : Json::object();
  for (const char* key : {"preset", "framework", "release"}) out.erase(key);
  return out;
}

/// The row's scenario, its software composed from what that does, or without a name, where that is
/// asked for.
std::string asked_text(const ReferenceRow& row) {
  if (!row.composed && !row.unnamed) return row.scenario;
  Json scenario = Json::parse(row.scenario);
  if (!scenario.is_object() || !scenario.contains("stack")) return row.scenario;
  const Json said = scenario.at("stack");
  Json stack = Json::object();
  const Json framework = said.is_string() ? said : said_at(said, "/framework");
  const Json name = framework.is_null() ? said_at(said, "/preset") : framework;
  if (row.composed && !name.is_null()) stack["framework"] = name;
  stack.update(changes_of(said));
  scenario["stack"] = std::move(stack);
  return write_json(scenario);
}

/// What a row in the scenario's own words says of its job.
void fill_in(ReferenceRow& row, const PresetStore& presets) {
  const Scenario scenario = own_row_scenario(row, presets);
  const Json said = Json::parse(row.scenario);
  const Parallelism& layout = scenario.job.parallelism;
  row.model = scenario.job.model;
  row.batch = scenario.job.batch;
  if (row.gpu.empty()) row.gpu = scenario.node.gpu.name;
  row.gpus = scenario.gpus();
  row.gpus_per_node = scenario.node.gpus;
  if (row.stack.empty()) row.stack = scenario.stack.name;
  if (const Json release = said_at(said, "/stack/release"); release.is_string()) {
    row.release = release.get<std::string>();
  }
  row.tensor = layout.tensor;
  row.context = layout.context;
  row.pipeline = layout.pipeline;
  row.data = layout.data;
  row.expert = layout.expert;
  row.sharding = layout.sharding;
  if (!said_at(said, "/parallelism/virtual_stages").is_null()) {
    row.virtual_stages = layout.virtual_stages;
  }
  const Json recompute = said_at(said, "/recompute");
  if (!recompute.is_null() && recompute != "least") {
    row.recompute = scenario.job.recompute;
    row.modules = scenario.job.modules;
  }
  row.adapters = scenario.job.adapters;
  row.precision = scenario.job.precision;
  row.dense = is_dense(row);
  if (!scenario.expect) return;
  if (scenario.expect->step_time) row.expected_step_s = scenario.expect->step_time->base_units();
  row.within = scenario.expect->within;
  row.expected_to_fit = scenario.expect->fits;
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
    Scenario out = read_scenario(row.file, asked_text(row), presets);
    out.assumptions.insert(out.assumptions.begin(), row.assumed.begin(), row.assumed.end());
    return out;
  } catch (const InputError& error) {
    if (error.problem().file != row.file) throw;
    throw retold(error, [&](InputProblem& problem) { problem.pointer.insert(0, row.place); });
  }
}

std::vector<ReferenceRow> load_rows(const std::string& file, const PresetStore& presets) {
  std::vector<ReferenceRow> rows = parse_rows(file, read_text_file(file));
  for (ReferenceRow& row : rows) {
    if (!row.scenario.empty()) fill_in(row, presets);
  }
  return rows;
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
