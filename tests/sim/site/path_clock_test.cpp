#include "sim/site/path_clock.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <vector>

#include "sim/site/site_availability.hpp"
#include "sim/site/site_books.hpp"
#include "sim/site/standby_figures.hpp"
#include "tests/sim/site/hand_made_site.hpp"

namespace lockstep {
namespace {

using test::at_hour;

constexpr Watts kNodePower{0.1e6};

/// A line that is lost about once a day for two minutes on average, a UPS whose batteries carry its
/// 20 MW for a minute, and 100 nodes that take half of it: they last two minutes.
std::vector<PowerPart> line_and_ups() {
  const UnitBank line{
      .name = "line", .units = 1, .mean_time = Seconds{86'400}, .repair = Seconds{120}, .crews = 0};
  const UnitBank ups{.name = "UPS", .units = 1, .mean_time = {}, .repair = Seconds{1}, .crews = 0};
  return {{.bank = line, .capacity = {}, .from = {}, .nodes = 0, .bridge = {}, .generator = {}},
          {.bank = ups,
           .capacity = Watts{20e6},
           .from = {0},
           .nodes = 100,
           .bridge = Seconds{60},
           .generator = {}}};
}

/// The same with generators of 2.5 MW, of which the nodes take four.
std::vector<PowerPart> with_generators(int units, const GeneratorLaw& law) {
  const UnitBank bank{
      .name = "generator", .units = units, .mean_time = {}, .repair = Seconds{1}, .crews = 0};
  std::vector<PowerPart> path = line_and_ups();
  path.insert(path.begin() + 1, {.bank = bank,
                                 .capacity = Watts{2.5e6},
                                 .from = {},
                                 .nodes = 0,
                                 .bridge = {},
                                 .generator = law});
  path.back().from = {0, 1};
  return path;
}

StandbyRecord after_days(const std::vector<PowerPart>& path, int days) {
  PathClock clock(path, kNodePower, 5, 0);
  clock.advance(at_hour(24.0 * days));
  return clock.record();
}

/// Of many outages so many are not covered, within four standard deviations.
void check_uncovered(const StandbyRecord& seen, double share) {
  const double n = seen.outages;
  CHECK(n > 9'000);
  CHECK(std::abs(seen.uncovered / n - share) < 4 * std::sqrt(share * (1 - share) / n));
}

}  // namespace

TEST_CASE("path clock: batteries carry what is missing until their energy is used up") {
  const std::vector<PowerPart> path = line_and_ups();
  PathClock clock(path, kNodePower, 5, 0);
  int lost = 0;
  RunTime now = 0, since = 0;
  int outages = 0;
  while (now < at_hour(24.0 * 200)) {
    now = clock.next_at();
    clock.advance(now);
    if (clock.record().outages > outages) {
      outages = clock.record().outages;
      since = now;
      CHECK(clock.got().nodes == 100);
    } else if (clock.got().nodes == 0) {
      ++lost;
      // A path brings enough where a watt is missing of 10 MW.
      CHECK(to_seconds(now - since).base_units() == doctest::Approx(120).epsilon(2e-7));
    }
  }
  CHECK(lost == clock.record().uncovered);
  CHECK(lost > 0);
  CHECK(lost < outages);
}

TEST_CASE("path clock: so many outages outlast batteries alone") {
  check_uncovered(after_days(line_and_ups(), 10'000), std::exp(-1.0));
}

TEST_CASE("path clock: with generators, those in which too few start or the fuel is used up") {
  const GeneratorLaw law{.start = Seconds{15}, .fails_to_start = 0.3, .fuel = {}};
  std::vector<PowerPart> path = with_generators(1, law);
  path[1].capacity = Watts{10e6};
  check_uncovered(after_days(path, 10'000), 0.3 * std::exp(-1.0));
  path[1].generator->fuel = Seconds{60};
  // A minute more, then what is left of the batteries.
  check_uncovered(after_days(path, 10'000), 0.3 * std::exp(-1.0) + 0.7 * std::exp(-1.5));
  const StandbyRecord seen = after_days(path, 10'000);
  CHECK(seen.starts == seen.outages);
  CHECK(std::abs(seen.failed_starts - 0.3 * seen.starts) < 4 * std::sqrt(0.21 * seen.starts));
}

TEST_CASE("path clock: generators that start carry their part, and batteries last longer") {
  // Of five four are needed. Where i start, i / 4 of the load is theirs after 15 s, and batteries
  // last 15 s + 105 s / (1 - i / 4).
  const GeneratorLaw law{.start = Seconds{15}, .fails_to_start = 0.3, .fuel = {}};
  double share = 0;
  for (int i = 0; i < 4; ++i) {
    const double exactly = enough_start(5, i, 0.3) - enough_start(5, i + 1, 0.3);
    share += exactly * std::exp(-(15 + 105 / (1 - i / 4.0)) / 120);
  }
  check_uncovered(after_days(with_generators(5, law), 10'000), share);
}

TEST_CASE("path clock: a generator that is too late leaves nodes without power until it runs") {
  const GeneratorLaw late{.start = Seconds{180}, .fails_to_start = 0, .fuel = {}};
  const std::vector<PowerPart> path = with_generators(4, late);
  check_uncovered(after_days(path, 10'000), std::exp(-1.0));
  PathClock clock(path, kNodePower, 5, 0);
  bool ran = false;
  for (RunTime now = 0; now < at_hour(24.0 * 100); clock.advance(now = clock.next_at())) {
    ran = ran || clock.generated() > 0;
    if (clock.generated() <= 0) continue;
    CHECK(clock.generated() == doctest::Approx(1));
    CHECK(clock.got().nodes == 100);
  }
  CHECK(ran);
}

TEST_CASE("standby figures: closed forms of a site, and what its books say of generators") {
  SitePlan plan = test::hand_made_site();  // 10 MW for 100 nodes
  plan.spec.path =
      with_generators(5, {.start = Seconds{15}, .fails_to_start = 0.1, .fuel = Seconds{3600}});
  const std::optional<StandbyFigures> of = standby_figures(plan);
  REQUIRE(of);
  CHECK(of->stored.base_units() == doctest::Approx(20e6 * 60));
  CHECK(of->bridge.base_units() == doctest::Approx(120));
  CHECK(of->generators.base_units() == doctest::Approx(12.5e6));
  const double starts = std::pow(0.9, 5) + 5 * std::pow(0.9, 4) * 0.1;
  CHECK(of->starts == doctest::Approx(starts));
  REQUIRE(of->blackouts);
  CHECK(of->blackouts->per_year == doctest::Approx(365.25 * 86'400 / (86'400 + 120)));
  CHECK(of->blackouts->lasts.base_units() == doctest::Approx(120));
  CHECK(of->blackouts->uncovered ==
        doctest::Approx((1 - starts) * std::exp(-1.0) + starts * std::exp(-31.0)));
  plan.spec.path[1].bank.mean_time = Seconds{900};  // broken every second time
  plan.spec.path[1].bank.repair = Seconds{900};
  CHECK(standby_figures(plan)->starts ==
        doctest::Approx(std::pow(0.45, 5) + 5 * std::pow(0.45, 4) * 0.55));
  plan.spec.path = {{.bank = plan.spec.path[0].bank,
                     .capacity = {},
                     .from = {},
                     .nodes = 100,
                     .bridge = {},
                     .generator = {}}};
  CHECK_FALSE(standby_figures(plan));
}

TEST_CASE("availability with standby: as much of a long run as the closed form says") {
  // Blackouts of 2 min on average, that batteries bridge for as long: with generators that start in
  // time, that are too late, that have fuel for a minute, and without any.
  const auto law = [](double start, double fuel) {
    return GeneratorLaw{.start = Seconds{start}, .fails_to_start = 0.3, .fuel = Seconds{fuel}};
  };
  std::vector<std::vector<PowerPart>> paths{
      with_generators(1, law(15, 0)), with_generators(1, law(200, 0)),
      with_generators(1, law(200, 60)), with_generators(1, law(15, 60)), line_and_ups()};
  double without_any = 0;
  for (std::vector<PowerPart>& path : paths) {
    SitePlan plan = test::hand_made_site();  // 10 MW for 100 nodes
    path[0].bank.mean_time = Seconds{3600};
    if (path[1].generator) path[1].capacity = Watts{10e6};
    plan.spec.path = path;
    TrajectoryResult run;
    run.phases = {{0, RunBucket::productive}};
    run.wall = at_hour(20'000);
    const SiteBooks books = site_books(plan, run, 3);
    const SiteAvailability of = site_availability(plan, books.hours.size());
    REQUIRE(of.all_with_standby);
    CHECK(*of.path == doctest::Approx(3600.0 / 3720).epsilon(1e-9));
    CHECK(*of.all_with_standby == doctest::Approx(*of.path_with_standby).epsilon(1e-12));
    CHECK(*of.path_with_standby > *of.path);
    // Some 19,000 blackouts, of which a tenth or more leave machines without, for 2 min each, give
    // or take as long: within four standard deviations of their sum.
    const double without = 1 - *of.all_with_standby;
    CHECK(std::abs(1 - books.unbound_share() - without) <
          4 * without * std::sqrt(2.0 / (19'000 * 0.1)));
    without_any = std::max(without_any, without);
  }
  // A path brings enough where a watt is missing of 10 MW: 2e-7 more of the batteries' time.
  CHECK(without_any == doctest::Approx(120.0 / 3720 * std::exp(-1.0)).epsilon(1e-6));
}

TEST_CASE("availability with standby: other losses in the path count whole") {
  SitePlan plan = test::hand_made_site();
  plan.spec.path = line_and_ups();
  plan.spec.path[1].bank.mean_time = Seconds{9 * 3600};  // the UPS itself: up nine tenths
  plan.spec.path[1].bank.repair = Seconds{3600};
  const double line = 86'400.0 / 86'520;
  const SiteAvailability of = site_availability(plan, 24);
  CHECK(of.path.value() == doctest::Approx(0.9 * line).epsilon(1e-9));
  CHECK(of.path_with_standby.value() ==
        doctest::Approx(0.9 * (line + (1 - line) * (1 - std::exp(-1.0)))).epsilon(1e-9));
  plan.spec.path[1].bridge = {};
  CHECK_FALSE(site_availability(plan, 24).path_with_standby.has_value());
}

TEST_CASE("books: what generators give is not taken from the grid, and energy balances") {
  SitePlan plan = test::hand_made_site();
  plan.spec.path = with_generators(4, {.start = Seconds{15}, .fails_to_start = 0, .fuel = {}});
  plan.spec.path[0].bank.mean_time = Seconds{4 * 3600.0};
  plan.spec.path[0].bank.repair = Seconds{3600};
  TrajectoryResult run;
  run.phases = {{0, RunBucket::productive}};
  run.wall = at_hour(1000);
  const SiteBooks books = site_books(plan, run, 2);
  const SiteAmounts& sum = books.sum;
  CHECK(books.standby.outages > 100);
  CHECK(books.standby.uncovered == 0);
  CHECK(sum.facility / (Watts{12.5e6} * Seconds{3.6e6}) == doctest::Approx(1));
  CHECK(sum.generated / (books.generators_ran * Watts{12.5e6}) == doctest::Approx(1));
  CHECK((sum.imported + sum.generated) / sum.facility == doctest::Approx(1).epsilon(1e-12));
  // A fifth of the time, within four standard deviations of 200 outages.
  CHECK(sum.generated / sum.facility == doctest::Approx(0.2).epsilon(0.4));
  CHECK(sum.fuel_usd == 0);
}

TEST_CASE("books: fuel is paid for and emits by what generators give, the grid by the rest") {
  SitePlan plan = test::hand_made_site();  // 0.1 USD and 400 g a kWh from the grid
  plan.spec.path = with_generators(
      4, {.start = {}, .fails_to_start = 0, .fuel = {}, .usd_per_kwh = 0.35, .grams_per_kwh = 700});
  plan.spec.path[0].bank.mean_time = Seconds{4 * 3600.0};
  plan.spec.path[0].bank.repair = Seconds{3600};
  TrajectoryResult run;
  run.phases = {{0, RunBucket::productive}};
  run.wall = at_hour(200);
  const SiteBooks books = site_books(plan, run, 2);
  REQUIRE(books.sum.generated > Joules{});
  double usd = 0;
  for (const SiteHourBook& hour : books.hours) {
    const double bought = hour.of.imported.base_units() / 3.6e6;
    const double made = hour.of.generated.base_units() / 3.6e6;
    CHECK(hour.of.fuel_usd == doctest::Approx(0.35 * made).epsilon(1e-9));
    CHECK(hour.of.energy_usd == doctest::Approx(0.1 * bought + 0.35 * made).epsilon(1e-9));
    REQUIRE(hour.of.grams);
    CHECK(*hour.of.grams == doctest::Approx(400 * bought + 700 * made).epsilon(1e-9));
    usd += hour.of.energy_usd;
  }
  CHECK(books.sum.energy_usd == doctest::Approx(usd).epsilon(1e-9));
  CHECK(site_bill(plan, books).usd == doctest::Approx(usd).epsilon(1e-9));
}

TEST_CASE("path clock: two kinds of generators share what they give by the capacity that runs") {
  std::vector<PowerPart> path = with_generators(
      3, {.start = {}, .fails_to_start = 0, .fuel = {}, .usd_per_kwh = 0.2, .grams_per_kwh = {}});
  PowerPart dear = path[1];
  dear.bank.name = "gas";
  dear.bank.units = 1;
  dear.generator->usd_per_kwh = 0.6;
  dear.generator->grams_per_kwh = 400;
  path.insert(path.begin() + 2, dear);
  path[3].from = {0, 1, 2};  // the UPS
  PathClock clock(path, kNodePower, 5, 0);
  bool ran = false;
  for (int i = 0; i < 200; ++i) {
    clock.advance(clock.next_at());
    if (clock.generated() <= 0) continue;
    ran = true;
    CHECK(clock.fuel().usd_per_kwh == doctest::Approx((3 * 0.2 + 0.6) / 4));
    CHECK(clock.fuel().grams_per_kwh == doctest::Approx(100));
  }
  CHECK(ran);
}

}  // namespace lockstep
