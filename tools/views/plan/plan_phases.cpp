#include "tools/views/plan/plan_phases.hpp"

#include <array>
#include <fmt/format.h>
#include <string_view>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/views/plan/plan_words.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

constexpr double kPhaseDay = 86'400;
constexpr std::array<std::string_view, 9> kPhaseColumns{
    "phase", "machines", "GPUs", "MFU", "from day", "days", "money", "energy", "weights arrive in"};

/// A phase of a candidate with every input at its median.
struct PlannedPhase {
  std::string name;
  const PlanModel* model;
  const PlanOutcome* outcome;
  Seconds moves;          ///< of weights, before it
  double egress_usd = 0;  ///< for that
  double begins_s = 0;    ///< after the plan's start, with its data on the way
};

bool has_phases(const PlanAnswer& answer, std::size_t i) {
  return answer.result(i).model.impossible.empty() && !answer.candidate(i).then.empty();
}

std::vector<PlannedPhase> phases_of(const PlanAnswer& answer, std::size_t i) {
  const PlanResult& result = answer.result(i);
  std::vector<PlannedPhase> out{{.name = "first",
                                 .model = &result.model,
                                 .outcome = &result.first,
                                 .moves = {},
                                 .egress_usd = 0,
                                 .begins_s = 0}};
  double done = result.first.time_s;
  for (std::size_t p = 0; p < result.later.size(); ++p) {
    const PhaseResult& phase = result.later[p];
    done += phase.moves.base_units();
    out.push_back({.name = answer.candidate(i).then[p]->of.name,
                   .model = &phase.model,
                   .outcome = &phase.expected,
                   .moves = phase.moves,
                   .egress_usd = phase.egress_usd,
                   .begins_s = done});
    done += phase.expected.time_s;
  }
  return out;
}

std::vector<std::string> phase_cells(const PlannedPhase& phase, bool priced) {
  const PlanOutcome& o = *phase.outcome;
  return {phase.name,
          phase.model->scenario.node.name,
          grouped(phase.model->scenario.gpus()),
          fmt::format("{:.1f} %", 100 * phase.model->mfu),
          significant(phase.begins_s / kPhaseDay),
          significant(o.time_s / kPhaseDay),
          priced ? plan_money(o.usd) : "-",
          plan_energy(o.energy_j),
          phase.moves > Seconds{} ? fmt::format("{}, {}", page_duration(phase.moves.base_units()),
                                                plan_money(phase.egress_usd))
                                  : "-"};
}

constexpr std::string_view kPhaseWords =
    "With every input at its median. Each phase begins when the one before it is done and its "
    "weights are there.";

}  // namespace

std::string phases_text(const PlanAnswer& answer, const TextStyle& style) {
  std::string out;
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    if (!has_phases(answer, i)) continue;
    std::vector<TextTable::Column> columns;
    for (const std::string_view title : kPhaseColumns) columns.push_back({std::string(title)});
    columns[0].align = columns[1].align = TextTable::Align::left;
    TextTable table(std::move(columns));
    for (const PlannedPhase& phase : phases_of(answer, i)) {
      table.add(phase_cells(phase, is_priced(answer.candidate(i))));
    }
    out += "\n" + style.bold("Phases: " + answer.candidate(i).name) + "\n" + table.text(style);
  }
  return out;
}

Markdown phases_markdown(const PlanAnswer& answer) {
  Markdown out;
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    if (!has_phases(answer, i)) continue;
    out += Markdown::write("\n## Phases: {}\n\n{}\n\n", answer.candidate(i).name, kPhaseWords);
    for (const std::string_view title : kPhaseColumns) out += Markdown::write("| {} ", title);
    out += Markdown::write("|\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n");
    for (const PlannedPhase& phase : phases_of(answer, i)) {
      for (const std::string& cell : phase_cells(phase, is_priced(answer.candidate(i)))) {
        out += Markdown::write("| {} ", cell);
      }
      out += Markdown::write("|\n");
    }
  }
  return out;
}

