#include "topologies/formats/import.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <set>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "models/base/letter_case.hpp"
#include "topologies/formats/canonical_order.hpp"
#include "topologies/formats/dot.hpp"
#include "topologies/formats/fabric_json.hpp"
#include "topologies/formats/graphml.hpp"
#include "topologies/formats/nccl_topology.hpp"
#include "topologies/formats/netbox.hpp"
#include "topologies/formats/netq.hpp"
#include "topologies/formats/nvidia_smi.hpp"
#include "topologies/formats/rocm_smi.hpp"
#include "topologies/formats/slurm_blocks.hpp"
#include "topologies/formats/slurm_topology.hpp"
#include "topologies/formats/ufm.hpp"
#include "topologies/infiniband/host_name.hpp"
#include "topologies/infiniband/ibnetdiscover.hpp"
#include "topologies/infiniband/text_lines.hpp"

namespace lockstep {
namespace {

/// Behind blanks and a byte order mark.
std::string_view content(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::size_t at = text.find_first_not_of(" \t\r\n");
  return at == std::string_view::npos ? std::string_view() : text.substr(at);
}

/// Whether some line has `word` at its start, behind blanks, capital letters aside.
bool has_line(std::string_view text, std::string_view word) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::size_t at = line.find_first_not_of(" \t");
    if (at != std::string_view::npos && lowered(line.substr(at, word.size())) == word) return true;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return false;
}

bool has_element(std::string_view text, std::string_view name) {
  return content(text).starts_with('<') && text.find(fmt::format("<{}", name)) != text.npos;
}

bool is_fabric(std::string_view text) {
  return content(text).starts_with('{') && !is_netq(text) && !is_ufm(text) && !is_netbox(text);
}
bool is_graphml(std::string_view text) { return has_element(text, "graphml"); }
bool is_nccl(std::string_view text) {
  return !is_graphml(text) && (has_element(text, "system") || has_element(text, "graphs"));
}
bool is_nvidia_smi(std::string_view text) {
  return text.find("GPU0") != text.npos && has_line(text, "gpu0") &&
         !content(text).starts_with('<') && !is_rocm_smi(text);
}
bool is_slurm(std::string_view text) {
  return has_line(text, "switchname=") || is_block_topology(text) || is_slurm_yaml(text);
}
bool is_dot(std::string_view text) {
  const auto word = [&](std::string_view w) { return has_line(text, w); };
  return text.find('{') != text.npos && (word("graph") || word("digraph") || word("strict"));
}
bool is_ibnetdiscover(std::string_view text) {
  return has_line(text, "switchguid=") || has_line(text, "vendid=") || has_line(text, "switch\t") ||
         has_line(text, "switch ") || has_line(text, "hca ") || has_line(text, "hca\t") ||
         has_line(text, "ca\t");
}

Import import_fabric(const std::string& file, std::string_view text, const ImportOptions&) {
  return read_drawn_fabric(file, text);
}
Import import_graphml(const std::string& file, std::string_view text,
                      const ImportOptions& options) {
  return in_canonical_order(fabric_of(file, read_graphml(file, text), options));
}
Import import_dot(const std::string& file, std::string_view text, const ImportOptions& options) {
  return in_canonical_order(fabric_of(file, read_dot(file, text), options));
}
Import import_nccl(const std::string& file, std::string_view text, const ImportOptions&) {
  return read_nccl_topology(file, text);
}
Import import_nvidia_smi(const std::string& file, std::string_view text, const ImportOptions&) {
  return read_nvidia_smi(file, text);
}
Import import_rocm_smi(const std::string& file, std::string_view text, const ImportOptions&) {
  return read_rocm_smi(file, text);
}

Import import_slurm(const std::string& file, std::string_view text, const ImportOptions& options) {
  if (options.rate <= BytesPerSecond{}) {
    throw InputError({file, "", "a Slurm topology.conf, which tells no rates",
                      "--rate, such as --rate \"400 Gb/s\"", ""});
  }
  const SlurmConf conf =
      is_slurm_yaml(text) ? slurm_yaml(file, text, options.topology) : slurm_conf(file, text);
  DrawnFabric fabric = in_canonical_order(read_slurm_topology(file, conf.tree, options.rate));
  fabric.assumptions.insert(fabric.assumptions.end(), conf.assumptions.begin(),
                            conf.assumptions.end());
  return fabric;
}

Import import_netq(const std::string& file, std::string_view text, const ImportOptions& options) {
  if (options.rate <= BytesPerSecond{}) {
    throw InputError({file, "", "NetQ's graph, which tells no rates",
                      "--rate, such as --rate \"400 Gb/s\"", ""});
  }
  return in_canonical_order(read_netq(file, text, options.rate));
}

Import import_ufm(const std::string& file, std::string_view text, const ImportOptions& options) {
  return in_canonical_order(read_ufm(file, text, options));
}

Import import_netbox(const std::string& file, std::string_view text, const ImportOptions& options) {
  return in_canonical_order(read_netbox(file, text, options));
}

/// Names of switches that the vertices left out are on, each once.
std::string switches_of(const ClusterGraph& graph, const std::vector<bool>& left_out) {
  std::set<std::string> names;
  for (const GraphCable& cable : graph.cables()) {
    if (left_out[cable.a] && !left_out[cable.b]) names.insert(graph.vertices()[cable.b].name);
    if (left_out[cable.b] && !left_out[cable.a]) names.insert(graph.vertices()[cable.a].name);
  }
  const std::vector<std::string> all(names.begin(), names.end());
  return listed(all);
}

/// The fabric without these vertices and their cables.
void leave_out(const std::vector<bool>& left_out, DrawnFabric& fabric) {
  const ClusterGraph& graph = fabric.graph;
  std::vector<Vertex> place(graph.vertex_count());
  std::vector<GraphVertex> vertices;
  for (Vertex v = 0; v < graph.vertex_count(); ++v) {
    place[v] = static_cast<Vertex>(vertices.size());
    if (!left_out[v]) vertices.push_back(graph.vertices()[v]);
  }
  std::vector<GraphCable> cables;
  for (GraphCable cable : graph.cables()) {
    if (left_out[cable.a] || left_out[cable.b]) continue;
    cable.a = place[cable.a];
    cable.b = place[cable.b];
    cables.push_back(cable);
  }
  fabric.graph = ClusterGraph(std::move(vertices), std::move(cables));
}

/// Adapters that are no host's NIC and no switch: those inside switches that sum for SHARP, and
/// those that say their make in place of a name.
void leave_out_adapters(const InfinibandSubnet& subnet, DrawnFabric& fabric) {
  const ClusterGraph& graph = subnet.graph;
  std::vector<bool> left_out(graph.vertex_count()), unnamed(graph.vertex_count());
  int sums = 0, no_names = 0;
  for (Vertex v = 0; v < graph.vertex_count(); ++v) {
    if (graph.vertices()[v].is_port() || subnet.vertices[v].kind != InfinibandKind::adapter)
      continue;
    const bool aggregates = is_aggregation_node(subnet.vertices[v].description);
    unnamed[v] = !aggregates && is_unnamed_adapter(subnet.vertices[v].description);
    left_out[v] = aggregates || unnamed[v];
    sums += aggregates ? 1 : 0;
    no_names += unnamed[v] ? 1 : 0;
  }
  if (sums + no_names == 0) return;
  if (sums > 0) {
    fabric.assumptions.push_back(fmt::format("{} SHARP aggregation node{} of switches {} left out.",
                                             sums, sums == 1 ? "" : "s", sums == 1 ? "is" : "are"));
  }
  if (no_names > 0) {
    fabric.assumptions.push_back(fmt::format(
        "{} adapter{} without a host's name {} left out, on {}.", no_names,
        no_names == 1 ? "" : "s", no_names == 1 ? "is" : "are", switches_of(graph, unnamed)));
  }
  leave_out(left_out, fabric);
}

Import import_ibnetdiscover(const std::string& file, std::string_view text,
                            const ImportOptions& options) {
  // Hosts that the file lacks are reported once for all formats, by with_hosts_first().
  const IbnetdiscoverImport read = read_ibnetdiscover(
      file, text, {.hosts = {}, .hosts_file = {}, .cut_dangling = true, .capacity = options.rate});
  DrawnFabric fabric{.about = {},
                     .source = {},
                     .hosts = read.subnet.hosts,
                     .graph = read.subnet.graph,
                     .down = {},
                     .assumptions = {}};
  leave_out_adapters(read.subnet, fabric);
  if (read.cut_cables > 0) {
    fabric.assumptions.push_back(fmt::format(
        "{} cables lead to boxes that the file does not describe, or back, and are left out.",
        read.cut_cables));
  }
  return fabric;
}

constexpr std::array kFormats{
    ImportFormat{"fabric", "fabric.json", "scenarios/fabric.schema.json", is_fabric, import_fabric},
    ImportFormat{"graphml", "GraphML", "graphml.graphdrawing.org", is_graphml, import_graphml},
    ImportFormat{"nccl", "NCCL topology XML",
                 "docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html, NCCL_TOPO_DUMP_FILE",
                 is_nccl, import_nccl},
    ImportFormat{"slurm", "Slurm topology", "slurm.schedmd.com/topology.conf.html", is_slurm,
                 import_slurm},
    ImportFormat{"nvidia-smi", "nvidia-smi topo -m",
                 "docs.nvidia.com/deploy/nvidia-smi, topo --matrix", is_nvidia_smi,
                 import_nvidia_smi},
    ImportFormat{"dot", "DOT", "graphviz.org/doc/info/lang.html", is_dot, import_dot},
    ImportFormat{"ibnetdiscover", "ibnetdiscover, ibsim",
                 "github.com/linux-rdma/rdma-core, infiniband-diags/man/ibnetdiscover.8",
                 is_ibnetdiscover, import_ibnetdiscover},
    ImportFormat{"netq", "NetQ's topology graph",
                 "github.com/NVIDIA/topograph, pkg/providers/netq: what NetQ's API answers",
                 is_netq, import_netq},
    ImportFormat{
        "ufm", "UFM's links or ports",
        "docs.nvidia.com, UFM Enterprise REST API Guide, Links, Ports and Systems REST API", is_ufm,
        import_ufm},
    ImportFormat{"netbox", "NetBox's cables or interfaces",
                 "netboxlabs.com/docs/netbox, REST API: dcim/cables, dcim/interfaces, dcim/devices",
                 is_netbox, import_netbox},
    ImportFormat{"rocm-smi", "rocm-smi --showtopo",
                 "rocm.docs.amd.com/projects/rocm_smi_lib, rocm-smi --showtopo", is_rocm_smi,
                 import_rocm_smi},
};

}  // namespace

