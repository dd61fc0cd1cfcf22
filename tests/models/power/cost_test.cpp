#include "models/power/cost.hpp"

#include <doctest/doctest.h>
#include <string>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

constexpr double kHour = 3600;
constexpr double kYear = 365.25 * 24 * kHour;

std::string problem(std::string_view text) {
  try {
    (void)parse_hourly("tariff.csv", text, 10);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("HourlySeries: repeats, and integrates exactly across hours") {
  const HourlySeries constant{.values = {3}};
  CHECK(constant.integral(Seconds{10}, Seconds{14}) == 12);
  const HourlySeries two{.values = {1, 5}};
  CHECK(two.at(Seconds{3599}) == 1);
  CHECK(two.at(Seconds{3600}) == 5);
  CHECK(two.at(Seconds{7200}) == 1);
  CHECK(two.integral(Seconds{}, Seconds{7200}) == doctest::Approx(6 * kHour));
  CHECK(two.integral(Seconds{1800}, Seconds{5400}) == doctest::Approx(1800 + 5 * 1800));
  CHECK(two.integral(Seconds{7200 * 1000.0}, Seconds{7200 * 1000.0 + 3600}) ==
        doctest::Approx(3600));
  CHECK(two.integral(Seconds{5}, Seconds{5}) == 0);
}

TEST_CASE("parse_hourly: prices below zero where they may be, and nowhere else") {
  CHECK(parse_hourly("t.csv", "0,0.05\n1,-0.02", 10, -10).values == std::vector{0.05, -0.02});
  CHECK(problem("0,4\n1,-2") ==
        "tariff.csv:2: found \"-2\"; allowed: a number from 0 to 10 for each hour");
}

TEST_CASE("parse_hourly: the last column, with a heading, comments and empty lines") {
  const HourlySeries series =
      parse_hourly("t.csv", "hour,usd\n0,0.5\n# night\n\n1;0.25\r\n2, 1", 10);
  CHECK(series.values == std::vector<double>{0.5, 0.25, 1});
  CHECK(problem("0.1\nx\n") ==
        "tariff.csv:2: found \"x\"; allowed: a number from 0 to 10 for each hour");
  CHECK(problem("1\n11\n").starts_with("tariff.csv:2: found \"11\""));
  CHECK(problem("1\n-1\n").starts_with("tariff.csv:2: found \"-1\""));
  CHECK(problem("1\nnan\n").starts_with("tariff.csv:2"));
  CHECK(problem("heading\n").starts_with("tariff.csv: found no number"));
}

TEST_CASE("cost_of: straight-line capital, energy, people, hosting, and a cloud's price") {
  CostSpec prices;
  prices.usd_per_gpu = 1000;
  prices.usd_per_node = 500;
  prices.usd_per_100g_port = 10;
  prices.usd_per_facility_w = 2;
  prices.years = 2;
  prices.utilisation = 0.5;
  prices.people_usd_per_hour = 3;
  prices.hosting_usd_per_kw_month = 100;
  prices.usd_per_gpu_hour = 4;
  const Holdings holdings{.gpus = 8, .nodes = 1, .ports_100g = 32, .facility_peak = Watts{10'000}};
  const Usage usage{.time = Seconds{kYear / 12},
                    .energy = Joules{1},
                    .energy_usd = 77,
                    .grams = 2.5e6,
                    .tokens = 1e12,
                    .model_flops = Flops{2e18}};
  const CostReport cost = cost_of(prices, holdings, usage);
  // A month of a life of one busy year.
  CHECK(cost.gpus_usd == doctest::Approx(8000.0 / 12));
  CHECK(cost.nodes_usd == doctest::Approx(500.0 / 12));
  CHECK(cost.network_usd == doctest::Approx(320.0 / 12));
  CHECK(cost.building_usd == doctest::Approx(20'000.0 / 12));
  CHECK(cost.energy_usd == 77);
  CHECK(cost.people_usd == doctest::Approx(3 * 365.25 * 2));
  CHECK(cost.hosting_usd == doctest::Approx(1000));
  CHECK(*cost.cloud_usd == doctest::Approx(4 * 8 * 365.25 * 2));
  CHECK(cost.tonnes_co2 == 2.5);
  CHECK(cost.usd_per_trillion_tokens == doctest::Approx(cost.total_usd()));
  CHECK(cost.usd_per_eflop == doctest::Approx(cost.total_usd() / 2));
}

TEST_CASE("money_of: owning takes the price of the machines, and a tariff alone is energy only") {
  CostSpec prices;
  CHECK_FALSE(money_of(nullptr, false));
  CHECK_FALSE(money_of(&prices, false));
  CHECK(money_of(nullptr, true) == MoneyOf::rent);
  prices.usd_per_kwh = {.values = {0.08}};
  CHECK_FALSE(prices_machines(prices));
  CHECK(money_of(&prices, false) == MoneyOf::partial);
  CHECK(money_of(&prices, true) == MoneyOf::rent);
  CHECK(words_of(MoneyOf::partial, &prices) == "energy only");
  prices.people_usd_per_hour = 1;
  prices.usd_per_facility_w = 1;
  CHECK(words_of(MoneyOf::partial, &prices) == "building, energy and people only");
  CHECK(words_of(MoneyOf::rent, &prices) == "rented");
  prices.usd_per_node = 1;
  CHECK(money_of(&prices, true) == MoneyOf::owned);
}

TEST_CASE("cost_of: nothing costs nothing") {
  const CostReport cost = cost_of({}, {}, {});
  CHECK(cost.total_usd() == 0);
  CHECK_FALSE(cost.cloud_usd);
  CHECK_FALSE(cost.tonnes_co2);  // unknown, not none: nobody said the grid's intensity
  CHECK(cost.usd_per_eflop == 0);
}

}  // namespace lockstep
