/// A trace out of files of any format that is known.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/formats/read_chakra.hpp"
#include "sim/trace/pytorch/execution_trace.hpp"
#include "sim/trace/pytorch/kineto_recording.hpp"
#include "sim/trace/trace_builder.hpp"

namespace lockstep {

enum class TraceFormat : std::uint8_t {
  chakra,
  chakra_json,
  kineto,
  goal,
  pytorch,
  simai,
  aicb,
  nsys,
  goal_binary,
};

/// One row per format, in the order of the enumeration, for options and messages.
struct TraceFormatInfo {
  TraceFormat format;
  std::string_view name;
  std::string_view summary;
};
std::span<const TraceFormatInfo> trace_formats();

/// Whether the bytes are a tar archive (POSIX.1-1988, ustar).
bool is_tar(std::string_view bytes);

/// Whether the bytes begin an SQLite database.
bool is_database(std::string_view bytes);

/// What the text looks like. Anything that is no text is taken for protobuf.
TraceFormat recognise_trace(std::string_view text);

/// The rank in a file's name: its last number before the endings. "trace.12.et" -> 12.
std::optional<int> rank_in_name(std::string_view file);

/// The number behind the word "rank" or "worker" in a file's name: "run-rank_3.json" -> 3.
std::optional<int> rank_word_in_name(std::string_view file);

/// The rank of a Kineto trace by its file's name: the number behind the word "rank" or "worker",
/// since names say all sorts of things ("mi300x"); of the only file of a trace, 0; of others
/// without such a word, rank_in_name().
std::optional<int> kineto_rank_in_name(std::string_view file, bool alone);

/// The ranks of one file: all of a GOAL schedule and of a workload, else one. `alone`: no other
/// file belongs to the trace, so that a name without a rank is rank 0. Throws InputError, and for
/// an execution trace of PyTorch, which says nothing by itself, and for a database, which is no
/// text (sim/measured/nsys_recording.hpp reads it).
std::vector<RankTrace> read_trace_file(const std::string& file, std::string_view text,
                                       TraceFormat format, bool alone,
                                       const TraceReadOptions& options);

/// Files of one rank: indices in the lists that pair_pytorch() got.
struct PytorchPair {
  int rank = 0;
  std::size_t kineto = 0;
  std::optional<std::size_t> operators;  ///< empty: Kineto's alone
};
/// Which execution trace of PyTorch belongs to which Kineto trace: one of each are of rank 0 if
/// Kineto's "distributedInfo" does not say otherwise; of several, an execution trace has its rank
/// in its name. Throws InputError for an execution trace without a rank or a Kineto trace.
std::vector<PytorchPair> pair_pytorch(std::span<const ExecutionTrace> operators,
                                      std::span<const KinetoRecording> kineto);

}  // namespace lockstep
