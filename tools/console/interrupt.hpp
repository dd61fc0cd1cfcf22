/// Ctrl-C during long work: what is done by then is printed, with exit status 130.
#pragma once

#include <csignal>

namespace lockstep {

/// While it lives the first SIGINT sets a flag; the second ends the program as ever. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  [[nodiscard]] static bool interrupted();

 private:
  struct sigaction before_{};
};

}  // namespace lockstep
