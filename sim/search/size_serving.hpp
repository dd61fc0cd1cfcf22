/// The least GPUs that serve a load within its objectives, on one pool or on two.
#pragma once

#include <string>
#include <vector>

#include "sim/search/serving_layouts.hpp"
#include "sim/search/serving_trials.hpp"

namespace lockstep {

/// The way of serving that takes least GPUs; of equals the one whose requests take less time.
struct SizedService {
  bool possible = false;
  ServingTrial best;            ///< where it is possible
  int layouts = 0, trials = 0;  ///< looked at
  bool interrupted = false;
};

/// Replicas of one layout each, up to the GPUs of the cluster.
SizedService size_one_pool(const ServingTrials& trials, const std::vector<ServingPool>& layouts);

/// A pool for prompts and one that decodes. As prompts never wait for decoding, their pool is sized
/// first, by the time to the first token (or that to the last one) of requests that end with it;
/// then the other, for the whole load. Each layout for prompts is tried, since the one that takes
/// least may leave decoding too little time.
SizedService size_two_pools(const ServingTrials& trials, const std::vector<ServingPool>& layouts);

/// How GPUs fail, and how sure it must be that enough replicas are up.
struct ServingFailures {
  Seconds gpu_mean_time{};  ///< of a GPU between failures; a replica is down with any of its GPUs
  Seconds repair{};
  double share = 0.999;  ///< of the time
};
/// How much of the time enough replicas of a pool with so many spares are up: of n + s at most s
/// are down, where each is down by itself for repair / (repair + mean time / GPUs).
double share_up(const ServingPool& pool, int spares, const ServingFailures& failures);
/// Spare replicas of each pool, with the least GPUs: all pools have enough replicas up in the share
/// of the time, which is the product of theirs. Requires one pool or two.
std::vector<int> spare_replicas(const std::vector<ServingPool>& pools,
                                const ServingFailures& failures);

}  // namespace lockstep
