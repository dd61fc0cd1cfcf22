/// Machines as they come, and money by month, as text.
#pragma once

#include <string>
#include <vector>

#include "sim/site/fleet.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// Two tables: the machines that are there, and the money by month with its sum; below them what is
/// left of terms at the end.
std::string purchase_text(const Fleet& fleet, const std::vector<MonthMoney>& months,
                          const TextStyle& style);

}  // namespace lockstep
