/// Runs a traffic scenario: when every message ends, and what its links carried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/clock.hpp"
#include "sim/core/engine.hpp"
#include "sim/core/event_queue.hpp"
#include "sim/fabric/dcqcn_start.hpp"
#include "sim/traffic/traffic_network.hpp"
#include "sim/traffic/traffic_plan.hpp"

namespace lockstep {

/// A message, or one run of a pattern that is simulated as one.
struct Completion {
  std::uint32_t demand;  ///< in TrafficPlan::demands(); of ring messages the group's first
  std::uint32_t round;
  FlowIndex flow;
  int to;        ///< Demand::to of this round
  double bytes;  ///< of the flow's progress; of ring messages of each edge
  StepTime start, end;
};

/// Times of an entry's messages, from the start of each to its end.
struct EntryReport {
  std::string name;
  std::uint64_t messages = 0;  ///< simulated one by one
  double pairs = 0;            ///< of sender and receiver at a time, over all queue pairs
  double bytes = 0;            ///< between members, all messages, inside nodes too
  double nic_bytes = 0;        ///< of these what NICs put on the fabric
  double start_s = 0;          ///< of the first message
  double end_s = 0;            ///< of the last
  double mean_s = 0, median_s = 0, p99_s = 0, max_s = 0;  ///< time of a message
  double nic_bytes_per_s = 0;  ///< out of each sending NIC, from start to end; 0: none sends
  double line_rate_share = 0;  ///< the same over the line rate in force, of the fastest NIC
  double alone_s = 0;          ///< start to end with no other entry; 0: not asked for
  [[nodiscard]] double time_s() const { return end_s - start_s; }
  [[nodiscard]] double slowdown() const { return alone_s > 0 ? time_s() / alone_s : 1; }
};

struct TrafficReport {
  double end_s = 0;  ///< last end
  std::vector<EntryReport> entries;
  struct Link {
    std::string name;
    double capacity_bytes_per_s = 0;  ///< as payload
    double bytes = 0;
    double utilisation = 0;  ///< mean, until the last end
  };
  std::vector<Link> links;         ///< fullest first
  std::vector<std::string> notes;  ///< what the grains leave out
  std::uint64_t flows = 0;         ///< variables of the solver
  std::uint64_t links_used = 0;    ///< that anything crossed
};

/// A network with its traffic, before and after it has run: a process of the engine.
class TrafficSimulation final : public Process {
 public:
  /// Builds links and flows. `scenario` outlives the simulation.
  explicit TrafficSimulation(const TrafficScenario& scenario)
      : TrafficSimulation(scenario, TrafficNetwork(scenario.cluster, scenario.efficiency)) {}
  /// Simulates on an existing network of the scenario, which has no flows yet.
  TrafficSimulation(const TrafficScenario& scenario, TrafficNetwork network);

  /// Tells of every flow that run() adds, before it starts: of messages to another receiver.
  void when_flow_added(std::function<void(const Demand&)> tell) { flow_added_ = std::move(tell); }
  /// Runs it by itself, with the start of DCQCN where its transport has that. Once.
  void run();

  void begin(StepTime now) override;
  [[nodiscard]] StepTime next_event() const override;
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override;
  void handle_events(StepTime now) override;
  [[nodiscard]] bool done() const override;

  /// After run(). In the order of their ends.
  [[nodiscard]] const std::vector<Completion>& completions() const { return completions_; }
  [[nodiscard]] StepTime last_end() const { return completions_.back().end; }
  /// With so many of the fullest links; nothing about running alone.
  [[nodiscard]] TrafficReport report(std::size_t links) const;

  [[nodiscard]] const TrafficPlan& plan() const { return plan_; }
  [[nodiscard]] TrafficNetwork& network() { return network_; }
  [[nodiscard]] const TrafficNetwork& network() const { return network_; }

 private:
  /// What a demand is at.
  struct Progress {
    StepTime start;  ///< of the message under way
    int round = 0;
    int begun = 0;     ///< ring messages of this round
    int sent = 0;      ///< those of them that have arrived
    int received = 0;  ///< from the member before
  };
  struct Totals {
    std::uint64_t messages = 0;
    double bytes = 0;
    double into_fabric = 0;
  };

  [[nodiscard]] bool only_drains() const;
  bool run_drained();
  void tell_start(const Demand& demand);
  void start_round(std::uint32_t group, StepTime at);
  void send(std::uint32_t index, StepTime now);
  void finish(std::uint32_t index, StepTime now);
  void finish_step(std::uint32_t index, StepTime now);
  void step_if_ready(std::uint32_t index, StepTime now);
  void finish_collective(std::uint32_t group, StepTime now);
  void record(std::uint32_t index, double bytes, StepTime start, StepTime end);
  [[nodiscard]] EntryReport entry_report(std::size_t entry,
                                         const std::vector<Completion>& own) const;
  void add_links(std::size_t most, TrafficReport& out) const;

  const TrafficScenario& scenario_;
  TrafficNetwork network_;
  TrafficPlan plan_;
  EventQueue events_;
  std::size_t moving_ = 0;                 ///< flows under way
  std::vector<Progress> progress_;         ///< by demand
  std::vector<std::uint32_t> demand_of_;   ///< by flow
  std::vector<std::uint32_t> unfinished_;  ///< ring messages of a round left, by group
  std::vector<StepTime> round_start_;      ///< of the collective, by group
  std::vector<Totals> totals_;             ///< by entry
  std::vector<double> drained_;            ///< bytes over each link, where run_drained() ran
  std::vector<Completion> completions_;
  std::function<void(const Demand&)> flow_added_;
  std::unique_ptr<DcqcnStart> start_;  ///< where it runs by itself and the transport has it
  LinkIndex told_links_ = 0;           ///< of which the start knows
};

/// Runs each entry alone on the cluster and fills in EntryReport::alone_s; nothing to do for one.
void add_alone(const TrafficScenario& scenario, TrafficReport& report);

/// Builds, runs and reports, with so many links.
TrafficReport simulate_traffic(const TrafficScenario& scenario, std::size_t links = 10);

}  // namespace lockstep
