/// The clock and the books of a run: where its wall time went, phase by phase where asked for.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/run/campaign.hpp"
#include "sim/run/trajectory.hpp"

namespace lockstep {

/// What is lost when a job falls back to a checkpoint.
constexpr std::array kRunningBuckets{RunBucket::productive, RunBucket::degraded,
                                     RunBucket::checkpoint};

struct RunBooks {
  /// What a checkpoint holds: the books up to the moment when it was taken.
  struct Capture {
    RunTime work;
    RunTime taken;  ///< when it began
    RunTime kept;   ///< when these books were read: after waiting for it
    RunTime whole;  ///< from when on it can be read
    std::array<RunTime, kRunningBuckets.size()> running;  ///< by kRunningBuckets, so far
  };

  const TrajectoryWatch& watch;
  RunTime work_end;
  RunTime horizon;
  bool timeline;  ///< keep phases and events
  bool keeps_stops = false;
  std::vector<RunStop> stops{};  ///< since then
  RunTime now = 0;
  RunTime work = 0;  ///< done
  std::uint64_t booked = 0;
  TrajectoryResult out{};

  [[nodiscard]] RunTime& in(RunBucket bucket) {
    return out.buckets[static_cast<std::size_t>(bucket)];
  }
  [[nodiscard]] RunTime lost() const {
    return out.buckets[static_cast<std::size_t>(RunBucket::lost)];
  }
  /// The clock moves as time is booked: that is why the books balance.
  void book(RunBucket bucket, RunTime dt) {
    constexpr std::uint64_t kBookedPerLook = 1 << 16;  // some milliseconds
    if (timeline && dt > 0) begin_phase(bucket);
    if (keeps_stops && dt > 0 && stands_still(bucket)) add_stop(bucket, dt);
    in(bucket) += dt;
    now += dt;
    if (++booked % kBookedPerLook == 0 && watch) look();
  }
  /// Now, of a checkpoint that began then and can be read after `finishes` more.
  [[nodiscard]] Capture capture(RunTime begun, RunTime finishes) {
    Capture capture{
        .work = work, .taken = begun, .kept = now, .whole = now + finishes, .running = {}};
    for (std::size_t b = 0; b < kRunningBuckets.size(); ++b) {
      capture.running[b] = in(kRunningBuckets[b]);
    }
    return capture;
  }
  /// What ran since then was for nothing.
  void restore(const Capture& capture) {
    if (timeline) lose_phases(capture.kept);
    for (std::size_t b = 0; b < kRunningBuckets.size(); ++b) {
      RunTime& running = in(kRunningBuckets[b]);
      in(RunBucket::lost) += running - capture.running[b];
      running = capture.running[b];
    }
    work = capture.work;
  }

 private:
  void add_stop(RunBucket bucket, RunTime dt) {
    const bool goes_on = !stops.empty() && stops.back().end == now && stops.back().bucket == bucket;
    if (goes_on) stops.back().end += dt;
    if (!goes_on) stops.push_back({now, now + dt, bucket});
  }
  void look() {
    if (!watch(static_cast<double>(work) / static_cast<double>(work_end))) horizon = now;
  }
  void begin_phase(RunBucket bucket) {
    if (out.phases.empty() || out.phases.back().bucket != bucket) {
      out.phases.push_back({now, bucket});
    }
  }
  void lose_phases(RunTime since) {
    std::vector<RunPhase>& phases = out.phases;
    std::size_t i = phases.size();
    while (i > 0 && phases[i - 1].begin >= since) --i;
    if (i > 0 && since < now && (i == phases.size() || phases[i].begin > since)) {
      phases.insert(phases.begin() + static_cast<std::ptrdiff_t>(i), {since, phases[i - 1].bucket});
    }
    std::size_t kept = i;
    for (; i < phases.size(); ++i) {
      RunPhase phase = phases[i];
      if (std::ranges::find(kRunningBuckets, phase.bucket) != kRunningBuckets.end()) {
        phase.bucket = RunBucket::lost;
      }
      if (kept > 0 && phases[kept - 1].bucket == phase.bucket) continue;
      phases[kept++] = phase;
    }
    phases.resize(kept);
  }
};

}  // namespace lockstep
