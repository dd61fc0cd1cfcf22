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

/// Flows of one process that follow each other are told to it together.
inline void Engine::end_flows(StepTime now) {
  ended_.clear();
  network_.collect_ended(now, ended_);
  for (std::span<const FlowIndex> rest = ended_; !rest.empty();) {
    const auto [end, process] = claim_of(rest.front());
    std::size_t count = rest.size();
    if (rest.back() >= end) {
      count = 1;
      while (rest[count] < end) ++count;
    }
    process->flows_ended(rest.first(count), now);
    claim(*process);
    rest = rest.subspan(count);
  }
}

inline void Engine::run_instant(StepTime now) {
  if (flow_ends_at(now)) end_flows(now);
  for (std::size_t p = 0; p < others_; ++p) {
    processes_[p]->handle_events(now);
    claim(*processes_[p]);
  }
  network_.settle(now);
}

bool Engine::change_due(StepTime now) const {
  return std::ranges::any_of(changes(),
                             [now](const Process* change) { return change->next_event() <= now; });
}

void Engine::change_network(StepTime now) {
  for (Process* change : changes()) {
    change->handle_events(now);
    claim(*change);
  }
  network_.settle(now);
}

void Engine::claim_new(Process& process) {
  claimed_ = network_.flows();
  if (claims_.empty() || claims_.back().process != &process) claims_.push_back({0, &process});
  claims_.back().end = claimed_;
}

const Engine::Claim& Engine::claim_of(FlowIndex flow) const {
  assert(flow < claimed_ && "a flow of no process");
  if (flow < claims_.front().end) return claims_.front();
  return *std::ranges::upper_bound(claims_, flow, {}, &Claim::end);
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
    bool changes = false;
    do {
      run_instant(now);
      changes = others_ < processes_.size() && change_due(now);
    } while (changes && flow_ends_at(now));
    if (changes) change_network(now);
  }
  return now;
}

}  // namespace lockstep
