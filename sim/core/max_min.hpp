/// Max-min fair rates of flows that share links, re-solved only where a start, an end or another
/// capacity disturbs them.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "models/base/units.hpp"
#include "sim/core/indexed_heap.hpp"

namespace lockstep {

using LinkIndex = std::uint32_t;
using FlowIndex = std::uint32_t;

/// A flow's use of a link: bytes over the link per byte of the flow's progress.
///
/// Fairness is between flows. Where one flow stands for several streams (a ring, a folded replica),
/// let its progress be that of one stream and the coefficient the number of streams on the link:
/// then each stream gets the share that a flow of its own would get. Where a network does not share
/// by streams, a weight says how it does (MaxMin::set_weight).
struct FlowEdge {
  LinkIndex link;
  double coefficient;
};

/// The solver. Rates x satisfy sum(coefficient * x) <= capacity on every link, and no rate can rise
/// without lowering one that is as low or lower: every flow has a full link on which none is
/// faster.
///
/// A change at rate r leaves every rate below r as it was. So solve() raises one water level from
/// below and lifts out only the flows whose bottleneck was disturbed; what lies under the level is
/// final. A link waits in a heap under a cheap lower bound of its own level; the exact level is
/// found when the link is popped. Links that carry one flow wait as one. Rates that come out within
/// 1e-12 of what they were stay the same bits, or a change would spread through ties. Starts for
/// which all shared links have room need neither.
///
/// Flows of other weights than 1 are fair in rate / weight, which is their level; without weights
/// a rate is a level.
///
/// Flows are permanent: start() and stop() neither create nor forget one, and allocate nothing once
/// each link has held its flows. Where a flow has a link to itself, as a ring has most of its
/// hundreds, the link's sums aren't kept: the lowest such link stands for all. To settle a flow
/// costs O(links that it shares), and one alone on all its links no heap.
class MaxMin {
 public:
  /// Makes place for so many links and edges in all; faster where many are added at once.
  void reserve(std::size_t links, std::size_t edges) {
    links_.reserve(links);
    edge_of_link_.reserve(links);
    edges_.reserve(edges);
  }
  /// Requires a finite capacity above 0.
  LinkIndex add_link(BytesPerSecond capacity);
  /// A stopped flow. Requires at least one edge, known links, finite coefficients above 0. Repeated
  /// links are added up, since one flow counts as one on a link.
  FlowIndex add_flow(std::span<const FlowEdge> edges);
  /// The link carries so much from the next solve() on. Requires a finite capacity above 0.
  void set_capacity(LinkIndex link, BytesPerSecond capacity);

  /// On a full link the flow goes `weight` times as fast as one of weight 1, the weight of a flow
  /// that was told none. Requires a stopped flow, and a finite weight above 0.
  void set_weight(FlowIndex flow, double weight);
  [[nodiscard]] double weight(FlowIndex flow) const { return details_[flow].weight; }

  [[nodiscard]] std::size_t links() const { return links_.size(); }
  [[nodiscard]] std::size_t flows() const { return flows_.size(); }

  /// The flow takes part from the next solve() on. Requires a stopped flow.
  void start(FlowIndex flow);
  /// The flow's rate is 0 at once; the others' follow with solve(). It has moved so many bytes
  /// since its start, as its links count. Requires that solve() has run since the flow's start. It
  /// may start again before the next solve().
  void stop(FlowIndex flow, Bytes moved = {});

  /// Settles all starts, stops and new capacities since the last call together. Returns the flows
  /// whose rate is now another (those that started among them), each once; valid until the next
  /// call.
  const std::vector<FlowIndex>& solve();

