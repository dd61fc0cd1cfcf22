#include "sim/serving/replica_lives.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep {

ReplicaLives::ReplicaLives(const std::array<const ReplicaLife*, 2>& of,
                           std::array<std::uint32_t, 2> counts,
                           const std::vector<std::uint32_t>& loads, std::uint64_t seed, Push push)
    : of_(of), counts_(counts), loads_(loads), push_(std::move(push)) {
  std::uint32_t index = 0;
  for (std::uint32_t pool = 0; pool < 2; ++pool) {
    const ReplicaLife& life = *of_[pool];
    if (counts_[pool] == 0) continue;
    const auto on = life.least > 0 ? static_cast<std::uint32_t>(life.least) : counts_[pool];
    const std::uint32_t first = index;
    for (std::uint32_t r = 0; r < counts_[pool]; ++r, ++index) {
      replicas_.push_back(
          {.state = r < on ? State::up : State::off,
           .failures = RandomStream({.seed = seed, .component = index, .purpose = 202})});
      if (r >= on) continue;
      up_[pool].push_back(index);
      draw_failure(index, 0);
    }
    most_up_[pool] = static_cast<std::uint32_t>(up_[pool].size());
    for (const ReplicaLife::Planned& each : life.planned) {
      push_(each.at, LifeEvent::planned_failure, first + static_cast<std::uint32_t>(each.replica));
    }
    if (life.least > 0) push_(life.check, LifeEvent::check, pool);
    if (life.restart_at >= 0) push_(life.restart_at, LifeEvent::restarts, pool);
    anything_ = anything_ || life.least > 0 || life.mean_time > Seconds{} ||
                !life.planned.empty() || life.restart_at >= 0;
  }
}

void ReplicaLives::draw_failure(std::uint32_t r, RunTime now) {
  const Seconds mean = of_[pool_of(r)]->mean_time;
  if (mean <= Seconds{}) return;
  Replica& replica = replicas_[r];
  replica.drawn = now + to_run_time(replica.failures.exponential() * mean);
  push_(replica.drawn, LifeEvent::failure, r);
}

void ReplicaLives::enter(std::uint32_t r, State state, RunTime now) {
  const std::size_t pool = pool_of(r);
  Replica& replica = replicas_[r];
  if (replica.state == State::down) down_[pool] += now - replica.since;
  if (replica.state == State::off) off_[pool] += now - replica.since;
  std::vector<std::uint32_t>& up = up_[pool];
  if (replica.state == State::up) std::erase(up, r);
  if (state == State::up) up.insert(std::ranges::lower_bound(up, r), r);
  most_up_[pool] = std::max(most_up_[pool], static_cast<std::uint32_t>(up.size()));
  replica.state = state;
  replica.since = now;
}

bool ReplicaLives::fail(std::uint32_t r, bool by_chance, RunTime now) {
  Replica& replica = replicas_[r];
  if (by_chance && replica.drawn != now) return false;
  if (replica.state == State::down || replica.state == State::off) return false;
  const bool had_requests = replica.state != State::starting;
  ++failures_;
  // What is repaired is as good as restarted.
  if (replica.restarts) end_restart(r, now);
  enter(r, State::down, now);
  push_(now + of_[pool_of(r)]->down, LifeEvent::back, r);
  return had_requests;
}

bool ReplicaLives::back(std::uint32_t r, RunTime now) {
  const Replica& replica = replicas_[r];
  if (replica.state != State::down && replica.state != State::starting) return false;
  // The event is stale if the replica failed during its start: a later event restarts it.
  const ReplicaLife& life = *of_[pool_of(r)];
  const bool repaired = replica.state == State::down && !replica.restarts;
  if (now < replica.since + (repaired ? life.down : life.start)) return false;
  enter(r, State::up, now);
  draw_failure(r, now);
  if (replica.restarts) end_restart(r, now);
  return true;
}

void ReplicaLives::begin_restarts(std::uint32_t pool, RunTime now) {
  const ReplicaLife& life = *of_[pool];
  if (life.restart_every > 0) push_(now + life.restart_every, LifeEvent::restarts, pool);
  if (!to_restart_[pool].empty() || restarting_[pool] > 0) return;  // the last round goes on
  had_round_[pool] = true;
  to_restart_[pool].assign(up_[pool].rbegin(), up_[pool].rend());
  restart_next(pool, now);
}

