#include "tools/lockstep/topology_input.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/input_file.hpp"
#include "models/base/json_cursor.hpp"
#include "models/base/number_text.hpp"
#include "models/base/quantity.hpp"
#include "models/base/text_file.hpp"
#include "models/base/write_json.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "tools/console/work_budget.hpp"
#include "topologies/fabrics/drawn_fabric.hpp"
#include "topologies/fabrics/graph_of_fabric.hpp"
#include "topologies/fabrics/placement.hpp"
#include "topologies/formats/fabric_json.hpp"
#include "topologies/infiniband/ibnetdiscover.hpp"

namespace lockstep {
namespace {

/// `place`: what says how many nodes there are. Throws InputError where its graph needs more memory
/// than there may be.
TopologyInput fabric_within_budget(WrittenCluster from, std::string source,
                                   const std::string& place) {
  const double nics = 1.0 * from.cluster.nodes * nic_ports(from.cluster.node).count;
  check_work_memory({.place = place,
                     .what = grouped(nics) + " NICs with their switches and cables",
                     .bytes = kGraphBytesPerNic * nics},
                    memory_limit());
  return fabric_of_cluster(std::move(from), std::move(source));
}

/// What --node and --nodes change of a scenario.
std::vector<std::string> sets(const ParsedOptions& options) {
  std::vector<std::string> out;
  for (const auto& [option, key] :
       {std::pair{"node", "cluster.node"}, {"nodes", "cluster.nodes"}}) {
    if (options.has(option)) out.push_back(fmt::format("{}={}", key, options.get(option)));
  }
  return out;
}

/// The cluster of a text as --node and --nodes change it. Mistakes in them are told of them.
WrittenCluster cluster_of(const std::string& file, const std::string& text,
                          const ParsedOptions& options, const PresetStore& presets) {
  try {
    const JsonCursor root = JsonCursor::parse(file, text, JsonStyle::plain, sets(options));
    Cluster cluster = root.read_whole([&] { return read_cluster(root.at("cluster"), presets); });
    nlohmann::ordered_json written{{"cluster", root.at("cluster").json()}};
    return {std::move(cluster), std::make_shared<const nlohmann::ordered_json>(std::move(written))};
  } catch (const InputError& error) {
    InputError told = error;
    for (const std::string option : {"node", "nodes"}) {
      if (!options.has(option)) continue;
      const std::string& value = options.get(option);
      told = told_of(told, fmt::format("--set cluster.{}={}", option, value),
                     fmt::format("--{} {}", option, value));
    }
    throw InputError(told);
  }
}

TopologyInput fabric_of_preset(const std::string& name, const ParsedOptions& options,
                               const PresetStore& presets) {
  if (!options.has("nodes") || !options.has("node")) {
    throw UsageError(
        fmt::format("lockstep topology: fabric preset {} joins nodes of some kind; give --node "
                    "NAME and --nodes N",
                    in_quotes(name)));
  }
  const nlohmann::json text{{"cluster", {{"fabric", name}}}};
  WrittenCluster of = cluster_of("command line", write_json(text), options, presets);
  std::string source =
      fmt::format("fabric preset {}, {} nodes of {}", name, of.cluster.nodes, of.cluster.node.name);
  return fabric_within_budget(std::move(of), std::move(source), "--nodes");
}

/// Throws InputError where the word, which is no fabric preset, is no file either.
void check_is_file(const std::string& word, const PresetStore& presets) {
  std::error_code unreadable;  // which the reader tells of
  const std::filesystem::file_status status = std::filesystem::status(word, unreadable);
  if (word.empty() || word == "-" || status.type() != std::filesystem::file_type::not_found) return;
  throw InputError({.file = word,
                    .pointer = {},
                    .found = "no such file, and no fabric of that name",
                    .allowed = "a file, or a name of lockstep list fabrics",
                    .nearest = nearest_name(word, presets.names("fabrics"))});
}

/// Whether a JSON text is a scenario, which names a cluster, and not a fabric.
bool is_scenario(const std::string& file, const std::string& text) {
  const JsonCursor root = JsonCursor::parse(file, text);
  return root.is_object() && root.find("cluster").has_value();
}

}  // namespace

ImportOptions import_options(const ParsedOptions& options) {
  ImportOptions out;
  out.topology = options.get("topology");
  if (options.has("rate")) {
    constexpr double kLeast = 1e6, kMost = 1e15;  // as in fabric.json
    const auto rate = parse_quantity(options.get("rate"), Dimension::data_rate);
    const double* value = std::get_if<double>(&rate);
    if (value == nullptr || !(*value >= kLeast && *value <= kMost)) {
      throw UsageError(fmt::format("--rate: found {}; allowed: a rate from 8 Mb/s to 8 Pb/s, {}",
                                   in_quotes(options.get("rate")),
                                   unit_list(Dimension::data_rate)));
    }
    out.rate = BytesPerSecond{*value};
  }
  if (options.has("hosts")) {
    out.hosts_file = options.get("hosts");
    out.hosts = read_hosts(out.hosts_file, read_text_file(out.hosts_file));
  }
  return out;
}

const ImportFormat& import_format(const ParsedOptions& options, const std::string& file,
                                  const std::string& text) {
  if (!options.has("from")) return recognise(file, text);
  std::vector<std::string_view> names;
  for (const ImportFormat& format : import_formats()) names.push_back(format.name);
  const std::string name = options.choice("from", names);
  for (const ImportFormat& format : import_formats()) {
    if (format.name == name) return format;
  }
  return recognise(file, text);
}

TopologyInput topology_input(const ParsedOptions& options, const PresetStore& presets) {
  const std::string& word = options.positionals[1];
  if (presets.has("fabrics", word) && !std::filesystem::exists(word)) {
    return fabric_of_preset(word, options, presets);
  }
  check_is_file(word, presets);
  const std::string text = read_maybe_gzip(word, kFabricFileLimit);
  const ImportFormat& format = import_format(options, word, text);
  if (format.name == "fabric" && is_scenario(word, text)) {
    return fabric_within_budget(cluster_of(word, text, options, presets), word,
                                word + "#/cluster/nodes");
  }
  for (const char* option : {"node", "nodes"}) {
    if (!options.has(option)) continue;
    throw UsageError(
        fmt::format("lockstep topology: --{} is for scenarios and fabric presets; {} "
                    "is a file of {}",
                    option, in_quotes(word), format.title));
  }
  Import read = import_text(word, text, format, import_options(options));
  if (auto* fabric = std::get_if<DrawnFabric>(&read)) return {.fabric = std::move(*fabric)};
  throw UsageError(
      fmt::format("lockstep topology: {} describes a server ({}), not a network; "
                  "`lockstep topology import` makes a node preset of it",
                  in_quotes(word), format.title));
}

}  // namespace lockstep
