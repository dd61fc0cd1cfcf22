#include "sim/trace/loggops/loggops.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <queue>
#include <utility>

#include "models/base/number_text.hpp"
#include "sim/trace/loggops/match_queues.hpp"

namespace lockstep {
namespace {

using GoalOperation = GoalRank::Operation;
static_assert(GoalRank::kAny == MatchKey::kAny);

/// What waits for each operation, in the order in which the file says it.
class WaitLists {
 public:
  void reserve(std::size_t operations) { first_.assign(operations + 1, 0); }
  void count(std::size_t other) { ++first_[other + 1]; }
  void begin_filling() {
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    list_.resize(first_.back());
    next_.assign(first_.begin(), first_.end() - 1);
  }
  void add(std::size_t other, std::uint32_t operation) { list_[next_[other]++] = operation; }
  [[nodiscard]] std::span<const std::uint32_t> of(std::size_t other) const {
    return std::span(list_).subspan(first_[other], first_[other + 1] - first_[other]);
  }

 private:
  std::vector<std::size_t> first_, next_;
  std::vector<std::uint32_t> list_;
};

/// The ranks' operations in one row, and where each rank's begin.
class GoalOperations {
 public:
  GoalOperations(const std::string& file, std::span<const GoalRank> ranks)
      : in_order_(in_order(file, ranks)) {
    std::uint64_t total = 0;
    for (const GoalRank* rank : in_order_) total += rank->operations.size();
    if (total >= std::numeric_limits<std::uint32_t>::max()) {
      fail_trace(file, fmt::format("{} operations", total), "fewer than 4,294,967,295");
    }
    for (std::uint32_t r = 0; r < in_order_.size(); ++r) {
      first_.push_back(static_cast<std::uint32_t>(rank_of_.size()));
      rank_of_.insert(rank_of_.end(), in_order_[r]->operations.size(), r);
    }
  }

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(rank_of_.size()); }
  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(first_.size()); }
  [[nodiscard]] const GoalRank& rank(std::uint32_t r) const { return *in_order_[r]; }
  [[nodiscard]] std::uint32_t first(std::uint32_t r) const { return first_[r]; }
  [[nodiscard]] std::uint32_t rank_of(std::uint32_t i) const { return rank_of_[i]; }
  /// From 0, as its rank counts them.
  [[nodiscard]] std::uint32_t number(std::uint32_t i) const { return i - first_[rank_of_[i]]; }
  const GoalOperation& operator[](std::uint32_t i) const {
    return in_order_[rank_of_[i]]->operations[number(i)];
  }

 private:
  static std::vector<const GoalRank*> in_order(const std::string& file,
                                               std::span<const GoalRank> ranks) {
    std::vector<const GoalRank*> out(ranks.size());
    for (const GoalRank& rank : ranks) {
      const auto r = static_cast<std::size_t>(rank.rank);
      if (r >= out.size()) {
        fail_trace(file, fmt::format("rank {}", rank.rank),
                   fmt::format("ranks below num_ranks, {}", out.size()));
      }
      if (out[r] != nullptr) fail_trace(file, fmt::format("rank {} again", r), "each rank once");
      out[r] = &rank;
    }
    return out;
  }

  std::vector<const GoalRank*> in_order_;
  std::vector<std::uint32_t> first_, rank_of_;
};

class LogGopsRun {
 public:
  LogGopsRun(const std::string& file, std::span<const GoalRank> ranks,
             const LogGopsParameters& parameters)
      : file_(file), parameters_(parameters), operations_(file, ranks), state_(operations_.size()) {
    out_.ends.resize(operations_.ranks());
    out_.operations = operations_.size();
    set_up_hosts();
    set_up_waits();
  }

  LogGopsReplay run() {
    for (std::uint32_t i = 0; i < state_.size(); ++i) {
      if (state_[i].unmet == 0) freed_.push_back(i);
    }
    release();
    while (!queue_.empty()) {
      const Event event = queue_.top();
      queue_.pop();
      handle(event);
      release();
    }
    check_all_done();
    out_.end = out_.ends.empty() ? StepTime{} : std::ranges::max(out_.ends);
    return std::move(out_);
  }

