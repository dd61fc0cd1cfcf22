#include "sim/measured/step_shares.hpp"

#include <cmath>

#include "sim/step/step.hpp"

namespace lockstep {
namespace {

void slow_transport(Scenario& s, double factor) {
  s.stack.communication.tensor_slowdown *= factor;
  s.stack.communication.data_slowdown *= factor;
  s.transport.efficiency /= factor;
  s.transport.send_receive_efficiency /= factor;
}

void slow_host(Scenario& s, double factor) {
  s.stack.launch_interval *= factor;
  s.stack.expert_host_layer *= factor;
  s.stack.expert_host_expert *= factor;
}

constexpr std::array kParts{
    DescriptionPart{"all kernels (the level)", 0.10,
                    [](Scenario& s, double factor) { s.stack.level *= factor; }},
    DescriptionPart{"kernels between the products", 0.25,
                    [](Scenario& s, double factor) { s.stack.elementwise.slowdown *= factor; }},
    DescriptionPart{"the host's launches", 0.5, slow_host},
    DescriptionPart{"collectives and sends", 0.3, slow_transport},
    DescriptionPart{"matrix products", 0.06,
                    [](Scenario& s, double factor) { s.node.gpu.gemm.sustained /= factor; }},
};
static_assert(kParts.size() == kDescriptionParts);

}  // namespace

const std::array<DescriptionPart, kDescriptionParts>& description_parts() { return kParts; }

StepShares step_shares(const Scenario& scenario) {
  constexpr double kDifference = 1.1;
  const auto log_step = [&](const DescriptionPart& part, double factor) {
    Scenario changed = scenario;
    part.slow(changed, factor);
    return std::log(simulate_step(changed).step_s);
  };
  StepShares out{};
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    const double rise = log_step(kParts[i], kDifference) - log_step(kParts[i], 1 / kDifference);
    out[i] = rise / (2 * std::log(kDifference));
  }
  return out;
}

}  // namespace lockstep
