#include "tools/views/sweep/results_csv.hpp"

#include <algorithm>
#include <fmt/ranges.h>
#include <string>
#include <vector>

#include "sim/search/sweep/sql_value.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

void export_csv(const ResultsReader& results, const std::function<void(const CsvText&)>& write) {
  std::vector<std::string> quoted;
  for (const std::string& column : results.columns()) quoted.push_back(quoted_name(column));
  write(csv_line(results.columns()));
  std::vector<std::string> cells(quoted.size());
  results.each(fmt::format("SELECT {} FROM points ORDER BY point", fmt::join(quoted, ", ")),
               [&](const std::vector<SqlValue>& values) {
                 std::ranges::transform(values, cells.begin(), text_of);
                 write(csv_line(cells));
               });
}

}  // namespace lockstep
