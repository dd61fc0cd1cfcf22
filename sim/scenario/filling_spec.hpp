/// What a document with "filling" says: nodes of any kinds, the requests of a workload, and the
/// policies under which a cluster is filled with them. read_filling.hpp makes it from JSON,
/// sim/cluster/fill_cluster.hpp fills.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// A GPU in thousandths, the unit in which a share of it is asked for and granted.
constexpr int kGpuMilli = 1000;
constexpr int kMostNodeGpus = 64;

/// Which node a pod goes on, and which GPU of it: the six that FGD (Weng et al. 2023, USENIX ATC)
/// compares, by the rules of its simulator. fill_cluster.hpp has their scores.
enum class FillingPolicy : std::uint8_t {
  random,          ///< any node with room
  dot_product,     ///< where requests and what is left point apart (Tetris, Grandl et al. 2014)
  gpu_clustering,  ///< beside pods of as many GPUs (Gandiva, Xiao et al. 2018)
  gpu_packing,     ///< on GPUs in use, else on nodes in use (MLaaS, Weng et al. 2022)
  best_fit,  ///< where least is left, CPUs and GPUs weighed alike (Protean, Hadary et al. 2020)
  fgd,       ///< where fragments grow least: fragmentation gradient descent
};
constexpr std::array<std::string_view, 6> kFillingPolicyNames{
    "random", "dot_product", "gpu_clustering", "gpu_packing", "best_fit", "fgd"};

/// Nodes that are alike.
struct NodeShape {
  int count = 1;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  int gpus = 0;           ///< at most kMostNodeGpus
  std::string gpu_model;  ///< empty: nobody can ask for it by name

  friend auto operator<=>(const NodeShape&, const NodeShape&) = default;
};

/// Pods that ask for the same.
struct PodShape {
  int count = 1;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  int gpus = 0;
  int gpu_milli = 0;  ///< of each of its GPUs; below kGpuMilli of a single one alone
  std::vector<std::string> gpu_models;  ///< any of these; empty: any at all

  [[nodiscard]] bool shares() const { return gpus == 1 && gpu_milli < kGpuMilli; }
  [[nodiscard]] int total_milli() const { return gpus * gpu_milli; }
  friend auto operator<=>(const PodShape&, const PodShape&) = default;
};

struct FillingSpec {
  std::string file, about;
  std::vector<FillingPolicy> policies;
  std::vector<NodeShape> nodes;  ///< sorted, each shape once
  std::vector<PodShape> pods;    ///< sorted, each shape once: the workload
  double until = 1.3;            ///< pods come until they have asked for so many of the GPUs
  double at = 1;                 ///< where the answer is read, as a share of the GPUs
  double typical = 0.95;         ///< share of the pods whose requests fragments are reckoned by
  int seeds = 10;                ///< orders of arrival
  int seed = 1;                  ///< of the first; each that follows has the next
  std::vector<std::string> assumptions{};
};

}  // namespace lockstep
