/// A site of round numbers, for tests that work out by hand what it does.
#pragma once

#include <memory>

#include "sim/site/site_plan.hpp"

namespace lockstep::test {

/// Machines of 10 MW at full pace and 6 MW at half of it, 2 MW while they start, 1 MW idle; PUE
/// 1.25; a day of hours in which nothing binds, energy at 0.1 USD and 400 g per kWh.
inline SitePlan hand_made_site() {
  SitePlan plan{.spec = {},
                .facility = {},
                .outside_celsius = 20,
                .usd_per_kwh = {.values = {0.1}},
                .grams_per_kwh = HourlySeries{.values = {400}},
                .table = PaceTable({{.share = 1, .speed = 1, .it = Watts{10e6}},
                                    {.share = 0.5, .speed = 0.5, .it = Watts{6e6}}}),
                .levels = {.training = Watts{10e6},
                           .waiting = Watts{5e6},
                           .starting = Watts{2e6},
                           .idle = Watts{1e6}},
                .nodes = 100,
                .reserved = 0,
                .gpu_nameplate = Watts{8e6},
                .ramp = {},
                .assumptions = {}};
  plan.facility.pue = 1.25;
  for (int hour = 0; hour < 24; ++hour) {
    SiteHour at;
    at.year = 2026;
    at.hour = hour;
    plan.spec.hours.push_back(at);
  }
  return plan;
}

/// 25 of its hundred nodes, 5 of them own; all of them, 80 own, from half past ten.
inline std::shared_ptr<const Fleet> a_quarter_at_first() {
  return std::make_shared<const Fleet>(Fleet{
      .spec = {},
      .steps = {{.at = Seconds{}, .nodes = 25, .used = 25, .own = 5, .speed = 0.25},
                {.at = Seconds{10.5 * 3600}, .nodes = 100, .used = 100, .own = 80, .speed = 1}},
      .begins = {},
      .gpus_per_node = 8,
      .waiting_node = {},
      .usd_per_kwh = 0,
      .assumptions = {}});
}

inline RunTime at_hour(double hours) { return to_run_time(Seconds{3600 * hours}); }

}  // namespace lockstep::test
