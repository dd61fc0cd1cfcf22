#include "sim/serving/serving_run.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace lockstep {

ServingRun::ServingRun(const ServePlan& plan, std::vector<ServedRequest>& requests, KvFlows* flows)
    : plan_(plan),
      requests_(requests),
      flows_(flows),
      states_(requests.size()),
      router_(plan.router, plan.seed),
      coming_(plan.coming > 0 ? plan.coming : requests.size()) {
  ReplicaRules rules = plan.serving.rules;
  rules.decodes = plan.decoding.replicas == 0;
  if (plan.tiers) {
    remote_.emplace(TierStore(tier_blocks(plan.tiers->remote_tokens, rules.block)));
    rules.tiers = &*plan.tiers;
    rules.remote = &*remote_;
  }
  add_pool(plan.serving, rules);
  if (!rules.decodes) {
    ReplicaRules decoding = plan.decoding.rules;
    if (plan.decoding_tiers) {
      decoding.tiers = &*plan.decoding_tiers;
      decoding.remote = &nothing_remote_;
    }
    add_pool(plan.decoding, decoding);
  }
  sent_until_.assign(static_cast<std::size_t>(plan.serving.replicas), 0);
  result_.regions.resize(plan.regions.size());
  loads_.assign(replicas_.size(), 0);
  epochs_.assign(replicas_.size(), 0);
  groups_.assign(replicas_.size(), 0);
  const auto count = [](int replicas) { return static_cast<std::uint32_t>(replicas); };
  lives_.emplace(
      std::array{&plan.serving.life, &plan.decoding.life},
      std::array{count(plan.serving.replicas), rules.decodes ? 0 : count(plan.decoding.replicas)},
      loads_, plan.seed,
      [this](RunTime at, LifeEvent kind, std::uint32_t index) { push(at, event_of(kind), index); });
  open();
}

ServingRun::EventKind ServingRun::event_of(LifeEvent kind) {
  switch (kind) {
    case LifeEvent::failure:
      return EventKind::failure;
    case LifeEvent::planned_failure:
      return EventKind::planned_failure;
    case LifeEvent::back:
      return EventKind::back;
    case LifeEvent::check:
      return EventKind::check;
    case LifeEvent::restarts:
      return EventKind::restarts;
    case LifeEvent::grace:
      break;
  }
  return EventKind::grace;
}

void ServingRun::add_pool(const PoolPlan& pool, ReplicaRules rules) {
  assert(pool.replicas >= 1 && pool.clock != nullptr);
  for (int r = 0; r < pool.replicas; ++r) {
    rules.replica = static_cast<std::size_t>(r);
    rules.adapters = pool.adapters ? &*pool.adapters : nullptr;
    replicas_.emplace_back(rules, *pool.clock, requests_, states_);
  }
}

void ServingRun::add(const ReplicaQueue& replica, PoolAccount& out) {
  out.busy += replica.account();
  out.passes += replica.passes();
  out.preempted += replica.preempted();
  out.fullest = std::max(out.fullest, replica.fullest());
  out.intervals.add(replica.intervals());
  out.tiers += replica.tiers();
  if (replica.adapters() != nullptr) out.adapters += replica.adapters()->account();
}

ServeResult ServingRun::close(bool stopped) {
  for (std::size_t r = 0; r < replicas_.size(); ++r) {
    add(replicas_[r], account_of(r));
    if (plan_.regions.any()) {
      add(replicas_[r], result_.regions[plan_.regions.region_of(static_cast<std::uint32_t>(r))]);
    }
  }
  result_.restarts_left = lives_->restarts_left();
  lives_->close(std::max(result_.end, now_));
  result_.failures = lives_->failures();
  result_.restarts = lives_->restarts();
  result_.stopped = stopped;
  if (remote_) result_.remote = remote_->store.flow();
  for (const std::size_t pool : {0UL, 1UL}) {
    PoolAccount& account = pool == 0 ? result_.serving : result_.decoding;
    account.down = lives_->down(pool);
    account.off = lives_->off(pool);
  }
  return std::move(result_);
}

