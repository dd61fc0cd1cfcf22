/// What each lot of a purchase costs, as the sums that a reader can check by hand.
#pragma once

#include <vector>

#include "sim/site/fleet.hpp"

namespace lockstep {

/// A lot until the run is done. What is paid is
///     buy       nodes x usd_per_node
///     lease     usd_per_month x months, the annuity of that price over the term
///     others    gpu_hours x usd_per_gpu_hour
/// where usd_per_node and usd_per_gpu_hour have the factors in them that are in force: the fall of
/// prices until the lot is ordered, a plan's factor on prices.
struct LotPrice {
  Lot lot;
  double usd_per_node = 0;               ///< buy, lease: when it is ordered
  double usd_per_gpu_hour = 0;           ///< the others
  double gpu_hours = 0;                  ///< that are paid for
  double usd_per_month = 0, months = 0;  ///< lease
  double paid_usd = 0;
  double residual_usd = 0;  ///< below 0: what it is worth at the end, or when it goes
  Seconds arrives;          ///< the last of it, after the start of the plan
  bool after_end = false;   ///< the last of it comes when the run is done
};
/// In the order of the lots; those that are ordered after the end cost nothing. Their paid_usd add
/// up to what money_by_month() has as bought, leased and rented, and so do the residual values.
std::vector<LotPrice> lot_prices(const Fleet& fleet, Seconds run, const MoneyFactors& factors = {});

}  // namespace lockstep
