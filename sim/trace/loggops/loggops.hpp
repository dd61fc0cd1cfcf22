/// A GOAL schedule in the LogGOPS model, as LogGOPSim times it: each message costs its two hosts
/// and NICs, and no fabric lies between them.
///
///     sending    the CPU for o + (s - 1) O, the NIC for g + (s - 1) G
///     on its way the first byte arrives o + L after the send began
///     receiving  the CPU for o + (s - 1) max(O, G), the NIC for g + (s - 1) G, once both are free
///
/// for s bytes; no bytes cost what one does. A send of at most S bytes is done when its CPU is; a
/// longer one when a receive has met its first byte (rendezvous). A message takes the CPU and the
/// NIC of the same numbers at either end, and the first receive that fits it.
///
/// Source: Hoefler, Schneider and Lumsdaine 2010, LogGOPSim, HPDC, section 3; Hoefler et al. 2009,
/// LogGOPS. Rules where these say nothing (what an event costs when, and the order of events of one
/// time) are those of github.com/spcl/LogGOPSim, src/LogGOPSim/LogGOPSim.cpp at d5bb14a851e0, but
/// for one: an operation begins when all that it requires has ended. There one on another CPU
/// begins as soon as its own CPU is free, though what it requires still runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/core/clock.hpp"
#include "sim/trace/formats/goal.hpp"

namespace lockstep {

/// The model's parameters; the defaults are LogGOPSim's.
struct LogGopsParameters {
  StepTime latency{2'500'000};           ///< L
  StepTime overhead{1'500'000};          ///< o, of a message at each of its CPUs
  StepTime gap{1'000'000};               ///< g, between messages of a NIC
  double gap_per_byte_ps = 6000;         ///< G
  double overhead_per_byte_ps = 0;       ///< O
  std::uint64_t largest_eager = 65'535;  ///< S, bytes
};

struct LogGopsReplay {
  StepTime end;                ///< of the last rank
  std::vector<StepTime> ends;  ///< by rank, when its last operation ends
  std::uint64_t operations = 0;
  std::uint64_t messages = 0;
  std::uint64_t rendezvous = 0;  ///< of them, those above S
};

/// Runs the ranks, in any order. Of operations that become free at once a rank's sends go first,
/// then its receives, each in the order in which the file names them. Throws InputError for a rank
/// that is missing or there twice, a peer that is none, a message without a receive and the other
/// way round, operations that wait for each other, and more than 100 days.
LogGopsReplay replay_loggops(const std::string& file, std::span<const GoalRank> ranks,
                             const LogGopsParameters& parameters);

}  // namespace lockstep
