#include "sim/cluster/reservations.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

namespace lockstep {
namespace {

constexpr RunTime kForEver = std::numeric_limits<RunTime>::max();

/// Nodes that are free throughout, as a placer reads them.
FreeGpus as_free_gpus(const std::vector<std::int32_t>& free, int gpus_per_node) {
  FreeGpus out(static_cast<int>(free.size()), gpus_per_node);
  for (std::size_t node = 0; node < free.size(); ++node) {
    const int taken = gpus_per_node - free[node];
    if (taken > 0) out.take(std::array{HeldGpus{static_cast<std::int32_t>(node), taken}});
  }
  return out;
}

}  // namespace

FreeProfile::FreeProfile(RunTime now, std::vector<std::int32_t> free) {
  steps_.emplace(now, std::move(free));
}

void FreeProfile::cut(RunTime at) {
  if (at == kForEver) return;
  const auto after = steps_.upper_bound(at);
  if (after == steps_.begin()) return;  // before now
  const auto before = std::prev(after);
  if (before->first != at) steps_.emplace_hint(after, at, before->second);
}

void FreeProfile::take(const Holding& held, RunTime begin, RunTime end, int sign) {
  cut(begin);
  cut(end);
  for (auto step = steps_.lower_bound(begin); step != steps_.end() && step->first < end; ++step) {
    for (const auto& [node, gpus] : held) {
      step->second[static_cast<std::size_t>(node)] -= sign * gpus;
    }
  }
}

std::optional<FreeProfile::Slot> FreeProfile::earliest(int gpus_per_node, int gpus, RunTime lasts,
                                                       const PlaceAt& place_at) const {
  std::vector<std::int32_t> throughout;
  for (auto step = steps_.begin(); step != steps_.end(); ++step) {
    auto total = std::accumulate(step->second.begin(), step->second.end(), std::int64_t{0});
    if (total < gpus) continue;
    throughout = step->second;
    for (auto later = std::next(step);
         total >= gpus && later != steps_.end() && later->first < step->first + lasts; ++later) {
      std::ranges::transform(throughout, later->second, throughout.begin(),
                             [](std::int32_t a, std::int32_t b) { return std::min(a, b); });
      total = std::accumulate(throughout.begin(), throughout.end(), std::int64_t{0});
    }
    if (total < gpus) continue;
    const auto where = place_at(as_free_gpus(throughout, gpus_per_node), step->first);
    if (where) return Slot{step->first, *where};
  }
  return std::nullopt;
}

FreeProfile ConservativePass::profile_of(const QueueState& state) const {
  const FreeGpus& free = state.free();
  std::vector<std::int32_t> now(static_cast<std::size_t>(free.nodes()));
  for (int node = 0; node < free.nodes(); ++node)
    now[static_cast<std::size_t>(node)] = free.on(node);
  FreeProfile profile(state.now(), std::move(now));
  const bool drains = state.spec().health.any();
  const auto is_closed = [&](const HeldGpus& held) { return !free.is_open(held.node); };
  for (const auto& [end, j] : state.by_limit()) {
    const RunTime from = std::max(end, state.now());
    if (!drains) {
      profile.take(state.state(j).held, from, kForEver, -1);
      continue;
    }
    Holding freed = state.state(j).held;
    std::erase_if(freed, is_closed);  // it is unknown when those nodes are back
    profile.take(freed, from, kForEver, -1);
  }
  for (const auto& [j, slot] : slots_) {
    profile.take(slot.where, slot.at, slot.at + state.job(j).limit);
  }
  return profile;
}

void ConservativePass::run(QueueState& state) {
  if (state.waiting().size() == 0) return;
  // A reservation lapses if its job has left for rented nodes, if one of its nodes has failed, or
  // if its time comes while a licence or a quota keeps its job from starting. It is made anew when
  // the job may start.
  const WaitingJobs& waiting = state.waiting();
  std::erase_if(slots_, [&](const auto& of) {
    const auto& [j, slot] = of;
    if (state.state(j).phase == JobPhase::rented || state.state(j).phase == JobPhase::done) {
      return true;
    }
    if (slot.at <= state.now() && state.over_quota(waiting.classes()[waiting.class_of(j)])) {
      return true;
    }
    return std::ranges::any_of(
        slot.where, [&](const HeldGpus& held) { return !state.free().is_open(held.node); });
  });
  FreeProfile profile = profile_of(state);
  for (std::uint16_t r = 1; r <= state.reserved().count(); ++r) {
    profile.cut(state.reserved().of(r).start);
    profile.cut(state.reserved().of(r).end);
  }
  const auto& classes = state.waiting().classes();
  WaitingWalk walk(state.waiting(), [&](std::uint32_t c) { return !state.over_quota(classes[c]); });
  while (!walk.empty()) {
    if (state.over_quota(classes[walk.front_class()])) {
      walk.pop_class();
      continue;
    }
    const std::uint32_t j = walk.front().job;
    walk.pop();
    if (state.held_back(j) && state.over_time(j)) continue;
    const QueueJob& job = state.job(j);
    if (const auto old = slots_.find(j); old != slots_.end()) {
      profile.take(old->second.where, old->second.at, old->second.at + job.limit, -1);
      slots_.erase(old);
    }
    NodeSet scratch;
    const auto slot = profile.earliest(
        state.free().gpus_per_node(), job.gpus, job.limit, [&](const FreeGpus& free, RunTime at) {
          return state.place(free, j, state.nodes_for(j, at, job.limit, scratch));
        });
    if (!slot) continue;  // the job needs broken nodes, whose repair has no known end
    profile.take(slot->where, slot->at, slot->at + job.limit);
    if (slot->at == state.now()) {
      state.start(j, slot->where);
    } else {
      slots_.emplace(j, *slot);
    }
  }
}

}  // namespace lockstep
