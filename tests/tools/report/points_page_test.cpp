#include "tools/views/report/points_page.hpp"

#include <doctest/doctest.h>
#include <string>

#include "tests/tools/report/contains.hpp"
#include "tools/views/report/page.hpp"

namespace lockstep {
namespace {

ValidationPoint point_of(const std::string& kind, double measured, double predicted,
                         const std::string& by = "law") {
  return {{{"kind", kind}, {"shape", "8 x 8"}, {"by", by}},
          measured,
          predicted,
          predicted / measured - 1};
}

PointTable two_kinds() {
  PointTable table;
  table.what = "kernels";
  table.points = {point_of("<b>product", 100, 120), point_of("norm", 10, 2),
                  point_of("<b>product", 100, 101, "others")};
  table.summary = {summarise("all, by law", {table.points[0], table.points[1]}),
                   summarise("all, by others", {table.points[2]})};
  table.skipped = {"3 points: no fp4"};
  return table;
}

std::string text_of(const PointTable& table) {
  Page page("Validation report", "Kernels");
  add_points(page, table, "h100.profile.json");
  return page.html({.script = "", .licences = ""});
}

}  // namespace

TEST_CASE("points page: errors, the worst first, and what was left out") {
  const std::string page = text_of(two_kinds());
  CHECK(test::contains(page, "By the laws alone"));
  CHECK(test::contains(page, "corrected by all other points"));
  CHECK(test::contains(page, "3 points: no fp4"));
  CHECK(page.find("-80.0") < page.find("+20.0"));
  // Names from files stay text.
  CHECK_FALSE(test::contains(page, "<b>product"));
  CHECK(test::contains(page, "&lt;b&gt;product"));
  // One chart by the law, with a point beyond its edge, and one by the others.
  CHECK(test::contains(page, "data-chart=\"chart-2\""));
  CHECK(test::contains(page, "1 beyond the edge"));
  CHECK(page == text_of(two_kinds()));
}

TEST_CASE("points page: what is measured in another unit has a chart of its own") {
  PointTable table;
  table.what = "serving";
  table.unit = "";
  const auto add = [&](const char* metric, double measured) {
    table.points.push_back({{{"metric", metric}, {"id", "a"}}, measured, measured, 0});
  };
  add("ttft_ms", 12);
  add("tpot_ms", 7);
  add("output_tokens_per_s", 900);
  add("nodes", 4);
  table.summary = {summarise("all", table.points)};
  const std::string page = text_of(table);
  for (const char* title :
       {"Error over what was measured, in ms", "Error over what was measured, in tokens/s",
        "Error over what was measured, counts", "time to the first token"}) {
    CHECK_MESSAGE(test::contains(page, title), title);
  }
  CHECK(test::contains(page, "data-chart=\"chart-3\""));
  CHECK_FALSE(test::contains(page, "data-chart=\"chart-4\""));
  CHECK(test::contains(page, ">900\u00a0tokens/s<"));
}

TEST_CASE("points page: without points it says so") {
  CHECK(test::contains(text_of({}), "no point that can be predicted"));
}

}  // namespace lockstep
