/// Reads a plan's regions and the data that moves between them.
#pragma once

#include <cstddef>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/search/plan_spec.hpp"

namespace lockstep {

constexpr std::size_t kMostRegions = 32;

/// "start", "regions" and "data" of a plan.
void declare_regions(const DeclaredMembers& member, PlanSpec& out);
/// What regions need beside data: a bandwidth and a price of egress, where there are several.
/// Throws InputError where one is missing.
void settle_regions(const JsonCursor& root, PlanSpec& out);

/// A name of one of the plan's regions. Throws InputError for an unknown one, unless the
/// name of one is a mistake, which is told already: then any.
std::size_t read_region_name(const JsonCursor& at, const std::vector<PlanRegion>& regions);
/// A list of names of the plan's regions. Throws InputError for an unknown one.
std::vector<std::size_t> read_region_names(const JsonCursor& list,
                                           const std::vector<PlanRegion>& regions);

/// Sets where a candidate trains; refused, with the reason, where its data may not go.
void place_candidate(const PlanSpec& plan, std::size_t region, PlanCandidate& out);
/// Throws InputError where the data may go to no candidate's region, where a candidate's dataset is
/// of another size, or where regions of owned machines have a price of energy and others none.
void check_places(const JsonCursor& root, const PlanSpec& plan);

}  // namespace lockstep