RunTime ServingRun::next() const {
  const bool arrives = plan_.clients == 0 && next_ < coming_;
  const RunTime arrival = arrives ? requests_[next_].arrival : kNothing;
  return std::min(arrival, events_.empty() ? kNothing : events_.top().at);
}

/// Sends the first request of every client.
void ServingRun::open() {
  for (int c = 0; c < plan_.clients && next_ < requests_.size(); ++c) send_next(0);
}

void ServingRun::send_next(RunTime at) {
  if (next_ >= requests_.size()) return;
  requests_[next_].arrival = at;
  arrive(static_cast<std::uint32_t>(next_++), at);
}

void ServingRun::arrive(std::uint32_t request, RunTime at) {
  push(at + plan_.request_host, EventKind::arrival, request);
  if (plan_.admission.patience > 0) {
    push(at + plan_.admission.patience, EventKind::patience, request);
  }
}

void ServingRun::handle(RunTime now) {
  now_ = now;
  while (plan_.clients == 0 && next_ < coming_ && requests_[next_].arrival == now) {
    arrive(static_cast<std::uint32_t>(next_++), now);
  }
  while (!events_.empty() && events_.top().at == now) {
    const Event event = events_.top();
    events_.pop();
    handle_event(event, now);
  }
  for (const std::uint32_t r : touched_) {
    if (!replicas_[r].busy()) begin_pass(r, now);
  }
  touched_.clear();
}

void ServingRun::begin_pass(std::uint32_t replica, RunTime now) {
  const ReplicaQueue& queue = replicas_[replica];
  const RunTime end = replicas_[replica].start(now);
  if (end < 0) {
    const RunTime loaded = queue.next_loaded();
    if (loaded >= 0) push(loaded, EventKind::loaded, replica);
    return;
  }
  push(end, EventKind::pass_end, replica, epochs_[replica]);
  // GPUs that wait for keys and values draw the power of pauses between passes.
  account_of(replica).over_time.add(now + queue.stall(), end, queue.last_pass().drawn);
  if (plan_.regions.any()) {
    PoolAccount& region = result_.regions[plan_.regions.region_of(replica)];
    region.over_time.add(now + queue.stall(), end, queue.last_pass().drawn);
  }
  if (flows_ == nullptr || replica >= prompt_replicas() || plan_.transfer.layers < 2) return;
  push(queue.first_layer(now, end, plan_.transfer.layers), EventKind::first_layer, replica,
       epochs_[replica]);
}

void ServingRun::handle_event(const Event& event, RunTime now) {
  switch (event.kind) {
    case EventKind::pass_end:
      if (event.epoch == epochs_[event.index]) end_pass(event.index, now);
      return;
    case EventKind::first_layer:
      if (event.epoch == epochs_[event.index]) send_layers(event.index, now);
      return;
    case EventKind::transfer_end:
      if (flows_ != nullptr) return take_over(event.index, event.epoch);
      return route(event.index, true);
    case EventKind::loaded:
      touched_.push_back(event.index);
      return;
    case EventKind::failure:
    case EventKind::planned_failure:
      return fail(event.index, event.kind == EventKind::failure, now);
    case EventKind::back:
      if (lives_->back(event.index, now)) replicas_[event.index].forget();
      return take_stranded(now);
    case EventKind::check:
      check_load(event.index, now);
      return take_stranded(now);
    case EventKind::restarts:
      return lives_->begin_restarts(event.index, now);
    case EventKind::grace:
      if (lives_->grace_over(event.index, now)) lose_all(event.index, now, now);
      return;
    case EventKind::retry:
      if (requests_[event.index].became != ServedEnd::served) return;
      return route(event.index, false);
    case EventKind::arrival:
      if (requests_[event.index].became != ServedEnd::served) return;
      if (sheds(event.index)) return turn_away(event.index, ServedEnd::shed, now);
      return route(event.index, false);
    case EventKind::landing:
      return land(event.index, event.epoch);
    case EventKind::patience:
      return hang_up(event.index, now);
  }
}

