/// Declares the parts of a scenario that say how a job is laid out and what of it is trained.
#pragma once

#include <filesystem>
#include <string>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/scenario_draft.hpp"

namespace lockstep {

// As those of specs (spec_readers.hpp).
void declare_parallelism(const DeclaredMembers& member, ScenarioDraft& draft);
/// Adapters beside frozen weights; on all products of a layer unless it says on which.
void declare_lora(const DeclaredMembers& member, Adapters& out);
void declare_offload(const DeclaredMembers& member, HostOffload& out);
void declare_frozen(const DeclaredMembers& member, FrozenParts& out);

/// A file that the scenario in file `scenario` names; its path starts from the scenario's folder.
std::filesystem::path file_of_scenario(const std::string& scenario, const JsonCursor& from);

}  // namespace lockstep
