// Options of charts that several pages have.
#include "tools/views/report/chart_kit.hpp"

#include <array>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace lockstep::test {

TEST_CASE("dots chart: a group of marked dots has their colour in the legend") {
  const std::array<std::string, 3> groups{"ties", "slower", "own"};
  const std::vector<ChartDot> dots{{.x = 1, .y = 1, .words = {"a"}, .colour = 0},
                                   {.x = 2, .y = 1, .words = {"b"}, .colour = 1, .marked = true},
                                   {.x = 3, .y = 1, .words = {"c"}, .colour = 1},
                                   {.x = 4, .y = 1, .words = {"d"}, .colour = 2, .marked = true}};
  const nlohmann::json chart = dots_chart(dots, groups, {.unit = "s"}, {.unit = "GiB"}, {});
  REQUIRE(chart["series"].size() == 3);
  CHECK(chart["series"][0]["itemStyle"]["color"] == chart_colour(0));
  CHECK(chart["series"][1]["itemStyle"]["color"] == chart_colour(1));
  CHECK(chart["series"][2]["itemStyle"]["color"] ==
        chart["series"][2]["data"][0]["itemStyle"]["color"]);
}

}  // namespace lockstep::test
