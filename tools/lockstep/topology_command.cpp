#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <ostream>

#include "models/base/input_error.hpp"
#include "models/base/input_file.hpp"
#include "models/base/number_text.hpp"
#include "models/base/output_file.hpp"
#include "models/base/text_file.hpp"
#include "sim/scenario/preset_store.hpp"
#include "tools/console/shared_options.hpp"
#include "tools/lockstep/cli.hpp"
#include "tools/lockstep/topology_input.hpp"
#include "tools/views/report/assets.hpp"
#include "tools/views/report/topology_page.hpp"
#include "tools/views/tables/topology_node.hpp"
#include "tools/views/tables/topology_report.hpp"
#include "topologies/analysis/analysis.hpp"
#include "topologies/fabrics/nic_rates.hpp"
#include "topologies/formats/dot.hpp"
#include "topologies/formats/fabric_json.hpp"
#include "topologies/formats/graphml.hpp"
#include "topologies/formats/picture.hpp"
#include "topologies/formats/slurm_topology.hpp"
#include "topologies/infiniband/ibsim_net.hpp"

namespace lockstep {
namespace {

constexpr OptionSpec kTopologyFormat{
    "format",
    0,
    "ibsim|slurm|graphml|dot|fabric|table|json",
    false,
    "export: ibsim, slurm, graphml, dot or fabric. show: table (the default) or json. import: the "
    "same as --from.",
    "--format slurm"};
constexpr OptionSpec kFrom{
    "from",
    0,
    "fabric|graphml|nccl|slurm|nvidia-smi|rocm-smi|dot|netq|ufm|netbox|ibnetdiscover",
    false,
    "What the file is, where its content does not tell: fabric, graphml, nccl, slurm, nvidia-smi, "
    "rocm-smi, dot, netq, ufm, netbox or ibnetdiscover (net files of ibsim too).",
    "--from ibnetdiscover"};
constexpr OptionSpec kHosts{
    "hosts",
    0,
    "FILE",
    false,
    "Host names, one a line: they become nodes 0, 1, ... in this order, the other hosts follow. In "
    "GraphML and DOT, these vertices are hosts.",
    "--hosts hosts.txt",
    PathUse::reads};
constexpr OptionSpec kRate{
    "rate",
    0,
    "RATE",
    false,
    "Rate of cables or NICs where the file names none, as in Slurm's topology.conf and nvidia-smi; "
    "of InfiniBand and of servers, it replaces what the file says.",
    "--rate \"400 Gb/s\""};
constexpr OptionSpec kTopologyName{
    "topology",
    0,
    "NAME",
    false,
    "Of Slurm's topology.yaml, the topology that is read; without it the cluster's default.",
    "--topology topo2"};
constexpr OptionSpec kGpu{"gpu",
                          0,
                          "NAME",
                          false,
                          "GPU preset of a server whose description does not name a known GPU.",
                          "--gpu h200_sxm_141gb"};
constexpr OptionSpec kTransport{"transport",
                                0,
                                "NAME",
                                false,
                                "Transport preset of a server whose NICs do not tell theirs.",
                                "--transport roce"};
constexpr OptionSpec kAllNics{
    "all-nics",
    0,
    "",
    false,
    "Count all NICs of a server. Without it, those that are nearest to no "
    "GPU are left out: storage and management.",
    "--all-nics"};
constexpr OptionSpec kNics{
    "nics",
    0,
    "N",
    false,
    "How many NICs a server has for its network, where its description lists none.",
    "--nics 8"};
constexpr OptionSpec kSvg{"svg",
                          0,
                          "FILE",
                          false,
                          "show: draw the fabric into this file. Boxes that play the same part are "
                          "one where there are many; dashed: slow (orange) and down (red).",
                          "--svg fabric.svg",
                          PathUse::writes};
constexpr OptionSpec kReport{
    "report",
    0,
    "FILE",
    false,
    "show: write one self-contained HTML page: the fabric drawn as by --svg, "
    "what each layer takes and gives, what must not break.",
    "--report fabric.html",
    PathUse::writes};
constexpr OptionSpec kNode{"node",
                           0,
                           "NAME",
                           false,
                           "Node preset that a fabric preset or a scenario is built for.",
                           "--node dgx_h100"};
constexpr OptionSpec kNodes{"nodes", 0, "N", false, "How many nodes of them.", "--nodes 128"};

constexpr std::array kTopologyOptions{
    kTopologyFormat, kFrom, kHosts,  kRate, kTopologyName, kGpu,           kTransport,   kAllNics,
    kNics,           kSvg,  kReport, kNode, kNodes,        kPresetsOption, kOutputOption};

constexpr std::array<std::string_view, 8> kTopologyExamples{
    "lockstep topology show rail_optimised --node dgx_h100 --nodes 128 --svg fabric.svg",
    "lockstep topology import ibnetdiscover.txt --hosts hosts.txt -o fabric.json",
    "lockstep topology import topology.conf --rate \"400 Gb/s\" -o fabric.json",
    "lockstep topology import nccl-topology.xml -o my-presets/nodes/my_node.json",
    "lockstep topology import topo-m.txt --gpu h200_sxm_141gb --rate \"400 Gb/s\" -o my_node.json",
    "lockstep topology show fabric.json --svg fabric.svg",
    "lockstep topology export fabric.json --format ibsim -o fabric.net",
    "lockstep topology export rail_optimised --node dgx_h100 --nodes 16 --format slurm",
};

constexpr CommandSpec kTopologySpec{
    .name = "topology",
    .usage = "topology import|show|export FILE [options]",
    .summary = "Read real fabrics and servers, draw and analyse them, export them.",
    .about =
        "import reads what a cluster says of itself. Networks (ibnetdiscover, ibsim, UFM, NetQ, "
        "NetBox,\n"
        "Slurm's topology.conf, GraphML, DOT) become a fabric.json, which a scenario takes as\n"
        "\"fabric\": {\"kind\": \"file\", \"file\": \"fabric.json\"}. Servers (NCCL's topology "
        "XML,\n"
        "nvidia-smi topo -m, rocm-smi --showtopo) become a node preset: put it into DIR/nodes and\n"
        "name --presets DIR.\n\n"
        "show prints size, distances, bisection, oversubscription, path diversity and single "
        "points\n"
        "of failure, and draws a picture. export writes the fabric for other tools.\n\n"
        "show and export take any of these files, a scenario, or a fabric preset with --node and\n"
        "--nodes.",
    .positionals = 2,
    .options = kTopologyOptions,
    .examples = kTopologyExamples,
};

/// --format of import is --from.
ParsedOptions with_from(ParsedOptions options) {
  const auto format = options.values.find("format");
  if (format != options.values.end()) options.values["from"] = format->second;
  return options;
}

/// What was found goes where the result does not: beside a file, or to the error stream.
std::ostream& remarks(const ParsedOptions& options, Console& console) {
  return options.has("output") && options.get("output") != kStandardInput ? console.out
                                                                          : console.err;
}

Exit import_fabric(const ParsedOptions& given, Console& console) {
  const ParsedOptions options = with_from(given);
  const std::string& file = options.positionals[1];
  const std::string text = read_maybe_gzip(file, kFabricFileLimit);
  const ImportFormat& format = import_format(options, file, text);
  const ImportOptions import = import_options(options);
  const Import read = import_text(file, text, format, import);
  std::vector<std::string> assumptions;
  if (const auto* node = std::get_if<NodeDrawing>(&read)) {
    const PresetStore presets(options.all("presets"));
    const std::string source = fmt::format("{} {}", format.title, file.substr(file.rfind('/') + 1));
    const NodePreset preset =
        node_preset(file, *node, source,
                    {.gpu = options.get("gpu"),
                     .transport = options.get("transport"),
                     .rate = import.rate,
                     .all_nics = options.has("all-nics"),
                     .nics = whole_number(options, "nics", 0, kMaxNicsPerHost)},
                    presets);
    write_output(Answer::file(preset.json), options, console);
    for (const std::string& fact : preset.facts) {
      remarks(options, console) << terminal_text(fact) << "\n";
    }
    assumptions = preset.assumptions;
  } else {
    const auto& fabric = std::get<DrawnFabric>(read);
    const ClusterGraph& graph = fabric.graph;
    const auto switches = graph.vertex_count() - graph.port_count();
    write_output(Answer::file(write_fabric_json(fabric)), options, console);
    remarks(options, console) << fmt::format(
        "{}: {}, {} of {}, {}, {}\n", format.title,
        counted(static_cast<double>(fabric.hosts.size()), "host"),
        counted(static_cast<double>(graph.port_count()), "NIC"), words_of(nic_rates(graph)),
        switches == 1 ? "1 switch" : fmt::format("{} switches", switches),
        counted(static_cast<double>(graph.cables().size()), "cable"));
    assumptions = fabric.assumptions;
  }
  for (const std::string& line : assumptions) {
    remarks(options, console) << "assumed: " << terminal_text(line) << "\n";
  }
  return Exit::ok;
}

Exit show_fabric(const ParsedOptions& options, Console& console) {
  constexpr std::array<std::string_view, 2> kShowFormats{"table", "json"};
  const std::string format = options.choice("format", kShowFormats);
  const bool reports = wants_report(options);
  const PresetStore presets(options.all("presets"));
  const TopologyInput input = topology_input(options, presets);
  const DrawnFabric& fabric = input.fabric;
  if (options.has("svg")) {
    OutputFile svg(options.get("svg"));
    svg.write(write_svg(picture_of(fabric)));
    svg.commit();
  }
  const TopologyAnalysis analysis = analyse(fabric);
  if (reports) write_report(options, topology_page(fabric, analysis, input.cluster, input.written));
  write_output(format == "json" ? Answer(topology_json(fabric, analysis))
                                : Answer::terminal(topology_table(fabric, analysis,
                                                                  output_style(options, console))),
               options, console);
  return Exit::ok;
}

/// To add a format: its writer, and its row here.
struct ExportFormat {
  std::string_view name;
  std::string (*write)(const DrawnFabric& fabric, const std::string& file);
};
constexpr std::array kExportFormats{
    ExportFormat{"ibsim",
                 [](const DrawnFabric& fabric, const std::string& file) {
                   return write_ibsim(infiniband_subnet(fabric.graph, file));
                 }},
    ExportFormat{"slurm", [](const DrawnFabric& fabric,
                             const std::string&) { return write_slurm_topology(fabric); }},
    ExportFormat{"graphml", [](const DrawnFabric& fabric,
                               const std::string&) { return write_graphml(named_graph(fabric)); }},
    ExportFormat{"dot", [](const DrawnFabric& fabric,
                           const std::string&) { return write_dot(named_graph(fabric)); }},
    ExportFormat{"fabric", [](const DrawnFabric& fabric,
                              const std::string&) { return write_fabric_json(fabric); }},
};

Exit run_export(const ParsedOptions& options, Console& console) {
  std::vector<std::string_view> names;
  names.reserve(kExportFormats.size());
  for (const ExportFormat& format : kExportFormats) names.push_back(format.name);
  if (!options.has("format")) {
    throw UsageError("lockstep topology export: --format is missing; allowed: " + listed(names));
  }
  const std::string name = options.choice("format", names);
  const PresetStore presets(options.all("presets"));
  const DrawnFabric fabric = topology_input(options, presets).fabric;
  for (const std::string& line : fabric.assumptions) {
    remarks(options, console) << "assumed: " << terminal_text(line) << "\n";
  }
  const std::string lost = name == "fabric" ? std::string() : words_of(fabric.carriage);
  if (!lost.empty()) {
    remarks(options, console) << fmt::format(
        "note: left out, for {} cannot say it: {}; --format fabric keeps it\n", name, lost);
  }
  for (const ExportFormat& format : kExportFormats) {
    if (format.name != name) continue;
    write_output(Answer::file(format.write(fabric, options.positionals[1])), options, console);
  }
  return Exit::ok;
}

struct Action {
  std::string_view name;
  Exit (*run)(const ParsedOptions& options, Console& console);
  std::span<const std::string_view> options;  ///< beside those of all
};
constexpr std::array<std::string_view, 9> kFabricImportOptions{
    "format", "from", "hosts", "rate", "topology", "gpu", "transport", "all-nics", "nics"};
constexpr std::array<std::string_view, 9> kShowOptions{
    "format", "from", "hosts", "rate", "topology", "svg", "report", "node", "nodes"};
constexpr std::array<std::string_view, 7> kExportOptions{"format",   "from", "hosts", "rate",
                                                         "topology", "node", "nodes"};
constexpr std::array kActions{Action{"import", import_fabric, kFabricImportOptions},
                              Action{"show", show_fabric, kShowOptions},
                              Action{"export", run_export, kExportOptions}};

Exit run_topology(const ParsedOptions& options, Console& console) {
  std::vector<std::string> names;
  names.reserve(kActions.size());
  for (const Action& action : kActions) names.emplace_back(action.name);
  if (options.positionals.empty()) {
    throw UsageError(
        fmt::format("lockstep topology: nothing to do; usage: lockstep {}", kTopologySpec.usage));
  }
  const std::string& name = options.positionals[0];
  const auto action =
      std::ranges::find_if(kActions, [&name](const Action& a) { return a.name == name; });
  if (action == kActions.end()) {
    throw UsageError(fmt::format("lockstep topology: unknown action {}; allowed: {}{}",
                                 in_quotes(name), listed(names), did_you_mean(name, names)));
  }
  if (options.positionals.size() < 2) {
    throw UsageError(fmt::format("lockstep topology {}: no file; usage: lockstep {}", name,
                                 kTopologySpec.usage));
  }
  for (const OptionSpec& option : kTopologyOptions) {
    const bool shared = option.name == kPresetsOption.name || option.name == kOutputOption.name;
    const auto& taken = action->options;
    if (shared || !options.has(option.name)) continue;
    if (std::ranges::find(taken, option.name) == taken.end()) {
      throw UsageError(fmt::format("lockstep topology {}: takes no --{}; allowed: {}", name,
                                   option.name, listed(taken)));
    }
  }
  return action->run(options, console);
}

constexpr Command kTopologyCommand{&kTopologySpec, run_topology};

}  // namespace

const Command& topology_command() { return kTopologyCommand; }

}  // namespace lockstep
