#include "topologies/infiniband/ibnetdiscover.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "models/base/input_error.hpp"
#include "topologies/infiniband/host_name.hpp"
#include "topologies/infiniband/net_cables.hpp"

namespace lockstep {
namespace {

bool name_less(std::string_view a, std::string_view b) {
  if (natural_less(a, b)) return true;
  return !natural_less(b, a) && a < b;  // "leaf1" and "leaf01"
}

/// A vertex to be: a switch, a router or a port of an adapter.
struct Part {
  const NetBox* box;
  const NetPlug* plug;  ///< of an adapter or router; else null
  std::string host;     ///< empty: of no node
  std::string_view device;
  int level = -1;
};

class Builder {
 public:
  Builder(const TextLines& lines, std::span<const NetBox> boxes,
          const IbnetdiscoverOptions& options)
      : lines_(lines),
        boxes_(boxes),
        options_(options),
        joined_(join_cables(lines, boxes, options.cut_dangling)) {
    collect();
    find_hosts();
    find_levels();
    order();
  }

  IbnetdiscoverImport build() {
    InfinibandSubnet subnet{
        .graph = graph(), .vertices = {}, .hosts = std::move(hosts_), .manager = manager()};
    std::map<Lid, int> lids;
    for (const std::size_t i : order_) {
      const Part& part = parts_[i];
      InfinibandVertex at{.kind = part.box->kind,
                          .node_guid = part.box->guid,
                          .port_guid = part.box->guid,
                          .lid = part.box->lid,
                          .box_ports = part.box->ports,
                          .port = 0,
                          .description = std::string(part.box->description)};
      const int line = part.plug == nullptr ? part.box->line : part.plug->line;
      if (part.plug != nullptr) {
        at.port = part.plug->port;
        at.lid = part.plug->lid;
        at.port_guid = part.plug->port_guid != 0
                           ? part.plug->port_guid
                           : part.box->guid + static_cast<std::uint64_t>(part.plug->port);
      }
      if (at.lid != 0) {
        const auto [first, fresh] = lids.emplace(at.lid, line);
        if (!fresh) {
          lines_.refuse_line(line, fmt::format("LID {} again", at.lid),
                             fmt::format("a LID once; line {} has it", first->second));
        }
      }
      subnet.vertices.push_back(std::move(at));
    }
    assign_lids(subnet);
    return {.subnet = std::move(subnet), .cut_cables = joined_.cut};
  }

 private:
  /// Switches, and those ports of other boxes that a cable is in.
  void collect() {
    part_of_.resize(boxes_.size());
    for (std::size_t b = 0; b < boxes_.size(); ++b) {
      part_of_[b].resize(boxes_[b].plugs.size());
      if (boxes_[b].kind != InfinibandKind::switch_box) continue;
      std::ranges::fill(part_of_[b], parts_.size());
      parts_.push_back({.box = &boxes_[b], .plug = nullptr, .host = "", .device = ""});
    }
    for (const NetCable& cable : joined_.cables) {
      for (const auto& [b, p] :
           {std::pair{cable.box_a, cable.plug_a}, std::pair{cable.box_b, cable.plug_b}}) {
        if (boxes_[b].kind == InfinibandKind::switch_box) continue;
        part_of_[b][p] = parts_.size();
        parts_.push_back(
            {.box = &boxes_[b], .plug = &boxes_[b].plugs[p], .host = "", .device = ""});
      }
    }
    if (parts_.size() > kLastUnicastLid) {
      lines_.refuse_line(lines_.number(), fmt::format("{} switches and ports", parts_.size()),
                         fmt::format("at most {}, the LIDs of a subnet", kLastUnicastLid));
    }
  }

