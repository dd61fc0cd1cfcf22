#include "topologies/infiniband/ibsim_net.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <string_view>

#include "topologies/infiniband/link_rate.hpp"

namespace lockstep {
namespace {

// ibsim reads lines of up to 255 bytes and keeps 64 of a description; `"` would end it, and it
// takes a `=` anywhere in the line of a port for an option.
constexpr std::size_t kDescriptionLength = 64;

std::string description_of(const InfinibandVertex& vertex) {
  std::string text = vertex.description.substr(0, kDescriptionLength);
  for (char& c : text) {
    if (c == '"' || c == '=' || static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

class Writer {
 public:
  Writer(const InfinibandSubnet& subnet, const IbsimOptions& options)
      : subnet_(subnet), options_(options), ports_(subnet) {}

  /// The vertices of one box: a switch, or all ports of an adapter that have cables.
  void box(const std::vector<Vertex>& parts) {
    const InfinibandVertex& first = subnet_.vertices[parts.front()];
    const bool is_switch = first.kind == InfinibandKind::switch_box;
    const std::string_view what = is_switch                               ? "Switch"
                                  : first.kind == InfinibandKind::adapter ? "Ca"
                                                                          : "Rt";
    const std::string_view guid = is_switch                               ? "switchguid"
                                  : first.kind == InfinibandKind::adapter ? "caguid"
                                                                          : "rtguid";
    text_ += fmt::format("{}=0x{:x}\n{}\t{} \"{}\"\t\t# \"{}\"", guid, first.node_guid, what,
                         first.box_ports, ibsim_box_id(first), description_of(first));
    if (is_switch) text_ += fmt::format(" base port 0 lid {} lmc 0", lid(first));
    text_ += '\n';
    for (const Vertex v : parts) cables(v);
    text_ += '\n';
  }

  std::string text_;

 private:
  /// As ibnetdiscover writes ports; ibsim takes the rate from the comment, and an adapter's LID.
  void cables(Vertex v) {
    const InfinibandVertex& here = subnet_.vertices[v];
    const ClusterGraph& graph = subnet_.graph;
    for (int port = 1; port <= ports_.ports(v); ++port) {
      const GraphLink link = ports_.link(v, port);
      if (link == PortMap::kNoLink) continue;
      const InfinibandVertex& far = subnet_.vertices[graph.target()[link]];
      const bool far_switch = far.kind == InfinibandKind::switch_box;
      const bool end_port = here.kind != InfinibandKind::switch_box;
      text_ += fmt::format("[{}]{}\t\"{}\"[{}]{} \t\t#{} \"{}\" lid {} {}\n", port,
                           end_port ? fmt::format("({:x})", here.port_guid) : "", ibsim_box_id(far),
                           port_at_source(graph, graph.reverse(link)),
                           far_switch ? "" : fmt::format("({:x})", far.port_guid),
                           end_port ? fmt::format(" lid {} lmc 0", lid(here)) : "",
                           description_of(far), lid(far), link_rate_name(graph.capacity()[link]));
    }
  }

  [[nodiscard]] Lid lid(const InfinibandVertex& vertex) const {
    return options_.lids ? vertex.lid : Lid{0};
  }

  const InfinibandSubnet& subnet_;
  const IbsimOptions& options_;
  PortMap ports_;
};

}  // namespace

std::string ibsim_box_id(const InfinibandVertex& vertex) {
  const char prefix = vertex.kind == InfinibandKind::switch_box ? 'S'
                      : vertex.kind == InfinibandKind::adapter  ? 'H'
                                                                : 'R';
  return fmt::format("{}-{:016x}", prefix, vertex.node_guid);
}

std::string write_ibsim(const InfinibandSubnet& subnet, const IbsimOptions& options) {
  // Ports of one adapter lie beside each other in this order, the manager's before all.
  std::vector<Vertex> order(subnet.vertices.size());
  for (Vertex v = 0; v < order.size(); ++v) order[v] = v;
  const auto& at = subnet.vertices;
  const std::uint64_t manager = at[subnet.manager].node_guid;
  std::vector<Vertex> first(order.size());
  std::ranges::stable_sort(order, {}, [&](Vertex v) { return at[v].node_guid; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool same = i > 0 && at[order[i]].node_guid == at[order[i - 1]].node_guid;
    first[order[i]] = same ? first[order[i - 1]] : order[i];
  }
  std::ranges::sort(order, {}, [&](Vertex v) {
    return std::tuple{at[v].node_guid != manager, first[v], at[v].port};
  });

  Writer writer(subnet, options);
  std::vector<Vertex> box;
  for (const Vertex v : order) {
    if (!box.empty() && first[v] != first[box.front()]) {
      writer.box(box);
      box.clear();
    }
    box.push_back(v);
  }
  if (!box.empty()) writer.box(box);
  return std::move(writer.text_);
}

}  // namespace lockstep
