#include "tools/calibrate/timing.hpp"

#include <algorithm>
#include <doctest/doctest.h>

#include "tests/support/near.hpp"

using namespace lockstep;

TEST_CASE("timing_of: the median, and the quartiles' distance over it") {
  const Timing t = timing_of({5e-6, 1e-6, 3e-6, 2e-6, 4e-6});
  CHECK(t.median.base_units() == test::near(3e-6));
  CHECK(t.spread == test::near((4.0 - 2.0) / 3.0));
  CHECK(timing_of({7e-3}).spread == 0);
  // One disturbed repeat of eleven moves neither.
  const Timing disturbed = timing_of({1, 1, 1, 1, 1, 100, 1, 1, 1, 1, 1});
  CHECK(disturbed.median == Seconds{1});
  CHECK(disturbed.spread == 0);
}

TEST_CASE("burst_repeats: a sample is long enough for the events, and touches every set") {
  for (const double one : {2e-6, 3e-5, 8e-4, 5e-3, 2.5e-2}) {
    for (const int sets : {1, 3, 400, 2000}) {
      CAPTURE(one);
      CAPTURE(sets);
      const Repeats r = burst_repeats(Seconds{one}, sets);
      CHECK(r.launches >= sets);
      // 2 ms, or the longest graph that cold operands do not ask for.
      CHECK((r.launches * one >= 2e-3 || r.launches == std::max(512, sets)));
      CHECK(r.samples >= 5);
      CHECK(r.samples <= 11);
      // The card works a third of the time at most.
      CHECK(2.0 * r.launches * one <= 0.5 * r.pause.base_units() + 1e-12);
      CHECK(r.together(Seconds{one}) >= r.samples * r.pause);
    }
  }
  CHECK(burst_repeats(Seconds{1e-4}, 1).launches == 20);
  CHECK(burst_repeats(Seconds{1e-4}, 1).samples == 11);
  CHECK(burst_repeats(Seconds{25e-3}, 1).launches == 1);
  CHECK(burst_repeats(Seconds{25e-3}, 1).samples == 5);
}

TEST_CASE("rotating_sets: twice the L2 cache and one more, as far as there is room") {
  CHECK(rotating_sets(10e6, 50e6, 10e9) == 11);
  CHECK(rotating_sets(200e6, 50e6, 10e9) == 2);
  CHECK(rotating_sets(6e9, 50e6, 10e9) == 1);
  CHECK(rotating_sets(10e6, 50e6, 35e6) == 3);
  // Products of 128 a side in FP8: 64 KiB with their results.
  CHECK(rotating_sets(65536, 50 << 20, 10e9) == 1601);
  CHECK(rotating_sets(1e3, 50e6, 10e9) == 8192);
}
