/// The events of a service: arrivals, passes, replicas that fail, keys and values between pools.
/// serve.hpp says in which order those of an instant come; who drives it asks next() and calls
/// handle(), instant by instant.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "sim/serving/kv_flows.hpp"
#include "sim/serving/replica_router.hpp"
#include "sim/serving/serve.hpp"

namespace lockstep {

class ServingRun {
 public:
  static constexpr RunTime kNothing = INT64_MAX;

  /// With `flows` keys and values are flows; whoever runs their network tells arrived() of ends.
  /// All outlive this.
  ServingRun(const ServePlan& plan, std::vector<ServedRequest>& requests, KvFlows* flows = nullptr);

  /// When something happens next; kNothing: never.
  [[nodiscard]] RunTime next() const;
  /// All of that instant.
  void handle(RunTime now);
  /// Whether all requests have ended. What befalls replicas afterwards is nobody's concern.
  [[nodiscard]] bool over() const { return ended_count_ + turned_away() == requests_.size(); }
  [[nodiscard]] std::size_t ended() const { return ended_count_; }
  /// These are there, but for what a transfer takes beside its bytes.
  void arrived(std::span<const std::int32_t> sendings, RunTime at);
  /// Ends the books.
  ServeResult close(bool stopped);

 private:
  enum class EventKind : std::uint8_t {
    pass_end,
    transfer_end,
    loaded,       ///< keys and values that a replica's request waited for
    first_layer,  ///< of a pass with prompts: its keys and values may go
    failure,
    planned_failure,
    back,
    check,
    restarts,
    grace,
    retry,
    arrival,
    landing,   ///< at the replica, from users who are away
    patience,  ///< of a user, is over
  };
  struct Event {
    RunTime at;
    EventKind kind;
    std::uint64_t order;
    std::uint32_t index;      ///< of a replica, a request, a sending or a pool
    std::uint32_t epoch = 0;  ///< of a pass: the replica's; of a sending: its serial
    bool operator>(const Event& o) const {
      if (at != o.at) return at > o.at;
      return kind != o.kind ? kind > o.kind : order > o.order;
    }
  };

  static EventKind event_of(LifeEvent kind);
  static void add(const ReplicaQueue& replica, PoolAccount& out);
  [[nodiscard]] std::size_t turned_away() const {
    return static_cast<std::size_t>(result_.refused + result_.shed + result_.gave_up);
  }
  [[nodiscard]] std::uint32_t prompt_replicas() const {
    return static_cast<std::uint32_t>(plan_.serving.replicas);
  }
  [[nodiscard]] PoolAccount& account_of(std::size_t replica) {
    return replica < prompt_replicas() ? result_.serving : result_.decoding;
  }

  void add_pool(const PoolPlan& pool, ReplicaRules rules);
  void push(RunTime at, EventKind kind, std::uint32_t index, std::uint32_t epoch = 0) {
    events_.push({at, kind, order_++, index, epoch});
  }
  void open();
  void send_next(RunTime at);
  void arrive(std::uint32_t request, RunTime at);
  void handle_event(const Event& event, RunTime now);
  void begin_pass(std::uint32_t replica, RunTime now);
  void end_pass(std::uint32_t replica, RunTime now);
  void fail(std::uint32_t replica, bool by_chance, RunTime now);
  void lose_all(std::uint32_t replica, RunTime again, RunTime now);
  void check_load(std::uint32_t pool, RunTime now);
  void take_stranded(RunTime now);
  void close_request(std::uint32_t request, RunTime now);
  void follow_up(std::uint32_t request, RunTime now);
  void route(std::uint32_t request, bool decoding);
  [[nodiscard]] std::span<const std::uint32_t> in_reach(std::uint32_t request,
                                                        std::span<const std::uint32_t> up) const;
  [[nodiscard]] bool busy(std::uint32_t replica) const;
  [[nodiscard]] std::span<const std::uint32_t> not_busy(bool decoding);
  [[nodiscard]] bool sheds(std::uint32_t request);
  void turn_away(std::uint32_t request, ServedEnd became, RunTime now);
  void hang_up(std::uint32_t request, RunTime now);
  void submit(std::uint32_t request, std::uint32_t replica);
  void land(std::uint32_t request, std::uint32_t epoch);

  // Keys and values to the other pool (serving_transfers.cpp).
  [[nodiscard]] Bytes cache_of(std::uint32_t request) const;
  [[nodiscard]] Seconds alone_time(std::uint32_t request, Bytes bytes, Bytes rest,
                                   BytesPerSecond rate, RunTime now) const;
  void send_closed(std::uint32_t from, std::uint32_t request, RunTime now);
  void send_layers(std::uint32_t replica, RunTime now);
  void send_rest(std::uint32_t request, RunTime now);
  std::int32_t sending_of(std::uint32_t request);
  void take_over(std::uint32_t sending, std::uint32_t serial);
  void lose_sendings(std::uint32_t replica, RunTime now);
  [[nodiscard]] std::uint32_t next_group(std::uint32_t replica);

  const ServePlan& plan_;
  std::vector<ServedRequest>& requests_;
  KvFlows* flows_;
  std::vector<RequestState> states_;
  std::optional<RemotePool> remote_;                  ///< behind the caches of replicas
  RemotePool nothing_remote_{.store = TierStore(0)};  ///< behind those that only decode
  std::vector<ReplicaQueue> replicas_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<std::uint32_t> touched_, ended_, leaving_, free_;
  std::vector<RunTime> sent_until_;
  std::vector<std::uint32_t> loads_;     ///< requests of each replica: coming, waiting, worked on
  std::vector<std::uint32_t> epochs_;    ///< of each replica: how often it died
  std::vector<std::uint32_t> groups_;    ///< of each replica: that the next sequence goes to
  std::vector<std::uint32_t> stranded_;  ///< requests that no replica can take now
  std::optional<ReplicaLives> lives_;
  ReplicaRouter router_;
  std::size_t coming_;  ///< requests that come by themselves, the first ones
  std::size_t next_ = 0, ended_count_ = 0;
  std::uint64_t order_ = 0;
  RunTime now_ = 0;
  ServeResult result_;
};

}  // namespace lockstep
