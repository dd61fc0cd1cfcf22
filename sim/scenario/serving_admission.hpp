/// Which requests a service takes and which it turns away, how long users wait, and when its
/// replicas are restarted one after the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/declared_members.hpp"

namespace lockstep {

struct ServingSpec;

/// A request that finds every replica busy is shed (HTTP 429 or 503), as the saturation detector of
/// Kubernetes' Gateway API Inference Extension, NVIDIA Dynamo's request rejection and SGLang's
/// max_queued_requests do.
struct ServingAdmission {
  std::optional<int> most_waiting{};   ///< a replica with so many waiting is busy
  std::optional<double> most_cache{};  ///< one with more than this share of its cache in use is
  std::vector<std::string> sheds{};    ///< populations that may be shed; empty: all
  std::optional<Seconds> patience{};   ///< from arrival until a request that still waits is dropped
  Seconds retry_after{1};              ///< of a closed-loop client that was turned away
  std::vector<bool> may_shed{};        ///< by population; empty: all

  /// Whether replicas can be busy at all.
  [[nodiscard]] bool limits() const { return most_waiting || most_cache; }
};

/// Replicas of each pool that are restarted in turn: drained, started, and back before the next.
struct ServingRestarts {
  Seconds at{};                    ///< when the first of them is drained
  std::optional<Seconds> every{};  ///< between the beginnings of two rounds; none: one round
  int at_once = 1;                 ///< replicas of a pool that are away together
  Seconds grace{600};              ///< to end what a replica has; the rest is sent to others then
};

void declare_admission(const DeclaredMembers& member, ServingAdmission& out);
void declare_restarts(const DeclaredMembers& member, ServingRestarts& out);
/// Holds both against users and pools, and adds what is assumed. Throws InputError.
void settle_admission(const JsonCursor& serving, ServingSpec& out);

}  // namespace lockstep
