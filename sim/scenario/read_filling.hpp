/// Reads a document with "filling": a cluster of nodes of any kinds, a workload, and the policies
/// under which the one is filled with the other (scenarios/filling.schema.json).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "models/base/json_cursor.hpp"
#include "sim/scenario/filling_spec.hpp"
#include "sim/scenario/value_type.hpp"

namespace lockstep {

/// Throws InputError about the document, or about a trace that it names, with its row.
FillingSpec read_filling(const JsonCursor& root);

/// Whether the document is one, and all traces that it names are there.
bool has_filling_traces(const JsonCursor& root);

/// The JSON Schema of such a document. Types of quantities are as in that of a job.
nlohmann::ordered_json filling_schema(QuantityBounds bounds = QuantityBounds::left_out);

/// A document of these nodes and pods that asks for nothing else.
nlohmann::ordered_json filling_document(const FillingSpec& spec);

}  // namespace lockstep
