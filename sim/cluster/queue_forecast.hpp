/// When each job that waits now will start, though nobody knows how long those that run will.
///
/// Up to now all is as it was recorded. From then on the scheduler's rules hold, many times over,
/// each time with other durations: a job that has not ended runs for a share of its time limit that
/// is drawn from those of ended jobs, of its own user's where there are enough, and of those alone
/// that are longer than what it has run for. Which ended jobs these are is drawn too, so that few
/// of them widen the answer. Nobody submits anything any more.
///
/// Where nothing was recorded, the jobs have run by the rules. Where one of them was evicted,
/// suspended, slowed by its neighbours or stopped by a failure since, its first start does not say
/// what it is about now: the queue is simulated from its beginning then, with the drawn durations,
/// none of which ends a job earlier than it did. Orders that know durations would not come by the
/// same way to now.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// A waiting job's start after now, in seconds, over the draws.
struct ForecastStart {
  std::uint32_t job = 0;
  RunTime waited = 0;       ///< up to now
  std::size_t started = 0;  ///< draws in which it starts at all; the times are of these
  double p10_s = 0, p50_s = 0, p90_s = 0;
};

struct QueueForecast {
  RunTime now = 0;
  std::size_t draws = 0;
  std::size_t running = 0, ended = 0;  ///< those that run, or are suspended
  double mean_share = 1;  ///< of their limits that ended jobs ran; 1 where none has ended
  std::vector<ForecastStart> waiting;  ///< by their median start; those that never start last
};

struct ForecastOptions {
  std::size_t draws = 50;  ///< at least 1
  /// Told of draws that are done and of all; false stops, and what there is stays.
  std::function<bool(std::size_t, std::size_t)> go_on{};
};

/// Requires timed trainings and now > 0. Throws InputError, also where the order goes by durations
/// (sjf, srtf, srsf, gittins, qssf) and the way to now is not that of first starts alone.
QueueForecast forecast_queue(const QueueSpec& spec, RunTime now, const ForecastOptions& options);

}  // namespace lockstep
