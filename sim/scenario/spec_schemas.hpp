/// What the declarations of specs say in the JSON Schema of a scenario.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/scenario/preset_store.hpp"

namespace lockstep {

/// Schemas of objects by their place in that of a scenario, as JSON pointers: "/$defs/transport/
/// anyOf/1", "/properties/model/anyOf/1", ... They have the keys that the readers of these objects
/// take by themselves; those of presets ("preset", "huggingface", "release") are beside them.
nlohmann::ordered_json spec_schemas(const PresetStore& presets);

}  // namespace lockstep
