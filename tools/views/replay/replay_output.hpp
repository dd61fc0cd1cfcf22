/// What `lockstep replay` prints.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/answer/hash_answer.hpp"
#include "sim/measured/trace_what_if.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/trace/replay_trace.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

class OutputFile;

struct ReplayStudy {
  Trace trace;
  Cluster cluster;
  TraceReplay replay;
  std::optional<StepTime> longest{};  ///< with all possible waits, where there are any
  std::optional<WhatIf> what_if;      ///< with --recorded-on
  std::optional<HashAnswer> hash{};   ///< where hashes decide; its band is of the step's time
};

/// Why the replay takes another time than was recorded; empty where both are within 2 %, nothing
/// was recorded or another card is asked for.
std::string recorded_difference(const ReplayStudy& study);

/// Step time beside the recorded one, where ranks' time went, the collectives that took longest.
std::string replay_table(const ReplayStudy& study, const TextStyle& style);
/// The first level has the step's time and the means over ranks, for --assert.
nlohmann::ordered_json replay_json(const ReplayStudy& study);
/// A header line, then a rank a line.
CsvText replay_csv(const ReplayStudy& study);

/// The timeline as Chrome Trace JSON: a process for each rank, a thread for each stream. Requires
/// recorded times.
void write_replay_timeline(OutputFile& file, const ReplayStudy& study);

}  // namespace lockstep
