#include "sim/serving/serving_process.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kInstantsBetweenAsking = 1 << 16;  // between calls of `go_on`

}  // namespace

StepTime ServingProcess::next_event() const {
  const RunTime next = run_.next();
  return next == ServingRun::kNothing ? kNever : to_ticks(next);
}

void ServingProcess::flows_ended(std::span<const FlowIndex> flows, StepTime now) {
  arrived_.clear();
  flows_.ended(flows, now, arrived_);
  run_.arrived(arrived_, first_after(now));
}

void ServingProcess::handle_events(StepTime now) {
  while (!run_.over() && next_event() <= now) run_.handle(run_.next());
  if (++handled_ % kInstantsBetweenAsking == 0 && go_on_ && !go_on_(run_.ended())) stopped_ = true;
}

bool ServingProcess::done() const {
  return stopped_ || run_.over() || (run_.next() == ServingRun::kNothing && flows_.moving() == 0);
}

}  // namespace lockstep
