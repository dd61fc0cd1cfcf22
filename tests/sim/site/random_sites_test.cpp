// Random sites: energy, money and carbon are conserved by the hour, by the month and in sum.
#include <array>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <random>
#include <vector>

#include "sim/site/site_books.hpp"
#include "tests/sim/core/test_seed.hpp"
#include "tests/sim/site/hand_made_site.hpp"

namespace lockstep {
namespace {

using test::at_hour;
using test::hand_made_site;

constexpr double kJoulesOfKwh = 3.6e6;
constexpr double kClose = 1e-9;

class RandomSite {
 public:
  explicit RandomSite(std::uint64_t seed) : engine_(seed) {}

  double from(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53;
  }
  bool often(double chance) { return from(0, 1) < chance; }

  SitePlan plan() {
    SitePlan out = hand_made_site();
    SiteSpec& spec = out.spec;
    spec.priced = spec.counted_carbon = true;
    spec.export_usd_per_kwh = often(0.5) ? from(0, 0.1) : 0;
    spec.demand_usd_per_kw_month = often(0.7) ? from(1, 20) : 0;
    spec.solar = Watts{often(0.6) ? from(0, 30e6) : 0};
    spec.wind = Watts{often(0.4) ? from(0, 20e6) : 0};
    if (often(0.6)) spec.battery = battery();
    if (often(0.4)) spec.ramp_w_per_s = from(1e3, 1e6);
    spec.hours.clear();
    const int hours = static_cast<int>(from(24, 100));
    for (int h = 0; h < hours; ++h) spec.hours.push_back(hour(h));
    return out;
  }

  TrajectoryResult run() {
    constexpr std::array kBuckets{
        RunBucket::productive,  RunBucket::lost,      RunBucket::restart,  RunBucket::checkpoint,
        RunBucket::repair_wait, RunBucket::diagnosis, RunBucket::detection};
    TrajectoryResult out;
    double at = 0;
    const double end = from(30, 90);
    while (at < end) {
      const auto which = static_cast<std::size_t>(from(0, 2.2 * kBuckets.size()));
      out.phases.push_back(
          {at_hour(at), which < kBuckets.size() ? kBuckets.at(which) : RunBucket::productive});
      at += from(0.01, 4);
    }
    out.wall = at_hour(end);
    return out;
  }

 private:
  BatterySpec battery() {
    BatterySpec out{
        .energy_mwh = from(0.5, 30), .power = Watts{from(0.5e6, 15e6)}, .efficiency = from(0.7, 1)};
    if (often(0.5)) out.charge_power = Watts{from(0.1e6, 5e6)};
    if (often(0.2)) out.shave_above = Watts{from(2e6, 14e6)};
    if (often(0.3)) out.shave_lowest = !out.shave_above;
    if (often(0.5)) {
      out.charge_below = from(0, 0.1);
      out.discharge_above = from(0.12, 0.3);
    }
    return out;
  }
  SiteHour hour(int h) {
    SiteHour out;
    out.year = 2026;
    out.month = 1 + h / 30;
    out.hour = h % 24;
    out.usd_per_kwh = often(0.1) ? from(-0.1, 0) : from(0.02, 0.3);
    out.grams_per_kwh = from(0, 800);
    out.solar = often(0.5) ? from(0, 1) : 0;
    out.wind = from(0, 1);
    if (often(0.4)) out.limit = Watts{from(0, 16e6)};
    return out;
  }

  std::mt19937_64 engine_;
};

void check_energy(const SiteAmounts& of) {
  const double in = (of.imported + of.renewable + of.battery_out + of.generated).base_units();
  const double out = (of.facility + of.battery_in + of.given_away).base_units();
  CHECK(in == doctest::Approx(out).epsilon(kClose));
}

/// Money of an hour: what is bought at its tariff, less what is given away at the export's price.
double usd_of(const SitePlan& plan, const SiteHourBook& hour, const SiteHour& said) {
  return hour.of.imported.base_units() / kJoulesOfKwh * said.usd_per_kwh -
         hour.of.given_away.base_units() / kJoulesOfKwh * plan.spec.export_usd_per_kwh;
}

/// What is stored after each hour never leaves the battery's bounds.
class HeldBattery {
 public:
  explicit HeldBattery(const SitePlan& plan) : spec_(plan.spec.battery) {
    if (spec_) stored_ = full_ = spec_->energy_mwh * 3.6e9;
  }
  void after(const SiteHourBook& hour) {
    const double in = hour.of.battery_in.base_units(), out = hour.of.battery_out.base_units();
    if (!spec_) {
      CHECK(in == 0);
      CHECK(out == 0);
      return;
    }
    const double most = spec_->power.base_units() * hour.length.base_units() * (1 + kClose);
    CHECK(in <= most);
    CHECK(out <= most);
    stored_ += spec_->efficiency * in - out;
    CHECK(stored_ >= -kClose * full_);
    CHECK(stored_ <= full_ * (1 + kClose));
  }
  /// What the books say of the run's ends closes its balance.
  void meets(const SiteBooks& books) const {
    CHECK(books.battery_begin.has_value() == spec_.has_value());
    CHECK(books.battery_end.has_value() == spec_.has_value());
    if (!spec_) return;
    CHECK(books.battery_begin->base_units() == doctest::Approx(full_).epsilon(kClose));
    const double kept =
        (*books.battery_begin + spec_->efficiency * books.sum.battery_in - books.sum.battery_out)
            .base_units();
    CHECK(std::abs(books.battery_end->base_units() - kept) <= kClose * full_);
  }

