#include "tools/views/report/thinning.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <vector>

using namespace lockstep;

TEST_CASE("thinning leaves as many points as it may alone") {
  const std::vector<float> values{3, 1, 2, 5};
  CHECK(thin_to_extremes(values, 4) == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK(thin_to_extremes({}, 4).empty());
}

TEST_CASE("thinning keeps both ends, and the extremes of each stretch in their places") {
  //                               |  one stretch    |  the other      |
  const std::vector<float> values{4, 5, 9, 5, 1, 5, 5, 5, 0, 5, 5, 7, 5, 4};
  // 14 points, at most 6: two stretches of 6 between the ends.
  CHECK(thin_to_extremes(values, 6) == std::vector<std::size_t>{0, 2, 4, 8, 11, 13});
}

TEST_CASE("a single peak among many points survives any thinning, in rising order") {
  std::vector<float> values(100'000, 0.5F);
  for (const std::size_t peak : {1UL, 777UL, 50'000UL, 99'998UL}) {
    values[peak] = 1;
    for (const std::size_t most : {4UL, 5UL, 100UL, 1200UL}) {
      CAPTURE(peak);
      CAPTURE(most);
      const std::vector<std::size_t> kept = thin_to_extremes(values, most);
      CHECK(kept.size() <= most);
      CHECK(std::ranges::is_sorted(kept));
      CHECK(std::ranges::adjacent_find(kept) == kept.end());
      CHECK(std::ranges::find(kept, peak) != kept.end());
    }
    values[peak] = 0.5F;
  }
}

TEST_CASE("merged cells are as many as allowed, and hold the means") {
  CHECK(merge_count(240, 240) == 1);
  CHECK(merge_count(241, 240) == 2);
  CHECK(merge_count(0, 240) == 1);
  const std::vector<float> values{1, 3, 5, 7, 8};
  CHECK(merged_means(values, 2) == std::vector<double>{2, 6, 8});
  CHECK(merged_means(values, 1).size() == 5);
  CHECK(merged_means(values, 9) == std::vector<double>{4.8});
}
