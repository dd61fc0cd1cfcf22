#include "sim/run/spare_pool.hpp"

#include <algorithm>
#include <cstdint>

#include "sim/run/failure_source.hpp"

namespace lockstep {

SparePool::SparePool(const SpareSpec& spec, std::uint64_t seed, std::uint32_t trajectory)
    : spec_(spec),
      stream_({.seed = seed,
               .trajectory = trajectory,
               .component = 0,
               .purpose = purpose_of(RunDraw::repair, 0)}),
      hot_(spec.hot),
      warm_(spec.warm) {
  for (int crew = 0; crew < spec.crews; ++crew) crews_.push(0);
}

void SparePool::send_to_repair(RunTime now, int nodes) {
  const RunTime takes = to_run_time(spec_.repair * stream_.exponential());
  RunTime begin = now;
  if (spec_.crews > 0) {
    begin = std::max(now, crews_.top());
    crews_.pop();
    crews_.push(begin + takes);
  }
  for (int n = 0; n < nodes; ++n) back_.push(begin + takes);
}

void SparePool::collect(RunTime now) {
  for (; !back_.empty() && back_.top() <= now; back_.pop()) ++hot_;
}

SparePool::Taken SparePool::take(int wanted) {
  Taken taken{.hot = std::min(wanted, hot_)};
  taken.warm = std::min(wanted - taken.hot, warm_);
  hot_ -= taken.hot;
  warm_ -= taken.warm;
  return taken;
}

RunTime SparePool::next_back() const { return back_.empty() ? INT64_MAX : back_.top(); }

}  // namespace lockstep
