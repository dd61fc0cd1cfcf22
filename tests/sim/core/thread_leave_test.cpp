#include "sim/core/thread_leave.hpp"

#include <doctest/doctest.h>
#include <tbb/global_control.h>

namespace lockstep {
namespace {

std::size_t allowed() {
  return tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
}

TEST_CASE("thread leave: raises what all threads may be, and never lowers it") {
  const std::size_t before = allowed();
  {
    const ThreadLeave more(static_cast<int>(before) + 3);
    CHECK(allowed() == before + 3);
    const ThreadLeave fewer(1);
    CHECK(allowed() == before + 3);
  }
  CHECK(allowed() == before);
}

}  // namespace
}  // namespace lockstep
