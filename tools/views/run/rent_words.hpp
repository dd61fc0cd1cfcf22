/// Rent and ownership are two ways to pay for the same machines. Where an answer has both, these
/// words tell them apart.
#pragma once

#include <string>
#include <string_view>

#include "sim/answer/campaign_answer.hpp"
#include "sim/site/fleet.hpp"

namespace lockstep {

inline constexpr std::string_view kRentOrOwn =
    "Rented and owned are two ways to pay for the same machines: compare them, never add them.";

/// What follows a rent: that it takes the place of the bill of those who own; else nothing.
inline std::string_view instead_of_owning(const CampaignResult& result) {
  const bool owned =
      result.bill && result.scenario.power && prices_machines(result.scenario.power->cost);
  return owned ? ", instead of owning them" : "";
}

/// What its money is of where machines have no price: "energy only", "energy, and the site's
/// plants, written off over 5 years". Requires a bill.
std::string partial_money_words(const CampaignResult& result);
/// What comes back of a purchase at the end: "machines", "machines and plants", "plants".
std::string_view sold_words(const MonthMoney& sum);
/// "the site's plants, rent, ", of what there is: what is paid beside machines, energy and people.
std::string besides_words(const MonthMoney& sum);

}  // namespace lockstep
