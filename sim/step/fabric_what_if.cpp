#include "sim/step/fabric_what_if.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <utility>

#include "models/base/input_error.hpp"
#include "sim/step/site.hpp"
#include "topologies/fabrics/fabric_counts.hpp"
#include "topologies/fabrics/placement.hpp"
#include "topologies/fabrics/switch_limits.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {
namespace {

using Change = std::function<void(Scenario&)>;

FabricWhatIf simulated(const Scenario& scenario, std::string change, const StepOptions& options) {
  const StepReport report = simulate_step(scenario, options);
  return {.change = std::move(change), .step_s = report.step_s, .seconds = report.seconds};
}

bool is_tree_kind(FabricKind kind) {
  return kind == FabricKind::fat_tree || kind == FabricKind::rail_optimised;
}

/// Whether the fabric can join the job's nodes.
bool is_sound(const Scenario& scenario) {
  const NicPorts ports = nic_ports(scenario.node);
  return !check(scenario.fabric, scenario.nodes, ports.count, ports.bandwidth);
}

/// The NIC ports of a drawing or of a fabric with faults on one switch, where any of them is not as
/// fast as its node's NICs are; else nothing.
std::shared_ptr<const ClusterGraph> slow_nics_on_a_switch(const Scenario& scenario) {
  if (scenario.fabric.kind != FabricKind::file && scenario.fabric.faults.empty()) return nullptr;
  NicPorts ports = nic_ports(scenario.node);
  for (const NodePool& pool : scenario.pools) {
    ports.bandwidth = std::max(ports.bandwidth, nic_ports(pool.node).bandwidth);
  }
  const Fabric fabric(scenario.fabric, scenario.nodes, ports.count, ports.bandwidth);
  const std::vector<double> left = nic_shares(scenario, fabric);
  std::vector<GraphVertex> vertices;
  std::vector<GraphCable> cables;
  const auto all = static_cast<Vertex>(scenario.nodes * ports.count);
  bool as_nodes_have = true;
  std::vector<RouteHop> links;
  for (int node = 0; node < scenario.nodes; ++node) {
    for (int nic = 0; nic < ports.count; ++nic) {
      links.clear();
      fabric.nic_ups(node, nic, links);
      BytesPerSecond line, own;  // without and with what a slower pool's NICs leave of it
      for (const RouteHop& hop : links) {
        line += fabric.capacity(hop.link);
        own += (left.empty() ? 1.0 : left[hop.link]) * fabric.capacity(hop.link);
      }
      constexpr double kSame = 1e-9;
      as_nodes_have = as_nodes_have && std::abs(line / ports.bandwidth - 1) < kSame;
      cables.push_back({static_cast<Vertex>(vertices.size()), all, own});
      vertices.push_back(
          {.name = fmt::format("node {} nic {}", node, nic), .level = 0, .node = node, .nic = nic});
    }
  }
  if (as_nodes_have) return nullptr;
  vertices.push_back({.name = "switch", .level = 1});
  return std::make_shared<const ClusterGraph>(std::move(vertices), std::move(cables));
}

int leaves_of(const Scenario& scenario) {
  const NicPorts ports = nic_ports(scenario.node);
  return fabric_counts(scenario.fabric, scenario.nodes, ports.count, ports.bandwidth).leaves;
}

/// Why more NICs may be slower: below one leaf no uplink is used, so that its oversubscription
/// costs nothing before another leaf is needed. Empty where a change does not do that.
std::string leaves_words(const Scenario& before, const Change& change) {
  Scenario after = before;
  change(after);
  if (!is_tree_kind(before.fabric.kind) || before.fabric.leaf_oversubscription <= 1 ||
      !is_sound(before) || !is_sound(after) || leaves_of(before) != 1) {
    return {};
  }
  const int leaves = leaves_of(after);
  return leaves == 1 ? "" : fmt::format(": {} leaves for 1, with uplinks between", leaves);
}

/// The next count that servers are sold with: 1, 2, 4, 8, 16.
int next_nic_count(int nics) {
  int out = 1;
  while (out <= nics) out *= 2;
  return out;
}

std::vector<std::pair<std::string, Change>> changes_of(const Scenario& scenario) {
  std::vector<std::pair<std::string, Change>> out;
  const FabricSpec& fabric = scenario.fabric;
  const auto halve = [&out](const char* what, double FabricSpec::* member, double now) {
    if (now <= 1) return;
    const double next = std::max(1.0, now / 2);
    out.emplace_back(fmt::format("{} {:g} -> {:g}", what, now, next),
                     [member, next](Scenario& s) { s.fabric.*member = next; });
  };
  if (is_tree_kind(fabric.kind)) {
    halve("oversubscription of leaves", &FabricSpec::leaf_oversubscription,
          fabric.leaf_oversubscription);
    if (fabric.levels == 3) {
      halve("oversubscription of spines", &FabricSpec::spine_oversubscription,
            fabric.spine_oversubscription);
    }
    if (fabric.routing != Routing::adaptive && fabric.routing != Routing::spray) {
      out.emplace_back(fmt::format("routing {} -> adaptive",
                                   routings()[static_cast<std::size_t>(fabric.routing)].name),
                       [](Scenario& s) { s.fabric.routing = Routing::adaptive; });
    }
  }
  if (fabric.kind != FabricKind::file) {
    const int nics = scenario.node.nics, next = next_nic_count(nics);
    const auto more = [next](Scenario& s) { s.node.nics = next; };
    out.emplace_back(
        fmt::format("NICs of a node {} -> {}{}", nics, next, leaves_words(scenario, more)), more);
    out.emplace_back("NICs and links of twice the bandwidth", [](Scenario& s) {
      s.node.nic_bandwidth = 2.0 * s.node.nic_bandwidth;
      s.fabric.link_bandwidth = 2.0 * s.fabric.link_bandwidth;
      s.fabric.upper_bandwidth = 2.0 * s.fabric.upper_bandwidth;
    });
  }
  for (const char* const order : {"tp-dp-pp", "tp-pp-dp"}) {
    if (scenario.stack.placement == order || scenario.job.parallelism.pipeline == 1) continue;
    out.emplace_back(fmt::format("placement {} -> {}", scenario.stack.placement, order),
                     [order](Scenario& s) { s.stack.placement = order; });
  }
  return out;
}

}  // namespace

