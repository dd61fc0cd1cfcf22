/// Traces of requests: CSV with a heading, or a JSON object a line.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/served_request.hpp"

namespace lockstep {

/// Columns are found by their names: arrival_s, input_tokens, output_tokens; those of Azure's
/// traces (TIMESTAMP, ContextTokens, GeneratedTokens), of BurstGPT (Timestamp, Request tokens,
/// Response tokens); of JSON lines those of Mooncake (timestamp in ms, input_length,
/// output_length). Times are counted from the first. May be compressed. Throws InputError with the
/// row.
std::vector<ServedRequest> read_request_trace(const std::string& path);

}  // namespace lockstep
