/// What a command is about to do, estimated before it does it: what needs more memory than a limit,
/// the same on every machine, is refused with the key that makes it so; what takes long is
/// announced.
#pragma once

#include <iosfwd>
#include <string>

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

/// Bytes of memory that a command may take: 64 GB, or what the environment says in LOCKSTEP_MEMORY
/// ("200 GB"). Throws InputError for what is no amount of data.
double memory_limit();

}  // namespace lockstep
