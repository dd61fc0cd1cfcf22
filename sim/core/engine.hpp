/// The event loop of a simulation: processes that share one network and one clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/core/clock.hpp"
#include "sim/core/flow_network.hpp"

namespace lockstep {

/// A part of a simulation: a training step, a trace, a traffic pattern, cables that fail. It keeps
/// its own events; the ends of its flows come from the engine.
class Process {
 public:
  /// The next event of a process that has none.
  static constexpr StepTime kNever{std::numeric_limits<std::uint64_t>::max()};

  Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  virtual ~Process() = default;

  /// Called once, before anything else: starts its first flows, schedules its first events.
  virtual void begin(StepTime /*now*/) {}
  /// When it next acts by itself; kNever where only the end of a flow can bring it on. Never
  /// before the present instant. Asked while the network is settled.
  [[nodiscard]] virtual StepTime next_event() const = 0;
  /// These of its flows have moved their last byte. In the order of their index; a process may be
  /// called several times in one instant.
  virtual void flows_ended(std::span<const FlowIndex> flows, StepTime now) = 0;
  /// Handles all events that it has at `now`, in the order of scheduling, and those that it thereby
  /// schedules for `now`. Called in every instant, whether or not it has any.
  virtual void handle_events(StepTime now) = 0;
  /// Whether it lets the simulation end. A process that would go on for ever always does.
  [[nodiscard]] virtual bool done() const = 0;
  /// Called if it is not done and nothing will ever happen again: throws an error that says what it
  /// waits for. `now` is the last instant.
  [[noreturn]] virtual void fail_stuck(StepTime now) const;
};

/// Runs processes, from instant to instant. Nothing else calls FlowNetwork::next_end() and
/// settle().
///
/// An instant is the time of the earliest event or end of a flow. In it
/// 1. flows that end are told to their processes, in the order of their index;
/// 2. each process handles its events, process by process in the order in which they were added;
/// 3. the network settles, once.
/// Events that fall on the same time only now are another instant at that time.
///
/// A process of add_change() alters the links or routes of flows under way, which a flow allows
/// only after it has settled and when it is not about to end. If one of its events is due, 1 to 3
/// are repeated while flows end at this very time; then it handles its events, and the network
/// settles again.
///
/// The next event is found by asking every process: that suits some hundred of them. An instant
/// allocates nothing by itself.
class Engine {
 public:
  /// The network outlives the engine, as do the processes.
  explicit Engine(FlowNetwork& network) : network_(network) {}

  /// Adds a process, and claims for it the flows that no other has claimed.
  void add(Process& process);
  /// Adds a process that changes the network: its events are handled once the instant is settled.
  void add_change(Process& process);
  /// Flows that were added to the network since the last claim belong to `process`: it is told of
  /// their ends. Flows that a process adds while it is called are claimed for it by themselves.
  void claim(Process& process) {
    if (network_.flows() != claimed_) claim_new(process);
  }
  /// Requires a claimed flow.
  [[nodiscard]] Process& owner(FlowIndex flow) const { return *claim_of(flow).process; }

  /// Runs until all processes are done, and returns the last instant. Once. Throws what a process
  /// throws; of several that are stuck, the one added first.
  StepTime run(StepTime begin = {});

 private:
  /// Flows from the end of the claim before.
  struct Claim {
    std::size_t end;  ///< one past the last
    Process* process;
  };

  /// The processes that change the network.
  [[nodiscard]] std::span<Process* const> changes() const {
    return std::span(processes_).subspan(others_);
  }
  [[nodiscard]] const Process* first_unfinished() const;
  [[nodiscard]] StepTime next_instant() const;
  [[nodiscard]] bool flow_ends_at(StepTime now) const {
    return !network_.idle() && network_.next_end() == now;
  }
  [[nodiscard]] bool change_due(StepTime now) const;
  void run_instant(StepTime now);
  void end_flows(StepTime now);
  void change_network(StepTime now);
  void claim_new(Process& process);
  [[nodiscard]] const Claim& claim_of(FlowIndex flow) const;

  FlowNetwork& network_;
  std::vector<Process*> processes_;  ///< those that change the network last
  std::size_t others_ = 0;           ///< how many do not
  std::vector<Claim> claims_;        ///< in the order of flows
  std::size_t claimed_ = 0;          ///< end of the last one
  std::vector<FlowIndex> ended_;
};

}  // namespace lockstep
