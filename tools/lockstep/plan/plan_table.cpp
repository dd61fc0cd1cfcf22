#include <algorithm>
#include <fmt/format.h>

#include "tools/lockstep/plan/plan_output.hpp"
#include "tools/lockstep/plan/plan_words.hpp"

namespace lockstep {
namespace {

using Align = TextTable::Align;

constexpr int kLabelColumns = 16;
constexpr double kDay = 86'400, kMillion = 1e6, kGwh = 3.6e12, kMw = 1e6;

std::string wrapped(std::string_view text) { return "  " + wrap(text, kTextColumns - 2, 2) + "\n"; }

std::string labelled(std::string_view label, const std::string& text) {
  return fmt::format("  {:<{}}{}\n", label, kLabelColumns,
                     wrap(text, kTextColumns - kLabelColumns - 2, kLabelColumns + 2));
}

std::string mark_of(const PlanAnswer& answer, std::size_t i) {
  if (answer.report.choice == i) return ">";
  return answer.result(i).on_front ? "*" : "";
}

std::string candidates_table(const PlanAnswer& answer, const TextStyle& style) {
  TextTable table({{"", Align::left},
                   {"candidate", Align::left},
                   {"GPUs"},
                   {"MFU"},
                   {"goodput"},
                   {"days"},
                   {"M USD"},
                   {"GWh"},
                   {"MW"},
                   {"keeps limits"}});
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanCandidate& candidate = answer.candidate(i);
    const PlanResult& result = answer.result(i);
    std::vector<std::string> row{mark_of(answer, i), candidate.name,
                                 grouped(candidate.scenario.gpus())};
    if (!result.model.impossible.empty()) {
      row.resize(10, "-");
    } else {
      row.insert(
          row.end(),
          {percent_text(result.model.mfu), percent_text(result.expected.goodput),
           significant(result.time_s.median / kDay), significant(result.usd.median / kMillion),
           significant(result.energy_j.median / kGwh), significant(result.peak_w.median / kMw),
           percent_text(result.chances.all)});
    }
    table.add(std::move(row));
  }
  return table.text(style);
}

std::string ranges_table(const PlanAnswer& answer, const TextStyle& style) {
  TextTable table({{"nine of ten cases", Align::left}, {"time"}, {"money"}, {"energy"}, {"power"}});
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanResult& result = answer.result(i);
    if (!result.model.impossible.empty()) continue;
    table.add({answer.candidate(i).name, plan_time_range(result.time_s),
               plan_money_range(result.usd), plan_energy_range(result.energy_j),
               plan_power_range(result.peak_w)});
  }
  return table.rows() == 0 ? "" : "\n" + table.text(style);
}

std::string swings_table(const PlanAnswer& answer, const TextStyle& style) {
  if (!answer.shown()) return {};
  const std::size_t measure = goal_measure(answer.spec.goal);
  const std::vector<SwingRow> rows = widest_swings(answer.result(*answer.shown()), measure);
  if (rows.empty()) return {};
  constexpr int kBar = 24;
  TextTable table({{"what if", Align::left}, {"factor"}, {"then"}, {"", Align::left}});
  for (const SwingRow& row : rows) {
    table.add({std::string(row.info->title),
               fmt::format("{} to {}", significant(row.swing->low), significant(row.swing->high)),
               fmt::format("{} to {}", measure_text(measure, row.at_low),
                           measure_text(measure, row.at_high)),
               bar(row.width() / rows.front().width(), kBar, style)});
  }
  return "\n" + style.bold("How sure: " + answer.candidate(*answer.shown()).name) + "\n" +
         table.text(style);
}

}  // namespace

std::string plan_table(const PlanAnswer& answer, const TextStyle& style) {
  std::string out = style.bold(plan_subject(answer)) + "\n";
  if (!answer.spec.about.empty()) out += wrapped(answer.spec.about);
  out += "\n" + labelled("Recommendation", plan_recommendation(answer)) +
         labelled("Limits", plan_limits(answer)) + "\n" + candidates_table(answer, style);
  out += style.dim(
             "  medians of the samples; > recommended, * no other is better in time, money "
             "and energy") +
         "\n" + ranges_table(answer, style) + swings_table(answer, style) + "\n";
  const std::vector<std::string> verdicts = plan_verdicts(answer);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    out += wrapped(answer.candidate(i).name + " " + verdicts[i] + ".");
  }
  out += "\n" + style.bold("Assumptions") + "\n";
  for (const std::string& assumed : plan_assumptions(answer)) {
    out += style.dim("  - " + wrap(assumed, kTextColumns - 4, 4)) + "\n";
  }
  return out;
}

}  // namespace lockstep
