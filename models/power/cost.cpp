#include "models/power/cost.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace lockstep {
namespace {

constexpr double kHour = 3600;
constexpr double kYear = 365.25 * 24 * kHour;
constexpr double kMonth = kYear / 12;
constexpr double kGramsPerTonne = 1e6;

bool is_zero(const HourlySeries& series) {
  return std::ranges::all_of(series.values, [](double value) { return value == 0; });
}

/// Each price of owning, what it is of, and whether it was given.
struct PriceRow {
  const char* name;
  const char* of;
  bool given;
};
std::array<PriceRow, 7> price_rows(const CostSpec& prices) {
  return {{{"cost.usd_per_gpu", "GPUs", prices.usd_per_gpu > 0},
           {"cost.usd_per_node", "servers", prices.usd_per_node > 0},
           {"cost.usd_per_100g_port", "network", prices.usd_per_100g_port > 0},
           {"cost.usd_per_facility_w", "building", prices.usd_per_facility_w > 0},
           {"cost.usd_per_kwh", "energy", !is_zero(prices.usd_per_kwh)},
           {"cost.people_usd_per_hour", "people", prices.people_usd_per_hour > 0},
           {"cost.hosting_usd_per_kw_month", "hosting", prices.hosting_usd_per_kw_month > 0}}};
}

}  // namespace

std::vector<std::string> missing_prices(const CostSpec& prices) {
  std::vector<std::string> out;
  for (const PriceRow& row : price_rows(prices)) {
    if (!row.given) out.emplace_back(row.name);
  }
  return out;
}

bool has_prices(const CostSpec& prices) {
  return std::ranges::any_of(price_rows(prices), &PriceRow::given);
}

bool prices_machines(const CostSpec& prices) {
  return prices.usd_per_gpu > 0 || prices.usd_per_node > 0;
}

std::optional<MoneyOf> money_of(const CostSpec* prices, bool rented) {
  if (prices != nullptr && prices_machines(*prices)) return MoneyOf::owned;
  if (rented) return MoneyOf::rent;
  if (prices != nullptr && has_prices(*prices)) return MoneyOf::partial;
  return std::nullopt;
}

std::string words_of(MoneyOf of, const CostSpec* prices) {
  if (of != MoneyOf::partial) return of == MoneyOf::owned ? "owned" : "rented";
  std::vector<std::string_view> given;
  if (prices != nullptr) {
    for (const PriceRow& row : price_rows(*prices)) {
      if (row.given) given.emplace_back(row.of);
    }
  }
  if (given.empty()) given.emplace_back("energy");  // by the tariff of the site
  std::string out(given.front());
  for (std::size_t i = 1; i < given.size(); ++i) {
    out += (i + 1 < given.size() ? ", " : " and ") + std::string(given[i]);
  }
  return out + " only";
}

CostReport cost_of(const CostSpec& prices, const Holdings& holdings, const Usage& usage) {
  assert(prices.years > 0 && prices.utilisation > 0);
  const double time = usage.time.base_units();
  const double worn = time / (prices.years * kYear * prices.utilisation);
  const double peak = holdings.facility_peak.base_units();
  CostReport cost;
  cost.capital = {
      .machines_usd = prices.usd_per_gpu * holdings.gpus + prices.usd_per_node * holdings.nodes,
      .network_usd = prices.usd_per_100g_port * holdings.ports_100g,
      .building_usd = prices.usd_per_facility_w * peak};
  cost.gpus_usd = worn * prices.usd_per_gpu * holdings.gpus;
  cost.nodes_usd = worn * prices.usd_per_node * holdings.nodes;
  cost.network_usd = worn * prices.usd_per_100g_port * holdings.ports_100g;
  cost.building_usd = worn * prices.usd_per_facility_w * peak;
  cost.energy_usd = usage.energy_usd;
  cost.people_usd = prices.people_usd_per_hour * time / kHour;
  cost.hosting_usd = prices.hosting_usd_per_kw_month * peak / 1e3 * time / kMonth;
  if (prices.usd_per_gpu_hour) {
    cost.cloud_usd = *prices.usd_per_gpu_hour * holdings.gpus * time / kHour;
  }
  if (usage.grams) cost.tonnes_co2 = *usage.grams / kGramsPerTonne;
  if (usage.tokens > 0) cost.usd_per_trillion_tokens = cost.total_usd() / usage.tokens * 1e12;
  const double eflop = usage.model_flops.base_units() * 1e-18;
  if (eflop > 0) cost.usd_per_eflop = cost.total_usd() / eflop;
  return cost;
}

}  // namespace lockstep
