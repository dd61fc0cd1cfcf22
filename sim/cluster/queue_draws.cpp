#include "sim/cluster/queue_draws.hpp"

#include <cassert>
#include <cmath>

#include "models/power/site_power.hpp"
#include "sim/power/switch_ports.hpp"

namespace lockstep {
namespace {

std::int64_t in_microwatts(Watts power) { return std::llround(power.base_units() * 1e6); }

}  // namespace

GivenDraw given_draw(const QueueSpec& spec) {
  if (spec.gpu_draw) return {*spec.gpu_draw, *spec.gpu_draw, *spec.gpu_draw};
  const GpuSpec& gpu = spec.cluster.node.gpu;
  const Watts least = gpu.power->awake, most = gpu.power_limit;
  return {least, 0.5 * (least + most), most};
}

QueueDraws::QueueDraws(const QueueSpec& spec) : spec_(&spec) {
  const NodeSpec& node = spec.cluster.node;
  assert(spec.power && node.gpu.power && node.chassis);
  given_ = in_microwatts(with_node(given_draw(spec).assumed, true));
  free_ = in_microwatts(with_node(node.gpu.power_idle, false));
  for (const QueueTraining& training : spec.trainings) {
    trainings_.push_back(in_microwatts(with_node(training.gpu_draw, true)));
  }
  const BytesPerSecond ports = switch_ports(spec.cluster);
  ports_100g_ = ports / gigabits_per_second(100);
  fabric_ = fabric_power(spec.power->facility, ports).total();
  pue_ = power_usage_effectiveness(spec.power->facility, spec.power->outside_celsius);
}

Watts QueueDraws::with_node(Watts gpu, bool busy) const {
  const NodeSpec& node = spec_->cluster.node;
  const double gpus = node.gpus;
  return node_power(node, gpus * gpu, busy).ac() / gpus;
}

Watts QueueDraws::facility(std::int64_t held_microwatts, std::int64_t free_gpus) const {
  const std::int64_t machines = held_microwatts + free_gpus * free_;
  return pue_ * (Watts{static_cast<double>(machines) * 1e-6} + fabric_);
}

Watts QueueDraws::facility_beyond(Watts gpu) const {
  return pue_ * (with_node(gpu, true) - Watts{static_cast<double>(given_) * 1e-6});
}

}  // namespace lockstep
