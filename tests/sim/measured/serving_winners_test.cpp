// One pool or two: what rows of two pools are held against, by hand.
#include "sim/measured/serving_winners.hpp"

#include <doctest/doctest.h>
#include <vector>

#include "tests/support/near.hpp"

namespace lockstep {
namespace {

PacedRow paced(bool two_pools, ServedPace measured, ServedPace predicted,
               const char* configuration = "a") {
  return {.configuration = configuration,
          .two_pools = two_pools,
          .measured = measured,
          .predicted = predicted};
}
PacedRow as_predicted(bool two_pools, ServedPace pace, const char* configuration = "a") {
  return paced(two_pools, pace, pace, configuration);
}

}  // namespace

TEST_CASE("serving winners: a closed loop's clients get their answers, by Little's law") {
  // 8 clients, answers of 101 tokens in 1 + 100 x 0.02 s: 8 / 3 answers a second, on four GPUs.
  const ServedPace pace = ServedPace::of_clients(8, 101, 1, 0.02, 4);
  CHECK(pace.tpot_s == 0.02);
  CHECK(pace.per_gpu == test::near(8 * 101 / 3.0 / 4));
}

TEST_CASE("serving winners: rows of two pools against the best rows of one at their pace") {
  const std::vector<PacedRow> one{as_predicted(false, {0.010, 100}),
                                  as_predicted(false, {0.030, 300}),
                                  as_predicted(false, {0.020, 90})};  // beaten by the first
  const auto counted = [&](const PacedRow& row) {
    std::vector<PacedRow> rows = one;
    rows.push_back(row);
    return count_winners(rows);
  };
  SUBCASE("between two rows it is linear: 200 at 20 ms") {
    const WinnerCount close = counted(paced(true, {0.020, 205}, {0.020, 195}));
    CHECK(close.rows == 1);
    CHECK(close.right == 0);
    CHECK(close.apart == 0);  // 2.5 % more is less than a tenth
    const WinnerCount clear = counted(paced(true, {0.020, 230}, {0.020, 201}));
    CHECK(clear.right == 1);
    CHECK(clear.apart == 1);
    CHECK(clear.right_apart == 1);
  }
  SUBCASE("each at its own time per token") {
    // Measured 160 where one pool has 150, predicted 160 where it has 200.
    CHECK(counted(paced(true, {0.015, 160}, {0.020, 160})).right == 0);
  }
  SUBCASE("slower than all it meets the slowest, faster than all nobody") {
    CHECK(counted(as_predicted(true, {0.050, 290})).right == 1);
    CHECK(counted(as_predicted(true, {0.005, 290})).rows == 0);
  }
  SUBCASE("only with rows of its configuration") {
    CHECK(counted(as_predicted(true, {0.020, 290}, "b")).configurations == 0);
    CHECK(counted(as_predicted(true, {0.020, 290})).configurations == 1);
    CHECK(winner_note(one).empty());
  }
}

}  // namespace lockstep