 private:
  struct State {
    std::uint32_t unmet = 0;  ///< what it still waits for
    bool done = false;
    /// The last end or start that it waited for; once sent by rendezvous, when its CPU was done.
    StepTime ready;
  };
  /// An operation's turn, or the arrival of a send's message. One that has to wait keeps its place
  /// among those of its new time.
  struct Event {
    StepTime at;
    std::uint64_t order = 0;
    std::uint32_t operation = 0;
    bool arrives = false;
    bool operator>(const Event& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };
  /// A message that no receive waited for.
  struct Unexpected {
    std::uint32_t send = 0;
    StepTime received;
  };
  /// When its CPUs and NICs are free, and what is at it without its match.
  struct Host {
    std::vector<StepTime> cpus, nics_out, nics_in;
    MatchQueues<std::uint32_t> posted;  ///< receives
    MatchQueues<Unexpected> unexpected;
  };

  void set_up_hosts() {
    std::size_t cpus = 1, nics = 1;
    MatchQueues<std::uint32_t>::Asked by_sends;
    MatchQueues<Unexpected>::Asked by_receives;
    for (std::uint32_t i = 0; i < operations_.size(); ++i) {
      const GoalOperation& own = operations_[i];
      cpus = std::max(cpus, own.cpu + std::size_t{1});
      nics = std::max(nics, own.nic + std::size_t{1});
      const bool named = own.kind != GoalRank::Kind::calculation && own.peer != GoalRank::kAny;
      if (named && own.peer >= operations_.ranks()) {
        fail_trace(place(i), fmt::format("rank {}", own.peer),
                   fmt::format("ranks up to {}", operations_.ranks() - 1));
      }
      const bool any_peer = own.peer == GoalRank::kAny, any_tag = own.tag == GoalRank::kAny;
      if (own.kind == GoalRank::Kind::send && any_tag) by_sends.any_tag = true;
      if (own.kind != GoalRank::Kind::receive) continue;
      if (any_tag && !any_peer) by_receives.any_tag = true;
      if (any_peer && !any_tag) by_receives.any_peer = true;
    }
    const std::vector<StepTime> cpu(cpus), nic(nics);
    hosts_.assign(operations_.ranks(), {.cpus = cpu,
                                        .nics_out = nic,
                                        .nics_in = nic,
                                        .posted = MatchQueues<std::uint32_t>(by_sends),
                                        .unexpected = MatchQueues<Unexpected>(by_receives)});
  }

  void set_up_waits() {
    const auto fill = [&](std::vector<GoalRank::Wait> GoalRank::* waits, WaitLists& out) {
      out.reserve(state_.size());
      for (std::uint32_t r = 0; r < operations_.ranks(); ++r) {
        const std::uint32_t first = operations_.first(r);
        for (const auto& [own, other] : operations_.rank(r).*waits) {
          out.count(first + other);
          ++state_[first + own].unmet;
        }
      }
      out.begin_filling();
      for (std::uint32_t r = 0; r < operations_.ranks(); ++r) {
        const std::uint32_t first = operations_.first(r);
        for (const auto& [own, other] : operations_.rank(r).*waits) {
          out.add(first + other, first + own);
        }
      }
    };
    fill(&GoalRank::ends, for_end_);
    fill(&GoalRank::starts, for_start_);
  }

  // --- time

  [[noreturn]] void fail_long() const {
    fail_trace(file_, "a schedule that takes more than 100 days", "shorter ones");
  }
  [[nodiscard]] StepTime later(StepTime at, StepTime by) const {
    const StepTime out = at + by;
    if (out > kLongestReplay) fail_long();
    return out;
  }
  /// Of all bytes but the first.
  [[nodiscard]] StepTime for_bytes(const GoalOperation& own, double each_ps) const {
    const double ps = static_cast<double>(std::max<std::uint64_t>(own.size, 1) - 1) * each_ps;
    if (!(ps < static_cast<double>(kLongestReplay.ps))) fail_long();
    return {static_cast<std::uint64_t>(std::llround(ps))};
  }

  // --- operations

