/// Requests served by one pool of replicas, or by a pool that works on prompts and one that
/// decodes: arrivals, a router, passes, transfers of keys and values between the pools.
///
/// Replicas may fail: their requests are computed again elsewhere, tokens that users have stay
/// theirs. In an instant passes and transfers end first, then replicas fail and come back, then
/// requests arrive, then idle replicas begin passes; equals in the order in which they were
/// scheduled. So the same input gives the same bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sim/scenario/serving_spec.hpp"
#include "sim/serving/pass_bins.hpp"
#include "sim/serving/region_router.hpp"
#include "sim/serving/replica_lives.hpp"
#include "sim/serving/replica_queue.hpp"

namespace lockstep {

struct PoolPlan {
  ReplicaRules rules;
  PassClock* clock = nullptr;
  int replicas = 1;
  ReplicaLife life{};
  std::optional<AdapterRules> adapters{};
  Bytes room{};  ///< for adapters, on a GPU
};

/// Keys and values of a prompt on their way to the pool that decodes. Where no flows are given, a
/// replica that worked on prompts sends one after the other, each as if nothing else were on the
/// way: with L layers of which each goes as soon as it is there, B bytes at rate r and a prompt
/// that was worked on for p, max(B / (r L), B / r - p (L - 1) / L) after it; else B / r.
struct TransferPlan {
  Bytes per_token;
  BytesPerSecond rate;  ///< out of a replica; 0: nothing takes time
  Seconds latency;      ///< of each
  int layers = 0;       ///< that go one by one while later ones are worked on; 0: all afterwards
};

/// Which requests are turned away (sim/scenario/serving_admission.hpp).
struct AdmissionPlan {
  std::int64_t most_waiting = 0;  ///< a replica with so many waiting is busy; 0: none is
  double most_cache = 0;          ///< one with more of its cache in use is; 0: none is
  std::vector<bool> may_shed{};   ///< by population; empty: all
  RunTime patience = 0;           ///< of users whose requests wait; 0: they wait
  RunTime retry_after = 0;        ///< of a closed-loop client that was turned away

  [[nodiscard]] bool limits() const { return most_waiting > 0 || most_cache > 0; }
  [[nodiscard]] bool sheds(const ServedRequest& request) const {
    return may_shed.empty() || may_shed[static_cast<std::size_t>(request.population)];
  }
};

struct ServePlan {
  PoolPlan serving;  ///< or the pool for prompts, where `decoding` has replicas
  PoolPlan decoding{{}, nullptr, 0};
  TransferPlan transfer;
  std::optional<TierPlan> tiers;  ///< behind the caches of the pool that works on prompts
  /// Of the pool that decodes: where sequences go that leave a full cache.
  std::optional<TierPlan> decoding_tiers{};
  ServingRouter router = ServingRouter::round_robin;
  AdmissionPlan admission{};
  RegionPlan regions{};  ///< of the replicas; none: the service is in one place
  int clients = 0;       ///< closed loop: each sends its next request when its last one has ended;
                         ///< 0: requests arrive when they say
  std::size_t coming = 0;    ///< requests that come by themselves, the first ones; 0: all
  RunTime think = 0;         ///< of a client between them
  RunTime detect = 0;        ///< from a replica's death until its requests are sent to others
  RunTime request_host = 0;  ///< from a request to the replica's queue
  RunTime handover = 0;      ///< from the end of a transfer to the decoding replica's queue
  std::uint64_t seed = 1;
};

struct PoolAccount {
  ServingPass busy;  ///< of all replicas together
  std::int64_t passes = 0, preempted = 0;
  double fullest = 0;           ///< share of a replica's cache
  IntervalHistogram intervals;  ///< between the tokens of a request
  PassBins over_time;
  RunTime down = 0, off = 0;  ///< of all replicas: broken; switched off
  TierAccount tiers;
  AdapterAccount adapters;
};

struct ServeResult {
  RunTime end = 0;  ///< of the last request
  PoolAccount serving, decoding;
  std::vector<PoolAccount> regions{};  ///< the replicas of each, where there are regions
  std::int64_t refused = 0;            ///< would not fit in an empty cache
  std::int64_t shed = 0;               ///< found every replica busy
  std::int64_t gave_up = 0;            ///< left by their users while they waited
  RunTime transferring = 0;            ///< of all requests, what they waited for keys and values,
  RunTime transferring_alone = 0;      ///< and what each would with the links to itself
  Bytes transferred;
  TierFlow remote;                 ///< of the pool behind all replicas
  std::int64_t failures = 0;       ///< of replicas
  std::int64_t restarts = 0;       ///< of replicas, that were planned
  std::int64_t restarts_left = 0;  ///< planned too, and still to come when all requests had ended
  std::int64_t retried = 0;        ///< requests that a replica's death or restart sent to another
  bool stopped = false;            ///< go_on said so
};

/// Serves `requests` to the end; their times are written into them. Open arrivals must be in order.
/// `go_on` is asked now and then with the number that has ended.
ServeResult serve(const ServePlan& plan, std::vector<ServedRequest>& requests,
                  const std::function<bool(std::size_t)>& go_on = {});

class KvFlows;
/// Serves the load with keys and values as flows on a network. The replica that decodes is chosen
/// when the first of them leave; if one of the two replicas dies before the last is there, the
/// prompt is computed again.
ServeResult serve(const ServePlan& plan, std::vector<ServedRequest>& requests, KvFlows& flows,
                  const std::function<bool(std::size_t)>& go_on = {});

}  // namespace lockstep
