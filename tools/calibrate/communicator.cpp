#include "tools/calibrate/communicator.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <fmt/format.h>

#include "models/base/number_text.hpp"
#include "sim/scenario/names.hpp"

namespace lockstep {
namespace {

/// Long beside the resolution of events, 0.5 us.
constexpr Seconds kCollectiveSample{2e-3};
constexpr Seconds kTimedPerCollective{0.4};
constexpr int kMostInARow = 100;
constexpr int kMostCollectiveSamples = 20, kFewestCollectiveSamples = 5;

/// What the busiest link of each GPU carries, over the size.
double bus_factor(CollectiveOp op, int ranks) {
  const double n = ranks;
  switch (op) {
    case CollectiveOp::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_to_all:
      return (n - 1) / n;
    default:
      return 1;
  }
}

}  // namespace

std::string describe(const CollectiveTask& task) {
  return fmt::format("{} {} bytes", kNcclTestsNames[static_cast<std::size_t>(task.op)],
                     grouped(task.size.base_units()));
}

std::string describe(const OverlapTask& task) {
  return fmt::format("{} beside {}{}", describe(Task{task.product}), describe(task.collective),
                     task.high_priority ? ", high priority" : "");
}

std::string describe(const VariantTask& task) {
  constexpr std::array kHow{"in BF16", "in place", "two at once", "unevenly"};
  return fmt::format("{} {}", describe(task.collective),
                     kHow[static_cast<std::size_t>(task.variant)]);
}

BytesPerSecond bus_bandwidth(const CollectiveTask& task, int ranks, Seconds time) {
  assert(ranks >= 2 && time > Seconds{});
  return bus_factor(task.op, ranks) * task.size / time;
}

CollectiveRepeats collective_repeats(Seconds one) {
  assert(one > Seconds{});
  const double enough = std::ceil(static_cast<double>(kCollectiveSample / one));
  const double launches = std::clamp(enough, 1.0, double{kMostInARow});
  const double samples = std::floor(static_cast<double>(kTimedPerCollective / (launches * one)));
  return {.launches = static_cast<int>(launches),
          .samples = static_cast<int>(std::clamp(samples, double{kFewestCollectiveSamples},
                                                 double{kMostCollectiveSamples}))};
}

}  // namespace lockstep
