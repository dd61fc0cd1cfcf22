#include "sim/scenario/fabric_assumptions.hpp"

#include <array>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "models/base/number_text.hpp"
#include "sim/scenario/names.hpp"
#include "topologies/fabrics/fabric_counts.hpp"
#include "topologies/fabrics/nic_rates.hpp"
#include "topologies/fabrics/placement.hpp"
#include "topologies/fabrics/switch_cables.hpp"
#include "topologies/graph/cluster_graph.hpp"

namespace lockstep {

namespace {

bool is_tree(const FabricSpec& fabric) {
  return fabric.kind == FabricKind::fat_tree || fabric.kind == FabricKind::rail_optimised;
}

/// A value that somebody chose and that changes nothing on this kind of fabric: whoever varies it
/// would take equal answers for an answer.
struct IdleValue {
  std::string_view key;
  bool chosen;
  std::string_view why;
};

std::vector<std::string> idle_values(const FabricSpec& fabric) {
  static const FabricSpec untouched;
  const bool tree = is_tree(fabric) || fabric.kind == FabricKind::rail_only;
  const bool groups =
      fabric.kind == FabricKind::dragonfly || fabric.kind == FabricKind::dragonfly_plus;
  const auto chosen = [&](auto FabricSpec::* member) {
    return fabric.*member != untouched.*member;
  };
  const std::string_view no_spines =
      tree ? "a tree of two levels has none above its spines" : "it is of trees";
  const bool spines = tree && fabric.levels == 3;
  const std::array values{
      IdleValue{"leaf_oversubscription", !tree && chosen(&FabricSpec::leaf_oversubscription),
                "it is of trees"},
      IdleValue{"spine_oversubscription", !spines && chosen(&FabricSpec::spine_oversubscription),
                no_spines},
      IdleValue{"pod_leaves", !spines && chosen(&FabricSpec::pod_leaves), no_spines},
      IdleValue{"groups", !groups && chosen(&FabricSpec::groups), "it is of dragonflies"},
      IdleValue{"global_cables", !groups && chosen(&FabricSpec::global_cables),
                "it is of dragonflies"},
      IdleValue{"nonminimal_share", !groups && chosen(&FabricSpec::nonminimal_share),
                "it is of dragonflies"},
      IdleValue{"torus", fabric.kind != FabricKind::torus && chosen(&FabricSpec::torus),
                "it is of tori"},
      IdleValue{"queue_pairs", fabric.routing != Routing::ecmp && chosen(&FabricSpec::queue_pairs),
                "only ECMP hashes them"},
      IdleValue{"hash_draw", fabric.routing != Routing::ecmp && chosen(&FabricSpec::hash_draw),
                "only ECMP hashes"}};
  std::vector<std::string> out;
  for (const IdleValue& value : values) {
    if (!value.chosen) continue;
    out.push_back(fmt::format("fabric.{}: of no effect on {} with {} routing, as {}", value.key,
                              name_of(fabric.kind), name_of(fabric.routing), value.why));
  }
  return out;
}

/// What becomes of the oversubscription of a tree's leaves beyond its number. Empty: nothing.
std::string leaf_cabling(const FabricSpec& fabric, const NodeSpec& node, int nodes) {
  const NicPorts ports = nic_ports(node);
  if (!is_tree(fabric) || ports.count == 0 || nodes < 2) return {};
  if (check(fabric, nodes, ports.count, ports.bandwidth)) return {};  // an error says more
  const FabricCounts counts = fabric_counts(fabric, nodes, ports.count, ports.bandwidth);
  if (counts.leaves == 1) {
    if (fabric.leaf_oversubscription <= 1) return {};
    return fmt::format(
        "fabric: all {} nodes of {} are below one leaf of {}, so that no uplink is used", nodes,
        counted(ports.count, "NIC port"), fabric.leaf_ports_down);
  }
  const BytesPerSecond link =
      fabric.link_bandwidth > BytesPerSecond{} ? fabric.link_bandwidth : ports.bandwidth;
  constexpr double kNoticed = 1e-3;
  const bool hashed = fabric.routing == Routing::ecmp;
  const bool by_link = hashed || routings()[static_cast<std::size_t>(fabric.routing)].is_static;
  if (!by_link || counts.leaf_link_capacity / link > 1 - kNoticed) return {};
  std::string out = fmt::format(
      "fabric: {} uplink{} a leaf of {} Gb/s each, as leaf_oversubscription {} leaves no "
      "whole number of links; a path that is {} one is as thin",
      counts.leaf_uplinks, counts.leaf_uplinks == 1 ? "" : "s",
      plain_number(counts.leaf_link_capacity / gigabits_per_second(1), 4),
      plain_number(fabric.leaf_oversubscription, 4), hashed ? "hashed to" : "led over");
  const int fewer = counts.leaf_uplinks - 1;
  if (fewer == 0) return out;
  const double whole = fabric.leaf_oversubscription * counts.leaf_uplinks *
                       double{counts.leaf_link_capacity / link} / fewer;
  return out + fmt::format(", and {} whole link{} ({}:1) may be faster", fewer,
                           fewer == 1 ? "" : "s", plain_number(whole, 4));
}

/// What links slower than NICs mean in a tree: more of them, as what was asked for is the share of
/// the NICs' bandwidth that leaves a leaf. Empty where there are none.
std::string thin_links(const FabricSpec& fabric, const NodeSpec& node, int nodes) {
  const NicPorts ports = nic_ports(node);
  if (!is_tree(fabric) || ports.count == 0 || fabric.link_bandwidth <= BytesPerSecond{} ||
      fabric.link_bandwidth >= ports.bandwidth) {
    return {};
  }
  if (check(fabric, nodes, ports.count, ports.bandwidth)) return {};  // an error says more
  const FabricCounts counts = fabric_counts(fabric, nodes, ports.count, ports.bandwidth);
  if (counts.leaves == 1) return {};
  return fmt::format(
      "fabric: {} uplinks a leaf, as links of {} Gb/s are thinner than NICs of {} Gb/s and "
      "leaf_oversubscription {} holds",
      counts.leaf_uplinks, plain_number(fabric.link_bandwidth / gigabits_per_second(1), 4),
      plain_number(ports.bandwidth / gigabits_per_second(1), 4),
      plain_number(fabric.leaf_oversubscription, 4));
}

}  // namespace

std::string fabric_not_given(const FabricSpec& fabric, bool given, bool assumed) {
  if (given && !assumed) return {};
  return fmt::format("fabric: {} ({})", fabric.name,
                     given ? "only changes to it are given" : "not given");
}

std::vector<std::string> fabric_assumptions(const FabricSpec& fabric, const NodeSpec& node,
                                            int nodes) {
  std::vector<std::string> out;
  if (std::string text = thin_links(fabric, node, nodes); !text.empty()) {
    out.push_back(std::move(text));
  }
  if (std::string text = leaf_cabling(fabric, node, nodes); !text.empty()) {
    out.push_back(std::move(text));
  }
  for (std::string& text : idle_values(fabric)) out.push_back(std::move(text));
  if (fabric.kind != FabricKind::file || fabric.graph == nullptr) return out;
  for (const std::string& untold : fabric.graph->untold()) out.push_back("fabric." + untold);
  const NicPorts ports = nic_ports(node);
  const NicRates rates = nic_rates(fabric, nodes, ports.bandwidth);
  const NicRates own{ports.bandwidth, ports.bandwidth};
  constexpr double kSame = 1e-6;  // what a rate loses as text
  if (std::abs(rates.least / own.least - 1) < kSame &&
      std::abs(rates.most / own.most - 1) < kSame) {
    return out;
  }
  out.push_back(
      fmt::format("NICs send at {}, the rate of their cables in {}; those of {} could send "
                  "at {}",
                  words_of(rates), std::filesystem::path(fabric.file).filename().string(),
                  node.name, words_of(own)));
  return out;
}

std::string uncounted_cables(const FabricSpec& fabric, int nodes, const NicPorts& ports) {
  if (nodes < 2 || ports.count == 0) return {};
  const IdleCables idle = idle_cables(fabric, nodes, ports);
  const std::int64_t without = idle.above_leaves + idle.above_spines;
  if (without == 0) return {};
  return fmt::format(
      "power: {} of {} cables between switches neither draw nor cost, as NICs below them "
      "cannot fill them; messages find all of {}",
      grouped(static_cast<double>(without)), grouped(static_cast<double>(idle.of)), fabric.name);
}

}  // namespace lockstep
