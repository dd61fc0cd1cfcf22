#include "sim/core/engine.hpp"

#include <algorithm>
#include <cassert>
#include <stdexcept>

namespace lockstep {

void Process::fail_stuck(StepTime /*now*/) const {
  throw std::logic_error("a process waits for what never comes");
}

void Engine::add(Process& process) {
  processes_.insert(processes_.begin() + static_cast<std::ptrdiff_t>(others_++), &process);
  claim(process);
}

void Engine::add_change(Process& process) {
  processes_.push_back(&process);
  claim(process);
}

StepTime Engine::run(StepTime begin) {
  for (Process* process : processes_) {
    process->begin(begin);
    claim(*process);
  }
  network_.settle(begin);
  StepTime now = begin;
  while (const Process* unfinished = first_unfinished()) {
    const StepTime next = next_instant();
    if (next == Process::kNever && network_.idle()) unfinished->fail_stuck(now);
    assert(next >= now && "an event in the past");
    now = next;
    run_instant(now);
    if (others_ < processes_.size()) handle_changes(now);
  }
  return now;
}

const Process* Engine::first_unfinished() const {
  for (const Process* process : processes_) {
    if (!process->done()) return process;
  }
  return nullptr;
}

StepTime Engine::next_instant() const {
  StepTime next = network_.idle() ? Process::kNever : network_.next_end();
  for (const Process* process : processes_) next = std::min(next, process->next_event());
  return next;
}

void Engine::run_instant(StepTime now) {
  if (flow_ends_at(now)) end_flows(now);
  for (std::size_t p = 0; p < others_; ++p) {
    processes_[p]->handle_events(now);
    claim(*processes_[p]);
  }
  network_.settle(now);
}

/// Flows of one process that follow each other are told to it together.
void Engine::end_flows(StepTime now) {
  ended_.clear();
  network_.collect_ended(now, ended_);
  for (std::size_t first = 0; first < ended_.size();) {
    const std::size_t index = claim_of(ended_[first]);
    const std::size_t end = index + 1 < claims_.size() ? claims_[index + 1].first : claimed_;
    std::size_t last = first + 1;
    while (last < ended_.size() && ended_[last] < end) ++last;
    Process& process = *claims_[index].process;
    process.flows_ended({&ended_[first], last - first}, now);
    claim(process);
    first = last;
  }
}

void Engine::handle_changes(StepTime now) {
  const auto due = [now](const Process* change) { return change->next_event() <= now; };
  if (std::ranges::none_of(changes(), due)) return;
  while (flow_ends_at(now)) run_instant(now);
  for (Process* change : changes()) {
    change->handle_events(now);
    claim(*change);
  }
  network_.settle(now);
}

void Engine::claim_new(Process& process) {
  if (claims_.empty() || claims_.back().process != &process) {
    claims_.push_back({static_cast<FlowIndex>(claimed_), &process});
  }
  claimed_ = network_.flows();
}

std::size_t Engine::claim_of(FlowIndex flow) const {
  assert(flow < claimed_ && "a flow of no process");
  std::size_t low = 0;
  for (std::size_t high = claims_.size(); high - low > 1;) {
    const std::size_t middle = low + (high - low) / 2;
    (claims_[middle].first <= flow ? low : high) = middle;
  }
  return low;
}

}  // namespace lockstep
