/// What a traffic scenario moves, as flows over a TrafficNetwork.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/clock.hpp"
#include "sim/scenario/traffic.hpp"
#include "sim/traffic/traffic_network.hpp"

namespace lockstep {

/// Messages of one flow, one after another.
struct Demand {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t group = 0;  ///< in TrafficPlan::groups()
  int from = -1;            ///< position in the group; -1: several
  int to = -1;
  FlowIndex flow = 0;
  double bytes = 0;            ///< of the flow's progress, each message
  double pairs = 1;            ///< of sender and receiver that it stands for
  double messages = 1;         ///< into which a NIC divides each byte of progress
  double into_fabric = 0;      ///< bytes into NICs per byte of progress
  StepTime latency;            ///< from the last byte sent to its arrival
  std::uint32_t next = kNone;  ///< ring messages: the demand that waits for this one's messages
};

/// Members that run a pattern together.
struct TrafficGroup {
  std::uint32_t entry = 0;
  std::uint32_t number = 0;         ///< among the entry's groups
  std::uint32_t first = 0;          ///< its demands in TrafficPlan::demands(), and
  std::uint32_t count = 0;          ///< how many
  int steps = 1;                    ///< ring messages: of each demand, for one collective
  std::vector<TrafficEnd> members;  ///< and the servers of storage after them
};

class TrafficPlan {
 public:
  /// Adds the flows of the first messages to the network. Requires a scenario that read_traffic()
  /// let through; both outlive the plan.
  TrafficPlan(const TrafficScenario& scenario, TrafficNetwork& network);

  [[nodiscard]] const TrafficScenario& scenario() const { return scenario_; }
  [[nodiscard]] const std::vector<TrafficGroup>& groups() const { return groups_; }
  [[nodiscard]] const std::vector<Demand>& demands() const { return demands_; }
  [[nodiscard]] const TrafficEntry& entry_of(const Demand& demand) const {
    return scenario_.entries[groups_[demand.group].entry];
  }
  /// NICs that have sent anything of the entry's messages into the fabric.
  [[nodiscard]] int senders(std::size_t entry) const { return network_.senders(entry); }

  /// Makes a demand ready for its message number `round` (the first is 0): of another size, or to
  /// another receiver over another flow, where the entry says so.
  void prepare(std::uint32_t index, int round);

  /// "node 3 gpu 0 to node 9 gpu 0", or what the flow stands for: "all_reduce, group 2".
  [[nodiscard]] std::string name_of(const Demand& demand) const;
  /// The name for all messages of the demand: it omits a receiver that changes every round.
  [[nodiscard]] std::string steady_name_of(const Demand& demand) const;

 private:
  using Pairs = std::vector<std::pair<int, int>>;

  void add_group(std::uint32_t entry, std::vector<TrafficEnd> members, std::uint32_t number);
  [[nodiscard]] const std::vector<int>& partners(std::uint32_t group, int round);
  template <class Use>
  void for_each_pair(const TrafficEntry& entry, std::uint32_t group, Use use);
  void add_pairs(const TrafficEntry& entry, std::uint32_t group);
  void add_coupled(const TrafficEntry& entry, std::uint32_t group);
  void add_sources(const TrafficEntry& entry, std::uint32_t group);
  void add_rings(const TrafficEntry& entry, std::uint32_t group);
  void add_nccl(const TrafficEntry& entry, std::uint32_t group);
  void add_ring_messages(const TrafficEntry& entry, std::uint32_t group, const Pairs& ring,
                         std::uint64_t queue_pair);
  void draw_size(const TrafficEntry& entry, std::uint32_t index, int round);
  void add_way(const TrafficEntry& entry, std::uint32_t group, int from, int to,
               std::uint64_t queue_pair);
  [[nodiscard]] bool delays() const { return scenario_.cluster.fabric.switch_latency > Seconds{}; }
  /// Whether a sender's receiver is another one in every round.
  [[nodiscard]] static bool draws_rounds(const TrafficEntry& entry) {
    return entry.kind == TrafficKind::permutation && entry.grain == Grain::flows &&
           entry.repeat > 1;
  }
  void note_latency(const TrafficEntry& entry, std::uint32_t group, int from, int to);
  Demand& add_demand(std::uint32_t group, int from, int to, double bytes);

  const TrafficScenario& scenario_;
  TrafficNetwork& network_;
  std::vector<TrafficGroup> groups_;
  std::vector<Demand> demands_;
  std::vector<std::vector<std::vector<int>>> partners_;  ///< permutations by group and round
  StepTime latency_;                                     ///< of the flow under construction
};

}  // namespace lockstep
