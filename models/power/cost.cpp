#include "models/power/cost.hpp"

#include <cassert>

namespace lockstep {
namespace {

constexpr double kHour = 3600;
constexpr double kYear = 365.25 * 24 * kHour;
constexpr double kMonth = kYear / 12;
constexpr double kGramsPerTonne = 1e6;

}  // namespace

CostReport cost_of(const CostSpec& prices, const Holdings& holdings, const Usage& usage) {
  assert(prices.years > 0 && prices.utilisation > 0);
  const double time = usage.time.base_units();
  const double worn = time / (prices.years * kYear * prices.utilisation);
  const double peak = holdings.facility_peak.base_units();
  CostReport cost;
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
  cost.tonnes_co2 = usage.grams / kGramsPerTonne;
  if (usage.tokens > 0) cost.usd_per_trillion_tokens = cost.total_usd() / usage.tokens * 1e12;
  const double eflop = usage.model_flops.base_units() * 1e-18;
  if (eflop > 0) cost.usd_per_eflop = cost.total_usd() / eflop;
  return cost;
}

}  // namespace lockstep
