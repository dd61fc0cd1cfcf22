#include "sim/run/summary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <doctest/doctest.h>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/run/optimum.hpp"
#include "tests/support/near.hpp"

namespace lockstep {
namespace {

Campaign campaign_of(double mean_s) {
  Campaign campaign;
  campaign.work = Seconds{10 * 86400.0};
  campaign.modes = {{.name = "bug", .scope = FailureScope::process, .mean_time = Seconds{mean_s}}};
  campaign.tiers = {{.name = "s", .interval = Seconds{1800}, .blocks = Seconds{20}}};
  campaign.recovery.restarts = Seconds{200};
  return campaign;
}

}  // namespace

TEST_CASE("portable_exp: e to the power, and the inverse of the logarithm") {
  CHECK(portable_exp(0) == 1);
  for (double x = -40; x < 40; x += 0.137) {
    CHECK(portable_exp(x) == test::near(std::exp(x)).epsilon(1e-15));
    CHECK(portable_log(portable_exp(x)) == test::near(x).epsilon(1e-14));
  }
}

TEST_CASE("student_quantile: the printed tables") {
  const std::vector<std::pair<std::size_t, double>> table{
      {1, 12.706}, {2, 4.303}, {3, 3.182}, {5, 2.571}, {10, 2.228}, {30, 2.042}, {120, 1.980}};
  for (const auto& [freedom, value] : table) {
    CAPTURE(freedom);
    CHECK(student_quantile(freedom) == test::near(value).epsilon(0.008));
  }
}

TEST_CASE("student_quantile: the terms of Abramowitz and Stegun 1964, 26.7.5") {
  // x = 1.959963984540054, of a normal distribution: g3 = (3 x^7 + 19 x^5 + 17 x^3 - 15 x) / 384.
  const double x = 1.959963984540054;
  const double g1 = (std::pow(x, 3) + x) / 4;
  const double g2 = (5 * std::pow(x, 5) + 16 * std::pow(x, 3) + 3 * x) / 96;
  const double g3 = (3 * std::pow(x, 7) + 19 * std::pow(x, 5) + 17 * std::pow(x, 3) - 15 * x) / 384;
  for (const double n : {10.0, 100.0}) {
    CAPTURE(n);
    const double rest = student_quantile(static_cast<std::size_t>(n)) - x - g1 / n - g2 / (n * n);
    CHECK(rest * n * n * n == doctest::Approx(g3).epsilon(1e-4));
  }
}

TEST_CASE("sample_mean: mean, interval and percentiles of a small sample") {
  const std::vector<double> values{4, 1, 3, 2, 5};
  const SampleMean of = sample_mean(values);
  CHECK(of.mean == test::near(3));
  CHECK(of.median == 3);
  CHECK(of.low == test::near(1.2));
  CHECK(of.high == test::near(4.8));
  CHECK(of.half_width == test::near(2.776 * std::sqrt(2.5 / 5)).epsilon(0.005));
}

TEST_CASE("sample_ratio: of sums, not of ratios, with the interval of a ratio estimator") {
  const std::vector<double> parts{1, 1}, wholes{2, 4};
  const SampleMean of = sample_ratio(parts, wholes);
  CHECK(of.mean == test::near(1.0 / 3));  // the mean of the ratios is 3 / 8
  CHECK(of.median == test::near(0.375));
  // Residuals +-1/3: their mean has a standard error of 1/3, over a mean whole of 3.
  CHECK(of.half_width == test::near(12.706204736 / 9).epsilon(1e-9));
  const std::vector<double> some{4, 1, 3, 2, 5}, fives(5, 5.0);
  const std::vector<double> shares{0.8, 0.2, 0.6, 0.4, 1};
  CHECK(sample_ratio(some, fives).mean == test::near(sample_mean(shares).mean));
  CHECK(sample_ratio(some, fives).half_width == test::near(sample_mean(shares).half_width));
}

TEST_CASE("mean time to failure: all time over all interruptions, and a bound where none is seen") {
  const MeanTimeToFailure some = mean_time_to_failure(1000, 4);
  CHECK(some.mean_s.value() == 250);
  // Half the 95 % quantile of chi-squared with 10 degrees of freedom, 18.307: Poisson's upper
  // bound.
  CHECK(some.at_least_s == test::near(1000 / (18.307 / 2)).epsilon(1e-4));
  const MeanTimeToFailure none = mean_time_to_failure(1000, 0);
  CHECK_FALSE(none.mean_s);
  CHECK(none.at_least_s == test::near(1000 / 2.9957).epsilon(1e-4));  // the rule of three
}

TEST_CASE("summary: runs without a failure count with their time") {
  Campaign campaign = campaign_of(400'000);
  campaign.horizon = to_run_time(Seconds{20'000});
  const RunSummary summary =
      summarise(campaign, sample(campaign, {.trajectories = 2000, .progress = {}}));
  CHECK(summary.interruptions.mean < 0.1);
  CHECK(summary.mttf.mean_s.value() == test::near(400'000).epsilon(0.25));
  CHECK(summary.mttf.at_least_s < *summary.mttf.mean_s);
}

TEST_CASE("sample: the same for any number of threads, and a prefix of a longer one") {
  const Campaign campaign = campaign_of(20'000);
  const auto one = sample(campaign, {.trajectories = 16, .jobs = 1, .progress = {}});
  const auto four = sample(campaign, {.trajectories = 32, .jobs = 4, .progress = {}});
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i].buckets == four[i].buckets);
}

TEST_CASE("sample: trajectories are added until the interval is as narrow as asked") {
  const Campaign campaign = campaign_of(20'000);
  const auto few = sample(campaign, {.trajectories = 8, .within = 0.5, .progress = {}});
  CHECK(few.size() == 8);
  const auto many = sample(campaign, {.trajectories = 8, .within = 0.0005, .progress = {}});
  CHECK(many.size() > 8);
  CHECK(summarise(campaign, many).goodput.half_width <= 0.0005);
  const auto most =
      sample(campaign, {.trajectories = 8, .within = 1e-9, .most = 20, .progress = {}});
  CHECK(most.size() == 20);
}

TEST_CASE("summary: shares add up to 1, and counts are those of the rates") {
  const Campaign campaign = campaign_of(20'000);
  const RunSummary summary =
      summarise(campaign, sample(campaign, {.trajectories = 200, .progress = {}}));
  double together = 0;
  for (const double share : summary.shares) together += share;
  CHECK(together == test::near(1).epsilon(1e-12));
  CHECK(summary.finished == test::near(1));
  CHECK(summary.modes[0].failures == test::near(summary.wall_s.mean / 20'000).epsilon(0.03));
}

TEST_CASE("summary: goodput is the work over the mean wall time, and the first share") {
  // About one failure a run of ten days, with a mean of five days of repair.
  Campaign campaign = campaign_of(10 * 86'400.0);
  campaign.modes[0].scope = FailureScope::node;
  campaign.spares.repair = Seconds{5 * 86'400.0};
  const RunSummary summary =
      summarise(campaign, sample(campaign, {.trajectories = 200, .progress = {}}));
  CHECK(summary.finished == test::near(1));
  CHECK(summary.wall_s.high > 1.5 * summary.wall_s.low);
  CHECK(summary.goodput.mean ==
        test::near(campaign.work.base_units() / summary.wall_s.mean).epsilon(1e-9));
  CHECK(summary.goodput.mean == test::near(summary.shares[0]).epsilon(1e-12));
}

TEST_CASE("optimum: at the best interval the overhead is Young's and Daly's, within 2 %") {
  // A checkpoint of 20 s, failures every 10 h: Young 1,200 s.
  const Campaign campaign = campaign_of(36'000);
  const IntervalOptimum found = optimise_interval(campaign, {.trajectories = 100, .progress = {}});
  CHECK(found.young.interval.base_units() == test::near(1200));
  const auto overhead = [](const IntervalPoint& point) { return 1 / point.goodput - 1; };
  CHECK(overhead(found.best) <= overhead(found.young));
  CHECK(overhead(found.best) == test::near(overhead(found.young)).epsilon(0.02));
  CHECK(overhead(found.best) == test::near(overhead(found.daly)).epsilon(0.02));
  const double closed =
      daly_time_ratio(found.daly.interval, Seconds{20}, Seconds{200}, Seconds{36'000}) - 1;
  // Three standard errors of a hundred trajectories; half of the 95 % interval is two.
  CHECK(std::abs(found.daly.goodput - 1 / (1 + closed)) < 1.5 * found.daly.half_width);
}

TEST_CASE("optimum: no interval that is tried is shorter than a step") {
  Campaign campaign = campaign_of(36'000);  // Young 1,200 s
  campaign.step = Seconds{1500};
  campaign.tiers[0].interval = Seconds{1800};
  const IntervalOptimum found = optimise_interval(campaign, {.trajectories = 10, .progress = {}});
  CHECK(found.young.interval == campaign.step);
  CHECK(found.best.interval >= campaign.step);
  for (const IntervalPoint& point : found.curve) CHECK(point.interval >= campaign.step);
}

TEST_CASE("optimum: the best interval is a whole number of steps, or the one given") {
  Campaign campaign = campaign_of(36'000);  // Young 1,200 s
  campaign.step = Seconds{400};
  campaign.tiers[0].interval = Seconds{90};
  const IntervalOptimum found =
      optimise_interval(campaign, {.trajectories = 100, .progress = {}}, Seconds{1300});
  const double steps = found.best.interval / campaign.step;
  CHECK(steps == std::round(steps));
  CHECK(found.best.interval >= Seconds{1300});
  CHECK(found.daly.interval == daly_interval(Seconds{20}, Seconds{36'000}));
}

TEST_CASE("sample: stopped early it keeps what was done, from the first on") {
  Campaign campaign;
  campaign.work = Seconds{1000};
  campaign.modes = {{.name = "bug", .scope = FailureScope::process, .mean_time = Seconds{100}}};
  int calls = 0;
  const auto some =
      sample(campaign, {.trajectories = 100, .progress = [&] { return ++calls < 10; }});
  REQUIRE(some.size() == 10);
  const auto all = sample(campaign, {.trajectories = 100, .progress = {}});
  for (std::size_t i = 0; i < some.size(); ++i) CHECK(some[i].buckets == all[i].buckets);
}

TEST_CASE("sample: a long trajectory says how far it is, and can be stopped on its way") {
  Campaign campaign;
  campaign.work = Seconds{1e6};
  campaign.modes = {{.name = "bug", .scope = FailureScope::process, .mean_time = Seconds{1}}};
  campaign.tiers = {{.name = "peers", .interval = Seconds{0.1}}};
  std::vector<double> done;
  SampleOptions options{.trajectories = 2, .progress = {}};
  options.under_way = [&](double trajectories) {
    done.push_back(trajectories);
    return done.size() < 5;
  };
  CHECK(sample(campaign, options).empty());
  REQUIRE(done.size() == 5);
  CHECK(done.front() > 0);
  CHECK(std::ranges::is_sorted(done));
  CHECK(done.back() < 1);  // it was the first, and it was not whole
  // Asked or not, it comes to the same.
  campaign.work = Seconds{3e4};
  const TrajectoryResult plain = run_trajectory(campaign, 7);
  int asked = 0;
  const TrajectoryResult watched = run_trajectory(campaign, 7, RunDetail::sums, [&](double share) {
    ++asked;
    return share >= 0;
  });
  CHECK(asked > 0);
  CHECK(watched.buckets == plain.buckets);
}

TEST_CASE("median_trajectory: as many are better as are worse") {
  std::vector<TrajectoryResult> results(5);
  const std::array<RunTime, 5> productive{50, 90, 10, 70, 30};
  for (std::size_t i = 0; i < 5; ++i) {
    results[i].wall = 100;
    results[i].buckets[0] = productive[i];
  }
  CHECK(median_trajectory(results) == 0);
}

TEST_CASE("closed forms: Daly's interval is Young's for small costs, and M for large ones") {
  CHECK(daly_interval(Seconds{1e-6}, Seconds{1e6}) / young_interval(Seconds{1e-6}, Seconds{1e6}) ==
        test::near(1).epsilon(1e-5));
  CHECK(daly_interval(Seconds{300}, Seconds{100}) == Seconds{100});
  // d / 2M = 1/4: 400 (1 + 1/6 + 1/36) - 200.
  CHECK(daly_interval(Seconds{200}, Seconds{400}).base_units() == test::near(2500.0 / 9));
  // Figures of RSC: 16,384 GPUs, 6.5 failures a thousand node-days, give 1.80 h between failures.
  Campaign rsc;
  rsc.modes = {{.name = "node", .components = 2048, .mean_time = Seconds{86400.0 / 6.5e-3}}};
  CHECK(mean_time_between_stops(rsc.modes).base_units() / 3600 == test::near(1.803).epsilon(0.001));
  rsc.modes[0].components = 16384;
  CHECK(mean_time_between_stops(rsc.modes).base_units() / 3600 ==
        test::near(0.2254).epsilon(0.001));
  CHECK(expected_ettr(Seconds{3600}, Seconds{0}, Seconds{300}, Seconds{6490}) ==
        test::near(1 - 2100.0 / 6490));
}

}  // namespace lockstep
