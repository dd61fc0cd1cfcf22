#include "sim/cluster/folded_steps.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/congestion/participants.hpp"
#include "sim/congestion/redraw.hpp"
#include "sim/core/engine.hpp"
#include "sim/core/indexed_heap.hpp"
#include "sim/step/replay.hpp"
#include "topologies/fabrics/placement.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kStepsTogether = 3;  ///< as SharedScenario::steps

StepPlan plan_of_training(const QueueTraining& training) {
  return plan_of({.name = training.name, .scenario = training.scenario, .nodes = {}, .start = {}});
}

/// The most that flows ever put on links at once.
class PeakWatch final : public FlowObserver {
 public:
  explicit PeakWatch(FlowNetwork& network) : network_(network) { network.observe(this); }

  void started(FlowIndex /*flow*/, Bytes /*amount*/, StepTime /*now*/) override {}
  void moved(FlowIndex flow, StepTime from, StepTime to, BytesPerSecond rate,
             LinkIndex /*held_by*/) override {
    for (const MaxMin::Edge& edge : network_.edges(flow)) {
      if (edge.link >= changes_.size()) changes_.resize(network_.links());
      const double more = edge.coefficient * rate.base_units();
      changes_[edge.link].push_back({from, more});
      changes_[edge.link].push_back({to, -more});
    }
  }
  void ended(FlowIndex /*flow*/, StepTime /*now*/) override {}

  [[nodiscard]] BytesPerSecond peak(LinkIndex link) {
    if (link >= changes_.size()) return {};
    std::vector<Change>& changes = changes_[link];
    std::ranges::sort(changes, [](const Change& a, const Change& b) {
      return a.at != b.at ? a.at < b.at : a.more < b.more;
    });
    double now = 0, most = 0;
    for (const Change& change : changes) most = std::max(most, now += change.more);
    return BytesPerSecond{most};
  }

 private:
  struct Change {
    StepTime at;
    double more;
  };
  const FlowNetwork& network_;
  std::vector<std::vector<Change>> changes_;  ///< by link
};

/// A training that repeats its step, as TrainingParticipant does, by classes of its replicas.
class FoldedTraining {
 public:
  FoldedTraining(const Scenario& scenario, const StepPlan& plan, const std::vector<int>& nodes,
                 FabricLinks& links, std::span<const FabricLink> apart)
      : plan_(plan) {
    DataRoutes routes{plan, links.fabric(), nodes};
    ReplicaClasses found = classes_of_replicas(scenario, routes, Folding::automatic, apart);
    classes_ = std::move(found.classes);
    wiring_ = std::make_unique<Wiring>(
        scenario, plan, classes_, Site{.links = &links, .nodes = nodes, .data_routes = &routes},
        std::move(found.links));
    end_ = static_cast<FlowIndex>(links.network().flows());
  }

  [[nodiscard]] StepTime next_event() const { return step_->next_event(); }
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) {
    step_->flows_ended(flows, now);
  }
  void handle_events(StepTime now) {
    if (!step_) begin_step(now);
    for (;;) {
      step_->handle_events(now);
      if (!step_->done()) return;
      times_s_.push_back(to_seconds(step_->finish().end).base_units());
      begin_step(now);
    }
  }
  [[nodiscard]] std::size_t steps() const { return times_s_.size(); }
  [[nodiscard]] Seconds mean_step() const {
    return Seconds{std::accumulate(times_s_.begin(), times_s_.end(), 0.0) /
                   static_cast<double>(times_s_.size())};
  }
  [[nodiscard]] const Wiring& wiring() const { return *wiring_; }
  /// One past its last flow.
  [[nodiscard]] FlowIndex end_of_flows() const { return end_; }

 private:
  void begin_step(StepTime now) {
    step_.emplace(plan_, classes_, *wiring_, Recording::none);
    step_->begin(now);
  }

  const StepPlan& plan_;
  std::vector<ReplicaClass> classes_;
  std::unique_ptr<Wiring> wiring_;
  FlowIndex end_ = 0;
  std::optional<RunningStep> step_;
  std::vector<double> times_s_;
};

std::unique_ptr<FoldedTraining> place(const QueueSpec& spec, const std::vector<StepPlan>& plans,
                                      const PlacedTraining& of, FabricLinks& links,
                                      std::span<const FabricLink> apart) {
  const auto number = static_cast<std::size_t>(of.training);
  return std::make_unique<FoldedTraining>(spec.trainings[number].scenario, plans[number], of.nodes,
                                          links, apart);
}

