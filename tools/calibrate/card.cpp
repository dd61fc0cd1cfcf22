#include "tools/calibrate/card.hpp"

#include <fmt/format.h>

#include "models/base/number_text.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

/// assumed: what a driver that does not tell its own share apart keeps on a large card, with a
/// margin.
constexpr Bytes kDriverShare = gibibytes(2);
/// assumed: what a look at the card by nvidia-smi or a monitor leaves behind.
constexpr double kIdleUtilisation = 0.05;
/// The least in which large products and their rotating buffers have room.
constexpr Bytes kLeastMemory = gibibytes(6);

std::string_view role_name(ProductRole role) {
  switch (role) {
    case ProductRole::forward:
      return "forward";
    case ProductRole::input_gradient:
      return "input gradient";
    case ProductRole::weight_gradient:
      return "weight gradient";
  }
  return {};
}

struct Describe {
  std::string operator()(const LaunchTask& t) const {
    return fmt::format("{} kernels {}", t.busy ? "gap between busy" : "launch of empty",
                       t.graph ? "in a CUDA graph" : "one by one");
  }
  std::string operator()(const CopyTask& t) const {
    return fmt::format("copy {} {} bytes", t.to_device ? "host to device" : "device to host",
                       grouped(t.size.base_units()));
  }
  std::string operator()(const MemoryTask& t) const {
    const MemoryKernelInfo& kernel = info(t.kernel);
    return fmt::format("memory {} {:.4g} MB", kernel.name, kernel.traffic(t.elements) * 1e-6);
  }
  std::string operator()(const ProductTask& t) const {
    const std::string experts =
        t.shape.count > 1 ? fmt::format("{} of ", t.shape.count) : std::string();
    return fmt::format("gemm {} {} {}{} x {} x {}{}", name_of(t.precision), role_name(t.role),
                       experts, t.shape.m, t.shape.n, t.shape.k,
                       t.load == Load::sustained ? ", sustained" : "");
  }
  std::string operator()(const AttentionTask& t) const {
    const AttentionShape& s = t.shape;
    return fmt::format("attention {}{} {} x {} tokens, {}/{} heads of {}",
                       s.direction == Direction::forward ? "forward" : "backward",
                       s.causal ? " causal" : "", s.sequences, s.tokens, s.heads, s.kv_heads,
                       s.head_dim);
  }
};

double gib(Bytes bytes) { return bytes / gibibytes(1); }

}  // namespace

std::string describe(const Task& task) { return std::visit(Describe{}, task); }

std::string obstacle_of(const Occupancy& occupancy) {
  if (occupancy.total < kLeastMemory) {
    return fmt::format("it has {:.1f} GiB of memory; {:.0f} GiB are needed", gib(occupancy.total),
                       gib(kLeastMemory));
  }
  if (occupancy.programs.value_or(0) > 0) {
    return fmt::format("{} on it, with {:.1f} GiB of its memory; nothing else may run on it",
                       *occupancy.programs == 1
                           ? "another program is"
                           : fmt::format("{} other programs are", *occupancy.programs),
                       gib(occupancy.used));
  }
  // A driver that does not list programs, or lists none of other containers.
  if (occupancy.used > kDriverShare) {
    return fmt::format("another program holds {:.1f} GiB of its memory; nothing else may run on it",
                       gib(occupancy.used));
  }
  return {};
}

std::string disturbance_of(const Occupancy& occupancy) {
  if (occupancy.utilisation <= kIdleUtilisation) return {};
  return fmt::format(
      "it was {} busy before the first kernel, by a monitor or a program of another "
      "container",
      percent_text(occupancy.utilisation));
}

}  // namespace lockstep
