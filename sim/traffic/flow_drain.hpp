/// Flows that only end: none starts any more. Their rates by links, not by flows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "models/base/units.hpp"
#include "sim/core/clock.hpp"
#include "sim/core/flow_network.hpp"
#include "sim/core/indexed_heap.hpp"
#include "sim/core/max_min.hpp"

namespace lockstep {

/// A message that starts with all others.
struct DrainedFlow {
  FlowIndex flow;
  Bytes amount;
};
struct FlowEnd {
  StepTime at;
  FlowIndex flow;
  friend constexpr auto operator<=>(const FlowEnd&, const FlowEnd&) = default;
};

/// Max-min fair flows from an instant on in which the last of them has started. All flows that a
/// full link holds are as fast, so each such link has a level (their rate) and a fluid clock (the
/// bytes that one of them has moved since the link filled), and its flows end in the order of what
/// that clock will show: a change of a level costs an addition for each link that its flows cross
/// besides, and nothing for the flows themselves. MaxMin books each flow whose rate changes, some
/// thousand at every end of a large all-to-all of mixed sizes; this is several times as fast there.
///
/// In a settled state, up to 1e-12 of a rate,
/// - a link that holds flows is full: what others take there and its flows at its level,
/// - a link that holds none carries no more than it can,
/// - no flow is faster than the level of a link that it crosses.
/// These are max-min fair rates, and there is only one set of them. A link whose sums have changed
/// is settled again, the lowest level first, until none is left. Sums are kept in another order
/// than MaxMin's: ends are the same but for the rounding of a tick. See drain_flows().
class FlowDrain {
 public:
  /// What it can take over: links that each flow crosses once, no more than these.
  static constexpr std::size_t kMostLinks = 8;
  /// Links are settled once or twice an instant: so often on average, and they never come to rest.
  static constexpr std::size_t kMostTimes = 200;

  /// Of a solver whose flows all run, settled, and have weight 1; `remaining` has the bytes of
  /// each. They carry their bytes over all of their links once.
  FlowDrain(const MaxMin& rates, std::span<const double> remaining, StepTime now,
            std::size_t most_times);

  [[nodiscard]] bool idle() const { return due_.empty(); }
  /// Requires !idle() and a settled state.
  [[nodiscard]] StepTime first_end() const { return due_.top().key; }
  /// Ends the flows that are due, in flow order.
  void take_ended(StepTime now, std::vector<FlowIndex>& ended);
  /// Once an instant, after its ends. False: levels did not come to rest.
  [[nodiscard]] bool come_to_rest(StepTime now);

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// What a change of a level reads and writes of every link that it reaches.
  struct Link {
    double others = 0;         ///< taken by flows that other links hold
    double full_at = 0;        ///< capacity, and rounding
    double level = kInfinity;  ///< of the flows that it holds; infinity: it holds none
    double fastest = 0;        ///< at least the level of any flow that another link holds
    std::uint32_t place = 0;   ///< in by_level_
  };
  /// What only a change of the link itself reads.
  struct LinkDetail {
    double capacity = 0;
    double clock = 0;  ///< bytes that a flow held here has moved, at `at`
    StepTime at;
    std::vector<std::uint32_t> held;  ///< flows that it holds, each with the other links it crosses
    std::vector<std::uint32_t> flows;                    ///< that cross it; some may have ended
    std::vector<std::pair<double, std::uint32_t>> ends;  ///< heap: clock at the end, flow
    bool is_moved = false;                               ///< listed in moved_
  };
  struct State {
    std::uint32_t bottleneck = kNone;  ///< none: it has ended
    std::uint32_t place = 0;           ///< among those held there
    double clock_at_end = 0;
  };

  [[nodiscard]] std::size_t held(const LinkDetail& link) const {
    return link.held.size() / stride_;
  }
  [[nodiscard]] double clock(std::uint32_t link, StepTime now) const;
  void advance(std::uint32_t link);
  void hold(std::uint32_t flow, std::uint32_t link, double remaining);
  void let_go(std::uint32_t flow);
  void end(std::uint32_t flow);
  void disturb(std::uint32_t link);
  void add_up();
  void order_by_level();
  [[nodiscard]] std::uint32_t lowest_disturbed();
  void settle_link(std::uint32_t index);
  void search_level(std::uint32_t index);
  void set_level(std::uint32_t index, double level);
  void change_others(std::uint32_t link, double change, double level);
  void move_ends(std::uint32_t link);
  void drop_stale_ends(LinkDetail& link, std::uint32_t index);
  void set_due(std::uint32_t index);

  std::size_t most_times_;
  std::size_t stride_ = 1;
  std::uint32_t none_ = 0;   ///< the link that stands where a flow crosses fewer than others
  std::vector<Link> links_;  ///< and none_
  std::vector<LinkDetail> details_;
  std::vector<State> states_;             ///< by flow
  std::vector<std::uint32_t> links_of_;   ///< of each flow: stride_ of them
  IndexedHeap<StepTime> due_;             ///< links, by their next end
  std::vector<std::uint32_t> by_level_;   ///< links that have flows, about in order of levels
  std::vector<std::uint64_t> disturbed_;  ///< a bit for each of by_level_
  std::vector<std::uint32_t> moved_;      ///< links whose ends are another time now
  std::vector<std::pair<std::uint32_t, double>> found_;  ///< of search_level()
  StepTime now_;
  std::uint32_t settled_ = 0;  ///< how many times
};

/// When messages end that all start at `now` on a network on which nothing else moves, in the order
/// of their ends, then of flows: as FlowNetwork has them but for the rounding of a tick. Nothing
/// where a flow crosses more links than FlowDrain takes or one of them with another coefficient
/// than 1, where one has another weight, or where levels do not come to rest. Requires amounts
/// above 0 and each flow once; what moves is not booked in the network.
[[nodiscard]] std::optional<std::vector<FlowEnd>> drain_flows(
    const FlowNetwork& network, std::span<const DrainedFlow> messages, StepTime now,
    std::size_t most_times = FlowDrain::kMostTimes);

}  // namespace lockstep
