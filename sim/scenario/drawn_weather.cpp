#include "sim/scenario/drawn_weather.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sim/core/random.hpp"

namespace lockstep {
namespace {

constexpr std::uint32_t kWeatherPurpose = 0x5749;  // apart from all draws of a run
constexpr double kWarmestHour = 15;                // assumed: mid-afternoon
constexpr double kDaySpan = 365.25;

double wave_at(const DrawnWeather& weather, std::chrono::sys_seconds at) {
  double warmer = 0;
  for (const HeatWave& wave : weather.waves) {
    const double days = std::chrono::duration<double, std::ratio<86400>>(at - wave.start).count();
    if (days >= 0 && days < wave.days) warmer = std::max(warmer, wave.kelvin);
  }
  return warmer;
}

}  // namespace

void draw_weather(const DrawnWeather& weather, std::uint64_t seed, std::chrono::sys_seconds first,
                  std::vector<SiteHour>& hours) {
  constexpr double kTurn = 2 * std::numbers::pi;
  RandomStream draws({.seed = seed, .trajectory = 0, .component = 0, .purpose = kWeatherPurpose});
  const double kept = weather.lasts_hours > 0 ? portable_exp(-1 / weather.lasts_hours) : 0;
  double noise = draws.normal();
  for (std::size_t i = 0; i < hours.size(); ++i) {
    SiteHour& hour = hours[i];
    const double season = std::cos(kTurn * (hour.day_of_year - weather.warmest_day) / kDaySpan);
    const double day = std::cos(kTurn * (hour.hour - kWarmestHour) / 24);
    const double swing = weather.daily_kelvin * day + weather.noise_kelvin * noise +
                         wave_at(weather, first + std::chrono::hours{i});
    hour.outside_celsius = weather.mean_celsius + weather.yearly_kelvin * season + swing;
    // Warmer air of the same moisture is drier: saturation doubles about every 10 degrees.
    hour.humidity = std::clamp(weather.humidity * portable_exp(-0.065 * swing), 0.05, 1.0);
    noise = kept * noise + std::sqrt(1 - kept * kept) * draws.normal();
  }
}

}  // namespace lockstep
