/// Ctrl-C during long work: what is done by then is printed, with exit status 130.
#pragma once

#include <csignal>
#include <utility>
#include <vector>

namespace lockstep {

/// While it lives the first SIGINT (or another of `signals`) sets a flag; the second of its kind
/// ends the program as ever. One at a time.
class InterruptGuard {
 public:
  explicit InterruptGuard(const std::vector<int>& signals = {SIGINT});
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  [[nodiscard]] static bool interrupted();

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace lockstep
