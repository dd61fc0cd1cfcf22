#include "tools/views/report/empty_columns.hpp"

#include <algorithm>
#include <cstddef>

namespace lockstep {

void drop_empty_columns(PageTable& table) {
  if (table.rows.empty()) return;
  const std::string unknown = PageCell::unknown().content.str();
  for (std::size_t c = table.columns.size(); c-- > 0;) {
    const bool empty = std::ranges::all_of(table.rows, [&](const std::vector<PageCell>& row) {
      return row[c].content.str() == unknown;
    });
    if (!empty) continue;
    const auto at = static_cast<std::ptrdiff_t>(c);
    table.columns.erase(table.columns.begin() + at);
    for (std::vector<PageCell>& row : table.rows) row.erase(row.begin() + at);
    if (table.sorted_by != std::string::npos && table.sorted_by > c) --table.sorted_by;
  }
}

}  // namespace lockstep
