/// The fabric of a shared run as parts of it fail and are repaired: a process that draws
/// everybody's flows anew at each such change.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/congestion/participants.hpp"

namespace lockstep {

/// Tells the recorder of all links that somebody may use.
void name_links(const FabricEra& era, CongestionRecorder& recorder);

/// A change of the engine (Engine::add_change): flows under way move to other links.
class ChangingFabric final : public Process {
 public:
  /// With `events`, those of the scenario happen. Draws the fabric as it is before, and claims the
  /// participants' flows for them. All outlive this.
  ChangingFabric(const SharedScenario& scenario, bool events,
                 std::vector<Participant*> participants, FlowNetwork& network,
                 CongestionRecorder& recorder, Engine& engine);

  [[nodiscard]] StepTime next_event() const override;
  /// It has no flows of its own.
  void flows_ended(std::span<const FlowIndex> /*flows*/, StepTime /*now*/) override {}
  void handle_events(StepTime now) override;
  /// It changes as long as anyone is there to see it.
  [[nodiscard]] bool done() const override { return true; }

  /// Tells it of the links and flows of now, and again at each change. It outlives this.
  void tell(DcqcnStart& start);

  [[nodiscard]] const Fabric& fabric() const { return era_->fabric; }
  [[nodiscard]] const std::vector<EventOutcome>& outcomes() const { return outcomes_; }
  /// What was approximated.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  /// A moment at which the fabric changes.
  struct Change {
    StepTime at;
    std::size_t event;
    enum class What : std::uint8_t { breaks, rerouted, repaired } what;
  };

  bool apply(const Change& change);
  void record(std::size_t event);
  void move_to(std::unique_ptr<FabricEra> next, StepTime now);
  [[nodiscard]] std::vector<FabricFault> broken_faults() const;
  [[nodiscard]] std::vector<FabricFault> unrouted_faults() const;
  bool keeps_trees(const Fabric& fabric, std::span<const FabricFault> faults);
  [[nodiscard]] std::unique_ptr<FabricEra> draw(const std::vector<FabricFault>& faults,
                                                bool unknown);
  void note(const std::string& text);

  const SharedScenario& scenario_;
  std::vector<Participant*> participants_;
  FlowNetwork& network_;
  CongestionRecorder& recorder_;
  Engine& engine_;
  DcqcnStart* start_ = nullptr;
  std::unique_ptr<FabricEra> era_;
  std::vector<Change> changes_;
  std::set<std::size_t> broken_;  ///< events whose part is broken now
  std::set<std::size_t> routed_;  ///< those of them that routes avoid
  std::vector<EventOutcome> outcomes_;
  std::vector<std::string> notes_;
};

}  // namespace lockstep
