/// Finds how the GPUs of a service serve its load best: one pool or two, the layout of a replica,
/// what its passes take.
///
/// Layouts first, with the engine's own passes: one pool of each, and two with an eighth to three
/// quarters of the GPUs for prompts. The best of them are then tried with other passes, and with a
/// replica more or less for prompts. Where its pools are on nodes of two kinds: prompts on one and
/// decoding on the other, either way round, each on as many GPUs of its kind as the scenario's
/// pools have. A way is given up when it does not keep what the best so far do, so most take one
/// simulation. Ways are tried in rounds of a fixed size: the answer is the same on any number of
/// threads.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

#include "sim/search/serving_layouts.hpp"
#include "sim/search/serving_trials.hpp"

namespace lockstep {

/// What makes a way better.
enum class ServingGoal : std::uint8_t {
  goodput,     ///< requests a second that it takes while all objectives are kept
  throughput,  ///< output tokens a second
};
constexpr std::array<std::string_view, 2> kServingGoalNames{"goodput", "throughput"};

struct ServingTuneOptions {
  ServingSpace space{};
  bool one_pool = true, two_pools = true;
  ServingGoal goal = ServingGoal::goodput;
  std::size_t keep = 10;
  int threads = 0;  ///< 0: one per core
  std::function<bool()> interrupted{};
  std::function<void(std::size_t done, std::size_t most)> progress{};
};

struct TunedService {
  ServingTrial trial;  ///< at the greatest rate, where that is what is looked for
  double score = 0;    ///< by the goal; 0: it keeps the objectives at no rate
};

struct ServingTune {
  std::vector<TunedService> best;    ///< the best first, at most `keep`; empty: none serves at all
  std::vector<TunedService> by_own;  ///< the scenario's own way, if its layouts can serve
  int gpus = 0;
  FoundLayouts layouts;
  std::size_t ways = 0;
  int trials = 0;
  bool interrupted = false;
};

/// Of `base` it takes model, cluster, load and objectives, and as many GPUs as its pools have. For
/// `goodput` of requests that come by themselves their times are scaled, and their number grows
/// until the load is steady (ServingTrials::run_steady()); of clients in a closed
/// loop it is what they get.
ServingTune tune_serving(const ServingSpec& base, const ServingTuneOptions& options);

/// Requests a second of the load: of draws what the scenario says, which any number of them is
/// drawn for, of a trace what it has; 0: they do not come by themselves.
double arrival_rate(const ServingSpec& spec);

}  // namespace lockstep
