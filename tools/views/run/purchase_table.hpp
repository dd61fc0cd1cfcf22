/// Machines as they come, and money by month, as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/site/lot_prices.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// "330,000 USD a node", "2.5 USD a GPU-hour": with the digits that a reader needs who multiplies.
std::string lot_price_words(const LotPrice& lot);
/// From which day on all of it is there: "182"; "182, after the end".
std::string lot_arrival_words(const LotPrice& lot);
/// Machines until the plan's end; all where `lots` are none, whose months begin with a later phase.
std::vector<FleetStep> steps_within(const Fleet& fleet, const std::vector<LotPrice>& lots,
                                    const std::vector<MonthMoney>& months);
/// "lots still come or go on day 300, after the end: left out"; empty where all are shown.
std::string later_steps_words(const Fleet& fleet, std::size_t shown);
/// What it is multiplied with: "132 nodes", "1,257,984 GPU-hours".
std::string lot_amount_words(const LotPrice& lot);
/// "energy: 12,345 MWh at 0.07 USD per kWh on average"; empty: none is paid for.
std::string energy_price_words(const MonthMoney& sum);

/// Which other phases of a plan have the same machines.
struct KeptMachines {
  bool from_before = false;  ///< what they lose is paid for, from what they were worth as it began
  bool go_on = false;        ///< what they are worth at its end is where the next phase begins
};
/// What the value of machines is called that months have as `residual`.
std::string_view residual_name(const KeptMachines& kept);
/// Whose value it is, as a sentence without a stop; empty where no other phase has the machines.
std::string kept_words(const KeptMachines& kept);

/// The machines that are there, what each lot costs (none: no such table), the money by month with
/// its sum; below them what is left of terms at the end.
std::string purchase_text(const Fleet& fleet, const std::vector<LotPrice>& lots,
                          const std::vector<MonthMoney>& months, const TextStyle& style,
                          const KeptMachines& kept = {});

}  // namespace lockstep
