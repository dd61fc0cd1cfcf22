/// Who shares a fabric: training jobs and other traffic, each a process of the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/congestion/recorder.hpp"
#include "sim/core/engine.hpp"
#include "sim/fabric/dcqcn_start.hpp"
#include "sim/scenario/shared_scenario.hpp"
#include "sim/step/replay.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace lockstep {

/// The fabric as it is between two events.
struct FabricEra {
  FabricEra(Fabric drawn, FlowNetwork& network, double efficiency, std::vector<double> left)
      : fabric(std::move(drawn)), links(fabric, network, efficiency, std::move(left)) {}

  Fabric fabric;
  FabricLinks links;
};

/// A process with a name and a number in the recorder, whose flows are drawn anew when the fabric
/// changes.
class Participant : public Process {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint32_t number() const { return number_; }
  /// Of the steps or rounds that have ended.
  [[nodiscard]] const std::vector<double>& times_s() const { return times_s_; }
  /// When its first step or round is to start.
  [[nodiscard]] virtual StepTime starts_at() const = 0;

  /// Adds its flows over the links of `era`. They carry nothing before move_over().
  virtual void wire(FabricEra& era) = 0;
  /// Tells the recorder which links carry what links of `era` carry that it crosses and that have
  /// names (name_links()).
  virtual void name_likes(const FabricEra& /*era*/) {}
  /// Whether it lets switches sum, and whether those of that fabric have trees for it.
  [[nodiscard]] virtual bool switches_sum() const { return false; }
  [[nodiscard]] virtual bool has_trees(const Fabric& /*fabric*/) const { return false; }
  /// Tells it of the flows wired last, all of which are to cross links that it knows.
  virtual void tell(DcqcnStart& start) const = 0;
  /// What is under way goes on over the flows wired last. The era of the ones before may end then.
  virtual void move_over(StepTime now) = 0;

  /// Throws InputError.
  [[noreturn]] void fail_stuck(StepTime now) const override;

 protected:
  Participant(const SharedScenario& scenario, std::string name, std::string about,
              CongestionRecorder& recorder)
      : scenario_(scenario),
        name_(std::move(name)),
        recorder_(recorder),
        number_(recorder.add_job(name_, std::move(about))) {}

  [[nodiscard]] const SharedScenario& scenario() const { return scenario_; }
  [[nodiscard]] CongestionRecorder& recorder() { return recorder_; }
  void add_time(StepTime span) { times_s_.push_back(to_seconds(span).base_units()); }

 private:
  const SharedScenario& scenario_;
  std::string name_;
  CongestionRecorder& recorder_;
  std::uint32_t number_;
  std::vector<double> times_s_;
};

/// The job's step. Its switches sum where its stack lets them: which of the cluster's it has, and
/// what is broken of them, the fabric knows (Participant::has_trees()).
StepPlan plan_of(const SharedJob& job);

/// A training job that repeats its step, every replica on its own. It is done when it has completed
/// the scenario's steps, and goes on.
class TrainingParticipant final : public Participant {
 public:
  TrainingParticipant(const SharedScenario& scenario, const SharedJob& job,
                      CongestionRecorder& recorder);

  void wire(FabricEra& era) override;
  void name_likes(const FabricEra& era) override;
  [[nodiscard]] bool switches_sum() const override { return plan_.switches_sum; }
  [[nodiscard]] bool has_trees(const Fabric& fabric) const override;
  void tell(DcqcnStart& start) const override;
  void move_over(StepTime now) override;
  [[nodiscard]] StepTime next_event() const override;
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override;
  /// And ends and begins steps.
  void handle_events(StepTime now) override;
  [[nodiscard]] bool done() const override;
  [[nodiscard]] StepTime starts_at() const override;

 private:
  void begin_step(StepTime now);
  [[nodiscard]] double unit(const WiredFlow& flow) const;
  [[nodiscard]] std::string words_of_flow(const WiredFlow& flow) const;

  const SharedJob& job_;
  StepPlan plan_;
  std::vector<ReplicaClass> classes_;
  std::unique_ptr<Wiring> wiring_, next_wiring_;
  std::optional<RunningStep> step_;
};

/// Checkpoint or storage traffic: rounds in which every sender sends once, one flow each. When, and
/// how much, a process of code outside the tree may say (traffic_process_extension.hpp).
class TrafficParticipant final : public Participant {
 public:
  /// `beside_jobs`: it repeats for as long as they run. By itself it is measured once.
  TrafficParticipant(const SharedScenario& scenario, const BackgroundTraffic& traffic,
                     bool beside_jobs, FlowNetwork& network, CongestionRecorder& recorder);

  void wire(FabricEra& era) override;
  void tell(DcqcnStart& start) const override;
  void move_over(StepTime now) override;
  [[nodiscard]] StepTime next_event() const override;
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override;
  void handle_events(StepTime now) override;
  [[nodiscard]] bool done() const override;
  [[nodiscard]] StepTime starts_at() const override;

 private:
  struct Sender {
    FlowIndex flow;
    bool stalled;  ///< crosses a dead link
  };

  [[nodiscard]] Sender wire_sender(FabricEra& era, int from, int to);
  /// Asks the process for the round behind one that took so long.
  void plan_round(StepTime now, Seconds took);

  const BackgroundTraffic& traffic_;
  bool beside_jobs_;
  FlowNetwork& network_;
  int nics_ = 1;  ///< of a node
  std::vector<Sender> senders_, next_senders_;
  StepTime next_;             ///< when it sends again
  std::vector<Bytes> sizes_;  ///< of the senders in the next round
  std::size_t rounds_ = 0;    ///< that the process was asked for
  bool sent_all_ = false;     ///< no round follows
  std::size_t moving_ = 0;    ///< senders of this round that are not done
  StepTime round_begin_;
};

}  // namespace lockstep
