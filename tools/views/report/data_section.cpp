#include "tools/views/report/data_section.hpp"

#include <string>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "tools/views/report/empty_columns.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"
#include "tools/views/run/data_table.hpp"

namespace lockstep {
namespace {

constexpr double kBytesInGigabyte = 1e9;

PageTable hops_table(const DataPlan& plan) {
  PageTable table{.columns = {{.title = "Staged from"},
                              {.title = "To"},
                              {.title = "First byte", .numeric = true, .about = "after"},
                              {.title = "GB/s", .numeric = true},
                              {.title = "Takes", .numeric = true}}};
  for (const StagingHop& hop : plan.hops) {
    const double rate = hop.rate.base_units() / kBytesInGigabyte;
    const double takes = hop.takes.base_units();
    // staging_hops(): what is left of it goes by until the first byte.
    const double moves = (plan.dataset / hop.rate).base_units();
    const double first = takes - moves > 1e-9 * takes ? takes - moves : 0.0;
    table.rows.push_back(
        {{.content = escaped(hop.from)},
         {.content = escaped(hop.to)},
         first > 0 ? PageCell::number(page_duration(first), first) : PageCell::unknown(),
         PageCell::number(significant(rate), rate),
         PageCell::number(page_duration(takes), takes)});
  }
  drop_empty_columns(table);
  return table;
}

PageCell tier_usd(double usd) {
  return usd == 0 ? PageCell::unknown() : PageCell::number(page_usd(usd), usd);
}

/// A row for each month and one for all, a column for each tier and one for all.
PageTable storage_table(const DataPlan& plan, Seconds end) {
  PageTable table{.columns = {{.title = "Storage in month", .numeric = true}}};
  std::vector<std::vector<double>> tiers;
  for (const HeldTier& tier : plan.tiers) {
    table.columns.push_back({.title = tier.name, .numeric = true});
    tiers.push_back(tier_months(tier, end));
  }
  table.columns.push_back({.title = "Together", .numeric = true});
  const std::size_t months = tiers.front().size();
  for (std::vector<double>& tier : tiers) {
    double sum = 0;
    for (const double month : tier) sum += month;
    tier.push_back(sum);
  }
  for (std::size_t m = 0; m <= months; ++m) {
    const auto number = static_cast<double>(m + 1);
    std::vector<PageCell> row{PageCell::number(m < months ? std::to_string(m + 1) : "all", number)};
    double together = 0;
    for (const std::vector<double>& tier : tiers) {
      row.push_back(tier_usd(tier[m]));
      together += tier[m];
    }
    row.push_back(tier_usd(together));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

void add_data(Page& page, const CampaignResult& result) {
  const DataPlan& plan = *result.plan.data;
  page.section("The dataset", "Times count from the start of its staging.");
  page.paragraph(escaped("Training: " + data_words(plan) + "."));
  if (!plan.hops.empty()) page.table(hops_table(plan));
  if (result.storage_usd() > 0) page.table(storage_table(plan, result.data_until()));
}

}  // namespace lockstep
