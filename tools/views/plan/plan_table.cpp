#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "sim/answer/scaling.hpp"
#include "tools/views/plan/plan_output.hpp"
#include "tools/views/plan/plan_phases.hpp"
#include "tools/views/plan/plan_region_words.hpp"
#include "tools/views/plan/plan_words.hpp"
#include "tools/views/run/data_table.hpp"
#include "tools/views/run/purchase_table.hpp"

namespace lockstep {
namespace {

using Align = TextTable::Align;

constexpr int kLabelColumns = 16;
constexpr double kDay = 86'400, kMillion = 1e6, kGwh = 3.6e12, kMw = 1e6;

std::string wrapped(std::string_view text) { return "  " + wrap(text, kTextColumns, 2, 2) + "\n"; }

std::string labelled(std::string_view label, const std::string& text) {
  return labelled_line(label, kLabelColumns, text);
}

double equivalents_of(const PlanCandidate& candidate) {
  return h100_equivalents(candidate.scenario, candidate.scenario.gpus());
}

/// Whether any candidate's GPUs are other than as many H100 SXM.
bool has_other_cards(const PlanAnswer& answer) {
  constexpr double kAlike = 0.005;
  return std::ranges::any_of(answer.spec.candidates, [](const PlanCandidate& candidate) {
    const double gpus = candidate.scenario.gpus();
    return std::abs(equivalents_of(candidate) - gpus) > kAlike * gpus;
  });
}

std::string mark_of(const PlanAnswer& answer, std::size_t i) {
  if (answer.report.choice == i) return ">";
  return answer.result(i).on_front ? "*" : "";
}

std::string candidates_table(const PlanAnswer& answer, const TextStyle& style) {
  const bool money = answer.spec.any_priced(), unlike = has_other_cards(answer);
  std::vector<TextTable::Column> columns{
      {"", Align::left}, {"candidate", Align::left}, {"GPUs"}, {"MFU"}, {"goodput"}, {"days"}};
  constexpr std::ptrdiff_t kAfterGpus = 3;
  if (unlike) columns.insert(columns.begin() + kAfterGpus, {"H100s"});
  if (money) columns.push_back({"M USD"});
  columns.insert(columns.end(), {{"GWh"}, {"GWh/T tokens"}, {"MW"}, {"keeps limits"}});
  const std::size_t width = columns.size();
  TextTable table(std::move(columns));
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanCandidate& candidate = answer.candidate(i);
    const PlanResult& result = answer.result(i);
    std::vector<std::string> row{mark_of(answer, i), candidate.name,
                                 grouped(candidate.scenario.gpus())};
    if (unlike) row.push_back(grouped(std::round(equivalents_of(candidate))));
    if (!result.model.impossible.empty()) {
      row.resize(width, "-");
    } else {
      row.insert(row.end(), {percent_text(result.model.mfu), percent_text(result.expected.goodput),
                             significant(result.expected.time_s / kDay)});
      if (money) {
        row.push_back(is_priced(candidate) ? significant(result.expected.usd / kMillion) : "-");
      }
      row.insert(row.end(),
                 {significant(result.expected.energy_j / kGwh),
                  significant(plan_energy_per_trillion_tokens(candidate, result) / kGwh),
                  significant(result.expected.peak_w / kMw), percent_text(result.chances.all)});
    }
    table.add(std::move(row));
  }
  return table.text(style);
}

std::string ranges_table(const PlanAnswer& answer, const TextStyle& style) {
  const bool money = answer.spec.any_priced();
  std::vector<TextTable::Column> columns{{"nine of ten cases", Align::left}, {"time"}};
  if (money) columns.push_back({"money"});
  columns.insert(columns.end(), {{"energy"}, {"power"}, {"GPU nameplate"}});
  TextTable table(std::move(columns));
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanResult& result = answer.result(i);
    if (!result.model.impossible.empty()) continue;
    std::vector<std::string> row{answer.candidate(i).name, plan_time_range(result)};
    if (money) {
      row.push_back(is_priced(answer.candidate(i)) ? plan_money_range(result) : "-");
    }
    row.insert(row.end(), {plan_energy_range(result), plan_power_range(result.peak_w),
                           plan_power(result.model.power.gpu_nameplate.base_units())});
    table.add(std::move(row));
  }
  return table.rows() == 0 ? "" : "\n" + table.text(style);
}

/// Capital to be spent first, its write-off by the training, and the cost of operation.
std::string expected_money(const PlanAnswer& answer, const TextStyle& style) {
  if (!answer.spec.any_priced()) return {};
  const std::vector<PlanMoneyColumn> more = plan_money_columns(answer);
  std::vector<TextTable::Column> columns{
      {"money, at medians", Align::left}, {"capital to be spent"}, {"written off"}, {"running"}};
  const bool charged = std::ranges::any_of(
      answer.report.results, [](const PlanResult& r) { return r.expected.demand_usd > 0; });
  if (charged) columns.push_back({"of it, highest hours"});
  columns.push_back({"rent"});
  for (const PlanMoneyColumn& column : more) columns.push_back({std::string(column.title)});
  TextTable table(std::move(columns));
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanResult& result = answer.result(i);
    if (!result.model.impossible.empty() || !is_priced(answer.candidate(i))) continue;
    const PlanOutcome& o = result.expected;
    const auto money = [](double usd) { return usd > 0 ? plan_money(usd) : "-"; };
    std::vector<std::string> row{answer.candidate(i).name, money(o.capital.total_usd()),
                                 money(o.write_off_usd), money(o.running_usd)};
    if (charged) row.push_back(money(o.demand_usd));
    row.push_back(money(o.rent_usd));
    for (const PlanMoneyColumn& column : more) row.push_back(money(o.*column.usd));
    table.add(std::move(row));
  }
  return table.rows() == 0 ? "" : "\n" + table.text(style);
}

