#include "sim/serving/serve.hpp"

#include <algorithm>
#include <cassert>

#include "sim/core/random.hpp"

namespace lockstep {
namespace {

enum class EventKind : std::uint8_t { pass_end, transfer_end, arrival };
struct ServingEvent {
  RunTime at;
  EventKind kind;
  std::uint64_t order;
  std::uint32_t index;  ///< of a replica or a request
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
        random_({.seed = plan.seed, .purpose = 200}) {
    ReplicaRules rules = plan.serving.rules;
    rules.decodes = plan.decoding.replicas == 0;
    add_pool(plan.serving, rules);
    if (!rules.decodes) add_pool(plan.decoding, plan.decoding.rules);
    sent_until_.assign(static_cast<std::size_t>(plan.serving.replicas), 0);
    loads_.assign(replicas_.size(), 0);
  }

  ServeResult run(const std::function<bool(std::size_t)>& go_on) {
    open();
    std::size_t handled = 0;
    while (true) {
      const bool arrives = plan_.clients == 0 && next_ < requests_.size();
      const RunTime arrival = arrives ? requests_[next_].arrival : INT64_MAX;
      const RunTime event = events_.empty() ? INT64_MAX : events_.top().at;
      const RunTime now = std::min(arrival, event);
      if (now == INT64_MAX) break;
      handle(now);
      if (++handled % kAskEvery == 0 && go_on && !go_on(ended_count_)) {
        result_.stopped = true;
        break;
      }
    }
    for (std::size_t r = 0; r < replicas_.size(); ++r) {
      add(replicas_[r], account_of(r));
    }
    return result_;
  }

 private:
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
    events_.push({at, kind, order_++, index});
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
    while (plan_.clients == 0 && next_ < requests_.size() && requests_[next_].arrival == now) {
      arrive(static_cast<std::uint32_t>(next_++), now);
    }
    while (!events_.empty() && events_.top().at == now) {
      const ServingEvent event = events_.top();
      events_.pop();
      if (event.kind == EventKind::pass_end) end_pass(event.index, now);
      if (event.kind == EventKind::transfer_end) route(event.index, true);
      if (event.kind == EventKind::arrival) route(event.index, false);
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

  void end_pass(std::uint32_t replica, RunTime now) {
    ended_.clear();
    leaving_.clear();
    replicas_[replica].end(now, ended_, leaving_);
    touched_.push_back(replica);
    loads_[replica] -= static_cast<std::uint32_t>(ended_.size() + leaving_.size());
    for (const std::uint32_t id : leaving_) send_cache(replica, id, now);
    for (const std::uint32_t id : ended_) close(id, now);
  }
  void close(std::uint32_t /*request*/, RunTime now) {
    ++ended_count_;
    result_.end = now;
    if (plan_.clients > 0) send_next(now + plan_.think);
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
      if (plan_.clients > 0) send_next(requests_[id].arrival + plan_.request_host);
      return;
    }
    const std::size_t chosen = first + choose(first, count, decoding);
    if (!decoding) requests_[id].replica = static_cast<std::int32_t>(chosen);
    replicas_[chosen].submit(id);
    ++loads_[chosen];
    touched_.push_back(static_cast<std::uint32_t>(chosen));
  }

  std::size_t choose(std::size_t first, std::size_t count, bool decoding) {
    if (count == 1) return 0;
    const auto drawn = [&] { return random_.below(static_cast<std::uint32_t>(count)); };
    const auto less = [&](std::size_t a, std::size_t b) {
      return loads_[first + a] < loads_[first + b];
    };
    switch (plan_.router) {
      case ServingRouter::random:
        return drawn();
      case ServingRouter::power_of_two: {
        const std::size_t a = drawn(), b = drawn();
        return less(b, a) ? b : a;
      }
      case ServingRouter::least_loaded: {
        // Of equals the next in turn.
        std::size_t best = turn_[decoding] % count;
        for (std::size_t i = 1, other = best; i < count; ++i) {
          if (++other == count) other = 0;
          if (less(other, best)) best = other;
        }
        turn_[decoding] = best + 1;
        return best;
      }
      case ServingRouter::round_robin:
        break;
    }
    return turn_[decoding]++ % count;
  }

  const ServePlan& plan_;
  std::vector<ServedRequest>& requests_;
  std::vector<RequestState> states_;
  std::vector<ReplicaQueue> replicas_;
  std::priority_queue<ServingEvent, std::vector<ServingEvent>, std::greater<>> events_;
  std::vector<std::uint32_t> touched_, ended_, leaving_;
  std::vector<RunTime> sent_until_;
  std::vector<std::uint32_t> loads_;  ///< requests of each replica: waiting or worked on
  std::array<std::size_t, 2> turn_{};
  RandomStream random_;
  std::size_t next_ = 0, ended_count_ = 0;
  std::uint64_t order_ = 0;
  ServeResult result_;
};

}  // namespace

ServeResult serve(const ServePlan& plan, std::vector<ServedRequest>& requests,
                  const std::function<bool(std::size_t)>& go_on) {
  return ServingRun(plan, requests).run(go_on);
}

}  // namespace lockstep
