/// All-to-alls in which some members are sent more than others, as tokens for experts in demand.
#pragma once

#include <span>
#include <vector>

namespace lockstep {

struct GroupMember;  // channels.hpp

/// The fullest members are sent `fullest` times what a member is sent on average; all others share
/// the rest evenly.
struct ExchangeSkew {
  double fullest = 1;         ///< at least 1; no member is sent more than all that there is
  bool whole_domain = false;  ///< all members in the first one's NVLink domain; else it alone
  bool back = false;          ///< the way back: they send what they had received

  [[nodiscard]] bool is_even() const { return fullest == 1; }
  friend bool operator==(const ExchangeSkew&, const ExchangeSkew&) = default;
};

/// What the fullest NIC and the fullest NVLink port carry, over those of an even exchange.
struct SkewFactors {
  double network = 1, nvlink = 1;
};

/// Of n members, g in each of n / g NVLink domains. `gathered`: as the algorithm "two_level" does,
/// what goes to another domain leaves by the NIC beside the one that receives it, so that on the
/// way back the members of a domain share the NICs evenly. With f = fullest and the others at
/// o = (n - f) / (n - 1) the NICs carry f, on the way back gathered (f + (g - 1) o) / g; NVLink f,
/// gathered on the way there (f + (n / g - 1) o) g / n. A cold domain's members send to (or receive
/// from) the hot one no more than that. Requires 1 <= g <= n.
SkewFactors skew_factors(const ExchangeSkew& skew, double n, double g, bool gathered);

/// By member: what it is sent over the mean. Requires a member at least.
std::vector<double> skew_weights(const ExchangeSkew& skew, std::span<const GroupMember> members);

}  // namespace lockstep
