/// What the machines of a cluster with a queue draw from instant to instant.
#pragma once

#include <cstdint>
#include <vector>

#include "models/base/units.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// A GPU with its share of its node (models/power/site_power.hpp), at the power supply's input, by
/// who holds it. CPUs are busy by as much of their node as is held, which a node's power is linear
/// in. Whole microwatts, so that what is added when a job starts is what goes when it ends.
class QueueDraws {
 public:
  /// Requires spec.power, and timed trainings. `spec` outlives it.
  explicit QueueDraws(const QueueSpec& spec);

  /// Of a GPU of the job.
  [[nodiscard]] std::int64_t microwatts(const QueueJob& job) const {
    return microwatts_of(job.training);
  }
  /// Of a GPU of a training, or below 0 of a job of given duration.
  [[nodiscard]] std::int64_t microwatts_of(std::int32_t training) const {
    return training < 0 ? given_ : trainings_[static_cast<std::size_t>(training)];
  }
  /// At the site's meter: `held` is the sum of what held GPUs draw. Broken nodes are off.
  [[nodiscard]] Watts facility(std::int64_t held_microwatts, std::int64_t free_gpus) const;
  /// By how much the site would draw more or less, for each held GPU of given duration, if that
  /// drew so much.
  [[nodiscard]] Watts facility_beyond(Watts gpu) const;

  [[nodiscard]] double pue() const { return pue_; }
  [[nodiscard]] double ports_100g() const { return ports_100g_; }

 private:
  [[nodiscard]] Watts with_node(Watts gpu, bool busy) const;

  const QueueSpec* spec_;
  std::int64_t given_ = 0, free_ = 0;
  std::vector<std::int64_t> trainings_;
  double ports_100g_ = 0;
  Watts fabric_;
  double pue_ = 1;
};

/// What a GPU of a job whose duration is given draws, by the scenario; else between a process that
/// waits (`least`) and the card's limit (`most`), halfway.
struct GivenDraw {
  Watts least, assumed, most;
};
GivenDraw given_draw(const QueueSpec& spec);

}  // namespace lockstep
