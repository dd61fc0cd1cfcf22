// Reads "site" of a long run: sim/scenario/site_spec.hpp.
#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <string>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/text_file.hpp"
#include "models/site/weather.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/drawn_weather.hpp"
#include "sim/scenario/hourly_file.hpp"
#include "sim/scenario/run_spec.hpp"

namespace lockstep {
namespace {

constexpr int kYearHours = 8760;
constexpr int kMostUnits = 100'000;
constexpr int kMostWeatherSeed = 2'000'000'000;
constexpr std::size_t kMostParts = 200, kMostWindows = 100, kMostFeeding = 16, kMostLoopStages = 8;
constexpr Interval kSitePower{0, 1e12, true};
constexpr Interval kUnitTime{1, 1e12};
constexpr Interval kPlantUsd{0, 1e6};
constexpr Interval kRepairTime{1, 1e9};
constexpr std::string_view kWhatTime = "a time like 2026-07-01T00:00";

/// Hours of every day in which the grid gives less.
struct CurtailedHours {
  int from = 0, hours = 1, first_month = 1, last_month = 12;
  Watts limit;

  [[nodiscard]] bool has(const SiteHour& at) const {
    const bool month = first_month <= last_month
                           ? at.month >= first_month && at.month <= last_month
                           : at.month >= first_month || at.month <= last_month;
    return month && (at.hour - from + 24) % 24 < hours;
  }
};

/// What is read before the hours are put together.
struct SiteDraft {
  std::optional<CivilTime> start;
  std::optional<HourlyFile> file;
  std::optional<DrawnWeather> weather;
  std::uint64_t weather_seed = 1;
  std::vector<CurtailedHours> curtailed;
  std::optional<Watts> limit;
  std::optional<double> latitude;
};

CivilTime read_time(const JsonCursor& at) {
  const auto time = parse_civil_time(at.string());
  if (!time) at.fail(std::string(kWhatTime));
  return *time;
}

void declare_wave(const DeclaredMembers& member, HeatWave& out) {
  member.required("start", text_type(), "Its first hour: 2026-07-20T00:00",
                  [&](const JsonCursor& at) { out.start = read_time(at).local; });
  member.required("days", out.days, Interval{0, 366, true}, "How long it lasts");
  member.required("kelvin", out.kelvin, Interval{0, 40}, "Warmer than it would be, all the time");
}

void declare_weather(const DeclaredMembers& member, SiteDraft& draft) {
  DrawnWeather out;
  member.required("mean_celsius", out.mean_celsius, Interval{-40, 50}, "Of a year");
  member.optional("yearly_kelvin", out.yearly_kelvin, Interval{0, 40},
                  "Summer's mean over the year's; default: 10");
  member.optional("daily_kelvin", out.daily_kelvin, Interval{0, 30},
                  "An afternoon over the day's mean; default: 5");
  member.optional("noise_kelvin", out.noise_kelvin, Interval{0, 20},
                  "Standard deviation of the rest; default: 3");
  member.optional("lasts_hours", out.lasts_hours, Interval{0, 1000},
                  "In which the rest's correlation falls by e; default: 48");
  member.optional("humidity", out.humidity, Dimension::share, kShare,
                  "Relative, at a day's mean temperature; default: 50 %");
  member.optional("warmest_day", out.warmest_day, 1, 366, "Of the year; default: 200");
  member.optional("seed", integer_type(0, kMostWeatherSeed), "Of the noise; default: 1",
                  [&](const JsonCursor& at) {
                    draft.weather_seed =
                        static_cast<std::uint64_t>(at.integer(0, kMostWeatherSeed));
                  });
  member.optional(
      "waves", kMostWindows, "", "Heat waves",
      [](const DeclaredMembers& one) {
        HeatWave wave;
        declare_wave(one, wave);
      },
      [&](const JsonCursor& list) {
        for (const JsonCursor& at : list.elements(kMostWindows)) {
          HeatWave wave;
          declare_wave({at, Extent::whole}, wave);
          at.finish();
          out.waves.push_back(wave);
        }
      });
  draft.weather = out;
}

void declare_curtailed(const DeclaredMembers& member, CurtailedHours& out) {
  member.required("from_hour", out.from, 0, 23, "Of the local clock");
  member.required("hours", out.hours, 1, 24, "From there on");
  member.required("limit", out.limit, Interval{0, 1e12}, "What the grid gives then");
  member.optional("first_month", out.first_month, 1, 12, "Default: 1");
  member.optional("last_month", out.last_month, 1, 12, "Default: 12");
}

void declare_battery(const DeclaredMembers& member, BatterySpec& out) {
  member.required("energy_mwh", out.energy_mwh, Interval{0, 1e6, true}, "That it gives when full");
  member.required("power", out.power, kSitePower, "In and out, at most");
  member.optional("efficiency", out.efficiency, Dimension::share, Interval{0.1, 1},
                  "Energy out over energy in; default: 90 %");
  member.optional("charge_power", out.charge_power, kSitePower,
                  "From the grid, at most; default: power");
  member.optional("charge_below_usd_per_kwh", out.charge_below, Interval{-1e3, 1e3},
                  "Tariff up to which it is charged; default: whenever the limit leaves room");
  member.optional("discharge_above_usd_per_kwh", out.discharge_above, Interval{-1e3, 1e3},
                  "Tariff from which it stands in for the grid; default: only where the grid gives "
                  "too little");
  member.optional("shave_above", out.shave_above, kSitePower,
                  "It stands in for what is taken from the grid above that, and is charged below");
  member.optional("shave_peak", out.shave_lowest,
                  "The same above the lowest power that it can hold over each calendar month, if "
                  "the job trains all the time: for demand_usd_per_kw_month. Default: false");
  member.optional("usd_per_kwh", out.usd_per_kwh, kPlantUsd,
                  "Price of its cells, by the energy that it gives when full; default: nothing");
  member.optional("usd_per_kw", out.usd_per_kw, kPlantUsd,
                  "Price of its inverters, by its power; default: nothing");
  const JsonCursor* from = member.object();
  if (from != nullptr && out.shave_above && out.shave_lowest) {
    from->at("shave_peak").fail("false beside shave_above: it finds what that says");
  }
  if (from == nullptr || !out.charge_below || !out.discharge_above) return;
  if (*out.charge_below <= *out.discharge_above) return;
  from->at("charge_below_usd_per_kwh")
      .fail("at most " + plain_number(*out.discharge_above) + " (discharge_above_usd_per_kwh)");
}

void declare_bank(const DeclaredMembers& member, UnitBank& out) {
  member.optional("mean_time", out.mean_time, kUnitTime,
                  "Of a unit until it fails, exponential; default: never");
  member.optional("repair", out.repair, kRepairTime, "Mean, exponential; default: 1 d");
  member.optional("crews", out.crews, 0, kMostUnits, "Repairs at a time; 0: as many as needed");
}

void declare_stage(const DeclaredMembers& member, CoolingStage& out) {
  member.required("name", out.bank.name, "");
  member.required("units", out.bank.units, 1, kMostUnits, "Pumps, heat exchangers or CDUs");
  member.required("unit_heat", out.unit_heat, kSitePower, "That each carries at the approach");
  member.required("approach_kelvin", out.approach_kelvin, Interval{0, 60},
                  "By which coolant gets warmer across it, at unit_heat");
  declare_bank(member, out.bank);
}

void read_loop(const JsonCursor& list, std::vector<CoolingStage>& out) {
  for (const JsonCursor& at : list.elements(kMostLoopStages)) {
    CoolingStage stage;
    declare_stage({at, Extent::whole}, stage);
    const auto named = [&](const CoolingStage& of) { return of.bank.name == stage.bank.name; };
    if (stage.bank.name == "cooling" || std::ranges::any_of(out, named)) {
      at.at("name").fail("a name that no other units of the cooling have");
    }
    at.finish();
    out.push_back(stage);
  }
}

void declare_cooling(const DeclaredMembers& member, CoolingPlant& out) {
  CoolingLaw& law = out.law;
  member.required("units", out.bank.units, 1, kMostUnits, "Dry coolers, towers or chillers");
  member.required("unit_heat", law.unit_heat, kSitePower,
                  "That each carries at the approach; of chillers, at the most");
  declare_bank(member, out.bank);
  member.optional(
      "sink", out.sink, kHeatSinks,
      "dry: the air's temperature; wet: that of water that evaporates in it; chiller: "
      "none, as compressors keep the set point while they carry the heat; default: dry");
  member.optional("approach_kelvin", law.approach_kelvin, Interval{0, 60},
                  "Coolant at the machines over the sink, at unit_heat; none of chillers; default: "
                  "10");
  member.optional("set_point_celsius", law.set_point_celsius, Interval{5, 60},
                  "No colder; default: 25");
  member.optional("rated_celsius", law.rated_celsius, Interval{10, 70},
                  "Coolant up to which cards keep their limit; default: 35");
  member.optional("slowdown_celsius", law.slowdown_celsius, Interval{50, 120},
                  "Of a chip, at which it slows itself down; default: 87");
  member.optional("usd_per_kw", out.usd_per_kw, kPlantUsd,
                  "Price of its units, by unit_heat; default: nothing");
  member.optional("cycles", out.cycles, Interval{1, 100, true},
                  "Of concentration of the water; default: 4");
  member.optional(
      "loop", kMostLoopStages, "", "What the heat goes through on its way to them: pumps, CDUs",
      [](const DeclaredMembers& one) {
        CoolingStage stage;
        declare_stage(one, stage);
      },
      [&](const JsonCursor& list) { read_loop(list, out.loop); });
  if (const JsonCursor* const from = member.object()) {
    if (law.rated_celsius >= law.slowdown_celsius) {
      from->at("rated_celsius").fail("less than slowdown_celsius");
    }
    law.chills = out.sink == HeatSink::chiller;
    if (!law.chills) return;
    if (const auto approach = from->find("approach_kelvin")) {
      approach->fail(R"(none beside "sink": "chiller", whose coolant is at the set point)");
    }
    if (law.set_point_celsius >= law.slowdown_celsius) {
      from->at("set_point_celsius").fail("less than slowdown_celsius");
    }
  }
}

void declare_generator(const DeclaredMembers& member, GeneratorLaw& out) {
  member.optional("start", out.start, Interval{0, 3600},
                  "From the loss of power until it carries load; default: 15 s");
  member.optional("fails_to_start", out.fails_to_start, Dimension::share, kShare,
                  "How likely, of each unit at each outage; default: 0");
  member.optional("fuel", out.fuel, Interval{1, 1e9},
                  "That it runs on its tank, which is filled after the outage; default: any "
                  "outage");
  member.optional("usd_per_kwh", out.usd_per_kwh, Interval{0, 1e3},
                  "Of its fuel, by the energy that it gives; default: nothing");
  member.optional("grams_per_kwh", out.grams_per_kwh, Interval{0, 1e4},
                  "Carbon dioxide of the same; default: nothing");
}

/// A part, and the names of those that feed it.
struct WrittenPart {
  PowerPart part;
  std::vector<std::string> from;
  bool carries_given = false;
};
void check_part(const JsonCursor& at, const WrittenPart& written) {
  const PowerPart& part = written.part;
  if (part.oversubscription > 0 && part.capacity > Watts{}) {
    at.at("oversubscription").fail("none beside \"capacity\", which follows from it");
  }
  if (part.bridge > Seconds{} && part.capacity <= Watts{} && part.oversubscription <= 0) {
    at.at("bridge").fail("none without \"capacity\", which its batteries carry so long");
  }
  if (part.oversubscription > 0 && part.carries == PathLoad::site) {
    at.at("carries").fail(R"("machines" beside "oversubscription", which counts nodes alone)");
  }
  if (part.usd_per_kw > 0 && part.capacity <= Watts{}) {
    at.at("usd_per_kw").fail("none without \"capacity\", whose price it is");
  }
  if (!part.generator) return;
  if (!written.from.empty()) at.at("from").fail("nothing, as a generator is fed by no other part");
  if (part.bridge > Seconds{})
    at.at("bridge").fail("none of a generator, but of the UPS behind it");
}
void declare_part(const DeclaredMembers& member, WrittenPart& out) {
  static constexpr ValueType kName = text_type();
  member.required("name", out.part.bank.name, "");
  member.optional("units", out.part.bank.units, 1, kMostUnits, "Equal ones; default: 1");
  member.optional("capacity", out.part.capacity, kSitePower, "Of a unit; default: no limit");
  member.optional("oversubscription", out.part.oversubscription, Interval{0.1, 10},
                  "In place of capacity: power of all nodes behind it, their cards at their "
                  "datasheet's power, over that of all its units");
  declare_bank(member, out.part.bank);
  member.optional("from", list_type(kName, kMostFeeding),
                  "Parts before it that can feed it, each alone; default: from outside",
                  [&](const JsonCursor& list) {
                    for (const JsonCursor& at : list.elements(kMostFeeding)) {
                      out.from.push_back(at.string());
                    }
                  });
  member.optional("nodes", out.part.nodes, 0, 10'000'000, "Fed by each unit; default: none");
  member.optional("bridge", out.part.bridge, Interval{1, 1e7},
                  "That a unit's batteries carry its capacity, and less for longer; default: none");
  member.optional("usd_per_kw", out.part.usd_per_kw, kPlantUsd,
                  "Price of its units, by their capacity, with their batteries; default: nothing");
  member.optional("generator", out.part.generator,
                  "Its units stand by, and start when nodes lose power", declare_generator);
  member.optional("carries", out.part.carries, kPathLoads,
                  "machines, or the site: with what cools and lights them; default: site of "
                  "generators and of parts fed from outside that feed other parts, else machines");
  if (const JsonCursor* const from = member.object()) {
    out.carries_given = from->find("carries").has_value();
    check_part(*from, out);
  }
}

/// Lines from outside, and generators in their place, feed what cools the machines as well.
void assume_loads(const std::vector<bool>& given, SiteSpec& out) {
  std::vector<std::string> site, machines;
  for (std::size_t i = 0; i < out.path.size(); ++i) {
    PowerPart& part = out.path[i];
    if (given[i] || part.oversubscription > 0) continue;
    if (part.generator || (part.from.empty() && part.nodes == 0)) part.carries = PathLoad::site;
    if (part.capacity <= Watts{}) continue;
    (part.carries == PathLoad::site ? site : machines).push_back(in_quotes(part.bank.name));
  }
  if (!site.empty()) {
    out.assumptions.push_back(
        fmt::format("run.site.path: {} {} what cools the machines, too (carries not given)",
                    fmt::join(site, ", "), site.size() == 1 ? "carries" : "carry"));
  }
  if (!machines.empty()) {
    out.assumptions.push_back(
        fmt::format("run.site.path: {} {} machines alone, not what cools them (carries not given)",
                    fmt::join(machines, ", "), machines.size() == 1 ? "carries" : "carry"));
  }
}

/// What nobody said of generators' fuel costs and emits nothing: says so.
void assume_fuel(SiteSpec& out) {
  for (const PowerPart& part : out.path) {
    if (!part.generator) continue;
    const bool usd = part.generator->usd_per_kwh.has_value();
    const bool grams = part.generator->grams_per_kwh.has_value();
    if (usd && grams) continue;
    out.assumptions.push_back(fmt::format("run.site.path: fuel of \"{}\" {} nothing ({} not given)",
                                          part.bank.name,
                                          usd     ? "emits"
                                          : grams ? "costs"
                                                  : "costs and emits",
                                          usd     ? "grams_per_kwh"
                                          : grams ? "usd_per_kwh"
                                                  : "usd_per_kwh, grams_per_kwh"));
  }
}

/// Refuses what feeds a part and stands behind it: power would go round.
void refuse_later(const JsonCursor& list, const JsonCursor& from, const std::string& name,
                  std::span<const std::string> before) {
  for (const JsonCursor& part : list.elements(kMostParts)) {
    const std::optional<JsonCursor> named = part.find("name");
    if (!named || !named->is_string() || named->string() != name) continue;
    from.fail(before.empty() ? std::string("nothing, as the first part is fed from outside; power "
                                           "comes from parts that are listed before")
                             : fmt::format("parts that are listed before, so that no power goes "
                                           "round: {}",
                                           fmt::join(before, ", ")));
  }
}

/// A part that feeds neither nodes nor another part does nothing.
void refuse_ends(const JsonCursor& list, std::span<const PowerPart> path) {
  const std::vector<JsonCursor> at = list.elements(kMostParts);
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool feeds = path[i].nodes > 0 || std::ranges::any_of(path, [i](const PowerPart& later) {
                         return std::ranges::find(later.from, i) != later.from.end();
                       });
    if (!feeds) at[i].fail("a part that feeds nodes, or that a later one has in \"from\"");
  }
}

void read_path(const JsonCursor& list, SiteSpec& out) {
  std::vector<std::string> names;
  std::vector<bool> given;  // what a part carries
  for (const JsonCursor& at : list.elements(kMostParts)) {
    WrittenPart written;
    declare_part({at, Extent::whole}, written);
    PowerPart& part = written.part;
    if (std::ranges::find(names, part.bank.name) != names.end()) {
      at.at("name").fail("a name that no other part has");
    }
    for (std::size_t i = 0; i < written.from.size(); ++i) {
      const auto source = std::ranges::find(names, written.from[i]);
      const JsonCursor from = at.at("from").elements(kMostFeeding)[i];
      if (source == names.end()) {
        refuse_later(list, from, written.from[i], names);
        from.fail_name(names);
      }
      const auto number = static_cast<std::size_t>(source - names.begin());
      if (std::ranges::find(part.from, number) != part.from.end()) from.fail("each part once");
      part.from.push_back(number);
    }
    at.finish();
    names.push_back(part.bank.name);
    given.push_back(written.carries_given);
    out.path.push_back(part);
  }
  assume_loads(given, out);
  assume_fuel(out);
  const bool outside = std::ranges::any_of(
      out.path, [](const PowerPart& p) { return p.from.empty() && !p.generator; });
  if (!outside) list.fail("parts, of which one is fed from outside and is no generator");
  const bool feeds = std::ranges::any_of(out.path, [](const PowerPart& p) { return p.nodes > 0; });
  if (!feeds) list.fail("parts, of which one has nodes");
  refuse_ends(list, out.path);
}

HourlyFile read_hours(const JsonCursor& from) {
  const std::string written = from.string();
  if (written.empty() || written.find('\0') != std::string::npos) from.fail("the name of a file");
  const std::string file = (std::filesystem::path(from.file()).parent_path() / written).string();
  const std::string text = read_text_file(file);
  try {
    return read_hourly_file(file, text);
  } catch (const InputError& error) {
    // Of the key that names the file, too.
    throw retold(error, [&](InputProblem& problem) {
      problem.found = fmt::format("in {}: {}", problem.file, problem.found);
      problem.file = from.file();
      problem.pointer = from.pointer();
    });
  }
}

/// The file's hours from the start on, then those before it, again and again until a year is full;
/// else a year. What is repeated has the calendar of the time at which it is met.
std::vector<SiteHour> hours_of(const JsonCursor& from, const SiteDraft& draft,
                               std::chrono::sys_seconds& first,
                               std::vector<std::string>& assumptions) {
  if (!draft.file) {
    const CivilTime otherwise{.local = std::chrono::sys_days{std::chrono::year{2026} / 1 / 1},
                              .offset = {}};
    first = draft.start.value_or(otherwise).local;
    if (!draft.start) assumptions.emplace_back("run.site.start: 2026-01-01T00:00 (not given)");
    std::vector<SiteHour> hours;
    for (int h = 0; h < kYearHours; ++h) hours.push_back(hour_at(first + std::chrono::hours{h}));
    return hours;
  }
  std::vector<SiteHour> hours = draft.file->hours;
  const std::vector<CivilTime>& times = draft.file->times;
  std::size_t begin = 0;
  if (draft.start) {
    const auto at = std::ranges::find(times, draft.start->local, &CivilTime::local);
    if (at == times.end()) {
      from.at("start").fail(fmt::format("a time that the file of hours has, {} to {}",
                                        civil_time_text(times.front()),
                                        civil_time_text(times.back())));
    }
    begin = static_cast<std::size_t>(at - times.begin());
  }
  first = times[begin].local;
  std::ranges::rotate(hours, hours.begin() + static_cast<std::ptrdiff_t>(begin));
  const std::size_t given = hours.size(), own = given - begin;
  for (std::size_t h = own; h < std::max<std::size_t>(given, kYearHours); ++h) {
    const auto after = std::chrono::hours{static_cast<std::int64_t>(h - own + 1)};
    SiteHour hour = hours[h % given];
    set_calendar(hour, times.back().local + after);
    if (h < given) {
      hours[h] = hour;
    } else {
      hours.push_back(hour);
    }
  }
  return hours;
}

void fill_sun(const JsonCursor& from, const SiteDraft& draft, SiteSpec& out) {
  const HourColumns has = draft.file ? draft.file->has : HourColumns{};
  if (out.wind > Watts{} && !has.wind) {
    from.at("wind").fail("0, or hours with a column \"wind_share\"");
  }
  if (out.solar <= Watts{} || has.solar) return;
  if (!draft.latitude) {
    from.at("solar").fail(R"(0, hours with a column "solar_share", or "latitude" beside it)");
  }
  out.assumptions.emplace_back(
      "run.site.solar: a clear sky every day, by the sun's height alone (no solar_share given)");
  for (SiteHour& hour : out.hours) {
    hour.solar = sun_height(*draft.latitude, hour.day_of_year, hour.hour + 0.5);
  }
}

/// Heat waves that end before the hours of the site begin, or begin after they end.
void tell_far_waves(const DrawnWeather& weather, std::chrono::sys_seconds first, SiteSpec& out) {
  const auto end = first + std::chrono::hours{static_cast<std::int64_t>(out.hours.size())};
  for (const HeatWave& wave : weather.waves) {
    const auto lasts = std::chrono::seconds{static_cast<std::int64_t>(wave.days * 86'400)};
    if (wave.start < end && wave.start + lasts > first) continue;
    const auto text = [](std::chrono::sys_seconds at) { return civil_time_text({at, {}}); };
    out.assumptions.push_back(fmt::format(
        "run.site.weather.waves: the one from {} is not in the hours of the site, {} to "
        "{}, and changes nothing",
        text(wave.start), text(first), text(end)));
  }
}

void finish_hours(const JsonCursor& from, const SiteDraft& draft, SiteSpec& out) {
  std::chrono::sys_seconds first;
  out.hours = hours_of(from, draft, first, out.assumptions);
  if (draft.file) out.hours_given = draft.file->hours.size();
  const HourColumns has = draft.file ? draft.file->has : HourColumns{};
  out.priced = has.tariff;
  out.counted_carbon = has.carbon;
  if (draft.weather) {
    if (has.outside) from.at("weather").fail("nothing, as the file of hours has outside_celsius");
    draw_weather(*draft.weather, draft.weather_seed, first, out.hours);
    out.assumptions.push_back(
        fmt::format("run.site.weather: drawn, not measured: mean {:g} C, seasons +- {:g} K, days "
                    "+- {:g} K, noise {:g} K",
                    draft.weather->mean_celsius, draft.weather->yearly_kelvin,
                    draft.weather->daily_kelvin, draft.weather->noise_kelvin));
    tell_far_waves(*draft.weather, first, out);
  }
  for (SiteHour& hour : out.hours) {
    if (draft.limit) hour.limit = std::min(hour.limit, *draft.limit);
    for (const CurtailedHours& window : draft.curtailed) {
      if (window.has(hour)) hour.limit = std::min(hour.limit, window.limit);
    }
  }
  fill_sun(from, draft, out);
}

void declare_grid(const DeclaredMembers& member, SiteDraft& draft, SiteSpec& out) {
  member.optional("limit", draft.limit, kSitePower, "What the grid gives; default: no limit");
  member.optional(
      "curtailments", kMostWindows, "", "Hours of every day in which the grid gives less",
      [](const DeclaredMembers& one) {
        CurtailedHours window;
        declare_curtailed(one, window);
      },
      [&](const JsonCursor& list) {
        for (const JsonCursor& at : list.elements(kMostWindows)) {
          CurtailedHours window;
          declare_curtailed({at, Extent::whole}, window);
          at.finish();
          draft.curtailed.push_back(window);
        }
      });
  member.optional("demand_usd_per_kw_month", out.demand_usd_per_kw_month, Interval{0, 1e3},
                  "For the highest hour of each month that is begun");
  member.optional("export_usd_per_kwh", out.export_usd_per_kwh, Interval{-1e3, 1e3},
                  "For what renewables give too much; default: 0");
  member.optional("solar", out.solar, Interval{0, 1e12}, "Installed; default: none");
  member.optional("wind", out.wind, Interval{0, 1e12}, "Installed; default: none");
  member.optional("latitude", draft.latitude, Interval{-90, 90},
                  "For a clear sky's sun, where no file has solar_share");
  member.optional("battery", out.battery, "Stands in for the grid", declare_battery);
  member.optional(
      "ramp_mw_per_s", number_type(Interval{0, 1e6, true}),
      "The steepest rise that the grid allows; default: any",
      [&](const JsonCursor& at) { out.ramp_w_per_s = 1e6 * at.number(Interval{0, 1e6, true}); });
}

}  // namespace

void declare_site(const DeclaredMembers& member, SiteSpec& out) {
  SiteDraft draft;
  member.optional("hours", text_type(),
                  "A CSV file with a row for each hour: time, and any of outside_celsius, "
                  "humidity_percent, usd_per_kwh, usd_per_mwh, grams_per_kwh, limit_mw, "
                  "solar_share, wind_share; repeated when it runs out",
                  [&](const JsonCursor& at) { draft.file = read_hours(at); });
  member.optional("start", text_type(),
                  "Local time of the run's first hour; default: the file's first, else "
                  "2026-01-01T00:00",
                  [&](const JsonCursor& at) { draft.start = read_time(at); });
  member.optional("weather", draft, "Drawn, where no file has it", declare_weather);
  declare_grid(member, draft, out);
  member.optional("cooling", out.cooling, "The plant that carries the heat away", declare_cooling);
  member.optional(
      "path", kMostParts, "", "The way that power takes, from outside to the nodes",
      [](const DeclaredMembers& one) {
        WrittenPart part;
        declare_part(one, part);
      },
      [&](const JsonCursor& list) { read_path(list, out); });
  if (const JsonCursor* const from = member.object()) finish_hours(*from, draft, out);
}

}  // namespace lockstep
