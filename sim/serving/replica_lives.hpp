/// Which replicas are there: they fail and come back, and a pool grows and shrinks with its load.
///
/// A replica that comes back, or is started, has its weights to load first. One that is no longer
/// needed takes nothing new and is switched off when its last request has ended; until then it may
/// be taken back at once.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/scenario/failure_mode.hpp"

namespace lockstep {

/// What befalls replicas of a pool, and when it grows.
struct ReplicaLife {
  Seconds mean_time{};  ///< of a replica between failures; 0: they fail when `planned` says, only
  RunTime down = 0;     ///< until it serves again: repair, and its weights are loaded
  struct Planned {
    RunTime at = 0;
    int replica = 0;
  };
  std::vector<Planned> planned{};

  int least = 0;      ///< replicas that are always on; 0: all are
  double target = 0;  ///< requests of a replica, waiting or worked on, that the pool is sized for
  RunTime start = 0;  ///< of a replica that is switched on
  RunTime check = 0;  ///< between looks at the load
  RunTime calm = 0;   ///< for how long fewer must do before one is switched off

  RunTime restart_at = -1;    ///< first round of planned restarts; below 0: none
  RunTime restart_every = 0;  ///< between the beginnings of two rounds; 0: one round
  int restart_at_once = 1;    ///< replicas that are away together
  RunTime grace = 0;          ///< to end what a replica has
};

enum class LifeEvent : std::uint8_t { failure, planned_failure, back, check, restarts, grace };

class ReplicaLives {
 public:
  using Push = std::function<void(RunTime at, LifeEvent kind, std::uint32_t index)>;

  /// Replicas of both pools in one row, with the requests of each; `push` has events told back at
  /// their time: of a replica, or of a pool (check, restarts).
  ReplicaLives(const std::array<const ReplicaLife*, 2>& of, std::array<std::uint32_t, 2> counts,
               const std::vector<std::uint32_t>& loads, std::uint64_t seed, Push push);

  /// Those that take requests, in their order.
  [[nodiscard]] std::span<const std::uint32_t> up(bool decoding) const { return up_[decoding]; }

  /// Whether it had requests to lose: it was on.
  bool fail(std::uint32_t replica, bool by_chance, RunTime now);
  /// It serves from now on, with empty memory, unless a later event has that: whether it does.
  bool back(std::uint32_t replica, RunTime now);
  /// It has nothing to do: switched off where that is awaited. Whether it was.
  bool emptied(std::uint32_t replica, RunTime now);
  /// A round of planned restarts begins: the replicas that are up, in their order.
  void begin_restarts(std::uint32_t pool, RunTime now);
  /// Whether a replica that is to be restarted has not ended what it had: it loses that now.
  bool grace_over(std::uint32_t replica, RunTime now);
  /// Looks at the load: requests of the pool.
  void check(std::uint32_t pool, double requests, RunTime now);
  /// Ends the books.
  void close(RunTime now);

  [[nodiscard]] bool anything() const { return anything_; }
  [[nodiscard]] std::int64_t failures() const { return failures_; }
  [[nodiscard]] std::int64_t restarts() const { return restarts_; }
  /// Replicas whose turn in a round of planned restarts has not come, or that still end what they
  /// have; of a pool whose first round is still to come all that are up.
  [[nodiscard]] std::int64_t restarts_left() const;
  /// Of all replicas of a pool, after close().
  [[nodiscard]] RunTime down(std::size_t pool) const { return down_[pool]; }
  [[nodiscard]] RunTime off(std::size_t pool) const { return off_[pool]; }
  [[nodiscard]] std::uint32_t most_up(std::size_t pool) const { return most_up_[pool]; }

 private:
  enum class State : std::uint8_t { up, starting, draining, down, off };
  struct Replica {
    State state = State::up;
    bool restarts = false;  ///< draining for that, or down
    RunTime since = 0;
    RandomStream failures;
    RunTime drawn = -1;  ///< its next failure by chance; an older one is void
  };

  [[nodiscard]] std::size_t pool_of(std::uint32_t r) const { return r < counts_[0] ? 0 : 1; }
  void enter(std::uint32_t replica, State state, RunTime now);
  void draw_failure(std::uint32_t replica, RunTime now);
  void restart(std::uint32_t replica, RunTime now);
  void restart_next(std::uint32_t pool, RunTime now);
  void end_restart(std::uint32_t replica, RunTime now);
  void grow(std::uint32_t pool, std::uint32_t more, RunTime now);
  void shrink(std::uint32_t pool, RunTime now);

  std::array<const ReplicaLife*, 2> of_;
  std::array<std::uint32_t, 2> counts_;
  const std::vector<std::uint32_t>& loads_;
  Push push_;
  std::vector<Replica> replicas_;
  std::array<std::vector<std::uint32_t>, 2> up_;
  std::array<RunTime, 2> down_{}, off_{}, low_since_{-1, -1};
  std::array<std::uint32_t, 2> most_up_{};
  /// Of each pool: those that are to be restarted yet, the last one first, and those under way.
  std::array<std::vector<std::uint32_t>, 2> to_restart_;
  std::array<int, 2> restarting_{};
  std::array<bool, 2> had_round_{};
  std::int64_t failures_ = 0, restarts_ = 0;
  bool anything_ = false;
};

}  // namespace lockstep
