/// Runs a trace on a cluster: ranks run their nodes as dependencies and streams allow, and what
/// they send shares the fabric's links by max-min fairness.
///
/// A node starts when all that it waits for is done and its stream is free; of several the one with
/// the lowest number goes first. A collective starts when the last of its ranks has come to it, and
/// those of one group run one after another. A message leaves as soon as its sender is ready,
/// behind earlier ones to the same rank; the receive waits for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/collectives/collective_options.hpp"
#include "sim/core/engine.hpp"
#include "sim/fabric/dcqcn_start.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "sim/step/site.hpp"
#include "sim/trace/trace.hpp"

namespace lockstep {

struct TraceReplayOptions {
  std::optional<CollectiveOptions> collectives;  ///< else what NCCL takes by itself
  bool record_times = false;                     ///< fill TraceReplay::starts and ends
};

/// Where a rank's time went, from its beginning on. The five add up to the step, tick for tick.
struct TraceRankTimes {
  StepTime compute;        ///< at least one kernel or copy runs
  StepTime communication;  ///< none runs, but bytes of the rank are on their way
  StepTime waiting;        ///< neither, but it has come to a collective or receive, and others have
                           ///< not
  StepTime idle;           ///< none of these before its own end: the host
  StepTime after_end;      ///< from its own end to the step's
  [[nodiscard]] StepTime total() const {
    return compute + communication + waiting + idle + after_end;
  }
};

/// Calls of one operation and size, over all groups of a size.
struct TraceCallTimes {
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes payload;
  int members = 0;
  std::string algorithm;
  std::uint64_t calls = 0;
  Seconds moving;   ///< from the last rank's coming to the end, over all calls
  Seconds waiting;  ///< from the first rank's coming to the last one's
};

struct TraceReplay {
  StepTime end;  ///< the longest that a rank took from its own beginning to its own end
  std::vector<TraceRankTimes> ranks;
  std::vector<TraceCallTimes> calls;  ///< longest first
  std::uint64_t messages = 0;
  Seconds messages_moving;  ///< of all
  std::uint64_t flows = 0;
  StepTime longest_path;               ///< the least that dependencies and recorded durations allow
  std::vector<StepTime> starts, ends;  ///< by node, when recording
};

/// A trace under way, on a network that other processes may share.
class RunningTrace final : public Process {
 public:
  /// `matches` are the trace's. Requires a GPU of the cluster for every rank, and that the fabric
  /// of the site has NICs as the cluster's nodes do. All but `site` outlive this, as what it points
  /// to. Throws InputError where no algorithm that the user allows can run.
  RunningTrace(const Trace& trace, const TraceMatches& matches, const Cluster& cluster,
               const TraceReplayOptions& options, const Site& site);
  ~RunningTrace() override;

  void begin(StepTime now) override;
  [[nodiscard]] StepTime next_event() const override;
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override;
  void handle_events(StepTime now) override;
  [[nodiscard]] bool done() const override;
  /// Throws InputError: ranks wait for each other for ever. Names where they stand.
  [[noreturn]] void fail_stuck(StepTime now) const override;
  /// Tells it of its links and flows, of which there will be no others.
  void tell(DcqcnStart& start) const;
  /// Times in it count from its begin. Requires done().
  TraceReplay finish();

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// Runs a trace alone, with the start of DCQCN where the cluster's transport has it. `matches` are
/// the trace's. Requires a GPU of the cluster for every rank.
/// Throws InputError where ranks wait for each other for ever, and names where they stand.
TraceReplay replay_trace(const Trace& trace, const TraceMatches& matches, const Cluster& cluster,
                         const TraceReplayOptions& options = {});

}  // namespace lockstep
