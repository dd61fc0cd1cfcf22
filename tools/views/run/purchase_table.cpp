#include "tools/views/run/purchase_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

constexpr double kPlanDay = 86'400;

using MoneyPart = std::pair<const char*, double MonthMoney::*>;
constexpr std::array kMoneyParts{
    MoneyPart{"bought", &MonthMoney::bought},     MoneyPart{"plants", &MonthMoney::plants},
    MoneyPart{"leased", &MonthMoney::leased},     MoneyPart{"rented", &MonthMoney::rented},
    MoneyPart{"energy", &MonthMoney::energy},     MoneyPart{"staff", &MonthMoney::staff},
    MoneyPart{"interest", &MonthMoney::interest}, MoneyPart{"residual", &MonthMoney::residual}};

std::string usd_cell(double usd) {
  if (usd == 0) return "-";
  return (usd < 0 ? "-" : "") + compact(usd < 0 ? -usd : usd);
}

/// Of a price that a reader multiplies with.
std::string usd_digits(double usd) {
  constexpr double kWhole = 1000;
  return usd >= kWhole ? grouped(std::round(usd)) : fmt::format("{:.5g}", usd);
}

std::string lots_table(const std::vector<LotPrice>& lots, const TextStyle& style,
                       const KeptMachines& kept) {
  if (lots.empty()) return {};
  const bool sold =
      std::ranges::any_of(lots, [](const LotPrice& lot) { return lot.residual_usd != 0; });
  std::vector<TextTable::Column> heads{{"lot", TextTable::Align::left},
                                       {"terms", TextTable::Align::left},
                                       {"all there from day"},
                                       {"price"},
                                       {"times"},
                                       {"USD"}};
  if (sold) heads.push_back({kept.go_on ? "worth at its end" : "comes back"});
  TextTable table(heads);
  for (const LotPrice& lot : lots) {
    std::string terms(kLotTerms[static_cast<std::size_t>(lot.lot.terms)]);
    std::ranges::replace(terms, '_', ' ');
    std::vector<std::string> row{lot.lot.name,           std::move(terms),
                                 lot_arrival_words(lot), lot_price_words(lot),
                                 lot_amount_words(lot),  usd_cell(lot.paid_usd)};
    if (sold) row.push_back(usd_cell(-lot.residual_usd));
    table.add(std::move(row));
  }
  return table.text(style) + "\n";
}

}  // namespace

std::string_view residual_name(const KeptMachines& kept) {
  return kept.from_before ? "lost value" : kept.go_on ? "worth then" : "residual";
}

std::string kept_words(const KeptMachines& kept) {
  if (kept.from_before) {
    return fmt::format(
        "the machines are those of the phase before: lost value is what they were worth as it "
        "ended, less what they are worth at the end of this one{}",
        kept.go_on ? ", which goes on with the next" : "");
  }
  return kept.go_on ? "the next phase goes on with these machines, from what they are worth at the "
                      "end of this one"
                    : "";
}

std::string lot_price_words(const LotPrice& lot) {
  if (lot.lot.terms == LotTerms::buy) return usd_digits(lot.usd_per_node) + " USD a node";
  if (lot.lot.terms == LotTerms::lease) return usd_digits(lot.usd_per_month) + " USD a month";
  return usd_digits(lot.usd_per_gpu_hour) + " USD a GPU-hour";
}

std::string lot_arrival_words(const LotPrice& lot) {
  return significant(lot.arrives.base_units() / kPlanDay) +
         (lot.after_end ? ", after the end" : "");
}

std::vector<FleetStep> steps_within(const Fleet& fleet, const std::vector<LotPrice>& lots,
                                    const std::vector<MonthMoney>& months) {
  std::vector<FleetStep> out = fleet.steps;
  if (lots.empty()) return out;
  const Seconds end = sum_of(months).lasts;
  std::erase_if(out, [&](const FleetStep& step) { return step.at >= end; });
  return out;
}