bool switches_can_limit(const Scenario& scenario) {
  const NicPorts ports = nic_ports(scenario.node);
  return !switch_limits(scenario.fabric, scenario.nodes, ports.count, ports.bandwidth).empty();
}

FabricWhatIf on_full_fabric(const Scenario& scenario, const StepOptions& options) {
  Scenario full = scenario;
  full.fabric.kind = FabricKind::ideal;
  if (auto graph = slow_nics_on_a_switch(scenario)) {
    full.fabric.kind = FabricKind::file;
    full.fabric.graph = std::move(graph);
  }
  full.fabric.routing = Routing::spray;
  full.fabric.planes = 1;
  full.fabric.faults.clear();
  full.folding = Folding::automatic;  // exact here, and quicker
  return simulated(full, "a fabric whose switches never limit", options);
}

std::vector<FabricWhatIf> fabric_relief(const Scenario& scenario, const StepOptions& options) {
  std::vector<FabricWhatIf> out;
  for (const auto& [words, change] : changes_of(scenario)) {
    Scenario changed = scenario;
    change(changed);
    if (!is_sound(changed)) continue;
    try {
      out.push_back(simulated(changed, words, options));
    } catch (const InputError&) {
      continue;  // ranks that cannot be placed so
    }
  }
  std::ranges::stable_sort(out, {}, &FabricWhatIf::step_s);
  return out;
}

}  // namespace lockstep
