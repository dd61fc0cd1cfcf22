#include "sim/scenario/read_cluster.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>

#include "models/base/json_override.hpp"
#include "sim/scenario/fabric_assumptions.hpp"
#include "sim/scenario/names.hpp"
#include "sim/scenario/read_pools.hpp"
#include "sim/scenario/spec_readers.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 2> kAcrossNames{"pipeline", "data"};
constexpr std::string_view kPoolsSchema = R"({"type": "array", "items": {"type": "object",
  "properties": {
    "node": {"$ref": "#/properties/cluster/anyOf/1/properties/node"},
    "nodes": {"description": "How many of them", "type": "integer", "minimum": 1,
              "maximum": 1000000}},
  "required": ["node", "nodes"], "additionalProperties": false}, "minItems": 1, "maxItems": 64})";

void read_fabric_choice(const JsonCursor& from, const PresetStore& presets, ClusterDraft& draft) {
  FabricSpec fabric;
  if (from.is_object() && !from.find("preset")) {
    // Refines the fabric that the cluster would have, its preset's or the default one, unless the
    // kind makes it another one.
    draft.fabric_assumed = !draft.fabric && !from.find("kind");
    fabric = draft.fabric ? *draft.fabric : default_fabric(draft.node, presets);
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
  const bool several = !cluster.pools.empty();
  const auto place = [&](std::string_view of_one_kind) {
    return several ? std::string_view("/pools") : of_one_kind;
  };
  const int gpus = cluster.node.gpus;
  const int domain = cluster.node.nvlink_domain;
  if (std::int64_t{cluster.nodes} * gpus > kMaxClusterGpus) {
    refuse(from, place("/nodes"), std::to_string(cluster.nodes),
           "at most " + std::to_string(kMaxClusterGpus / gpus) + " nodes of " +
               std::to_string(gpus) + " GPUs");
  }
  if (gpus % domain != 0 && domain % gpus != 0) {
    refuse(from, place("/node/nvlink_domain"), std::to_string(domain),
           "a divisor or a multiple of " + std::to_string(gpus) + " (GPUs of a node)");
  }
  if (lacks_network(cluster.node, cluster.nodes, cluster.transport)) {
    refuse(from, "/fabric", '"' + cluster.fabric.name + '"', network_wanted(cluster.nodes),
           "ideal");
  }
  const NicPorts ports = fabric_ports(cluster.node, cluster.pools);
  const auto problem = check(cluster.fabric, cluster.nodes, ports.count, ports.bandwidth);
  if (!problem) return;
  std::string pointer = "/fabric/" + problem->field;
  if (problem->field == "nodes") pointer = place("/nodes");
  if (problem->field == "nic_bandwidth") pointer = place("/node/nic_bandwidth");
  refuse(from, pointer, problem->found, problem->allowed, problem->nearest);
}

/// Pools each of which is filled by itself.
void check_kinds(const JsonCursor& pools, const Cluster& cluster, const PresetStore& presets) {
  const std::vector<JsonCursor> written = pools.elements(cluster.pools.size());
  for (std::size_t i = 0; i < cluster.pools.size(); ++i) {
    const NodePool& pool = cluster.pools[i];
    const int domain = std::max(1, pool.node.nvlink_domain / pool.node.gpus);
    if (pool.nodes % domain != 0) {
      written[i].at("nodes").fail(
          fmt::format("a multiple of {} (nodes that NVLink joins)", domain));
    }
    const TransportSpec own = transport_of(pool.node, cluster.fabric, presets);
    if (own.name == cluster.transport.name) continue;
    written[i].at("node").fail(
        fmt::format("a node of transport {}, as in the first pool, or a fabric that says its "
                    "transport; {} has {}",
                    cluster.transport.name, pool.node.name, own.name));
  }
}

void take_kinds(const JsonCursor& from, NodeKinds kinds, ClusterDraft& draft, Cluster& out) {
  if (kinds == NodeKinds::several) {
    if (const auto across = from.is_object() ? from.find("across") : std::nullopt) {
      across->fail(R"(no such key in a service: "cluster_pool" says which nodes a pool fills)");
    }
    if (draft.written.size() > 1) out.pools = std::move(draft.written);
  } else if (!draft.pools.empty()) {
    from.at("pools").fail(
        R"("node" and "nodes": only a job by itself, or a service, runs on several kinds)");
  }
}

}  // namespace

int Cluster::nodes_before(std::size_t pool) const {
  int out = 0;
  for (std::size_t i = 0; i < pool; ++i) out += pools[i].nodes;
  return out;
}

const NodeSpec& Cluster::node_at(int number) const {
  for (const NodePool& pool : pools) {
    if (number < pool.nodes) return pool.node;
    number -= pool.nodes;
  }
  return node;
}

void read_node_choice(const JsonCursor& from, const PresetStore& presets, NodeSpec& out) {
  double slowness = 1;
  if (from.is_object() && !from.find("preset")) {
    declare_node({from, Extent::whole}, presets, out);
    out.name = "node of the scenario";
  } else {
    out = presets.node(read_preset_name(from, "nodes", presets));
    if (out.host) slowness = out.host->launch_slowness;
    if (from.is_object()) declare_node({from, Extent::changes}, presets, out);
  }
  if (out.host) out.host->slowed = out.host->launch_slowness / slowness;
  if (from.is_object()) from.finish();
}

