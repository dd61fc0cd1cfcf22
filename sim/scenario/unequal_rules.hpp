/// What a job on several kinds of node, or with unequal batches, has to keep to.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "models/kernels/kernel_profile.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_draft.hpp"

namespace lockstep {

/// batch.micro_batches: an array, or "balanced". Throws InputError.
void read_micro_batches(const JsonCursor& from, ScenarioDraft& draft);

/// Puts the draft's pools into the scenario, and the order of ranks that it asks for.
void complete_pools(const ScenarioDraft& draft, Scenario& out);

/// The micro batches of each replica that the draft writes out, by replica or by pool.
/// Requires that GPUs and replicas are known. Throws InputError.
void complete_micro_batches(const ScenarioDraft& draft, Scenario& out);

/// The mean price of a GPU over the pools; empty where one has none.
std::optional<double> pool_price(const std::vector<NodePool>& pools);

/// lay_card() for each kind of node that the job has, with the cap of its "power" and the profiles
/// that are of it. Throws InputError where one is of no pool's card. Requires cards without layers.
void lay_cards(std::span<const Profile> profiles, Scenario& scenario);

/// What tensor, context and expert parallel ranks have to have in common, and whether the schedule
/// takes these micro batches. Everything is filled in but what is to be balanced. Throws
/// InputError.
void check_unequal(const ScenarioDraft& draft, const Scenario& scenario);

}  // namespace lockstep
