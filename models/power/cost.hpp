/// What a run costs, as three figures that people mean by "cost": capital to be spent, what of it a
/// run writes off, what it costs to keep it running; or a cloud's price instead of all three.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/units.hpp"
#include "models/power/hourly.hpp"

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
  std::optional<HourlySeries> grams_per_kwh{};  ///< carbon dioxide that the grid emits
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
  Joules energy;                  ///< at the facility's meter
  double energy_usd = 0;          ///< energy by the tariff of its hours
  std::optional<double> grams{};  ///< carbon, by the intensity of its hours; none: it has none
  double tokens = 0;
  Flops model_flops;
};

/// What has to be spent before the machines can run.
struct CapitalReport {
  double machines_usd = 0;  ///< GPUs and the servers around them
  double network_usd = 0;
  double building_usd = 0;  ///< with its power and cooling

  [[nodiscard]] double total_usd() const { return machines_usd + network_usd + building_usd; }
};

struct CostReport {
  CapitalReport capital;
  double gpus_usd = 0, nodes_usd = 0, network_usd = 0, building_usd = 0;  ///< written off
  double energy_usd = 0, people_usd = 0, hosting_usd = 0;
  std::optional<double> cloud_usd;     ///< instead of all of the above
  std::optional<double> tonnes_co2;    ///< none: the grid's intensity was not given
  double usd_per_trillion_tokens = 0;  ///< of total_usd(); 0 without tokens
  double usd_per_eflop = 0;            ///< per 1e18 model FLOP done; 0 without any

  /// What the machines, the network and the building lose in value meanwhile.
  [[nodiscard]] double write_off_usd() const {
    return gpus_usd + nodes_usd + network_usd + building_usd;
  }
  /// What is paid while it runs.
  [[nodiscard]] double running_usd() const { return energy_usd + people_usd + hosting_usd; }
  [[nodiscard]] double total_usd() const { return write_off_usd() + running_usd(); }
};

/// The prices of owning that are all 0, as a scenario calls them: "cost.usd_per_gpu". What is left
/// out costs nothing, so that without any of them there is no answer about money.
std::vector<std::string> missing_prices(const CostSpec& prices);
/// Whether any of them was given.
bool has_prices(const CostSpec& prices);
/// Whether the machines have one, usd_per_gpu or usd_per_node: without, nothing says what owning
/// them costs, and what energy or a building costs is not it.
bool prices_machines(const CostSpec& prices);

/// What the one figure of money of an answer is of.
enum class MoneyOf : std::uint8_t { owned, rent, partial };
inline constexpr std::array<std::string_view, 3> kMoneyOf{"owned", "rent", "partial"};
/// Owning where the machines have a price, else rent, else whatever has a price; none without any.
/// `prices`: null where there are none; `rented`: whether a GPU has a price by the hour.
std::optional<MoneyOf> money_of(const CostSpec* prices, bool rented);
/// "owned", "rented", "energy only" (also by a site's tariff alone), "energy and people only".
std::string words_of(MoneyOf of, const CostSpec* prices);

/// Capital by straight-line amortisation: price x time / (years x utilisation).
CostReport cost_of(const CostSpec& prices, const Holdings& holdings, const Usage& usage);

}  // namespace lockstep
