#include "tools/calibrate/collective_plan.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "sim/scenario/names.hpp"
#include "tools/console/options.hpp"

namespace lockstep {
namespace {

constexpr double kSmallestMessage = 8;
constexpr Bytes kLargestMessage = gibibytes(8);
/// assumed: large enough for the rate of large ones; buckets of frameworks are about as large.
constexpr Bytes kOverlapped = gibibytes(0.25);
constexpr double kOverlappedSide = 8192;
/// assumed: an activation's size, between those whose latency counts and those whose rate does.
constexpr Bytes kVariedSmall{1 << 20};
constexpr std::array kOfDataParallelism{CollectiveOp::all_reduce, CollectiveOp::all_gather,
                                        CollectiveOp::reduce_scatter};
/// Bytes that each rank's share is a multiple of.
constexpr double kShareUnit = 16;

bool is_shared(CollectiveOp op) {
  return op == CollectiveOp::all_gather || op == CollectiveOp::reduce_scatter ||
         op == CollectiveOp::all_to_all;
}

/// The size that the operation has for about `bytes`; 0: none.
double fitting_size(CollectiveOp op, double bytes, int ranks) {
  if (!is_shared(op)) return bytes;
  return std::floor(bytes / ranks / kShareUnit) * kShareUnit * ranks;
}

bool is_wanted(std::string_view subject, std::span<const std::string> only) {
  return only.empty() || std::ranges::find(only, subject) != only.end();
}

CollectiveOp op_named(std::string_view name) {
  const auto at = std::ranges::find(kNcclTestsNames, name);
  return static_cast<CollectiveOp>(at - kNcclTestsNames.begin());
}

}  // namespace

std::vector<CollectiveTask> plan_collectives(int ranks, Bytes room,
                                             std::span<const std::string> only) {
  constexpr double kStep = 4;
  const double largest = std::min(room, kLargestMessage).base_units();
  std::vector<CollectiveTask> tasks;
  for (const double first : {kSmallestMessage, 2 * kSmallestMessage}) {
    // Powers of four are exact. NOLINTNEXTLINE(clang-analyzer-security.FloatLoopCounter)
    for (double bytes = first; bytes <= largest; bytes *= kStep) {
      for (const std::string_view name : kCollectiveSubjects) {
        if (name == "overlap" || name == "variants" || !is_wanted(name, only)) continue;
        const CollectiveOp op = op_named(name);
        const double size = fitting_size(op, bytes, ranks);
        if (size > 0) tasks.push_back({op, Bytes{size}});
      }
    }
  }
  return tasks;
}

std::vector<OverlapTask> plan_overlaps(int ranks, const GpuSpec& gpu, Bytes room,
                                       std::span<const std::string> only) {
  std::vector<OverlapTask> tasks;
  if (!is_wanted("overlap", only)) return tasks;
  const bool wide = gpu.peak(Precision::bf16) > FlopsPerSecond{};
  const ProductTask product{.shape = {kOverlappedSide, kOverlappedSide, kOverlappedSide},
                            .role = ProductRole::forward,
                            .precision = wide ? Precision::bf16 : Precision::fp16,
                            .load = Load::burst};
  for (const bool high_priority : {false, true}) {
    for (const CollectiveOp op : kOfDataParallelism) {
      const double size = fitting_size(op, std::min(kOverlapped, room).base_units(), ranks);
      if (size > 0) tasks.push_back({product, {op, Bytes{size}}, high_priority});
    }
  }
  return tasks;
}

std::vector<VariantTask> plan_variants(int ranks, Bytes room, std::span<const std::string> only) {
  std::vector<VariantTask> tasks;
  if (!is_wanted("variants", only)) return tasks;
  for (const Bytes wanted : {kVariedSmall, kOverlapped}) {
    const auto add = [&](CollectiveOp op, CollectiveVariant variant) {
      const double size = fitting_size(op, std::min(wanted, room / 2).base_units(), ranks);
      if (size > 0) tasks.push_back({{op, Bytes{size}}, variant});
    };
    for (const CollectiveOp op : kOfDataParallelism) {
      // Who gathers does not sum.
      if (op != CollectiveOp::all_gather) add(op, CollectiveVariant::bf16);
      add(op, CollectiveVariant::in_place);
      add(op, CollectiveVariant::pair);
    }
    add(CollectiveOp::all_to_all, CollectiveVariant::uneven);
  }
  return tasks;
}

RankShape rank_shape(std::span<const std::string> hosts, const NodeSpec* node) {
  std::map<std::string, int> ranks_of;
  for (const std::string& host : hosts) ++ranks_of[host];
  const int all = static_cast<int>(hosts.size()), per_host = ranks_of.begin()->second;
  for (const auto& [host, ranks] : ranks_of) {
    if (ranks == per_host) continue;
    throw UsageError(fmt::format(
        "lockstep-calibrate: {} ranks on {}, {} on {}; allowed: as many on every machine", per_host,
        ranks_of.begin()->first, ranks, host));
  }
  int nodes = static_cast<int>(ranks_of.size());
  if (node != nullptr && node->nvlink_domain > node->gpus) {
    const int per_domain = node->nvlink_domain / node->gpus;
    if (nodes > per_domain && nodes % per_domain != 0) {
      throw UsageError(fmt::format(
          "lockstep-calibrate: {} machines; allowed: whole NVLink domains of {} (--node "
          "{})",
          nodes, per_domain, node->name));
    }
    nodes = std::max(1, nodes / per_domain);
  }
  return {.nodes = nodes, .gpus_per_node = all / nodes};
}

}  // namespace lockstep
