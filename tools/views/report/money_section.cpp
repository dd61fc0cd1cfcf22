#include "tools/views/report/money_section.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <string>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "tools/views/report/chart_kit.hpp"
#include "tools/views/report/chart_options.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/run/rent_words.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

struct PagePart {
  const char *name, *title;
  double MonthMoney::* part;
};
constexpr std::array kPageParts{PagePart{"machines bought", "Machines bought", &MonthMoney::bought},
                                PagePart{"leases", "Leases", &MonthMoney::leased},
                                PagePart{"rent", "Rent", &MonthMoney::rented},
                                PagePart{"energy", "Energy", &MonthMoney::energy},
                                PagePart{"staff", "Staff", &MonthMoney::staff},
                                PagePart{"interest", "Interest", &MonthMoney::interest},
                                PagePart{"residual value", "Residual value", &MonthMoney::residual},
                                PagePart{"plants", "Plants of the site", &MonthMoney::plants}};

bool is_of_kept(const PagePart& part, const KeptMachines& kept) {
  return part.part == &MonthMoney::residual && (kept.from_before || kept.go_on);
}
/// In a legend.
std::string name_of(const PagePart& part, const KeptMachines& kept) {
  return is_of_kept(part, kept) ? std::string(residual_name(kept)) : part.name;
}
/// Of a column.
std::string title_of(const PagePart& part, const KeptMachines& kept) {
  if (!is_of_kept(part, kept)) return part.title;
  return kept.from_before ? "Lost value" : "Worth then";
}

/// Bars by month, and the sum so far as a line.
json money_options(const std::vector<MonthMoney>& months, const KeptMachines& kept) {
  const MonthMoney sum = sum_of(months);
  double so_far = 0, most = 1;
  json names = json::array(), line = json::array();
  for (std::size_t m = 0; m < months.size(); ++m) {
    so_far += months[m].usd();
    most = std::max(most, std::abs(so_far));
    names.push_back(std::to_string(m + 1));
  }
  const AxisUnit unit = count_unit(most);
  json series = json::array(), legend = json::array();
  std::size_t colour = 0;
  for (const PagePart& part : kPageParts) {
    const std::size_t own = colour++;
    if (sum.*part.part == 0) continue;
    json data = json::array();
    for (const MonthMoney& month : months) {
      data.push_back(shown_digits(month.*part.part / unit.size, 4));
    }
    const std::string name = name_of(part, kept);
    legend.push_back(name);
    series.push_back({{"type", "bar"},
                      {"name", name},
                      {"stack", "month"},
                      {"itemStyle", {{"color", chart_colour(own)}}},
                      {"data", std::move(data)}});
  }
  so_far = 0;
  for (const MonthMoney& month : months) {
    so_far += month.usd();
    line.push_back(shown_digits(so_far / unit.size, 4));
  }
  legend.push_back("all so far");
  series.push_back({{"type", "line"},
                    {"name", "all so far"},
                    {"lineStyle", {{"width", 2}, {"color", "@accent"}}},
                    {"itemStyle", {{"color", "@accent"}}},
                    {"data", std::move(line)}});
  return {{"grid", plot_grid(40, 4)},
          {"legend", {{"top", 0}, {"left", 0}, {"data", legend}}},
          {"tooltip", {{"trigger", "axis"}, {"confine", true}}},
          {"xAxis", {{"type", "category"}, {"data", names}}},
          {"yAxis",
           {{"type", "value"}, {"axisLabel", {{"formatter", "{value} " + unit.name + " USD"}}}}},
          {"series", series}};
}

PageTable machines_table(const Fleet& fleet, const std::vector<FleetStep>& steps) {
  PageTable table{.columns = {{.title = "From day", .numeric = true},
                              {.title = "Nodes", .numeric = true},
                              {.title = "Used", .numeric = true},
                              {.title = "Speed of the job", .numeric = true}},
                  .rows = {}};
  const bool unlike = fleet.kinds.size() > 1;
  if (unlike) table.columns.push_back({.title = "Of kind"});
  for (const FleetStep& step : steps) {
    const double day = step.at.base_units() / 86'400;
    table.rows.push_back(
        {PageCell::number(significant(day), day),
         PageCell::number(grouped(step.nodes), step.nodes),
         PageCell::number(grouped(step.used), step.used),
         {.content = with_bar(page_percent(step.speed, 1), step.speed), .sort = step.speed}});
    if (unlike) {
      table.rows.back().push_back(step.used > 0 ? PageCell::text(fleet.kinds[step.kind])
                                                : PageCell::unknown());
    }
  }
  return table;
}