/// Drains as many replicas as may be away together.
void ReplicaLives::restart_next(std::uint32_t pool, RunTime now) {
  while (!to_restart_[pool].empty() && restarting_[pool] < of_[pool]->restart_at_once) {
    const std::uint32_t r = to_restart_[pool].back();
    to_restart_[pool].pop_back();
    if (replicas_[r].state != State::up) continue;  // it failed, or was switched off
    ++restarting_[pool];
    replicas_[r].restarts = true;
    enter(r, State::draining, now);
    if (loads_[r] == 0) {
      restart(r, now);
    } else {
      push_(now + of_[pool]->grace, LifeEvent::grace, r);
    }
  }
}

std::int64_t ReplicaLives::restarts_left() const {
  const auto is_up = [this](std::uint32_t r) { return replicas_[r].state == State::up; };
  std::int64_t out = std::ranges::count_if(replicas_, [](const Replica& replica) {
    return replica.restarts && replica.state == State::draining;
  });
  for (std::size_t pool = 0; pool < of_.size(); ++pool) {
    if (counts_[pool] == 0 || of_[pool]->restart_at < 0) continue;
    out += had_round_[pool] ? std::ranges::count_if(to_restart_[pool], is_up)
                            : static_cast<std::int64_t>(up_[pool].size());
  }
  return out;
}

void ReplicaLives::restart(std::uint32_t r, RunTime now) {
  ++restarts_;
  enter(r, State::down, now);
  push_(now + of_[pool_of(r)]->start, LifeEvent::back, r);
}

bool ReplicaLives::grace_over(std::uint32_t r, RunTime now) {
  const Replica& replica = replicas_[r];
  const bool waits = replica.restarts && replica.state == State::draining;
  if (!waits || now < replica.since + of_[pool_of(r)]->grace) return false;
  restart(r, now);
  return true;
}

void ReplicaLives::end_restart(std::uint32_t r, RunTime now) {
  const auto pool = static_cast<std::uint32_t>(pool_of(r));
  replicas_[r].restarts = false;
  --restarting_[pool];
  restart_next(pool, now);
}

bool ReplicaLives::emptied(std::uint32_t r, RunTime now) {
  if (replicas_[r].state != State::draining) return false;
  if (replicas_[r].restarts) {
    restart(r, now);
  } else {
    enter(r, State::off, now);
  }
  return true;
}

void ReplicaLives::grow(std::uint32_t pool, std::uint32_t more, RunTime now) {
  const std::uint32_t first = pool == 0 ? 0 : counts_[0];
  // Draining replicas still work and return without a start.
  for (const State from : {State::draining, State::off}) {
    for (std::uint32_t r = first; r < first + counts_[pool] && more > 0; ++r) {
      if (replicas_[r].state != from || replicas_[r].restarts) continue;
      --more;
      if (from == State::draining) {
        enter(r, State::up, now);
        continue;
      }
      enter(r, State::starting, now);
      push_(now + of_[pool]->start, LifeEvent::back, r);
    }
  }
}

/// Drains the least loaded replica: it takes no new requests.
void ReplicaLives::shrink(std::uint32_t pool, RunTime now) {
  const std::vector<std::uint32_t>& up = up_[pool];
  const std::uint32_t least = *std::ranges::min_element(
      up, [&](std::uint32_t a, std::uint32_t b) { return loads_[a] < loads_[b]; });
  enter(least, State::draining, now);
  if (loads_[least] == 0) emptied(least, now);
}

void ReplicaLives::check(std::uint32_t pool, double requests, RunTime now) {
  const ReplicaLife& life = *of_[pool];
  push_(now + life.check, LifeEvent::check, pool);
  const auto wanted = static_cast<std::uint32_t>(
      std::clamp<double>(std::ceil(requests / life.target), life.least, counts_[pool]));
  const auto up = static_cast<std::uint32_t>(up_[pool].size());
  std::uint32_t coming = up;
  const std::uint32_t first = pool == 0 ? 0 : counts_[0];
  for (std::uint32_t r = first; r < first + counts_[pool]; ++r) {
    coming += replicas_[r].state == State::starting;
  }
  if (wanted > coming) grow(pool, wanted - coming, now);
  if (wanted >= up || up <= static_cast<std::uint32_t>(life.least)) {
    low_since_[pool] = -1;
    return;
  }
  if (low_since_[pool] < 0) low_since_[pool] = now;
  if (now - low_since_[pool] < life.calm) return;
  shrink(pool, now);
}

void ReplicaLives::close(RunTime now) {
  for (std::uint32_t r = 0; r < replicas_.size(); ++r) {
    Replica& replica = replicas_[r];
    const RunTime length = std::max<RunTime>(0, now - replica.since);
    if (replica.state == State::down) down_[pool_of(r)] += length;
    if (replica.state == State::off) off_[pool_of(r)] += length;
    replica.since = now;
  }
}

}  // namespace lockstep
