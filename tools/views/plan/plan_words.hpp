/// A plan's answer in sentences, which all its forms share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/views/plan/plan_output.hpp"

namespace lockstep {

std::string plan_money(double usd);      ///< "21.3 M USD"
std::string plan_energy(double joules);  ///< "12.4 GWh"
/// Energy of a trillion tokens, those of all phases together, with every input at its median; J.
double plan_energy_per_trillion_tokens(const PlanCandidate& candidate, const PlanResult& result);
std::string plan_power(double watts);  ///< "5.31 MW"
/// "50.1 to 63.0 days": nine of ten samples; both ends in the unit of the larger. "50.1 days and
/// up" where those that are given up reach into them.
std::string plan_time_range(const PlanResult& result);
std::string plan_money_range(const PlanResult& result);
std::string plan_energy_range(const PlanResult& result);
std::string plan_power_range(const SampleMean& watts);

/// "Llama 3 70B on 15.0 T tokens": what is trained.
std::string plan_subject(const PlanAnswer& answer);
/// The recommendation: which candidate, what it comes to, how sure. One sentence or more.
std::string plan_recommendation(const PlanAnswer& answer);
/// What whoever follows the recommendation has to know first.
std::vector<std::string> plan_notes(const PlanAnswer& answer);
/// For each candidate, in order: chosen, why not, which limits it misses.
std::vector<std::string> plan_verdicts(const PlanAnswer& answer);
/// What moves the goal most, largest first.
std::string plan_sensitivity(const PlanAnswer& answer);
/// The plan's assumptions, then those of the candidates, each once, with whose it is where not
/// everybody's.
std::vector<std::string> plan_assumptions(const PlanAnswer& answer);
/// "at most 60.0 days, 10.0 MW and 25.0 M USD, in 90 % of all cases"; "none".
std::string plan_limits(const PlanAnswer& answer);

/// The measure that the plan's goal is about: index into plan_measures().
std::size_t goal_measure(PlanGoal goal);
/// A value of that measure as people read it.
std::string measure_text(std::size_t measure, double value);

/// Money that only some plans have, beside written off, running and rent: with these they add up.
struct PlanMoneyColumn {
  std::string_view title, heading;  ///< of a table in text, of one on a page
  double PlanOutcome::* usd;
};
/// Those that any candidate with prices pays.
std::vector<PlanMoneyColumn> plan_money_columns(const PlanAnswer& answer);

/// Swings of the shown candidate with something to show in that measure, widest first.
struct SwingRow {
  const PlanSwing* swing;
  const PlanInputInfo* info;
  double at_low, at_high;  ///< of the measure
  [[nodiscard]] double width() const {
    return at_high > at_low ? at_high - at_low : at_low - at_high;
  }
};
std::vector<SwingRow> widest_swings(const PlanResult& result, std::size_t measure);

}  // namespace lockstep
