#include "models/accuracy/prediction_interval.hpp"

#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <vector>

using namespace lockstep;

namespace {

PredictionTraits traits(const std::string& stack, const std::string& release,
                        const std::string& architecture = "hopper") {
  PredictionTraits out;
  out.stack = stack;
  out.release = release;
  out.gpu = "card";
  out.architecture = architecture;
  return out;
}

/// `n` rows of a source, their errors evenly from `low` to `high`; left out, twice as wrong, and
/// without its vendor or with the default stack three times.
void add(ResidualTable& table, const std::string& source, const PredictionTraits& of, int n,
         double low, double high, const std::string& vendor = {}) {
  for (int i = 0; i < n; ++i) {
    const double error = low + (high - low) * i / (n - 1);
    table.push_back({.row = source,
                     .source = source,
                     .vendor = vendor.empty() ? source : vendor,
                     .traits = of,
                     .fitted = error,
                     .left_out = 2 * error,
                     .vendor_left_out = 3 * error,
                     .as_default = 3 * error});
  }
  classify(table);
}

}  // namespace

TEST_CASE("a release is known when it was named and several sources measured it") {
  ResidualTable table;
  add(table, "a", traits("stack", "1"), 10, -0.1, 0.1);
  add(table, "b", traits("stack", "1"), 10, -0.1, 0.1);
  add(table, "c", traits("stack", "2"), 10, -0.1, 0.1);
  CHECK(software_known(table, traits("stack", "1")) == SoftwareKnown::release);
  // Without one of its two sources nobody tells software from cluster; nor of the other release.
  CHECK(software_known(table, traits("stack", "1"), "a") == SoftwareKnown::stack);
  CHECK(software_known(table, traits("stack", "2")) == SoftwareKnown::stack);
  CHECK(software_known(table, traits("stack", "")) == SoftwareKnown::stack);
  CHECK(software_known(table, traits("other", "1")) == SoftwareKnown::none);
  CHECK(table.front().left_out_known == SoftwareKnown::stack);
  PredictionTraits nearest = traits("stack", "1");
  nearest.release_stands_in = true;
  CHECK(software_known(table, nearest) == SoftwareKnown::stack);
  PredictionTraits strange = traits("stack", "1");
  strange.unknown_software = {"a feature that it never had"};
  CHECK(software_known(table, strange) == SoftwareKnown::none);
  CHECK(knowledge_of(table, strange).gaps.front() == "a feature that it never had");
  PredictionTraits unnamed = traits("stack", "1");
  unnamed.stack_stands_in = true;
  CHECK(software_known(table, unnamed) == SoftwareKnown::none);
  // Constants that were fitted on other architectures say nothing about this one's software.
  CHECK(software_known(table, traits("stack", "1", "cdna3")) == SoftwareKnown::none);
}

TEST_CASE("a vendor's sources know nothing about each other when all of them are left out") {
  ResidualTable table;
  add(table, "a", traits("stack", "1"), 10, -0.1, 0.1, "v");
  add(table, "b", traits("stack", "1"), 10, -0.1, 0.1, "v");
  add(table, "c", traits("other", "1"), 10, -0.1, 0.1);
  CHECK(table.front().left_out_known == SoftwareKnown::stack);
  CHECK(table.front().vendor_left_out_known == SoftwareKnown::none);
  CHECK(software_known(table, traits("stack", "1"), "v") == SoftwareKnown::none);
}

TEST_CASE("predict_interval: fitted errors where the release is known, else left-out ones") {
  ResidualTable table;
  add(table, "a", traits("stack", "1"), 1001, -0.1, 0.2);
  add(table, "b", traits("stack", "1"), 1001, -0.1, 0.2);
  // 5 % of even errors lie below -0.085 and above 0.185: a run may be 8.9 % longer than predicted
  // and 16.9 % shorter.
  const PredictionInterval known = predict_interval(table, traits("stack", "1"));
  CHECK(known.high == doctest::Approx(std::exp(0.085)).epsilon(0.001));
  CHECK(known.low == doctest::Approx(std::exp(-0.185)).epsilon(0.001));
  CHECK(words_of(known) == "known release, dense, hopper: 2002 published runs of 2 sources");
  const PredictionInterval other = predict_interval(table, traits("stack", "3"));
  CHECK(other.high == doctest::Approx(std::exp(0.17)).epsilon(0.001));
  CHECK(words_of(other) ==
        "known stack, no published run of this release; dense, hopper: 2002 published runs of 2 "
        "sources");
}

TEST_CASE("predict_interval: a run of unknown software is one more, of which nothing is known") {
  ResidualTable table;
  add(table, "a", traits("one", "1"), 1001, -0.1, 0.2);
  add(table, "b", traits("two", "1"), 1001, -0.1, 0.2);
  // Its own error is one more, half of it beyond either end: of a weight of 2 sqrt(1001), 5 % less
  // 0.45 are left there; three times as wrong, as nobody else has the stack.
  const double beyond = 0.05 - 0.45 / (2 * std::sqrt(1001));
  const PredictionInterval out = predict_interval(table, traits("new", ""));
  CHECK(out.high == doctest::Approx(std::exp(0.3 - 0.9 * beyond)).epsilon(0.001));
  CHECK(words_of(out).starts_with("unknown software, no published run of this stack; dense"));
}

