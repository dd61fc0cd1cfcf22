#include "models/site/standby.hpp"

#include <cassert>
#include <cmath>
#include <limits>

#include "models/site/plant.hpp"

namespace lockstep {

Seconds bridge_time(Joules stored, Watts load) {
  if (load <= Watts{}) return Seconds{std::numeric_limits<double>::infinity()};
  return stored / load;
}

double enough_start(int units, int needed, double fails_to_start) {
  assert(units >= 0 && fails_to_start >= 0 && fails_to_start <= 1);
  if (needed <= 0) return 1;
  if (needed > units || fails_to_start >= 1) return 0;
  UnitBank bank;
  bank.units = units;
  bank.mean_time = Seconds{1 - fails_to_start};
  bank.repair = Seconds{fails_to_start};
  return availability(bank, needed);
}

double outlasts_standby(Seconds outage, Seconds bridge, const GeneratorLaw& generators,
                        double starts) {
  assert(outage > Seconds{} && starts >= 0 && starts <= 1);
  const double bridged = std::exp(-(bridge / outage));
  if (generators.start > bridge) return bridged;
  const double fuelled =
      generators.fuel > Seconds{} ? std::exp(-((bridge + generators.fuel) / outage)) : 0;
  return (1 - starts) * bridged + starts * fuelled;
}

double without_standby(Seconds outage, Seconds bridge, const GeneratorLaw& generators,
                       double starts) {
  if (generators.start <= bridge) return outlasts_standby(outage, bridge, generators, starts);
  const auto left_after = [outage](Seconds moment) { return std::exp(-(moment / outage)); };
  const double empty =
      generators.fuel > Seconds{} ? left_after(generators.start + generators.fuel) : 0;
  return left_after(bridge) - starts * (left_after(generators.start) - empty);
}

}  // namespace lockstep
