/// Declares the parts of a scenario that say how a job is laid out and what of it is trained.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/scenario_draft.hpp"

namespace lockstep {

// As those of specs (spec_readers.hpp).
void declare_parallelism(const DeclaredMembers& member, ScenarioDraft& draft);
/// Adapters beside frozen weights; on all products of a layer unless it says on which.
/// Rank and products of adapters.
void declare_adapters(const DeclaredMembers& member, Adapters& out);
void declare_lora(const DeclaredMembers& member, Adapters& out);
void declare_offload(const DeclaredMembers& member, HostOffload& out);
void declare_frozen(const DeclaredMembers& member, FrozenParts& out);

void declare_batch(const DeclaredMembers& member, ScenarioDraft& draft);
/// What selective recomputation repeats.
void declare_recompute(const DeclaredMembers& member, RecomputeModules& out);
/// How unevenly tokens fall on experts, and how many of them an expert takes.
void declare_expert_routing(const DeclaredMembers& member, ScenarioDraft& draft);
void declare_straggler(const DeclaredMembers& member, Straggler& out);
void declare_expectation(const DeclaredMembers& member, Expectation& out);

// Members of a scenario itself: the job, but for its model, cluster and stack;
void declare_job(const DeclaredMembers& member, ScenarioDraft& draft);
void declare_stragglers(const DeclaredMembers& member, ScenarioDraft& draft);
/// for how long it runs, at what price, and what is expected of it.
void declare_reckoning(const DeclaredMembers& member, ScenarioDraft& draft);
/// What a GPU costs by the hour.
void declare_price(const DeclaredMembers& member, std::optional<double>& usd_per_gpu_hour);

/// A file that the scenario in file `scenario` names; its path starts from the scenario's folder.
std::filesystem::path file_of_scenario(const std::string& scenario, const JsonCursor& from);

}  // namespace lockstep
