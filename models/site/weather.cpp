#include "models/site/weather.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace lockstep {

double wet_bulb_celsius(double dry_celsius, double humidity) {
  const double T = dry_celsius;
  const double H = std::clamp(100 * humidity, 5.0, 99.0);
  const double wet = T * std::atan(0.151977 * std::sqrt(H + 8.313659)) + std::atan(T + H) -
                     std::atan(H - 1.676331) +
                     0.00391838 * H * std::sqrt(H) * std::atan(0.023101 * H) - 4.686035;
  return std::min(wet, T);
}

double sun_height(double latitude_degrees, int day, double hour) {
  constexpr double kDegree = std::numbers::pi / 180;
  const double lat = latitude_degrees * kDegree;
  const double dec = 23.45 * kDegree * std::sin(360.0 / 365 * (284 + day) * kDegree);
  const double turn = 15 * kDegree * (hour - 12);
  return std::max(0.0,
                  std::sin(lat) * std::sin(dec) + std::cos(lat) * std::cos(dec) * std::cos(turn));
}

}  // namespace lockstep
