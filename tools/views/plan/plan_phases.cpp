#include "tools/views/plan/plan_phases.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "models/base/number_text.hpp"
#include "tools/views/plan/plan_words.hpp"
#include "tools/views/report/empty_columns.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

constexpr double kPhaseDay = 86'400;
constexpr std::array<std::string_view, 10> kPhaseColumns{
    "phase", "machines",    "GPUs",  "MFU",    "from day",
    "days",  "of it waits", "money", "energy", "weights arrive in"};
constexpr std::size_t kWaits = 6;

bool has_phases(const PlanAnswer& answer, std::size_t i) {
  return answer.result(i).model.impossible.empty() && !answer.candidate(i).then.empty();
}

std::vector<std::string> phase_cells(const PlannedPhase& phase, bool priced) {
  const PlanOutcome& o = *phase.outcome;
  return {phase.name,
          phase.model->scenario.node.name,
          grouped(phase.model->scenario.gpus()),
          fmt::format("{:.1f} %", 100 * phase.model->mfu),
          significant(phase.begins_s / kPhaseDay),
          significant(o.time_s / kPhaseDay),
          o.before_s > 0 ? significant(o.before_s / kPhaseDay) : "-",
          priced ? plan_money(o.usd) : "-",
          plan_energy(o.energy_j),
          phase.moves > Seconds{} ? fmt::format("{}, {}", page_duration(phase.moves.base_units()),
                                                plan_money(phase.egress_usd))
                                  : "-"};
}

constexpr std::string_view kPhaseWords =
    "With every input at its median. Each phase begins when the one before it is done and its "
    "weights are there; until its machines or its data are there, it waits.";

/// Whether any phase of a candidate waits: else that is no column of text.
bool any_waits(const std::vector<PlannedPhase>& phases) {
  return std::ranges::any_of(phases,
                             [](const PlannedPhase& phase) { return phase.outcome->before_s > 0; });
}

/// Of a list of as many as there are columns.
template <class List>
void drop_waits(bool waits, List& cells) {
  if (!waits) cells.erase(cells.begin() + kWaits);
}

}  // namespace

std::vector<PlannedPhase> phases_of(const PlanAnswer& answer, std::size_t i) {
  if (!has_phases(answer, i)) return {};
  const PlanResult& result = answer.result(i);
  const bool priced = is_priced(answer.candidate(i));
  std::vector<PlannedPhase> out{{.name = "first",
                                 .model = &result.model,
                                 .outcome = &result.first,
                                 .moves = {},
                                 .egress_usd = 0,
                                 .begins_s = 0,
                                 .priced = priced}};
  double done = result.first.time_s;
  for (std::size_t p = 0; p < result.later.size(); ++p) {
    const PhaseResult& phase = result.later[p];
    done += phase.moves.base_units();
    out.push_back({.name = answer.candidate(i).then[p]->of.name,
                   .model = &phase.model,
                   .outcome = &phase.expected,
                   .moves = phase.moves,
                   .egress_usd = phase.egress_usd,
                   .begins_s = done,
                   .priced = priced});
    done += phase.expected.time_s;
  }
  return out;
}

