/// "power", "cost" and "price" of a scenario with "serving".
#pragma once

#include "models/base/json_cursor.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/serving_spec.hpp"

namespace lockstep {

/// Reads them where they are, and takes the node's list price where no price is. Requires
/// out.cluster. Throws InputError.
void read_serving_power(const JsonCursor& root, const PresetStore& presets, ServingSpec& out);

/// For the schema.
void describe_serving_power(const DeclaredMembers& member);

}  // namespace lockstep
