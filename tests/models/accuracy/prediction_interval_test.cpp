#include "models/accuracy/prediction_interval.hpp"

#include <cmath>
#include <doctest/doctest.h>

using namespace lockstep;

namespace {

PredictionTraits traits(const std::string& stack, const std::string& release,
                        const std::string& architecture = "hopper") {
  return {.stack = stack, .release = release, .gpu = "card", .architecture = architecture};
}

/// `n` rows of a source, their errors evenly from `low` to `high`; left out, twice as wrong.
void add(ResidualTable& table, const std::string& source, const PredictionTraits& of, int n,
         double low, double high) {
  for (int i = 0; i < n; ++i) {
    const double error = low + (high - low) * i / (n - 1);
    table.push_back(
        {.row = source, .source = source, .traits = of, .fitted = error, .left_out = 2 * error});
  }
  classify(table);
}

}  // namespace

TEST_CASE("software is known by its release, by another release, or not at all") {
  ResidualTable table;
  add(table, "a", traits("stack", "1"), 10, -0.1, 0.1);
  add(table, "b", traits("stack", "2"), 10, -0.1, 0.1);
  CHECK(software_known(table, traits("stack", "1")) == SoftwareKnown::release);
  CHECK(software_known(table, traits("stack", "1"), "a") == SoftwareKnown::stack);
  CHECK(software_known(table, traits("other", "1")) == SoftwareKnown::none);
  CHECK(table.front().left_out_known == SoftwareKnown::stack);
  PredictionTraits nearest = traits("stack", "1");
  nearest.release_stands_in = true;
  CHECK(software_known(table, nearest) == SoftwareKnown::stack);
}

TEST_CASE("predict_interval: fitted errors where the release is known, else left-out ones") {
  ResidualTable table;
  add(table, "a", traits("stack", "1"), 1001, -0.1, 0.2);
  add(table, "b", traits("stack", "2"), 1001, -0.1, 0.2);
  // 5 % of even errors lie below -0.085 and above 0.185: a run may be 8.9 % longer than predicted
  // and 16.9 % shorter.
  const PredictionInterval known = predict_interval(table, traits("stack", "1"));
  CHECK(known.high == doctest::Approx(std::exp(0.085)).epsilon(0.001));
  CHECK(known.low == doctest::Approx(std::exp(-0.185)).epsilon(0.001));
  const PredictionInterval other = predict_interval(table, traits("stack", "3"));
  CHECK(other.high == doctest::Approx(std::exp(0.17)).epsilon(0.001));
  CHECK(words_of(other) ==
        "another release is known, dense, hopper: 2002 published runs of 2 sources");
  // Nobody's software was ever unknown here: the nearest evidence there is. Its own error is one
  // more, half of it beyond either end: of a weight of 2 sqrt(1001), 5 % less 0.45 are left there.
  const double beyond = 0.05 - 0.45 / (2 * std::sqrt(1001));
  CHECK(predict_interval(table, traits("new", "")).high ==
        doctest::Approx(std::exp(0.2 - 0.6 * beyond)).epsilon(0.001));
}

TEST_CASE("predict_interval: sources weigh by the root of their rows, small groups lean") {
  ResidualTable table;
  add(table, "many", traits("stack", "1"), 400, -0.01, 0.01);
  add(table, "few", traits("stack", "1", "ampere"), 4, 0.3, 0.3);
  // "few" has 2 of 22 parts of the weight, more than 5 %, although 1 % of the rows.
  const PredictionInterval blackwell = predict_interval(table, traits("stack", "1", "blackwell"));
  CHECK(blackwell.low == doctest::Approx(std::exp(-0.3)).epsilon(0.001));
  CHECK(blackwell.group == "dense");
  // A single source has 1 / (1 + kLeaning) of the say about its architecture.
  const PredictionInterval hopper = predict_interval(table, traits("stack", "1"));
  CHECK(hopper.group == "dense, hopper");
  CHECK(hopper.rows == 400);
  CHECK(-std::log(hopper.low) ==
        doctest::Approx((0.3 * kLeaning + 0.009) / (1 + kLeaning)).epsilon(0.01));
  CHECK(hopper.high >= 1);
}
