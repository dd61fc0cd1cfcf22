#include "sim/cluster/preemption.hpp"

#include <algorithm>
#include <optional>
#include <ranges>
#include <utility>

namespace lockstep {
namespace {

bool may_take_from(const QueueSpec& spec, const QueueJob& winner, const QueueJob& loser) {
  if (spec.preemption.mode == PreemptionMode::qos) {
    return std::ranges::count(spec.qos[winner.qos].preempts, loser.qos) > 0;
  }
  return spec.partitions[winner.partition].tier > spec.partitions[loser.partition].tier;
}

bool is_exempt(const QueueState& state, std::uint32_t j) {
  const QueueSpec& spec = state.spec();
  const RunTime own = spec.qos[state.job(j).qos].exempt;
  const RunTime exempt = own >= 0 ? own : spec.preemption.exempt;
  return state.now() - state.state(j).began < exempt;
}

/// A candidate of a search, and how many of the nodes found last it holds.
struct Candidate {
  std::uint32_t job;
  int overlap = 0;
};

int shared_nodes(const Holding& found, const Holding& held) {
  const auto is_found = [&](const HeldGpus& of) {
    return std::ranges::any_of(found, [&](const HeldGpus& at) { return at.node == of.node; });
  };
  return static_cast<int>(std::ranges::count_if(held, is_found));
}

/// Repeated searches over the candidates, whose order improves from one to the next.
class Search {
 public:
  Search(const QueueState& state, std::uint32_t j, const NodeSet* usable)
      : state_(&state), job_(j), usable_(usable) {
    for (const std::uint32_t of : preemption_candidates(state, j)) candidates_.push_back({of});
  }

  /// The jobs whose nodes the job needs; empty if no set of candidates suffices.
  std::vector<std::uint32_t> victims() {
    constexpr int kLast = 99'999;  // sorts before all others
    const QueuePreemption& rules = state_->spec().preemption;
    for (int pass = 0;;) {
      const std::optional<std::size_t> last = first_that_suffices();
      if (!last) return {};
      const bool done = pass > rules.reorder_count;
      ++pass;
      if (done || static_cast<int>(candidates_.size()) <= pass) break;
      const auto at = candidates_.begin() + static_cast<std::ptrdiff_t>(*last);
      if (rules.strict_order) {
        std::rotate(candidates_.begin(), at, at + 1);
        continue;
      }
      for (auto before = candidates_.begin(); before != at; ++before) {
        before->overlap = shared_nodes(found_, state_->state(before->job).held);
      }
      at->overlap = kLast;
      for (auto behind = at + 1; behind != candidates_.end(); ++behind) behind->overlap = 0;
      std::ranges::stable_sort(candidates_, std::ranges::greater{}, &Candidate::overlap);
    }
    std::vector<std::uint32_t> out;
    for (const Candidate& of : candidates_) {
      if (shared_nodes(found_, state_->state(of.job).held) == 0) continue;
      if (of.overlap != 0) break;  // the candidate keeps its nodes
      out.push_back(of.job);
    }
    return out;
  }

 private:
  /// The candidate with which all before it make room.
  std::optional<std::size_t> first_that_suffices() {
    FreeGpus free = state_->free();
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      free.give(state_->state(candidates_[c].job).held);
      candidates_[c].overlap = 0;
      auto where = state_->place(free, job_, usable_);
      if (!where) continue;
      found_ = *std::move(where);
      for (Candidate& behind : candidates_ | std::views::drop(c + 1)) behind.overlap = 1;
      return c;
    }
    return std::nullopt;
  }

  const QueueState* state_;
  std::uint32_t job_;
  const NodeSet* usable_;
  std::vector<Candidate> candidates_;
  Holding found_;
};

}  // namespace

std::vector<std::uint32_t> preemption_candidates(const QueueState& state, std::uint32_t j) {
  const QueueSpec& spec = state.spec();
  const QueueJob& winner = state.job(j);
  const NodeSet* const within = state.nodes_of(winner.partition);
  std::vector<std::uint32_t> out;
  for (const auto& [end, of] : state.by_limit()) {
    if (!may_take_from(spec, winner, state.job(of)) || is_exempt(state, of)) continue;
    const auto is_within = [&](const HeldGpus& held) {
      return within == nullptr || within->has(held.node);
    };
    if (std::ranges::any_of(state.state(of).held, is_within)) out.push_back(of);
  }
  std::ranges::sort(out);
  if (spec.preemption.youngest_first) {
    std::ranges::stable_sort(out, std::ranges::greater{},
                             [&](std::uint32_t of) { return state.state(of).began; });
    return out;
  }
  const auto rank = [&](std::uint32_t of) {
    const QueueJob& job = state.job(of);
    const std::uint32_t first =
        spec.preemption.mode == PreemptionMode::qos
            ? spec.qos[job.qos].priority
            : static_cast<std::uint32_t>(spec.partitions[job.partition].tier);
    return std::pair(std::min(first, 0xffffU), state.state(of).held.size());
  };
  std::ranges::stable_sort(out, {}, rank);
  return out;
}

bool may_preempt(const QueueState& state, std::uint32_t j, std::uint32_t of) {
  return may_take_from(state.spec(), state.job(j), state.job(of));
}

bool preempt_for(QueueState& state, std::uint32_t j, const NodeSet* usable) {
  const auto fits = [&] { return state.place(state.free(), j, usable).has_value(); };
  if (state.suspended().any()) {
    state.lend_kept([&](std::uint32_t of) { return may_preempt(state, j, of); });
    if (fits()) return true;
  }
  const std::vector<std::uint32_t> victims = Search(state, j, usable).victims();
  bool gone = !victims.empty();
  for (const std::uint32_t victim : victims) gone = state.preempt(victim) && gone;
  // If the job may start, what it takes is kept for no suspended job; else all is kept as before.
  const bool may_start = gone && (!state.spec().preemption.suspends || fits());
  if (!may_start) state.resume_suspended();
  return may_start;
}

}  // namespace lockstep