std::span<const ImportFormat> import_formats() { return kFormats; }

namespace {

/// A line that is this word and nothing else.
bool has_whole_line(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || text[at - 1] == '\n';
    if (begins && (end == text.size() || text[end] == '\n' || text[end] == '\r')) return true;
  }
  return false;
}

/// What programs of the same clusters write and no fabric can be made of.
void refuse_relatives(const std::string& file, std::string_view text) {
  const std::string_view rest = content(text);
  const bool list = rest.starts_with('[') || rest.starts_with('{');
  if (list && text.find("\"GpuIDList\"") != text.npos) {
    throw InputError({file, "",
                      "compute nodes and their NVLink domains (NMX, NetQ), which have no cables",
                      "what the network says of itself: NetQ's topology graph, ibnetdiscover, UFM; "
                      "a node preset says how many GPUs NVLink joins",
                      ""});
  }
  // Of github.com/NVIDIA/topograph, models for its tests.
  if (has_whole_line(text, "switches:") && has_whole_line(text, "blocks:")) {
    throw InputError({file, "", "a model of topograph's",
                      "what topograph writes of a cluster: Slurm's topology.conf or topology.yaml",
                      ""});
  }
}

}  // namespace

const ImportFormat& recognise(const std::string& file, std::string_view text) {
  const auto format =
      std::ranges::find_if(kFormats, [text](const ImportFormat& f) { return f.fits(text); });
  if (format != kFormats.end()) return *format;
  refuse_relatives(file, text);
  std::vector<std::string_view> titles;
  titles.reserve(kFormats.size());
  for (const ImportFormat& f : kFormats) titles.push_back(f.title);
  const std::string_view rest = content(text);
  const auto skipped = text.substr(0, text.size() - rest.size());
  const auto line = std::count(skipped.begin(), skipped.end(), '\n') + 1;
  throw InputError({fmt::format("{}:{}", file, line), "",
                    rest.empty() ? "an empty file" : in_quotes(rest.substr(0, rest.find('\n'))),
                    fmt::format("{}; --from names one that is not recognised", listed(titles)),
                    ""});
}

