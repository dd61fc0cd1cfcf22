#include "sim/scenario/hourly_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <span>

#include "models/base/csv_reader.hpp"
#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"

namespace lockstep {
namespace {

/// A column: what a cell may be, and where its value goes.
struct HourColumn {
  std::string_view name;
  double low, high;
  bool HourColumns::* has;
  void (*put)(SiteHour& hour, double value);
};
constexpr std::array kHourColumns{
    HourColumn{"outside_celsius", -60, 60, &HourColumns::outside,
               [](SiteHour& h, double v) { h.outside_celsius = v; }},
    HourColumn{"humidity_percent", 0, 100, &HourColumns::humidity,
               [](SiteHour& h, double v) { h.humidity = v / 100; }},
    HourColumn{"usd_per_kwh", -1e3, 1e3, &HourColumns::tariff,
               [](SiteHour& h, double v) { h.usd_per_kwh = v; }},
    HourColumn{"usd_per_mwh", -1e6, 1e6, &HourColumns::tariff,
               [](SiteHour& h, double v) { h.usd_per_kwh = v / 1e3; }},
    HourColumn{"grams_per_kwh", 0, 1e4, &HourColumns::carbon,
               [](SiteHour& h, double v) { h.grams_per_kwh = v; }},
    HourColumn{"limit_mw", 0, 1e6, &HourColumns::limit,
               [](SiteHour& h, double v) { h.limit = Watts{v * 1e6}; }},
    HourColumn{"solar_share", 0, 1, &HourColumns::solar,
               [](SiteHour& h, double v) { h.solar = v; }},
    HourColumn{"wind_share", 0, 1, &HourColumns::wind, [](SiteHour& h, double v) { h.wind = v; }}};
constexpr std::string_view kTimeColumn = "time";

/// Digits at the front of `text`, taken off it.
std::optional<int> taken_number(std::string_view& text, std::size_t digits) {
  int value = 0;
  if (text.size() < digits) return std::nullopt;
  const char* const first = text.data();
  const char* const last = first + digits;
  const auto [end, error] = std::from_chars(first, last, value);
  if (error != std::errc{} || end != last || text[0] == '-') return std::nullopt;
  text.remove_prefix(digits);
  return value;
}
bool taken(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<std::chrono::sys_seconds> taken_date(std::string_view& text) {
  const auto year = taken_number(text, 4);
  if (!year || !taken(text, "-")) return std::nullopt;
  const auto month = taken_number(text, 2);
  if (!month || !taken(text, "-")) return std::nullopt;
  const auto day = taken_number(text, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{*year},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_seconds{std::chrono::sys_days{date}};
}

/// "05:30" in minutes.
std::optional<std::chrono::minutes> taken_clock(std::string_view& text, int most_hours) {
  const auto hour = taken_number(text, 2);
  if (!hour || *hour > most_hours || !taken(text, ":")) return std::nullopt;
  const auto minute = taken_number(text, 2);
  if (!minute || *minute > 59) return std::nullopt;
  return std::chrono::hours{*hour} + std::chrono::minutes{*minute};
}

/// The rows of one file, as they come.
class HourlyRows {
 public:
  HourlyRows(std::string file, std::string_view text) : file_(std::move(file)), text_(text) {}

  void heading(std::span<const std::string> names) {
    for (const std::string& name : names) {
      heading_.push_back(name);
      if (name == kTimeColumn) {
        columns_.push_back(nullptr);
        continue;
      }
      const auto* const known = std::ranges::find(kHourColumns, name, &HourColumn::name);
      if (known == kHourColumns.end()) fail_column(name);
      if (out_.has.*known->has)
        fail(file_, in_quotes(name) + " beside another of the same", "one column of each kind");
      out_.has.*known->has = true;
      columns_.push_back(known);
    }
    if (std::ranges::count(heading_, kTimeColumn) != 1) {
      fail(file_, "no column \"time\"", "one such column, and " + known_columns());
    }
  }

  void row(std::size_t number, std::span<const std::string> cells) {
    row_ = number;
    CivilTime time;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (columns_[c] != nullptr) continue;
      const auto read = parse_civil_time(cells[c]);
      if (!read) {
        fail_row("time " + in_quotes(cells[c]),
                 "a time like 2026-03-29T01:00, or 2026-03-29T01:00+01:00 where clocks change");
      }
      time = *read;
    }
    check_next(time);
    SiteHour hour = hour_at(time.local);
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (columns_[c] != nullptr) put(*columns_[c], cells[c], hour);
    }
    out_.times.push_back(time);
    out_.hours.push_back(hour);
  }

  HourlyFile take() {
    if (out_.hours.empty()) fail(file_, "no hour", "a row for each hour");
    return std::move(out_);
  }

 private:
  [[noreturn]] static void fail(const std::string& place, const std::string& found,
                                const std::string& allowed, const std::string& nearest = {}) {
    throw InputError(
        {.file = place, .pointer = {}, .found = found, .allowed = allowed, .nearest = nearest});
  }
  [[noreturn]] void fail_row(const std::string& found, const std::string& allowed) const {
    fail(csv_place(file_, row_, text_), found, allowed);
  }
  static std::string known_columns() {
    std::vector<std::string> names;
    for (const HourColumn& column : kHourColumns) names.emplace_back(column.name);
    return listed(names);
  }
  [[noreturn]] void fail_column(const std::string& name) const {
    std::vector<std::string> names{std::string(kTimeColumn)};
    for (const HourColumn& column : kHourColumns) names.emplace_back(column.name);
    fail(file_, "column " + in_quotes(name), listed(names), nearest_name(name, names));
  }

  /// An hour after the row before, whatever the clocks show.
  void check_next(const CivilTime& time) const {
    if (out_.times.empty()) return;
    const CivilTime& before = out_.times.back();
    if (before.offset.has_value() != time.offset.has_value()) {
      fail_row("time " + civil_time_text(time) + " after " + civil_time_text(before),
               "an offset from UTC in every row, or in none");
    }
    const std::chrono::sys_seconds at = time.local - time.offset.value_or(std::chrono::minutes{0});
    const std::chrono::sys_seconds last =
        before.local - before.offset.value_or(std::chrono::minutes{0});
    if (at - last == std::chrono::hours{1}) return;
    CivilTime next = before;
    next.local += std::chrono::hours{1};
    fail_row(
        "time " + civil_time_text(time) + " after " + civil_time_text(before),
        fmt::format("{}, an hour later{}", civil_time_text(next),
                    time.offset ? "" : "; where clocks change, times with their offset from UTC"));
  }

  void put(const HourColumn& column, const std::string& cell, SiteHour& hour) const {
    double value = 0;
    const char* const last = cell.data() + cell.size();
    const auto [end, error] = std::from_chars(cell.data(), last, value);
    if (cell.empty() || error != std::errc{} || end != last ||
        !(value >= column.low && value <= column.high)) {
      fail_row(fmt::format("{} {}", column.name, in_quotes(cell)),
               fmt::format("a number from {} to {}", plain_number(column.low),
                           plain_number(column.high)));
    }
    column.put(hour, value);
  }

  std::string file_;
  std::string_view text_;
  std::size_t row_ = 0;  ///< that is read
  std::vector<std::string> heading_;
  std::vector<const HourColumn*> columns_;  ///< null: the time
  HourlyFile out_;
};

}  // namespace

std::string civil_time_text(const CivilTime& time) {
  const auto day = std::chrono::floor<std::chrono::days>(time.local);
  const std::chrono::year_month_day date{day};
  const auto clock = std::chrono::duration_cast<std::chrono::minutes>(time.local - day).count();
  std::string out = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}", static_cast<int>(date.year()),
                                static_cast<unsigned>(date.month()),
                                static_cast<unsigned>(date.day()), clock / 60, clock % 60);
  if (!time.offset) return out;
  const auto offset = time.offset->count();
  return out + fmt::format("{}{:02}:{:02}", offset < 0 ? '-' : '+', std::abs(offset) / 60,
                           std::abs(offset) % 60);
}

