#include "sim/core/thread_leave.hpp"

#include <algorithm>
#include <cstddef>
#include <tbb/global_control.h>

namespace lockstep {

struct ThreadLeave::Limit {
  static constexpr auto kThreads = tbb::global_control::max_allowed_parallelism;

  explicit Limit(int threads)
      : control(kThreads, std::max(static_cast<std::size_t>(std::max(1, threads)),
                                   tbb::global_control::active_value(kThreads))) {}

  tbb::global_control control;
};

ThreadLeave::ThreadLeave(int threads) : limit_(std::make_unique<Limit>(threads)) {}
ThreadLeave::~ThreadLeave() = default;

}  // namespace lockstep
