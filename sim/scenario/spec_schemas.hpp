/// What the declarations of readers say in the JSON Schema of a scenario.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/value_type.hpp"

namespace lockstep {

/// Schemas of objects by their place in that of a scenario, as JSON pointers: "" is the scenario
/// itself, "/$defs/transport/anyOf/1" a transport, ... They have all keys but those that choose
/// what the others change ("huggingface" of a model, "release" and "allow" of a stack).
nlohmann::ordered_json spec_schemas(const PresetStore& presets,
                                    QuantityBounds bounds = QuantityBounds::left_out);

/// For a schema in a file of its own: references to types that the schema of a job defines become
/// references to that file.
void refer_to_job_schema(nlohmann::ordered_json& schema);

}  // namespace lockstep
