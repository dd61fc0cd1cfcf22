/// What moves along with a control of the page, so that the job stays whole: machines, widths and
/// batch have to divide, and a person who moves one of them asks for an answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_draft.hpp"
#include "tools/explore/controls.hpp"

namespace lockstep {

/// A job that is whole.
struct FollowedJob {
  Scenario scenario;
  ExploreState followed;  ///< the controls that moved along
};

/// The job as it is, or with the least else moved that makes it whole; `pinned` is the path of the
/// control that somebody moved, which stays. Replicas always follow from the others. The batch goes
/// to the nearest multiple of what divides it, servers to the nearest number that the widths
/// divide; where that would change much, virtual stages, widths of experts and of contexts, and
/// last pipeline and tensor follow. Throws the InputError of the job as it is where none of them
/// helps.
FollowedJob follow(const ScenarioDraft& moved, std::string_view pinned, const PresetStore& presets);

/// Whether a rule at a pointer ("/batch/sequences") is about what may follow.
bool may_follow(std::string_view pointer);

/// "data width 128 -> 64 and batch 2,048 -> 2,052 sequences follow": what differs between two jobs
/// beside the control at `pinned`; empty: nothing.
std::string followed_text(const Scenario& before, const Scenario& after, std::string_view pinned);

/// Where a slider stops: at its values, or at the nearest to them that divides the job, in order.
/// Servers are whole replicas' (or as many as there are below one replica), sequences whole micro
/// batches of all replicas.
std::vector<std::string> stops_of(const ExploreControl& control, const Scenario& job);

}  // namespace lockstep