/// Fails a replica. Its requests are sent anew once the failure is noticed.
void ServingRun::fail(std::uint32_t replica, bool by_chance, RunTime now) {
  if (lives_->fail(replica, by_chance, now)) lose_all(replica, now + plan_.detect, now);
}

/// All that a replica had is sent again at `again`.
void ServingRun::lose_all(std::uint32_t replica, RunTime again, RunTime now) {
  ++epochs_[replica];
  if (flows_ != nullptr) lose_sendings(replica, now);
  loads_[replica] = 0;
  for (const std::uint32_t id : replicas_[replica].fail()) {
    ++result_.retried;
    states_[id].sent = false;
    push(again, EventKind::retry, id);
  }
}

void ServingRun::check_load(std::uint32_t pool, RunTime now) {
  const std::size_t first = pool == 0 ? 0 : prompt_replicas();
  const std::size_t end = pool == 0 ? prompt_replicas() : replicas_.size();
  auto requests = static_cast<double>(stranded_.size());
  for (std::size_t r = first; r < end; ++r) requests += loads_[r];
  lives_->check(pool, requests, now);
}

void ServingRun::take_stranded(RunTime now) {
  std::vector<std::uint32_t> waiting;
  waiting.swap(stranded_);
  for (const std::uint32_t id : waiting) {
    if (requests_[id].became != ServedEnd::served) continue;
    const bool cached = states_[id].cached;
    cached&& flows_ != nullptr ? send_rest(id, now) : route(id, cached);
  }
}

void ServingRun::end_pass(std::uint32_t replica, RunTime now) {
  ended_.clear();
  leaving_.clear();
  replicas_[replica].end(now, ended_, leaving_);
  touched_.push_back(replica);
  loads_[replica] -= static_cast<std::uint32_t>(ended_.size() + leaving_.size());
  for (const std::uint32_t id : leaving_) {
    states_[id].cached = true;
    states_[id].visit = 0;
    flows_ != nullptr ? send_rest(id, now) : send_closed(replica, id, now);
  }
  for (const std::uint32_t id : ended_) close_request(id, now);
  if (loads_[replica] == 0) (void)lives_->emptied(replica, now);
}

void ServingRun::close_request(std::uint32_t request, RunTime now) {
  ++ended_count_;
  result_.end = now;
  const RunTime back = plan_.regions.one_way(requests_[request]);
  requests_[request].first += back;
  requests_[request].last += back;
  follow_up(request, now + back);
  if (plan_.clients > 0) send_next(now + plan_.think);
}

/// Sends the next turn of the conversation after the user's think time.
void ServingRun::follow_up(std::uint32_t request, RunTime now) {
  const std::int32_t next = requests_[request].next;
  if (next < 0) return;
  ServedRequest& r = requests_[static_cast<std::size_t>(next)];
  r.arrival = now + r.think;
  if (plan_.router == ServingRouter::session) r.replica = requests_[request].replica;
  arrive(static_cast<std::uint32_t>(next), r.arrival);
}

void ServingRun::route(std::uint32_t request, bool decoding) {
  const std::size_t first = decoding ? prompt_replicas() : 0;
  const std::size_t count = decoding ? replicas_.size() - first : prompt_replicas();
  if (!replicas_[first].fits(requests_[request]) ||
      (!decoding && count < replicas_.size() && !replicas_.back().fits(requests_[request]))) {
    return turn_away(request, ServedEnd::refused, now_);
  }
  // Replicas that are not busy go before the others.
  std::span<const std::uint32_t> up;
  if (plan_.admission.limits()) up = in_reach(request, not_busy(decoding));
  if (up.empty()) up = in_reach(request, lives_->up(decoding));
  if (up.empty()) {
    stranded_.push_back(request);
    return;
  }
  const std::uint32_t chosen = router_.choose(requests_[request], decoding, up, loads_, replicas_);
  if (!decoding) requests_[request].replica = static_cast<std::int32_t>(chosen);
  states_[request].sent = true;
  ++loads_[chosen];
  const RunTime there = plan_.regions.one_way(requests_[request]);
  if (there > 0) return push(now_ + there, EventKind::landing, request, epochs_[chosen]);
  submit(request, chosen);
}

