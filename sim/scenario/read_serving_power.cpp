#include "sim/scenario/read_serving_power.hpp"

#include "sim/scenario/job_readers.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/scenario/read_power.hpp"

namespace lockstep {
namespace {

void check_serving_power(const JsonCursor& power, const NodeSpec& node) {
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

void read_serving_power(const JsonCursor& root, const PresetStore& presets, ServingSpec& out) {
  if (const auto power = root.find("power")) {
    check_serving_power(*power, out.cluster.node);
    const ClusterSite site = read_cluster_draft(root.at("cluster"), presets).site;
    out.power = read_site_power(*power, presets, site, out.assumptions);
  }
  if (const auto cost = root.find("cost")) {
    if (!out.power) cost->fail("no such key, unless there is \"power\"");
    read_cost(*cost, out.file, out.power->cost, out.assumptions);
  }
  declare_price({root, Extent::whole}, out.usd_per_gpu_hour);
  if (!out.usd_per_gpu_hour) out.usd_per_gpu_hour = out.cluster.node.usd_per_gpu_hour;
}

void describe_serving_power(const DeclaredMembers& member) {
  PowerSpec power;
  CostSpec cost;
  std::optional<double> price;
  member.optional("power", power, "What the pools draw is reported; {} is enough",
                  declare_site_power);
  member.optional("cost", cost, "Prices of owning; beside \"power\"",
                  [](const DeclaredMembers& of, CostSpec& out) { declare_cost(of, {}, out); });
  declare_price(member, price);
}

}  // namespace lockstep
