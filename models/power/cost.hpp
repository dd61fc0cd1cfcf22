/// What a run costs: machines that lose their value, energy, people, or a cloud's price instead.
#pragma once

#include <optional>

#include "models/power/hourly.hpp"
#include "models/units.hpp"

namespace lockstep {

/// Prices. What is left out costs nothing.
struct CostSpec {
  double usd_per_gpu = 0;
  double usd_per_node = 0;        ///< a server without its GPUs
  double usd_per_100g_port = 0;   ///< a switch port with its plug, per 100 Gb/s
  double usd_per_facility_w = 0;  ///< building, power and cooling, by facility power at the peak
  double years = 5;               ///< in which all of that is written off, evenly
  double utilisation = 1;         ///< of those years, how much somebody uses the machines
  HourlySeries usd_per_kwh;
  HourlySeries grams_per_kwh;  ///< carbon dioxide that the grid emits
  double people_usd_per_hour = 0;
  double hosting_usd_per_kw_month = 0;     ///< for facility power at the peak
  std::optional<double> usd_per_gpu_hour;  ///< what a cloud asks for the same
};

/// The machines that a run occupies.
struct Holdings {
  double gpus = 0, nodes = 0;
  double ports_100g = 0;  ///< switch ports, in units of 100 Gb/s
  Watts facility_peak;
};

/// A run, or a part of one: how long it held the machines, what it used, what it achieved.
struct Usage {
  Seconds time;
  Joules energy;          ///< at the facility's meter
  double energy_usd = 0;  ///< energy by the tariff of its hours
  double grams = 0;       ///< carbon, by the intensity of its hours
  double tokens = 0;
  Flops model_flops;
};

struct CostReport {
  double gpus_usd = 0, nodes_usd = 0, network_usd = 0, building_usd = 0;
  double energy_usd = 0, people_usd = 0, hosting_usd = 0;
  std::optional<double> cloud_usd;  ///< instead of all of the above
  double tonnes_co2 = 0;
  double usd_per_trillion_tokens = 0;  ///< of total_usd(); 0 without tokens
  double usd_per_eflop = 0;            ///< per 1e18 model FLOP done; 0 without any

  [[nodiscard]] double capital_usd() const {
    return gpus_usd + nodes_usd + network_usd + building_usd;
  }
  [[nodiscard]] double total_usd() const {
    return capital_usd() + energy_usd + people_usd + hosting_usd;
  }
};

/// Capital by straight-line amortisation: price x time / (years x utilisation).
CostReport cost_of(const CostSpec& prices, const Holdings& holdings, const Usage& usage);

}  // namespace lockstep
