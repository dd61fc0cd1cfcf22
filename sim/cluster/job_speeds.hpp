/// How fast trainings run where they are, beside whom they are.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/cluster/fabric_areas.hpp"
#include "sim/cluster/folded_steps.hpp"
#include "sim/cluster/queue_state.hpp"
#include "sim/scenario/shared_scenario.hpp"

namespace lockstep {

/// Simulates one step of each training alone on the cluster's first nodes, which is the speed that
/// others are shares of, and gives its jobs their durations. Throws InputError where a training
/// does not fit in memory, unless `allow_oom`.
void time_trainings(QueueSpec& spec, bool allow_oom = false);

/// Speeds of the running trainings, as shares of their reference pace.
class JobSpeeds {
 public:
  /// `spec` outlives it. Requires that its trainings are timed.
  explicit JobSpeeds(const QueueSpec& spec);

  /// To be called when jobs have started, ended or moved: gives each running training the speed
  /// that it has now.
  void update(QueueState& state);

  /// What the running trainings send now, for AcrossNodes::least_contended. Requires FoldedSteps.
  [[nodiscard]] const LinkLoads& link_loads(const QueueState& state);

  /// Groups of neighbours that were simulated, each once.
  [[nodiscard]] std::size_t simulated() const {
    return known_.size() + lone_.size() + tried_.size();
  }

 private:
  /// A training, its nodes, and what it does alone there.
  struct Placed {
    std::uint32_t job = 0;
    PlacedTraining at{};
    double waits = 0;  ///< for those whom it slows little, as a part of its step
  };
  using Key = std::vector<int>;

  /// A training alone, on nodes that lie in one way.
  struct LonePlace {
    Seconds step;
    struct Use {
      FabricAreas::Place at;
      BytesPerSecond peak;
      Bytes bytes;
    };
    std::vector<Use> uses;
  };
  /// A running job as it was met last.
  struct Met {
    std::vector<int> nodes;
    Key key;
    Seconds step;
    std::vector<LinkUse> uses;
  };
  /// A link on which several meet and that could fill.
  struct Meeting {
    FabricLink link = 0;
    struct User {
      std::size_t who;
      BytesPerSecond peak;
      Bytes bytes;
    };
    std::vector<User> users;
  };
  /// Jobs that are simulated together, and the links on which they meet.
  struct Contended {
    std::vector<const Placed*> jobs;
    std::vector<FabricLink> links;
  };

  [[nodiscard]] std::vector<Placed> running(const QueueState& state) const;

  // exact
  [[nodiscard]] std::vector<std::vector<Placed>> neighbours(std::vector<Placed> placed) const;
  [[nodiscard]] Key key_of(const std::vector<Placed>& group) const;
  const std::vector<double>& speeds_of(const std::vector<Placed>& group);

  // simulated
  const Met& meet(const Placed& of);
  [[nodiscard]] std::vector<Meeting> meetings(const std::vector<Placed>& placed);
  [[nodiscard]] bool slows_little(const Meeting& meeting, std::vector<Placed>& placed);
  [[nodiscard]] std::vector<Contended> contended(std::vector<Placed>& placed);
  void set_speeds(QueueState& state, Contended group);
  [[nodiscard]] double speed_of(const Placed& of, Seconds step) const {
    return spec_->reference_step(spec_->trainings[static_cast<std::size_t>(of.at.training)]) / step;
  }

  const QueueSpec* spec_;
  int unit_nodes_ = 1;  ///< below one leaf, or one unit of leaves
  int pod_nodes_ = 1;   ///< below the same spines
  bool alike_ = false;  ///< units are alike: which of them a group is on makes no difference
  std::map<Key, std::vector<double>> known_;
  std::vector<std::vector<int>> last_;   ///< who ran where at the last update
  std::unique_ptr<FoldedSteps> folded_;  ///< null: exact
  std::unique_ptr<FabricAreas> areas_;
  std::map<Key, LonePlace> lone_;
  /// By what each user of a link is, and puts there: how much longer its step is by that link.
  std::map<std::vector<double>, std::vector<double>> tried_;
  std::unordered_map<std::uint32_t, Met> met_;
  std::unique_ptr<LinkPlaces> places_;
  LinkLoads loads_;
  std::uint64_t loaded_at_ = 0;  ///< QueueState::moves() of which they are, and one
};

}  // namespace lockstep
