// Columns in which no row has anything are left out of a page's table.
#include "tools/views/report/empty_columns.hpp"

#include <doctest/doctest.h>
#include <string>

namespace lockstep::test {

TEST_CASE("empty columns: those without anything go, and what rows are sorted by stays the same") {
  PageTable table{.columns = {{.title = "Name"}, {.title = "Days"}, {.title = "Money"}}};
  table.rows.push_back({PageCell::text("a"), PageCell::unknown(), PageCell::number("2 USD", 2)});
  table.rows.push_back({PageCell::text("b"), PageCell::unknown(), PageCell::unknown()});
  table.sorted_by = 2;
  drop_empty_columns(table);
  REQUIRE(table.columns.size() == 2);
  CHECK(table.columns[0].title == "Name");
  CHECK(table.columns[1].title == "Money");
  CHECK(table.rows[0].size() == 2);
  CHECK(table.rows[1].size() == 2);
  CHECK(table.rows[0][1].content.str() == PageCell::number("2 USD", 2).content.str());
  CHECK(table.sorted_by == 1);
}

TEST_CASE("empty columns: of a table without rows all stay") {
  PageTable table{.columns = {{.title = "Name"}, {.title = "Days"}}};
  drop_empty_columns(table);
  CHECK(table.columns.size() == 2);
}

}  // namespace lockstep::test
