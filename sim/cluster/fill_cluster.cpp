#include "sim/cluster/fill_cluster.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "sim/cluster/gpu_fragments.hpp"
#include "sim/cluster/shared_gpu_nodes.hpp"
#include "sim/core/random.hpp"

namespace lockstep {
namespace {

enum class FillingDraw : std::uint32_t { nodes = 1, pods, more, policy };

RandomStream filling_stream(std::uint64_t seed, FillingDraw purpose) {
  return RandomStream({.seed = seed, .purpose = static_cast<std::uint32_t>(purpose)});
}

template <class Of>
void shuffle_by(RandomStream draws, std::vector<Of>& all) {
  for (std::size_t left = all.size(); left > 1; --left) {
    std::swap(all[left - 1], all[draws.below(static_cast<std::uint32_t>(left))]);
  }
}

/// What all fillings of a spec have in common.
struct FillingGround {
  std::vector<std::string> models;
  std::vector<SharedNode> nodes;
  std::vector<std::uint32_t> workload;  ///< shapes of its pods
  std::vector<TypicalPod> typical;
  std::int64_t gpus = 0;
};

FillingGround ground_of(const FillingSpec& spec) {
  FillingGround out;
  std::map<std::string, int> numbers;
  for (const NodeShape& shape : spec.nodes) {
    const auto [at, is_new] = numbers.emplace(shape.gpu_model, static_cast<int>(numbers.size()));
    if (is_new) out.models.push_back(shape.gpu_model);
    const SharedNode node{
        .cpu_milli = shape.cpu_milli,
        .memory_mib = shape.memory_mib,
        .gpu_milli = std::vector<int>(static_cast<std::size_t>(shape.gpus), kGpuMilli),
        .model = at->second,
        .widths = {}};
    out.nodes.insert(out.nodes.end(), static_cast<std::size_t>(shape.count), node);
    out.gpus += std::int64_t{shape.count} * shape.gpus;
  }
  for (std::size_t shape = 0; shape < spec.pods.size(); ++shape) {
    out.workload.insert(out.workload.end(), static_cast<std::size_t>(spec.pods[shape].count),
                        static_cast<std::uint32_t>(shape));
  }
  out.typical = typical_pods(spec.pods, out.models, spec.typical);
  return out;
}

/// Shapes of pods in the order of their arrival.
std::vector<std::uint32_t> arrivals_of(const FillingSpec& spec, const FillingGround& ground,
                                       std::uint64_t seed) {
  const double most = spec.until * kGpuMilli * static_cast<double>(ground.gpus);
  std::vector<std::uint32_t> out = ground.workload;
  shuffle_by(filling_stream(seed, FillingDraw::pods), out);
  RandomStream more = filling_stream(seed, FillingDraw::more);
  double asked = 0;
  for (std::size_t next = 0;; ++next) {
    if (next == out.size()) {
      out.push_back(
          ground.workload[more.below(static_cast<std::uint32_t>(ground.workload.size()))]);
    }
    asked += spec.pods[out[next]].total_milli();
    if (asked <= most) continue;
    out.resize(next);
    return out;
  }
}

/// Means of the allocated share near each of several rising shares of GPUs asked for.
class AllocationSeries {
 public:
  explicit AllocationSeries(std::vector<double> at) : at_(std::move(at)), out_(at_.size()) {}

  /// Adds an arrival; both arguments are shares of all GPUs.
  void add(double asked, double allocated) {
    constexpr double kHalfPercent = 0.005 * (1 + 1e-9);
    for (std::size_t i = 0; i < at_.size(); ++i) {
      Near& near = out_[i];
      if (asked <= at_[i]) near.before = allocated;
      if (std::abs(asked - at_[i]) > kHalfPercent) continue;
      near.sum += allocated;
      ++near.arrivals;
    }
  }
  [[nodiscard]] double of(std::size_t i) const {
    const Near& near = out_[i];
    return near.arrivals == 0 ? near.before : near.sum / near.arrivals;
  }