/// Those of `up` that a request may go to: of the region that takes it.
std::span<const std::uint32_t> ServingRun::in_reach(std::uint32_t request,
                                                    std::span<const std::uint32_t> up) const {
  return plan_.regions.any() ? plan_.regions.choose(requests_[request], up, loads_) : up;
}

/// Whether so much waits on a replica, or so much of its cache is in use, that it takes nothing
/// that may be shed.
bool ServingRun::busy(std::uint32_t replica) const {
  const AdmissionPlan& a = plan_.admission;
  const ReplicaQueue& queue = replicas_[replica];
  return (a.most_waiting > 0 && queue.waiting() >= a.most_waiting) ||
         (a.most_cache > 0 && queue.cache_share() > a.most_cache);
}

std::span<const std::uint32_t> ServingRun::not_busy(bool decoding) {
  free_.clear();
  for (const std::uint32_t r : lives_->up(decoding)) {
    if (!busy(r)) free_.push_back(r);
  }
  return free_;
}

/// Whether a request that arrives is turned away: all replicas of a pool that it needs, of the
/// regions that it may go to, are busy.
bool ServingRun::sheds(std::uint32_t request) {
  if (!plan_.admission.limits() || !plan_.admission.sheds(requests_[request])) return false;
  if (in_reach(request, not_busy(false)).empty()) return true;
  return prompt_replicas() < replicas_.size() && not_busy(true).empty();
}

/// A request ends without an answer. A closed-loop client sends its next one.
void ServingRun::turn_away(std::uint32_t request, ServedEnd became, RunTime now) {
  ServedRequest& r = requests_[request];
  r.became = became;
  r.replica = -1;
  states_[request].sent = false;
  ++(became == ServedEnd::refused ? result_.refused
     : became == ServedEnd::shed  ? result_.shed
                                  : result_.gave_up);
  follow_up(request, now);
  if (plan_.clients == 0) return;
  send_next(became == ServedEnd::refused ? now : now + plan_.admission.retry_after);
}

/// A user's patience is over: a request that still waits is taken back.
void ServingRun::hang_up(std::uint32_t request, RunTime now) {
  const ServedRequest& r = requests_[request];
  if (r.became != ServedEnd::served || r.scheduled >= 0 || r.last >= 0) return;
  if (states_[request].waits) {
    const auto replica = static_cast<std::uint32_t>(r.replica);
    replicas_[replica].abandon(request);
    if (--loads_[replica] == 0) (void)lives_->emptied(replica, now);
  } else if (states_[request].sent) {
    // On its way to the replica; or let in, and its keys and values are being loaded.
    const RunTime way = plan_.regions.one_way(r);
    if (way > 0) push(now + way, EventKind::patience, request);
    return;
  }
  turn_away(request, ServedEnd::gave_up, now);
}

/// Puts a request in its replica's queue, or sends it on where that died meanwhile.
void ServingRun::land(std::uint32_t request, std::uint32_t epoch) {
  const auto replica = static_cast<std::uint32_t>(requests_[request].replica);
  if (epoch == epochs_[replica]) return submit(request, replica);
  ++result_.retried;
  states_[request].sent = false;
  push(now_ + plan_.detect, EventKind::retry, request);
}

void ServingRun::submit(std::uint32_t request, std::uint32_t replica) {
  replicas_[replica].submit(request);
  touched_.push_back(replica);
}

}  // namespace lockstep