  void satisfy(std::span<const std::uint32_t> waiting, StepTime at) {
    for (const std::uint32_t i : waiting) {
      State& own = state_[i];
      own.ready = std::max(own.ready, at);
      if (--own.unmet == 0) freed_.push_back(i);
    }
  }
  void started(std::uint32_t i, StepTime at) { satisfy(for_start_.of(i), at); }
  void ended(std::uint32_t i, StepTime at) {
    state_[i].done = true;
    StepTime& end = out_.ends[operations_.rank_of(i)];
    end = std::max(end, at);
    satisfy(for_end_.of(i), at);
  }

  /// Queues what has become free.
  void release() {
    const auto kind = [&](std::uint32_t i) {
      return std::pair(operations_.rank_of(i), operations_[i].kind);
    };
    std::ranges::stable_sort(freed_, {}, kind);
    for (const std::uint32_t i : freed_) {
      const GoalOperation& own = operations_[i];
      const Host& host = hosts_[operations_.rank_of(i)];
      StepTime at = std::max(state_[i].ready, host.cpus[own.cpu]);
      if (own.kind == GoalRank::Kind::send) at = std::max(at, host.nics_out[own.nic]);
      queue_.push({.at = at, .order = order_++, .operation = i, .arrives = false});
    }
    freed_.clear();
  }

  void handle(const Event& event) {
    if (event.arrives) return arrive(event);
    switch (operations_[event.operation].kind) {
      case GoalRank::Kind::send:
        return send(event);
      case GoalRank::Kind::receive:
        return receive(event);
      case GoalRank::Kind::calculation:
        return calculate(event);
    }
  }
  /// Whether `free` is later, at which the event then comes again.
  bool waits_until(Event event, StepTime free) {
    if (free <= event.at) return false;
    event.at = free;
    queue_.push(event);
    return true;
  }

  void calculate(const Event& event) {
    const std::uint32_t i = event.operation;
    StepTime& cpu = hosts_[operations_.rank_of(i)].cpus[operations_[i].cpu];
    if (waits_until(event, cpu)) return;
    cpu = later(event.at, {operations_[i].size * 1000});
    started(i, event.at);
    ended(i, cpu);
  }

  void send(const Event& event) {
    const std::uint32_t i = event.operation;
    const GoalOperation& own = operations_[i];
    Host& host = hosts_[operations_.rank_of(i)];
    StepTime &cpu = host.cpus[own.cpu], &nic = host.nics_out[own.nic];
    if (waits_until(event, std::max(cpu, nic))) return;
    cpu = later(event.at, parameters_.overhead + for_bytes(own, parameters_.overhead_per_byte_ps));
    nic = later(event.at, parameters_.gap + for_bytes(own, parameters_.gap_per_byte_ps));
    queue_.push({.at = later(event.at, parameters_.overhead + parameters_.latency),
                 .order = order_++,
                 .operation = i,
                 .arrives = true});
    ++out_.messages;
    started(i, event.at);
    if (is_eager(own)) return ended(i, cpu);
    state_[i].ready = cpu;
    ++out_.rendezvous;
  }
  [[nodiscard]] bool is_eager(const GoalOperation& own) const {
    return own.size <= parameters_.largest_eager;
  }

  /// What a message is matched by at the rank that it goes to.
  [[nodiscard]] MatchKey sent_key(std::uint32_t send) const {
    return {.peer = operations_.rank_of(send), .tag = operations_[send].tag};
  }
  [[nodiscard]] MatchKey wanted_key(std::uint32_t receive) const {
    return {.peer = operations_[receive].peer, .tag = operations_[receive].tag};
  }

  void receive(const Event& event) {
    const std::uint32_t i = event.operation;
    Host& host = hosts_[operations_.rank_of(i)];
    started(i, event.at);
    const std::optional<Unexpected> message = host.unexpected.take(wanted_key(i));
    if (!message) return host.posted.push(wanted_key(i), i);
    met(message->send, event.at);
    ended(i, std::max(event.at, message->received));
  }