TransportSpec transport_of(const NodeSpec& node, const FabricSpec& fabric,
                           const PresetStore& presets) {
  if (fabric.own_transport) return *fabric.own_transport;
  if (!fabric.transport.empty()) return presets.transport(fabric.transport);
  return node.own_transport ? *node.own_transport : presets.transport(node.transport);
}

bool lacks_network(const NodeSpec& node, int nodes, const TransportSpec& transport) {
  return nodes > 1 && std::int64_t{nodes} * node.gpus > node.nvlink_domain &&
         transport.name == "none";
}

std::string network_wanted(int nodes) {
  return fmt::format("a fabric between the {} nodes, which share no NVLink domain", nodes);
}

FabricSpec default_fabric(const NodeSpec& node, const PresetStore& presets) {
  const std::string_view name = node.nics > 1 ? "rail_optimised" : "fat_tree";
  if (presets.has("fabrics", name)) return presets.fabric(name);
  FabricSpec fabric;
  fabric.name = name;
  fabric.kind = node.nics > 1 ? FabricKind::rail_optimised : FabricKind::fat_tree;
  return fabric;
}

void declare_cluster_preset(const DeclaredMembers& member, const PresetStore& presets,
                            ClusterPreset& out) {
  const auto name = [&](std::string_view kind, std::string& to) {
    return
        [&presets, kind, &to](const JsonCursor& at) { to = read_preset_name(at, kind, presets); };
  };
  std::string node, fabric;
  int nodes = 0;
  member.optional("about", out.about, "What it is");
  member.required("node", text_type(), "The kind of node", name("nodes", node));
  member.required("fabric", text_type(), "The network between them", name("fabrics", fabric));
  member.required("nodes", nodes, 1, kMaxNodes, "How many of them");
  member.required("facility", text_type(), "The site around them",
                  name("facilities", out.facility));
  member.optional("reliability", text_type(), "How often what fails",
                  name("reliability", out.reliability));
  member.optional("power_limit", out.power_limit, Interval{1, 1e12}, "Of the site");
  if (member.object() == nullptr) return;
  out.cluster = {.node = presets.node(node), .nodes = nodes, .fabric = presets.fabric(fabric)};
}

void declare_cluster(const DeclaredMembers& member, const PresetStore& presets, ClusterDraft& out) {
  member.optional("pools", written_type(kPoolsSchema),
                  "In place of node and nodes: nodes of several kinds, on one fabric; ranks fill "
                  "them in this order",
                  [&](const JsonCursor& at) { read_pools(*member.object(), at, presets, out); });
  member.optional(
      "node", "nodes", "The kind of node", "A preset with changes, or a node of one's own",
      [&](const DeclaredMembers& node) {
        NodeSpec spec;
        declare_node(node, presets, spec);
      },
      [&](const JsonCursor& at) { read_node_choice(at, presets, out.node); });
  member.optional("nodes", out.nodes, 1, kMaxNodes,
                  "How many; default: as many as the parallelism needs");
  member.optional("across", choice_type(kAcrossNames),
                  "What is laid over the pools one after the other: the stages of the pipeline, or "
                  "data-parallel replicas; default: by the software's order of ranks",
                  [&](const JsonCursor& at) {
                    if (!member.object()->find("pools")) {
                      at.fail("no such key, unless there are \"pools\"");
                    }
                    const bool stages = at.choice(kAcrossNames) == 0;
                    out.across = stages ? ParallelAxis::pipeline : ParallelAxis::data;
                  });
  member.optional(
      "fabric", "fabrics",
      "The network between nodes; default: rail_optimised, or fat_tree for nodes with one NIC",
      "A preset with changes, a fabric of a kind, or changes to the fabric that there would be",
      [&](const DeclaredMembers& fabric) {
        FabricSpec spec;
        declare_fabric(fabric, presets, spec);
      },
      [&](const JsonCursor& at) { read_fabric_choice(at, presets, out); });
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
  declare_cluster({from, Extent::changes}, presets, draft);
  if (!refines && !from.find("pools") && !from.find("node")) {
    read_node_choice(from.at("node"), presets, draft.node);
  }
  from.finish();
  return draft;
}

Cluster read_cluster(const JsonCursor& from, const PresetStore& presets, NodeKinds kinds) {
  ClusterDraft draft = read_cluster_draft(from, presets);
  Cluster cluster;
  take_kinds(from, kinds, draft, cluster);
  if (!draft.nodes) draft.nodes = from.at("nodes").integer(1, kMaxNodes);  // required here
  cluster.node = std::move(draft.node);
  cluster.nodes = *draft.nodes;
  cluster.fabric = draft.fabric ? *draft.fabric : default_fabric(cluster.node, presets);
  if (cluster.gpus() > cluster.node.nvlink_domain) {
    std::string text =
        fabric_not_given(cluster.fabric, draft.fabric.has_value(), draft.fabric_assumed);
    if (!text.empty()) cluster.assumptions.push_back(std::move(text));
  }
  cluster.transport = transport_of(cluster.node, cluster.fabric, presets);
  check_cluster(from, cluster);
  if (!cluster.pools.empty()) check_kinds(from.at("pools"), cluster, presets);
  for (std::string& text : fabric_assumptions(cluster.fabric, cluster.node, cluster.nodes)) {
    cluster.assumptions.push_back(std::move(text));
  }
  return cluster;
}

}  // namespace lockstep
