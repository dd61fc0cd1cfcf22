#include "tools/views/run/battery_words.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <optional>

#include "models/base/number_text.hpp"
#include "sim/answer/site_limit.hpp"

namespace lockstep {
namespace {

constexpr double kStoredMwh = 3.6e9;

std::string stored_text(Joules energy) {
  return significant(energy.base_units() / kStoredMwh) + " MWh";
}

/// What the battery was to keep the grid's power below, and how far it did.
struct ShavedHours {
  Watts low, high;        ///< of the months
  Watts highest;          ///< hour from the grid, of those that are above
  std::size_t above = 0;  ///< hours
};

std::optional<ShavedHours> shaved_hours(const SiteBooks& books) {
  constexpr double kRounding = 1e-6;
  std::optional<ShavedHours> out;
  for (const SiteHourBook& hour : books.hours) {
    if (!std::isfinite(hour.shave_above.base_units())) continue;
    if (!out) out = ShavedHours{.low = hour.shave_above, .high = hour.shave_above, .highest = {}};
    out->low = std::min(out->low, hour.shave_above);
    out->high = std::max(out->high, hour.shave_above);
    const Watts taken = hour.of.imported / hour.length;
    if (taken <= (1 + kRounding) * hour.shave_above) continue;
    out->highest = std::max(out->highest, taken);
    ++out->above;
  }
  return out;
}

/// "11.2 MW to 12.4 MW, by month".
std::string level_text(const ShavedHours& of) {
  const std::string from = power_text(of.low), to = power_text(of.high);
  return from == to ? from : from + " to " + to + ", by month";
}

}  // namespace

std::vector<std::string> battery_words(const SiteAnswer& site) {
  const std::optional<BatterySpec>& battery = site.plan->spec.battery;
  const SiteBooks& books = site.books;
  if (!battery || !books.battery_end) return {};
  std::vector<std::string> out{fmt::format(
      "the battery is full at the start, with {} that nobody paid for, and has {} at the end",
      stored_text(*books.battery_begin), stored_text(*books.battery_end))};
  const std::optional<ShavedHours> shaved = shaved_hours(books);
  if (!shaved) return out;
  const std::string level = level_text(*shaved);
  out.push_back(shaved->above == 0
                    ? "it stands in for what is above " + level
                    : fmt::format("it aims at {}; the highest hour was {}, {} above", level,
                                  power_text(shaved->highest),
                                  counted(static_cast<double>(shaved->above), "hour")));
  if (battery->shave_lowest) {
    out.back() += "; planned over whole calendar months, of which the run may have only a part";
  }
  if (shaved->above > 0 && battery->discharge_above) {
    out.push_back(
        fmt::format("a tariff from {:g} USD per kWh on empties it too: what it gives then, peaks "
                    "lack (run.site.battery.discharge_above_usd_per_kwh)",
                    *battery->discharge_above));
  }
  if (books.power.grid && shaved->low >= *books.power.grid) {
    out.push_back(fmt::format("that is no less than the {} that the grid gives: it shaves nothing",
                              power_text(*books.power.grid)));
  }
  return out;
}

std::string restart_ramp_words(const SitePlan& plan) {
  return fmt::format(
      "each restart takes {} longer, half of a start of {} at the ramp; that is in the time of "
      "restarts",
      duration_text((plan.ramp.start / 2).base_units()),
      duration_text(plan.ramp.start.base_units()));
}

}  // namespace lockstep
