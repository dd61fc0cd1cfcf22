/// GOAL, the language of LogGOPSim and ATLAHS: what each rank computes, sends and receives.
///
///     num_ranks 2
///     rank 0 {
///     l1: calc 100 cpu 0
///     l2: send 10b to 1 tag 5
///     l2 requires l1
///     }
///
/// Source: Hoefler, Siebert and Lumsdaine 2009, Group Operation Assembly Language, ICPP; the
/// grammar is that of github.com/spcl/LogGOPSim, src/LogGOPSim/txt2bin.re at d5bb14a851e0.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/trace_builder.hpp"

namespace lockstep {

/// Times are nanoseconds; a cpu is a stream. `irequires` waits for what the other one waits for. A
/// statement ends with its line or a ';'. Throws InputError with the line.
std::vector<RankTrace> read_goal(const std::string& file, std::string_view text);

/// GOAL has no collectives: they become the messages of a ring, those of an all-to-all go to
/// everybody. Calculations are on cpu 0, the host's on cpu 2, messages on cpu 1. Times are rounded
/// to nanoseconds so that a rank's sum stays right. Calls `write` with pieces of the text.
/// Throws InputError where that would be more than 200 million statements.
void write_goal(const Trace& trace, const std::function<void(std::string_view)>& write);

}  // namespace lockstep
