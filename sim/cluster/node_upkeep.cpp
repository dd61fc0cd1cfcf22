#include "sim/cluster/node_upkeep.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace lockstep {

NodeUpkeep::NodeUpkeep(const QueueSpec& spec, NodeFailureSource& failures)
    : spec_(&spec), failures_(&failures), used_(spec.health.any()) {
  if (!used_) return;
  const auto count = static_cast<std::size_t>(spec.cluster.nodes);
  nodes_.resize(count);
  wakes_.fit(count);
  for (const int node : failures.lemons()) of(node).lemon = true;
  counts_.lemons = static_cast<std::int64_t>(failures.lemons().size());
  const std::vector<NodeDrain>& drains = spec.health.drains;
  for (std::uint32_t d = 0; d < drains.size(); ++d) {
    for (const int node : drains[d].nodes) planned_.push_back({drains[d].at, d, node});
  }
  std::ranges::stable_sort(planned_, std::ranges::greater{}, &Planned::at);
}

RunTime NodeUpkeep::next_at() const {
  constexpr RunTime kNoUpkeep = std::numeric_limits<RunTime>::max();
  return std::min(wakes_.empty() ? kNoUpkeep : wakes_.top().key,
                  planned_.empty() ? kNoUpkeep : planned_.back().at);
}

void NodeUpkeep::run(QueueState& state) {
  if (!used_) return;
  while (!wakes_.empty() && wakes_.top().key <= state.now()) {
    wake(state, static_cast<int>(wakes_.pop().index));
  }
  while (!planned_.empty() && planned_.back().at <= state.now()) {
    const Planned next = planned_.back();
    planned_.pop_back();
    drain(state, next.node, spec_->health.drains[next.drain]);
  }
}

void NodeUpkeep::drain(QueueState& state, int node, const NodeDrain& drain) {
  Node& at = of(node);
  switch (at.stage) {
    case Stage::serving:
      state.close_node(node);
      at.stage = Stage::emptying;
      at.since = state.now();
      emptying_.push_back(node);
      [[fallthrough]];
    case Stage::emptying:
      at.work = std::max(at.work, drain.lasts);
      if (drain.deadline) {
        wakes_.lower(static_cast<std::uint32_t>(node), state.now() + *drain.deadline);
      }
      return;
    case Stage::broken:
      at.work = std::max(at.work, drain.lasts);
      return;
    case Stage::out:
    case Stage::burning_in:
      at.until = std::max(at.stage == Stage::out ? at.until : 0, state.now() + drain.lasts);
      at.stage = Stage::out;
      wakes_.set(static_cast<std::uint32_t>(node), at.until);
      return;
  }
}

void NodeUpkeep::wake(QueueState& state, int node) {
  Node& at = of(node);
  switch (at.stage) {
    case Stage::emptying:
      counts_.stopped_jobs += state.evict_from(node);
      return;
    case Stage::out:
      return end_repair(state, node);
    case Stage::burning_in:
      at.stage = Stage::serving;
      state.open_node(node);
      failures_->resume(node, state.now());
      return;
    case Stage::serving:
    case Stage::broken:
      return;  // nothing is due
  }
}

/// The node is whole, and closed or open: it is tested, or takes jobs again.
void NodeUpkeep::end_repair(QueueState& state, int node) {
  Node& at = of(node);
  const RunTime burn_in = spec_->health.burn_in;
  if (burn_in == 0) {
    at.stage = Stage::serving;
    state.open_node(node);
    failures_->resume(node, state.now());
    return;
  }
  at.stage = Stage::burning_in;
  at.until = state.now() + burn_in;
  state.close_node(node);
  failures_->pause(node);
  wakes_.set(static_cast<std::uint32_t>(node), at.until);
}

void NodeUpkeep::take_out(QueueState& state, int node, RunTime lasts) {
  Node& at = of(node);
  state.close_node(node);
  failures_->pause(node);
  at.stage = Stage::out;
  at.work = 0;
  at.until = state.now() + lasts;
  wakes_.set(static_cast<std::uint32_t>(node), at.until);
}

void NodeUpkeep::take_emptied(QueueState& state) {
  if (emptying_.empty()) return;
  std::erase_if(emptying_, [&](int node) {
    if (!state.free().is_empty(node)) return false;
    counts_.emptying += state.now() - of(node).since;
    ++counts_.drained;
    take_out(state, node, of(node).work);
    return true;
  });
}

bool NodeUpkeep::breaks_too_often(Node& node, RunTime now) const {
  const LemonDetection& rule = spec_->health.detection;
  if (rule.failures == 0) return false;
  node.failures.push_back(now);
  std::erase_if(node.failures, [&](RunTime at) { return at < now - rule.within; });
  return node.failures.size() >= static_cast<std::size_t>(rule.failures);
}

bool NodeUpkeep::fail_or_mend(QueueState& state, const NodeFailureSource::Event& event) {
  const int node = event.node;
  Node& at = of(node);
  if (!event.breaks) {
    if (at.stage != Stage::broken) return false;
    state.mend(node);
    if (at.work > 0) {
      take_out(state, node, at.work);
    } else {
      end_repair(state, node);
    }
    return true;
  }
  if (at.stage != Stage::serving && at.stage != Stage::emptying) return false;
  if (at.lemon) ++counts_.lemon_failures;
  const bool drained = at.stage == Stage::emptying;
  if (drained) state.open_node(node);  // whoever fails closes it
  if (breaks_too_often(at, state.now())) {
    ++counts_.taken_out;
    if (at.lemon) ++counts_.lemons_found;
    at.lemon = false;
    at.failures.clear();
    state.fail(node, false);
    std::erase(emptying_, node);
    take_out(state, node, std::max(at.work, spec_->health.detection.repair));
    failures_->cure(node);
    return true;
  }
  state.fail(node, event.stays_broken);
  if (event.stays_broken) {
    std::erase(emptying_, node);
    wakes_.remove(static_cast<std::uint32_t>(node));
    at.stage = Stage::broken;
  } else if (drained) {
    state.close_node(node);
  }
  return true;
}

}  // namespace lockstep
