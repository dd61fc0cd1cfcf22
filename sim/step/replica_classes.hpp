/// Which data-parallel replicas do the same thing at the same time, and which links look alike.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/scenario/scenario.hpp"
#include "sim/step/data_routes.hpp"
#include "sim/step/plan.hpp"

namespace lockstep {

constexpr std::uint32_t kNoBlock = std::numeric_limits<std::uint32_t>::max();

/// Data-parallel replicas that do the same at the same time; simulated once.
struct ReplicaClass {
  int representative = 0;
  int copies = 1;
  std::vector<double> slowdown;  ///< of each stage's tensor-parallel group; empty: all 1
  std::uint32_t variant = 0;     ///< of the plan: StepPlan::stage_of()
  /// Classes of one block exchange tokens with each other's experts, over the network or inside an
  /// NVLink domain, and wait for each other there; kNoBlock: with nobody.
  std::uint32_t block = kNoBlock;
  /// By DataGroupKind: classes with one number are in one group, or in groups that are alike.
  std::array<std::uint32_t, kDataGroups> data_group{};
};

/// Links of the fabric on which the same classes put the same bytes; simulated once.
struct LinkClasses {
  std::vector<std::uint32_t> of;     ///< by fabric link; empty: each link is its own class
  std::vector<std::uint32_t> links;  ///< by class: how many
};

/// Replicas as a replay takes them.
struct ReplicaClasses {
  std::vector<ReplicaClass> classes;
  LinkClasses links;
};

/// `automatic` folds as far as that is exact, `folded` also where it is not.
///
/// Folded exactly, the classes are an equitable partition: replicas of a class have the same plan
/// and slow GPUs and send as much over links of each class, links of a class have the same capacity
/// and carry as much of replicas of each class; replicas of a class exchange tokens with as many of
/// each class, and are in groups of gradients with as many of each. Shares that are max-min fair
/// are then equal within a class. Found by colour refinement, with 64-bit hashes in place of whole
/// neighbourhoods: among 1e5 replicas and links two that differ meet once in 1e9 jobs. Source:
/// McKay 1981, Practical graph isomorphism, Congressus Numerantium 30, section 2. Under ECMP it
/// finds replicas that meet nobody, and those without pipeline messages; mostly each replica is a
/// class of its own.
///
/// `folded` under ECMP: classes are those of equal path length.
///
/// Links of `apart` are like no other link, as others than this job may use them: each is a class
/// of its own, if the job's replicas are compared at all.
ReplicaClasses classes_of_replicas(const Scenario& scenario, DataRoutes& data_routes,
                                   Folding folding, std::span<const FabricLink> apart = {});

}  // namespace lockstep