  void arrive(const Event& event) {
    const std::uint32_t i = event.operation;
    const GoalOperation& own = operations_[i];
    Host& host = hosts_[own.peer];
    StepTime &cpu = host.cpus[own.cpu], &nic = host.nics_in[own.nic];
    if (waits_until(event, std::max(cpu, nic))) return;
    const double slower = std::max(parameters_.overhead_per_byte_ps, parameters_.gap_per_byte_ps);
    cpu = later(event.at, parameters_.overhead + for_bytes(own, slower));
    nic = later(event.at, parameters_.gap + for_bytes(own, parameters_.gap_per_byte_ps));
    const std::optional<std::uint32_t> wanted = host.posted.take(sent_key(i));
    if (!wanted) return host.unexpected.push(sent_key(i), {i, cpu});
    met(i, event.at);
    ended(*wanted, cpu);
  }
  /// A receive has taken the message: a rendezvous lets its sender go on.
  void met(std::uint32_t send, StepTime at) {
    if (is_eager(operations_[send])) return;
    const GoalOperation& own = operations_[send];
    Host& host = hosts_[operations_.rank_of(send)];
    for (StepTime* free : {&host.cpus[own.cpu], &host.nics_out[own.nic]}) {
      *free = std::max(*free, at);
    }
    ended(send, std::max(at, state_[send].ready));
  }

  // --- errors

  [[nodiscard]] std::string place(std::uint32_t i) const {
    return fmt::format("{}, rank {}, operation {}", file_, operations_.rank_of(i),
                       operations_.number(i) + 1);
  }
  static std::string tag_text(std::uint32_t tag) {
    return tag == GoalRank::kAny ? "any tag" : fmt::format("tag {}", tag);
  }
  void check_all_done() {
    for (Host& host : hosts_) {
      if (const std::optional<std::uint32_t> posted = host.posted.first()) fail_posted(*posted);
      if (const std::optional<Unexpected> left = host.unexpected.first()) {
        fail_unexpected(left->send);
      }
    }
    for (std::uint32_t i = 0; i < state_.size(); ++i) {
      if (state_[i].done) continue;
      fail_trace(place(i), "an operation that never begins, as what it requires waits in a circle",
                 "requires and irequires without circles");
    }
  }
  [[noreturn]] void fail_posted(std::uint32_t i) const {
    const GoalOperation& own = operations_[i];
    const std::string from =
        own.peer == GoalRank::kAny ? "anybody" : fmt::format("rank {}", own.peer);
    fail_trace(
        place(i),
        fmt::format("a receive from {} with {}, for which nothing comes", from, tag_text(own.tag)),
        "a send for each receive, in an order that lets all ranks go on");
  }
  /// Whether its receive is there, behind what never ends.
  [[nodiscard]] bool has_waiting_receive(std::uint32_t send) const {
    for (std::uint32_t i = 0; i < state_.size(); ++i) {
      const bool receives = operations_[i].kind == GoalRank::Kind::receive;
      const bool of_peer = operations_.rank_of(i) == operations_[send].peer;
      if (receives && of_peer && state_[i].unmet > 0 && wanted_key(i).fits(sent_key(send))) {
        return true;
      }
    }
    return false;
  }
  [[noreturn]] void fail_unexpected(std::uint32_t i) const {
    const GoalOperation& own = operations_[i];
    if (has_waiting_receive(i)) {
      fail_trace(
          place(i),
          fmt::format("a message to rank {} with {}, whose receive waits for what never ends",
                      own.peer, tag_text(own.tag)),
          fmt::format("an order that lets all ranks go on: a send of more than {} bytes (S) "
                      "ends once its receive has begun",
                      parameters_.largest_eager));
    }
    fail_trace(place(i),
               fmt::format("a message to rank {} with {}, which it does not receive", own.peer,
                           tag_text(own.tag)),
               "a receive for each message");
  }

  const std::string& file_;
  const LogGopsParameters& parameters_;
  GoalOperations operations_;
  std::vector<State> state_;
  WaitLists for_end_, for_start_;
  std::vector<Host> hosts_;
  std::vector<std::uint32_t> freed_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::uint64_t order_ = 0;
  LogGopsReplay out_;
};

}  // namespace

LogGopsReplay replay_loggops(const std::string& file, std::span<const GoalRank> ranks,
                             const LogGopsParameters& parameters) {
  return LogGopsRun(file, ranks, parameters).run();
}

}  // namespace lockstep