namespace {

/// Names with control characters would be others in most formats that they are written to.
/// Terminals' escape is let through: job logs have it.
void refuse_control_characters(const std::string& file, std::string_view text) {
  constexpr std::string_view kKnown = "\t\n\v\f\r\x1b";
  const auto at = std::ranges::find_if(text, [=](char c) {
    return static_cast<unsigned char>(c) < ' ' && kKnown.find(c) == std::string_view::npos;
  });
  if (at == text.end()) return;
  throw InputError({fmt::format("{}:{}", file, std::count(text.begin(), at, '\n') + 1), "",
                    fmt::format("a control character ({:#04x})", static_cast<unsigned>(*at)),
                    "text", ""});
}

/// Bytes of the letter of UTF-8 that the text begins with; 0: it begins with none.
std::size_t letter_bytes(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  const unsigned second = byte(1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool no_letter = (first == 0xED && second > 0x9F) || (first == 0xF4 && second > 0x8F);
  return overlong || no_letter ? 0 : bytes;
}

/// Where the first byte that is not UTF-8 stands; the length of a sound text.
std::size_t sound_bytes(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t bytes = letter_bytes(text.substr(at));
    if (bytes == 0) break;
    at += bytes;
  }
  return at;
}

/// The text with U+FFFD for each byte that is not UTF-8; `replaced` counts these. XML, SVG and JSON
/// take nothing else, and all names of a fabric come through here.
std::string as_utf8(std::string_view text, int& replaced) {
  std::string out;
  while (true) {
    const std::size_t sound = sound_bytes(text);
    out += text.substr(0, sound);
    if (sound == text.size()) return out;
    out += "\xEF\xBF\xBD";
    ++replaced;
    text.remove_prefix(sound + 1);
  }
}

}  // namespace

Import import_text(const std::string& file, std::string_view text, const ImportFormat& format,
                   const ImportOptions& options) {
  refuse_control_characters(file, text);
  int replaced = 0, in_name = 0;
  std::string repaired;
  if (sound_bytes(text) < text.size()) text = repaired = as_utf8(text, replaced);
  Import out = format.read(file, text, options);
  auto* fabric = std::get_if<DrawnFabric>(&out);
  if (fabric == nullptr) return out;
  if (fabric->source.empty()) {
    const std::string name = as_utf8(file.substr(file.rfind('/') + 1), in_name);
    fabric->source = fmt::format("{} {}", format.title, name);
  }
  if (replaced > 0) {
    fabric->assumptions.push_back(fmt::format(
        "{} byte{} of the file {} not UTF-8, and {} read as U+FFFD.", replaced,
        replaced == 1 ? "" : "s", replaced == 1 ? "is" : "are", replaced == 1 ? "is" : "are"));
  }
  if (options.hosts.empty()) return out;
  return with_hosts_first(*fabric, options.hosts, options.hosts_file);
}

}  // namespace lockstep
