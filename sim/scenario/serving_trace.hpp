/// Traces of requests: CSV with a heading, or a JSON object a line.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/client_trace.hpp"
#include "sim/scenario/prefix_tree.hpp"
#include "sim/scenario/served_request.hpp"

namespace lockstep {

/// Columns are found by their names: arrival_s, input_tokens, output_tokens; those of Azure's
/// traces (TIMESTAMP, ContextTokens, GeneratedTokens), of BurstGPT (Timestamp, Request tokens,
/// Response tokens); of JSON lines those of Mooncake (timestamp in ms, input_length,
/// output_length). Times are counted from the first. Prompts that begin alike are told by the ids
/// of their blocks of 512 tokens (hash_ids; of CSV prefix_blocks, with blanks between), as Mooncake
/// has them: `prefixes` gets their tree. Of clients' rates (client_trace.hpp) requests are drawn,
/// as `clients` says. May be compressed. Throws InputError with the row.
std::vector<ServedRequest> read_request_trace(const std::string& path,
                                              std::vector<PrefixNode>* prefixes = nullptr,
                                              ClientDraws* clients = nullptr);

}  // namespace lockstep
