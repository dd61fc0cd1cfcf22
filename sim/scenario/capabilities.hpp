/// What a stack preset declares that its software can run, and whether a scenario asks for more.
///
/// A preset lists it under "capabilities", a sourced list of names for each key. A capability's own
/// name joins both, "sharding.zero3": so scenarios say it in "stack": {"allow": [...]}.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/json_cursor.hpp"
#include "models/spec/capabilities.hpp"
#include "models/spec/software.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/scenario/scenario_draft.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {

/// A key of "capabilities". To add one: extend CapabilityList, give it a row here, and say in
/// needed_capabilities() when a job asks for its values.
struct CapabilityKey {
  CapabilityList list;
  std::string_view name;     ///< "sharding"
  std::string_view summary;  ///< what its values are, for people
  std::vector<std::string_view> values;
};
/// In the order of CapabilityList.
std::span<const CapabilityKey> capability_keys();

/// "sharding.zero3"
std::string name_of(Capability capability);

/// Reads "capabilities": every key must be there unless only `changes` are read. A key replaces
/// what `out` has of it.
void read_capabilities(const JsonCursor& from, Extent extent, Capabilities& out);
/// The capability of a name.
Capability read_capability(const JsonCursor& from);
/// Reads "allow": names of capabilities.
std::vector<Capability> read_allowed(const JsonCursor& from);

/// What the job needs and its stack has not, whether the scenario allows it or not. Nothing where
/// the stack declares nothing.
std::vector<Capability> beyond(const TrainingJob& job, const StackSpec& stack);
/// Whether the stack has, or the scenario allows, all that the job needs.
bool can_run(const StackSpec& stack, const TrainingJob& job);

/// Name of the preset that can run the job and is most like the stack; empty: none can.
std::string nearest_able_stack(const TrainingJob& job, const StackSpec& stack,
                               const PresetStore& presets);

/// Throws InputError where the scenario asks for what its stack cannot do and does not allow it.
/// What goes beyond all the same is noted in `scenario`.
void check_capabilities(const ScenarioDraft& draft, const PresetStore& presets, Scenario& scenario);

}  // namespace lockstep
