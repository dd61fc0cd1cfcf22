// Parts of a plan: distributions, laws of compute-optimal training, prices, the choice.
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "sim/search/compute_optimal.hpp"
#include "sim/search/distribution.hpp"
#include "sim/search/plan_choice.hpp"
#include "sim/search/plan_model.hpp"

namespace lockstep {
namespace {

constexpr double kDay = 86'400;

/// A candidate whose samples all are as said.
PlanResult certain(double days, double usd, double joules, double watts = 1) {
  PlanOutcome outcome;
  outcome.time_s = days * kDay;
  outcome.usd = usd;
  outcome.energy_j = joules;
  outcome.peak_w = watts;
  PlanResult result;
  result.samples.assign(10, outcome);
  result.expected = outcome;
  return result;
}

PlanSpec spec_for(std::size_t candidates) {
  PlanSpec spec;
  spec.samples = 10;
  spec.candidates.resize(candidates);
  for (PlanCandidate& candidate : spec.candidates) {
    candidate.scenario.power.emplace().cost.usd_per_gpu = 1;  // so that money decides
  }
  return spec;
}

}  // namespace

TEST_CASE("distribution: quantiles are those of its law, and rise") {
  const Distribution uniform{.law = DistributionLaw::uniform, .low = 1, .likely = 1, .high = 3};
  const Distribution triangular{
      .law = DistributionLaw::triangular, .low = 1, .likely = 1.5, .high = 3};
  const Distribution lognormal{
      .law = DistributionLaw::lognormal, .low = 0.5, .likely = 1, .high = 2};
  const Distribution fixed{.law = DistributionLaw::fixed, .low = 2, .likely = 2, .high = 2};
  CHECK(uniform.quantile(0.25) == doctest::Approx(1.5));
  // A quarter of a triangle from 1 to 3 lies below its peak at 1.5.
  CHECK(triangular.quantile(0.25) == doctest::Approx(1.5));
  CHECK(lognormal.quantile(0.05) == doctest::Approx(0.5));
  CHECK(lognormal.median() == doctest::Approx(1));
  CHECK(lognormal.quantile(0.95) == doctest::Approx(2));
  CHECK(fixed.quantile(0.9) == 2);
  for (const Distribution& d : {uniform, triangular, lognormal}) {
    double before = 0;
    for (double p = 0.01; p < 1; p += 0.01) {
      CHECK(d.quantile(p) > before);
      before = d.quantile(p);
    }
  }
}

TEST_CASE("distribution: a lognormal spread need not lie evenly around its median") {
  const Distribution d{.law = DistributionLaw::lognormal, .low = 0.8, .likely = 1, .high = 1.05};
  CHECK(d.median() == 1);
  CHECK(d.quantile(0.05) == doctest::Approx(0.8));
  CHECK(d.quantile(0.95) == doctest::Approx(1.05));
  CHECK(d.quantile(0.49) < 1);
  CHECK(d.quantile(0.51) > 1);
}

TEST_CASE("plan inputs: what is uncertain by default has its prediction as the median") {
  for (const PlanInputInfo& info : plan_inputs()) {
    CAPTURE(info.name);
    CHECK(info.otherwise.median() == 1);
  }
}

TEST_CASE("compute-optimal: no split of the same compute has a smaller loss") {
  for (const ScalingLaw& law : scaling_laws()) {
    CAPTURE(law.name);
    for (const double flops : {1e20, 5.76e23, 1e26}) {
      const ComputeOptimum best = optimum_of(law, Flops{flops});
      CHECK(training_compute(best.parameters, best.tokens).base_units() == doctest::Approx(flops));
      const double least = expected_loss(law, best.parameters, best.tokens);
      for (const double more : {0.7, 0.98, 1.02, 1.4}) {
        CHECK(least < expected_loss(law, best.parameters * more, best.tokens / more));
      }
      CHECK(optimal_tokens(law, best.parameters) == doctest::Approx(best.tokens));
    }
  }
}

TEST_CASE("compute-optimal: Chinchilla's budget buys Chinchilla") {
  // Hoffmann et al. 2022, arXiv:2203.15556, trained 70 billion weights on 1.4 T tokens. Besiroglu
  // et al. 2024, arXiv:2404.10102, say that their fit agrees with that; "about 20 tokens a weight"
  // has one digit, so that 10 % is what it says.
  const ComputeOptimum best = optimum_of(scaling_laws()[0], training_compute(70e9, 1.4e12));
  CHECK(best.parameters == doctest::Approx(70e9).epsilon(0.1));
}

TEST_CASE("with_factors: speed, failures and recovery change a run, prices do not") {
  Campaign campaign;
  campaign.work = Seconds{1000};
  campaign.modes.push_back({.name = "a", .mean_time = Seconds{100}});
  campaign.recovery.restarts = Seconds{10};
  PlanFactors factors;
  factors.fill(1);
  const auto with = [&](PlanInput input, double value) {
    PlanFactors changed = factors;
    changed[static_cast<std::size_t>(input)] = value;
    return with_factors(campaign, changed);
  };
  CHECK(with(PlanInput::efficiency, 2).work == Seconds{500});
  CHECK(with(PlanInput::failure_rate, 2).modes[0].mean_time == Seconds{50});
  CHECK(with(PlanInput::recovery, 2).recovery.restarts == Seconds{20});
  for (const PlanInput input : {PlanInput::price, PlanInput::tariff, PlanInput::power}) {
    const Campaign same = with(input, 2);
    CHECK(same.work == campaign.work);
    CHECK(same.modes[0].mean_time == campaign.modes[0].mean_time);
    CHECK(same.recovery.restarts == campaign.recovery.restarts);
  }
}

TEST_CASE("mean_outcome: goodput and waiting count a long run by its length, money does not") {
  std::vector<PlanOutcome> runs(2);
  runs[0].run_s = 100;
  runs[0].goodput = 0.9;
  runs[0].waiting = 0.1;
  runs[0].usd = 10;
  runs[1].run_s = 300;
  runs[1].goodput = 0.5;
  runs[1].usd = 20;
  const PlanOutcome mean = mean_outcome(runs);
  CHECK(mean.goodput == doctest::Approx((90 + 150) / 400.0));
  CHECK(mean.waiting == doctest::Approx(10 / 400.0));
  CHECK(mean.usd == doctest::Approx(15));
  CHECK(mean.run_s == doctest::Approx(200));
}

TEST_CASE("choose: the cheapest that keeps the limits, the front is what nothing beats") {
  PlanSpec spec = spec_for(4);
  spec.limits.time = Seconds{30 * kDay};
  PlanReport report;
  report.results = {certain(40, 1, 5), certain(20, 3, 5), certain(25, 2, 5), certain(26, 4, 6)};
  choose(spec, report);
  REQUIRE(report.choice.has_value());
  CHECK(*report.choice == 2);
  CHECK(report.results[0].chances.all == 0);
  CHECK(report.results[2].best_share == doctest::Approx(1));
  const std::array front{true, true, true, false};
  for (std::size_t i = 0; i < front.size(); ++i) CHECK(report.results[i].on_front == front[i]);

  spec.goal = PlanGoal::time;
  PlanReport by_time;
  by_time.results = {certain(40, 1, 5), certain(20, 3, 5), certain(25, 2, 5), certain(26, 4, 6)};
  choose(spec, by_time);
  CHECK(*by_time.choice == 1);
}

TEST_CASE("choose: where nobody keeps the limits surely enough, the likeliest is the nearest") {
  PlanSpec spec = spec_for(3);
  spec.limits.usd = 10;
  PlanReport report;
  report.results = {certain(1, 20, 1), certain(1, 20, 1), certain(1, 20, 1)};
  for (std::size_t s = 0; s < 4; ++s) report.results[1].samples[s].usd = 5;
  report.results[2].model.impossible = "does not fit";
  choose(spec, report);
  CHECK_FALSE(report.choice.has_value());
  CHECK(report.nearest == 1);
  CHECK(report.results[1].chances.usd == doctest::Approx(0.4));
  CHECK(report.results[1].best_share == doctest::Approx(0.4));
}

TEST_CASE("choose: the fewest GPUs that keep the limits, and the faster of as many") {
  PlanSpec spec = spec_for(4);
  spec.limits.time = Seconds{30 * kDay};
  spec.goal = PlanGoal::gpus;
  PlanReport report;
  report.results = {certain(40, 1, 1), certain(10, 1, 1), certain(25, 1, 1), certain(20, 1, 1)};
  const std::array gpus{8.0, 64.0, 16.0, 16.0};
  for (std::size_t c = 0; c < gpus.size(); ++c) {
    report.results[c].expected.gpus = gpus[c];
    for (PlanOutcome& sample : report.results[c].samples) sample.gpus = gpus[c];
  }
  choose(spec, report);
  CHECK(report.choice == 3);
  CHECK(report.results[3].best_share == doctest::Approx(1));
}

TEST_CASE("choose: where nobody ever keeps the limits, the nearest breaks them by the least") {
  PlanSpec spec = spec_for(3);
  spec.limits.time = Seconds{10 * kDay};
  PlanReport by_time;
  by_time.results = {certain(90, 1, 1), certain(40, 5, 1), certain(50, 3, 1)};
  choose(spec, by_time);
  CHECK_FALSE(by_time.choice.has_value());
  CHECK(by_time.nearest == 1);  // not the cheapest
  // Nine times the deadline, eight times the budget, or five times and three times.
  spec.limits.usd = 1;
  PlanReport by_both;
  by_both.results = {certain(90, 1, 1), certain(40, 8, 1), certain(50, 3, 1)};
  choose(spec, by_both);
  CHECK(by_both.nearest == 2);
  // As far beyond them, the cheaper.
  spec.limits.usd.reset();
  PlanReport alike;
  alike.results = {certain(40, 3, 1), certain(40.01, 2, 1), certain(40, 4, 1)};
  choose(spec, alike);
  CHECK(alike.nearest == 1);
}

TEST_CASE("choose: a site's own limit of power counts, and the plan's only for what one owns") {
  PlanSpec spec = spec_for(3);
  spec.limits.power = Watts{10};
  spec.candidates[0].power_limit = Watts{5};
  spec.candidates[2].rented = true;
  PlanReport report;
  report.results = {certain(1, 1, 1, 7), certain(1, 2, 1, 7), certain(1, 3, 1, 20)};
  choose(spec, report);
  CHECK(report.results[0].chances.power == 0);
  CHECK(report.results[1].chances.power == 1);
  CHECK(report.results[2].chances.power == 1);
  CHECK(report.choice == 1);
}

TEST_CASE("choose: a run that is given up keeps no limit, and is counted") {
  PlanSpec spec = spec_for(1);
  PlanReport report;
  report.results = {certain(40, 1, 5)};
  for (std::size_t s = 0; s < 3; ++s) report.results[0].samples[s].finished = false;
  choose(spec, report);
  CHECK(report.results[0].unfinished == doctest::Approx(0.3));
  CHECK(report.results[0].chances.all == doctest::Approx(0.7));
  CHECK_FALSE(report.choice.has_value());
}

}  // namespace lockstep
