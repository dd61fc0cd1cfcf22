/// One rank in the place of another: people keep the recording of one rank of many, and ranks that
/// do the same on other data differ in nothing that a replay knows.
#pragma once

#include "sim/trace/trace_builder.hpp"

namespace lockstep {

/// The trace of `source` as that of `rank`, of `world`. A process group that holds both stays;
/// another one becomes that in the same place: groups are taken to tile the ranks in steps and
/// blocks, as Megatron lays them out, [0, 1] and [2, 3], or [0, 4] and [1, 5]. A call of a group
/// that tiles nothing keeps its recorded length (TraceNodeKind::exchange), and is counted.
RankTrace copy_rank(const RankTrace& source, int rank, int world);

/// Lets the messages of a rank keep their recorded length: where ranks are copies, the other end of
/// a message is not known (pipeline stages differ).
void keep_messages(RankTrace& rank);

/// Lets the calls and messages of a rank keep their recorded length, waits for other ranks in it:
/// those that have one. Returns whether any has.
bool keep_recorded_calls(RankTrace& rank);

}  // namespace lockstep
