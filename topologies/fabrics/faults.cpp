#include "topologies/fabrics/faults.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "models/base/input_error.hpp"
#include "topologies/routes/flow_hash.hpp"

namespace lockstep {
namespace {

using Problem = std::optional<FabricProblem>;

class FaultyDrawing {
 public:
  explicit FaultyDrawing(FabricDrawing& drawing) : drawing_(drawing) {
    for (Vertex v = 0; v < drawing.vertices.size(); ++v) by_name_[drawing.vertices[v].name] = v;
  }

  Problem apply(const FabricFault& fault, const std::string& field) {
    std::vector<std::size_t> hit;
    Problem problem;
    switch (fault.part) {
      case FabricFault::Part::cable:
        problem = find_cables(fault, field, hit);
        break;
      case FabricFault::Part::box:
      case FabricFault::Part::nic:
        problem = find_box(fault, field, hit);
        break;
      case FabricFault::Part::some_cables:
        problem = draw_cables(fault, field, hit);
        break;
    }
    for (const std::size_t c : hit) {
      faulty_.insert(c);
      BytesPerSecond& capacity = drawing_.cables[c].capacity;
      capacity = fault.bandwidth > BytesPerSecond{} ? fault.bandwidth : fault.rate * capacity;
    }
    return problem;
  }

  void remove_dead() {
    std::erase_if(drawing_.cables,
                  [](const GraphCable& cable) { return cable.capacity <= BytesPerSecond{}; });
  }

 private:
  Problem find(const std::string& name, const std::string& field, Vertex& out) const {
    const auto it = by_name_.find(name);
    if (it != by_name_.end()) {
      out = it->second;
      return {};
    }
    std::vector<std::string> names;
    names.reserve(drawing_.vertices.size());
    for (const GraphVertex& vertex : drawing_.vertices) names.push_back(vertex.name);
    const std::string example = drawing_.vertices.back().name;
    return FabricProblem{field, in_quotes(name),
                         fmt::format(R"(a NIC or switch of this fabric, such as "{}" or "{}")",
                                     drawing_.vertices.front().name, example),
                         nearest_name(name, names)};
  }

  Problem find_cables(const FabricFault& fault, const std::string& field,
                      std::vector<std::size_t>& hit) const {
    Vertex a = 0, b = 0;
    if (Problem p = find(fault.from, field + "/cable", a)) return p;
    if (Problem p = find(fault.to, field + "/cable", b)) return p;
    for (std::size_t c = 0; c < drawing_.cables.size(); ++c) {
      const GraphCable& cable = drawing_.cables[c];
      if (std::minmax(cable.a, cable.b) == std::minmax(a, b)) hit.push_back(c);
    }
    if (hit.empty()) {
      return FabricProblem{field + "/cable", fmt::format("\"{} to {}\"", fault.from, fault.to),
                           fmt::format("two that a cable joins; {}", neighbours(a))};
    }
    if (fault.index < 0) return {};
    if (static_cast<std::size_t>(fault.index) >= hit.size()) {
      return FabricProblem{field + "/index", fmt::format("{}", fault.index),
                           fmt::format("0 to {}, the parallel cables there", hit.size() - 1)};
    }
    hit = {hit[static_cast<std::size_t>(fault.index)]};
    return {};
  }

  [[nodiscard]] std::string neighbours(Vertex at) const {
    std::vector<std::string> names;
    for (const GraphCable& cable : drawing_.cables) {
      if (cable.a != at && cable.b != at) continue;
      names.push_back(drawing_.vertices[cable.a == at ? cable.b : cable.a].name);
    }
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
    return fmt::format("{} meets {}", drawing_.vertices[at].name, listed(names));
  }

  Problem find_box(const FabricFault& fault, const std::string& field,
                   std::vector<std::size_t>& hit) const {
    const bool nic = fault.part == FabricFault::Part::nic;
    const std::string where = field + (nic ? "/nic" : "/switch");
    Vertex at = 0;
    if (Problem p = find(fault.from, where, at)) return p;
    if (drawing_.vertices[at].is_port() != nic) {
      return FabricProblem{
          where, in_quotes(fault.from),
          nic ? "a NIC; a switch goes under \"switch\"" : "a switch; a NIC goes under \"nic\""};
    }
    for (std::size_t c = 0; c < drawing_.cables.size(); ++c) {
      if (drawing_.cables[c].a == at || drawing_.cables[c].b == at) hit.push_back(c);
    }
    return {};
  }

  /// The cables with the smallest hashes of seed and number, among those that faults before this
  /// one left alone: a cable is missing once, and a slow one is not drawn in place of a whole one.
  Problem draw_cables(const FabricFault& fault, const std::string& field,
                      std::vector<std::size_t>& hit) const {
    std::vector<std::pair<std::uint64_t, std::size_t>> order;
    for (std::size_t c = 0; c < drawing_.cables.size(); ++c) {
      const GraphCable& cable = drawing_.cables[c];
      if (drawing_.vertices[cable.a].is_port() || drawing_.vertices[cable.b].is_port()) continue;
      if (faulty_.contains(c)) continue;
      order.emplace_back(mix_bits(mix_bits(fault.seed) ^ c), c);
    }
    const auto count = static_cast<std::size_t>(fault.count);
    if (count > order.size()) {
      return FabricProblem{field + "/cables_missing", fmt::format("{}", fault.count),
                           fmt::format("0 to {}, the {}cables between switches", order.size(),
                                       faulty_.empty() ? "" : "whole ")};
    }
    std::ranges::sort(order);
    for (std::size_t i = 0; i < count; ++i) hit.push_back(order[i].second);
    return {};
  }

  FabricDrawing& drawing_;
  std::map<std::string, Vertex> by_name_;
  std::set<std::size_t> faulty_;  ///< cables that a fault is about
};

}  // namespace

std::optional<FabricProblem> apply_faults(const std::vector<FabricFault>& faults,
                                          FabricDrawing& drawing) {
  if (faults.empty()) return {};
  FaultyDrawing faulty(drawing);
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if (Problem p = faulty.apply(faults[i], fmt::format("faults/{}", i))) return p;
  }
  faulty.remove_dead();
  return {};
}

}  // namespace lockstep