 private:
  struct Near {
    double sum = 0, before = 0;
    int arrivals = 0;
  };
  std::vector<double> at_;
  std::vector<Near> out_;
};

/// The share of the answer, then 5 %, 10 %, ...
std::vector<double> shares_read(const FillingSpec& spec) {
  std::vector<double> out{spec.at};
  const auto steps = static_cast<int>(std::floor(spec.until / kFillingStep + 1e-9));
  for (int step = 1; step <= steps; ++step) out.push_back(step * kFillingStep);
  return out;
}

double fragmented_share(const SharedGpuNodes& cluster, const FillingGround& ground) {
  double milli = 0;
  for (const SharedNode& node : cluster.nodes()) {
    milli += fragments({node.cpu_milli, node.gpu_milli, node.model}, ground.typical);
  }
  return milli / kGpuMilli / static_cast<double>(ground.gpus);
}

FilledCluster filled_once(const FillingSpec& spec, const FillingGround& ground,
                          FillingPolicy policy, std::uint64_t seed) {
  std::vector<SharedNode> nodes = ground.nodes;
  shuffle_by(filling_stream(seed, FillingDraw::nodes), nodes);
  SharedGpuNodes cluster(std::move(nodes), spec.pods, ground.models, ground.typical, policy);
  RandomStream draws = filling_stream(seed, FillingDraw::policy);
  const double all = kGpuMilli * static_cast<double>(ground.gpus);
  const std::vector<double> shares = shares_read(spec);
  AllocationSeries series(shares);
  FilledCluster out;
  std::int64_t asked = 0;
  bool read = false;
  for (const std::uint32_t shape : arrivals_of(spec, ground, seed)) {
    asked += spec.pods[shape].total_milli();
    const double share = static_cast<double>(asked) / all;
    if (!read && share > spec.at) {
      out.fragmented = fragmented_share(cluster, ground);
      read = true;
    }
    ++(cluster.place(shape, draws) ? out.placed : out.refused);
    series.add(share, static_cast<double>(cluster.held_milli()) / all);
  }
  if (!read) out.fragmented = fragmented_share(cluster, ground);
  out.allocated = series.of(0);
  for (std::size_t i = 1; i < shares.size(); ++i) out.series.push_back(series.of(i));
  return out;
}

void summarise_seeds(PolicyFilling& of) {
  const auto mean = [&](const auto& value) {
    double sum = 0;
    for (const FilledCluster& one : of.by_seed) sum += value(one);
    return sum / static_cast<double>(of.by_seed.size());
  };
  of.mean.allocated = mean([](const FilledCluster& one) { return one.allocated; });
  of.mean.fragmented = mean([](const FilledCluster& one) { return one.fragmented; });
  for (std::size_t i = 0; i < of.by_seed.front().series.size(); ++i) {
    of.mean.series.push_back(mean([i](const FilledCluster& one) { return one.series[i]; }));
  }
  const auto [least, most] =
      std::ranges::minmax(of.by_seed, {}, [](const FilledCluster& one) { return one.allocated; });
  of.least = least.allocated;
  of.most = most.allocated;
  of.placed_pods = mean([](const FilledCluster& one) { return static_cast<double>(one.placed); });
  of.refused_pods = mean([](const FilledCluster& one) { return static_cast<double>(one.refused); });
}

}  // namespace

FillingResult fill_cluster(const FillingSpec& spec,
                           const std::function<bool(std::size_t, std::size_t)>& go_on) {
  const FillingGround ground = ground_of(spec);
  FillingResult out;
  out.nodes = ground.nodes.size();
  out.gpus = static_cast<std::size_t>(ground.gpus);
  out.pods = ground.workload.size();
  out.typical = ground.typical.size();
  for (const PodShape& pod : spec.pods) {
    out.workload += static_cast<double>(pod.count) * pod.total_milli();
  }
  out.workload /= kGpuMilli * static_cast<double>(ground.gpus);
  const auto seeds = static_cast<std::size_t>(spec.seeds);
  std::size_t done = 0;
  for (const FillingPolicy policy : spec.policies) {
    PolicyFilling of{.policy = policy, .by_seed = {}, .mean = {}};
    for (std::size_t s = 0; s < seeds; ++s) {
      if (go_on && !go_on(done++, seeds * spec.policies.size())) {
        out.stopped = true;
        return out;
      }
      of.by_seed.push_back(
          filled_once(spec, ground, policy, static_cast<std::uint64_t>(spec.seed) + s));
    }
    summarise_seeds(of);
    out.policies.push_back(std::move(of));
  }
  return out;
}

}  // namespace lockstep
