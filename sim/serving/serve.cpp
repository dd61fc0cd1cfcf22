#include "sim/serving/serve.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <optional>
#include <span>

#include "sim/serving/replica_router.hpp"

namespace lockstep {
namespace {

enum class EventKind : std::uint8_t {
  pass_end,
  transfer_end,
  failure,
  planned_failure,
  back,
  check,
  retry,
  arrival
};
struct ServingEvent {
  RunTime at;
  EventKind kind;
  std::uint64_t order;
  std::uint32_t index;      ///< of a replica, a request or a pool
  std::uint32_t epoch = 0;  ///< of a pass: the replica's; one that has died since ends nothing
  bool operator>(const ServingEvent& o) const {
    if (at != o.at) return at > o.at;
    return kind != o.kind ? kind > o.kind : order > o.order;
  }
};

constexpr std::size_t kAskEvery = 1 << 16;  // events between questions whether to go on

class ServingRun {
 public:
  ServingRun(const ServePlan& plan, std::vector<ServedRequest>& requests)
      : plan_(plan),
        requests_(requests),
        states_(requests.size()),
        router_(plan.router, plan.seed),
        coming_(plan.coming > 0 ? plan.coming : requests.size()) {
    ReplicaRules rules = plan.serving.rules;
    rules.decodes = plan.decoding.replicas == 0;
    add_pool(plan.serving, rules);
    if (!rules.decodes) add_pool(plan.decoding, plan.decoding.rules);
    sent_until_.assign(static_cast<std::size_t>(plan.serving.replicas), 0);
    loads_.assign(replicas_.size(), 0);
    epochs_.assign(replicas_.size(), 0);
    const auto count = [](int replicas) { return static_cast<std::uint32_t>(replicas); };
    lives_.emplace(
        std::array{&plan.serving.life, &plan.decoding.life},
        std::array{count(plan.serving.replicas), rules.decodes ? 0 : count(plan.decoding.replicas)},
        plan.seed, [this](RunTime at, LifeEvent kind, std::uint32_t index) {
          push(at, event_of(kind), index);
        });
  }

  ServeResult run(const std::function<bool(std::size_t)>& go_on) {
    open();
    std::size_t handled = 0;
    while (true) {
      const bool arrives = plan_.clients == 0 && next_ < coming_;
      const RunTime arrival = arrives ? requests_[next_].arrival : INT64_MAX;
      const RunTime event = events_.empty() ? INT64_MAX : events_.top().at;
      const RunTime now = std::min(arrival, event);
      // What befalls replicas afterwards is nobody's concern.
      if (now == INT64_MAX || ended_count_ + refused() == requests_.size()) break;
      handle(now);
      if (++handled % kAskEvery == 0 && go_on && !go_on(ended_count_)) {
        result_.stopped = true;
        break;
      }
    }
    for (std::size_t r = 0; r < replicas_.size(); ++r) {
      add(replicas_[r], account_of(r));
    }
    lives_->close(std::max(result_.end, now_));
    result_.failures = lives_->failures();
    for (const std::size_t pool : {0UL, 1UL}) {
      PoolAccount& account = pool == 0 ? result_.serving : result_.decoding;
      account.down = lives_->down(pool);
      account.off = lives_->off(pool);
    }
    return result_;
  }

 private:
  static EventKind event_of(LifeEvent kind) {
    switch (kind) {
      case LifeEvent::failure:
        return EventKind::failure;
      case LifeEvent::planned_failure:
        return EventKind::planned_failure;
      case LifeEvent::back:
        return EventKind::back;
      case LifeEvent::check:
        break;
    }
    return EventKind::check;
  }
  [[nodiscard]] std::size_t refused() const { return static_cast<std::size_t>(result_.refused); }

  [[nodiscard]] std::size_t prompt_replicas() const {
    return static_cast<std::size_t>(plan_.serving.replicas);
  }

