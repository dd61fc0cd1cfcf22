/// Candidates whose training has several phases, one after the other: which, where, when, how much.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/console/table.hpp"
#include "tools/views/plan/plan_output.hpp"
#include "tools/views/report/page.hpp"

namespace lockstep {

/// For people: a table for each such candidate; empty where there is none.
std::string phases_text(const PlanAnswer& answer, const TextStyle& style);
Markdown phases_markdown(const PlanAnswer& answer);
void add_phases(Page& page, const PlanAnswer& answer);
/// Of one candidate; a list of objects. Requires that it has phases and is possible.
nlohmann::ordered_json phases_json(const PlanAnswer& answer, std::size_t candidate);

/// Money of lots by month.
nlohmann::ordered_json lot_months_json(const std::vector<MonthMoney>& months);

/// A later phase on machines that come in lots, and their money by month of the plan.
struct LotPhase {
  std::string title;  ///< "Machines and money: CANDIDATE, PHASE"
  const Fleet* fleet;
  const std::vector<MonthMoney>* months;
};
std::vector<LotPhase> later_lots(const PlanAnswer& answer, std::size_t candidate);

}  // namespace lockstep
