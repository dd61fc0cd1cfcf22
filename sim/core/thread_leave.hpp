/// Leave for an arena of more threads than the machine has cores.
#pragma once

#include <memory>

namespace lockstep {

/// oneTBB caps an arena at the number of cores unless the limit on all threads is raised: it is,
/// while this lives. Fewer threads than that are no limit to others, in whose midst it may be.
class ThreadLeave {
 public:
  explicit ThreadLeave(int threads);
  ~ThreadLeave();
  ThreadLeave(const ThreadLeave&) = delete;
  ThreadLeave& operator=(const ThreadLeave&) = delete;

 private:
  struct Limit;
  std::unique_ptr<Limit> limit_;
};

}  // namespace lockstep
