/// Fills a cluster with pods that come in a drawn order and never leave, under each of several
/// policies: how many of its GPUs are allocated by the time so many have been asked for. The
/// experiment of FGD (Weng et al. 2023, USENIX ATC, section 6).
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

#include "sim/scenario/filling_spec.hpp"

namespace lockstep {

/// Shares of the cluster's GPUs that are asked for in a series: 5 %, 10 %, ...
constexpr double kFillingStep = 0.05;

/// One order of arrival under one policy.
struct FilledCluster {
  double allocated = 0;   ///< share of all GPUs when FillingSpec::at has been asked for
  double fragmented = 0;  ///< share of all GPUs that is free then and of no use to typical pods
  std::vector<double> series;  ///< `allocated` at each kFillingStep up to FillingSpec::until
  std::size_t placed = 0, refused = 0;  ///< pods, in the end
};

struct PolicyFilling {
  FillingPolicy policy = FillingPolicy::random;
  std::vector<FilledCluster> by_seed;
  FilledCluster mean;                        ///< without its pods, which are those below
  double placed_pods = 0, refused_pods = 0;  ///< means
  double least = 0, most = 0;                ///< `allocated`, of all seeds
};

struct FillingResult {
  std::vector<PolicyFilling> policies;  ///< in the order of FillingSpec::policies
  std::size_t nodes = 0, gpus = 0;      ///< of the cluster
  std::size_t pods = 0;                 ///< of the workload
  double workload = 0;                  ///< what it asks for, over the cluster's GPUs
  std::size_t typical = 0;              ///< requests that fragments are reckoned by
  bool stopped = false;                 ///< somebody stopped it: only whole policies are there
};

/// Every policy meets the same orders: the workload's pods shuffled, then pods drawn from it one by
/// one, until the next would ask for more than FillingSpec::until of the GPUs. What is allocated at
/// a share is the mean over arrivals within half a percent of the GPUs of it, as FGD's analysis has
/// it; where no pod arrives there, what is allocated before. `go_on` is told of ended and of all
/// fillings; false stops.
FillingResult fill_cluster(const FillingSpec& spec,
                           const std::function<bool(std::size_t, std::size_t)>& go_on = {});

}  // namespace lockstep
