#include "sim/cluster/shared_gpu_nodes.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace lockstep {
namespace {

constexpr int kTopScore = 100;

int free_milli(const SharedNode& node) {
  return std::accumulate(node.gpu_milli.begin(), node.gpu_milli.end(), 0);
}

/// The width that groups pods of a kind: 0 for pods that share a GPU.
int width_of(const PodShape& pod) { return pod.shares() ? 0 : pod.gpus; }

/// Scores a node by what is left of its GPUs: the fullest that suffice come first.
int packing_score(const SharedNode& node, const PodShape& pod) {
  constexpr int kNodeInUse = kTopScore / 2, kIdleNode = kTopScore / 3, kTenth = 10;
  if (pod.gpus == 0) return 0;
  const auto idle = static_cast<int>(std::ranges::count(node.gpu_milli, kGpuMilli));
  if (idle == std::ssize(node.gpu_milli)) return std::max(kIdleNode - idle, idle);
  std::vector<int> left = node.gpu_milli;
  std::ranges::sort(left);
  const auto first = std::ranges::lower_bound(left, pod.gpu_milli);
  int idle_taken = 0, free_percent = 0;
  for (auto gpu = first; gpu < first + pod.gpus; ++gpu) {
    idle_taken += *gpu == kGpuMilli ? 1 : 0;
    free_percent += *gpu * kTopScore / kGpuMilli;
  }
  if (idle_taken > 0) return std::max(kNodeInUse - idle_taken, kIdleNode);
  return std::max(kTopScore - free_percent / kTenth, kNodeInUse);
}

/// The fullest GPU that alone has room for the request.
std::size_t fullest_gpu(const SharedNode& node, int milli) {
  std::size_t best = node.gpu_milli.size();
  for (std::size_t g = 0; g < node.gpu_milli.size(); ++g) {
    const int left = node.gpu_milli[g];
    if (left >= milli && (best == node.gpu_milli.size() || left < node.gpu_milli[best])) best = g;
  }
  return best;
}

}  // namespace

SharedGpuNodes::SharedGpuNodes(std::vector<SharedNode> nodes, std::span<const PodShape> pods,
                               std::span<const std::string> models,
                               std::span<const TypicalPod> typical, FillingPolicy policy)
    : nodes_(std::move(nodes)), pods_(pods), typical_(typical), policy_(policy) {
  for (const SharedNode& node : nodes_) {
    most_cpu_milli_ = std::max(most_cpu_milli_, static_cast<double>(node.cpu_milli));
    most_gpu_milli_ = std::max(most_gpu_milli_, static_cast<double>(free_milli(node)));
    gpus_ += std::ssize(node.gpu_milli);
  }
  for (const PodShape& pod : pods_) {
    auto& accepts = accepts_.emplace_back();
    for (const std::string& model : models) accepts.push_back(accepts_model(pod, model));
  }
  const std::size_t kept = policy_ == FillingPolicy::random ? 0 : nodes_.size();
  scores_.assign(pods_.size(), std::vector<Scored>(kept));
}

bool SharedGpuNodes::fits(const SharedNode& node, std::size_t shape) const {
  const PodShape& pod = pods_[shape];
  if (node.cpu_milli < pod.cpu_milli || node.memory_mib < pod.memory_mib) return false;
  if (pod.gpus == 0) return true;
  if (!accepts_[shape][static_cast<std::size_t>(node.model)]) return false;
  const auto will_do = [&](int left) { return left >= pod.gpu_milli; };
  return std::ranges::count_if(node.gpu_milli, will_do) >= pod.gpus;
}

int SharedGpuNodes::clustering_score(const SharedNode& node, const PodShape& pod) const {
  constexpr int kQuarter = kTopScore / 4;
  if (pod.gpus == 0) return 0;
  const auto fuller =
      static_cast<int>(kQuarter * (most_gpu_milli_ - free_milli(node)) / most_gpu_milli_);
  if (node.widths.empty()) return kQuarter + fuller;
  if (std::ranges::count(node.widths, width_of(pod)) == 0) return fuller;
  return (node.widths.size() == 1 ? 3 : 2) * kQuarter + fuller;
}

