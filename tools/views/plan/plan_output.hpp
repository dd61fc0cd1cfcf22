/// What `lockstep plan` says, and its forms: a table, JSON, CSV, Markdown. plan_page.hpp has the
/// HTML page.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sim/search/evaluate_plan.hpp"
#include "sim/search/plan_spec.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// A plan and its answer, which must not be interrupted.
struct PlanAnswer {
  const PlanSpec& spec;
  const PlanReport& report;

  [[nodiscard]] const PlanCandidate& candidate(std::size_t i) const { return spec.candidates[i]; }
  [[nodiscard]] const PlanResult& result(std::size_t i) const { return report.results[i]; }
  /// What is looked at in detail: the choice, else the nearest; none if nothing is possible.
  [[nodiscard]] std::optional<std::size_t> shown() const {
    return report.choice ? report.choice : report.nearest;
  }
};

/// With units in the names, at most 12 significant digits, in a fixed order.
nlohmann::ordered_json plan_json(const PlanAnswer& answer);
/// A header line, and a line for each candidate.
CsvText plan_csv(const PlanAnswer& answer);
/// For people, at most 100 columns wide where names are short.
std::string plan_table(const PlanAnswer& answer, const TextStyle& style);
/// The same for a document.
Markdown plan_markdown(const PlanAnswer& answer);

}  // namespace lockstep
