#include "tools/views/report/input_tables.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <memory>
#include <string_view>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/names.hpp"
#include "tools/views/report/page.hpp"

namespace lockstep {
namespace {

/// Keys that say nothing of what is simulated, or are shown elsewhere.
bool is_remark(std::string_view path) {
  return path == "$schema" || path == "about" || path == "expect" || path.starts_with("expect.");
}

/// A value without parts as somebody would say it: a list as its members, one after another.
std::string plain_words(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "none";
  if (value.is_object()) return "all of it as it is by default";
  if (!value.is_array()) return write_json(value);
  if (value.empty()) return "none";
  std::string out;
  for (const nlohmann::ordered_json& each : value) {
    out += (out.empty() ? "" : ", ") + plain_words(each);
  }
  return out;
}

/// A row for each value. Members of a list that have parts of their own are named by their number,
/// as --set names them.
void flatten(const nlohmann::ordered_json& value, const std::string& path, PageTable& table) {
  if (is_remark(path)) return;
  const auto has_parts = [](const nlohmann::ordered_json& each) { return each.is_structured(); };
  if (!value.empty() &&
      (value.is_object() || (value.is_array() && std::ranges::any_of(value, has_parts)))) {
    for (const auto& [key, each] : value.items()) {
      flatten(each, path.empty() ? key : fmt::format("{}.{}", path, key), table);
    }
    return;
  }
  table.rows.push_back({PageCell::key(path), PageCell::key(plain_words(value))});
}

/// The value of a preset, which is JSON where it is a list.
std::string preset_words(const std::string& written) {
  if (!written.starts_with('[') && !written.starts_with('{')) return written;
  const auto value = nlohmann::ordered_json::parse(written, nullptr, false);
  if (value.is_discarded()) return written;
  const auto is_list = [](const nlohmann::ordered_json& each) { return each.is_array(); };
  if (!value.is_array() || !std::ranges::any_of(value, is_list)) return plain_words(value);
  // Points of a curve.
  std::string out;
  for (const nlohmann::ordered_json& each : value) {
    out += (out.empty() ? "" : "; ") + plain_words(each);
  }
  return out;
}

/// A key of scenarios and presets that may name a preset, and of which kind.
struct NamingKey {
  std::string_view key, kind;
};
constexpr std::array kNamingKeys{NamingKey{"model", "models"},
                                 NamingKey{"teacher", "models"},
                                 NamingKey{"cluster", "clusters"},
                                 NamingKey{"node", "nodes"},
                                 NamingKey{"gpu", "gpus"},
                                 NamingKey{"nvlink", "nvlinks"},
                                 NamingKey{"chassis", "chassis"},
                                 NamingKey{"stack", "stacks"},
                                 NamingKey{"fabric", "fabrics"},
                                 NamingKey{"transport", "transports"},
                                 NamingKey{"engine", "engines"},
                                 NamingKey{"facility", "facilities"},
                                 NamingKey{"reliability", "reliability"},
                                 NamingKey{"storage", "storages"}};

bool has_preset(const std::vector<NamedPreset>& all, const NamedPreset& each) {
  return std::ranges::find(all, each) != all.end();
}

void add_if_preset(const char* kind, const std::string& name, const PresetStore& presets,
                   std::vector<NamedPreset>& out) {
  NamedPreset each{kind, name};
  if (name.empty() || !presets.has(kind, name) || has_preset(out, each)) return;
  out.push_back(std::move(each));
}

/// A preset, with those that its own values name.
void add_with_parts(const NamedPreset& each, const PresetStore& presets,
                    std::vector<NamedPreset>& out) {
  if (has_preset(out, each)) return;
  out.push_back(each);
  for (const PresetRow& row : presets.show(each.first, each.second)) {
    const std::string_view key = std::string_view(row.path).substr(row.path.rfind('.') + 1);
    const auto* const naming = std::ranges::find(kNamingKeys, key, &NamingKey::key);
    if (naming == kNamingKeys.end()) continue;
    const std::string name = presets.meant(naming->kind, row.value);
    if (!name.empty()) add_with_parts({std::string(naming->kind), name}, presets, out);
  }
}

/// The preset of the kind that the key names.
void add_named(std::string_view key, const std::string& written, const PresetStore& presets,
               std::vector<NamedPreset>& out) {
  const auto* const naming = std::ranges::find(kNamingKeys, key, &NamingKey::key);
  if (naming == kNamingKeys.end()) return;
  const std::string name = presets.meant(naming->kind, written);
  if (!name.empty()) add_with_parts({std::string(naming->kind), name}, presets, out);
}

/// `key`: under which the value stands; a preset with changes has its name under "preset".
void add_all_named(const std::string& key, const nlohmann::ordered_json& value,
                   const PresetStore& presets, std::vector<NamedPreset>& out) {
  if (value.is_string()) {
    add_named(key, value.get_ref<const std::string&>(), presets, out);
  } else if (value.is_array()) {
    for (const nlohmann::ordered_json& each : value) add_all_named(key, each, presets, out);
  } else if (value.is_object()) {
    for (const auto& [name, each] : value.items()) {
      if (!is_remark(name)) add_all_named(name == "preset" ? key : name, each, presets, out);
    }
  }
}

/// What stands on paper in place of a row for each value, which takes sheets: a source once, behind
/// all values that are from it.
Html rows_by_source(const std::string& kind, const std::string& name,
                    const std::vector<PresetRow>& rows) {
  struct Source {
    const PresetRow* first;
    Html values;
  };
  std::vector<Source> sources;
  for (const PresetRow& row : rows) {
    const auto is_same = [&](const Source& each) {
      return each.first->source == row.source && each.first->note == row.note;
    };
    auto at = std::ranges::find_if(sources, is_same);
    if (at == sources.end()) at = sources.insert(at, {&row, {}});
    if (at->first != &row) at->values += escaped(", ");
    std::string words = preset_words(row.value);
    if (words.ends_with('.')) words.pop_back();  // others follow
    at->values += key_words(row.path) + escaped(" ") + strong(words);
  }
  Html out =
      Html::markup("<h3>") + key_words(name) + escaped(", " + kind) + Html::markup("</h3>\n");
  for (const Source& each : sources) {
    const std::string& note = each.first->note;
    out += Html::markup("<p>") +
           with_detail(each.values, each.first->source + (note.empty() ? "" : "; " + note)) +
           Html::markup("</p>\n");
  }
  return out;
}

/// What the kernels of serving are fitted to, and of a card what it is.
constexpr std::string_view kArchitecture = "architecture";

/// Architectures of the cards among these.
std::vector<std::string> architectures_of(const std::vector<NamedPreset>& named,
                                          const PresetStore& presets) {
  std::vector<std::string> out;
  for (const auto& [kind, name] : named) {
    if (kind != "gpus") continue;
    for (const PresetRow& row : presets.show(kind, name)) {
      if (row.path == kArchitecture) out.push_back(row.value);
    }
  }
  return out;
}

/// Without what a preset has for the cards of other architectures; all of it where it has nothing
/// for these.
void drop_other_architectures(const std::vector<std::string>& kept, std::vector<PresetRow>& rows) {
  std::vector<std::string> dropped;  // "serving.kernels.0."
  bool has_own = false;
  for (const PresetRow& row : rows) {
    if (!row.path.ends_with(fmt::format(".{}", kArchitecture))) continue;
    if (std::ranges::find(kept, row.value) != kept.end()) {
      has_own = true;
    } else {
      dropped.push_back(row.path.substr(0, row.path.size() - kArchitecture.size()));
    }
  }
  if (!has_own) return;
  std::erase_if(rows, [&](const PresetRow& row) {
    return std::ranges::any_of(dropped,
                               [&](const std::string& part) { return row.path.starts_with(part); });
  });
}

}  // namespace

WrittenScenario written_in(const JsonCursor& root) {
  return std::make_shared<const nlohmann::ordered_json>(root.json());
}

void add_inputs(Page& page, const WrittenScenario& written) {
  if (!written || !written->is_object()) return;
  PageTable table{.columns = {{.title = "Value"}, {.title = "As the scenario has it"}},
                  .first_rows = 40};
  flatten(*written, "", table);
  page.section("Inputs", "What the scenario says, with the changes made to it.");
  page.table(table);
}

std::vector<NamedWords> cluster_words(const Cluster& cluster) {
  const auto words = [](int count, const NodeSpec& node) {
    std::string out =
        fmt::format("{} x {}, {} x {} each", grouped(count), node.name, node.gpus, node.gpu.name);
    if (node.nics > 0) {
      out += fmt::format(", {} of {}", counted(node.nics, "NIC"),
                         format_quantity(node.nic_bandwidth.base_units(), Dimension::data_rate));
    }
    return out;
  };
  std::string nodes = cluster.pools.empty() ? words(cluster.nodes, cluster.node) : "";
  for (const NodePool& pool : cluster.pools) {
    nodes += (nodes.empty() ? "" : "; ") + words(pool.nodes, pool.node);
  }
  return {{"Nodes", std::move(nodes)},
          {"Fabric", fmt::format("{}, {}, {}", cluster.fabric.name, name_of(cluster.fabric.routing),
                                 cluster.transport.name)}};
}

std::vector<NamedWords> job_words(const Scenario& scenario) {
  const TrainingJob& job = scenario.job;
  const std::string& release = scenario.stack.release;
  std::vector<NamedWords> out{
      {"Model", job.model.name},
      {"Batch", fmt::format("{} of {} tokens", counted(job.batch.sequences, "sequence"),
                            grouped(job.batch.tokens))},
      {"Software", scenario.stack.name + (release.empty() ? "" : " " + release)}};
  const std::vector<NamedWords> machine = cluster_words({.node = scenario.node,
                                                         .nodes = scenario.nodes,
                                                         .fabric = scenario.fabric,
                                                         .transport = scenario.transport,
                                                         .assumptions = {},
                                                         .pools = scenario.pools});
  out.insert(out.end(), machine.begin(), machine.end());
  return out;
}

void add_basis(Page& page, const AnswerBasis& basis) {
  if (!basis.simulated.empty()) {
    PageTable table{.columns = {{.title = "What"}, {.title = "Here"}}};
    for (const NamedWords& line : basis.simulated) {
      table.rows.push_back({PageCell::key(line.name), PageCell::key(line.words)});
    }
    page.section(basis.title);
    page.table(table);
  }
  add_inputs(page, basis.written);
  if (!basis.assumptions.empty()) {
    page.section("Assumed");
    page.list(basis.assumptions);
  }
  if (basis.presets == nullptr) return;
  std::vector<NamedPreset> named;
  for (const NamedPreset& each : basis.named) add_with_parts(each, *basis.presets, named);
  if (basis.written) add_all_named("", *basis.written, *basis.presets, named);
  add_sources(page, named, *basis.presets);
}

std::vector<NamedPreset> presets_of(const Scenario& scenario, const PresetStore& presets) {
  std::vector<NamedPreset> out;
  add_if_preset("models", scenario.job.model.name, presets, out);
  for (std::size_t pool = 0; pool < scenario.pool_count(); ++pool) {
    add_if_preset("nodes", scenario.node_of(pool).name, presets, out);
    add_if_preset("gpus", scenario.node_of(pool).gpu.name, presets, out);
  }
  add_if_preset("stacks", scenario.stack.name, presets, out);
  add_if_preset("fabrics", scenario.fabric.name, presets, out);
  add_if_preset("transports", scenario.transport.name, presets, out);
  return out;
}

std::vector<NamedPreset> presets_of(const Cluster& cluster, const PresetStore& presets) {
  std::vector<NamedPreset> out;
  const auto add_node = [&](const NodeSpec& node) {
    add_if_preset("nodes", node.name, presets, out);
    add_if_preset("gpus", node.gpu.name, presets, out);
  };
  add_node(cluster.node);
  for (const NodePool& pool : cluster.pools) add_node(pool.node);
  add_if_preset("fabrics", cluster.fabric.name, presets, out);
  add_if_preset("transports", cluster.transport.name, presets, out);
  return out;
}

std::vector<NamedPreset> presets_named(const nlohmann::ordered_json& written,
                                       const PresetStore& presets) {
  std::vector<NamedPreset> out;
  add_all_named("", written, presets, out);
  return out;
}

void add_sources(Page& page, const std::vector<NamedPreset>& named, const PresetStore& presets) {
  PageTable table{
      .columns = {{.title = "Preset"}, {.title = "Value"}, {.title = "Here"}, {.title = "Source"}},
      .first_rows = 15,
      .searched = true,
      .on_paper = false};
  Html on_paper;
  const std::vector<std::string> architectures = architectures_of(named, presets);
  for (const auto& [kind, name] : named) {
    std::vector<PresetRow> rows = presets.show(kind, name);
    if (!architectures.empty()) drop_other_architectures(architectures, rows);
    on_paper += rows_by_source(kind, name, rows);
    for (const PresetRow& row : rows) {
      table.rows.push_back(
          {{.content = with_detail(key_words(name), kind)},
           PageCell::key(row.path),
           PageCell::text(preset_words(row.value)),
           {.content =
                row.note.empty() ? prose(row.source) : with_detail(prose(row.source), row.note)}});
    }
  }
  if (table.rows.empty()) return;
  page.section("Sources", "Every value of the presets that it names, and where it is from.");
  page.table(table);
  page.markup(Html::markup("<div class=\"paper\">\n") + on_paper + Html::markup("</div>\n"));
}

}  // namespace lockstep
