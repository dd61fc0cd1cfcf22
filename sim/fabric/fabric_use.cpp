#include "sim/fabric/fabric_use.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "topologies/fabrics/graph_of_fabric.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {
namespace {

/// "leaf 0 to spine 1" for each of its parallel cables, "... link 2".
std::string_view name_of_ends(std::string_view name) {
  const std::size_t at = name.rfind(" link ");
  if (at == std::string_view::npos) return name;
  const std::string_view number = name.substr(at + 6);
  const bool cable =
      !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
  return cable ? name.substr(0, at) : name;
}

enum class Fault : std::uint8_t { none, passing, degraded, dead };

class Drawing {
 public:
  Drawing(const Fabric& whole, std::span<const CarriedLink> carried, Seconds window,
          const LinkHealth& health)
      : whole_(whole), graph_(graph_of(whole)), health_(health), window_s_(window.base_units()) {
    count(carried);
    name_links();
    find_efficiency();
    find_units();
    fold();
  }

  FabricUse write() {
    FabricUse out;
    out.window_s = window_s_;
    out.boxes = boxes_;
    std::map<std::pair<std::size_t, std::size_t>, FabricUse::Line> lines;
    for (GraphLink link = 0; link < graph_.link_count(); ++link) {
      const std::size_t from = box_of_[unit_of(graph_.source()[link])],
                        to = box_of_[unit_of(graph_.target()[link])];
      const auto [lower, upper] = std::minmax(from, to);
      FabricUse::Line& line = lines[{lower, upper}];
      line.lower = lower;
      line.upper = upper;
      line.window_s = window_s_;
      const bool first_end = graph_.a_to_b(graph_.cable()[link]) == link;
      const bool up = from == to ? first_end : from < to;
      add_bytes(link, up ? line.up : line.down);
      if (first_end) add_cable(link, line);
    }
    for (auto& [ends, line] : lines) out.lines.push_back(std::move(line));
    return out;
  }

 private:
  /// All links of one name.
  struct Links {
    double bytes = 0, capacity = 0, fullest = 0;
    std::string fullest_link;
    double drawn_capacity = 0;  ///< of the links of the drawing that it stands for, line rates
  };
  /// A switch, or a node with all its NIC ports.
  struct Unit {
    std::string name;
    int level = 0, group = -1;
    Fault fault = Fault::none;
    double fullest = 0;
  };

  void count(std::span<const CarriedLink> carried) {
    for (const CarriedLink& each : carried) {
      Links& links = named_[std::string(name_of_ends(each.name))];
      const double bytes = each.bytes.base_units(), capacity = each.capacity.base_units();
      links.bytes += bytes;
      links.capacity += capacity;
      const double share = window_s_ > 0 ? bytes / (capacity * window_s_) : 0;
      if (share > links.fullest) {
        links.fullest = share;
        links.fullest_link = each.name;
      }
    }
  }

  void name_links() {
    links_.resize(graph_.link_count());
    for (GraphLink link = 0; link < graph_.link_count(); ++link) {
      const std::string name = whole_.link_name(graph_.fabric_link()[link]);
      links_[link] = &named_[std::string(name_of_ends(name))];
      links_[link]->drawn_capacity += graph_.capacity()[link].base_units();
    }
  }
  /// Links without traffic have the share of the line rate for payload that healthy others have, of
  /// whose name all have traffic.
  void find_efficiency() {
    double most = 0;
    for (const auto& [name, links] : named_) {
      if (links.drawn_capacity > 0) most = std::max(most, links.capacity / links.drawn_capacity);
    }
    if (most > 0) efficiency_ = most;
  }

  [[nodiscard]] std::size_t unit_of(Vertex vertex) const {
    const GraphVertex& v = graph_.vertices()[vertex];
    if (v.is_port()) return static_cast<std::size_t>(v.node);
    return static_cast<std::size_t>(graph_.nodes()) + vertex - graph_.port_count();
  }

  [[nodiscard]] double left(const std::vector<double>& of, GraphLink link) const {
    return of.empty() ? 1.0 : of[graph_.fabric_link()[link]];
  }
  [[nodiscard]] Fault fault(GraphLink link) const {
    const double now = left(health_.left, link);
    if (now <= 0) return Fault::dead;
    if (now < 1) return Fault::degraded;
    return left(health_.lowest, link) < 1 ? Fault::passing : Fault::none;
  }

  /// That of the switch that a NIC is on.
  [[nodiscard]] int group_at(GraphLink link) const {
    return std::max(graph_.vertices()[graph_.source()[link]].group,
                    graph_.vertices()[graph_.target()[link]].group);
  }

  void find_units() {
    units_.resize(static_cast<std::size_t>(graph_.nodes()) + graph_.vertex_count() -
                  graph_.port_count());
    for (Vertex vertex = 0; vertex < graph_.vertex_count(); ++vertex) {
      const GraphVertex& v = graph_.vertices()[vertex];
      Unit& unit = units_[unit_of(vertex)];
      unit.name = v.is_port() ? fmt::format("node {}", v.node) : v.name;
      unit.level = v.is_port() ? 0 : std::max(1, v.level);
      unit.group = v.group;
    }
    for (GraphLink link = 0; link < graph_.link_count(); ++link) {
      for (const Vertex end : {graph_.source()[link], graph_.target()[link]}) {
        Unit& unit = units_[unit_of(end)];
        if (unit.level == 0) unit.group = std::max(unit.group, group_at(link));
        unit.fault = std::max(unit.fault, fault(link));
        unit.fullest = std::max(unit.fullest, links_[link]->fullest);
      }
    }
  }

