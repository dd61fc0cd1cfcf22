#include "tools/lockstep/report/input_tables.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/names.hpp"
#include "tools/lockstep/report/page.hpp"

namespace lockstep {
namespace {

/// Keys that say nothing of what is simulated, or are shown elsewhere.
bool is_remark(std::string_view path) {
  return path == "$schema" || path == "about" || path == "expect" || path.starts_with("expect.");
}

void flatten(const nlohmann::ordered_json& value, const std::string& path, PageTable& table) {
  if (is_remark(path)) return;
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, each] : value.items()) {
      flatten(each, path.empty() ? key : fmt::format("{}.{}", path, key), table);
    }
    return;
  }
  const std::string text = value.is_string() ? value.get<std::string>() : write_json(value);
  table.rows.push_back({PageCell::text(path), PageCell::text(text)});
}

}  // namespace

void add_inputs(Page& page, const WrittenScenario& written) {
  if (!written || !written->is_object()) return;
  PageTable table{.columns = {{.title = "Value"}, {.title = "As the scenario has it"}},
                  .first_rows = 40};
  flatten(*written, "", table);
  page.section("Inputs", "What the scenario's file says, with what was changed of it.");
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

void add_basis(Page& page, const AnswerBasis& basis) {
  if (!basis.simulated.empty()) {
    PageTable table{.columns = {{.title = "What"}, {.title = "Here"}}};
    for (const NamedWords& line : basis.simulated) {
      table.rows.push_back({PageCell::text(line.name), PageCell::text(line.words)});
    }
    page.section(basis.title);
    page.table(table);
  }
  add_inputs(page, basis.written);
  if (basis.assumptions.empty()) return;
  page.section("Assumed");
  page.list(basis.assumptions);
}

std::vector<std::pair<std::string, std::string>> presets_of(const Scenario& scenario,
                                                            const PresetStore& presets) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto add = [&](const char* kind, const std::string& name) {
    const std::pair<std::string, std::string> each{kind, name};
    if (name.empty() || !presets.has(kind, name)) return;
    if (std::ranges::find(out, each) == out.end()) out.push_back(each);
  };
  add("models", scenario.job.model.name);
  for (std::size_t pool = 0; pool < scenario.pool_count(); ++pool) {
    add("nodes", scenario.node_of(pool).name);
    add("gpus", scenario.node_of(pool).gpu.name);
  }
  add("stacks", scenario.stack.name);
  add("fabrics", scenario.fabric.name);
  add("transports", scenario.transport.name);
  return out;
}

void add_sources(Page& page, const std::vector<std::pair<std::string, std::string>>& named,
                 const PresetStore& presets) {
  PageTable table{
      .columns = {{.title = "Preset"}, {.title = "Value"}, {.title = "Here"}, {.title = "Source"}},
      .first_rows = 15,
      .searched = true};
  for (const auto& [kind, name] : named) {
    for (const PresetRow& row : presets.show(kind, name)) {
      table.rows.push_back(
          {{.content = with_detail(escaped(name), kind)},
           PageCell::text(row.path),
           PageCell::text(row.value),
           {.content =
                row.note.empty() ? prose(row.source) : with_detail(prose(row.source), row.note)}});
    }
  }
  if (table.rows.empty()) return;
  page.section("Sources", "Every value of the presets that it names, and where it is from.");
  page.table(table);
}

}  // namespace lockstep