  [[nodiscard]] PoolAccount& account_of(std::size_t replica) {
    return replica < prompt_replicas() ? result_.serving : result_.decoding;
  }

  void add_pool(const PoolPlan& pool, const ReplicaRules& rules) {
    assert(pool.replicas >= 1 && pool.clock != nullptr);
    for (int r = 0; r < pool.replicas; ++r) {
      replicas_.emplace_back(rules, *pool.clock, requests_, states_);
    }
  }

  static void add(const ReplicaQueue& replica, PoolAccount& out) {
    out.busy += replica.account();
    out.passes += replica.passes();
    out.preempted += replica.preempted();
    out.fullest = std::max(out.fullest, replica.fullest());
    out.intervals.add(replica.intervals());
  }

  void push(RunTime at, EventKind kind, std::uint32_t index) {
    const bool pass = kind == EventKind::pass_end;
    events_.push({at, kind, order_++, index, pass ? epochs_[index] : 0});
  }

  /// Clients send their first requests at once.
  void open() {
    for (int c = 0; c < plan_.clients && next_ < requests_.size(); ++c) send_next(0);
  }
  void send_next(RunTime at) {
    if (next_ >= requests_.size()) return;
    requests_[next_].arrival = at;
    arrive(static_cast<std::uint32_t>(next_++), at);
  }
  void arrive(std::uint32_t request, RunTime at) {
    push(at + plan_.request_host, EventKind::arrival, request);
  }

  /// All of one instant.
  void handle(RunTime now) {
    now_ = now;
    while (plan_.clients == 0 && next_ < coming_ && requests_[next_].arrival == now) {
      arrive(static_cast<std::uint32_t>(next_++), now);
    }
    while (!events_.empty() && events_.top().at == now) {
      const ServingEvent event = events_.top();
      events_.pop();
      handle_event(event, now);
    }
    for (const std::uint32_t r : touched_) {
      if (replicas_[r].busy()) continue;
      const RunTime end = replicas_[r].start(now);
      if (end < 0) continue;
      push(end, EventKind::pass_end, r);
      account_of(r).over_time.add(now, end, replicas_[r].last_pass().drawn);
    }
    touched_.clear();
  }

  void handle_event(const ServingEvent& event, RunTime now) {
    switch (event.kind) {
      case EventKind::pass_end:
        if (event.epoch == epochs_[event.index]) end_pass(event.index, now);
        return;
      case EventKind::transfer_end:
        return route(event.index, true);
      case EventKind::failure:
      case EventKind::planned_failure:
        return fail(event.index, event.kind == EventKind::failure, now);
      case EventKind::back:
        lives_->back(event.index, now);
        return take_stranded();
      case EventKind::check:
        check_load(event.index, now);
        return take_stranded();
      case EventKind::retry:
      case EventKind::arrival:
        return route(event.index, false);
    }
  }

  /// Its requests are sent again once that is noticed.
  void fail(std::uint32_t replica, bool by_chance, RunTime now) {
    if (!lives_->fail(replica, by_chance, now)) return;
    ++epochs_[replica];
    loads_[replica] = 0;
    for (const std::uint32_t id : replicas_[replica].fail()) {
      ++result_.retried;
      push(now + plan_.detect, EventKind::retry, id);
    }
  }

  void check_load(std::uint32_t pool, RunTime now) {
    const std::size_t first = pool == 0 ? 0 : prompt_replicas();
    const std::size_t end = pool == 0 ? prompt_replicas() : replicas_.size();
    double requests = static_cast<double>(stranded_.size());
    for (std::size_t r = first; r < end; ++r) requests += loads_[r];
    lives_->check(pool, requests, loads_, now);
  }

  void take_stranded() {
    std::vector<std::uint32_t> waiting;
    waiting.swap(stranded_);
    for (const std::uint32_t id : waiting) route(id, states_[id].cached);
  }