/// Trainings that begin together and go on until each has done some steps. Of some dozens, only
/// those are asked that have something to do.
class FoldedTrainings final : public Process {
 public:
  explicit FoldedTrainings(std::size_t steps) : steps_(steps) {}

  FoldedTraining& add(std::unique_ptr<FoldedTraining> training) {
    trainings_.push_back(std::move(training));
    next_.fit(trainings_.size());
    next_.set(number(trainings_.size() - 1), StepTime{});
    ++unfinished_;
    return *trainings_.back();
  }

  [[nodiscard]] StepTime next_event() const override {
    return next_.empty() ? kNever : next_.top().key;
  }
  void flows_ended(std::span<const FlowIndex> flows, StepTime now) override {
    while (!flows.empty()) {
      const auto at = std::ranges::upper_bound(trainings_, flows.front(), {},
                                               [](const auto& of) { return of->end_of_flows(); });
      const auto rest = std::ranges::lower_bound(flows, (*at)->end_of_flows());
      const auto count = static_cast<std::size_t>(rest - flows.begin());
      (*at)->flows_ended(flows.first(count), now);
      // What it does next it may do now.
      next_.set(number(static_cast<std::size_t>(at - trainings_.begin())), now);
      flows = flows.subspan(count);
    }
  }
  void handle_events(StepTime now) override {
    due_.clear();
    while (!next_.empty() && next_.top().key <= now) due_.push_back(next_.pop().index);
    for (const std::uint32_t t : due_) {
      FoldedTraining& training = *trainings_[t];
      const std::size_t before = training.steps();
      training.handle_events(now);
      if (before < steps_ && training.steps() >= steps_) --unfinished_;
      if (const StepTime next = training.next_event(); next < kNever) next_.set(t, next);
    }
  }
  [[nodiscard]] bool done() const override { return unfinished_ == 0; }

 private:
  static std::uint32_t number(std::size_t index) { return static_cast<std::uint32_t>(index); }

  std::size_t steps_;
  std::vector<std::unique_ptr<FoldedTraining>> trainings_;
  IndexedHeap<StepTime> next_;  ///< when each acts by itself
  std::vector<std::uint32_t> due_;
  std::size_t unfinished_ = 0;
};

}  // namespace

bool FoldedSteps::can_fold(const QueueSpec& spec) {
  if (spec.cluster.transport.congestion_control != CongestionControl::none) return false;
  return std::ranges::none_of(spec.trainings, [](const QueueTraining& training) {
    return plan_of_training(training).switches_sum;
  });
}

FoldedSteps::FoldedSteps(const QueueSpec& spec)
    : spec_(&spec), fabric_(draw_fabric(spec.cluster, false)) {
  plans_.reserve(spec.trainings.size());
  for (const QueueTraining& training : spec.trainings) {
    plans_.push_back(plan_of_training(training));
  }
}

BytesPerSecond FoldedSteps::capacity(FabricLink link) const {
  return payload_bandwidth(fabric_.capacity(link), spec_->cluster.transport.efficiency);
}

LoneStep FoldedSteps::alone(const PlacedTraining& of) const {
  FlowNetwork network;
  FabricLinks links(fabric_, network, spec_->cluster.transport.efficiency);
  PeakWatch watch(network);
  FoldedTrainings all(1);
  const FoldedTraining& training = all.add(place(*spec_, plans_, of, links, {}));
  Engine engine(network);
  engine.add(all);
  engine.run();
  LoneStep out{.step = training.mean_step(), .uses = {}};
  for (FabricLink link = 0; link < fabric_.link_count(); ++link) {
    const LinkIndex known = training.wiring().known_link(link);
    if (known == FabricLinks::kNoLink || fabric_.joins_nic(link)) continue;
    const BytesPerSecond peak = watch.peak(known);
    if (peak > BytesPerSecond{}) out.uses.push_back({link, peak, network.carried(known)});
  }
  return out;
}

std::vector<Seconds> FoldedSteps::together(std::span<const PlacedTraining> placed,
                                           std::span<const FabricLink> shared) const {
  FlowNetwork network;
  FabricLinks links(fabric_, network, spec_->cluster.transport.efficiency);
  FoldedTrainings all(kStepsTogether);
  std::vector<const FoldedTraining*> trainings;
  for (const PlacedTraining& of : placed) {
    trainings.push_back(&all.add(place(*spec_, plans_, of, links, shared)));
  }
  Engine engine(network);
  engine.add(all);
  engine.run();
  std::vector<Seconds> out;
  out.reserve(placed.size());
  for (const FoldedTraining* training : trainings) out.push_back(training->mean_step());
  return out;
}

}  // namespace lockstep
