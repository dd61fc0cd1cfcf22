/// What stands in when the power from outside is gone: batteries of UPS, then generators.
#pragma once

#include <optional>

#include "models/base/units.hpp"

namespace lockstep {

/// A generator's start, how long its tank lasts, and what its fuel costs.
struct GeneratorLaw {
  Seconds start{15};          ///< from the loss of power until it carries load
  double fails_to_start = 0;  ///< probability, of each unit at each outage
  Seconds fuel;               ///< that it runs on a tank; 0: any outage
  /// Of its fuel, by the kilowatt-hour that it gives; none: nobody said.
  std::optional<double> usd_per_kwh{}, grams_per_kwh{};
};

/// What a kilowatt-hour of generators takes: fuel, and carbon dioxide.
struct FuelRates {
  double usd_per_kwh = 0, grams_per_kwh = 0;
};

/// How long batteries that hold `stored` carry `load`: infinity without load.
Seconds bridge_time(Joules stored, Watts load);

/// How likely at least `needed` of `units` generators start, each on its own: availability() of
/// units that are down with that probability (k out of n).
double enough_start(int units, int needed, double fails_to_start);

/// How likely an outage of exponential length with mean `outage` outlasts what stands in for it:
/// `bridge` of the batteries, then generators, of which enough start with probability `starts`:
///
///     exp(-bridge / outage)                                                  start > bridge
///     (1 - starts) exp(-bridge / outage) + starts exp(-(bridge + fuel) / outage)      else
///
/// Batteries give way to generators as these start, and come back when the fuel is used up. The
/// law is the survival function of the exponential distribution, conditioned on the start. Requires
/// outage > 0.
double outlasts_standby(Seconds outage, Seconds bridge, const GeneratorLaw& generators,
                        double starts);

/// Of the time of such outages, the share in which nothing stands in:
///
///     exp(-bridge / outage) - starts (exp(-start / outage) - exp(-(start + fuel) / outage))
///                                                                          start > bridge
///     outlasts_standby()                                                             else
///
/// An exponential outage that is not over after a time lasts as long again on average, so that the
/// share of outages that reach a moment is also the share of their time that is left from it on.
/// Requires outage > 0.
double without_standby(Seconds outage, Seconds bridge, const GeneratorLaw& generators,
                       double starts);

}  // namespace lockstep