void add_phases(Page& page, const PlanAnswer& answer) {
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    if (!has_phases(answer, i)) continue;
    page.section("Phases: " + answer.candidate(i).name, std::string(kPhaseWords));
    PageTable table;
    for (std::size_t c = 0; c < kPhaseColumns.size(); ++c) {
      std::string title(kPhaseColumns[c]);
      if (title[0] >= 'a' && title[0] <= 'z') title[0] = static_cast<char>(title[0] - 'a' + 'A');
      table.columns.push_back({.title = std::move(title), .numeric = c > 1});
    }
    for (const PlannedPhase& phase : phases_of(answer, i)) {
      const std::array<double, kPhaseColumns.size()> sort{
          0,
          0,
          static_cast<double>(phase.model->scenario.gpus()),
          phase.model->mfu,
          phase.begins_s,
          phase.outcome->time_s,
          phase.outcome->usd,
          phase.outcome->energy_j,
          phase.moves.base_units()};
      const std::vector<std::string> cells = phase_cells(phase, is_priced(answer.candidate(i)));
      std::vector<PageCell> row;
      for (std::size_t c = 0; c < cells.size(); ++c) {
        row.push_back(cells[c] == "-" ? PageCell::unknown()
                      : c < 2         ? PageCell::text(cells[c])
                                      : PageCell::number(cells[c], sort[c]));
      }
      table.rows.push_back(std::move(row));
    }
    page.table(table);
  }
}

nlohmann::ordered_json lot_months_json(const std::vector<MonthMoney>& months) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const MonthMoney& month : months) {
    out.push_back({{"nodes", twelve_digits(month.nodes)},
                   {"bought_usd", twelve_digits(month.bought)},
                   {"leased_usd", twelve_digits(month.leased)},
                   {"rented_usd", twelve_digits(month.rented)},
                   {"energy_usd", twelve_digits(month.energy)},
                   {"staff_usd", twelve_digits(month.staff)},
                   {"interest_usd", twelve_digits(month.interest)},
                   {"residual_usd", twelve_digits(month.residual)},
                   {"usd", twelve_digits(month.usd())}});
  }
  return out;
}

std::vector<LotPhase> later_lots(const PlanAnswer& answer, std::size_t candidate) {
  std::vector<LotPhase> out;
  if (!has_phases(answer, candidate)) return out;
  const PlanResult& result = answer.result(candidate);
  for (std::size_t p = 0; p < result.later.size(); ++p) {
    const PhaseResult& phase = result.later[p];
    if (!phase.fleet) continue;
    const PlanPhase& of = *answer.candidate(candidate).then[p];
    out.push_back(
        {.title = fmt::format("Machines and money: {}, {}{}", answer.candidate(candidate).name,
                              of.of.name, of.kept ? ", more for the same machines" : ""),
         .fleet = phase.fleet.get(),
         .months = &phase.expected.lots});
  }
  return out;
}

nlohmann::ordered_json phases_json(const PlanAnswer& answer, std::size_t candidate) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  const bool priced = is_priced(answer.candidate(candidate));
  for (const PlannedPhase& phase : phases_of(answer, candidate)) {
    const PlanOutcome& o = *phase.outcome;
    out.push_back({{"name", phase.name},
                   {"node", phase.model->scenario.node.name},
                   {"gpus", phase.model->scenario.gpus()},
                   {"tokens", twelve_digits(*phase.model->scenario.training_tokens)},
                   {"mfu", twelve_digits(phase.model->mfu)},
                   {"goodput", twelve_digits(o.goodput)},
                   {"weights_take_s", twelve_digits(phase.moves.base_units())},
                   {"weights_egress_usd", twelve_digits(phase.egress_usd)},
                   {"begins_s", twelve_digits(phase.begins_s)},
                   {"time_s", twelve_digits(o.time_s)},
                   {"energy_j", twelve_digits(o.energy_j)}});
    if (priced) out.back()["usd"] = twelve_digits(o.usd);
    if (!o.lots.empty()) {
      out.back()["waits_s"] = twelve_digits(o.before_s);
      out.back()["months"] = lot_months_json(o.lots);
    }
  }
  return out;
}

}  // namespace lockstep