  /// 0 for a stopped flow. Requires a solved state, as the next ones.
  [[nodiscard]] BytesPerSecond rate(FlowIndex flow) const {
    return BytesPerSecond{details_[flow].weight * flows_[flow].seen};
  }
  /// The rate before the last solve(), of a flow that it returned.
  [[nodiscard]] BytesPerSecond previous_rate(FlowIndex flow) const {
    return BytesPerSecond{details_[flow].weight * details_[flow].previous};
  }
  /// The full link that holds the flow to its rate; of those that it has to itself and that tie,
  /// its first. Requires a running flow.
  [[nodiscard]] LinkIndex bottleneck(FlowIndex flow) const { return flows_[flow].bottleneck; }
  [[nodiscard]] BytesPerSecond capacity(LinkIndex link) const {
    return BytesPerSecond{links_[link].capacity};
  }
  /// What flows that were stopped had moved over the link.
  [[nodiscard]] Bytes carried(LinkIndex link) const { return Bytes{links_[link].carried}; }
  /// What running flows take of the link, added up afresh.
  [[nodiscard]] BytesPerSecond load(LinkIndex link) const;

  /// A flow's use of a link, after repeated links were added up.
  struct Edge {
    LinkIndex link;
    std::uint32_t slot;  ///< where the running flow stands in the link's list
    double coefficient;
  };
  [[nodiscard]] std::span<const Edge> edges(FlowIndex flow) const {
    return {edges_.data() + details_[flow].first_edge, edges_.data() + details_[flow].end_edge};
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr LinkIndex kNoLink = std::numeric_limits<LinkIndex>::max();

  /// What links read of each of their flows, again and again: four to a cache line.
  struct Flow {
    double seen = 0;  ///< its level (rate / weight), or infinity while lifted
    LinkIndex bottleneck = kNoLink;
    std::uint32_t final_in = 0;  ///< pass that has settled it
    [[nodiscard]] bool lifted() const { return seen == kInfinity; }
  };
  /// What only a change of the flow itself reads.
  struct FlowDetail {
    double weight = 1;
    double previous = 0;  ///< level before it was lifted or re-rated
    std::uint32_t first_edge = 0;
    std::uint32_t end_edge = 0;   ///< one past its last
    std::uint32_t lowest = 0;     ///< edge of the link that fills first where it shares none
    std::uint32_t lowest_of = 0;  ///< capacities_ when it was found
  };
  /// A running flow in a link's list.
  struct Slot {
    FlowIndex flow;
    std::uint32_t edge;
    double coefficient;  ///< of the level: with the flow's weight
  };
  /// A cache line of its own: starts and stops touch links all over the fabric.
  struct alignas(64) Link {
    double capacity = 0;
    double carried = 0;  ///< bytes
    // Kept up only while edges here are counted: settled, lifted_weight, lifted.
    double settled = 0;        ///< taken by flows that are not lifted
    double lifted_weight = 0;  ///< sum of the lifted flows' coefficients
    double level = kInfinity;  ///< the rate it holds its flows to; infinity: it is no bottleneck
    std::uint32_t lifted = 0;  ///< how many; counts decide, sums only approximate
    std::uint32_t first = 0;   ///< its list in slots_
    std::uint32_t size = 0;
    std::uint32_t room = 0;
    std::uint32_t degree = 0;  ///< flows that ever cross it
    bool touched = false;
  };
  /// What a link had settled before a start was tried on it.
  struct Taken {
    LinkIndex link;
    double settled;
  };
  /// A start that shares links, all of which have room for it.
  struct Fitting {
    double level;
    LinkIndex link;  ///< that holds it
    FlowIndex flow;
  };
  struct Candidate {
    FlowIndex flow;
    std::uint32_t slot;
    double coefficient;
    double seen;
  };

  [[nodiscard]] std::span<const Slot> slots(const Link& link) const {
    return {slots_.data() + link.first, link.size};
  }
  void make_room(Link& link);
  /// The link holds the flow in the slot. The mark stays where another link takes the flow over,
  /// until open() sees it; a link whose level is infinite has none.
  void mark_held(const Link& link, std::uint32_t slot) {
    const std::size_t at = link.first + slot;
    held_[at / 64] |= std::uint64_t{1} << at % 64;
  }
  void unmark_held(const Link& link, std::uint32_t slot) {
    const std::size_t at = link.first + slot;
    held_[at / 64] &= ~(std::uint64_t{1} << at % 64);
  }
  [[nodiscard]] bool marked_held(const Link& link, std::uint32_t slot) const {
    const std::size_t at = link.first + slot;
    return (held_[at / 64] >> at % 64 & 1) != 0;
  }

  void count(std::uint32_t edge) { counted_[edge / 64] |= std::uint64_t{1} << edge % 64; }
  void discount(std::uint32_t edge) { counted_[edge / 64] &= ~(std::uint64_t{1} << edge % 64); }
  [[nodiscard]] bool counted(std::uint32_t edge) const {
    return (counted_[edge / 64] >> edge % 64 & 1) != 0;
  }
  /// The bits of a word that belong to [first, last) of what has a bit each.
  [[nodiscard]] static std::uint64_t part_of_word(std::size_t word, std::uint32_t first,
                                                  std::uint32_t last);
  /// Calls visit(edge) for each counted edge of the flow, in order.
  template <typename Visit>
  void for_each_counted(const FlowDetail& detail, Visit&& visit);
  [[nodiscard]] bool alone(FlowIndex flow) const;
  [[nodiscard]] double filled_by(const FlowDetail& flow, const Edge& edge) const {
    return links_[edge.link].capacity / (flow.weight * edge.coefficient);
  }
  void discount_all(const FlowDetail& detail);
  [[nodiscard]] bool shares_all(const FlowDetail& detail) const;
  [[nodiscard]] std::uint32_t lowest_edge(FlowDetail& detail);
  [[nodiscard]] std::uint32_t lowest_alone(FlowDetail& detail);
  /// Loads what lift() and settle() will read of the flows that follow the `i`-th in a list.
  template <typename FlowAt>
  void load_ahead(std::size_t i, std::size_t count, FlowAt&& flow_at) const {
    constexpr std::size_t kAhead = 4;
    if (i + 2 * kAhead < count) __builtin_prefetch(&details_[flow_at(i + 2 * kAhead)]);
    if (i + kAhead < count) __builtin_prefetch(&edges_[details_[flow_at(i + kAhead)].first_edge]);
  }
  void settle_alone(FlowIndex flow);
  bool settle_where_room();
  void begin_pass();
  void lift(FlowIndex flow);
  void open(LinkIndex index);
  void open_resized(LinkIndex index);
  void touch(LinkIndex index);
  /// Of the level at which a link fills that has a flow lifted.
  [[nodiscard]] double lower_bound(const Link& link) const {
    return std::max(water_, (link.capacity - link.settled) / link.lifted_weight);
  }
  void queue_touched();
  bool find_level(Link& link, double& level);
  void raise_to(LinkIndex index, double level);
  void settle(FlowIndex flow, LinkIndex bottleneck, double level);

  std::vector<Flow> flows_;
  std::vector<FlowDetail> details_;  ///< of each of flows_
  std::vector<Edge> edges_;
  /// A bit for each edge, which is then counted in its link's sums: other flows run there too, or
  /// the heap holds the link.
  std::vector<std::uint64_t> counted_;
  std::vector<Link> links_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> edge_of_link_;  ///< last edge added for a link; finds repeated links

  std::vector<FlowIndex> started_;
  std::vector<LinkIndex> disturbed_;  ///< bottlenecks that lost a flow
  std::vector<LinkIndex> resized_;    ///< links of another capacity
  std::vector<FlowIndex> changed_;
  std::vector<LinkIndex> touched_;
  IndexedHeap<double> heap_;  ///< links where a flow is lifted, by a lower bound of their levels
  std::vector<std::uint64_t> held_;  ///< a bit for each of slots_: mark_held()
  // Of settle_where_room(), find_level(), open() and raise_to(), which keep what they have
  // allocated.
  std::vector<Taken> taken_;
  std::vector<Fitting> fitting_;
  std::vector<Candidate> candidates_;
  std::span<const Candidate> winners_;  ///< those whom the level found holds
  std::vector<double> fixed_;
  std::vector<FlowIndex> opened_;
  std::vector<LinkIndex> freed_;
  double water_ = 0;  ///< everything below is final
  std::uint32_t pass_ = 0;
  std::uint32_t capacities_ = 1;  ///< grows with each new capacity of a link
};

}  // namespace lockstep