/// Also on which GPU a share does least harm.
int SharedGpuNodes::fragment_score(const SharedNode& node, const PodShape& pod,
                                   std::size_t& gpu) const {
  std::array<int, kMostNodeGpus> room{};
  std::ranges::copy(node.gpu_milli, room.begin());
  const std::span<const int> left(room.data(), node.gpu_milli.size());
  const double before = fragments({node.cpu_milli, left, node.model}, typical_);
  const auto of_growth = [&] {
    const double after = fragments({node.cpu_milli - pod.cpu_milli, left, node.model}, typical_);
    return static_cast<int>(kTopScore / (1 + portable_exp((after - before) / kGpuMilli)));
  };
  if (!pod.shares()) {
    int missing = pod.gpus;
    for (std::size_t g = 0; g < left.size() && missing > 0; ++g) {
      if (room[g] != kGpuMilli) continue;
      room[g] = 0;
      --missing;
    }
    return of_growth();
  }
  int best = -1;
  for (std::size_t g = 0; g < left.size(); ++g) {
    // Another GPU with as much left would score the same, and the first one wins.
    if (room[g] < pod.gpu_milli || std::ranges::count(left.first(g), room[g]) > 0) continue;
    room[g] -= pod.gpu_milli;
    if (const int score = of_growth(); score > best) {
      best = score;
      gpu = g;
    }
    room[g] += pod.gpu_milli;
  }
  return best;
}

int SharedGpuNodes::score(const SharedNode& node, const PodShape& pod) const {
  const double cpus_left = static_cast<double>(node.cpu_milli) / most_cpu_milli_;
  const double gpus_left = free_milli(node) / most_gpu_milli_;
  const double cpus = static_cast<double>(pod.cpu_milli) / most_cpu_milli_;
  const double gpus = pod.total_milli() / most_gpu_milli_;
  std::size_t gpu = 0;
  switch (policy_) {
    case FillingPolicy::random:
      break;
    case FillingPolicy::dot_product:
      return static_cast<int>(kTopScore * (1 - (cpus_left * cpus + gpus_left * gpus) / 2));
    case FillingPolicy::gpu_clustering:
      return clustering_score(node, pod);
    case FillingPolicy::gpu_packing:
      return packing_score(node, pod);
    case FillingPolicy::best_fit:
      return static_cast<int>(kTopScore * (1 - (cpus_left - cpus + gpus_left - gpus) / 2));
    case FillingPolicy::fgd:
      return fragment_score(node, pod, gpu);
  }
  return 0;
}

/// A score is kept until its node changes.
int SharedGpuNodes::scored(std::size_t node, std::size_t shape) {
  Scored& kept = scores_[shape][node];
  if (kept.score < 0 || kept.changes != nodes_[node].changes) {
    kept.score = static_cast<std::int16_t>(score(nodes_[node], pods_[shape]));
    kept.changes = nodes_[node].changes;
  }
  return kept.score;
}

std::optional<std::size_t> SharedGpuNodes::place(std::size_t shape, RandomStream& draws) {
  std::optional<std::size_t> best;
  int best_score = -1;
  candidates_.clear();
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    if (!fits(nodes_[n], shape)) continue;
    if (policy_ == FillingPolicy::random) {
      candidates_.push_back(n);
    } else if (const int score = scored(n, shape); score > best_score) {
      best_score = score;
      best = n;
    }
  }
  if (!candidates_.empty()) {
    best = candidates_[draws.below(static_cast<std::uint32_t>(candidates_.size()))];
  }
  if (best) put(nodes_[*best], pods_[shape], draws);
  return best;
}

std::size_t SharedGpuNodes::shared_gpu(const SharedNode& node, const PodShape& pod,
                                       RandomStream& draws) const {
  std::size_t gpu = 0;
  if (policy_ == FillingPolicy::fgd) {
    (void)fragment_score(node, pod, gpu);
    return gpu;
  }
  if (policy_ != FillingPolicy::random) return fullest_gpu(node, pod.gpu_milli);
  const auto will_do = [&](int left) { return left >= pod.gpu_milli; };
  const auto able = static_cast<std::uint32_t>(std::ranges::count_if(node.gpu_milli, will_do));
  std::uint32_t before = draws.below(able);
  while (!will_do(node.gpu_milli[gpu]) || before-- > 0) ++gpu;
  return gpu;
}

void SharedGpuNodes::put(SharedNode& node, const PodShape& pod, RandomStream& draws) {
  if (pod.shares()) {
    node.gpu_milli[shared_gpu(node, pod, draws)] -= pod.gpu_milli;
  } else {
    int missing = pod.gpus;
    for (int& left : node.gpu_milli) {
      if (missing == 0) break;
      if (left != kGpuMilli) continue;
      left = 0;
      --missing;
    }
  }
  node.cpu_milli -= pod.cpu_milli;
  node.memory_mib -= pod.memory_mib;
  const int width = width_of(pod);
  if (pod.gpus > 0 && std::ranges::count(node.widths, width) == 0) node.widths.push_back(width);
  ++node.changes;
  held_milli_ += pod.total_milli();
}

}  // namespace lockstep
