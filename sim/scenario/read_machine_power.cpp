#include "sim/scenario/read_machine_power.hpp"

#include <utility>

#include "sim/scenario/fabric_assumptions.hpp"
#include "sim/scenario/job_readers.hpp"
#include "sim/scenario/read_power.hpp"

namespace lockstep {
namespace {

void check_machine_power(const JsonCursor& power, const NodeSpec& node) {
  if (!node.gpu.power) {
    power.fail("a GPU preset with \"power\", or cluster.node.gpu.power: " + node.gpu.name +
               " has no power data");
  }
  if (!node.chassis) {
    power.fail("a node preset with \"chassis\", or cluster.node.chassis: " + node.name +
               " has no power data");
  }
}

}  // namespace

MachinePower read_machine_power(const JsonCursor& root, const PresetStore& presets,
                                const Cluster& cluster, PowerKeys keys,
                                std::vector<std::string>& assumptions) {
  MachinePower out;
  if (const auto power = root.find("power")) {
    if (cluster.pools.empty()) check_machine_power(*power, cluster.node);
    for (const NodePool& pool : cluster.pools) check_machine_power(*power, pool.node);
    const ClusterSite site = read_cluster_draft(root.at("cluster"), presets).site;
    const auto read = keys == PowerKeys::cards          ? read_power
                      : keys == PowerKeys::limited_site ? read_limited_site
                                                        : read_site_power;
    out.power = read(*power, presets, site, assumptions);
    const NicPorts ports = fabric_ports(cluster.node, cluster.pools);
    if (std::string text = uncounted_cables(cluster.fabric, cluster.nodes, ports); !text.empty()) {
      assumptions.push_back(std::move(text));
    }
  }
  if (const auto cost = root.find("cost")) {
    if (!out.power) cost->fail("no such key, unless there is \"power\"");
    read_cost(*cost, root.file(), out.power->cost, assumptions);
  }
  declare_price({root, Extent::whole}, out.usd_per_gpu_hour);
  if (!out.usd_per_gpu_hour && cluster.pools.empty()) {
    out.usd_per_gpu_hour = cluster.node.usd_per_gpu_hour;
  }
  return out;
}

void describe_machine_power(const DeclaredMembers& member, std::string_view sentence,
                            PowerKeys keys) {
  PowerSpec power;
  CostSpec cost;
  std::optional<double> price;
  member.optional("power", power, sentence,
                  keys == PowerKeys::cards          ? declare_power
                  : keys == PowerKeys::limited_site ? declare_limited_site
                                                    : declare_site_power);
  member.optional("cost", cost, "Prices of owning; beside \"power\"",
                  [](const DeclaredMembers& of, CostSpec& out) { declare_cost(of, {}, out); });
  declare_price(member, price);
}

}  // namespace lockstep