std::optional<CivilTime> parse_civil_time(std::string_view text) {
  const auto date = taken_date(text);
  if (!date || !taken(text, "T ")) return std::nullopt;
  const auto clock = taken_clock(text, 23);
  if (!clock) return std::nullopt;
  if (taken(text, ":")) {
    const auto seconds = taken_number(text, 2);
    if (!seconds || *seconds != 0) return std::nullopt;
  }
  CivilTime out{.local = *date + *clock, .offset = std::nullopt};
  if (text.empty()) return out;
  if (text == "Z") {
    out.offset = std::chrono::minutes{0};
    return out;
  }
  const bool west = text.front() == '-';
  if (!taken(text, "+-")) return std::nullopt;
  const auto offset = taken_clock(text, 14);
  if (!offset || !text.empty()) return std::nullopt;
  out.offset = west ? -*offset : *offset;
  return out;
}

void set_calendar(SiteHour& hour, std::chrono::sys_seconds local) {
  const auto day = std::chrono::floor<std::chrono::days>(local);
  const std::chrono::year_month_day date{day};
  const std::chrono::sys_days new_year{date.year() / std::chrono::January / 1};
  hour.year = static_cast<int>(date.year());
  hour.month = static_cast<int>(static_cast<unsigned>(date.month()));
  hour.day_of_year = static_cast<int>((day - new_year).count()) + 1;
  hour.hour = static_cast<int>(std::chrono::duration_cast<std::chrono::hours>(local - day).count());
}

SiteHour hour_at(std::chrono::sys_seconds local) {
  SiteHour out;
  set_calendar(out, local);
  return out;
}

HourlyFile read_hourly_file(const std::string& file, std::string_view text) {
  HourlyRows rows(file, text);
  read_csv(
      file, text, [&](std::span<const std::string> names) { rows.heading(names); },
      [&](std::size_t number, std::span<const std::string> cells) { rows.row(number, cells); });
  return rows.take();
}

}  // namespace lockstep
