/// A trace out of files of any format that is known.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/read_chakra.hpp"
#include "sim/trace/trace_builder.hpp"

namespace lockstep {

enum class TraceFormat : std::uint8_t { chakra, chakra_json, kineto, goal };

/// One row per format, in the order of the enumeration, for options and messages.
struct TraceFormatInfo {
  TraceFormat format;
  std::string_view name;
  std::string_view summary;
};
std::span<const TraceFormatInfo> trace_formats();

/// What the text looks like. Anything that is no text is taken for protobuf.
TraceFormat recognise_trace(std::string_view text);

/// The rank in a file's name: its last number before the endings. "trace.12.et" -> 12.
std::optional<int> rank_in_name(std::string_view file);

/// The ranks of one file: all of a GOAL schedule, else one. `alone`: no other file belongs to the
/// trace, so that a name without a rank is rank 0. Throws InputError.
std::vector<RankTrace> read_trace_file(const std::string& file, std::string_view text,
                                       TraceFormat format, bool alone,
                                       const ChakraOptions& options);

}  // namespace lockstep
