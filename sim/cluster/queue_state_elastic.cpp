// What happens to the widths of jobs, and to their fairness: what a change does to the books.
#include <algorithm>
#include <optional>

#include "sim/cluster/queue_state.hpp"

namespace lockstep {

double QueueState::speed_at(std::uint32_t j, int width) const {
  if (width == job(j).gpus) return 1;
  const WidthTable& table = spec_->width_tables[job(j).widths];
  const auto at = std::ranges::find(table.gpus, width) - table.gpus.begin();
  return table.speeds[static_cast<std::size_t>(at)];
}

void QueueState::count_width(std::uint32_t j) {
  JobState& s = states_[j];
  const GpuTime held(s.width, now_ - s.width_since);
  account_time_[job(j).account] += held;
  s.held_time += held;
  s.width_since = now_;
}

void QueueState::resize(std::uint32_t j, Holding where, int width, RunTime cost) {
  JobState& s = states_[j];
  settle(j);
  keep_span(j, SpanEnd::moved);
  count_width(j);
  count_held(j, -1);
  count_owned(j, -1);
  s.width = width;
  s.held = std::move(where);
  s.held_since = now_;
  count_held(j, 1);
  count_owned(j, 1);
  take_back(j);
  s.ready = now_ + cost;
  s.speed = speed_at(j, width);
  ++s.resizes;
  foresee_end(j);
}

bool QueueState::shrink(std::uint32_t j, int node) {
  const JobState& s = states_[j];
  const bool may = spec_->elastic.policy == ElasticPolicy::shrink && job(j).widths > 0;
  if (!may || s.phase != JobPhase::running) return false;
  Holding left;
  for (const HeldGpus& held : s.held) {
    if (held.node != node) left.push_back(held);
  }
  const int whole = free_.gpus_per_node();
  const WidthTable& table = spec_->width_tables[job(j).widths];
  for (std::size_t w = table.gpus.size(); w-- > 0;) {
    const int width = table.gpus[w];
    if (width >= s.width) continue;
    Holding out;
    int missing = width;
    for (const HeldGpus& held : left) {
      const int takes = std::min(missing, whole);
      if (takes == 0 || held.gpus < takes) continue;
      out.push_back({held.node, takes});
      missing -= takes;
    }
    if (missing > 0) continue;
    settle(j);
    lose_unsaved(j, SpanEnd::failed);
    states_[j].left_before = states_[j].left;
    lend(j);
    resize(j, std::move(out), width, spec_->preemption.restart + spec_->elastic.resize);
    return true;
  }
  return false;
}

double QueueState::finish_time_fairness(std::uint32_t j) const {
  const JobState& s = states_[j];
  const RunTime alone = job(j).runs;
  if (alone == 0) return 1;
  const RunTime left = s.phase == JobPhase::running ? s.ends - now_ : s.left;
  return static_cast<double>(now_ - job(j).submit + left) / static_cast<double>(alone);
}

void QueueState::reckon_fairness() {
  if (fairness_.empty()) return;
  for (const auto& [end, j] : by_limit_) fairness_[j] = finish_time_fairness(j);
  waiting_.sort_anew([&](std::uint32_t j) {
    fairness_[j] = finish_time_fairness(j);
    return rank_of(j);
  });
}

}  // namespace lockstep
