#include "sim/measured/fit_constants.hpp"

#include <array>
#include <stdexcept>
#include <string>

namespace lockstep {
namespace {

struct Constant {
  std::string_view kind, path;
  double* (*get)(Scenario& scenario);
};

AttentionConstants* attention(Scenario& s, AttentionKernel kernel) {
  auto& constants = s.node.gpu.attention[static_cast<std::size_t>(kernel)];
  return constants && s.stack.attention == kernel ? &*constants : nullptr;
}
template <AttentionKernel kKernel, double AttentionConstants::* kMember>
double* of_attention(Scenario& s) {
  AttentionConstants* constants = attention(s, kKernel);
  return constants != nullptr ? &(constants->*kMember) : nullptr;
}
double* quantised_only(Scenario& s, double& constant) {
  return is_quantised(s.job.precision) ? &constant : nullptr;
}
double* tensor_only(Scenario& s, double& constant) {
  return s.job.parallelism.tensor > 1 ? &constant : nullptr;
}
/// Nothing where the run is known to have overlapped none of it.
double* tensor_exposed(Scenario& s) {
  double& constant = s.stack.communication.tensor_exposed;
  return constant < 1 ? tensor_only(s, constant) : nullptr;
}
double* sharded_only(Scenario& s, double& constant) {
  return s.job.parallelism.sharding == Sharding::zero3 ? &constant : nullptr;
}
double* experts_only(Scenario& s, double& constant) {
  return s.job.model.experts.count > 0 ? &constant : nullptr;
}

constexpr std::array kConstants{
    Constant{"gpus", "gemm.sustained", [](Scenario& s) { return &s.node.gpu.gemm.sustained; }},
    Constant{"gpus", "gemm.quantised_sustained",
             [](Scenario& s) { return quantised_only(s, s.node.gpu.gemm.quantised_sustained); }},
    Constant{"gpus", "speed_spread", [](Scenario& s) { return &s.node.gpu.speed_spread; }},
    Constant{"gpus", "memory.efficiency",
             [](Scenario& s) { return &s.node.gpu.memory.efficiency; }},
    Constant{"gpus", "attention.cudnn.efficiency",
             of_attention<AttentionKernel::cudnn, &AttentionConstants::efficiency>},
    Constant{"gpus", "attention.cudnn.backward_ratio",
             of_attention<AttentionKernel::cudnn, &AttentionConstants::backward_ratio>},
    Constant{"stacks", "elementwise.slowdown",
             [](Scenario& s) { return &s.stack.elementwise.slowdown; }},
    Constant{"stacks", "elementwise.score_bytes",
             [](Scenario& s) { return &s.stack.elementwise.score_bytes; }},
    Constant{"stacks", "elementwise.quantise_bytes",
             [](Scenario& s) { return quantised_only(s, s.stack.elementwise.quantise_bytes); }},
    Constant{"stacks", "communication.tensor_exposed", tensor_exposed},
    Constant{"stacks", "communication.tensor_slowdown",
             [](Scenario& s) { return tensor_only(s, s.stack.communication.tensor_slowdown); }},
    Constant{"stacks", "communication.data_slowdown",
             [](Scenario& s) { return sharded_only(s, s.stack.communication.data_slowdown); }},
    Constant{"stacks", "communication.sm_share",
             [](Scenario& s) { return sharded_only(s, s.stack.communication.sm_share); }},
    Constant{"stacks", "communication.expert_overlapped",
             [](Scenario& s) {
               double& constant = s.stack.communication.expert_overlapped;
               return s.job.parallelism.expert_overlap ? experts_only(s, constant) : nullptr;
             }},
    Constant{"stacks", "grouped_slowdown",
             [](Scenario& s) { return experts_only(s, s.stack.grouped_slowdown); }},
    Constant{"stacks", "elementwise.permute_bytes",
             [](Scenario& s) { return experts_only(s, s.stack.elementwise.permute_bytes); }},
    Constant{"stacks", "weight_gradient_traffic",
             [](Scenario& s) { return &s.stack.weight_gradient_traffic; }},
    Constant{"stacks", "kernels_forward", [](Scenario& s) { return &s.stack.kernels_forward; }},
};

bool concerns(const FitParameter& p, const Scenario& s) {
  if (p.kind == "gpus") return s.node.gpu.name == p.preset;
  if (s.stack.name != p.preset) return false;
  return !p.path.starts_with("releases.") ||
         p.path.starts_with("releases." + s.stack.release + ".");
}

std::string_view member_path(const FitParameter& p, const Scenario& s) {
  std::string_view path = p.path;
  if (path.starts_with("releases.")) path.remove_prefix(10 + s.stack.release.size());
  return path;
}

}  // namespace

double* fit_constant(const FitParameter& p, Scenario& scenario) {
  if (!concerns(p, scenario)) return nullptr;
  const std::string_view path = member_path(p, scenario);
  for (const Constant& c : kConstants) {
    if (c.kind == p.kind && c.path == path) return c.get(scenario);
  }
  throw std::out_of_range("no constant of this name: " + p.path);
}

}  // namespace lockstep
