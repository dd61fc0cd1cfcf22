/// Rent and ownership are two ways to pay for the same machines. Where an answer has both, these
/// words tell them apart.
#pragma once

#include <string_view>

#include "sim/answer/campaign_answer.hpp"

namespace lockstep {

inline constexpr std::string_view kRentOrOwn =
    "Rented and owned are two ways to pay for the same machines: compare them, never add them.";

/// What follows a rent: that it takes the place of the bill of those who own; else nothing.
inline std::string_view instead_of_owning(const CampaignResult& result) {
  const bool owned =
      result.bill && result.scenario.power && prices_machines(result.scenario.power->cost);
  return owned ? ", instead of owning them" : "";
}

}  // namespace lockstep
