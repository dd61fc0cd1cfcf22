#include "sim/cluster/gpu_fragments.hpp"

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace lockstep {
namespace {

/// What tells requests apart, memory aside.
using RequestKey = std::tuple<std::int64_t, int, int, std::vector<std::string>>;

RequestKey request_of(const PodShape& pod) {
  return {pod.cpu_milli, pod.gpu_milli, pod.gpus, pod.gpu_models};
}

}  // namespace

bool accepts_model(const PodShape& pod, const std::string& model) {
  return pod.gpu_models.empty() || std::ranges::count(pod.gpu_models, model) > 0;
}

std::vector<TypicalPod> typical_pods(std::span<const PodShape> pods,
                                     std::span<const std::string> models, double share) {
  std::map<RequestKey, std::int64_t> counts;
  std::int64_t all = 0;
  for (const PodShape& pod : pods) {
    counts[request_of(pod)] += pod.count;
    all += pod.count;
  }
  assert(all > 0 && share > 0);
  std::vector<std::pair<std::int64_t, RequestKey>> by_count;
  for (const auto& [request, count] : counts) by_count.emplace_back(count, request);
  std::ranges::sort(by_count, std::greater{});

  std::vector<TypicalPod> out;
  std::int64_t taken = 0;
  for (const auto& [count, request] : by_count) {
    if (static_cast<double>(taken) >= share * static_cast<double>(all)) break;
    taken += count;
    const auto& [cpu_milli, gpu_milli, gpus, wanted] = request;
    TypicalPod typical{.cpu_milli = cpu_milli,
                       .gpus = gpus,
                       .gpu_milli = gpu_milli,
                       .share = static_cast<double>(count),
                       .accepts = {}};
    const PodShape asks{.gpu_models = wanted};
    for (const std::string& model : models) typical.accepts.push_back(accepts_model(asks, model));
    out.push_back(std::move(typical));
  }
  for (TypicalPod& typical : out) typical.share /= static_cast<double>(taken);
  return out;
}

double fragments(const NodeLeft& node, std::span<const TypicalPod> typical) {
  const int free = std::accumulate(node.gpu_milli.begin(), node.gpu_milli.end(), 0);
  double out = 0;
  for (const TypicalPod& pod : typical) {
    int of_no_use = free;
    const bool may_run = pod.gpus > 0 && pod.cpu_milli <= node.cpu_milli &&
                         pod.accepts[static_cast<std::size_t>(node.model)];
    if (may_run) {
      int fitting = 0, too_little = 0;
      for (const int left : node.gpu_milli) {
        fitting += left >= pod.gpu_milli ? 1 : 0;
        too_little += left < pod.gpu_milli ? left : 0;
      }
      if (fitting >= pod.gpus) of_no_use = too_little;
    }
    out += pod.share * of_no_use;
  }
  return out;
}

}  // namespace lockstep
