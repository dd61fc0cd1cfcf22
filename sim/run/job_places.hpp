/// The nodes of a job that are missing, the spares that take their places, and how fast the job
/// runs without the rest.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "sim/run/campaign.hpp"
#include "sim/run/failure_source.hpp"
#include "sim/run/spare_pool.hpp"

namespace lockstep {

class JobPlaces {
 public:
  /// `campaign` outlives this.
  JobPlaces(const Campaign& campaign, std::uint32_t trajectory)
      : c_(campaign), pool_(campaign.spares, campaign.seed, trajectory) {}

  /// Of the job's full speed, with the replicas that it was put together from.
  [[nodiscard]] double speed() const {
    assert(static_cast<std::size_t>(missing_replicas_) < c_.width_speed.size());
    return c_.width_speed[static_cast<std::size_t>(missing_replicas_)];
  }

  /// One is taken away until `back`: of the job, or of the spares where the job has none left.
  void lose_node(RunTime back) {
    if (missing_nodes_ < c_.nodes) {
      ++missing_nodes_;
    } else {
      (void)pool_.take(1);
    }
    pool_.expect(back);
  }
  /// Those that a failure of this scope breaks.
  void send_to_repair(RunTime now, FailureScope scope) {
    const int broken =
        std::min(c_.scope_nodes[static_cast<std::size_t>(scope)], c_.nodes - missing_nodes_);
    if (broken > 0) pool_.send_to_repair(now, broken);
    missing_nodes_ += broken;
  }

  /// Nodes that are back by now are spares.
  void collect(RunTime now) { pool_.collect(now); }
  /// Spares take the places of missing nodes.
  SparePool::Taken fill() {
    const SparePool::Taken taken = pool_.take(missing_nodes_);
    missing_nodes_ -= taken.hot + taken.warm;
    return taken;
  }
  /// Puts the replicas together anew. False: too many are missing for the job to run.
  bool job_fits() {
    missing_replicas_ = replicas_of(missing_nodes_);
    return missing_replicas_ < static_cast<int>(c_.width_speed.size());
  }
  /// When the next node is back.
  [[nodiscard]] RunTime next_back() const { return pool_.next_back(); }
  /// When the job may grow, for a node is back.
  [[nodiscard]] RunTime next_growth(RunTime now) const {
    return missing_nodes_ > 0 ? std::max(pool_.next_back(), now) : FailureSource::kNever;
  }
  /// Whether there are spares for a replica that is missing.
  [[nodiscard]] bool has_another_replica() const {
    const int places = missing_nodes_ - std::min(missing_nodes_, pool_.ready());
    return replicas_of(places) != missing_replicas_;
  }

 private:
  /// That cannot run without these nodes, however the others are put together.
  [[nodiscard]] int replicas_of(int nodes) const {
    const int whole = (nodes + c_.nodes_per_replica - 1) / c_.nodes_per_replica;
    return whole * c_.replicas_per_node;
  }

  const Campaign& c_;
  SparePool pool_;
  int missing_nodes_ = 0;
  int missing_replicas_ = 0;
};

}  // namespace lockstep