TEST_CASE("predict_interval: less knowledge never makes an interval narrower") {
  ResidualTable table;
  // Left out they happen to be better than in the fit.
  add(table, "a", traits("stack", "1"), 100, -0.1, 0.2);
  add(table, "b", traits("stack", "1"), 100, -0.1, 0.2);
  add(table, "c", traits("new", "1", "ampere"), 50, -0.05, 0.02);
  for (Residual& r : table) {
    r.left_out = r.vendor_left_out = r.fitted / 4;
    r.traits.network = "infiniband";
    r.traits.fabric = "fat_tree";
  }
  PredictionTraits least = traits("stack", "1");
  const PredictionInterval release = predict_interval(table, least);
  std::vector<PredictionInterval> worse{release};
  const auto next = [&] { worse.push_back(predict_interval(table, least)); };
  least.release = "";
  next();
  least.unknown_software = {"why"};
  next();
  least.network = "carrier pigeon";
  next();
  least.fabric = "torus";
  next();
  least.gpu = "another";
  next();
  least.architecture = "volta";
  next();
  least.architecture = "cdna3";
  next();
  least.strange = {"no run among these with low-rank adapters"};
  next();
  for (std::size_t i = 1; i < worse.size(); ++i) {
    CAPTURE(i);
    CHECK(worse[i].low <= worse[i - 1].low);
    CHECK(worse[i].high >= worse[i - 1].high);
    // Each strange part of the machine shows.
    if (i > 2) CHECK(worse[i].half_width() > worse[i - 1].half_width());
  }
  CHECK(worse.back().gaps.size() == 5);
  CHECK(worse.back().gaps.back() == "no run among these with low-rank adapters");
}

TEST_CASE("predict_interval: composed software is never less sure than software without a name") {
  ResidualTable table;
  add(table, "a", traits("stack", "1"), 100, -0.1, 0.2);
  add(table, "b", traits("stack", "1"), 100, -0.1, 0.2);
  // Composed, both are farther off than with the default stack.
  for (Residual& r : table) {
    r.as_default = r.fitted;
    r.composed = r.source == "a" ? r.fitted - 0.6 : r.fitted + 0.6;
  }
  PredictionTraits composed = traits("stack", "1"), unnamed = composed;
  composed.composed = true;
  unnamed.stack_stands_in = true;
  const PredictionInterval narrow = predict_interval(table, composed);
  const PredictionInterval wide = predict_interval(table, unnamed);
  CHECK(narrow.known == SoftwareKnown::composed);
  CHECK(wide.known == SoftwareKnown::none);
  CHECK(wide.low <= narrow.low);
  CHECK(wide.high >= narrow.high);
}

TEST_CASE("predict_interval: a maker of GPUs that no run had is said, and adds its own spread") {
  ResidualTable table;
  add(table, "a", traits("stack", "1"), 100, -0.1, 0.1);
  add(table, "b", traits("stack", "1", "ampere"), 100, -0.1, 0.1);
  const PredictionInterval strange = predict_interval(table, traits("stack", "1", "volta"));
  const PredictionInterval amd = predict_interval(table, traits("stack", "1", "cdna3"));
  CHECK(strange.gaps.front() == "no published run on GPUs of architecture volta");
  CHECK(amd.gaps == std::vector<std::string>{"unvalidated: no published run on any GPU of AMD"});
  // Errors of their own add in squares: 0.15 of standard deviation, nine tenths of the normal law.
  CHECK(std::log(amd.high) == doctest::Approx(std::hypot(std::log(strange.high), 1.6449 * 0.15)));
  CHECK(std::log(amd.low) == doctest::Approx(-std::hypot(std::log(strange.low), 1.6449 * 0.15)));

  // One run of any of its GPUs, and another architecture of it is strange, but no other maker.
  add(table, "c", traits("stack", "1", "cdna2"), 2, -0.1, 0.1);
  CHECK(predict_interval(table, traits("stack", "1", "cdna3")).gaps.front() ==
        "no published run on GPUs of architecture cdna3");
}

TEST_CASE("predict_interval: sources weigh by the root of their rows, small groups lean") {
  ResidualTable table;
  add(table, "many", traits("stack", "1"), 400, -0.01, 0.01);
  add(table, "few", traits("stack", "1", "ampere"), 4, 0.3, 0.3);
  for (Residual& r : table) r.left_out = 0;
  const Knowledge known{.software = SoftwareKnown::release,
                        .gpu = true,
                        .architecture = true,
                        .maker = true,
                        .network = true,
                        .fabric = true,
                        .gaps = {}};
  // "few" has 2 of 22 parts of the weight, more than 5 %, although 1 % of the rows.
  const PredictionInterval blackwell =
      predict_interval(table, traits("stack", "1", "blackwell"), known);
  CHECK(blackwell.low == doctest::Approx(std::exp(-0.3)).epsilon(0.001));
  CHECK(blackwell.group == "dense");
  // A single source has 1 / (1 + kLeaning) of the say about its architecture.
  const PredictionInterval hopper = predict_interval(table, traits("stack", "1"), known);
  CHECK(hopper.group == "dense, hopper");
  CHECK(hopper.rows == 400);
  CHECK(-std::log(hopper.low) ==
        doctest::Approx((0.3 * kLeaning + 0.009) / (1 + kLeaning)).epsilon(0.01));
  CHECK(hopper.high >= 1);
}
