/// Ctrl-C during long work: what is done by then is printed, with exit status 130.
#pragma once

#include <csignal>

namespace lockstep {

/// While one lives the first SIGINT sets a flag; the second ends the program as ever. Several at a
/// time, on any threads, share the flag: as one command they stop together.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  [[nodiscard]] static bool interrupted();
};

}  // namespace lockstep
