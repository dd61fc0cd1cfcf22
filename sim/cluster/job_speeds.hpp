/// How fast trainings run where they are, beside whom they are.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

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

  /// Groups of neighbours that were simulated, each once.
  [[nodiscard]] std::size_t simulated() const { return known_.size(); }

 private:
  /// A training and its nodes.
  struct Placed {
    std::uint32_t job = 0;
    std::int32_t training = 0;
    std::vector<int> nodes{};
  };
  using Key = std::vector<std::vector<int>>;  ///< of each: its training, then its nodes

  [[nodiscard]] std::vector<Placed> running(const QueueState& state) const;
  [[nodiscard]] std::vector<std::vector<Placed>> neighbours(std::vector<Placed> placed) const;
  [[nodiscard]] Key key_of(const std::vector<Placed>& group) const;
  const std::vector<double>& speeds_of(const std::vector<Placed>& group);

  const QueueSpec* spec_;
  int unit_nodes_ = 1;  ///< below one leaf, or one unit of leaves
  int pod_nodes_ = 1;   ///< below the same spines
  bool alike_ = false;  ///< units are alike: which of them a group is on makes no difference
  std::map<Key, std::vector<double>> known_;
  std::vector<std::vector<int>> last_;  ///< who ran where at the last update
};

}  // namespace lockstep
