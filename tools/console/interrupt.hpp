/// Ctrl-C during long work: what is done by then is printed, with exit status 130.
#pragma once

#include <csignal>
#include <vector>

namespace lockstep {

/// While one lives the first SIGINT (or another of `signals`) sets a flag; the second of its kind
/// ends the program as ever, unless the program is another's, which outlives its commands. Several
/// at a time, on any threads, share the flag and what the first of them says: as one command they
/// stop together.
class InterruptGuard {
 public:
  enum class Second : unsigned char { ends_program, is_noted };

  explicit InterruptGuard(Second second = Second::ends_program,
                          const std::vector<int>& signals = {SIGINT});
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  [[nodiscard]] static bool interrupted();
};

}  // namespace lockstep
