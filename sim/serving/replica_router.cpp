#include "sim/serving/replica_router.hpp"

#include <algorithm>
#include <cassert>

namespace lockstep {
namespace {

// A router by held prompts avoids a replica that has more than kUneven times the requests of the
// least loaded one and kUnevenRequests more (assumed; SGLang's router has 1.5 and 64).
constexpr double kUneven = 1.5, kUnevenRequests = 8;

}  // namespace

/// Replicas of equal load take turns.
std::uint32_t ReplicaRouter::least_loaded(bool decoding, std::span<const std::uint32_t> up,
                                          std::span<const std::uint32_t> loads) {
  std::size_t best = turn_[decoding] % up.size();
  for (std::size_t i = 1, other = best; i < up.size(); ++i) {
    if (++other == up.size()) other = 0;
    if (loads[up[other]] < loads[up[best]]) best = other;
  }
  turn_[decoding] = best + 1;
  return up[best];
}

/// The replica that holds most of the prompt, unless others have far less to do.
std::uint32_t ReplicaRouter::longest_held(const ServedRequest& request,
                                          std::span<const std::uint32_t> up,
                                          std::span<const std::uint32_t> loads,
                                          const std::vector<ReplicaQueue>& replicas) {
  std::uint32_t best = least_loaded(false, up, loads);
  const double most = kUneven * loads[best] + kUnevenRequests;
  std::int64_t found = replicas[best].found_of(request);
  for (const std::uint32_t r : up) {
    if (loads[r] > most) continue;
    const std::int64_t here = replicas[r].found_of(request);
    if (here > found || (here == found && here > 0 && loads[r] < loads[best])) {
      best = r;
      found = here;
    }
  }
  return best;
}

/// The least loaded replica whose GPUs hold the request's adapter, unless others have far less to
/// do.
std::uint32_t ReplicaRouter::with_adapter(const ServedRequest& request, bool decoding,
                                          std::span<const std::uint32_t> up,
                                          std::span<const std::uint32_t> loads,
                                          const std::vector<ReplicaQueue>& replicas) {
  const std::uint32_t least = least_loaded(decoding, up, loads);
  if (request.adapter < 0 || replicas[least].has_adapter(request.adapter)) return least;
  const double most = kUneven * loads[least] + kUnevenRequests;
  std::uint32_t best = least;
  for (const std::uint32_t r : up) {
    if (loads[r] > most || !replicas[r].has_adapter(request.adapter)) continue;
    if (best == least || loads[r] < loads[best]) best = r;
  }
  return best;
}

/// The replica that had the turn before, while it is up.
std::uint32_t ReplicaRouter::where_it_was(const ServedRequest& request,
                                          std::span<const std::uint32_t> up,
                                          std::span<const std::uint32_t> loads) {
  const auto before = static_cast<std::uint32_t>(request.replica);
  const bool there = request.replica >= 0 && std::ranges::binary_search(up, before);
  return there ? before : least_loaded(false, up, loads);
}

/// The replica with the fewest tokens: those of prompts that it has to compute, this one's too, and
/// those that its cache holds for sequences, as NVIDIA Dynamo's router adds prefill and decode
/// blocks up (github:ai-dynamo/dynamo:docs/router, weight 1). A pool that decodes computes none.
std::uint32_t ReplicaRouter::least_cost(const ServedRequest& request, bool decoding,
                                        std::span<const std::uint32_t> up,
                                        std::span<const std::uint32_t> loads,
                                        const std::vector<ReplicaQueue>& replicas) {
  const auto cost = [&](std::uint32_t r) {
    const ReplicaQueue& replica = replicas[r];
    const std::int64_t found = decoding ? 0 : replica.found_of(request);
    return replica.waiting_tokens() + replica.held_tokens() - found;
  };
  std::uint32_t best = least_loaded(decoding, up, loads);
  std::int64_t least = cost(best);
  for (const std::uint32_t r : up) {
    const std::int64_t here = cost(r);
    if (here >= least) continue;
    best = r;
    least = here;
  }
  return best;
}

std::uint32_t ReplicaRouter::choose(const ServedRequest& request, bool decoding,
                                    std::span<const std::uint32_t> up,
                                    std::span<const std::uint32_t> loads,
                                    const std::vector<ReplicaQueue>& replicas) {
  assert(!up.empty());
  if (up.size() == 1) return up[0];
  const auto drawn = [&] { return up[random_.below(static_cast<std::uint32_t>(up.size()))]; };
  switch (kind_) {
    case ServingRouter::random:
      return drawn();
    case ServingRouter::power_of_two: {
      const std::uint32_t a = drawn(), b = drawn();
      return loads[b] < loads[a] ? b : a;
    }
    case ServingRouter::least_loaded:
      return least_loaded(decoding, up, loads);
    case ServingRouter::prefix_aware:
      return decoding ? least_loaded(decoding, up, loads)
                      : longest_held(request, up, loads, replicas);
    case ServingRouter::session:
      return decoding ? least_loaded(decoding, up, loads) : where_it_was(request, up, loads);
    case ServingRouter::cost:
      return least_cost(request, decoding, up, loads, replicas);
    case ServingRouter::adapter_aware:
      return with_adapter(request, decoding, up, loads, replicas);
    case ServingRouter::round_robin:
      break;
  }
  return up[turn_[decoding]++ % up.size()];
}

}  // namespace lockstep