/// What is paid is the price times the amount.
PageTable lots_page_table(const std::vector<LotPrice>& lots, const KeptMachines& kept) {
  const bool sold =
      std::ranges::any_of(lots, [](const LotPrice& lot) { return lot.residual_usd != 0; });
  PageTable table{.columns = {{.title = "Lot"},
                              {.title = "Terms"},
                              {.title = "All there from day", .numeric = true},
                              {.title = "Price", .numeric = true},
                              {.title = "Times", .numeric = true},
                              {.title = "Paid", .numeric = true}},
                  .rows = {}};
  if (sold)
    table.columns.push_back({.title = kept.go_on ? "Worth at its end" : "Comes back",
                             .numeric = true,
                             .about = kept.go_on ? "from which the next phase goes on"
                                                 : "what it is worth at the end, or when it goes"});
  for (const LotPrice& lot : lots) {
    std::string terms(kLotTerms[static_cast<std::size_t>(lot.lot.terms)]);
    std::ranges::replace(terms, '_', ' ');
    const double day = lot.arrives.base_units() / 86'400;
    const bool by_node = lot.lot.terms == LotTerms::buy || lot.lot.terms == LotTerms::lease;
    table.rows.push_back(
        {PageCell::text(lot.lot.name), PageCell::text(terms),
         PageCell::number(lot_arrival_words(lot), day),
         PageCell::number(lot_price_words(lot), by_node ? lot.usd_per_node : lot.usd_per_gpu_hour),
         PageCell::number(lot_amount_words(lot), by_node ? lot.lot.nodes : lot.gpu_hours),
         PageCell::number(signed_usd(lot.paid_usd), lot.paid_usd)});
    if (sold) {
      table.rows.back().push_back(
          PageCell::number(signed_usd(-lot.residual_usd), -lot.residual_usd));
    }
  }
  return table;
}

PageTable months_table(const std::vector<MonthMoney>& months, const KeptMachines& kept) {
  const MonthMoney sum = sum_of(months);
  PageTable table{
      .columns = {{.title = "Month", .numeric = true}, {.title = "Nodes", .numeric = true}},
      .rows = {}};
  for (const PagePart& part : kPageParts) {
    if (sum.*part.part == 0) continue;
    table.columns.push_back({.title = title_of(part, kept), .numeric = true});
  }
  table.columns.push_back({.title = "Together", .numeric = true});
  table.columns.push_back({.title = "So far", .numeric = true});
  double so_far = 0;
  for (std::size_t m = 0; m <= months.size(); ++m) {
    const bool all = m == months.size();
    const MonthMoney& month = all ? sum : months[m];
    so_far += all ? 0 : month.usd();
    std::vector<PageCell> row{
        PageCell::number(all ? "all" : std::to_string(m + 1), static_cast<double>(m + 1)),
        // Nodes of months have no sum.
        all ? PageCell::text("") : PageCell::number(significant(month.nodes), month.nodes)};
    for (const PagePart& part : kPageParts) {
      if (sum.*part.part == 0) continue;
      row.push_back(PageCell::number(signed_usd(month.*part.part), month.*part.part));
    }
    row.push_back(PageCell::number(signed_usd(month.usd()), month.usd()));
    row.push_back(PageCell::number(signed_usd(so_far), so_far));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::string signed_usd(double usd) {
  return usd < 0 ? "−" + page_usd(-usd) : usd > 0 ? page_usd(usd) : "–";
}

void add_money_by_month(Page& page, const Fleet& fleet, const std::vector<LotPrice>& lots,
                        const std::vector<MonthMoney>& months, const std::string& title,
                        std::string_view of, const KeptMachines& kept) {
  const MonthMoney sum = sum_of(months);
  const std::string whose = kept_words(kept);
  page.section(title,
               fmt::format("From the start of the plan until the training is done{}. Months are "
                           "twelfths of a year{}.",
                           of,
                           !whose.empty()      ? "; " + whose
                           : sum.residual != 0 ? "; what machines are worth comes back when they "
                                                 "are needed no more"
                                               : ""));
  std::vector<PageFigure> figures{
      {.value = signed_usd(sum.usd()),
       .label = kept.from_before    ? "in all, with the value that the machines lose"
                : sum.residual != 0 ? fmt::format("in all, less what {} are worth at {} end",
                                                  sold_words(sum), kept.go_on ? "its" : "the")
                                    : "in all"},
      {.value = signed_usd(sum.bought), .label = "capital spent on machines"},
      {.value = signed_usd(sum.interest), .label = "cost of capital"},
      {.value = page_with(fleet.begins.base_units() / 86'400, "days"),
       .label = "until the training can begin"}};
  if (sum.terms_left > 0) {
    figures.push_back({.value = signed_usd(sum.terms_left),
                       .label = "of leases and reservations: terms after the end, due in the last "
                                "month"});
  }
  if (sum.plants > 0) {
    figures.push_back(
        {.value = signed_usd(sum.plants), .label = "for the site's battery, path and cooling"});
  }
  page.figures(figures);
  const std::vector<FleetStep> steps = steps_within(fleet, lots, months);
  page.table(machines_table(fleet, steps));
  if (const std::string later = later_steps_words(fleet, steps.size()); !later.empty()) {
    page.paragraph(escaped("L" + later.substr(1) + "."));
  }
  if (!lots.empty()) page.table(lots_page_table(lots, kept));
  if (const std::string energy = energy_price_words(sum); !energy.empty()) {
    page.paragraph(escaped("E" + energy.substr(1) + "."));
  }
  // A short table takes what room the sheet has left, where a chart would leave it empty.
  constexpr std::size_t kShort = 12;
  if (months.size() <= kShort) page.table(months_table(months, kept));
  page.chart({.title = "Money by month",
              .about = kept.go_on ? "In dollars; what machines are worth then is below zero."
                                  : "In dollars; below zero comes back.",
              .summary = fmt::format("Money by month, {} in all.", signed_usd(sum.usd())),
              .height_px = 320},
             money_options(months, kept));
  if (months.size() > kShort) page.table(months_table(months, kept));
}

}  // namespace lockstep
