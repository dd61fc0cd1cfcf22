#include "sim/cluster/job_gates.hpp"

#include <algorithm>
#include <limits>

namespace lockstep {
namespace {

/// Whether jobs can be kept for another reason than their own terms.
bool may_keep(const QueueSpec& spec) {
  const auto has_limits = [](const auto& of) { return of.limits.any(); };
  const bool requeues =
      spec.failures.mean_time > Seconds{} || !spec.breaks.empty() || spec.preemption.by_slurm();
  return !spec.terms.empty() || std::ranges::any_of(spec.qos, has_limits) ||
         std::ranges::any_of(spec.associations, has_limits) ||
         (spec.admission == QueueAdmission::slurm && requeues);
}

std::uint64_t target(bool of_array, std::uint32_t on) {
  return std::uint64_t{on} << 1 | (of_array ? 1U : 0U);
}

}  // namespace

JobGates::JobGates(const QueueSpec& spec) : spec_(&spec), groups_(spec.arrays.size()) {
  if (!may_keep(spec)) return;
  gates_.resize(spec.jobs.size());
  met_.resize(spec.terms.size());
  for (std::uint32_t j = 0; j < spec.terms.size(); ++j) {
    const JobTerms& of = spec.terms[j];
    gates_[j].begin = of.begin;
    met_[j].resize(of.dependencies.size());
    for (std::uint32_t d = 0; d < of.dependencies.size(); ++d) {
      const JobDependency& on = of.dependencies[d];
      dependents_[target(on.of_array, on.on)].push_back({j, d});
    }
    if (of.array < 0) continue;
    Group& group = groups_[static_cast<std::size_t>(of.array)];
    ++group.left;
    ++group.not_started;
  }
}

RunTime JobGates::next_at() const {
  return begins_.empty() ? std::numeric_limits<RunTime>::max() : begins_.top().first;
}

JobGates::Turn JobGates::turn_of(std::uint32_t j) const {
  const TrialPlace* const place = spec_->place_of(j);
  return {place == nullptr ? 0 : -std::int64_t{place->rung}, j};
}

JobGates::Met JobGates::state_of(const JobDependency& dependency) const {
  bool started = false, ended = false, failed = false;
  if (dependency.of_array) {
    const Group& group = groups_[dependency.on];
    started = group.not_started == 0;
    ended = group.left == 0;
    failed = group.failed > 0;
  } else {
    const Gate& gate = gates_[dependency.on];
    started = gate.started >= 0;
    ended = gate.fate != Fate::none;
    failed = gate.fate == Fate::failed;
  }
  switch (dependency.kind) {
    case DependencyKind::after:
      return started || ended ? Met::yes : Met::not_yet;
    case DependencyKind::afterany:
      return ended ? Met::yes : Met::not_yet;
    case DependencyKind::afterok:
      if (failed) return Met::never;
      return ended ? Met::yes : Met::not_yet;
    case DependencyKind::afternotok:
      if (!ended) return Met::not_yet;
      return failed ? Met::yes : Met::never;
  }
  return Met::not_yet;
}

void JobGates::evaluate(std::uint32_t j, std::uint32_t dependency) {
  Met& known = met_[j][dependency];
  if (known != Met::not_yet) return;
  const JobDependency& on = spec_->terms[j].dependencies[dependency];
  known = state_of(on);
  Gate& gate = gates_[j];
  if (known == Met::never) ++gate.never;
  if (known != Met::yes) return;
  ++gate.met;
  if (on.kind != DependencyKind::after || on.delay == 0) return;
  const RunTime started = on.of_array ? groups_[on.on].last_start : gates_[on.on].started;
  gate.begin = std::max(gate.begin, started + on.delay);
}

bool JobGates::dependencies_met(std::uint32_t j) const {
  const JobTerms* const of = terms(j);
  if (of == nullptr || of->dependencies.empty()) return true;
  return of->any ? gates_[j].met > 0 : gates_[j].met == of->dependencies.size();
}

bool JobGates::is_hopeless(std::uint32_t j) const {
  const JobTerms* const of = terms(j);
  if (of == nullptr) return false;
  return of->any ? gates_[j].never > 0 && gates_[j].never == of->dependencies.size()
                 : gates_[j].never > 0;
}

void JobGates::consider(std::uint32_t j, RunTime now) {
  Gate& gate = gates_[j];
  const JobTerms* const of = terms(j);
  if (!gate.submitted || gate.open || gate.limited || (of != nullptr && of->held)) return;
  if (is_hopeless(j) && !dependencies_met(j)) {
    if (spec_->cancel_unsatisfiable) hopeless_.push_back(j);
    return;
  }
  if (!dependencies_met(j)) return;
  if (gate.begin > now) return begins_.emplace(gate.begin, j), void();
  if (of != nullptr && of->array >= 0 && !gate.in_array) {
    Group& group = groups_[static_cast<std::size_t>(of->array)];
    const int most = spec_->arrays[static_cast<std::size_t>(of->array)].most_running;
    if (most > 0 && group.running >= static_cast<std::uint32_t>(most)) {
      group.ready.insert(turn_of(j));
      return;
    }
    group.ready.erase(turn_of(j));
    ++group.running;
    gate.in_array = true;
  }
  gate.open = true;
  opened_.push_back(j);
}

void JobGates::submitted(std::uint32_t j, RunTime now, bool limited) {
  Gate& gate = gates_[j];
  gate.submitted = true;
  gate.limited = limited;
  if (const JobTerms* const of = terms(j)) {
    for (std::uint32_t d = 0; d < of->dependencies.size(); ++d) evaluate(j, d);
  }
  consider(j, now);
}

void JobGates::requeued(std::uint32_t j, RunTime until) {
  gates_[j].open = false;
  gates_[j].begin = std::max(gates_[j].begin, until);
  begins_.emplace(gates_[j].begin, j);
}

void JobGates::tell(bool of_array, std::uint32_t on, RunTime now) {
  const auto found = dependents_.find(target(of_array, on));
  if (found == dependents_.end()) return;
  for (const auto [job, dependency] : found->second) {
    if (!gates_[job].submitted || gates_[job].open) continue;
    evaluate(job, dependency);
    consider(job, now);
  }
}

void JobGates::started(std::uint32_t j, RunTime now) {
  if (gates_[j].started >= 0) return;
  gates_[j].started = now;
  tell(false, j, now);
  const JobTerms* const of = terms(j);
  if (of == nullptr || of->array < 0) return;
  Group& group = groups_[static_cast<std::size_t>(of->array)];
  group.last_start = now;
  if (--group.not_started == 0) tell(true, static_cast<std::uint32_t>(of->array), now);
}

void JobGates::ended(std::uint32_t j, bool well, RunTime now) {
  Gate& gate = gates_[j];
  gate.open = true;  // it is not considered any more
  gate.fate = well ? Fate::well : Fate::failed;
  tell(false, j, now);
  const JobTerms* const of = terms(j);
  if (of == nullptr || of->array < 0) return;
  Group& group = groups_[static_cast<std::size_t>(of->array)];
  if (gate.started < 0) --group.not_started;
  --group.left;
  group.failed += well ? 0 : 1;
  group.ready.erase(turn_of(j));
  if (gate.in_array) --group.running;
  gate.in_array = false;
  if (!group.ready.empty()) consider(group.ready.begin()->second, now);
  tell(true, static_cast<std::uint32_t>(of->array), now);
}

std::vector<std::uint32_t> JobGates::take_open(RunTime now) {
  while (!begins_.empty() && begins_.top().first <= now) {
    const std::uint32_t j = begins_.top().second;
    begins_.pop();
    consider(j, now);
  }
  std::ranges::sort(opened_);
  return std::exchange(opened_, {});
}

std::vector<std::uint32_t> JobGates::take_hopeless() {
  std::ranges::sort(hopeless_);
  const auto rest = std::ranges::unique(hopeless_);
  hopeless_.erase(rest.begin(), rest.end());
  return std::exchange(hopeless_, {});
}

GateReason JobGates::reason_of(std::uint32_t j, RunTime now) const {
  const Gate& gate = gates_[j];
  const JobTerms* const of = terms(j);
  if (of != nullptr && of->held) return GateReason::held;
  if (gate.limited) return GateReason::limit;
  if (!dependencies_met(j)) return GateReason::dependency;
  if (gate.begin > now) return GateReason::begin;
  return gate.open ? GateReason::open : GateReason::array;
}

}  // namespace lockstep