  void end_pass(std::uint32_t replica, RunTime now) {
    ended_.clear();
    leaving_.clear();
    replicas_[replica].end(now, ended_, leaving_);
    touched_.push_back(replica);
    loads_[replica] -= static_cast<std::uint32_t>(ended_.size() + leaving_.size());
    for (const std::uint32_t id : leaving_) send_cache(replica, id, now);
    for (const std::uint32_t id : ended_) close(id, now);
    if (loads_[replica] == 0) (void)lives_->emptied(replica, now);
  }
  void close(std::uint32_t request, RunTime now) {
    ++ended_count_;
    result_.end = now;
    follow_up(request, now);
    if (plan_.clients > 0) send_next(now + plan_.think);
  }

  /// Sends the request that follows it, after its user has thought.
  void follow_up(std::uint32_t request, RunTime now) {
    const std::int32_t next = requests_[request].next;
    if (next < 0) return;
    ServedRequest& r = requests_[static_cast<std::size_t>(next)];
    r.arrival = now + r.think;
    arrive(static_cast<std::uint32_t>(next), r.arrival);
  }

  void send_cache(std::uint32_t from, std::uint32_t id, RunTime now) {
    const TransferPlan& t = plan_.transfer;
    const Bytes bytes = static_cast<double>(requests_[id].input) * t.per_token;
    RunTime whole = 0;
    if (t.rate > BytesPerSecond{}) whole = to_run_time((1 - t.hidden) * bytes / t.rate);
    const RunTime begins = std::max(now, sent_until_[from]);
    sent_until_[from] = begins + whole;
    const RunTime at = begins + whole + to_run_time(t.latency);
    result_.transferring += at - now;
    result_.transferred += bytes;
    states_[id].cached = true;
    states_[id].visit = 0;
    push(at, EventKind::transfer_end, id);
  }

  void route(std::uint32_t id, bool decoding) {
    const std::size_t first = decoding ? prompt_replicas() : 0;
    const std::size_t count = decoding ? replicas_.size() - first : prompt_replicas();
    if (!replicas_[first].fits(requests_[id]) ||
        (!decoding && count < replicas_.size() && !replicas_.back().fits(requests_[id]))) {
      ++result_.refused;
      follow_up(id, requests_[id].arrival + plan_.request_host);
      if (plan_.clients > 0) send_next(requests_[id].arrival + plan_.request_host);
      return;
    }
    const std::span<const std::uint32_t> up = lives_->up(decoding);
    if (up.empty()) {
      stranded_.push_back(id);
      return;
    }
    const std::uint32_t chosen = router_.choose(requests_[id], decoding, up, loads_, replicas_);
    if (!decoding) requests_[id].replica = static_cast<std::int32_t>(chosen);
    replicas_[chosen].submit(id);
    ++loads_[chosen];
    touched_.push_back(chosen);
  }

  const ServePlan& plan_;
  std::vector<ServedRequest>& requests_;
  std::vector<RequestState> states_;
  std::vector<ReplicaQueue> replicas_;
  std::priority_queue<ServingEvent, std::vector<ServingEvent>, std::greater<>> events_;
  std::vector<std::uint32_t> touched_, ended_, leaving_;
  std::vector<RunTime> sent_until_;
  std::vector<std::uint32_t> loads_;     ///< requests of each replica: waiting or worked on
  std::vector<std::uint32_t> epochs_;    ///< of each replica: how often it died
  std::vector<std::uint32_t> stranded_;  ///< requests that no replica can take now
  std::optional<ReplicaLives> lives_;
  ReplicaRouter router_;
  std::size_t coming_;  ///< requests that come by themselves, the first ones
  std::size_t next_ = 0, ended_count_ = 0;
  std::uint64_t order_ = 0;
  RunTime now_ = 0;
  ServeResult result_;
};

}  // namespace

ServeResult serve(const ServePlan& plan, std::vector<ServedRequest>& requests,
                  const std::function<bool(std::size_t)>& go_on) {
  return ServingRun(plan, requests).run(go_on);
}

}  // namespace lockstep
