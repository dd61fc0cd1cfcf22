#include "tools/views/run/purchase_table.hpp"

#include <array>
#include <fmt/format.h>
#include <utility>

#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

using MoneyPart = std::pair<const char*, double MonthMoney::*>;
constexpr std::array kMoneyParts{
    MoneyPart{"bought", &MonthMoney::bought},    MoneyPart{"leased", &MonthMoney::leased},
    MoneyPart{"rented", &MonthMoney::rented},    MoneyPart{"energy", &MonthMoney::energy},
    MoneyPart{"staff", &MonthMoney::staff},      MoneyPart{"interest", &MonthMoney::interest},
    MoneyPart{"residual", &MonthMoney::residual}};

std::string usd_cell(double usd) {
  if (usd == 0) return "-";
  return (usd < 0 ? "-" : "") + compact(usd < 0 ? -usd : usd);
}

}  // namespace

std::string purchase_text(const Fleet& fleet, const std::vector<MonthMoney>& months,
                          const TextStyle& style) {
  const bool unlike = fleet.kinds.size() > 1;
  std::vector<TextTable::Column> heads{{"machines, from day"}, {"nodes"}, {"used"}, {"speed"}};
  if (unlike) heads.push_back({"of kind", TextTable::Align::left});
  TextTable machines(heads);
  for (const FleetStep& step : fleet.steps) {
    std::vector<std::string> row{
        significant(step.at.base_units() / 86'400), grouped(static_cast<double>(step.nodes)),
        grouped(static_cast<double>(step.used)), fmt::format("{:.1f} %", 100 * step.speed)};
    if (unlike) row.push_back(step.used > 0 ? fleet.kinds[step.kind] : "-");
    machines.add(std::move(row));
  }
  std::vector<TextTable::Column> columns{{"USD in month"}, {"nodes"}};
  const MonthMoney sum = sum_of(months);
  for (const auto& [name, part] : kMoneyParts) {
    if (sum.*part != 0) columns.push_back({name});
  }
  columns.insert(columns.end(), {{"together"}, {"so far"}});
  TextTable table(columns);
  const auto add = [&](const std::string& name, const MonthMoney& month, double so_far) {
    std::vector<std::string> cells{name, significant(month.nodes)};
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
    add(std::to_string(m + 1), months[m], so_far);
  }
  add("all", sum, so_far);
  const std::string terms =
      sum.terms_left > 0
          ? fmt::format(
                "\nleases and reservations: {} USD of their terms after the end fall due in "
                "the last month\n",
                compact(sum.terms_left))
          : "";
  return machines.text(style) + "\n" + table.text(style) + terms;
}

}  // namespace lockstep
