/// Machines as they come, and the money by month, on a page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/site/lot_prices.hpp"
#include "tools/views/run/purchase_table.hpp"

namespace lockstep {

class Page;

/// What comes back has a sign; nothing is a dash.
std::string signed_usd(double usd);

/// Adds a section of that title. `of`: ", on average over ...", where months are no single run's.
/// `lots`: what each costs; none: no such table.
void add_money_by_month(Page& page, const Fleet& fleet, const std::vector<LotPrice>& lots,
                        const std::vector<MonthMoney>& months, const std::string& title,
                        std::string_view of = {}, const KeptMachines& kept = {});

}  // namespace lockstep