  /// Units with the same key share a box: the finest way that leaves few enough boxes in a level.
  using Key = std::tuple<std::string, int, int, int>;  ///< name, group, fault, use
  static constexpr int kFinest = 0, kCoarsest = 5;
  [[nodiscard]] Key key(std::size_t number, int coarse) const {
    const Unit& unit = units_[number];
    const int fault = static_cast<int>(unit.fault);
    const auto use = [&](double steps) {
      return static_cast<int>(std::ceil(std::min(1.0, unit.fullest) * steps - 1e-9));
    };
    switch (coarse) {
      case kFinest:
        return {unit.name, static_cast<int>(number), 0, 0};
      case 1:
        return {without_numbers(unit.name), unit.group, fault, use(10)};
      case 2:
        return {without_numbers(unit.name), -1, fault, use(10)};
      case 3:
        return {without_numbers(unit.name), -1, fault, use(3)};
      case 4:
        return {without_numbers(unit.name), -1, fault, 0};
      default:
        return {unit.level == 0 ? "node" : "switch", -1, fault, 0};
    }
  }

  void fold() {
    std::map<int, std::vector<std::size_t>> levels;
    for (std::size_t u = 0; u < units_.size(); ++u) levels[units_[u].level].push_back(u);
    box_of_.resize(units_.size());
    for (const auto& [level, units] : levels) {
      for (int coarse = kFinest; coarse <= kCoarsest; ++coarse) {
        std::map<Key, std::size_t> known;
        for (const std::size_t u : units) known.try_emplace(key(u, coarse), known.size());
        if (known.size() > kMostBoxes && coarse < kCoarsest) continue;
        add_boxes(units, known, coarse);
        break;
      }
    }
  }

  void add_boxes(const std::vector<std::size_t>& units, const std::map<Key, std::size_t>& known,
                 int coarse) {
    const std::size_t first = boxes_.size();
    boxes_.resize(first + known.size(), {.name = {}, .level = 0, .count = 0});
    for (const std::size_t u : units) {
      box_of_[u] = first + known.at(key(u, coarse));
      FabricUse::Box& box = boxes_[box_of_[u]];
      if (box.count++ == 0) box.name = units_[u].name;
      box.level = units_[u].level;
    }
    std::set<int> groups;
    for (const auto& [of, number] : known) groups.insert(std::get<1>(of));
    for (const auto& [of, number] : known) {
      FabricUse::Box& box = boxes_[first + number];
      if (box.count > 1) box.name = fmt::format("{} × {}", std::get<0>(of), box.count);
      const int group = std::get<1>(of);
      const bool told = coarse == 1 && groups.size() > 1;
      if (told && group >= 0 && box.count > 1) box.name += fmt::format(", group {}", group);
    }
  }

  /// The link's part of what all links of its name moved.
  void add_bytes(GraphLink link, FabricUse::Way& way) const {
    const Links& links = *links_[link];
    const double part = graph_.capacity()[link].base_units() / links.drawn_capacity;
    way.bytes += Bytes{links.bytes * part};
    way.capacity += BytesPerSecond{
        (links.capacity > 0 ? links.capacity
                            : links.drawn_capacity * efficiency_ * left(health_.left, link)) *
        part};
    if (links.fullest > way.fullest) {
      way.fullest = links.fullest;
      way.fullest_link = links.fullest_link;
    }
  }

  void add_cable(GraphLink link, FabricUse::Line& line) const {
    ++line.cables;
    const Fault found = fault(link);
    line.dead += found == Fault::dead ? 1 : 0;
    line.degraded += found == Fault::degraded ? 1 : 0;
    line.passing += found == Fault::passing ? 1 : 0;
    line.least_left = std::min(line.least_left, left(health_.left, link));
  }

  const Fabric& whole_;
  ClusterGraph graph_;
  const LinkHealth& health_;
  double window_s_;
  double efficiency_ = 1;
  std::map<std::string, Links> named_;
  std::vector<Links*> links_;  ///< by link of the graph
  std::vector<Unit> units_;    ///< nodes, then switches
  std::vector<std::size_t> box_of_;
  std::vector<FabricUse::Box> boxes_;
};

}  // namespace

double FabricUse::Line::share(const Way& way) const {
  const double most = way.capacity.base_units() * window_s;
  return most > 0 ? way.bytes.base_units() / most : 0;
}

Bytes FabricUse::bytes() const {
  Bytes sum;
  for (const Line& line : lines) sum += line.up.bytes + line.down.bytes;
  return sum;
}

FabricUse use_of_fabric(const Fabric& whole, std::span<const CarriedLink> carried, Seconds window,
                        const LinkHealth& health) {
  return Drawing(whole, carried, window, health).write();
}

std::string without_numbers(std::string_view name) {
  std::string out;
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t end = std::min(name.find(' ', i), name.size());
    const std::string_view word = name.substr(i, end - i);
    if (word.find_first_not_of("0123456789") != std::string_view::npos) {
      out += (out.empty() ? "" : " ") + std::string(word);
    }
    i = end + 1;
  }
  return out;
}

}  // namespace lockstep
