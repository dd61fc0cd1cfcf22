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
/// grammar is that of github.com/spcl/LogGOPSim, src/LogGOPSim/txt2bin.re at d5bb14a851e0, the
/// binary form that of Parser.hpp (Graph::serialize_mmap) there at 14dddeb5f155.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/trace_builder.hpp"

namespace lockstep {

/// The longest calculation and the largest message that are taken.
constexpr std::uint64_t kMostGoalNanoseconds = kLongestTraceNode.ps / 1000;
constexpr std::uint64_t kMostGoalMessage = 1'000'000'000'000'000;

/// A rank's operations and what they wait for, in the order in which the file has them.
struct GoalRank {
  enum class Kind : std::uint8_t { send, receive, calculation };
  static constexpr std::uint32_t kAny = 0xFFFFFFFF;  ///< "-1": any sender, any tag
  struct Operation {
    std::uint64_t size = 0;  ///< nanoseconds of a calculation, bytes of a message
    std::uint32_t peer = 0, tag = 0;
    std::uint8_t cpu = 0, nic = 0;
    Kind kind = Kind::calculation;
  };
  /// `operation` waits for `other`; both are counted from 0.
  struct Wait {
    std::uint32_t operation = 0, other = 0;
  };

  int rank = 0;
  std::vector<Operation> operations;
  std::vector<Wait> ends;    ///< `requires`: for its end
  std::vector<Wait> starts;  ///< `irequires`: for its start
};

/// The schedule as it stands, with receives from anybody and of any tag. Throws InputError as
/// read_goal() and read_goal_binary() do, but for these.
std::vector<GoalRank> read_goal_ranks(const std::string& file, std::string_view text);
std::vector<GoalRank> read_goal_binary_ranks(const std::string& file, std::string_view bytes);

/// Times are nanoseconds; a cpu is a stream. `irequires` waits for what the other one waits for. A
/// statement ends with its line or a ';'. Throws InputError with the line.
std::vector<RankTrace> read_goal(const std::string& file, std::string_view text);

/// join() of read_goal(), of which memory holds one rank at a time; nothing for schedules that have
/// mistakes or whose ranks are not in order. Calls `read_to` with how much of the text has been
/// read and is not looked at again.
std::optional<Trace> read_goal_in_order(const std::string& file, std::string_view text,
                                        const std::function<void(std::size_t)>& read_to);

/// Whether the bytes begin a schedule that LogGOPSim's txt2bin wrote.
bool is_goal_binary(std::string_view bytes);

/// What txt2bin makes of the text: the same ranks, but for the order in which an operation's
/// dependencies are named. Numbers are little-endian and lie at any address:
///
///     u64 4223                                  2342: a simulation with --save-mem has used it up
///     u32 ranks, u8 highest cpu, u8 highest nic
///     u64 begin, u64 end                        by rank, counted from behind the 4223
///     at each begin:
///     u32 operations, u32 roots, u32 by root    (those that wait for nothing)
///     by operation, 39 bytes: u32 waits for, u8 type (1 send, 2 recv, 3 calc), u32 peer, u64 size,
///       u32 tag, u8 cpu, u8 nic, u32 count and u32 first index of those that wait for its end,
///       the same of those that wait for its start
///     u32 operations that these indices are of
///
/// Throws InputError with the rank and the operation, counted from 0 and 1, and for files whose
/// parts overlap or contradict each other.
std::vector<RankTrace> read_goal_binary(const std::string& file, std::string_view bytes);
/// As read_goal_in_order().
std::optional<Trace> read_goal_binary_in_order(const std::string& file, std::string_view bytes,
                                               const std::function<void(std::size_t)>& read_to);

/// GOAL has no collectives: they become the messages of a ring, those of an all-to-all go to
/// everybody. Calculations are on cpu 0, the host's on cpu 2, messages on cpu 1. Times are rounded
/// to nanoseconds so that a rank's sum stays right. Calls `write` with pieces of the text.
/// Throws InputError where that would be more than 200 million statements.
void write_goal(const Trace& trace, const std::function<void(std::string_view)>& write);

}  // namespace lockstep
