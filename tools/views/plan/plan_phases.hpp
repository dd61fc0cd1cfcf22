/// Candidates whose training has several phases, one after the other: which, where, when, how much.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/answer/fields.hpp"
#include "sim/site/lot_prices.hpp"
#include "tools/console/table.hpp"
#include "tools/views/plan/plan_output.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/run/purchase_table.hpp"

namespace lockstep {

/// For people: a table for each such candidate; empty where there is none.
std::string phases_text(const PlanAnswer& answer, const TextStyle& style);
Markdown phases_markdown(const PlanAnswer& answer);
void add_phases(Page& page, const PlanAnswer& answer);
/// A phase of a candidate with every input at its median.
struct PlannedPhase {
  std::string name;
  const PlanModel* model;
  const PlanOutcome* outcome;
  Seconds moves;          ///< of weights, before it
  double egress_usd = 0;  ///< for that
  double begins_s = 0;    ///< after the plan's start, with its data on the way
  bool priced = false;
};
/// Of one candidate; none where it has a single one, or is not possible.
std::vector<PlannedPhase> phases_of(const PlanAnswer& answer, std::size_t i);
const FieldTable<PlannedPhase>& plan_phase_fields();

/// Money of lots by month.
const FieldTable<MonthMoney>& lot_month_fields();

/// The prices that a candidate's phases are reckoned with.
struct PlanPrice {
  std::string name;  ///< "CANDIDATE", "CANDIDATE, PHASE"
  const PlanOutcome* of;
};
/// Of all candidates that have a price.
std::vector<PlanPrice> plan_prices(const PlanAnswer& answer);
/// "39,412 USD", "2.5 USD"; empty: none.
std::string plan_price_text(double usd);

/// What the lots of a phase cost until its mean run is done, with every input at its median.
std::vector<LotPrice> plan_lot_prices(const PlanModel& model, const Fleet& fleet,
                                      const PlanOutcome& outcome);

/// A phase on machines that come in lots, and their money by month of the plan.
struct LotPhase {
  std::string title;                   ///< "Machines and money: CANDIDATE", ", PHASE" if later
  std::shared_ptr<const Fleet> fleet;  ///< from when the phase has them
  const std::vector<MonthMoney>* months;
  std::vector<LotPrice> lots{};  ///< none: those of the phase before
  KeptMachines kept{};
};
/// Those of a candidate, in the order of its phases. They point into the answer.
std::vector<LotPhase> lots_of_candidate(const PlanAnswer& answer, std::size_t candidate);

}  // namespace lockstep