std::string phases_text(const PlanAnswer& answer, const TextStyle& style) {
  std::string out;
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    if (!has_phases(answer, i)) continue;
    std::vector<TextTable::Column> columns;
    for (const std::string_view title : kPhaseColumns) columns.push_back({std::string(title)});
    columns[0].align = columns[1].align = TextTable::Align::left;
    const std::vector<PlannedPhase> phases = phases_of(answer, i);
    const bool waits = any_waits(phases);
    drop_waits(waits, columns);
    TextTable table(std::move(columns));
    for (const PlannedPhase& phase : phases) {
      std::vector<std::string> cells = phase_cells(phase, is_priced(answer.candidate(i)));
      drop_waits(waits, cells);
      table.add(std::move(cells));
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
    const std::vector<PlannedPhase> phases = phases_of(answer, i);
    const bool waits = any_waits(phases);
    std::vector<std::string_view> titles(kPhaseColumns.begin(), kPhaseColumns.end());
    drop_waits(waits, titles);
    for (const std::string_view title : titles) out += Markdown::write("| {} ", title);
    out += Markdown::write("|\n|---|---|");
    for (std::size_t c = 2; c < titles.size(); ++c) out += Markdown::write("--:|");
    out += Markdown::write("\n");
    for (const PlannedPhase& phase : phases) {
      std::vector<std::string> cells = phase_cells(phase, is_priced(answer.candidate(i)));
      drop_waits(waits, cells);
      for (const std::string& cell : cells) {
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
          phase.outcome->before_s,
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
    drop_empty_columns(table);
    page.table(table);
  }
}

const FieldTable<MonthMoney>& lot_month_fields() {
  using Of = MonthMoney;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("nodes", "Nodes that are there, mean of the month.",
               [](const Of& m) { return m.nodes; })
          .add("bought_usd", Better::less, "Money for nodes that are bought.",
               [](const Of& m) { return m.bought; })
          .add("plants_usd", Better::less,
               "Money for the site's battery, the units of its path and its cooling, where they "
               "have prices.",
               [](const Of& m) -> std::optional<double> {
                 return m.plants != 0 ? std::optional(m.plants) : std::nullopt;
               })
          .add("leased_usd", Better::less, "Money for leases.",
               [](const Of& m) { return m.leased; })
          .add("rented_usd", Better::less, "Money for rent.", [](const Of& m) { return m.rented; })
          .add("energy_usd", Better::less, "Money for energy.",
               [](const Of& m) { return m.energy; })
          .add("staff_usd", Better::less, "Money for people.", [](const Of& m) { return m.staff; })
          .add("interest_usd", Better::less, "Interest on all that was spent before.",
               [](const Of& m) { return m.interest; })
          .add("residual_usd", Better::less,
               "Below 0: what machines and plants that were bought are worth at the end.",
               [](const Of& m) { return m.residual; })
          .add("usd", Better::less, "All of that.", [](const Of& m) { return m.usd(); });
  return fields;
}

std::vector<PlanPrice> plan_prices(const PlanAnswer& answer) {
  std::vector<PlanPrice> out;
  for (std::size_t i = 0; i < answer.spec.candidates.size(); ++i) {
    const PlanResult& result = answer.result(i);
    const PlanCandidate& candidate = answer.candidate(i);
    if (!result.model.impossible.empty() || !is_priced(candidate)) continue;
    out.push_back({candidate.name, &result.first});
    for (std::size_t p = 0; p < result.later.size(); ++p) {
      out.push_back({fmt::format("{}, {}", candidate.name, candidate.then[p]->of.name),
                     &result.later[p].expected});
    }
  }
  const auto none = [](const PlanPrice& price) {
    return price.of->usd_per_node + price.of->usd_per_gpu_hour + price.of->usd_per_kwh == 0;
  };
  std::erase_if(out, none);
  return out;
}

std::string plan_price_text(double usd) {
  constexpr double kWhole = 1000;
  if (usd <= 0) return {};
  return (usd >= kWhole ? grouped(std::round(usd)) : fmt::format("{:.4g}", usd)) + " USD";
}

std::vector<LotPrice> plan_lot_prices(const PlanModel& model, const Fleet& fleet,
                                      const PlanOutcome& outcome) {
  const auto median = [&model](PlanInput input) {
    return model.inputs[static_cast<std::size_t>(input)].median();
  };
  return lot_prices(fleet, Seconds{outcome.run_s + outcome.after_s},
                    {.price = model.price_factor * median(PlanInput::price),
                     .value_loss = median(PlanInput::value_loss)});
}

namespace {

/// Without what was before the run: the same machines trained something else then.
std::shared_ptr<const Fleet> from_begin(Fleet fleet) {
  std::vector<FleetStep> steps;
  for (FleetStep step : fleet.steps) {
    // Of those before, the last is what there is as the run begins.
    if (step.at <= fleet.begins) steps.clear();
    step.at = std::max(step.at, fleet.begins);
    steps.push_back(step);
  }
  fleet.steps = std::move(steps);
  return std::make_shared<const Fleet>(std::move(fleet));
}

}  // namespace

std::vector<LotPhase> lots_of_candidate(const PlanAnswer& answer, std::size_t candidate) {
  std::vector<LotPhase> out;
  const PlanResult& result = answer.result(candidate);
  if (!result.model.impossible.empty()) return out;
  const std::string title = "Machines and money: " + answer.candidate(candidate).name;
  const auto& then = answer.candidate(candidate).then;
  const auto is_kept = [&then](std::size_t p) { return p < then.size() && then[p]->kept; };
  if (result.model.fleet) {
    out.push_back({.title = title,
                   .fleet = result.model.fleet,
                   .months = &result.expected.lots,
                   .lots = plan_lot_prices(result.model, *result.model.fleet, result.first),
                   .kept = {.from_before = false, .go_on = is_kept(0)}});
  }
  for (std::size_t p = 0; p < result.later.size(); ++p) {
    const PhaseResult& phase = result.later[p];
    if (!phase.fleet) continue;
    const PlanPhase& of = *then[p];
    out.push_back({.title = fmt::format("{}, {}{}", title, of.of.name,
                                        of.kept ? ", more for the same machines" : ""),
                   .fleet = of.kept ? from_begin(*phase.fleet) : phase.fleet,
                   .months = &phase.expected.lots,
                   .lots = of.kept ? std::vector<LotPrice>{}
                                   : plan_lot_prices(phase.model, *phase.fleet, phase.expected),
                   .kept = {.from_before = of.kept, .go_on = is_kept(p + 1)}});
  }
  return out;
}

const FieldTable<PlannedPhase>& plan_phase_fields() {
  using Of = PlannedPhase;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("name", "Its name.", [](const Of& p) { return p.name; })
          .add("node", "Kind of node.", [](const Of& p) { return p.model->scenario.node.name; })
          .add("gpus", "GPUs that train.", [](const Of& p) { return p.model->scenario.gpus(); })
          .add("tokens", "Tokens of the phase.",
               [](const Of& p) { return double{*p.model->scenario.training_tokens}; })
          .add("mfu", Better::more, "Model FLOP/s over the datasheet peak (MFU).",
               [](const Of& p) { return p.model->mfu; })
          .add("goodput", Better::more, "Share of the time that advances training.",
               [](const Of& p) { return p.outcome->goodput; })
          .add("weights_take_s", Better::less, "Time in which weights move there.",
               [](const Of& p) { return p.moves; })
          .add("weights_egress_usd", Better::less, "Money for that.",
               [](const Of& p) { return p.egress_usd; })
          .add("begins_s", Better::less, "When it begins, after the plan's start.",
               [](const Of& p) { return p.begins_s; })
          .add("time_s", Better::less, "Time of the phase.",
               [](const Of& p) { return p.outcome->time_s; })
          .add("energy_j", Better::less, "Energy at the site's meter.",
               [](const Of& p) { return p.outcome->energy_j; })
          .add("usd", Better::less, "Money of the phase, where it has a price.",
               [](const Of& p) -> std::optional<double> {
                 if (!p.priced) return std::nullopt;
                 return p.outcome->usd;
               })
          .add("waits_s", Better::less,
               "Of time_s, until its machines are there; where they come "
               "in lots.",
               [](const Of& p) -> std::optional<double> {
                 if (p.outcome->lots.empty()) return std::nullopt;
                 return p.outcome->before_s;
               })
          .list_if_any("months", "Those machines and their money, month by month of the plan.",
                       lot_month_fields(),
                       [](const Of& p) -> const auto& { return p.outcome->lots; });
  return fields;
}

}  // namespace lockstep
