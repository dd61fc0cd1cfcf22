/// Reads a scenario with a "queue": a cluster, its scheduler, and the jobs that are submitted to
/// it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/queue_spec.hpp"
#include "sim/scenario/value_type.hpp"

namespace lockstep {

/// Throws InputError about the scenario, or about a trace that it names, with its row.
QueueSpec read_queue(const JsonCursor& root, const PresetStore& presets);

/// The JSON Schema of such a scenario. Types of quantities and the "cluster" are as in that of a
/// job.
nlohmann::ordered_json queue_schema(const PresetStore& presets,
                                    QuantityBounds bounds = QuantityBounds::left_out);

}  // namespace lockstep
