#include "sim/measured/statistics.hpp"

#include <doctest/doctest.h>
#include <vector>

#include "sim/measured/point_table.hpp"

using namespace lockstep;

TEST_CASE("quantile: interpolates between ranks, and is exact at the ends") {
  const std::vector<double> values{4, 1, 3, 2};
  CHECK(quantile(values, 0) == 1);
  CHECK(quantile(values, 1) == 4);
  CHECK(median(values) == 2.5);
  CHECK(quantile(values, 0.9) == doctest::Approx(3.7).epsilon(1e-15));
  CHECK(median({7}) == 7);
}

TEST_CASE("summarise_errors: size for median and percentile, sign for bias and worst") {
  const ErrorSummary e = summarise_errors({0.1, -0.3, 0.2});
  CHECK(e.n == 3);
  CHECK(e.median_abs == 0.2);
  CHECK(e.bias == 0.1);
  CHECK(e.worst == -0.3);
  CHECK(e.worst_at == 1);
  CHECK(summarise_errors({}).n == 0);
}

TEST_CASE("spearman: ranks alone matter, ties share a rank") {
  CHECK(spearman({1, 2, 3, 4}, {1, 10, 100, 1000}) == doctest::Approx(1));
  CHECK(spearman({1, 2, 3, 4}, {4, 3, 2, 1}) == doctest::Approx(-1));
  CHECK(spearman({1, 1, 1}, {1, 2, 3}) == 0);
  // Ranks 0, 1.5, 1.5, 3 against 0, 1, 2, 3: 4.5 / sqrt(4.5 * 5).
  CHECK(spearman({1, 2, 2, 3}, {1, 2, 3, 4}) == doctest::Approx(0.948683298).epsilon(1e-8));
}

TEST_CASE("summarise_by: all points first, then each value of the key in order") {
  std::vector<ValidationPoint> points;
  points.push_back({{{"gpu", "b"}}, 10, 11, 0.1});
  points.push_back({{{"gpu", "a"}}, 10, 8, -0.2});
  points.push_back({{{"gpu", "b"}}, 10, 13, 0.3});
  const std::vector<PointSummary> groups = summarise_by(points, "gpu");
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].group == "all");
  CHECK(groups[0].n == 3);
  CHECK(groups[1].group == "a");
  CHECK(groups[1].bias == -0.2);
  CHECK(groups[2].n == 2);
  CHECK(groups[2].median_abs == doctest::Approx(0.2));
}