  void find_hosts() {
    // An adapter that names no device shares no host; several may say the same of themselves.
    std::map<std::string_view, std::set<const NetBox*>> nameless;
    const bool some_named = std::ranges::any_of(parts_, [](const Part& part) {
      return part.box->kind == InfinibandKind::adapter &&
             !is_aggregation_node(part.box->description) &&
             !is_unnamed_adapter(part.box->description);
    });
    for (Part& part : parts_) {
      if (part.box->kind != InfinibandKind::adapter) continue;
      if (is_aggregation_node(part.box->description)) continue;
      // Beside hosts that have names nothing says which host such an adapter is in.
      if (some_named && is_unnamed_adapter(part.box->description)) continue;
      const AdapterName name = adapter_name(part.box->description);
      part.host = name.host;
      part.device = name.device;
      if (name.device.empty()) nameless[name.host].insert(part.box);
    }
    std::set<std::string> names;
    for (Part& part : parts_) {
      if (part.host.empty()) continue;
      const auto same = nameless.find(part.box->description);
      if (same != nameless.end() && same->second.size() > 1) {
        part.host += fmt::format(" {}", part.box->id);
      }
      names.insert(part.host);
    }
    order_hosts(std::move(names));
  }

  void order_hosts(std::set<std::string> names) {
    std::vector<std::string> known(names.begin(), names.end());
    std::ranges::sort(known, name_less);
    for (const std::string& name : options_.hosts) {
      if (names.erase(name) == 0) {
        throw InputError({.file = options_.hosts_file.empty() ? "hosts" : options_.hosts_file,
                          .pointer = "",
                          .found = in_quotes(name),
                          .allowed = "each host of the fabric once: " + listed(known),
                          .nearest = nearest_name(name, known)});
      }
      hosts_.push_back(name);
    }
    for (const std::string& name : known) {
      if (names.contains(name)) hosts_.push_back(name);
    }
    if (hosts_.empty()) {
      lines_.refuse_line(lines_.number(), "no host", "channel adapters (Ca, Hca) with a cable");
    }
    for (std::size_t node = 0; node < hosts_.size(); ++node) {
      node_of_.emplace(hosts_[node], static_cast<int>(node));
    }
  }

