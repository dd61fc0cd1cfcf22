#include "models/site/plant.hpp"

#include <algorithm>
#include <cassert>
#include <limits>

namespace lockstep {

std::vector<double> units_down(const UnitBank& bank) {
  assert(bank.units >= 0);
  const auto n = static_cast<std::size_t>(bank.units);
  std::vector<double> p(n + 1, 0.0);
  p[0] = 1;
  if (bank.mean_time <= Seconds{}) return p;
  double sum = 1;
  for (std::size_t i = 0; i < n; ++i) {
    const auto repaired = static_cast<double>(
        bank.crews > 0 ? std::min(i + 1, static_cast<std::size_t>(bank.crews)) : i + 1);
    p[i + 1] = p[i] * static_cast<double>(n - i) * (bank.repair / bank.mean_time) / repaired;
    sum += p[i + 1];
  }
  for (double& each : p) each /= sum;
  return p;
}

double availability(const UnitBank& bank, int needed) {
  const std::vector<double> p = units_down(bank);
  double sum = 0;
  for (int down = 0; down <= bank.units - needed; ++down) sum += p[static_cast<std::size_t>(down)];
  return sum;
}

double rise_kelvin(double approach_kelvin, Watts unit_heat, Watts heat, int units) {
  if (units <= 0) return std::numeric_limits<double>::infinity();
  return approach_kelvin * (heat / (static_cast<double>(units) * unit_heat));
}

double coolant_celsius(const CoolingLaw& law, double sink_celsius, Watts heat, int units) {
  if (law.chills) {
    constexpr double kRounding = 1e-9;
    const Watts carried = static_cast<double>(std::max(0, units)) * law.unit_heat;
    return heat <= (1 + kRounding) * carried ? law.set_point_celsius : law.slowdown_celsius;
  }
  const double rise = rise_kelvin(law.approach_kelvin, law.unit_heat, heat, units);
  return std::max(law.set_point_celsius, sink_celsius + rise);
}

double power_share_at(const CoolingLaw& law, double coolant) {
  assert(law.rated_celsius < law.slowdown_celsius);
  const double share =
      (law.slowdown_celsius - coolant) / (law.slowdown_celsius - law.rated_celsius);
  return std::clamp(share, 0.0, 1.0);
}

double make_up_litres(Joules heat, double cycles) {
  assert(cycles > 1);
  constexpr double kLatentJoulesPerLitre = 2.45e6;
  return heat.base_units() / kLatentJoulesPerLitre * cycles / (cycles - 1);
}

}  // namespace lockstep