/// What a node, a GPU-hour and a kWh cost, with the factors in them that the plan has.
std::string prices_table(const PlanAnswer& answer, const TextStyle& style) {
  const std::vector<PlanPrice> prices = plan_prices(answer);
  constexpr std::array kPrices{std::pair{"a node", &PlanOutcome::usd_per_node},
                               std::pair{"a GPU-hour", &PlanOutcome::usd_per_gpu_hour},
                               std::pair{"a kWh", &PlanOutcome::usd_per_kwh}};
  std::vector<TextTable::Column> columns{{"price, at medians", Align::left}};
  std::vector<double PlanOutcome::*> shown;
  for (const auto& [title, usd] : kPrices) {
    if (std::ranges::none_of(prices, [&](const PlanPrice& of) { return of.of->*usd > 0; }))
      continue;
    columns.push_back({title});
    shown.push_back(usd);
  }
  TextTable table(std::move(columns));
  bool lots = false;
  for (const PlanPrice& price : prices) {
    // Machines of lots have their prices in the tables of lots.
    const bool by_lot = !price.of->lots.empty();
    lots = lots || by_lot;
    std::vector<std::string> row{price.name};
    for (const auto usd : shown) {
      const double value = price.of->*usd;
      const bool energy = usd == &PlanOutcome::usd_per_kwh;
      row.emplace_back(value > 0 ? plan_price_text(value) : by_lot && !energy ? "by lot" : "-");
    }
    table.add(std::move(row));
  }
  if (table.rows() == 0) return "";
  return "\n" + table.text(style) +
         (lots ? style.dim("  prices of machines that come in lots: with each lot, below\n") : "");
}

/// The regions side by side, and what decides.
std::string regions_text(const PlanAnswer& answer, const TextStyle& style) {
  const std::vector<RegionRow> rows = region_rows(answer);
  if (rows.empty()) return {};
  std::vector<TextTable::Column> columns;
  for (const std::string_view title : kRegionColumns) columns.push_back({std::string(title)});
  columns[0].align = columns[1].align = Align::left;
  TextTable table(std::move(columns));
  for (const RegionRow& row : rows) table.add({row.cells.begin(), row.cells.end()});
  std::string out = "\n" + table.text(style);
  for (const std::string& words : region_words(answer)) out += wrapped(words);
  return out;
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
  return "\n" + style.bold("How sure: " + answer.candidate(*answer.shown()).name) +
         ", each input from its 5th to its 95th percentile\n" + table.text(style);
}

/// Machines and money by month of each candidate whose machines come in lots.
std::string months_text(const PlanAnswer& answer, const TextStyle& style) {
  std::string out;
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    for (const LotPhase& phase : lots_of_candidate(answer, i)) {
      out += "\n" + style.bold(phase.title) + "\n" +
             purchase_text(*phase.fleet, phase.lots, *phase.months, style, phase.kept);
    }
  }
  return out;
}

/// The dataset of each candidate on its way, and what its tiers cost.
std::string datasets_text(const PlanAnswer& answer, const TextStyle& style) {
  std::string out;
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanResult& result = answer.result(i);
    if (!result.model.impossible.empty() || !result.model.plan.data) continue;
    const DataPlan& data = *result.model.plan.data;
    out += "\n" + style.bold("Dataset: " + answer.candidate(i).name) + "\n" +
           wrapped(data_words(data)) + data_text(data, data_until(result), style);
  }
  return out;
}

}  // namespace

std::string plan_table(const PlanAnswer& answer, const TextStyle& style) {
  std::string out = style.bold(plan_subject(answer)) + "\n";
  if (!answer.spec.about.empty()) out += wrapped(answer.spec.about);
  out += "\n" + labelled("Recommendation", plan_recommendation(answer));
  for (const std::string& note : plan_notes(answer)) out += labelled("Note", note);
  out += labelled("Limits", plan_limits(answer)) + "\n" + candidates_table(answer, style);
  out += style.dim(
             "  with every input at its median, as `lockstep run` has it; > recommended, * no "
             "other is better in\n  time, money and energy" +
             std::string(has_other_cards(answer) ? "; H100s: GPUs by their dense 16-bit peak\n"
                                                 : "\n")) +
         ranges_table(answer, style) + expected_money(answer, style) + prices_table(answer, style) +
         regions_text(answer, style) + phases_text(answer, style) + swings_table(answer, style) +
         months_text(answer, style) + datasets_text(answer, style) + "\n";
  const std::vector<std::string> verdicts = plan_verdicts(answer);
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    out += wrapped(answer.candidate(i).name + " " + verdicts[i] + ".");
  }
  out += "\n" + style.bold("Assumptions") + "\n";
  for (const std::string& assumed : plan_assumptions(answer)) {
    out += style.dim("  - " + wrap(assumed, kTextColumns, 4, 4)) + "\n";
  }
  return out;
}

}  // namespace lockstep