  /// Layers of switches from below: how many links lead to the nearest host.
  void find_levels() {
    std::vector<std::vector<std::size_t>> near(parts_.size());
    for (const NetCable& cable : joined_.cables) {
      const std::size_t a = part_of_[cable.box_a][cable.plug_a];
      const std::size_t b = part_of_[cable.box_b][cable.plug_b];
      near[a].push_back(b);
      near[b].push_back(a);
    }
    std::vector<std::size_t> queue;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].host.empty()) continue;
      parts_[i].level = 0;
      queue.push_back(i);
    }
    for (std::size_t next = 0; next < queue.size(); ++next) {
      for (const std::size_t i : near[queue[next]]) {
        if (parts_[i].level >= 0 || parts_[i].box->kind != InfinibandKind::switch_box) continue;
        parts_[i].level = parts_[queue[next]].level + 1;
        queue.push_back(i);
      }
    }
  }

  /// NIC ports by node and NIC, then switches by layer, then the rest, each by name.
  void order() {
    const auto key = [&](std::size_t i) {
      const Part& part = parts_[i];
      const bool is_switch = part.box->kind == InfinibandKind::switch_box;
      return std::tuple{part.host.empty() ? (is_switch ? 1 : 2) : 0,
                        part.host.empty() ? 0 : node_of_.at(part.host),
                        is_switch && part.level < 0 ? kMostLevels : part.level};
    };
    order_.resize(parts_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::ranges::sort(order_, [&](std::size_t i, std::size_t j) {
      const auto a = key(i), b = key(j);
      if (a != b) return a < b;
      const Part &x = parts_[i], &y = parts_[j];
      if (x.device != y.device) return name_less(x.device, y.device);
      if (x.box->description != y.box->description) {
        return name_less(x.box->description, y.box->description);
      }
      if (x.box != y.box) return x.box->guid < y.box->guid;
      return x.plug->port < y.plug->port;
    });
    vertex_of_.resize(parts_.size());
    for (Vertex v = 0; v < order_.size(); ++v) vertex_of_[order_[v]] = v;
  }

  /// What each part says of itself, with its port or id where others say the same.
  std::vector<std::string> names() const {
    std::map<std::string_view, std::set<const NetBox*>> boxes;
    std::map<const NetBox*, int> parts;
    for (const Part& part : parts_) {
      boxes[part.box->description].insert(part.box);
      ++parts[part.box];
    }
    std::vector<std::string> out;
    for (const std::size_t i : order_) {
      const Part& part = parts_[i];
      std::string name(part.box->description);
      if (boxes[part.box->description].size() > 1) name += fmt::format(" {}", part.box->id);
      if (parts[part.box] > 1) name += fmt::format(" port {}", part.plug->port);
      out.push_back(std::move(name));
    }
    return out;
  }

  ClusterGraph graph() const {
    std::vector<std::string> names_of = names();
    std::vector<GraphVertex> vertices;
    int nic = 0;
    for (const std::size_t i : order_) {
      const Part& part = parts_[i];
      const int node = part.host.empty() ? -1 : node_of_.at(part.host);
      nic = node >= 0 && !vertices.empty() && vertices.back().node == node ? nic + 1 : 0;
      vertices.push_back({.name = std::move(names_of[vertices.size()]),
                          .level = part.level,
                          .node = node,
                          .nic = node < 0 ? -1 : nic});
    }
    std::vector<GraphCable> cables;
    for (const NetCable& cable : joined_.cables) {
      const NetPlug& a = boxes_[cable.box_a].plugs[cable.plug_a];
      const NetPlug& b = boxes_[cable.box_b].plugs[cable.plug_b];
      GraphCable out{.a = vertex_of_[part_of_[cable.box_a][cable.plug_a]],
                     .b = vertex_of_[part_of_[cable.box_b][cable.plug_b]],
                     .capacity = options_.capacity > BytesPerSecond{} ? options_.capacity
                                                                      : std::min(a.rate, b.rate),
                     .port_a = a.port,
                     .port_b = b.port};
      if (out.b < out.a) {
        std::swap(out.a, out.b);
        std::swap(out.port_a, out.port_b);
      }
      cables.push_back(out);
    }
    std::ranges::sort(cables, {},
                      [](const GraphCable& cable) { return std::tuple{cable.a, cable.port_a}; });
    return {std::move(vertices), std::move(cables)};
  }

  /// The first adapter of the text: where ibsim attaches programs.
  [[nodiscard]] Vertex manager() const {
    std::size_t first = order_.front();
    for (const std::size_t i : order_) {
      const bool adapter = parts_[i].box->kind == InfinibandKind::adapter;
      if (adapter && parts_[i].box < parts_[first].box) first = i;
    }
    return vertex_of_[first];
  }

  static constexpr int kMostLevels = 1 << 20;  ///< switches that no host reaches come last
  const TextLines& lines_;
  std::span<const NetBox> boxes_;
  const IbnetdiscoverOptions& options_;
  NetCables joined_;
  std::vector<Part> parts_;
  std::vector<std::vector<std::size_t>> part_of_;  ///< by box and plug
  std::vector<std::string> hosts_;
  std::map<std::string, int> node_of_;
  std::vector<std::size_t> order_;  ///< part by vertex
  std::vector<Vertex> vertex_of_;   ///< vertex by part
};

}  // namespace

IbnetdiscoverImport read_ibnetdiscover(const std::string& file, std::string_view text,
                                       const IbnetdiscoverOptions& options) {
  TextLines lines(file, text);
  const std::vector<NetBox> boxes = read_net_records(lines);
  return Builder(lines, boxes, options).build();
}

std::vector<std::string> read_hosts(const std::string& file, std::string_view text) {
  TextLines lines(file, text);
  std::vector<std::string> hosts;
  std::map<std::string, int> seen;
  while (lines.next()) {
    std::string_view line = lines.line().substr(0, lines.line().find('#'));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    LineCursor at(line);
    at.skip_spaces();
    if (at.empty()) continue;
    const std::string name(at.rest());
    const auto [first, fresh] = seen.emplace(name, lines.number());
    if (!fresh) {
      lines.refuse(in_quotes(name) + " again",
                   fmt::format("a host once; line {} has it", first->second));
    }
    hosts.push_back(name);
  }
  return hosts;
}

}  // namespace lockstep
