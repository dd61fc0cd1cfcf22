/// Nodes whose GPUs are shared by pods, and where each of FGD's policies puts the next pod.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/cluster/gpu_fragments.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/filling_spec.hpp"

namespace lockstep {

/// A node with what its pods have left of it.
struct SharedNode {
  std::int64_t cpu_milli = 0, memory_mib = 0;
  std::vector<int> gpu_milli;  ///< left of each GPU
  int model = 0;               ///< number of its GPUs' model
  std::vector<int> widths;     ///< GPUs of its pods, each number once; 0: a share of one
  std::uint32_t changes = 0;   ///< pods that were put on it
};

/// A cluster that is filled under one policy; nobody leaves. Nodes are looked at in the order in
/// which they were given: of equal scores the first one wins, as in FGD's simulator.
///
/// Scores are whole numbers from 0 to 100, cut, as Kubernetes has them; the highest wins. CPUs and
/// GPUs are counted as shares of the largest node's.
///   dot_product     100 (1 - (left CPUs x CPUs + left GPUs x GPUs) / 2)
///   gpu_clustering  in quarters, and in each the fuller the better: only pods of as many GPUs,
///                   also others, an empty node, only others; 0 without a GPU
///   gpu_packing     on GPUs in use: 100 less a tenth of the per cent free of these, 50 at least;
///                   idle GPUs of a node in use: 50 less their number, 33 at least; an idle node:
///                   33 less its GPUs, or their number
///   best_fit        100 (1 - (CPUs left behind + GPUs left behind) / 2)
///   fgd             100 / (1 + exp(growth of fragments in GPUs)), of a share on the best GPU
/// Source: github:hkust-adsl/kubernetes-scheduler-simulator@8f3d641, pkg/simulator/plugin.
class SharedGpuNodes {
 public:
  /// `nodes` in the order that decides between equals. All of the spec but its order must outlive
  /// this. Requires the typical pods of policy fgd alone.
  SharedGpuNodes(std::vector<SharedNode> nodes, std::span<const PodShape> pods,
                 std::span<const std::string> models, std::span<const TypicalPod> typical,
                 FillingPolicy policy);

  /// Puts a pod of this shape (a number) where the policy wants it; the node's number, or nothing
  /// where no node has room. `draws` is for the policy random alone.
  std::optional<std::size_t> place(std::size_t shape, RandomStream& draws);

  [[nodiscard]] std::span<const SharedNode> nodes() const { return nodes_; }
  /// Thousandths of GPUs that pods hold.
  [[nodiscard]] std::int64_t held_milli() const { return held_milli_; }
  [[nodiscard]] std::int64_t gpus() const { return gpus_; }

 private:
  struct Scored {
    std::uint32_t changes = 0;
    std::int16_t score = -1;  ///< below 0: not scored yet
  };

  [[nodiscard]] bool fits(const SharedNode& node, std::size_t shape) const;
  [[nodiscard]] int score(const SharedNode& node, const PodShape& pod) const;
  [[nodiscard]] int clustering_score(const SharedNode& node, const PodShape& pod) const;
  [[nodiscard]] int fragment_score(const SharedNode& node, const PodShape& pod,
                                   std::size_t& gpu) const;
  [[nodiscard]] int scored(std::size_t node, std::size_t shape);
  [[nodiscard]] std::size_t shared_gpu(const SharedNode& node, const PodShape& pod,
                                       RandomStream& draws) const;
  void put(SharedNode& node, const PodShape& pod, RandomStream& draws);

  std::vector<SharedNode> nodes_;
  std::span<const PodShape> pods_;
  std::span<const TypicalPod> typical_;
  FillingPolicy policy_;
  std::vector<std::vector<bool>> accepts_;          ///< by shape, then by model
  std::vector<std::vector<Scored>> scores_;         ///< by shape, then by node
  std::vector<std::size_t> candidates_;             ///< random: nodes with room
  double most_cpu_milli_ = 1, most_gpu_milli_ = 1;  ///< of the largest node
  std::int64_t held_milli_ = 0, gpus_ = 0;
};

}  // namespace lockstep
