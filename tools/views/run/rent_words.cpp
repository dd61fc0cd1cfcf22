#include "tools/views/run/rent_words.hpp"

#include <fmt/format.h>

namespace lockstep {

std::string partial_money_words(const CampaignResult& result) {
  const CostSpec& prices = result.scenario.power->cost;
  std::string out = words_of(MoneyOf::partial, &prices);
  // A price of the building is among the words already.
  if (prices.usd_per_facility_w > 0 || result.bill->cost.building_usd <= 0) return out;
  constexpr std::string_view kOnly = " only";
  if (out.ends_with(kOnly)) out.resize(out.size() - kOnly.size());
  return out + fmt::format(", and the site's plants, written off over {:g} years", prices.years);
}

std::string besides_words(const MonthMoney& sum) {
  return std::string(sum.plants > 0 ? "the site's plants, " : "") +
         (sum.rented > 0 ? "rent, " : "");
}

std::string_view sold_words(const MonthMoney& sum) {
  if (sum.plants <= 0) return "machines";
  return sum.bought > 0 ? "machines and plants" : "plants";
}

}  // namespace lockstep
