/// Weather that nobody measured, hour by hour: seasons, days, noise that lasts, heat waves.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "sim/scenario/site_spec.hpp"

namespace lockstep {

/// A stretch that is warmer than the rest.
struct HeatWave {
  std::chrono::sys_seconds start;
  double days = 0, kelvin = 0;
};

/// Of a year: mean, half of the difference between seasons, half of that between night and day,
/// and the standard deviation of what is left, whose correlation falls by e in `lasts_hours`.
struct DrawnWeather {
  double mean_celsius = 15, yearly_kelvin = 10, daily_kelvin = 5, noise_kelvin = 3;
  double lasts_hours = 48;
  double humidity = 0.5;  ///< relative, at the mean of a day; less when it is warmer
  int warmest_day = 200;  ///< of the year
  std::vector<HeatWave> waves;
};

/// Writes temperature and humidity of each hour: a function of (weather, seed, hours) alone.
///
///     T = mean + yearly cos(2 pi (day - warmest) / 365.25) + daily cos(2 pi (hour - 15) / 24)
///         + noise x,    x first-order autoregressive with variance 1
///
/// `first`: local time of the first hour, for heat waves.
void draw_weather(const DrawnWeather& weather, std::uint64_t seed, std::chrono::sys_seconds first,
                  std::vector<SiteHour>& hours);

}  // namespace lockstep
