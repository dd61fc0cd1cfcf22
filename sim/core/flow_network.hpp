/// Flows that share links by max-min fairness and advance in fluid time.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/base/units.hpp"
#include "sim/core/clock.hpp"
#include "sim/core/indexed_heap.hpp"
#include "sim/core/max_min.hpp"

namespace lockstep {

/// Told what every flow does, as it happens. All calls of one flow are in the order of time.
class FlowObserver {
 public:
  virtual ~FlowObserver() = default;
  virtual void started(FlowIndex flow, Bytes amount, StepTime now) = 0;
  /// A span of constant rate has ended; `held_by` is the full link that set the rate.
  virtual void moved(FlowIndex flow, StepTime from, StepTime to, BytesPerSecond rate,
                     LinkIndex held_by) = 0;
  virtual void ended(FlowIndex flow, StepTime now) = 0;
};

/// The network of a step. Within one instant: collect_ended(), then any start(), then settle()
/// once. An end may fall on the present instant (a few bytes on a fast link): ask next_end() after
/// settle() and do not assume that it lies ahead.
class FlowNetwork {
 public:
  /// Makes place for so many links and edges in all; faster where many are added at once.
  void reserve(std::size_t links, std::size_t edges) { rates_.reserve(links, edges); }
  /// Requires a finite capacity above 0.
  LinkIndex add_link(BytesPerSecond capacity);
  /// A channel that can be started again and again, one message at a time. Repeated links of
  /// `edges` are added up. Requires at least one edge and finite coefficients above 0.
  FlowIndex add_flow(std::span<const FlowEdge> edges);

  /// Sees everything from now on, after those that observe already. Not owned.
  void observe(FlowObserver* observer) { observers_.push_back(observer); }

  /// The link carries so much from the next settle() on. Requires what add_link() requires, and
  /// that no flow over it is due now.
  void set_capacity(LinkIndex link, BytesPerSecond capacity) {
    rates_.set_capacity(link, capacity);
  }

  /// Shares links from the next settle() on as a flow of this weight (MaxMin::set_weight()).
  /// Requires a finite weight above 0, and of an active flow what hand_over() requires of `from`.
  void set_weight(FlowIndex flow, double weight, StepTime now);
  [[nodiscard]] double weight(FlowIndex flow) const { return rates_.weight(flow); }

  /// Begins to move `amount` over the flow. Requires a finite amount above 0 and !active(flow).
  void start(FlowIndex flow, Bytes amount, StepTime now);
  /// From start() until collect_ended() reports it.
  [[nodiscard]] bool active(FlowIndex flow) const { return transfers_[flow].amount > 0; }
  /// Nothing is moving: next_end() has no answer.
  [[nodiscard]] bool idle() const { return due_.empty(); }

  /// Starts the flow on hold: it moves nothing until resume().
  void start_held(FlowIndex flow, Bytes amount, StepTime now);
  /// What is left of an active flow's amount becomes that of another one, whose links are the new
  /// way and which is on hold until resume(); `from` is then inactive, without an end. Requires
  /// active(from), !active(to), and that `from` has been settled since its start and is not due
  /// now.
  void hand_over(FlowIndex from, FlowIndex to, StepTime now);
  /// Takes an active flow off its links; what is left stays, and resume() puts it back. A held flow
  /// is active(), but never due. Requires what hand_over() requires of `from`.
  void hold(FlowIndex flow, StepTime now);
  void resume(FlowIndex flow, StepTime now);
  [[nodiscard]] bool held(FlowIndex flow) const { return transfers_[flow].held; }

  /// Shares the links anew for all starts and ends of this instant. Once per instant, after them;
  /// a second call in the same instant is right but costs a second solve.
  void settle(StepTime now);

  /// When the next flow ends, to the nearest tick. One that would take more than 196 days ends
  /// after 196 days, and none ends after the clock's last tick. Requires !idle() and a settled
  /// network.
  [[nodiscard]] StepTime next_end() const {
    assert(!due_.empty());
    return due_.top().key;
  }
  /// Ends every flow due at `now`, in flow order, and appends them to `ended`. Requires that none
  /// was due before.
  void collect_ended(StepTime now, std::vector<FlowIndex>& ended);
  /// Tells observers what flows that go on have moved until now, where nobody will go on to look.
  /// Requires a settled network, and no end before `now`.
  void take_stock(StepTime now);

  /// 0 when not active. Requires a settled network, as load().
  [[nodiscard]] BytesPerSecond rate(FlowIndex flow) const { return rates_.rate(flow); }
  /// What active flows take of the link now.
  [[nodiscard]] BytesPerSecond load(LinkIndex link) const { return rates_.load(link); }
  [[nodiscard]] BytesPerSecond capacity(LinkIndex link) const { return rates_.capacity(link); }
  /// The flow's use of links, repeated ones added up.
  [[nodiscard]] std::span<const MaxMin::Edge> edges(FlowIndex flow) const {
    return rates_.edges(flow);
  }
  [[nodiscard]] std::size_t links() const { return rates_.links(); }
  [[nodiscard]] std::size_t flows() const { return rates_.flows(); }
  /// What ended flows moved over the link since construction: their rates over time, so that it
  /// equals the amounts started but for the rounding of ends to ticks.
  [[nodiscard]] Bytes carried(LinkIndex link) const { return rates_.carried(link); }

 private:
  struct Transfer {
    double amount = 0;      ///< bytes; 0 while not active
    double remaining = 0;   ///< bytes at `since`
    StepTime since;         ///< when its rate last changed
    LinkIndex held_by = 0;  ///< the link that set the rate
    bool held = false;
  };

  void end(FlowIndex flow, StepTime now);
  /// Books what the flow moved since its rate last changed.
  void book(FlowIndex flow, BytesPerSecond rate, StepTime now);
  /// Off its links: books what it has carried.
  void leave(FlowIndex flow);

  MaxMin rates_;
  IndexedHeap<StepTime> due_;  ///< ends of active flows
  std::vector<Transfer> transfers_;
  std::vector<FlowObserver*> observers_;
};

}  // namespace lockstep