 private:
  std::optional<BatterySpec> spec_;
  double stored_ = 0, full_ = 0;
};

void check_sums(const SiteAmounts& a, const SiteAmounts& b) {
  for (const auto member :
       {&SiteAmounts::machines, &SiteAmounts::facility, &SiteAmounts::renewable,
        &SiteAmounts::battery_in, &SiteAmounts::battery_out, &SiteAmounts::imported,
        &SiteAmounts::given_away, &SiteAmounts::short_of}) {
    CHECK((a.*member).base_units() == doctest::Approx((b.*member).base_units()).epsilon(kClose));
  }
  CHECK(a.energy_usd == doctest::Approx(b.energy_usd).epsilon(kClose));
  CHECK(*a.grams == doctest::Approx(*b.grams).epsilon(kClose));
}

void check_months(const SitePlan& plan, const SiteBooks& books) {
  SiteAmounts sum;
  double demand = 0;
  std::size_t h = 0;
  for (const SiteMonthBook& month : books.months) {
    check_energy(month.of);
    sum += month.of;
    double highest = 0;
    const auto in =
        std::chrono::year{month.year} / std::chrono::month{static_cast<unsigned>(month.month)};
    for (; h < books.hours.size() && plan.month(static_cast<std::int64_t>(h)) == in; ++h) {
      const SiteHourBook& hour = books.hours[h];
      highest = std::max(highest, (hour.of.imported / hour.length).base_units());
    }
    CHECK(month.peak.base_units() == doctest::Approx(highest).epsilon(kClose));
    demand += highest / 1e3 * plan.spec.demand_usd_per_kw_month;
  }
  check_sums(sum, books.sum);
  CHECK(books.demand_usd == doctest::Approx(demand).epsilon(kClose));
  CHECK(books.usd() == doctest::Approx(sum.energy_usd + demand).epsilon(kClose));
}

}  // namespace

TEST_CASE("random sites: energy, money and carbon are conserved by hour, by month and in sum") {
  constexpr int kSites = 60;
  for (int i = 0; i < kSites; ++i) {
    const std::uint64_t seed = test::test_seed() + static_cast<std::uint64_t>(i);
    CAPTURE(seed);
    RandomSite random(seed);
    const SitePlan plan = random.plan();
    const TrajectoryResult run = random.run();
    const SiteBooks books = site_books(plan, run, 0);
    SiteAmounts sum;
    Seconds length;
    HeldBattery battery(plan);
    for (std::size_t h = 0; h < books.hours.size(); ++h) {
      CAPTURE(h);
      const SiteHourBook& hour = books.hours[h];
      const SiteHour& said = plan.hour(static_cast<std::int64_t>(h));
      check_energy(hour.of);
      battery.after(hour);
      CHECK(hour.of.facility.base_units() ==
            doctest::Approx(1.25 * hour.of.machines.base_units()).epsilon(kClose));
      CHECK(hour.of.energy_usd == doctest::Approx(usd_of(plan, hour, said)).epsilon(kClose));
      const double kwh = hour.of.imported.base_units() / kJoulesOfKwh;
      CHECK(*hour.of.grams == doctest::Approx(kwh * said.grams_per_kwh).epsilon(kClose));
      // No more is taken than the grid gives, but for what is told as short.
      const double room = (said.limit * hour.length + hour.of.short_of).base_units();
      CHECK(hour.of.imported.base_units() <= room * (1 + kClose) + 1);
      sum += hour.of;
      length += hour.length;
    }
    CHECK(length.base_units() ==
          doctest::Approx(to_seconds(run.wall).base_units()).epsilon(kClose));
    check_sums(sum, books.sum);
    check_months(plan, books);
    battery.meets(books);
  }
}

}  // namespace lockstep
