/// What a command is about to do, estimated before it does it: what needs more memory than a limit,
/// the same on every machine, is refused with the key that makes it so; what takes long is
/// announced.
#pragma once

#include <chrono>
#include <iosfwd>
#include <optional>
#include <string>

#include "tools/console/progress.hpp"

namespace lockstep {

struct WorkEstimate {
  std::string place;  ///< file and pointer of the key that decides: "a.json#/cluster/nodes"
  std::string what;   ///< "8,000,000 messages"
  double seconds = 0;
  double bytes = 0;
};

/// Throws InputError for more bytes than `memory`.
void check_work_memory(const WorkEstimate& work, double memory);

/// Writes a line to `err` for work of more than half a minute.
void announce_work(const WorkEstimate& work, std::ostream& err);

/// How long work takes in all of which `share` is done after `elapsed` seconds; nothing where that
/// is not worth saying, or too early to say.
std::optional<double> foreseen_seconds(double elapsed, double share);

/// Work that nothing estimated before it began: announced, once, when its course foretells more
/// than half a minute.
class ForeseenWork {
 public:
  /// `what` of the file: "3 points".
  ForeseenWork(std::string place, std::string what, Progress& progress);
  /// So much is done, from 0 to 1.
  void reached(double share);

 private:
  std::string place_, what_;
  Progress& progress_;
  std::chrono::steady_clock::time_point start_;
  bool said_ = false;
};

/// Bytes of memory that a command may take: 64 GB, or what the environment says in LOCKSTEP_MEMORY
/// ("200 GB"). Throws InputError for what is no amount of data.
double memory_limit();

}  // namespace lockstep
