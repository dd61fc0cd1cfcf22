/// Reads a scenario with "serving": a cluster, a model, the pools that serve it, and who asks what.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/serving_spec.hpp"
#include "sim/scenario/value_type.hpp"

namespace lockstep {

/// Whether pools must be able to serve as they are, or a search lays them out.
enum class ServingLayouts : std::uint8_t { fixed, searched };

/// Throws InputError about the scenario, or about a trace that it names, with its row.
ServingSpec read_serving(const JsonCursor& root, const PresetStore& presets,
                         ServingLayouts layouts = ServingLayouts::fixed);

/// The JSON Schema of such a scenario. Types of quantities, "cluster" and "model" are as in that of
/// a job.
nlohmann::ordered_json serving_schema(const PresetStore& presets,
                                      QuantityBounds bounds = QuantityBounds::left_out);

}  // namespace lockstep
