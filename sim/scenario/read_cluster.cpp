#include "sim/scenario/read_cluster.hpp"

#include <cstdint>
#include <utility>

#include "models/base/json_override.hpp"
#include "sim/scenario/fabric_assumptions.hpp"
#include "sim/scenario/member_reader.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/read_pools.hpp"
#include "sim/scenario/spec_readers.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

void read_fabric_choice(const JsonCursor& from, const PresetStore& presets, ClusterDraft& draft) {
  FabricSpec fabric;
  if (from.is_object() && !from.find("preset")) {
    // Refines the fabric that the cluster would have, unless the kind makes it another one.
    fabric = default_fabric(draft.node, presets);
    if (from.find("kind")) fabric = FabricSpec{};
    declare_fabric({from, Extent::changes}, presets, fabric);
    if (from.find("kind")) fabric.name = name_of(fabric.kind);
  } else {
    fabric = presets.fabric(read_preset_name(from, "fabrics", presets));
    if (from.is_object()) declare_fabric({from, Extent::changes}, presets, fabric);
  }
  if (from.is_object()) from.finish();
  draft.fabric = std::move(fabric);
}

/// Throws InputError about the cluster's member at `pointer`, which need not be written out.
[[noreturn]] void refuse(const JsonCursor& cluster, std::string_view pointer, std::string found,
                         std::string allowed, std::string nearest = {}) {
  const std::string whole = cluster.pointer() + std::string(pointer);
  const JsonOverride* change = last_override(cluster.overrides(), whole);
  if (change != nullptr) found += " (" + change->option + ")";
  throw InputError(
      {cluster.file(), whole, std::move(found), std::move(allowed), std::move(nearest)});
}

void check_cluster(const JsonCursor& from, const Cluster& cluster) {
  constexpr std::int64_t kMaxClusterGpus = 8'000'000;
  const int gpus = cluster.node.gpus;
  const int domain = cluster.node.nvlink_domain;
  if (std::int64_t{cluster.nodes} * gpus > kMaxClusterGpus) {
    refuse(from, "/nodes", std::to_string(cluster.nodes),
           "at most " + std::to_string(kMaxClusterGpus / gpus) + " nodes of " +
               std::to_string(gpus) + " GPUs");
  }
  if (gpus % domain != 0 && domain % gpus != 0) {
    refuse(from, "/node/nvlink_domain", std::to_string(domain),
           "a divisor or a multiple of " + std::to_string(gpus) + " (GPUs of a node)");
  }
  const NicPorts ports = nic_ports(cluster.node);
  const auto problem = check(cluster.fabric, cluster.nodes, ports.count, ports.bandwidth);
  if (!problem) return;
  std::string pointer = "/fabric/" + problem->field;
  if (problem->field == "nodes") pointer = "/nodes";
  if (problem->field == "nic_bandwidth") pointer = "/node/nic_bandwidth";
  refuse(from, pointer, problem->found, problem->allowed, problem->nearest);
}

}  // namespace

void read_node_choice(const JsonCursor& from, const PresetStore& presets, NodeSpec& out) {
  if (from.is_object() && !from.find("preset")) {
    declare_node({from, Extent::whole}, presets, out);
    out.name = "node of the scenario";
  } else {
    out = presets.node(read_preset_name(from, "nodes", presets));
    if (from.is_object()) declare_node({from, Extent::changes}, presets, out);
  }
  if (from.is_object()) from.finish();
}

TransportSpec transport_of(const NodeSpec& node, const FabricSpec& fabric,
                           const PresetStore& presets) {
  if (fabric.own_transport) return *fabric.own_transport;
  if (!fabric.transport.empty()) return presets.transport(fabric.transport);
  return node.own_transport ? *node.own_transport : presets.transport(node.transport);
}

FabricSpec default_fabric(const NodeSpec& node, const PresetStore& presets) {
  const std::string_view name = node.nics > 1 ? "rail_optimised" : "fat_tree";
  if (presets.has("fabrics", name)) return presets.fabric(name);
  FabricSpec fabric;
  fabric.name = name;
  fabric.kind = node.nics > 1 ? FabricKind::rail_optimised : FabricKind::fat_tree;
  return fabric;
}

void read_cluster_preset(const JsonCursor& from, const PresetStore& presets, ClusterPreset& out) {
  const MemberReader member(from, Extent::whole);
  const auto name_of = [&](std::string_view kind, std::string& name) {
    return [&presets, kind, &name](const JsonCursor& at) {
      name = read_preset_name(at, kind, presets);
    };
  };
  std::string node, fabric;
  member.optional("about", out.about);
  member.required("node", name_of("nodes", node));
  member.required("fabric", name_of("fabrics", fabric));
  int nodes = 0;
  member.required("nodes", nodes, 1, kMaxNodes);
  member.required("facility", name_of("facilities", out.facility));
  member.optional("reliability", name_of("reliability", out.reliability));
  member.optional("power_limit",
                  [&](const JsonCursor& at) { out.power_limit = at.watts(Interval{1, 1e12}); });
  out.cluster = {.node = presets.node(node), .nodes = nodes, .fabric = presets.fabric(fabric)};
}

ClusterDraft read_cluster_draft(const JsonCursor& from, const PresetStore& presets) {
  ClusterDraft draft;
  const bool refines = from.is_object() && from.find("preset").has_value();
  if (from.is_string() || refines) {
    const ClusterPreset& preset = presets.cluster(read_preset_name(from, "clusters", presets));
    draft = preset.cluster;
    draft.site = preset;
  }
  if (from.is_string()) return draft;
  const auto pools = from.find("pools");
  if (pools) {
    read_pools(from, *pools, presets, draft);
  } else if (!refines || from.find("node")) {
    read_node_choice(from.at("node"), presets, draft.node);
  }
  if (const auto across = from.find("across")) {
    if (!pools) across->fail("no such key, unless there are \"pools\"");
    read_across(*across, draft);
  }
  if (const auto nodes = from.find("nodes")) draft.nodes = nodes->integer(1, kMaxNodes);
  if (const auto fabric = from.find("fabric")) read_fabric_choice(*fabric, presets, draft);
  from.finish();
  return draft;
}

Cluster read_cluster(const JsonCursor& from, const PresetStore& presets) {
  ClusterDraft draft = read_cluster_draft(from, presets);
  if (!draft.pools.empty()) {
    from.at("pools").fail(R"("node" and "nodes": only a job by itself runs on several kinds)");
  }
  if (!draft.nodes) draft.nodes = from.at("nodes").integer(1, kMaxNodes);  // required here
  Cluster cluster;
  cluster.node = std::move(draft.node);
  cluster.nodes = *draft.nodes;
  cluster.fabric = draft.fabric ? *draft.fabric : default_fabric(cluster.node, presets);
  if (!draft.fabric && cluster.gpus() > cluster.node.nvlink_domain) {
    cluster.assumptions.push_back("fabric: " + cluster.fabric.name + " (not given)");
  }
  cluster.transport = transport_of(cluster.node, cluster.fabric, presets);
  check_cluster(from, cluster);
  for (std::string& text : fabric_assumptions(cluster.fabric, cluster.node, cluster.nodes)) {
    cluster.assumptions.push_back(std::move(text));
  }
  return cluster;
}

}  // namespace lockstep
