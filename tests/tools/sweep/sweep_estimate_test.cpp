#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <numeric>
#include <vector>

#include "sim/search/sweep/estimate.hpp"

namespace lockstep {
namespace {

std::vector<double> times_of(const std::vector<double>& all, std::size_t most) {
  std::vector<double> out;
  for (const std::size_t place : points_to_try(all.size(), most)) out.push_back(all[place]);
  return out;
}

}  // namespace

TEST_CASE("a sweep's points to try are spread evenly, each once, and all of few") {
  for (const std::size_t points : {std::size_t{1}, std::size_t{5}, std::size_t{32}, std::size_t{33},
                                   std::size_t{84}, std::size_t{100'000}}) {
    CAPTURE(points);
    std::vector<std::size_t> tried = points_to_try(points, 32);
    std::ranges::sort(tried);
    REQUIRE(tried.size() == std::min<std::size_t>(points, 32));
    CHECK(tried.back() < points);
    std::size_t before = 0;
    for (std::size_t i = 1; i < tried.size(); ++i) {
      CHECK(tried[i] > tried[i - 1]);
      before = std::max(before, tried[i] - tried[i - 1]);
    }
    CHECK(before <= 1 + 2 * points / tried.size());
  }
}

TEST_CASE("a sweep's estimate meets every value of its fastest axis") {
  // 64 points whose last axis has two values: one takes 10 ms, the other 1 s. Points that are a
  // fixed stride of 2 apart have all the same one.
  std::vector<double> all(64);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i % 2 == 1 ? 0.01 : 1.0;
  const double whole = std::accumulate(all.begin(), all.end(), 0.0);
  const SweepEstimate of = estimate_sweep(times_of(all, 32), all.size(), 1);
  CHECK(of.tried == 32);
  CHECK(of.seconds == doctest::Approx(whole).epsilon(0.15));
  CHECK(of.low_s < whole);
  CHECK(*of.high_s > whole);
  CHECK(*of.high_s < 2 * whole);
  // A few of them say so too.
  CHECK(estimate_sweep(times_of(all, 8), all.size(), 1).seconds ==
        doctest::Approx(whole).epsilon(0.3));
}

TEST_CASE("a sweep's estimate: points that are alike, one core and several, the last of them") {
  const std::array<double, 4> alike{2, 2, 2, 2};
  const SweepEstimate one = estimate_sweep(alike, 100, 1);
  CHECK(one.seconds == doctest::Approx(200));
  CHECK(one.low_s == doctest::Approx(200));
  CHECK(*one.high_s == doctest::Approx(200));
  // 200 s of work on 8 cores, which may end one point apart.
  const SweepEstimate eight = estimate_sweep(alike, 100, 8);
  CHECK(eight.low_s == doctest::Approx(25));
  CHECK(*eight.high_s == doctest::Approx(25 + 2 * 7.0 / 8));
  // No more cores are busy than there are points.
  CHECK(estimate_sweep(alike, 4, 64).low_s == doctest::Approx(2));
}

TEST_CASE("a sweep's estimate: the longest point bounds it from below, few points leave it wide") {
  const std::array<double, 3> uneven{0.1, 0.1, 9};
  CHECK(estimate_sweep(uneven, 3, 3).low_s == doctest::Approx(9));
  const SweepEstimate few = estimate_sweep(uneven, 100, 2);
  CHECK(few.low_s == doctest::Approx(9));
  CHECK(*few.high_s > 1.5 * few.seconds);
  const SweepEstimate single = estimate_sweep(std::array<double, 1>{3}, 100, 1);
  CHECK(single.seconds == doctest::Approx(300));
  CHECK(single.low_s == doctest::Approx(3));
  CHECK_FALSE(single.high_s);
  CHECK(*estimate_sweep(std::array<double, 1>{3}, 1, 4).high_s == doctest::Approx(3));
}

}  // namespace lockstep