std::string later_steps_words(const Fleet& fleet, std::size_t shown) {
  if (shown >= fleet.steps.size()) return {};
  return fmt::format(
      "lots still come or go on day {}, after the end: the training does without them",
      significant(fleet.steps[shown].at.base_units() / kPlanDay));
}

std::string lot_amount_words(const LotPrice& lot) {
  if (lot.lot.terms == LotTerms::buy) return counted(lot.lot.nodes, "node");
  if (lot.lot.terms == LotTerms::lease) return significant(lot.months, 4) + " months";
  return grouped(std::round(lot.gpu_hours)) + " GPU-hours";
}

std::string energy_price_words(const MonthMoney& sum) {
  if (sum.kwh <= 0 || sum.energy <= 0) return {};
  return fmt::format(
      "energy of own and leased machines, as rent includes that of others: {} MWh at "
      "{} USD per kWh on average",
      grouped(std::round(sum.kwh * 1e-3)), fmt::format("{:.4g}", sum.energy / sum.kwh));
}

std::string purchase_text(const Fleet& fleet, const std::vector<LotPrice>& lots,
                          const std::vector<MonthMoney>& months, const TextStyle& style,
                          const KeptMachines& kept) {
  const bool unlike = fleet.kinds.size() > 1;
  std::vector<TextTable::Column> heads{{"machines, from day"}, {"nodes"}, {"used"}, {"speed"}};
  if (unlike) heads.push_back({"of kind", TextTable::Align::left});
  TextTable machines(heads);
  const std::vector<FleetStep> steps = steps_within(fleet, lots, months);
  const std::string later = later_steps_words(fleet, steps.size());
  for (const FleetStep& step : steps) {
    std::vector<std::string> row{
        significant(step.at.base_units() / 86'400), grouped(static_cast<double>(step.nodes)),
        grouped(static_cast<double>(step.used)), fmt::format("{:.1f} %", 100 * step.speed)};
    if (unlike) row.push_back(step.used > 0 ? fleet.kinds[step.kind] : "-");
    machines.add(std::move(row));
  }
  std::vector<TextTable::Column> columns{{"USD in month"}, {"nodes"}};
  const MonthMoney sum = sum_of(months);
  for (const auto& [name, part] : kMoneyParts) {
    if (sum.*part == 0) continue;
    columns.push_back({part == &MonthMoney::residual ? std::string(residual_name(kept)) : name});
  }
  columns.insert(columns.end(), {{"together"}, {"so far"}});
  TextTable table(columns);
  const auto add = [&](const std::string& name, const std::string& nodes, const MonthMoney& month,
                       double so_far) {
    std::vector<std::string> cells{name, nodes};
    for (const auto& [title, part] : kMoneyParts) {
      if (sum.*part != 0) cells.push_back(usd_cell(month.*part));
    }
    cells.push_back(usd_cell(month.usd()));
    cells.push_back(usd_cell(so_far));
    table.add(cells);
  };
  double so_far = 0;
  for (std::size_t m = 0; m < months.size(); ++m) {
    so_far += months[m].usd();
    add(std::to_string(m + 1), significant(months[m].nodes), months[m], so_far);
  }
  add("all", "", sum, so_far);  // nodes of months have no sum
  const std::string terms =
      sum.terms_left > 0
          ? fmt::format(
                "\nleases and reservations: {} USD of their terms after the end fall due in "
                "the last month\n",
                compact(sum.terms_left))
          : "";
  const std::string energy = energy_price_words(sum), whose = kept_words(kept);
  return machines.text(style) + (later.empty() ? "" : later + "\n") + "\n" +
         lots_table(lots, style, kept) + table.text(style) +
         (energy.empty() ? "" : "\n" + energy + "\n") + terms +
         (whose.empty() ? "" : "\n" + whose + "\n");
}

}  // namespace lockstep
