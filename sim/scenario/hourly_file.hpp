/// A CSV file with a row for each hour of a site: its time, and columns known by name.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/site_spec.hpp"

namespace lockstep {

/// A time as people write it: "2026-03-29T01:00", with or without an offset from UTC.
struct CivilTime {
  std::chrono::sys_seconds local;  ///< what the clock on the wall shows
  std::optional<std::chrono::minutes> offset;
};
/// "2026-03-29T01:00", "2026-03-29 01:00:00+01:00", "...Z"; nothing for anything else.
std::optional<CivilTime> parse_civil_time(std::string_view text);
/// "2026-03-29T01:00", with its offset where it has one.
std::string civil_time_text(const CivilTime& time);

/// The columns that a file may have beside its time.
struct HourColumns {
  bool outside = false, humidity = false, tariff = false, carbon = false, limit = false,
       solar = false, wind = false;
};
struct HourlyFile {
  HourColumns has;
  std::vector<CivilTime> times;
  std::vector<SiteHour> hours;
};

/// Rows an hour apart, without a gap: where each time has its offset from UTC, days that clocks are
/// changed on have 23 or 25; without offsets clocks never change. Prices may be negative. Throws
/// InputError about `file` with the row for a gap, a time twice, an empty cell, an unknown column.
HourlyFile read_hourly_file(const std::string& file, std::string_view text);

/// The calendar's part of an hour.
SiteHour hour_at(std::chrono::sys_seconds local);
/// Writes it over that of another hour.
void set_calendar(SiteHour& hour, std::chrono::sys_seconds local);

}  // namespace lockstep
