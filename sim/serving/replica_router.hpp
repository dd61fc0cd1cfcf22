/// Which replica a request goes to.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/scenario/serving_spec.hpp"
#include "sim/serving/replica_queue.hpp"

namespace lockstep {

class ReplicaRouter {
 public:
  ReplicaRouter(ServingRouter kind, std::uint64_t seed)
      : kind_(kind), random_({.seed = seed, .purpose = 200}) {}

  /// One of `up`, which has at least one; `loads` are requests by replica, waiting or worked on.
  std::uint32_t choose(const ServedRequest& request, bool decoding,
                       std::span<const std::uint32_t> up, std::span<const std::uint32_t> loads,
                       const std::vector<ReplicaQueue>& replicas);

 private:
  std::uint32_t least_loaded(bool decoding, std::span<const std::uint32_t> up,
                             std::span<const std::uint32_t> loads);
  std::uint32_t longest_held(const ServedRequest& request, std::span<const std::uint32_t> up,
                             std::span<const std::uint32_t> loads,
                             const std::vector<ReplicaQueue>& replicas);
  std::uint32_t with_adapter(const ServedRequest& request, bool decoding,
                             std::span<const std::uint32_t> up,
                             std::span<const std::uint32_t> loads,
                             const std::vector<ReplicaQueue>& replicas);
  std::uint32_t where_it_was(const ServedRequest& request, std::span<const std::uint32_t> up,
                             std::span<const std::uint32_t> loads);
  std::uint32_t least_cost(const ServedRequest& request, bool decoding,
                           std::span<const std::uint32_t> up, std::span<const std::uint32_t> loads,
                           const std::vector<ReplicaQueue>& replicas);

  ServingRouter kind_;
  RandomStream random_;
  std::array<std::size_t, 2> turn_{};  ///< of each pool
};

}  // namespace lockstep
