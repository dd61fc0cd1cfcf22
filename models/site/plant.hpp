/// Units that do one thing together, fail and are repaired: chillers, pumps, transformers, UPS. And
/// what the coolant's temperature leaves a card of its power.
#pragma once

#include <string>
#include <vector>

#include "models/base/units.hpp"

namespace lockstep {

/// `units` equal ones, each failing and repaired by an exponential law of its own.
struct UnitBank {
  std::string name;
  int units = 1;
  Seconds mean_time;  ///< of a unit until it fails; 0: never
  Seconds repair{86'400};
  int crews = 0;  ///< repairs at a time; 0: as many as there are broken units
};

/// How likely 0, 1, ... units are down at a moment, long after the start: the machine repair model
/// (M/M/k with a finite source), a birth-death chain with failures at (n - i) / mean_time and
/// repairs at min(i, crews) / repair while i are down:
///
///     p(i + 1) = p(i) (n - i) repair / (mean_time min(i + 1, crews)),   sum p = 1
///
/// Source: Kleinrock 1975, Queueing Systems vol. 1, section 3.8; with crews for all it is the
/// binomial law.
std::vector<double> units_down(const UnitBank& bank);
/// How likely at least `needed` units are up.
double availability(const UnitBank& bank, int needed);

/// A plant that carries heat from the machines to the air outside, or to water that evaporates.
struct CoolingLaw {
  bool chills = false;          ///< by compressors: no warmer than the set point
  Watts unit_heat;              ///< that a unit carries at `approach_kelvin`; of chillers, at most
  double approach_kelvin = 10;  ///< coolant at the machines over the sink, a unit at its rating
  double set_point_celsius = 25;  ///< no colder: units run slower instead
  double rated_celsius = 35;      ///< up to which cards keep their limit
  double slowdown_celsius = 87;   ///< of a chip, at which it slows itself down
};

/// What stands between a plant and the machines, one bank behind the other: pumps, heat exchangers,
/// distribution units (CDUs). All of the heat goes through each of them.
struct CoolingStage {
  UnitBank bank;
  Watts unit_heat;             ///< that a unit carries at `approach_kelvin`
  double approach_kelvin = 0;  ///< colder side to warmer one, a unit at its rating
};

/// By how much coolant is warmer behind units that share `heat` evenly: in proportion to what each
/// carries (Newton's law of cooling; of pumps, heat over the flow and its capacity):
///
///     approach heat / (units unit_heat)
///
/// Infinite without any unit.
double rise_kelvin(double approach_kelvin, Watts unit_heat, Watts heat, int units);

/// Coolant at the machines: the sink's temperature and a difference that goes with the heat that
/// each unit carries (Newton's law of cooling), never below the set point:
///
///     T = max(set point, sink + approach heat / (units unit_heat))
///
/// Infinite without any unit. Of chillers it is the set point whatever is outside, while they carry
/// the heat: heat / (units unit_heat) <= 1. What they do not carry stays in the loop, and warms it
/// until chips slow down: slowdown_celsius.
double coolant_celsius(const CoolingLaw& law, double sink_celsius, Watts heat, int units);

/// What a card may draw of its limit, 0 to 1, so that its chip stays below the temperature at which
/// it slows down: a chip is hotter than its coolant in proportion to its power, and at the rated
/// coolant the whole limit just fits:
///
///     share = (slowdown - coolant) / (slowdown - rated)
double power_share_at(const CoolingLaw& law, double coolant);

/// Water that evaporates to carry `heat`, and what is let out so that salts do not build up to more
/// than `cycles` times the make-up's: litres.
///
///     make-up = heat / 2.45 MJ/kg x cycles / (cycles - 1)
///
/// Source: latent heat at 20 degrees, FAO Irrigation and Drainage Paper 56 (Allen et al. 1998),
/// equation 8; cycles: ASHRAE Handbook, HVAC Systems and Equipment, chapter 40. Requires cycles
/// > 1.
double make_up_litres(Joules heat, double cycles);

}  // namespace lockstep
