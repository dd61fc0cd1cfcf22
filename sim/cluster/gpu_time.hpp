/// GPUs times time, exactly: a year of 100,000 GPUs has more nanoseconds than 64 bits hold.
#pragma once

#include <compare>
#include <cstdint>

#include "sim/scenario/failure_mode.hpp"

namespace lockstep {

class GpuTime {
 public:
  constexpr GpuTime() = default;
  /// Requires at most 9e6 GPUs.
  constexpr GpuTime(std::int64_t gpus, RunTime time)
      : seconds_(gpus * (time / kTicks)), ticks_(gpus * (time % kTicks)) {
    carry();
  }

  [[nodiscard]] constexpr double gpu_seconds() const {
    return static_cast<double>(seconds_) + static_cast<double>(ticks_) / kRunTicksPerSecond;
  }
  [[nodiscard]] constexpr double gpu_hours() const { return gpu_seconds() / 3600; }

  constexpr GpuTime& operator+=(GpuTime other) {
    seconds_ += other.seconds_;
    ticks_ += other.ticks_;
    carry();
    return *this;
  }
  constexpr GpuTime& operator-=(GpuTime other) {
    seconds_ -= other.seconds_;
    ticks_ -= other.ticks_;
    carry();
    return *this;
  }
  friend constexpr GpuTime operator+(GpuTime a, GpuTime b) { return a += b; }
  friend constexpr GpuTime operator-(GpuTime a, GpuTime b) { return a -= b; }
  friend constexpr auto operator<=>(GpuTime, GpuTime) = default;

 private:
  static constexpr std::int64_t kTicks = 1'000'000'000;

  constexpr void carry() {
    seconds_ += ticks_ / kTicks;
    ticks_ %= kTicks;
    if (ticks_ < 0) {
      ticks_ += kTicks;
      --seconds_;
    }
  }

  std::int64_t seconds_ = 0;
  std::int64_t ticks_ = 0;  ///< nanoseconds, 0 to 999,999,999
};

}  // namespace lockstep
